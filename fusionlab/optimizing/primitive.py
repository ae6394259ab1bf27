"""A JAX primitive that stands for a whole function and is rewritten when it is lowered. All uses of JAX's unstable
interfaces are here.

The primitive carries the function's jaxpr. Batching yields the primitive of the batched jaxpr and differentiation
evaluates the jaxpr under ``jax.jvp``, both before anything is rewritten: what is rewritten is the program that will
run, and a function that is only differentiated keeps its own rules.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jax._src import checkify as checking
from jax._src import source_info_util as sources
from jax._src.core import trace_state_clean
from jax._src.interpreters.batching import batch_jaxpr2
from jax._src.interpreters.mlir import lower_with_sharding_in_types
from jax.experimental import jet
from jax.extend import core as extended
from jax.interpreters import ad, batching, mlir
from jax.interpreters.partial_eval import dce_jaxpr
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func

from fusionlab.hlo.program import Program
from fusionlab.hlo.view import public_function
from fusionlab.optimizing.same_function import same_function
from fusionlab.passes.refusals import Ground, Refusal

outside_of_traces: Callable[[], bool] = trace_state_clean
"""True if no JAX transformation is being traced."""

_SHARDINGS = ("sharding", "out_sharding")
_OF_A_MESH = "it reads or changes how arrays lie on a mesh, or closes over arrays that are traced there"


class Owner(Protocol):
    """The owner of a primitive decides what it is lowered to."""

    @property
    def name(self) -> str:
        """The symbol in the lowered module: letters, digits and underscores."""

    def choose(self, jaxpr: Any, platform: str) -> Program | None:
        """The program instead of ``jaxpr`` on ``platform``; None to lower it as it is."""


_optimized = extended.Primitive("fusionlab_optimized")
_optimized.multiple_results = True


def apply_owned(owner: Owner, jaxpr: Any, plain: Any, operands: Sequence[Any]) -> list[Any]:
    """The results of ``jaxpr`` on ``operands``, which ``owner`` may have computed by a rewriting of ``plain``."""
    return list(_optimized.bind(*operands, jaxpr=jaxpr, plain=plain, owner=owner))


def replaced(values: Sequence[Any], positions: Sequence[int], by: Sequence[Any]) -> list[Any]:
    """``values`` with those at ``positions`` replaced."""
    new = dict(zip(positions, by, strict=True))
    return [new.get(position, value) for position, value in enumerate(values)]


@dataclass(frozen=True)
class Traced:
    """A function of arrays as a jaxpr, its operands, and the same traced ``plain``, without a mesh's axes (or None).

    ``arguments`` are the positions of the operands among the function's arguments, None where ``plain`` takes others: a
    device's part of them, or also arrays that are being traced and closed over. Unused arguments are no operands.
    """

    jaxpr: Any
    plain: Any
    operands: list[Any]
    arguments: tuple[int, ...] | None


def trace(function: Callable[..., Any], arguments: Sequence[Any]) -> Traced:
    """Trace ``function`` at ``arguments`` of a JAX transformation."""
    jaxpr = jax.make_jaxpr(function)(*arguments)
    captured = [const for const in jaxpr.consts if isinstance(const, jax.core.Tracer)]
    operands = [*captured, *arguments]
    if captured:
        jaxpr = _opened(jaxpr, operands, len(captured))
    _, is_used = dce_jaxpr(jaxpr.jaxpr, [True] * len(jaxpr.out_avals))  # of the arguments, whether results need them
    used = [position for position, one in enumerate(is_used) if one]
    jaxpr, operands = _with_only(jaxpr, used), [operands[position] for position in used]
    plain, types = jaxpr, (*jaxpr.in_avals, *jaxpr.out_avals)
    in_parts = any(map(varies, types))
    if in_parts or any(map(_explicit, types)):
        with without_mesh():
            plain = _plain(function, arguments, used, jaxpr) if not captured else None
    return Traced(jaxpr, plain, operands, None if captured or in_parts else tuple(used))


def _with_only(jaxpr: Any, used: Sequence[int]) -> Any:
    """``jaxpr`` as a function of the arguments in ``used``, zeros instead of the others.

    Unused equations stay in it: the Laplacian's replay does not need the value of the function.
    """
    types = jaxpr.in_avals
    if len(used) == len(types):
        return jaxpr

    def function(*arrays: Any) -> Any:
        given = dict(zip(used, arrays, strict=True))
        rest = (given[i] if i in given else _nothing(type_) for i, type_ in enumerate(types))
        return extended.jaxpr_as_fun(jaxpr)(*rest)

    return jax.make_jaxpr(function)(*(types[i] for i in used))


def _nothing(type_: Any) -> Any:
    if jax.dtypes.issubdtype(type_.dtype, jax.dtypes.prng_key):
        return jnp.broadcast_to(jax.random.key(0, impl=type_.dtype._impl.name), type_.shape)
    return jnp.zeros(type_.shape, type_.dtype, out_sharding=type_.sharding if _explicit(type_) else None)


def _plain(function: Callable[..., Any], arguments: Sequence[Any], used: Sequence[int], of_a_mesh: Any) -> Any:
    types = [_without_sharding(jax.typeof(argument)) for argument in arguments]
    try:
        jaxpr = jax.make_jaxpr(function)(*types)
    except Exception:  # of a mesh's axes, for which JAX has no single error
        return None
    before, now = ([_without_sharding(type_) for type_ in one.out_avals] for one in (of_a_mesh, jaxpr))
    if now != before or any(map(_explicit, jaxpr.out_avals)):
        return None
    plain = _with_only(jaxpr, used)
    return plain if same_function(plain, of_a_mesh) else None


def _without_sharding(type_: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(type_.shape, type_.dtype, weak_type=getattr(type_, "weak_type", False))


def bound(equation: Any, operands: Sequence[Any], *, of_a_mesh: bool = True) -> list[Any]:
    """The results of ``equation`` on ``operands``, with its names; on its mesh, or ``of_a_mesh=False`` on none."""
    taken = equation.primitive.get_bind_params(equation.params)
    functions, parameters = taken if isinstance(taken, tuple) else ((), taken)  # before JAX 0.10, functions apart
    if not of_a_mesh:
        parameters = {name: None if name in _SHARDINGS else value for name, value in parameters.items()}
    names = sources.current_name_stack() + equation.source_info.name_stack
    manager = equation.ctx.manager if of_a_mesh else contextlib.nullcontext()
    with sources.user_context(equation.source_info.traceback, name_stack=names), manager:
        results = equation.primitive.bind(*functions, *operands, **parameters)
    return list(results) if equation.primitive.multiple_results else [results]


def owned(jaxpr: Any) -> Any:
    """The plain jaxpr of the primitive in ``jaxpr``, of a function that consists of one; else None."""
    return next((equation.params["plain"] for equation in jaxpr.eqns if equation.primitive is _optimized), None)


def why_left_alone(jaxpr: Any) -> tuple[Refusal | None, bool]:
    """(the refusal to rewrite the function of ``jaxpr`` or None, True if that may surprise its author).

    ``jaxpr`` is None where it cannot be traced without a mesh.
    """
    if jaxpr is None:
        return Refusal(Ground.MESH, _OF_A_MESH), False
    if effects := _effects(jaxpr):
        having = [equation for equation in equations(jaxpr.jaxpr) if _effects(equation)]
        return Refusal(Ground.EFFECT, f"it has effects ({', '.join(effects)})", _told(having[-1:])), True
    # A pure callback is no effect, and of any the module has only the address.
    called = [equation for equation in equations(jaxpr.jaxpr) if "callback" in equation.primitive.name]
    if called:
        names = ", ".join(sorted({equation.primitive.name for equation in called}))
        reason = f"it calls back into Python ({names}), and a rewritten module cannot"
        return Refusal(Ground.CALLBACK, reason, _told(called)), True
    return None, False


def _effects(part: Any) -> list[str]:
    """The names of the effects of a jaxpr or an equation, without that of a mesh's axes."""
    return sorted({type(effect).__name__ for effect in part.effects} - {"NamedAxisEffect"})


