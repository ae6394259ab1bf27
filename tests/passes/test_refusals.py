"""Every ground for a refusal is provoked: its cause, the op with its source line if one is responsible, the advice."""

import ast
import io
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from rich.console import Console

import fusionlab
from fusionlab.cli.apply import pass_through
from fusionlab.codegen.targets import load_target
from fusionlab.equivalence.exact.evaluation import Evaluator
from fusionlab.errors import NotOptimizedWarning, NotStudied
from fusionlab.hlo.program import Program
from fusionlab.optimizing import optimize
from fusionlab.optimizing.primitive import why_left_alone
from fusionlab.passes.fuse_jvp_replay import choose
from fusionlab.passes.fuse_jvp_replay.identify import derivatives, evaluating, few_walkers
from fusionlab.passes.interface import Declined, Figures, Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline
from fusionlab.passes.refusals import Ground
from fusionlab.report.tables.programs import print_events
from fusionlab.study import CandidateCosts, Circumstances, undo_worse
from tests.forms.forms import FORMS
from tests.optimizing.functions import laplacians

from .case_files import CASES, expectations
from .laplacian_assertions import in_their_precision, lower, rewritten
from .laplacian_functions import W, both, fori, of, psi

X, MANY = (np.random.default_rng(9).standard_normal((walkers, 1, 3)) for walkers in (2, 70))
EYE = np.eye(3)


def declined(result):
    return [event for event in result.events if isinstance(event, Declined)]


def case(name):
    """What a case of a pass provokes."""

    def provoke(_):
        path = CASES / f"{name}.mlir"
        pipeline, platform, _ = expectations(path)
        program = replace(Program.from_file(path), platform=platform)
        return declined(run_pipeline(program, parse_pipeline(pipeline), Setting()))

    return provoke


def function(made, *arrays, passes="sparsify-directions", setting=None, **patches):
    """What a function of ``arrays`` provokes; ``patches``: the owner, name and value of what is patched."""

    def provoke(monkeypatch):
        for owner, name, value in patches.values():
            monkeypatch.setattr(owner, name, value)
        if setting is None:
            return declined(rewritten(made, *arrays, passes=passes)[1])
        with in_their_precision(arrays):
            program = lower(made, *arrays)
        return declined(run_pipeline(program, parse_pipeline(passes), setting))

    return provoke


def raising(error):
    def fails(*_, **__):
        raise error

    return fails


PLAIN = both(lambda y: psi(None, y))


def loop(body, start=0.0, trips=3):
    """Of every walker: psi, and a loop of ``body(k, total, hessian, y)``."""

    def of_one(y):
        hessian = jax.linearize(jax.grad(lambda z: psi(None, z.reshape(y.shape))), y.ravel())[1]
        return psi(None, y), lax.fori_loop(0, trips, lambda k, total: body(k, total, hessian, y.ravel()), start)

    return jax.vmap(of_one)


def trips_of_data(x, count):
    def of_one(y):
        hessian = jax.linearize(jax.grad(lambda z: psi(None, z.reshape(y.shape))), y.ravel())[1]
        return psi(None, y), lax.fori_loop(0, count, lambda k, total: total + hessian(jnp.eye(3)[k])[k], 0.0)

    return jax.vmap(of_one)(x)


def directions_given(x, directions):
    def of_one(y):
        hessian = jax.linearize(jax.grad(lambda z: psi(None, z.reshape(y.shape))), y.ravel())[1]
        return psi(None, y), lax.fori_loop(0, 3, lambda k, s: s + directions[k] @ hessian(directions[k]), 0.0)

    return jax.vmap(of_one)(x)


def cubes_of_rows(x):
    def of_one(y):
        hessian = jax.linearize(jax.grad(lambda z: psi(None, z.reshape(y.shape))), y.ravel())[1]
        e = jnp.eye(3)

        def body(k, sums):
            return sums[0] + hessian(e[k])[k], sums[1] + hessian(e[k])[0] ** 3

        return psi(None, y), lax.fori_loop(0, 3, body, (0.0, 0.0))

    return jax.vmap(of_one)(x)


