"""Every op of StableHLO and CHLO has an outcome in the exact check, which the table of studies/exact-ops.md states.

``every_op.mlir`` has one small module per op, each after a line with its name.
"""

import re
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest
from jaxlib.mlir.dialects import chlo, stablehlo

from fusionlab.equivalence.exact.evaluation import Evaluator
from fusionlab.equivalence.exact.field import PrimeField, primes
from fusionlab.equivalence.exact.rules import RULES
from fusionlab.equivalence.exact.values import Drawn
from fusionlab.equivalence.isolated import compare
from fusionlab.equivalence.oracle import xla_runner
from fusionlab.errors import InputError
from fusionlab.hlo.program import Program, program_view

from .reals import Reals

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "studies" / "exact-ops.md"
TWO_IN_ONE = {
    "stablehlo.async_done": "stablehlo.async_start",
    "stablehlo.uniform_dequantize": "stablehlo.uniform_quantize",
}
"""Ops in the module of another."""
NOT_READ = {"stablehlo.uniform_quantize"}
"""JAX's MLIR has no quantised types."""


def modules():
    parts = re.split(r"^// ----- (\S+)\n", (HERE / "every_op.mlir").read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


MODULES = modules()


def of_text(text):
    return Program.of_foreign_bytes(text.encode(), Path("module.mlir"))


def test_every_op_of_the_dialects_has_a_module():
    names = {getattr(op, "OPERATION_NAME", None) for dialect in (stablehlo, chlo) for op in vars(dialect).values()}
    assert names - {None, "stablehlo.return"} - set(TWO_IN_ONE) <= set(MODULES)
    assert all(f"{name}" in text for name, text in MODULES.items())


def outcome(name):
    """The row of the table for an op: how its module compares with itself."""
    try:
        program = of_text(MODULES[name])
    except InputError:
        return "not read"
    found = compare(astuple(program), astuple(program))
    if found["result"] != "identical":
        return f"not covered: {found['reason'].replace(name, 'the op')}"
    view, evaluator = program_view(program), Evaluator(PrimeField(primes(1)[0], [0]))
    evaluator.outputs(view, evaluator.drawn_arguments(view))
    if evaluator.uncovered:
        return "a random function of whole operands"
    of_floats = RULES.get(name) is RULES["stablehlo.sine"] and program.inputs[0].dtype == "f32"
    return "a random function of elements" if of_floats else "evaluated"


def table():
    rows = {}
    for name in sorted(MODULES):
        rows.setdefault(outcome(name), []).append(name)
    for name, other in TWO_IN_ONE.items():
        if name not in MODULES:
            next(names for names in rows.values() if other in names).append(name)
    lines = ["| outcome | ops |", "|---|---|"]
    for found, names in sorted(rows.items()):
        short = (n.removeprefix("stablehlo.") for n in sorted(names, key=lambda n: (n.startswith("chlo."), n)))
        lines.append(f"| {found} | {' '.join(short)} |")
    return "\n".join(lines)


@pytest.mark.slow
def test_the_page_states_the_outcome_of_every_op(request):
    page, found = PAGE.read_text(), table()
    if request.config.getoption("--update-golden"):
        before, _, rest = page.partition("| outcome | ops |\n")
        _, _, after = rest.partition("\n\n")
        PAGE.write_text(f"{before}{found}\n\n{after}")
        return
    assert found in page


RUN_OTHERWISE = {
    "stablehlo.custom_call": "opaque",
    "stablehlo.bitcast_convert": "the bits of a float are a random function of it",
    "stablehlo.reduce_precision": "roundings do not exist in a field",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(RULES) & set(MODULES) - set(RUN_OTHERWISE)))
def test_an_evaluated_op_is_what_xla_computes(name):
    program, random = of_text(MODULES[name]), np.random.default_rng(0)
    arrays = []
    for type_ in program.inputs:
        value = random.uniform(0.1, 0.9, type_.shape)
        made = {"i1": value < 0.5, "i32": (value * 5).astype(np.int32), "ui64": (value * 5).astype(np.uint64)}
        made |= {"f32": value.astype(np.float32), "complex<f32>": (value + 0.5j).astype(np.complex64)}
        arrays.append(1 + made["f32"] if name == "chlo.acosh" else made[type_.dtype])
    wide = {"f": np.float64, "c": np.complex128}
    given = [Drawn(array.astype(wide.get(array.dtype.kind, array.dtype))[None]) for array in arrays]
    with np.errstate(all="ignore"):
        found = Evaluator(Reals()).outputs(program_view(program), given)
    for ours, theirs in zip(found, xla_runner(program)(arrays), strict=True):
        np.testing.assert_allclose(ours[0], theirs, rtol=2e-5, atol=2e-5)
