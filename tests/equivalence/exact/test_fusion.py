"""Elementwise sums and products are fused where nothing else reads what is between them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.equivalence.exact import fusion
from fusionlab.equivalence.exact.evaluation import Evaluator
from fusionlab.equivalence.exact.field import PrimeField, primes
from fusionlab.equivalence.exact.fusion import Fusion, fused
from fusionlab.hlo.view import view_of

X = jax.ShapeDtypeStruct((4, 8), np.float32)


def two_readers(x, y):
    z = x * y
    return jnp.sin(z) + z * x


def returned(x, y):
    z = x * y
    return z, z + x


def captured(x, y):
    z = x * y
    return jax.lax.fori_loop(0, 3, lambda _, s: s * z + z, x) + z


def of_logarithms(x, y):
    """exp(x + log y) = exp(x) y is known, and a fusion would hide it."""
    return jnp.exp(x + x + jnp.log(y) - x)


PROGRAMS = {
    "chain": (lambda x, y: (x * y + x * x) * (y - x), [5]),
    "two readers": (two_readers, [1, 2]),
    "returned": (returned, [1, 1]),
    "captured": (captured, [1, 1]),
    "logarithms": (of_logarithms, [3]),
    "integers": (lambda x, y: x.astype(jnp.int32) * 2 + 1, []),
    "diamond": (lambda x, y: (lambda z: z * z + z)(x * y), [3]),
}


@pytest.fixture(params=PROGRAMS)
def program(request, lowered):
    function, sizes = PROGRAMS[request.param]
    module = lowered(function, X, X).parse()
    return view_of(module), sizes


def test_what_is_read_once_is_fused(program):
    view, sizes = program
    units = fused(view)
    found = [unit for unit in units if isinstance(unit, Fusion)]
    assert [len(unit.nodes) for unit in found] == sizes
    nodes = [node for unit in units for node in (unit.nodes if isinstance(unit, Fusion) else (unit,))]
    assert sorted(nodes, key=id) == sorted(view.nodes, key=id)


def test_results_are_those_of_the_nodes_one_by_one(program):
    view, _ = program
    field = PrimeField(primes(1)[0], range(3))
    whole, plain = Evaluator(field), Evaluator(field, watch=lambda node, results: None)
    arguments = whole.drawn_arguments(view)
    for found, expected in zip(whole.outputs(view, arguments), plain.outputs(view, arguments), strict=True):
        assert np.array_equal(np.broadcast_to(found, expected.shape), expected)


def test_a_fusion_has_a_limit(lowered, monkeypatch):
    """Its operands are all alive until it is evaluated."""
    monkeypatch.setattr(fusion, "MOST_NODES", 4)
    view = view_of(lowered(lambda x, y: sum((x * k) * y for k in range(2, 12)), X, X).parse())
    units = [unit for unit in fused(view) if isinstance(unit, Fusion)]
    assert max(len(unit.nodes) for unit in units) == 4
    assert sum(len(unit.nodes) for unit in units) >= 29