def slopes_beside(x):
    """Beside the sum, each trip pushes its direction through a larger function."""

    def larger(z):
        return jnp.sin(jnp.tanh(jnp.outer(z, jnp.arange(200.0))) @ jnp.ones((200, 50))).sum()

    def of_one(y):
        hessian = jax.linearize(jax.grad(lambda z: psi(None, z.reshape(y.shape))), y.ravel())[1]
        slope, e = jax.linearize(larger, y.ravel())[1], jnp.eye(3)

        def body(k, sums):
            return sums[0] + hessian(e[k])[k], sums[1] + jnp.cos(slope(e[k]))

        return psi(None, y), lax.fori_loop(0, 3, body, (0.0, 0.0))

    return jax.vmap(of_one)(x)


def unused_direction(x):
    def body(carry, _):
        k, total = carry
        return (k + 1, total + jnp.sin(x).sum()), jnp.eye(3)[k].astype(int)

    return lax.scan(body, (0, 0.0), length=3)


def of_two_kinds(x):
    """The first four are all alike, and of many walkers a few are evaluated."""
    kinds = np.repeat([1.0, 2.0], [4, 66])
    laplacians = jax.vmap(lambda y, kind: fori(lambda _, z: kind * psi(None, z), None, y))(x, kinds)
    return jax.vmap(lambda y: psi(None, y))(x), laplacians


def mixing(x):
    """Walkers that see each other, by a term without a slope."""
    common = jnp.sign(jnp.tanh(x @ W).sum((0, 1)))
    return both(lambda y: (jnp.tanh(y @ W) + common).sum())(x)


def at_ties(y):
    """A maximum has half a slope where both are equal, relu has none: the text does not tell them apart."""
    h = jnp.sin(y @ W)
    return ((jax.nn.relu(h) + 2 * jnp.maximum(h, 0)) ** 2).sum()


def ended_by_data(x, scale):
    """A parameter is doubled until it swallows 1, which no residue does."""
    large = lax.while_loop(lambda s: s + 1 != s, lambda s: 2 * s, scale)
    return both(lambda y: psi(None, y) / large)(x)


def constrained(x):
    sharding = NamedSharding(AbstractMesh((2,), ("a",), (AxisType.Auto,)), PartitionSpec())

    def log_psi(y):
        return (lax.with_sharding_constraint(jnp.tanh(y @ W), sharding)).sum()

    return both(log_psi)(x)


def with_a_loop(y):
    return jnp.tanh(lax.fori_loop(0, 3, lambda k, h: jnp.sin(h @ (W.T @ W)) + 0.1 * k, jnp.sin(y @ W))).sum()


def per_electron(x):
    def log_psi(y):
        return jnp.tanh(y @ y) * jnp.where(y > 0.5, jnp.log(y), y**2).sum()

    return jax.vmap(lambda y: (log_psi(y), FORMS["per-electron"](log_psi, y)))(x)


def narrow(y):
    w = W.astype(jnp.bfloat16)
    return jnp.tanh((y.astype(jnp.bfloat16) @ w).astype(jnp.float32)).sum()


def rounding(y, scale):
    return psi(None, y) + scale * (y[0, 0].astype(jnp.bfloat16).astype(y.dtype) - y[0, 0]) * jnp.sin(y).sum()


def with_algorithm(x, y):
    return jnp.einsum("bij,bjk->bik", x, y, precision=lax.DotAlgorithmPreset.BF16_BF16_F32)


def expanded(x, y):
    return jnp.einsum("bij,bkj->ibk", x, y)


THREE = np.ones((2, 3, 3), np.float32)
NO_FIGURES = Setting(figures=lambda program: None, platform="cuda")


def by_optimize(body, *arrays):
    """The refusal of ``optimize`` to take a function."""

    def provoke(_):
        found, _ = why_left_alone(None if body is None else jax.make_jaxpr(body)(*arrays))
        return [found.of("optimize", "")]

    return provoke


