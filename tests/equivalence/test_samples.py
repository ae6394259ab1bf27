"""The inputs of a check: both signs of psi, initial and perturbed parameters, nobody at the origin."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.equivalence.edge_walkers import ALL_FAR_BOHR, FAR, FAR_BOHR, NEAR, NEAR_BOHR
from fusionlab.equivalence.samples import (
    EDGE_SEED,
    SEEDS,
    equilibrated,
    log_psi_runner,
    signature_samples,
    walkers_argument,
    workload_samples,
)
from fusionlab.hlo.view import TensorType
from fusionlab.workloads import catalogue


@pytest.fixture(scope="module")
def samples():
    workload = catalogue.build("paulinet", "LiH", walkers=8, size="tiny")
    return workload, list(workload_samples(workload))


@pytest.fixture
def edges(lowered):
    """``edges(walkers, electrons)``: the samples of edge walkers of a program of walkers."""

    def found(walkers, electrons):
        program = lowered(lambda x: x, jax.ShapeDtypeStruct((walkers, electrons, 3), "float32"))
        return [sample for sample in signature_samples(program) if not sample.typical]

    return found


def split(workload, sample):
    structure = jax.tree.structure(jax.eval_shape(workload.inputs, 0))
    return jax.tree.unflatten(structure, sample.arrays)


def test_one_sample_per_seed_of_the_programs_types(samples):
    workload, found = samples
    abstract = jax.tree.leaves(jax.eval_shape(workload.inputs, 0))
    assert [sample.typical for sample in found] == [True] * len(SEEDS) + [False] * 4
    for sample in found:
        assert [(a.shape, a.dtype) for a in sample.arrays] == [(a.shape, a.dtype) for a in abstract]


def test_both_signs_of_psi_occur_in_every_sample(samples):
    workload, found = samples
    log_psi = jax.jit(workload.rebuild(program="log-psi").function)
    for sample in found:
        signs = np.asarray(log_psi(*split(workload, sample))["sign"])
        assert set(signs) == {-1.0, 1.0}, sample.label


def test_the_last_walkers_are_the_first_with_two_electrons_exchanged(samples):
    workload, found = samples
    for sample in found[: len(SEEDS)]:
        _, walkers = split(workload, sample)
        np.testing.assert_array_equal(walkers[-2:, [1, 0]], walkers[:2, [0, 1]])
        np.testing.assert_array_equal(walkers[-2:, 2:], walkers[:2, 2:])
        assert np.abs(walkers).max(axis=(1, 2)).min() > 0.1
        assert len(np.unique(walkers[:6], axis=0)) == 6


def test_parameters_are_initial_once_and_perturbed_then(samples):
    workload, found = samples
    for seed, sample in zip((*SEEDS, *[EDGE_SEED] * 4), found, strict=True):
        initial = jax.tree.leaves(workload.inputs(seed)[0])
        given = jax.tree.leaves(split(workload, sample)[0])
        same = [np.array_equal(a, b) for a, b in zip(initial, given, strict=True)]
        assert all(same) if seed == SEEDS[0] else not any(same)
        assert ("initial" if seed == SEEDS[0] else "perturbed") in sample.label


def test_walkers_of_perturbed_parameters_are_of_the_density_of_psi(samples):
    """Three times as long a chain changes nothing of log|psi| on average; the chain itself does."""
    workload, found = samples
    sample = found[1]
    assert sample.label == "seed 2, perturbed parameters, equilibrated walkers"
    parameters, walkers = split(workload, sample)
    start = np.asarray(workload.inputs(SEEDS[1])[1])
    assert not (walkers[:6] == start[:6]).all((1, 2)).any()

    log_psi = jax.jit(workload.rebuild(program="log-psi").function)

    def mean_and_error(walkers):
        parts = np.split(walkers, len(walkers) // 8)
        values = np.concatenate([np.asarray(log_psi(parameters, part)["log_psi"]) for part in parts])
        return values.mean(), values.std() / np.sqrt(len(values))

    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(parameters)]
    starts = np.concatenate([workload.inputs(seed)[1] for seed in range(8)])
    run = log_psi_runner(workload, len(starts))
    once = equilibrated(run, leaves, starts, 11)
    longer = equilibrated(run, leaves, equilibrated(run, leaves, once, 12), 13)
    (mean_of_starts, _), (mean, error), (mean_of_longer, error_of_longer) = map(mean_and_error, (starts, once, longer))
    assert abs(mean - mean_of_longer) < 4 * np.hypot(error, error_of_longer)
    assert mean_of_starts < mean - 6 * error


def test_perturbed_parameters_also_meet_walkers_as_samplers_begin(samples):
    workload, found = samples
    assert found[2].label == "seed 3, perturbed parameters, half of the walkers equilibrated"
    _, walkers = split(workload, found[2])
    start = np.asarray(workload.inputs(SEEDS[2])[1])
    kept = (walkers == start).all((1, 2))
    assert kept.tolist() == [False] * 4 + [True] * 2 + [False] * 2


def test_samples_are_the_same_every_time(samples):
    workload, found = samples
    for first, second in zip(found, workload_samples(workload), strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(first.arrays, second.arrays, strict=True))


def test_edge_walkers_are_near_coalescence_and_far_away(samples):
    workload, found = samples
    near, far = (split(workload, sample)[1] for sample in found[-4::2])
    nuclei = np.asarray(workload.nuclei)
    distances = [
        np.linalg.norm(near[i, one] - near[i, other]) for i, (one, other) in enumerate([(0, 1), (0, -1), (-2, -1)])
    ]
    distances += [np.linalg.norm(near[3, 0] - nuclei[0]), np.linalg.norm(near[4, -1] - nuclei[-1])]
    np.testing.assert_allclose(distances, NEAR_BOHR[0], rtol=2e-2)
    np.testing.assert_allclose(np.linalg.norm(near[5, 0] - near[5, 1]), NEAR_BOHR[1], rtol=1e-3)
    from_centre = np.linalg.norm(far - nuclei.mean(0), axis=-1)
    np.testing.assert_allclose([from_centre[0, -1], from_centre[1, 0]], FAR_BOHR[0], rtol=1e-5)
    np.testing.assert_allclose(from_centre[2], ALL_FAR_BOHR, rtol=1e-5)
    assert from_centre[:2, 1:-1].max() < FAR_BOHR[0] / 2
    assert found[-2].kinds[0] == "last electron 24 bohr away"
    assert all(len(sample.kinds) == len(near) for sample in found[-4:])


@pytest.mark.parametrize("walkers", [1, 2, 3, 5, 16])
def test_all_kinds_of_edge_walkers_occur_however_few_walkers_there_are(walkers, edges):
    found = edges(walkers, 4)
    assert {kind for sample in found for kind in sample.kinds} == {name for kinds in (NEAR, FAR) for name, _ in kinds}
    assert len(found) == -(-len(NEAR) // walkers) + -(-len(FAR) // walkers)


def test_distances_between_coalescence_and_the_molecule_and_beyond_it_occur(edges):
    """Of 16 walkers, the default of a check: one near and one far sample."""
    near, far = (sample.arrays[0] for sample in edges(16, 4))
    for distances, expected in ((near[:, 0] - near[:, 1], (0.01, 0.05)), (near[:, 0], (0.01, 0.05)), (far, (8, 12))):
        lengths = np.linalg.norm(distances, axis=-1)
        assert all(np.isclose(lengths, bohr, rtol=1e-3).any() for bohr in expected)


@pytest.mark.parametrize("shape", [(16, 4, 3), (3, 4, 3)], ids=["three-coordinates", "three-walkers"])
def test_walkers_are_not_taken_for_parameters_of_three_nuclei(shape, lowered):
    nuclei = np.array([[0.0, 0.0, 0.0], [0.0, 1.4, 1.1], [0.0, -1.4, 1.1]], np.float32)

    def function(walkers, exponents):
        distances = jnp.linalg.norm(walkers[:, :, None] - nuclei, axis=-1)
        return jnp.exp(-distances @ exponents).sum((1, 2))

    program = lowered(function, jax.ShapeDtypeStruct(shape, "float32"), jax.ShapeDtypeStruct((3, 2), "float32"))
    near, *_ = (sample for sample in signature_samples(program) if not sample.typical)
    walkers, exponents = near.arrays
    assert np.abs(exponents - 1).max() < 0.5
    others = walkers[:, 2:-1]  # moved by no kind of near walkers
    assert np.std(others) > 0.5  # of parameters about one it would be 0.1


def test_an_electron_alone_is_far_and_near_a_nucleus(edges):
    near, far = (sample.arrays[0] for sample in edges(16, 1))
    lengths = np.linalg.norm(near, axis=-1).ravel()
    np.testing.assert_allclose(lengths[[3, 4, 8, 9]], np.repeat(NEAR_BOHR[:2], 2), rtol=1e-4)
    np.testing.assert_allclose(lengths[[12, 15]], NEAR_BOHR[2:], rtol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(far, axis=-1).max(), 50, rtol=1e-5)


def test_nuclei_of_a_file_are_those_of_its_constants(lowered):
    nuclei = np.array([[0.0, 1.0, 2.0], [-3.0, 0.5, 4.0]], np.float32)
    program = lowered(
        lambda x, zeta: jnp.exp(-zeta * jnp.abs(x[:, :, None] - nuclei).sum(-1)).sum((1, 2)),
        jax.ShapeDtypeStruct((5, 4, 3), "float32"),
        jax.ShapeDtypeStruct((2,), "float32"),
    )
    (walkers, _) = next(sample for sample in signature_samples(program) if not sample.typical).arrays
    np.testing.assert_allclose(np.linalg.norm(walkers[3, 0] - nuclei[0]), NEAR_BOHR[0], rtol=1e-2)
    np.testing.assert_allclose(np.linalg.norm(walkers[4, -1] - nuclei[1]), NEAR_BOHR[0], rtol=1e-2)


def test_weights_are_drawn_at_one_and_over_the_root_of_their_fan_in(lowered):
    shapes = [(16, 4, 25), (100,), (40, 5, 3)]
    first, second, third, *_ = signature_samples(
        lowered(lambda *given: given, *(jax.ShapeDtypeStruct(shape, "float32") for shape in shapes))
    )
    spreads = [[float(array.std()) for array in sample.arrays] for sample in (first, second, third)]
    np.testing.assert_allclose(spreads, [[1, 1, 1], [1 / 8, 1, 1], [1, 1, 1]], rtol=0.2)


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([(3, 5), (8, 4, 3)], 1),
        ([(3, 5, 3), (8, 4, 3)], 1),
        ([(8, 4, 2), (8, 12)], None),
        ([(0, 4, 3)], None),
    ],
)
def test_walkers_are_found_in_a_signature(shapes, expected):
    assert walkers_argument([TensorType(shape, "f32") for shape in shapes]) == expected
    assert walkers_argument([TensorType(shape, "i32") for shape in shapes]) is None


def test_a_signature_with_walkers_has_exchanged_and_edge_walkers(lowered):
    program = lowered(
        lambda w, x: x @ w, jax.ShapeDtypeStruct((3, 2), "float32"), jax.ShapeDtypeStruct((8, 4, 3), "float32")
    )
    found = list(signature_samples(program))
    for sample in found[: len(SEEDS)]:
        walkers = sample.arrays[1]
        np.testing.assert_array_equal(walkers[-2:, [1, 0]], walkers[:2, [0, 1]])
    assert [(edges.typical, len(edges.kinds)) for edges in found[len(SEEDS) :]] == [(False, 8)] * 4


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "bfloat16", "int32", "int8", "uint32", "uint8", "bool", "complex64"]
)
def test_every_type_has_samples(dtype, lowered):
    with jax.enable_x64(True):
        program = lowered(lambda x: x, jax.ShapeDtypeStruct((40,), dtype))
    first, second, *_ = signature_samples(program)
    (array,) = first.arrays
    assert (array.shape, array.dtype) == ((40,), np.dtype(jax.numpy.dtype(dtype)))
    assert len(np.unique(array)) > 1
    assert not np.array_equal(array, second.arrays[0])
    if np.issubdtype(array.dtype, np.integer):
        assert array.min() >= 0


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_integers_next_to_constants_of_either_program(dtype, lowered):
    given = jax.ShapeDtypeStruct((400,), dtype)
    first, second = (lowered(lambda n, at=at: n > at, given) for at in (700, 1600))
    *_, last = signature_samples(first, second)
    assert {699, 700, 701, 1599, 1600, 1601} <= set(last.arrays[0].tolist())
    assert (int(last.arrays[0].max()) > 2**24) == (dtype == "uint32")


@pytest.mark.parametrize("log", [0.0, np.nan, -np.inf])
def test_walkers_without_a_density_stay_near_where_they_began(log):
    """A psi that is flat has no density to walk in; one that is nowhere finite, none to begin with."""

    def log_psi(arrays):
        return [np.full(len(arrays[-1]), log)]

    starts = np.random.default_rng(3).normal(size=(6, 4, 3))
    found = equilibrated(log_psi, [], starts, 5)
    assert np.linalg.norm(found - starts, axis=-1).max() <= 10
    if not np.isfinite(log):
        np.testing.assert_array_equal(found, starts)
