"""Loops with numbers in their names: told apart where they share a name stack."""

import jax
import jax.numpy as jnp

from fusionlab.hlo.flat import flatten
from fusionlab.hlo.loop_numbers import loop_number, with_numbered_loops, without_numbers
from fusionlab.hlo.loops import find_loops

from .conftest import as_program


def test_every_loop_has_its_own_name():
    def function(x):
        first = jax.lax.fori_loop(0, 3, lambda k, s: s + jnp.sin(x) * k, x)
        return jax.lax.fori_loop(0, 4, lambda k, y: jnp.tanh(y) * 2, first)

    program = as_program(function, jnp.ones(3))
    plain = [loop.node.scope for loop in find_loops(flatten(program.parse()))]
    numbered = with_numbered_loops(program)
    scopes = [loop.node.scope for loop in find_loops(flatten(numbered.parse()))]
    assert plain[0] == plain[1]
    assert [loop_number(scope) for scope in scopes] == [0, 1]
    assert [without_numbers(scope) for scope in scopes] == plain
    assert (numbered.name, numbered.platform, numbered.ops) == (program.name, program.platform, program.ops)
    assert str(numbered.parse()) == str(program.parse())  # but for locations, which this does not print


def test_the_innermost_number_counts():
    assert loop_number("jit(f)/while#loop2/body/while#loop13") == 13
    assert loop_number("jit(f)/while#loop2/body/tanh") == 2
    assert loop_number("jit(f)/tanh") is None
    assert without_numbers("jit(f)/while#loop2/body/while#loop13") == "jit(f)/while/body/while"