def calling_back(x):
    return jax.pure_callback(np.sin, jax.ShapeDtypeStruct((), x.dtype), x)


def untraceable(monkeypatch):
    monkeypatch.setattr(optimize, "trace", raising(TypeError("a bug")))
    made = fusionlab.optimize(jnp.sin, cache=False)
    with pytest.warns(NotOptimizedWarning, match="a bug; cause: form; instead: "):
        made(1.0)
    return list(made.fusionlab.decisions[0].events)


def of_several_devices(_):
    found = NotStudied("file.mlir", "there is a sdy.manual_computation", "@main", b"")
    document, _ = pass_through(found, "licm", parse_pipeline("licm"), Console(file=io.StringIO()))
    record = dict(document["events"][0])
    del record["declined"]
    return [Declined(record.pop("pass"), **record)]


def failing(monkeypatch):
    monkeypatch.setattr(choose.LoopInvariantCodeMotion, "run", raising(ZeroDivisionError("a bug")))
    return function(PLAIN, X, passes="licm")(monkeypatch)


def worse(monkeypatch):
    """A pass that doubles the launches, by figures that are made up."""
    program = Program.from_file(CASES / "licm/invariant_op.mlir")
    steps = [(pass_, pass_.run(program, Setting())) for pass_ in parse_pipeline("licm")]
    monkeypatch.setattr(CandidateCosts, "figures", lambda _, one: Figures(1 + (one is not program), 0, 0, 0, 0, None))
    [(_, undone)], _ = undo_worse(program, steps, Circumstances(load_target("cpu")))
    assert undone.program is program
    return declined(undone)


