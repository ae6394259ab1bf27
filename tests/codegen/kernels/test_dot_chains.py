"""Dot chains: the kernels compute what the ops that they replace do, and compile for absent GPUs."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.cpu_options import CPU_OPTIONS
from fusionlab.codegen.kernels.dot_chains.kernel import chain_kernel
from fusionlab.codegen.raising import RaiseError, raise_nodes
from fusionlab.codegen.targets import load_target
from fusionlab.device_code.kernel_rows import kernel_table
from fusionlab.hlo import lowering, ops
from fusionlab.hlo.blocks import blocks_of
from fusionlab.hlo.view import view_of
from fusionlab.ledger.ledger import launches
from fusionlab.passes.dot_chain_kernels import DotChainKernels
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline
from fusionlab.passes.refusals import Refusal
from fusionlab.testing import assert_no_spills
from fusionlab.workloads.catalogue import build
from tests.codegen.kernels.random_chains import random_chain
from tests.optional_packages import needs_ptxas, needs_the_cuda_plugin

CUDA = Setting(platform="cuda")


def chains_of(program, fewest=2):
    """(nodes, chain) of every kernel that the pass would make, in the program as it is, without barriers."""
    pass_ = DotChainKernels(fewest=fewest, at_most=10.0, smallest=1)
    module = program.parse()
    for function in module.body.operations:
        for block in blocks_of(function, module):
            block, seen = block.data_flow(), set()
            of_size = sorted(block.nodes, key=lambda node: -sum(np.prod(value.type.shape) for value in node.results))
            for node in of_size:
                if node.op is ops.DOT_GENERAL and node not in seen:
                    try:
                        chain = pass_.chain_of(node, block, {})
                    except Refusal:
                        continue
                    seen.update(chain.members)
                    yield block.nodes, chain


def dots(chain):
    return sum(node.op is ops.DOT_GENERAL for node in chain.members)


def array_for(value, nodes, numbers):
    """Random, unless the program says what it is."""
    try:
        (array,) = raise_nodes(nodes, [], [value])()
    except RaiseError:
        return numbers.standard_normal(value.type.shape).astype("f4")
    return np.asarray(array)


def assert_close(nodes, chain, dead=()):
    """The kernel under Pallas' interpreter against the plain ops, on random arrays, and where it writes.

    The interpreter writes nothing over what it reads: ``assert_read_before_written`` looks at the places.
    """
    assert_read_before_written(chain, dead)
    numbers = np.random.default_rng(0)
    arrays = [array_for(value, nodes, numbers) for value in chain.arrays]
    plain = raise_nodes(nodes, chain.arrays, list(chain.outputs))(
        *arrays
    )  # op by op: XLA fails on some, compiled whole
    made = jax.jit(chain_kernel(chain, dead=dead, interpret=True), compiler_options=CPU_OPTIONS)(*arrays)
    for value, wanted in zip(made, plain, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=2e-4, atol=2e-5 * max(1, np.abs(wanted).max()))


def places_of(chain, place, instance, coordinate):
    """The offsets of a tile that ``instance`` reads or writes at ``coordinate`` of the stream."""
    found = np.array([place.offset])
    for label, step in place.steps:
        if label in chain.grid:
            found = found + step * instance[label]
        elif label == chain.stream:
            found = found + step * coordinate
        else:
            found = np.add.outer(found, step * np.arange(chain.extents[label])).ravel()
    return found.tolist()


def assert_read_before_written(chain, dead):
    """Of an array that a result is written over, each element is read by the instance that writes there, not later."""
    loops = {loop: at for at, loop in enumerate(chain.loops)}
    extents = [range(chain.extents[label]) for label in chain.grid]
    instances = [dict(zip(chain.grid, each, strict=True)) for each in itertools.product(*extents)]
    for number, output in chain.overwrites(dead).items():
        written = {}
        for which, instance in enumerate(instances):
            for store in (store for store in chain.stores if store.output == output):
                for trip in range(*store.interval) if store.interval else [None]:
                    when = (len(loops), 0) if trip is None else (loops[store.part.phase, store.interval], trip)
                    written.update(dict.fromkeys(places_of(chain, store.place, instance, trip), (which, when)))
        assert len(written) == np.prod(chain.outputs[output].type.shape), "the result is not written whole"
        for which, instance in enumerate(instances):
            for part, load in chain.loads:
                if load.base is chain.arrays[number]:
                    for trip in range(*part.interval) if part.interval else [None]:
                        when = (len(loops), 0) if trip is None else (loops[part.phase, part.interval], trip)
                        for place in places_of(chain, load, instance, trip):
                            assert written[place][0] == which
                            assert written[place][1] >= when


def attention(q, k, v):
    """[w, i, h * d] each: softmax of scores between electrons, one matrix per walker and head."""
    q, k, v = (array.reshape(*array.shape[:2], 2, -1) for array in (q, k, v))
    scores = jnp.einsum("wihd,wjhd->whij", q, k) / np.float32(np.sqrt(q.shape[-1]))
    weights = jnp.exp(scores - scores.max(-1, keepdims=True))
    weights = weights / weights.sum(-1, keepdims=True)
    return jnp.einsum("whij,wjhd->wihd", weights, v).reshape(*q.shape[:2], -1)


def jet_of_attention(q, k, v):
    """The forward Laplacian of ``attention``: stacks [2 + directions, w, i, h * d] of value, Laplacian, derivatives."""
    value, laplacian, rows = (lambda s: s[0]), (lambda s: s[1]), (lambda s: s[2:])

    def stack(a, b, c):
        return lax.dynamic_update_slice(jnp.concatenate([a[None], b[None], c]), a[None], [0] * (a.ndim + 1))

    q, k, v = (array.reshape(*array.shape[:3], 2, -1) for array in (q, k, v))
    score = jnp.einsum("wihd,wjhd->whij", value(q), value(k))
    slopes = jnp.einsum("swihd,wjhd->swhij", rows(q), value(k)) + jnp.einsum("wihd,swjhd->swhij", value(q), rows(k))
    curve = jnp.einsum("wihd,wjhd->whij", laplacian(q), value(k)) + jnp.einsum(
        "wihd,wjhd->whij", value(q), laplacian(k)
    )
    curve += 2 * jnp.einsum("swihd,swjhd->whij", rows(q), rows(k))
    e = jnp.exp(score - score.max(-1, keepdims=True))
    e = stack(e, e * curve + e * (slopes * slopes).sum(0), e * slopes)
    n = e.sum(-1, keepdims=True)
    a, b = value(e) / value(n), rows(e) / value(n) - value(e) / value(n) ** 2 * rows(n)
    c = (laplacian(e) - a * laplacian(n) - 2 * (b * rows(n)).sum(0)) / value(n)
    out = stack(
        jnp.einsum("whij,wjhd->wihd", a, value(v)),
        jnp.einsum("whij,wjhd->wihd", c, value(v))
        + jnp.einsum("whij,wjhd->wihd", a, laplacian(v))
        + 2 * jnp.einsum("swhij,swjhd->wihd", b, rows(v)),
        jnp.einsum("swhij,wjhd->swihd", b, value(v)) + jnp.einsum("whij,swjhd->swihd", a, rows(v)),
    )
    return out.reshape(*out.shape[:3], -1)


def arrays_like(*shapes):
    numbers = np.random.default_rng(1)
    return [numbers.standard_normal(shape).astype("f4") for shape in shapes]


@pytest.fixture(scope="module")
def plain(lowered):
    return lowered(attention, *arrays_like(*[(3, 5, 14)] * 3), platform="cuda")


@pytest.fixture(scope="module")
def jet(lowered):
    """The queries are made by a layer, and dead after the attention; walkers come first."""

    def attend(w, *stacks):
        q, k, v = (jnp.swapaxes(stack, 0, 1) for stack in (stacks[0] @ w, *stacks[1:]))
        return jnp.swapaxes(jet_of_attention(q, k, v), 0, 1)

    arrays = arrays_like((14, 14), *[(3, 6, 5, 14)] * 3)
    return lowered(attend, *arrays, platform="cuda"), arrays


def test_an_attention_is_one_kernel(plain):
    [(nodes, chain)] = chains_of(plain)
    assert dots(chain) == 2
    assert (chain.instances, chain.loops) == (3 * 2, [])
    assert chain.traffic == 4 * 5 * 7, "it reads q, k, v and writes the result, once each"
    assert_close(nodes, chain)


def test_the_sum_of_a_product_times_its_transpose_is_one_kernel(lowered):
    """As in the Laplacian of log|det A|: the product is never written."""

    def quadratic(inverse, rows):
        products = jnp.einsum("wij,swjk->wisk", inverse, rows[1:])
        return (products * jnp.swapaxes(products, 1, 3)).sum((1, 2, 3))

    [(nodes, chain)] = chains_of(lowered(quadratic, *arrays_like((3, 5, 5), (5, 3, 5, 5)), platform="cuda"))
    assert (dots(chain), len(chain.exchanged)) == (1, 1)
    assert chain.loops == [(0, (1, 5))]
    assert_close(nodes, chain)


@pytest.mark.slow
def test_its_forward_laplacian_is_one_kernel_with_a_loop_over_directions(jet):
    [(nodes, chain)] = chains_of(jet[0])
    assert dots(chain) == 12
    assert chain.loops == [(0, (2, 6))]
    assert_close(nodes, chain)


@pytest.mark.slow
def test_a_dead_array_is_overwritten_and_no_other(jet):
    [(nodes, chain)] = chains_of(jet[0])
    assert not chain.overwrites(())
    assert len(chain.overwrites(chain.arrays)) == 1
    assert_close(nodes, chain, dead=chain.arrays)


def test_what_is_read_by_other_instances_is_not_overwritten(lowered):
    """The result has the size of the keys, and every head reads all of them."""

    def shared(q, k):
        scores = jnp.einsum("whid,wjd->whij", q, k + k)
        return jnp.einsum("whij,wjd->whid", jnp.tanh(scores), k + k)

    [(nodes, chain)] = chains_of(lowered(shared, *arrays_like((3, 1, 5, 7), (3, 5, 7)), platform="cuda"))
    assert_close(nodes, chain, dead=chain.arrays)
    [(nodes, chain)] = chains_of(lowered(shared, *arrays_like((3, 2, 5, 7), (3, 10, 7)), platform="cuda"))
    assert all(chain.arrays[number].type.shape != (3, 10, 7) for number in chain.overwrites(chain.arrays))
    assert_close(nodes, chain, dead=chain.arrays)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.by_turns(40)) for seed in range(12, 1000))]
)
def test_kernels_of_random_chains_compute_what_they_replace(lowered, seed):
    function, arrays = random_chain(seed)
    for nodes, chain in chains_of(lowered(function, *arrays, platform="cuda"), fewest=1):
        assert_close(nodes, chain, dead=chain.arrays)


def test_random_chains_are_chains(lowered):
    """Some have several contractions in a kernel, and loops that wait for what others have summed."""
    found = []
    for seed in range(60):
        function, arrays = random_chain(seed)
        found += [chain for _, chain in chains_of(lowered(function, *arrays, platform="cuda"), fewest=1)]
    assert sum(dots(chain) > 1 for chain in found) > 15
    assert {phase for chain in found for phase, _ in chain.loops} >= {0, 1}


def gram(q, k, v, a):
    """Beside an attention, the products of all pairs of rows of one value, which the chain makes itself."""
    x = jnp.tanh(a)
    g = jnp.einsum("wid,wjd->wij", x, x)
    s = jnp.einsum("wid,wjd->wij", q, k)
    s = s + jnp.swapaxes(s, 1, 2)
    return jnp.einsum("wij,wjd->wid", jnp.tanh(s), v) * jnp.exp(-g * g).sum((1, 2))[:, None, None]


def merged_with_a_constant(q, k, v):
    """The stream is merged with rows where a constant varies along both."""
    s = jnp.einsum("swid,wjd->wsij", q, k)
    constant = np.tile([0.0, 1.0, 1.0], 5).astype("f4")
    s = (s.reshape(2, 15, 6) * constant[None, :, None]).reshape(2, 5, 3, 6)
    return jnp.einsum("wsij,wjd->swid", s, v)


def dropped(q, k, v, y):
    """An operand that nothing reads."""
    s = jnp.einsum("wid,wjd->wij", q, k)
    s = lax.select(np.ones(s.shape, bool), s, y)
    return jnp.einsum("wij,wjd->wid", jnp.tanh(s), v)


def barrier_between(q, k, v, y):
    """A barrier before an op that no chain has orders what does not depend on each other."""
    a = jnp.einsum("wid,wjd->wij", q, k)
    a, y = lax.optimization_barrier((a, y))
    return a, jnp.einsum("wij,wjd->wid", jnp.tanh(a), jnp.flip(y, 1) + v)


def barrier_beside(q, k, v):
    """A barrier reads what only the chain does, and nothing reads the barrier's result."""
    a = jnp.einsum("wid,wjd->wij", q, k)
    b = jnp.tanh(a)
    _, c = lax.optimization_barrier((b, jnp.flip(v, 1)))
    return a, jnp.einsum("wij,wjd->wid", b, v), c


