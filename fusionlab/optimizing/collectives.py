"""A function with collectives is optimised between them.

    psum(f(x)), g(y, psum(f(x)))        -->        e = optimized(f)(x);  s = psum(e);  optimized(g)(y, s)

The equations of one level (``codegen.collective_levels``) are a function without collectives, which is bound by itself;
the collectives between two levels are evaluated as they are. What has collectives inside (``jit``, ``scan``,
``while_loop``, ``cond``, ``checkpoint``, ``shard_map``) is rebuilt from its parts in the same way; a function with
collectives and a derivative rule of its own stays as it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
from jax import lax
from jax.extend import core as extended

from fusionlab.codegen.collective_levels import Traits, levels, worth_and_rest
from fusionlab.optimizing.primitive import bound, inner_jaxprs, primitives, replaced, varies, without_mesh
from fusionlab.optimizing.same_function import scan_counts

Bind = Callable[[Any, Sequence[Any]], list[Any]]
"""(closed jaxpr, operands) to results."""

Part = Callable[[Any], Callable[..., list[Any]]]
"""An open or closed jaxpr to a function of arrays."""

_CASTS = frozenset(("pcast", "pvary"))
_LOOPS = frozenset(("scan", "while"))
_WORTH = _LOOPS | {"dot_general", "conv_general_dilated", "cond"}


def has_collectives(jaxpr: Any) -> bool:
    """True if ``jaxpr`` reads the axes of a mesh or of a map, or has a part that runs on every device."""
    return any(map(_crosses, jaxpr.eqns))


def evaluate(closed: Any, operands: Sequence[Any], bind: Bind) -> list[Any]:
    """The results of a closed jaxpr, with its functions between collectives evaluated by ``bind``."""
    jaxpr = closed.jaxpr
    values = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*closed.consts, *operands), strict=True))
    constants = {variable: value for variable, value in values.items() if not isinstance(value, jax.core.Tracer)}
    parts: list[tuple[list[Any], bool, list[Any]]] = []
    for between, crossing in levels(jaxpr.eqns, _TRAITS):
        first, rest = worth_and_rest(between, _TRAITS)
        parts += [(first, True, []), (rest, False, crossing)]
    for at, (between, worth, crossing) in enumerate(parts):
        later = [equation for one, _, other in parts[at + 1 :] for equation in (*one, *other)]
        wanted = {*_variables(jaxpr.outvars), *(v for equation in (*crossing, *later) for v in _read_by(equation))}
        made = [variable for equation in between for variable in equation.outvars if variable in wanted]
        if made:
            own = {variable for equation in between for variable in equation.outvars} | constants.keys()
            given = list(dict.fromkeys(v for equation in between for v in _read_by(equation) if v not in own))
            function = functools.partial(_run, between, constants, given, made, bound)
            arrays = [values[variable] for variable in given]
            results = bind(jax.make_jaxpr(function)(*arrays), arrays) if worth else function(*arrays)
            values.update(zip(made, results, strict=True))
        for equation in crossing:
            found = _across(equation, [_value(atom, values) for atom in equation.invars], bind)
            values.update(zip(equation.outvars, found, strict=True))
    return [_value(atom, values) for atom in jaxpr.outvars]


def _run(
    equations: Sequence[Any],
    constants: dict[Any, Any],
    given: Sequence[Any],
    made: Sequence[Any],
    one: Callable[[Any, list[Any]], list[Any]],
    *arrays: Any,
) -> list[Any]:
    """The values of ``made`` by ``equations``, each evaluated by ``one``, of ``arrays`` for ``given``."""
    values = {**constants, **dict(zip(given, arrays, strict=True))}
    for equation in equations:
        operands = [_value(atom, values) for atom in equation.invars]
        values.update(zip(equation.outvars, one(equation, operands), strict=True))
    return [_value(atom, values) for atom in made]


def _value(atom: Any, values: dict[Any, Any]) -> Any:
    return atom.val if isinstance(atom, extended.Literal) else values[atom]


def _reduces_first_axis(equation: Any) -> bool:
    own = equation.primitive.name.startswith("reduce_") and tuple(equation.params.get("axes", ())) == (0,)
    return own or any(_reduces_first_axis(each) for inner in inner_jaxprs(equation) for each in inner.eqns)


def _names(equation: Any) -> Iterator[str]:
    """The names of the primitives of ``equation`` and of those in it."""
    yield equation.primitive.name
    for inner in inner_jaxprs(equation):
        yield from primitives(inner)


def _crosses(equation: Any) -> bool:
    return (
        bool(equation.effects)
        or equation.primitive.name == "shard_map"
        or any(map(has_collectives, inner_jaxprs(equation)))
    )


def _variables(atoms: Sequence[Any]) -> list[Any]:
    return [atom for atom in atoms if not isinstance(atom, extended.Literal)]


def _read_by(equation: Any) -> list[Any]:
    return _variables(equation.invars)


_TRAITS = Traits(
    reads=_read_by,
    results=lambda equation: equation.outvars,
    crosses=_crosses,
    names=lambda equation: set(_names(equation)),
    worth=_WORTH,
    loops=_LOOPS,
    sums_first_axis=_reduces_first_axis,
)


def _across(equation: Any, operands: list[Any], bind: Bind) -> list[Any]:
    """The results of an equation with collectives: one itself, or rebuilt of the parts inside."""

    def part(inner: Any) -> Callable[..., list[Any]]:
        return lambda *arrays: evaluate(_closed(inner), arrays, bind)

    rule = _RULES.get(equation.primitive.name)
    return bound(equation, operands) if rule is None else list(rule(equation.params, operands, part))


def outside_of_meshes(closed: Any) -> Any:
    """A closed jaxpr without collectives, traced in a mesh, as the same function outside of it.

    Arrays that vary over the mesh's axes are cast nowhere. Functions with derivative rules of their own are opened:
    what is lowered is not differentiated any more.
    """
    if _CASTS.isdisjoint(primitives(closed.jaxpr)) and not any(map(varies, (*closed.in_avals, *closed.out_avals))):
        return closed

    def part(inner: Any) -> Callable[..., list[Any]]:
        whole = _closed(inner)
        jaxpr, constants = whole.jaxpr, dict(zip(whole.jaxpr.constvars, whole.consts, strict=True))
        return functools.partial(_run, jaxpr.eqns, constants, jaxpr.invars, jaxpr.outvars, one)

    def one(equation: Any, operands: list[Any]) -> list[Any]:
        if equation.primitive.name in _CASTS:
            return operands
        rule = _OPENED.get(equation.primitive.name)
        if rule is None:
            return bound(equation, operands, of_a_mesh=False)
        return list(rule(equation.params, operands, part))

    types = [jax.ShapeDtypeStruct(type_.shape, type_.dtype) for type_ in closed.in_avals]
    with without_mesh():
        return jax.make_jaxpr(part(closed))(*types)


def _closed(jaxpr: Any) -> Any:
    return jaxpr if isinstance(jaxpr, extended.ClosedJaxpr) else extended.ClosedJaxpr(jaxpr, ())


def _call(parameters: Any, operands: list[Any], part: Part) -> Any:
    [jaxpr] = (parameters[name] for name in ("jaxpr", "call_jaxpr", "fun_jaxpr") if name in parameters)
    return part(jaxpr)(*operands)


def _checkpoint(parameters: Any, operands: list[Any], part: Part) -> Any:
    options = {name: parameters[name] for name in ("prevent_cse", "policy")}
    return jax.checkpoint(part(parameters["jaxpr"]), **options)(*operands)


def _scan(parameters: Any, operands: list[Any], part: Part) -> Any:
    body, (consts, carried) = part(parameters["jaxpr"]), scan_counts(parameters)
    first, held = operands[consts : consts + carried], operands[:consts]

    def step(carry: Any, row: Any) -> Any:
        results = body(*held, *carry, *row)
        return results[:carried], results[carried:]

    options = {name: parameters[name] for name in ("length", "reverse", "unroll") if name in parameters}
    last, stacked = lax.scan(step, first, operands[consts + carried :], **options)
    return [*last, *stacked]


def _while(parameters: Any, operands: list[Any], part: Part) -> Any:
    tests, moves = parameters["cond_nconsts"], parameters["body_nconsts"]
    for_test, for_body, first = operands[:tests], operands[tests : tests + moves], operands[tests + moves :]
    condition, body = part(parameters["cond_jaxpr"]), part(parameters["body_jaxpr"])
    return lax.while_loop(lambda carry: condition(*for_test, *carry)[0], lambda carry: body(*for_body, *carry), first)


def _cond(parameters: Any, operands: list[Any], part: Part) -> Any:
    return lax.switch(operands[0], [part(branch) for branch in parameters["branches"]], *operands[1:])


def _shard_map(parameters: Any, operands: list[Any], part: Part) -> Any:
    """Constants, which JAX hoists out of it, stay constants inside."""
    body, specs = part(parameters["jaxpr"]), tuple(parameters["in_specs"])
    everywhere = [
        not any(spec) and not isinstance(one, jax.core.Tracer) for one, spec in zip(operands, specs, strict=True)
    ]
    given = [i for i, held in enumerate(everywhere) if not held]
    mapped = jax.shard_map(
        lambda *arrays: body(*replaced(operands, given, arrays)),
        mesh=parameters["mesh"],
        in_specs=tuple(specs[i] for i in given),
        out_specs=list(parameters["out_specs"]),
        axis_names=set(parameters.get("newly_manual_axes") or parameters["manual_axes"]),
        check_vma=parameters["check_vma"],
    )
    return mapped(*(operands[i] for i in given))


_RULES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("jit", "pjit", "closed_call"), _call),
    **dict.fromkeys(("checkpoint", "remat2"), _checkpoint),
    "scan": _scan, "while": _while, "cond": _cond, "shard_map": _shard_map,
}  # fmt: skip
_OPENED = {
    **_RULES,
    **dict.fromkeys(("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "fusionlab_optimized"), _call),
}
