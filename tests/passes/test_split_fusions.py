"""split-fusions: its cases, and what it keeps by the figures of a model."""

import jax
import jax.numpy as jnp
import pytest

from fusionlab.errors import InputError
from fusionlab.passes.interface import Applied, KernelFigures, Overfused, Setting
from fusionlab.passes.split_fusions import MARK, SplitFusions, marked, numbers_in, operations_of

from .case_files import test_case  # noqa: F401

BARRIER = "stablehlo.optimization_barrier"


@pytest.fixture
def program(lowered):
    def joined(x):
        total = x.sum(axis=1)
        return jnp.concatenate([total, jnp.tanh(total)])

    return lowered(joined, jax.ShapeDtypeStruct((8, 4), "float32"))


def number_of(program, op):
    """The number of the first operation called ``op``, as its mark has it."""
    text = marked(program).text
    at = text.index(f"{op}/{MARK}") + len(f"{op}/{MARK}")
    return int(text[at:].partition('"')[0])


def setting(before, after, *found):
    """A target on which the program takes ``before`` microseconds, and with barriers ``after``'s figures."""

    def kernels(program):
        return after if BARRIER in program.text else KernelFigures(before, 100, 3, found)

    return Setting(platform="cuda", kernels=kernels)


def test_what_the_model_names_is_split(program):
    number = number_of(program, "reduce_sum")
    op_name = f"jit(joined)/reduce_sum/{MARK}{number}"
    found = Overfused("input_concatenate_fusion", "reduce_sum at m.py:3", (op_name,), 50.0)
    result = SplitFusions().run(program, setting(1000.0, KernelFigures(600.0, 100, 4, ()), found))
    (event,) = result.events
    assert isinstance(event, Applied)
    assert event.resolved == f"split-fusions{{at={number}}}"
    assert event.what.endswith("1.00 ms become 600.0 us by model")
    assert result.program.text.count(BARRIER) == 1
    assert MARK not in result.program.text


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (KernelFigures(998.0, 100, 4, ()), "0.998 of the time (allowed: 0.833)"),
        (KernelFigures(960.0, 100, 4, (), pair_error=0.2), "0.960 of the time (allowed: 0.833)"),
        (KernelFigures(600.0, 106, 4, ()), "1.060 of the memory (allowed: 1.05)"),
        (KernelFigures(600.0, 100, 10, ()), "+7 launches (allowed: +6)"),
    ],
    ids=["no gain", "less than the error of a pair", "more memory", "many launches"],
)
def test_a_split_that_does_not_pay_is_left_out(program, after, said):
    found = Overfused("k", "reduce_sum", (f"jit(joined)/{MARK}{number_of(program, 'reduce_sum')}",), 50.0)
    result = SplitFusions().run(program, setting(1000.0, after, found))
    assert result.program is program
    assert result.events[0].reason.startswith("1 group of kernels tried, by model the best takes ")
    assert said in result.events[0].reason


def test_nothing_is_tried_where_no_kernel_computes_again(program):
    result = SplitFusions().run(program, setting(1000.0, KernelFigures(1.0, 1, 1, ())))
    assert "no kernel that would gain" in result.events[0].reason


def test_a_value_that_no_barrier_can_hold_is_said(program):
    found = Overfused("k", "reduce_sum", ("jit(joined)/reduce_sum",), 50.0)
    result = SplitFusions().run(program, setting(1000.0, KernelFigures(1.0, 1, 1, ()), found))
    assert "no value that a kernel computes again is one that a barrier can hold" in result.events[0].reason


@pytest.mark.parametrize(
    ("at", "said"),
    [("x", "expected numbers"), ("99999", "no value with number 99999"), ("-2", "no value with number -2")],
)
def test_numbers_that_are_none_are_refused(program, at, said):
    with pytest.raises(InputError, match=said):
        SplitFusions(at=at).run(program, Setting())


def test_what_combines_elements_is_no_value(program):
    """The sum inside of a reduction."""
    names = [operation.name for operation in operations_of(program.parse())]
    inside = names.index("stablehlo.reduce") + 1
    assert names[inside] == "stablehlo.add"
    with pytest.raises(InputError, match=f"no value with number {inside}"):
        SplitFusions(at=str(inside)).run(program, Setting())


def test_a_number_that_is_named_twice_is_one_value(program):
    number = number_of(program, "reduce_sum")
    result = SplitFusions(at=f"{number}+{number}").run(program, Setting())
    assert result.program.text.count(BARRIER) == 1
    assert result.events[0].what.startswith("1 value is computed once")


def test_calls_and_loops_around_an_op_are_not_meant():
    name = f"jit(f)/{MARK}1/while/body/{MARK}6/jit(g)/reduce_sum/{MARK}13"
    assert list(numbers_in([name, name, f"jit(f)/sin/{MARK}2"])) == [13, 2]
