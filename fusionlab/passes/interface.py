"""The interface of a pass: a frozen value that maps a Program to a Program and events, without changing its input."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from jaxlib.mlir import ir

from fusionlab.hlo.program import Program, bytecode_of
from fusionlab.time_order import TimeOrder

if TYPE_CHECKING:
    from fusionlab.codegen.laplacian.sparsity import Sparsity

Kind = Literal["unsafe", "unsupported", "unprofitable", "fault"]
Cause = Literal["form", "op", "precision", "distributed", "platform", "limit", "memory", "gain", "fault"]
"""The form of the Laplacian or of the loop, an op of the network, precision annotations, a program of several devices,
the platform, a limit of size or time, memory, no gain, a fault of the pass."""


@dataclass(frozen=True)
class Applied:
    """The pass rewrote something: ``what`` in words, at ``location`` (a JAX name stack).

    ``resolved`` is the pass with its choices made explicit (a chunk size instead of a memory budget), so that the
    same rewrite can be repeated on the same program at another number of walkers: ``study`` and ``optimizing`` read it
    back by ``pipeline.resolved_pipeline``. ``fallback`` is the reason why the
    rewriting that the pass prefers was declined; "" if this is it. ``sparsity`` says where the directions of a forward
    Laplacian become dense; None of another rewriting.
    """

    pass_name: str
    what: str
    location: str
    resolved: str
    fallback: str = ""
    sparsity: Sparsity | None = field(default=None, compare=False)

    def to_json(self) -> dict[str, Any]:
        """The event as the ``--json`` contract has it."""
        made = {"applied": self.what, "kind": None, "reason": None}
        chosen = {"resolved": self.resolved, "fallback": self.fallback}
        of_directions = {"sparsity": self.sparsity and self.sparsity.to_json()}
        return {"pass": self.pass_name, **made, "location": self.location, **chosen, **of_directions}


def explained(cause: str | None, op: str, instead: str) -> str:
    """The cause, the op and what to write instead, in one line; "" without a cause or where nothing is gained."""
    if not cause or cause == "gain":
        return ""
    return f"cause: {cause}" + (f", {op}" if op else "") + (f"; instead: {instead}" if instead else "")


@dataclass(frozen=True)
class Declined:
    """The pass left something alone, with the reason: unsafe, not expressible, or not profitable.

    Of kind ``fault``: the pass itself failed with an unexpected exception; the traceback is in the log. ``op`` is the
    op that is responsible, with its source line, "" where no single one is; ``instead`` is what could be written
    instead. The project's own have their cause and that from the table ``refusals.Ground``.
    """

    pass_name: str
    kind: Kind
    reason: str
    location: str
    cause: Cause | Literal[""] = ""
    op: str = ""
    instead: str = ""

    @property
    def explained(self) -> str:
        """``explained`` of its cause."""
        return explained(self.cause, self.op, self.instead)

    @property
    def told(self) -> str:
        """The reason with all of that."""
        return "; ".join(filter(None, (self.reason, self.explained)))

    def to_json(self) -> dict[str, str | None]:
        """The event as the ``--json`` contract has it."""
        shared = {"kind": self.kind, "reason": self.reason, "location": self.location}
        why = {"cause": self.cause, "op": self.op, "instead": self.instead}
        return {"pass": self.pass_name, "declined": self.reason, **shared, **why}


Event = Applied | Declined


def faults(events: Iterable[Event]) -> tuple[Declined, ...]:
    """The events of passes that failed."""
    return tuple(event for event in events if isinstance(event, Declined) and event.kind == "fault")


def told_faults(events: Iterable[Event]) -> str:
    """The message of a command about the passes that failed, in one line; "" if none did.

    With such a line, no command succeeds, and nothing is written: a failed pass would compare equal to one that
    applies nothing.
    """
    found = faults(events)
    if not found:
        return ""
    failed = "; ".join(dict.fromkeys(f"pass {event.pass_name} failed: {event.reason}" for event in found))
    log = "$FUSIONLAB_LOG, or logs/xla.log beside the compile cache"
    return f"{failed}; this is a fault of fusionlab (or of the pass), with its traceback in the log: {log}"


def told_fallbacks(events: Iterable[Event]) -> str:
    """The rewritings that were applied instead of a preferred one, and why, in one line; "" if there are none."""
    found = [event for event in events if isinstance(event, Applied) and event.fallback]
    return "; ".join(dict.fromkeys(f"{event.resolved} instead of a {event.fallback}" for event in found))


@dataclass(frozen=True)
class Figures:
    """The cost of a candidate on the target of the study: launches, copies and temp bytes are XLA's, the rest models.

    ``model_us`` is None for a target without a spec; ``launch_us`` of it are launches. ``pair_error`` is the least
    difference of times, as a share, that tells which of two candidates is faster, None where the model was not tested:
    a roofline of the whole program.
    """

    dynamic_launches: int
    dynamic_copies: int
    temp_bytes: int
    flops: float
    bytes_accessed: int
    model_us: float | None
    launch_us: float = 0.0
    pair_error: float | None = None

    def by_code(self, found: KernelFigures) -> Figures:
        """These figures with the time of the code of kernels."""
        return dataclasses.replace(self, model_us=found.model_us, pair_error=found.pair_error)

    def why_worse_than(self, before: Figures) -> str:
        """The growth in launches, in words, if nothing else pays for it; "" if these figures are not worse.

        Fewer bytes, less temp memory or less modelled time (FLOPs where there is no model) pay for launches; time only
        where the model can say that it is less. Bytes do not pay where time grows by more than the error of a pair.
        """
        if self.dynamic_launches <= before.dynamic_launches:
            return ""
        grown = f"{before.dynamic_launches:,} launches become {self.dynamic_launches:,}"
        times = TimeOrder.of(self.model_us, before.model_us, self.pair_error, before.pair_error)
        saves_memory, saves_bytes = self.temp_bytes < before.temp_bytes, self.bytes_accessed < before.bytes_accessed
        if saves_memory or (self.flops < before.flops if times is None else times.order == "faster"):
            return ""
        if saves_bytes and times is not None and times.order == "slower":
            return f"{grown}, and modelled time grows by {times.apart:.0%}, though bytes fall"
        if saves_bytes:
            return ""
        named = "FLOPs" if times is None else "modelled time"
        undecided = f" ({times.undecided})" if times is not None and times.us < times.other_us else ""
        return f"{grown}, and neither bytes, temp memory nor {named} fall{undecided}"


@dataclass(frozen=True)
class Overfused:
    """A kernel that computes some ops several times: ``op_names`` are theirs in HLO, ``lost_us`` what it loses by the
    model, in all runs; ``place`` is the source line, or the op where none is known."""

    kernel: str
    place: str
    op_names: tuple[str, ...]
    lost_us: float


@dataclass(frozen=True)
class KernelFigures:
    """The cost of a candidate by the code of its kernels: ``model_us`` is the modelled time of all of them,
    ``pair_error`` as in ``Figures``, and ``peak_bytes`` what the device must hold at once."""

    model_us: float
    peak_bytes: int
    dynamic_launches: int
    overfused: tuple[Overfused, ...]
    pair_error: float | None = None


@dataclass(frozen=True)
class Setting:
    """The environment of a pass: ``temp_bytes(program)`` is XLA's figure on the target of the study, and
    ``figures(program)`` all figures there; ``kernels(program)`` those by the code of its kernels (None where XLA writes
    none); ``platform`` is the target's, for programs of platform ``any``; ``memory_bytes`` is the memory of the device,
    where it is known. ``findings`` are what passes have found out about programs, by the kind of finding, for the
    passes that run later."""

    temp_bytes: Callable[[Program], int] | None = None
    platform: str = "cpu"
    figures: Callable[[Program], Figures] | None = None
    memory_bytes: int | None = None
    findings: dict[type, Any] = dataclasses.field(default_factory=dict, compare=False, repr=False)
    kernels: Callable[[Program], KernelFigures] | None = None


def platform_for(program: Program, setting: Setting) -> str:
    """The platform for which code inserted into ``program`` is lowered."""
    return setting.platform if program.platform == "any" else program.platform


@dataclass(frozen=True)
class Result:
    """The program after a pass (the same object when nothing was applied) and the events."""

    program: Program
    events: tuple[Event, ...]

    @property
    def applied(self) -> tuple[Applied, ...]:
        """The events that changed the program."""
        return tuple(event for event in self.events if isinstance(event, Applied))


class Pass(ABC):
    """A rewrite. Subclasses are frozen dataclasses whose fields, all with defaults, are the options."""

    name: ClassVar[str]

    @abstractmethod
    def run(self, program: Program, setting: Setting) -> Result:
        """Rewrite ``program``. The result verifies; without a change, a Declined event has the reason."""

    def with_options(self, **changes: Any) -> Self:
        """The same pass with other options; InputError for a value that the pass does not take."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def __str__(self) -> str:
        """``name`` or ``name{option=value,...}`` with the options that are not at their default."""
        changed = [
            f"{f.name}={_printed(getattr(self, f.name))}"
            for f in dataclasses.fields(self)  # type: ignore[arg-type]
            if getattr(self, f.name) != f.default
        ]
        return f"{self.name}{{{','.join(changed)}}}" if changed else self.name


def _printed(option: Any) -> str:
    return str(option).lower() if isinstance(option, bool) else str(option)


class VerificationError(Exception):
    """A pass produced a module that does not verify: a bug of the pass, which the message names."""


_MADE: ContextVar[list[bytes] | None] = ContextVar("modules that passes made", default=None)


@contextmanager
def applications() -> Iterator[list[bytes]]:
    """A context that collects every module that passes verify, as bytecode, one per application."""
    made: list[bytes] = []
    token = _MADE.set(made)
    try:
        yield made
    finally:
        _MADE.reset(token)


def verify(module: ir.Module, pass_name: str) -> None:
    """VerificationError naming the pass if ``module`` is not valid MLIR. Every application of a pass calls this."""
    try:
        with module.context:
            module.operation.verify()
    except ir.MLIRError as error:
        raise VerificationError(f"pass {pass_name} produced an invalid module: {str(error).splitlines()[0]}") from error
    if (made := _MADE.get()) is not None:
        made.append(bytecode_of(module))