def doubled(q, k, v):
    """Forty doublings: what follows from constants is not sought along every path."""
    for _ in range(40):
        q = q + q * np.float32(0.5)
    return jnp.einsum("wij,wjd->wid", jnp.tanh(jnp.einsum("wid,wjd->wij", q, k)), v)


def of_complex(q, k, v):
    s = jnp.einsum("wid,wjd->wij", q, k) * jnp.abs(jnp.full((3, 8, 8), 3 + 4j, jnp.complex64))
    return jnp.einsum("wij,wjd->wid", s, v)


def of_nothing(q, k, v):
    return jnp.einsum("wij,wjd->wid", jnp.einsum("wid,wjd->wij", q.reshape(3, 8, 0), k.reshape(3, 8, 0)), v)


SQUARE, FLAT = (3, 8, 16), (3, 0, 8)


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (gram, [SQUARE] * 4),
        (merged_with_a_constant, [(5, 2, 3, 7), (2, 6, 7), (2, 6, 7)]),
        (dropped, [SQUARE] * 3 + [(3, 8, 8)]),
        (barrier_between, [SQUARE] * 4),
        (barrier_beside, [SQUARE] * 3),
        (doubled, [SQUARE] * 3),
        (of_complex, [SQUARE] * 3),
        (of_nothing, [FLAT, FLAT, SQUARE]),
    ],
)
def test_chains_that_were_wrong_or_failed(lowered, run_raised, function, shapes):
    arrays = arrays_like(*shapes)
    program = lowered(function, *arrays, platform="cuda")
    for nodes, chain in chains_of(program, fewest=1):
        assert_close(nodes, chain, dead=chain.arrays)
    after = DotChainKernels(smallest=1, at_most=10.0).run(program, CUDA).program
    for made, wanted in zip(run_raised(after, arrays), run_raised(program, arrays), strict=True):
        np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-6)


