"""Elementwise sums and products are fused where nothing else reads what is between them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.equivalence.exact import fusion
from fusionlab.equivalence.exact.evaluation import Evaluator
from fusionlab.equivalence.exact.field import FieldWithGuards, FieldWithUndefined, PrimeField, primes
from fusionlab.equivalence.exact.fusion import Fusion, fused
from fusionlab.equivalence.exact.identity import TIES, tied
from fusionlab.equivalence.exact.steering import Tracker
from fusionlab.equivalence.exact.values import Drawn
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


def exponent_of_constants(x, y):
    """Their sum stays known, or the power would be any function of two values."""
    one = jax.lax.optimization_barrier(jnp.float32(1))
    return x ** (one * 2 + one) * y


PROGRAMS = {
    "chain": (lambda x, y: (x * y + x * x) * (y - x), [5]),
    "two readers": (two_readers, [2]),
    "returned": (returned, []),
    "captured": (captured, []),
    "an exponent of constants": (exponent_of_constants, [2]),
    "predicates": (lambda x, y: jnp.where(x > y, x * y + x, 0.0) * (x > 0) + x, [2, 2]),
    "complex": (lambda x, y: ((x + 1j * y) * (x - 1j * y) + x * x).real, [6]),
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


@pytest.mark.parametrize("field", [PrimeField, FieldWithGuards, FieldWithUndefined])
@pytest.mark.parametrize("tracked", [False, True], ids=["plain", "tracked"])
def test_results_are_those_of_the_nodes_one_by_one(program, field, tracked):
    view, _ = program
    arithmetic = field(primes(1)[0], range(len(TIES)))
    whole = Tracker(arithmetic, (1.0, 0.0)) if tracked else Evaluator(arithmetic)
    plain = Evaluator(arithmetic, watch=lambda node, results: None)
    arguments = whole.drawn_arguments(view)
    if field is FieldWithUndefined:
        arguments = [Drawn(tied(at, held.array)) for at, held in enumerate(arguments)]
    for found, expected in zip(whole.outputs(view, arguments), plain.outputs(view, arguments), strict=True):
        assert np.array_equal(np.broadcast_to(found, expected.shape), expected, equal_nan=True)


def test_what_lies_between_is_forgotten_where_nodes_run_one_by_one(lowered):
    """Logarithms are carried along: of 15 sums one is held at a time."""
    module = lowered(lambda x, y: jnp.exp(sum([x * k for k in range(2, 9)], jnp.log(y))), X, X).parse()
    view, held = view_of(module), []

    class Counted(Evaluator):
        def run(self, units, dying, environment):
            super().run(units, dying, environment)
            held.append(len(environment))

    evaluator = Counted(PrimeField(primes(1)[0], [0]))
    evaluator.outputs(view, evaluator.drawn_arguments(view))
    inside, _ = held
    assert inside <= 12


def test_a_fusion_has_a_limit(lowered, monkeypatch):
    """Its operands are all alive until it is evaluated."""
    monkeypatch.setattr(fusion, "MOST_NODES", 4)
    view = view_of(lowered(lambda x, y: sum((x * k) * y for k in range(2, 12)), X, X).parse())
    units = [unit for unit in fused(view) if isinstance(unit, Fusion)]
    assert max(len(unit.nodes) for unit in units) == 4
    assert sum(len(unit.nodes) for unit in units) >= 29