def _told(found: Sequence[Any]) -> str:
    """The primitive of the first equation with its source line: ``pure_callback at model.py:41:4 (energy)``."""
    for equation in found:
        place = sources.summarize(equation.source_info).rpartition("/")[2]  # "" under vmap, whose rules trace without
        return f"{equation.primitive.name}{f' at {place}' if place else ''}"
    return ""


def primitives(jaxpr: Any) -> Iterator[str]:
    """The names of the primitives in an open jaxpr and in those nested in it, in order."""
    return (equation.primitive.name for equation in equations(jaxpr))


def equations(jaxpr: Any) -> Iterator[Any]:
    """The equations of an open jaxpr, those nested in one after it."""
    for equation in jaxpr.eqns:
        yield equation
        for inner in inner_jaxprs(equation):
            yield from equations(inner)


def inner_jaxprs(equation: Any) -> Iterator[Any]:
    """The open jaxprs in the parameters of ``equation``."""
    for parameter in jax.tree.leaves(list(equation.params.values()), is_leaf=_is_jaxpr):
        if _is_jaxpr(parameter):
            yield getattr(parameter, "jaxpr", parameter)


def _is_jaxpr(parameter: Any) -> bool:
    return isinstance(parameter, extended.Jaxpr | extended.ClosedJaxpr)


def _explicit(type_: Any) -> bool:
    mesh = getattr(getattr(type_, "sharding", None), "mesh", None)
    return mesh is not None and any(kind == jax.sharding.AxisType.Explicit for kind in mesh.axis_types)


def _opened(jaxpr: Any, operands: Sequence[Any], count: int) -> Any:
    """``jaxpr`` with its ``count`` traced constants as arguments before its own."""

    def function(*arrays: Any) -> Any:
        given = iter(arrays[:count])
        consts = [next(given) if isinstance(const, jax.core.Tracer) else const for const in jaxpr.consts]
        return jax.core.eval_jaxpr(jaxpr.jaxpr, consts, *arrays[count:])

    return jax.make_jaxpr(function)(*operands)


