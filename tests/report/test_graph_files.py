"""What other tools read: figures that can be summed, and layers that hold what belongs to them."""

import json

import pytest

from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.graph import graph
from fusionlab.hlo.lowering import lower
from fusionlab.hlo.view import view_of
from fusionlab.report.graph_files import model_explorer, node_data, of_all_trips
from workloads import catalogue


@pytest.fixture(scope="module")
def program():
    return lower(catalogue.build("ferminet", "LiH", walkers=4, size="tiny"), "cuda")


@pytest.fixture(scope="module")
def operations(program):
    flat = view_of(program.parse())
    return of_all_trips(graph(flat), flat)


def test_figures_of_operations_sum_to_those_of_the_program(program, operations):
    cost = program_cost(program)
    for name, whole in (("flops", cost.flops), ("bytes", cost.bytes)):
        results = json.loads(node_data({"operations": operations})[name])["operations"]["results"]
        assert sum(one["value"] for one in results.values()) == whole
        loops = {facts["parent"] for _, facts in operations.nodes(data=True)} - {""}
        assert loops
        assert not loops & set(results)


def test_what_a_loop_is_given_stands_in_its_layer(operations):
    (loop,) = {facts["parent"] for _, facts in operations.nodes(data=True)} - {""}
    (found,) = json.loads(model_explorer("m", {"operations": operations}))["graphs"]
    inside = [node["namespace"] for node in found["nodes"] if node["id"].startswith(f"{loop}/")]
    assert inside
    assert all(namespace.startswith(f"laplacian/{loop.replace('/', ' ')}") for namespace in inside)
