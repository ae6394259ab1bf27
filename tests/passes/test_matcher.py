"""What patterns match and bind."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.hlo.patterns import match, op
from fusionlab.hlo.view import Value, view_of
from fusionlab.passes.interface import Pass, Setting
from fusionlab.passes.matcher import number, rewrite_matches

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
    flat = view_of(lowered(function, X, X).parse())
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
    names = [[node.name for node in view_of(one.parse()).walk()] for one in (program, result.program)]
    assert [each.count("stablehlo.while") for each in names] == [2, 1]
    assert [each.count("stablehlo.multiply") for each in names] == [2, 0]


UNREAD = (Path(__file__).parent / "unread_result.mlir").read_text()


@pytest.mark.parametrize(
    ("made", "stays"),
    [
        ("func.call @seen(%a)", True),
        ("stablehlo.custom_call @callback(%a) {has_side_effect = true}", True),
        ("stablehlo.custom_call @pure(%a)", False),
    ],
)
def test_what_has_an_effect_stays_when_nothing_reads_it(made, stays, program_of_text):
    made = f"{made} : (tensor<3xf32>) -> tensor<3xf32>"
    result = TimesNothing().run(program_of_text(UNREAD.replace("MADE", made)), Setting(platform="cpu"))
    assert result.applied
    names = {node.op.mnemonic for node in view_of(result.program.parse()).walk()} - {"broadcast_in_dim"}
    assert names == {"constant", *(("exponential", "custom_call") if stays else ())}