def test_what_waits_for_a_host_may_read_the_scores(lowered):
    """Its result is no array."""

    def told(q, k, v):
        s = jnp.einsum("wid,wjd->wij", q, k)
        jax.debug.callback(lambda s: None, s, ordered=True)
        return jnp.einsum("wij,wjd->wid", jnp.tanh(s), v)

    DotChainKernels().run(lowered(told, *arrays_like(*[SQUARE] * 3)), CUDA)


def test_results_without_a_common_axis_are_declined(lowered):
    """Which axis is of walkers is not known: decisions would depend on their number."""
    both = lambda q, k, v: (attention(q, k, v), k[0])  # noqa: E731
    [event] = DotChainKernels().run(lowered(both, *arrays_like(*[(3, 8, 32)] * 3), platform="cuda"), CUDA).events
    assert (event.kind, event.reason) == ("unsafe", "its results have no leading axis in common, of walkers")


@pytest.fixture(scope="module")
def rewritten(jet):
    return DotChainKernels(smallest=1).run(jet[0], CUDA)


def test_analyses_and_runs_see_the_plain_twin(jet, rewritten, run_raised):
    program, arrays = jet
    assert "__gpu$xla.gpu.triton" in str(rewritten.program.parse())
    assert "stablehlo.custom_call" not in [node.name for node in view_of(rewritten.program.parse()).walk()]
    for made, wanted in zip(run_raised(rewritten.program, arrays), run_raised(program, arrays), strict=True):
        np.testing.assert_array_equal(made, wanted)


