"""A small graph with the attributes of ``hlo.graph``, as if made from a network with layers."""

import networkx as nx

from fusionlab.report.pictures.scopes import named_scopes

LAYER = ("dot_general", "add", "tanh", "multiply") * 4


def chained(nodes):
    """A chain of operations, each (name stack, family, bytes) and a reader of the one before."""
    view = nx.DiGraph()
    for i, (scope, family, size) in enumerate(nodes):
        view.add_node(
            str(i), kind="op", name=scope.rpartition("/")[2], type="8xf32", scope=scope, family=family, bytes=size,
            flops=0, unmodelled=0, order=i, stage="B", shape_bytes=8,
        )  # fmt: skip
        if i:
            view.add_edge(str(i - 1), str(i), bytes=8, values=1)
    return view


def layered(*layers):
    """Layers of 16 operations with these scopes below stage B, all of one role: graph, roles and paths."""
    stacks = [f"jit(f)/while/body/jvp(stage_b)/{layer}{'/' if layer else ''}{op}" for layer in layers for op in LAYER]
    view = chained((stack, "gemm" if stack.endswith("dot_general") else "elementwise", 10) for stack in stacks)
    return view, dict.fromkeys(view, "tangent"), {node: named_scopes(view.nodes[node]["scope"]) for node in view}
