"""Refusals: on what grounds a pass leaves something alone, each with its cause and what to write instead.

A refusal is made of a ``Ground``, a reason in words and, where one is responsible, an op; so there is none without
advice. ``Refusal.of`` is the event. What raising a program to JAX refuses has its ground by the type of the exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum, unique

from fusionlab.codegen.raising.rules.rule import OpaqueCall, RaiseError, ShardingLost, UnnamedAlgorithm
from fusionlab.hlo.loops import has_effect
from fusionlab.hlo.replay import Blocker
from fusionlab.hlo.view import Node
from fusionlab.passes.interface import Cause, Declined, Event, Kind

_LAPLACIAN = "fusionlab.laplacian(f), whose form is known"


@dataclass(frozen=True)
class Advice:
    """The kind of the event, the cause, and what the user could write instead."""

    kind: Kind
    cause: Cause
    instead: str


@unique
class Ground(Enum):
    """Every ground for a refusal."""

    # The form of the Laplacian, or of the loop.
    FUNCTION_NOT_FOUND = Advice(
        "unsafe", "form",
        "return log|psi| beside the energy, or lower with jax.jit(f, keep_unused=True), which does not drop it; if it "
        f"is in the program, the sum is not exactly its Laplacian: use {_LAPLACIAN}",
    )  # fmt: skip
    POSITIONS_NOT_FOUND = Advice(
        "unsafe", "form",
        f"hold a walker's coordinates in one array, and let jax.vmap make the axis of walkers, or use {_LAPLACIAN}",
    )  # fmt: skip
    NO_LAPLACIAN = Advice(
        "unsupported", "form",
        f"if it has a Laplacian (by jax.experimental.jet, say), use {_LAPLACIAN}; if not, try --pipeline layout",
    )  # fmt: skip
    TRIP_COUNT = Advice(
        "unsafe", "form",
        "let the number of trips be a Python integer, as x.size: lax.fori_loop(0, x.size, ...), not one that is data",
    )  # fmt: skip
    RECURRENT = Advice(
        "unsafe", "form",
        "let a trip only add to a sum, total + term, or write to its own place, and do the rest after the loop",
    )  # fmt: skip
    NO_TERM = Advice(
        "unsafe", "form", "nothing, if it is no Laplacian; else let each trip add its second derivative to a sum",
    )  # fmt: skip
    DIRECTION_UNUSED = Advice(
        "unsafe", "form", "push the direction of each trip through the derivative: total + hessian_times(eye[k])[k]",
    )  # fmt: skip
    OTHER_DIRECTIONS = Advice(
        "unsafe", "form", "take the directions from jnp.eye(n), made in the function, and not from an argument",
    )  # fmt: skip
    NO_DIRECTION = Advice(
        "unsafe", "form", "nothing, if it is no Laplacian (a loop over layers); else take directions from jnp.eye(n)",
    )  # fmt: skip
    TERMS_USED = Advice(
        "unsafe", "form", "return the sum alone, and compute single terms in another function",
    )  # fmt: skip
    PRODUCTS_LEFT = Advice(
        "unprofitable", "form", "return the sum alone, and what else is computed along directions in another function",
    )  # fmt: skip
    TIES = Advice(
        "unsafe", "form",
        "return the very function that is differentiated, with its guards where values are equal (jnp.where at r = 0)",
    )  # fmt: skip
    WEIGHTS_BY_ADJOINT = Advice(
        "unsupported", "form", "take sparsify-directions or collapse-replay, which have weights per sum",
    )  # fmt: skip
    SHARED_FUNCTION = Advice(
        "unsupported", "form", "lower one public function alone: jax.jit(f).lower(...)",
    )  # fmt: skip
    CAPTURES = Advice(
        "unsupported", "form", "let the loop read arguments and values of its own function, and carry the others",
    )  # fmt: skip
    CALLED_DIFFERENTLY = Advice(
        "unsupported", "form", "lower a function for each of the trip counts or constants that it is called with",
    )  # fmt: skip
    UNTRACEABLE = Advice(
        "unsupported", "form", "look whether jax.make_jaxpr(f) raises it, too; if not, report the traceback in the log",
    )  # fmt: skip
    # The network's ops.
    OPAQUE_CALL = Advice(
        "unsupported", "op",
        "write it in jax.numpy (of library calls LU has a rule: det, slogdet, solve), or call it on what f returns",
    )  # fmt: skip
    NO_RULE = Advice(
        "unsupported", "op", "write it in other jax.numpy or lax ops (sorts ascend, scatters are of one array)",
    )  # fmt: skip
    NO_DERIVATIVE = Advice(
        "unsupported", "op", "write it in ops that JAX can batch and differentiate twice, as lax.scan for while_loop",
    )  # fmt: skip
    NO_EXACT_MEANING = Advice(
        "unsupported", "op", "write it in ops that docs/exact.md evaluates",
    )  # fmt: skip
    EFFECT = Advice(
        "unsafe", "op", "leave out jax.debug.print, callbacks and tokens, or call them on what the function returns",
    )  # fmt: skip
    CALLBACK = Advice("unsafe", "op", "write it in jax.numpy, or call it on what the function returns")
    NOT_AN_ARRAY = Advice(
        "unsupported", "op", "lower with static shapes, and without tokens (ordered effects) in the loop",
    )  # fmt: skip
    INTEGERS = Advice(
        "unsafe", "op", "let log|psi| take the same branches: floor, counts and integer comparisons in it, or nowhere",
    )  # fmt: skip
    PARAMETERS_COMPARED = Advice(
        "unsafe", "op", "decide by Python values (static arguments) and not by comparing parameters in the derivative",
    )  # fmt: skip
    INTEGER_ARGUMENT = Advice(
        "unsafe", "op", "apply what the integer decides after the sum, or make it a static argument",
    )  # fmt: skip
    WALKERS_TOLD_APART = Advice(
        "unsafe", "op", "treat all walkers alike: what differs per walker is an argument, and no constant or arange",
    )  # fmt: skip
    SCATTER_FORM = Advice(
        "unsupported", "op", "write whole slices of one array: x.at[i].set(...) or x.at[i].add(...) along leading axes",
    )  # fmt: skip
    INDICES_UNKNOWN = Advice(
        "unsupported", "op", "make the indices of NumPy arrays, so that they are constants",
    )  # fmt: skip
    UPDATE_ORDER = Advice(
        "unsafe", "op", "write each place once, or add: x.at[i].add(...)",
    )  # fmt: skip
    # Precision annotations.
    ROUNDS = Advice(
        "unsafe", "precision", "round in log|psi| as well, or nowhere: one dtype for the value and its derivatives",
    )  # fmt: skip
    LESS_PRECISE = Advice(
        "unsafe", "precision",
        "compute log|psi| and its derivatives in one dtype and in one jax.default_matmul_precision around both",
    )  # fmt: skip
    ALGORITHM = Advice(
        "unsupported", "precision", "ask for a precision, jax.default_matmul_precision('highest'), and no algorithm",
    )  # fmt: skip
    ELEMENT_TYPES = Advice(
        "unsupported", "precision", "multiply arrays of one type, float32 or float64",
    )  # fmt: skip
    # Programs of several devices.
    SHARDED = Advice(
        "unsupported", "distributed",
        "apply fusionlab.optimize to the function of one device in jax.shard_map, without sharding constraints in it",
    )  # fmt: skip
    MESH = Advice(
        "unsupported", "distributed", "optimise the function around that, or the function of one device inside it",
    )  # fmt: skip
    SHARD_MAP = Advice(
        "unsupported", "distributed", "apply fusionlab.optimize in Python, or lower the function of one device alone",
    )  # fmt: skip
    PLATFORM = Advice(
        "unsupported", "platform",
        "lower for one platform that has it: jax.jit(f).trace(...).lower(lowering_platforms=('cuda',))",
    )  # fmt: skip
    # Limits of size and time.
    NO_WALKERS = Advice(
        "unsafe", "limit", "lower with one walker or more",
    )  # fmt: skip
    WALKERS_UNKNOWN = Advice(
        "unsafe", "limit",
        "let jax.vmap over the function of one walker make the walkers' axes, or lower with at most 64 walkers",
    )  # fmt: skip
    AXES_MISTAKEN = Advice(
        "unsupported", "limit", "lower with a number of walkers that no other axis has, as 1024, or with at most 64",
    )  # fmt: skip
    TOO_LARGE = Advice(
        "unsafe", "limit", "try fewer electrons or narrower layers of the same function",
    )  # fmt: skip
    TOO_LONG = Advice(
        "unsafe", "limit", "return log|psi| and the energy alone (fewer candidates), or try fewer electrons",
    )  # fmt: skip
    HOST_MEMORY = Advice(
        "unsafe", "limit", "run it where there is more host memory, or for fewer electrons",
    )  # fmt: skip
    ELEMENTS = Advice(
        "unsupported", "limit", "take the walkers in parts, so that every array has 1 to 2^31 - 1 elements",
    )  # fmt: skip
    FOLDING = Advice(
        "unprofitable", "limit", "compute constants by NumPy before, or set most_bytes and most_ops of the pass",
    )  # fmt: skip
    CANNOT_RUN = Advice(
        "unsupported", "limit", "compute constants by NumPy before the function is traced",
    )  # fmt: skip
    NOT_COMPILED = Advice(
        "unprofitable", "limit", "compile for another --target, or name a pass: --pass sparsify-directions",
    )  # fmt: skip
    # Memory.
    MEMORY = Advice(
        "unprofitable", "memory",
        "allow more, --memory-budget 8GiB (in Python 'fuse-jvp-replay{memory_budget=8GiB}'), or take fewer walkers",
    )  # fmt: skip
    NOT_IN_PARTS = Advice(
        "unsafe", "memory", "have one axis of an even number of walkers, by jax.vmap over the function of one walker",
    )  # fmt: skip
    # Nothing is gained, and nothing has to be written instead.
    NO_GAIN = Advice("unprofitable", "gain", "nothing: it costs no more as it is")
    WORSE = Advice("unprofitable", "gain", "nothing: it costs less as it is; apply --keep-worse keeps the pass")
    NOTHING_THERE = Advice("unprofitable", "gain", "nothing: what the pass rewrites is not in the program")
    NOT_CONSTANT = Advice("unsafe", "gain", "nothing: the loop computes from arguments")
    # The pass itself failed.
    FAULT = Advice("fault", "fault", "leave the pass out, and report the traceback in the log")


class Refusal(Exception):
    """A decision to leave something alone, on a ground; ``op`` is responsible, in the program or in words.

    ``is_final``: no other trial for the same sum is made. Final are a match that is another function at ties or by its
    text, limits of time and memory, and products that are all that is made of directions, of which no tail is a
    function of the diagonal.
    """

    def __init__(self, ground: Ground, reason: str, op: Node | str | None = None, *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.ground, self.reason, self.op, self.is_final = ground, reason, op, is_final

    def again(self) -> Refusal:
        """The same without a traceback, which would keep alive all that was tried."""
        return Refusal(self.ground, self.reason, self.op, is_final=self.is_final)

    def about(self, words: str, *, is_final: bool = False) -> Refusal:
        """The same of a subject: ``words`` are what comes before the reason."""
        return Refusal(self.ground, f"{words}{self.reason}", self.op, is_final=is_final)

    def of(self, pass_name: str, location: str) -> Declined:
        """The event of a pass that left alone what is at ``location``."""
        advice, op = self.ground.value, self.op.told if isinstance(self.op, Node) else self.op or ""
        return Declined(pass_name, advice.kind, self.reason, location, advice.cause, op, advice.instead)


def without_form_advice(events: Iterable[Event]) -> tuple[Event, ...]:
    """``events`` without advice to write a Laplacian in another form, for a function that has the recommended one."""
    advised = [ground.value.instead for ground in Ground if _LAPLACIAN in ground.value.instead]

    def plain(event: Event) -> Event:
        if isinstance(event, Declined):
            return replace(event, instead="" if event.instead in advised else event.instead)
        fallback = event.fallback
        for said in advised:
            fallback = fallback.replace(f"; instead: {said}", "")
        return replace(event, fallback=fallback)

    return tuple(map(plain, events))


_OF_RAISING: Mapping[type[Exception], Ground] = {
    OpaqueCall: Ground.OPAQUE_CALL,
    ShardingLost: Ground.SHARDED,
    UnnamedAlgorithm: Ground.ALGORITHM,
    RaiseError: Ground.NO_RULE,
    NotImplementedError: Ground.NO_DERIVATIVE,
}
_OF_BLOCKERS: Mapping[str, Ground] = {
    "trips": Ground.TRIP_COUNT,
    "no term": Ground.NO_TERM,
    "unused direction": Ground.DIRECTION_UNUSED,
    "another table": Ground.OTHER_DIRECTIONS,
    "no direction": Ground.NO_DIRECTION,
}


NO_MATCH = frozenset((Ground.FUNCTION_NOT_FOUND, Ground.POSITIONS_NOT_FOUND, Ground.PRODUCTS_LEFT))
"""The grounds on which a sum is that of no Laplacian: many sums are none."""


def ground_of_blocker(blocker: Blocker) -> Ground:
    """The ground on which a loop is no replay."""
    return ground_of_recurrence(blocker.node) if blocker.what == "recurrent" else _OF_BLOCKERS[blocker.what]


def ground_of_recurrence(node: Node) -> Ground:
    """The ground on which a carried value that ``node`` reads or makes is no sum: a debug print reads it, say."""
    return Ground.EFFECT if has_effect(node) else Ground.RECURRENT


def refused(error: Refusal | RaiseError | NotImplementedError) -> Refusal:
    """A refusal, itself without a traceback, or what raising a program to JAX refuses as one."""
    if isinstance(error, Refusal):
        return error.again()
    ground = next(_OF_RAISING[type_] for type_ in type(error).__mro__ if type_ in _OF_RAISING)
    if isinstance(error, RaiseError):
        return Refusal(ground, error.reason, error.node)
    return Refusal(ground, (str(error).splitlines() or ["JAX has no rule"])[0])


@contextmanager
def collected(reasons: list[Refusal]) -> Iterator[None]:
    """Add to ``reasons`` what is refused inside; what is final is raised."""
    try:
        yield
    except (Refusal, RaiseError) as error:
        reason = refused(error)
        if reason.is_final:
            raise reason from None
        reasons.append(reason)


def unsupported(node: Node, where: str) -> Refusal:
    """The refusal of ``node``, an op without a raising rule."""
    ground = Ground.OPAQUE_CALL if node.call_target else Ground.NO_RULE
    return Refusal(ground, f"{node.label} in the {where} cannot be raised", node)