def test_a_second_run_finds_nothing_left(rewritten):
    assert not DotChainKernels(smallest=1).run(rewritten.program, CUDA).applied


@needs_the_cuda_plugin
@pytest.mark.parametrize("target", ["a100", "h200"])
def test_kernels_compile_for_an_absent_gpu(target, jet, rewritten):
    before, after = (compile_program(p, load_target(target)) for p in (jet[0], rewritten.program))
    counts = [sum(one.dynamic for one in launches(compiled) if not one.is_copy) for compiled in (before, after)]
    assert counts[1] < counts[0] / 3
    assert 'fusionlab_flops="' in after.optimized_hlo
    assert "output_to_operand_aliasing" in after.optimized_hlo


def fused_psiformer(dtype="float32"):
    workload = build("psiformer", "LiH", walkers=3, size="tiny", dtype=dtype, laplacian="replay")
    return run_pipeline(lowering.lower(workload, "cuda"), parse_pipeline("fuse-jvp-replay"), CUDA).program


@needs_the_cuda_plugin
@needs_ptxas
@pytest.mark.parametrize(
    ("molecule", "size"),
    [pytest.param("LiH", "tiny", marks=pytest.mark.slow), pytest.param("CH4", "full", marks=pytest.mark.full)],
)
def test_kernels_of_a_network_hold_their_values_in_registers(molecule, size):
    """docs/layout-passes.md: ten electrons, 64 features a head, take 233 registers a thread."""
    workload = build("psiformer", molecule, walkers=16, size=size, laplacian="replay")
    passes = parse_pipeline("fuse-jvp-replay,dot-chain-kernels")
    after = run_pipeline(lowering.lower(workload, "cuda"), passes, CUDA).program
    found = [row for row in kernel_table(assert_no_spills(after).compiled).rows if "dot_chain" in row.kernel]
    assert found
    assert all(row.resources.registers <= 240 for row in found)


@pytest.mark.slow
def test_kernels_of_a_network_compute_what_they_replace():
    found = list(chains_of(fused_psiformer(), fewest=1))
    assert max(dots(chain) for _, chain in found) == 7
    for nodes, chain in found:
        assert_close(nodes, chain, dead=chain.arrays)


@pytest.mark.slow
def test_float64_takes_the_same_decisions_without_kernels():
    wide, narrow = (DotChainKernels().run(fused_psiformer(dtype), CUDA) for dtype in ("float64", "float32"))
    assert [event.to_json() for event in wide.events] == [event.to_json() for event in narrow.events]
    assert "__gpu$xla.gpu.triton" not in str(wide.program.parse())


def test_a_transpose_of_the_stream_with_what_it_transposes_is_no_chain(lowered):
    """Directions become rows: no instance has both."""

    def exchanged(q, k):
        s = jnp.einsum("swid,wjd->wsij", q, k)
        return (s * jnp.swapaxes(s, 1, 2)).sum((1, 2, 3))

    program = lowered(exchanged, *arrays_like((5, 3, 5, 7), (3, 6, 7)), platform="cuda")
    assert all(not chain.exchanged for _, chain in chains_of(program, fewest=1))
