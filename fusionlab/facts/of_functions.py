"""``fusionlab.launches``, ``kernels``, ``explain``, ``memory``, ``diff``: facts about a function on an absent GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fusionlab.codegen.cache import default_cache
from fusionlab.codegen.compile import Compiled, compile_program
from fusionlab.codegen.targets import load_target, target_names
from fusionlab.errors import InputError, unknown
from fusionlab.facts.diff_facts import DiffFacts
from fusionlab.facts.fusion_facts import FusionFacts
from fusionlab.facts.kernel_facts import KernelFacts
from fusionlab.facts.launch_facts import LaunchFacts
from fusionlab.facts.memory_facts import MemoryFacts
from fusionlab.hlo.lowering import program_of
from fusionlab.hlo.program import Program
from fusionlab.ledger.changes import compare_ledgers
from fusionlab.ledger.memory import memory_record
from fusionlab.ledger.memory_views import VIEWS_OF_MEMORY
from fusionlab.ledger.saved import LedgerRecord, ledger_record
from fusionlab.ledger.views import require_views


def launches(
    function: Any, /, *args: Any, target: str = "a100", by: str | Sequence[str] = (), **named: Any
) -> LaunchFacts:
    """The kernel launches of ``function(*args, **named)`` on ``target``; nothing runs, and no GPU is needed.

    ``function`` is jitted or not, or a Program (without arguments). Arguments are pytrees of arrays or of
    ``jax.ShapeDtypeStruct``. ``by`` are views of the totals (``"source"``, ``"scope:1,transform"``); without any, the
    first that says something. InputError: what JAX cannot trace, an unknown target or view. CompileError where XLA
    fails. For an argument of the function that is itself called ``target`` or ``by``, use ``functools.partial``.
    """
    views = tuple(filter(None, map(str.strip, by.split(",")))) if isinstance(by, str) else tuple(by)
    require_views(views)
    program, compiled = _compiled(function, args, named, target)
    return LaunchFacts.of(compiled, program, views)


def explain(function: Any, /, *args: Any, target: str = "a100", **named: Any) -> FusionFacts:
    """Why XLA did not fuse ``function(*args, **named)`` on ``target``: refusals by cause, and their cost.

    The arguments are as for ``launches``. For the CPU, XLA's record of its fusions takes several times the compile.
    """
    program, compiled = _compiled(function, args, named, target, fusions=True)
    return FusionFacts.of(compiled, program)


def memory(function: Any, /, *args: Any, target: str = "a100", by: str = "", **named: Any) -> MemoryFacts:
    """What holds temporary memory at its peak in ``function(*args, **named)`` on ``target``: buffers, slots, copies.

    The arguments are as for ``launches``; ``by`` is ``scope``, ``source`` or ``op``, and adds the bytes held by each.
    InputError also where XLA says nothing of its buffers (JAX before 0.10).
    """
    if by and by not in VIEWS_OF_MEMORY:
        raise unknown("view of memory", by, VIEWS_OF_MEMORY)
    program, compiled = _compiled(function, args, named, target, dump=target == "cpu")
    return MemoryFacts(memory_record(compiled), by, program.devices)


def kernels(function: Any, /, *args: Any, target: str = "a100", **named: Any) -> KernelFacts:
    """The kernels of ``function(*args, **named)`` on ``target``, and what in their code is in excess.

    The arguments are as for ``launches``. InputError also for the CPU, whose code is no kernels. Without ``ptxas``
    (the extra ``kernels``) registers and spills are not known.
    """
    return KernelFacts.of(_compiled(function, args, named, target, ptx=True)[1])


def diff(before: Any, after: Any, /, *args: Any, target: str | tuple[str, str] = "a100", **named: Any) -> DiffFacts:
    """What changed from the launches of ``before`` to those of ``after``, and why.

    Each is a function of the arguments, a Program, or the result of ``launches``; arguments are as for ``launches``.
    Of two targets each side has one: ``diff(f, f, x, target=("a100", "h100"))``.
    """
    targets = (target, target) if isinstance(target, str) else tuple(target)
    if len(targets) != 2:
        raise InputError(f"a comparison has two sides; name one target or two, and not {len(targets)}")
    first, second = (_ledger(side, args, named, name) for side, name in zip((before, after), targets, strict=True))
    return DiffFacts(compare_ledgers(first, second))


def _ledger(side: Any, args: Sequence[Any], named: Mapping[str, Any], target: str) -> LedgerRecord:
    """The ledger of one side of a comparison; arguments are those of functions."""
    if isinstance(side, LaunchFacts):
        return side.record
    own = (args, named) if callable(side) else ((), {})
    return ledger_record(_compiled(side, *own, target)[1])


def _compiled(
    function: Any,
    args: Sequence[Any],
    named: Mapping[str, Any],
    target: str,
    *,
    dump: bool = False,
    fusions: bool = False,
    ptx: bool = False,
) -> tuple[Program, Compiled]:
    """``function`` lowered and compiled for ``target``, from the cache of compiles if it is there; ``dump``,
    ``fusions`` and ``ptx`` as for ``compile_program``."""
    if not isinstance(target, str):
        names = ", ".join(target_names())
        raise InputError(f"target is one name, as 'a100', and not {target!r}; known names: {names}")
    chosen = load_target(target)
    program = program_of(function, args, named, platform=chosen.kind)
    return program, compile_program(program, chosen, dump=dump, cache=default_cache(), fusions=fusions, ptx=ptx)