def varies(type_: Any) -> bool:
    """True of the type of an array that may differ between the devices of ``shard_map``."""
    return bool(hasattr(type_, "manual_axis_type") and type_.manual_axis_type.varying)


def without_mesh() -> AbstractContextManager[Any]:
    """A context whose traces belong to no mesh."""
    none = jax.sharding.AbstractMesh((), ())
    context: AbstractContextManager[Any] = jax.sharding.use_abstract_mesh(none)
    return context if not jax.sharding.get_abstract_mesh().empty else contextlib.nullcontext()


def _abstract(*_: Any, jaxpr: Any, plain: Any, owner: Owner) -> Any:
    return jaxpr.out_avals


def _evaluated(*operands: Any, jaxpr: Any, plain: Any, owner: Owner) -> Any:
    return extended.jaxpr_as_fun(jaxpr)(*operands)


def _batched(axis: Any, operands: Any, axes: Any, *, jaxpr: Any, plain: Any, owner: Owner) -> Any:
    batched, outer = batch_jaxpr2(jaxpr, axis, tuple(axes))
    same = plain if plain is None else batched
    if plain is not None and plain is not jaxpr:
        of_no_mesh = dataclasses.replace(axis, spmd_name=None, _ema=None)
        with without_mesh():
            same, places = batch_jaxpr2(plain, of_no_mesh, tuple(axes))
            same = same if places == outer else None
    return _optimized.bind(*operands, jaxpr=batched, plain=same, owner=owner), outer


def _differentiated(primals: Any, tangents: Any, *, jaxpr: Any, plain: Any, owner: Owner) -> Any:
    moving = [index for index, tangent in enumerate(tangents) if not isinstance(tangent, ad.Zero)]

    def function(*moved: Any) -> Any:
        return extended.jaxpr_as_fun(jaxpr)(*replaced(primals, moving, moved))

    results, moved = jax.jvp(function, [primals[i] for i in moving], [tangents[i] for i in moving])
    return results, [
        ad.Zero(type_.to_tangent_aval()) if tangent.dtype == jax.dtypes.float0 else tangent
        for type_, tangent in zip(jaxpr.out_avals, moved, strict=True)
    ]


def _transposed(cotangents: Any, *operands: Any, jaxpr: Any, plain: Any, owner: Owner) -> Any:
    linear = [index for index, operand in enumerate(operands) if ad.is_undefined_primal(operand)]

    def function(*moved: Any) -> Any:
        return extended.jaxpr_as_fun(jaxpr)(*replaced(operands, linear, moved))

    types = [jax.ShapeDtypeStruct(jaxpr.in_avals[i].shape, jaxpr.in_avals[i].dtype) for i in linear]
    found = jax.linear_transpose(function, *types)([ad.instantiate_zeros(cotangent) for cotangent in cotangents])
    return replaced([None] * len(operands), linear, found)


def _lowered(context: Any, *operands: Any, jaxpr: Any, plain: Any, owner: Owner) -> Any:
    platforms = context.module_context.platforms
    chosen = owner.choose(plain, platforms[0] if len(platforms) == 1 else "several")
    if chosen is None:
        as_it_is = mlir.lower_fun(extended.jaxpr_as_fun(jaxpr), multiple_results=True)
        return as_it_is(context, *operands)
    module = context.module_context.module
    with module.context:
        inner = ir.Module.parse(chosen.bytecode)
    types = list(public_function(inner).type.results)
    symbol = mlir.merge_mlir_modules(
        module, f"fusionlab_{owner.name}", inner, dst_symtab=context.module_context.symbol_table
    )
    results = func.CallOp(types, ir.FlatSymbolRefAttr.get(symbol), list(operands)).results
    pairs = zip(results, context.avals_out, strict=True)
    return [lower_with_sharding_in_types(context, result, type_) for result, type_ in pairs]


def _checked(*given: Any, jaxpr: Any, plain: Any, owner: Owner) -> Any:
    """Under ``checkify``: the original with its checks, unless only user checks are enabled, of which it has none (they
    are effects). JAX 0.11 passes a context before the error."""
    place = next(at for at, one in enumerate(given) if isinstance(one, checking.Error))
    context, (error, enabled, *operands) = given[:place], given[place:]
    if not enabled - checking.user_checks:
        return error, _optimized.bind(*operands, jaxpr=jaxpr, plain=plain, owner=owner)
    return checking.checkify_jaxpr(*context, jaxpr, enabled, error, *operands)


def _in_taylor_mode(primals: Any, series: Any, *, jaxpr: Any, plain: Any, owner: Owner) -> Any:
    return jet.jet(extended.jaxpr_as_fun(jaxpr), primals, series, factorial_scaled=False)


_optimized.def_impl(_evaluated)
_optimized.def_abstract_eval(_abstract)
batching.fancy_primitive_batchers[_optimized] = _batched
ad.primitive_jvps[_optimized] = _differentiated
ad.primitive_transposes[_optimized] = _transposed
checking.error_checks[_optimized] = _checked
jet.jet_rules[_optimized] = _in_taylor_mode
mlir.register_lowering(_optimized, _lowered, cacheable=False)
