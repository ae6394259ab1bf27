"""What a pass is: a frozen value that takes a Program and gives a Program and events, and leaves its input alone."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from jaxlib.mlir import ir

from fusionlab.hlo.program import Program, bytecode_of

Kind = Literal["unsafe", "unsupported", "unprofitable", "fault"]


@dataclass(frozen=True)
class Applied:
    """The pass rewrote something: ``what`` in words, at ``location`` (a JAX name stack).

    ``resolved`` is the pass with its choices made explicit (a chunk size instead of a memory budget), so that the
    same rewrite can be repeated on the same program at another number of walkers.
    """

    pass_name: str
    what: str
    location: str
    resolved: str

    def to_json(self) -> dict[str, str | None]:
        """The event as the ``--json`` contract has it."""
        return {
            "pass": self.pass_name,
            "applied": self.what,
            "kind": None,
            "reason": None,
            "location": self.location,
            "resolved": self.resolved,
        }


@dataclass(frozen=True)
class Declined:
    """The pass left something alone, and why: it would be wrong, it cannot be expressed, or it does not pay.

    Of kind ``fault`` the pass itself failed, by an exception that it does not expect; the traceback is in the log.
    """

    pass_name: str
    kind: Kind
    reason: str
    location: str

    def to_json(self) -> dict[str, str | None]:
        """The event as the ``--json`` contract has it."""
        return {
            "pass": self.pass_name,
            "declined": self.reason,
            "kind": self.kind,
            "reason": self.reason,
            "location": self.location,
        }


Event = Applied | Declined


def faults(events: Iterable[Event]) -> tuple[Declined, ...]:
    """Those of passes that failed."""
    return tuple(event for event in events if isinstance(event, Declined) and event.kind == "fault")


def told_faults(events: Iterable[Event]) -> str:
    """What a command says of the passes that failed, in one line; "" where none did.

    Where there is such a line, no command ends in success, and nothing is written: a pass that failed compares equal to
    one that applies nothing.
    """
    found = faults(events)
    if not found:
        return ""
    failed = "; ".join(dict.fromkeys(f"pass {event.pass_name} failed: {event.reason}" for event in found))
    log = "$FUSIONLAB_LOG, or logs/xla.log beside the compile cache"
    return f"{failed}; this is a fault of fusionlab (or of the pass), with its traceback in the log: {log}"


@dataclass(frozen=True)
class Figures:
    """What a candidate costs on the target of the study: launches, copies and temp bytes are XLA's, the rest models.

    ``model_us`` is None for a target without a spec.
    """

    dynamic_launches: int
    dynamic_copies: int
    temp_bytes: int
    flops: float
    bytes_accessed: int
    model_us: float | None


@dataclass(frozen=True)
class Setting:
    """What a pass may ask about the world: ``temp_bytes(program)`` is XLA's figure on the target of the study, and
    ``figures(program)`` all that is counted there; ``platform`` is the target's, for programs that are not of one
    already."""

    temp_bytes: Callable[[Program], int] | None = None
    platform: str = "cpu"
    figures: Callable[[Program], Figures] | None = None


def platform_for(program: Program, setting: Setting) -> str:
    """The platform that what is put into ``program`` is lowered for."""
    return setting.platform if program.platform == "any" else program.platform


@dataclass(frozen=True)
class Result:
    """The program after a pass (the very same object when nothing was applied) and what happened."""

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
        """Rewrite ``program``. The result verifies; nothing happening has a Declined event that says why."""

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
    """Collects every module that passes make inside, as bytecode, one per application: ``verify`` sees each of them."""
    made: list[bytes] = []
    token = _MADE.set(made)
    try:
        yield made
    finally:
        _MADE.reset(token)


def verify(module: ir.Module, pass_name: str) -> None:
    """VerificationError naming the pass if ``module`` is not valid MLIR. Every application of a pass comes by here."""
    try:
        with module.context:
            module.operation.verify()
    except ir.MLIRError as error:
        raise VerificationError(f"pass {pass_name} produced an invalid module: {str(error).splitlines()[0]}") from error
    if (made := _MADE.get()) is not None:
        made.append(bytecode_of(module))
