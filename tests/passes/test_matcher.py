"""What patterns match and bind."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.hlo.flat import Value, flatten
from fusionlab.passes.contract import Pass, Setting
from fusionlab.passes.matcher import match, number, op, rewrite_matches

SHIFTED = op("multiply", op("add", "x", number("n")), op("add", "y", number("n")))
X = np.ones((2, 3), np.float32)
CASES = [
    (lambda x, y: x / 7.0, op("divide", "x", number("n")), {"n": 7.0}),
    (lambda x, y: x / 7.0, op("divide", "x", 7.0), {}),
    (lambda x, y: x / 7.0, op("divide", "x", 6.0), None),
    (lambda x, y: x / y, op("divide", "x", number("n")), None),
    (lambda x, y: 7.0 / x, op("divide", "x", number("n")), None),
    (lambda x, y: x + 7.0, op("add", number("n"), "x"), {"n": 7.0}),
    (lambda x, y: x - 7.0, op("subtract", number("n"), "x"), None),
    (lambda x, y: (x + 7.0) * (y + 7.0), SHIFTED, {"n": 7.0}),
    (lambda x, y: (x + 7.0) * (y + 8.0), SHIFTED, None),
    (lambda x, y: jnp.tanh(x) + x, op("add", "x", op("tanh", "x")), {}),
    (lambda x, y: jnp.tanh(x) + y, op("add", "x", op("tanh", "x")), None),
    (lambda x, y: jnp.tanh(x), op("tanh", op("tanh", "x")), None),
    (lambda x, y: x, op("tanh", "x"), None),
]  # fmt: skip


@pytest.mark.parametrize(("function", "pattern", "numbers"), CASES)
def test_a_pattern(function, pattern, numbers, lowered):
    flat = flatten(lowered(function, X, X).parse())
    found = match(pattern, flat.returns[0])
    assert (found is None) == (numbers is None)
    if found is not None:
        assert {name: one for name, one in found.items() if not isinstance(one, Value)} == numbers
        arguments = dict(zip("xy", flat.arguments, strict=True))
        assert all(found[name] is arguments[name] for name in found if name in arguments)


@dataclass(frozen=True)
class TimesNothing(Pass):
    """Products with 0 are 0."""

    name: ClassVar[str] = "times-nothing"

    def run(self, program, setting):
        pattern = op("multiply", "x", 0.0)
        return rewrite_matches(program, self, setting, pattern, lambda x: jnp.zeros_like(x), what="are 0")


def test_a_loop_that_nothing_reads_any_more_goes_and_the_next_is_looked_at(lowered):
    """Its blocks were counted before it went."""

    def function(x):
        gone = jax.lax.while_loop(lambda y: y.sum() < 1, jnp.exp, x)
        return jax.lax.while_loop(lambda y: y.sum() < 1, lambda y: jnp.exp(y) + y * 0.0, x) + gone * 0.0

    program = lowered(function, X)
    result = TimesNothing().run(program, Setting(platform="cpu"))
    assert [event.what for event in result.applied] == ["1 are 0", "1 are 0"]
    names = [[node.name for node in flatten(one.parse()).walk()] for one in (program, result.program)]
    assert [each.count("stablehlo.while") for each in names] == [2, 1]
    assert [each.count("stablehlo.multiply") for each in names] == [2, 0]
