"""A small graph with the attributes of ``hlo.graph``, as if made from a network with layers."""

import networkx as nx


def chained(layers, names=("dot_general", "add", "tanh", "multiply")):
    """A chain of operations: in each of ``layers`` (scopes below a stage) one of every name, times 4."""
    view = nx.DiGraph()
    paths = {}
    for layer in layers:
        for name in names * 4:
            node = str(len(view))
            scope = (
                f"jit(f)/while/body/jvp(stage_b)/{layer}/{name}" if layer else f"jit(f)/while/body/jvp(stage_b)/{name}"
            )
            family = "gemm" if name == "dot_general" else "elementwise"
            view.add_node(
                node, kind="op", name=name, type="8xf32", scope=scope, family=family, bytes=10, flops=3, unmodelled=0,
                order=len(view), stage="B", shape_bytes=8,
            )  # fmt: skip
            paths[node] = ("stage_b", *([layer] if layer else []))
            if len(view) > 1:
                view.add_edge(str(len(view) - 2), node, bytes=8, values=1)
    return view, dict.fromkeys(view, "tangent"), paths
