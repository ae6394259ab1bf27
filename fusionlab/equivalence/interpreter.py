"""StableHLO's reference interpreter as an oracle of small programs: it shares no code with XLA, raising or passes.

It runs in a process of its own, because it aborts at an op or a type that it does not know.
"""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from fusionlab.equivalence.output_errors import errors_of
from fusionlab.equivalence.samples import Sample
from fusionlab.equivalence.tolerances import tolerance_of
from fusionlab.equivalence.verdict import OracleAgreement
from fusionlab.hlo import ops
from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.program import Program, program_view
from fusionlab.hlo.view import elements_attribute, name_entry_main, public_function
from fusionlab.subprocesses import ProcessFailed, call

NAME = "StableHLO reference interpreter"
MOST_FLOPS = 3e6
"""The limit on FLOPs: it takes about a microsecond per scalar operation."""
_TIME_LIMIT_S = 60.0
_FACTOR = 16.0
"""Factor on tolerances: its transcendental functions and order of summation differ from XLA's."""


def ask_interpreter(
    program: Program, sample: Sample, truth: list[np.ndarray], original: list[np.ndarray]
) -> OracleAgreement:
    """Compare the interpreter's numbers at ``sample`` with the float64 ``truth``, within the loss of ``original``.

    Skipped, with the reason, if the program calls libraries or is too large.
    """
    flat = program_view(program)
    called = next((node for node in flat.walk() if node.op is ops.CUSTOM_CALL), None)
    if called is not None:
        return OracleAgreement(NAME, None, reason=f"it does not know {called.label}")
    if any(type_.dtype in ops.COMPLEX for type_ in program.outputs):
        return OracleAgreement(NAME, None, reason="its complex results cannot be read")
    if program_cost(flat).flops > MOST_FLOPS:
        return OracleAgreement(NAME, None, reason="the program is too large for it")
    try:
        found = call(evaluate_apart, astuple(program), sample.arrays, limit_s=_TIME_LIMIT_S)
    except ProcessFailed as failure:
        late = failure.exit_code is None
        reason = str(failure) if late else f"it cannot evaluate the program: {str(failure)[:160]}"
        return OracleAgreement(NAME, None, reason=reason)
    worst, bound, ratio = 0.0, 0.0, -1.0
    for ours, wide, theirs in zip(found, truth, original, strict=True):
        if not np.issubdtype(wide.dtype, np.inexact):
            error, tolerance = float(not np.array_equal(ours, wide)), 0.0
        else:
            errors = errors_of(ours, wide, theirs)
            error, tolerance = float(np.max(errors, initial=0.0)), _FACTOR * tolerance_of(wide, theirs)
        part = error / tolerance if tolerance else (np.inf if error else 0.0)
        if part > ratio:
            worst, bound, ratio = error, tolerance, part
    return OracleAgreement(NAME, ratio <= 1, worst, bound)


def evaluate_apart(program: list[Any], arrays: list[np.ndarray]) -> list[np.ndarray]:
    """``evaluate``, in a process that may abort."""
    from fusionlab import jax_setup

    jax_setup.load_jax()
    return evaluate(Program(*program), tuple(arrays))


def evaluate(program: Program, arrays: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """The program's results by the reference interpreter, in this process."""
    from jaxlib.mlir import passmanager
    from jaxlib.mlir.dialects import stablehlo

    module = program.parse()
    name_entry_main(module)
    with module.context:
        stablehlo.register_interpreter_dialect(module.context)
        stablehlo.register_stablehlo_passes()
        if "chlo." in str(module):
            passmanager.PassManager.parse("builtin.module(func.func(chlo-legalize-to-stablehlo))").run(module.operation)
        types = map(ir.RankedTensorType, public_function(module).type.inputs)
        given = [elements_attribute(array, type_.element_type) for array, type_ in zip(arrays, types, strict=True)]
        return [_array(result) for result in stablehlo.eval_module(module, given)]


def _array(attribute: ir.Attribute) -> np.ndarray:
    array = np.array(ir.DenseElementsAttr(attribute))
    if array.dtype == object:
        raise ValueError(f"results of type {attribute.type} cannot be read here")
    return array