PROVOKED = {
    Ground.FUNCTION_NOT_FOUND: case("collapse_replay/declined_another_value"),
    Ground.POSITIONS_NOT_FOUND: function(
        lambda x: lax.fori_loop(0, 7, lambda k, s: s + jnp.sin(jnp.eye(7)[k].sum() * x), jnp.zeros_like(x)), np.ones(2)
    ),
    Ground.NO_LAPLACIAN: function(jnp.sin, X, passes="fuse-jvp-replay"),
    Ground.TRIP_COUNT: function(trips_of_data, X, np.int32(3)),
    Ground.RECURRENT: function(loop(lambda k, s, h, _: s / 2 + h(jnp.eye(3)[k])[k]), X),
    Ground.NO_TERM: function(lambda x: lax.map(lambda k: k * 2, x), np.arange(4)),
    Ground.DIRECTION_UNUSED: function(unused_direction, np.ones(3, np.float32)),
    Ground.OTHER_DIRECTIONS: function(directions_given, X, EYE),
    Ground.NO_DIRECTION: function(loop(lambda k, s, h, y: s + jnp.sin(k * y).sum()), X),
    Ground.TERMS_USED: function(cubes_of_rows, X),
    Ground.PRODUCTS_LEFT: function(slopes_beside, X),
    Ground.TIES: function(both(at_ties), X),
    Ground.WEIGHTS_BY_ADJOINT: function(per_electron, np.ones((2, 6)), passes="transpose-replay"),
    Ground.SHARED_FUNCTION: case("batch_replay/declined_other_public_function"),
    Ground.CAPTURES: case("batch_replay/declined_captures_of_two_calls"),
    Ground.CALLED_DIFFERENTLY: case("batch_replay/declined_called_with_two_trip_counts"),
    Ground.OPAQUE_CALL: case("collapse_replay/declined_opaque_custom_call"),
    Ground.NO_RULE: case("batch_replay/declined_sort_by_bits"),
    Ground.NO_DERIVATIVE: function(both(with_a_loop), X, passes="transpose-replay"),
    Ground.NO_EXACT_MEANING: function(ended_by_data, X, 9.0),
    Ground.EFFECT: case("collapse_replay/declined_effect"),
    Ground.CALLBACK: by_optimize(calling_back, 1.0),
    Ground.NOT_AN_ARRAY: case("fold_constant_loops/declined_a_token"),
    Ground.INTEGERS: function(
        of(lambda y: psi(None, y) + jnp.where(jnp.floor(y[0, 0]) ** 2 == 349.0**2, 1.0, 0.0) * jnp.sin(y).sum()), X
    ),
    Ground.PARAMETERS_COMPARED: function(
        of(lambda y, z: psi(None, y) + jnp.where(z == 1.0, 1.0, 0.0).sum() * jnp.sin(y).sum()), X, np.ones(2)
    ),
    Ground.INTEGER_ARGUMENT: function(
        of(lambda y, n: psi(None, y) + jnp.where(n * n == 349**2, 1.0, 0.0) * jnp.sin(y).sum()),
        X,
        np.array(3, np.int32),
    ),
    Ground.WALKERS_TOLD_APART: function(of_two_kinds, MANY),
    Ground.SCATTER_FORM: case("scatter_to_gather/declined_part_of_an_axis"),
    Ground.INDICES_UNKNOWN: case("scatter_to_gather/declined_unknown_indices"),
    Ground.UPDATE_ORDER: case("scatter_to_gather/declined_replaced_twice"),
    Ground.ROUNDS: function(of(rounding), X, 1e3),
    Ground.LESS_PRECISE: function(
        both(narrow, lambda y: jnp.tanh(y @ W.astype(jnp.bfloat16).astype(jnp.float32)).sum()), X.astype(np.float32)
    ),
    Ground.ALGORITHM: function(with_algorithm, THREE, THREE, passes="expand-small-dots"),
    Ground.ELEMENT_TYPES: case("expand_small_dots/declined_integers"),
    Ground.SHARDED: function(constrained, X),
    Ground.MESH: by_optimize(None),
    Ground.SHARD_MAP: of_several_devices,
    Ground.PLATFORM: case("batched_dot_kernels/declined_for_the_cpu"),
    Ground.NO_WALKERS: function(laplacians, np.ones((3, 5)), np.zeros((0, 3))),
    Ground.WALKERS_UNKNOWN: function(
        PLAIN, MANY, patched=(few_walkers, "walker_axes", lambda *_: {})
    ),
    Ground.AXES_MISTAKEN: function(
        PLAIN, MANY, patched=(derivatives, "forward_laplacian", raising(TypeError("no fit"))),
    ),
    Ground.TOO_LARGE: function(PLAIN, X, patched=(evaluating, "MOST_ELEMENTS", 100)),
    Ground.TOO_LONG: function(PLAIN, X, patched=(evaluating, "MOST_SECONDS", -1.0)),
    Ground.HOST_MEMORY: function(PLAIN, X, patched=(Evaluator, "outputs", raising(MemoryError()))),
    Ground.ELEMENTS: function(expanded, THREE[:0], THREE[:0], passes="batched-dot-kernels"),
    Ground.FOLDING: case("fold_constant_loops/declined_a_huge_value"),
    Ground.CANNOT_RUN: function(
        lambda x: x + lax.fori_loop(0, 3, lambda _, s: s * 2, np.float32(1)), np.float32(1),
        passes="fold-constant-loops", patched=(jax, "devices", raising(RuntimeError("no CPU"))),
    ),
    Ground.NOT_COMPILED: function(PLAIN, X, passes="fuse-jvp-replay", setting=NO_FIGURES),
    Ground.MEMORY: function(
        mixing, X, passes="fuse-jvp-replay{memory_budget=1MiB}", setting=Setting(lambda program: 2**30, "cuda")
    ),
    Ground.NOT_IN_PARTS: function(mixing, X, passes="sparsify-directions{chunks=2}"),
    Ground.NO_GAIN: case("licm/declined_nothing_invariant"),
    Ground.WORSE: worse,
    Ground.NOTHING_THERE: case("expand_small_dots/declined_none"),
    Ground.NOT_CONSTANT: case("fold_constant_loops/declined_for_an_argument"),
    Ground.UNTRACEABLE: untraceable,
    Ground.FAULT: failing,
}  # fmt: skip
OF_NO_OP = {
    Ground.FUNCTION_NOT_FOUND, Ground.POSITIONS_NOT_FOUND, Ground.NO_LAPLACIAN, Ground.TIES, Ground.SHARED_FUNCTION,
    Ground.CAPTURES, Ground.CALLED_DIFFERENTLY, Ground.NO_DERIVATIVE, Ground.NO_EXACT_MEANING, Ground.MESH,
    Ground.SHARD_MAP, Ground.PLATFORM, Ground.NO_WALKERS, Ground.WALKERS_UNKNOWN, Ground.AXES_MISTAKEN,
    Ground.TOO_LARGE, Ground.TOO_LONG, Ground.HOST_MEMORY, Ground.CANNOT_RUN, Ground.NOT_COMPILED, Ground.NO_GAIN,
    Ground.WORSE, Ground.NOTHING_THERE, Ground.NOT_CONSTANT, Ground.UNTRACEABLE, Ground.FAULT,
}  # fmt: skip
"""No single op is responsible."""


SLOW = {
    Ground.NO_EXACT_MEANING, Ground.ROUNDS, Ground.TERMS_USED, Ground.PARAMETERS_COMPARED, Ground.WEIGHTS_BY_ADJOINT,
    Ground.INTEGERS, Ground.INTEGER_ARGUMENT, Ground.NO_DERIVATIVE, Ground.HOST_MEMORY,
    Ground.TOO_LONG, Ground.AXES_MISTAKEN, Ground.NOT_IN_PARTS,
}  # fmt: skip
"""Of other tests, too, or of more than a second."""


@pytest.mark.parametrize(
    "ground",
    [pytest.param(ground, marks=[pytest.mark.slow] * (ground in SLOW), id=ground.name) for ground in Ground],
)
def test_every_refusal_has_its_cause_the_op_and_what_to_write_instead(ground, monkeypatch):
    events = PROVOKED[ground](monkeypatch)
    advice = ground.value
    found = [event for event in events if event.instead == advice.instead]
    assert found, events
    event = found[0]
    assert (event.kind, event.cause) == (advice.kind, advice.cause)
    assert event.reason
    assert "\n" not in event.reason + event.op + event.instead
    assert event.instead == event.to_json()["instead"] != ""
    assert bool(event.op) == (ground not in OF_NO_OP), event
    if event.op:
        lines = (".py:", "in line ", "source line is not known")
        assert any(part in event.op for part in lines), event.op


def test_there_is_no_refusal_without_a_ground():
    """Events of refusals are made by ``Refusal.of``, and read from a record; each ground is in use."""
    sources = Path(fusionlab.__file__).parent
    making, used = set(), set()
    for path in sources.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Declined":
                making.add(str(path.relative_to(sources)))
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Ground":
                used.add(node.attr)
    assert making == {"passes/refusals.py", "optimizing/decision.py"}
    assert used == {ground.name for ground in Ground}


def with_three_diagonals(x):
    """An opaque library call in the value, and so before the loop and not in it."""

    @jax.custom_jvp
    def solved(y):
        beside = jnp.tanh(y[0])
        return jax.lax.linalg.tridiagonal_solve(beside, beside + 4, beside, y.T)

    solved.defjvp(lambda given, along: (solved(*given), (jnp.cos(given[0]) * along[0]).T))
    return both(lambda y: solved(y).sum() ** 2)(x)


def decaying(x):
    """Not a sum; every trip computes the primal again."""

    def of_one(y):
        gradient = jax.grad(lambda z: psi(None, z.reshape(y.shape)))

        def trip(k, total):
            return total / 2 + jax.jvp(gradient, (y.ravel(),), (jnp.eye(3)[k],))[1][k]

        return psi(None, y), lax.fori_loop(0, 3, trip, 0.0)

    return jax.vmap(of_one)(x)


FALLBACKS = {
    "form": (lambda x: jax.vmap(lambda y: fori(psi, None, y))(x), "batch-replay", ""),
    "op": (with_three_diagonals, "batch-replay", "custom call @cusparse_gtsv2_ffi at test_refusals.py:"),
    "precision": (lambda x: of(rounding)(x, 1e3), "batch-replay", "stablehlo.convert at test_refusals.py:"),
    "not a sum": (decaying, "licm", "stablehlo.add at test_refusals.py:"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "cause", [pytest.param(cause, marks=[pytest.mark.slow] * (cause == "precision")) for cause in FALLBACKS]
)
def test_the_rest_of_the_gain_is_had_and_the_fallback_says_the_cause(cause, run_raised):
    made, instead, op = FALLBACKS[cause]
    program, result = rewritten(made, X, passes="fuse-jvp-replay")
    event = result.applied[-1]
    assert event.pass_name == instead, result.events
    word = cause if cause in ("op", "precision") else "form"
    assert f"; cause: {word}{', ' * bool(op)}{op}" in event.fallback
    assert "; instead: " in event.fallback
    if cause != "op":
        for ours, theirs in zip(run_raised(result.program, [X]), run_raised(program, [X]), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("factor", "applies"), [(1.5, True), (1.6, False)])
def test_what_is_hoisted_alone_keeps_to_the_memory_of_a_fallback(factor, applies, monkeypatch):
    monkeypatch.setattr(choose, "live_bytes", lambda region: 2**62)
    with in_their_precision([X]):
        program = lower(decaying, X)
    setting = Setting(lambda one: int(2**30 * (1 if one is program else factor)), "cuda")
    result = run_pipeline(program, parse_pipeline("fuse-jvp-replay"), setting)
    assert bool(result.applied) == applies


def test_a_module_without_lines_says_how_to_lower_with_them(program_of_text):
    with in_their_precision([X]):
        text = str(lower(loop(lambda k, s, h, _: s / 2 + h(jnp.eye(3)[k])[k]), X).parse())
    [event, *_] = declined(run_pipeline(program_of_text(text), parse_pipeline("sparsify-directions"), Setting()))
    assert "of the module, which has no source lines: as_text(debug_info=True) writes them" in event.op


def test_the_line_of_a_library_function_is_that_of_its_call():
    """JAX caches what it lowers of its own functions, without lines."""
    _, result = rewritten(with_three_diagonals, X)
    [event] = declined(result)
    lines = Path(__file__).read_text().splitlines()
    number = int(event.op.partition("test_refusals.py:")[2].partition(" ")[0])
    assert "tridiagonal_solve" in lines[number - 1]


def test_a_debug_print_that_reads_the_sum_is_named(lowered):
    def printing(k, total, hessian, _):
        jax.debug.print("so far {}", total)
        return total + hessian(jnp.eye(3)[k])[k]

    program = lowered(loop(printing), X.astype(np.float32))
    result = run_pipeline(program, parse_pipeline("fuse-jvp-replay"), Setting())
    events = [event for event in declined(result) if "the accumulator is also used elsewhere" in event.reason]
    assert {event.pass_name for event in events} == {"sparsify-directions", "batch-replay"}
    assert {(event.cause, event.instead) for event in events} == {("op", Ground.EFFECT.value.instead)}
    assert all("callback at test_refusals.py:" in event.op for event in events)


def test_what_a_user_reads(monkeypatch):
    events = PROVOKED[Ground.RECURRENT](monkeypatch)
    console = Console(file=io.StringIO(), width=200)
    print_events(events, console)
    first, second = console.file.getvalue().splitlines()[:2]
    assert first.startswith("  declined sparsify-directions (unsafe): carried value ")
    assert second.startswith("           cause: form, stablehlo.add at test_refusals.py:")
    assert second.endswith(f"; instead: {Ground.RECURRENT.value.instead}")
    console = Console(file=io.StringIO(), width=200)
    print_events(PROVOKED[Ground.NO_GAIN](monkeypatch), console)
    assert len(console.file.getvalue().splitlines()) == 1, "nothing to write instead"
