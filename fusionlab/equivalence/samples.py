"""Inputs on which two programs are compared."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from fusionlab.codegen.executable import numpy_dtype
from fusionlab.equivalence.counterexample import Counterexample
from fusionlab.equivalence.edge_walkers import FAR, NEAR, edge_walkers
from fusionlab.equivalence.exact.integers import LANDMARKS, MIXED, Integers
from fusionlab.equivalence.oracle import Runner, workload_runner
from fusionlab.equivalence.tolerances import SPREAD_FACTOR
from fusionlab.errors import InputError
from fusionlab.hlo import ops
from fusionlab.hlo.ops import WIDE_FLOATS
from fusionlab.hlo.program import Program, program_view
from fusionlab.hlo.view import TensorType, constant_array
from fusionlab.workload import Workload

SEEDS = (1, 2, 3)
"""The first has a sampler's initial walkers, about the nuclei; the second those of the density of psi; the third half
of each; the parameters of the last two are perturbed."""
EDGE_SEED, INTEGER_SEED = 4, 5
_LARGEST_INDEX = 4096
"""Of signed integers, which may be numbers of trips: no sample has larger ones."""
_FAR_FROM_THE_DENSITY = 16.0
"""At the initial walkers of the third seed, perturbed parameters make psi ill-conditioned: of PauliNet (CH4) a correct
forward Laplacian, 1.9e-12 hartree off in float64, is 5.5 times further off than the original at one."""
_ROUNDINGS = 7
TRANSITIONS = 40
"""Transitions of all electrons of a walker at once; at an acceptance of one half, a walker then has moved by a few
times its own size."""
MOST_WALKERS = 64
"""The number of walkers moved; the others of a larger sample keep their initial positions about the nuclei."""
_FIRST_STEP_BOHR = 0.3
_WIDEST_STEP_BOHR = 1.0
_FARTHEST_BOHR = 10.0
"""An electron farther than this from its start belongs to no normalisable density: its psi does not decay."""
_ACCEPTANCE = 0.5
_NOWHERE = -1e30


@dataclass(frozen=True)
class Sample:
    """Flat arguments of a program, and their description.

    ``typical`` walkers are drawn near the molecule, so that means over them are meaningful; otherwise ``kinds``
    describes each walker. ``spread_factor`` is the factor by which a rewritten program may be further from truth than
    the original there in its own dtype. ``milder`` draws other arguments, for where the original has no correct digit
    at these (None: there are no others).
    """

    label: str
    arrays: tuple[np.ndarray, ...]
    typical: bool = True
    kinds: tuple[str, ...] = ()
    spread_factor: float = SPREAD_FACTOR
    milder: Callable[[], Sample] | None = field(default=None, compare=False, repr=False)


def workload_samples(workload: Workload) -> Iterator[Sample]:
    """One sample per seed: fresh parameters and walkers; from the second seed on, the parameters are perturbed, an
    optimiser has taken steps, and the walkers are Metropolis-equilibrated (``equilibrated``), of the third seed half of
    them. The last samples have edge walkers: near coalescence, and far away.

    Parameters at their initial values hide terms (zeros, ones), so a tenth of each array's spread (or 0.1 where it is
    constant) is added as noise. The last quarter of the walkers (at least one, where there are two) repeats the
    first with electrons 0 and 1 exchanged: where these are both spin-up, both signs of psi occur whatever the
    parameters are.
    """
    log_psi = functools.cache(lambda walkers: log_psi_runner(workload, walkers))
    for seed in SEEDS:
        named = _arguments(workload, seed)
        if "walkers" in named:
            named["walkers"] = _exchanged(_walkers(log_psi, named, seed))
        label = f"seed {seed}, " + ("initial parameters" if seed == SEEDS[0] else "perturbed parameters")
        label += _OF_WALKERS.get(seed, "") if "walkers" in named else ""
        factor = _FAR_FROM_THE_DENSITY if seed == SEEDS[2] else SPREAD_FACTOR
        yield Sample(label, _leaves(named), spread_factor=factor)
    named = _arguments(workload, EDGE_SEED)
    if "walkers" in named:
        start = np.array(named["walkers"])
        for edge, walkers, kinds in _at_edges(start, workload.nuclei):
            label = f"seed {EDGE_SEED}, perturbed parameters, {edge}"
            yield Sample(label, _leaves(named | {"walkers": walkers}), typical=False, kinds=kinds)


def _at_edges(
    walkers: np.ndarray, nuclei: Sequence[Sequence[float]]
) -> Iterator[tuple[str, np.ndarray, tuple[str, ...]]]:
    """(description, walkers, kind of each walker): near and far walkers, in as many samples as all kinds need."""
    for name, edges in (("near walkers", NEAR), ("far walkers", FAR)):
        for first in range(0, len(edges), len(walkers) or len(edges)):
            yield (name, *edge_walkers(walkers, nuclei, edges, first))


_OF_WALKERS = {
    SEEDS[1]: ", equilibrated walkers",
    SEEDS[2]: ", half of the walkers equilibrated",
}


def _walkers(log_psi: Callable[[int], Runner], named: dict[str, Any], seed: int) -> np.ndarray:
    """The walkers of a seed: initial, equilibrated, or the first half equilibrated."""
    start = np.array(named["walkers"])
    if seed == SEEDS[0]:
        return start
    run = log_psi(len(start[:MOST_WALKERS]))
    found = equilibrated(run, _leaves({"parameters": named["parameters"]}), start, seed)
    if seed == SEEDS[2]:
        half = -(-len(start) // 2)
        found[half:] = start[half:]
    return found


def equilibrated(log_psi: Runner, parameters: Sequence[np.ndarray], walkers: np.ndarray, seed: int) -> np.ndarray:
    """``walkers`` [W, electrons, 3] (bohr) after TRANSITIONS Metropolis transitions in |psi|^2 with the leaves
    ``parameters``; the same for the same ``seed``. ``log_psi`` is of the first MOST_WALKERS of them, which move.

    The width of the proposals is adapted after each transition, up to a bohr. A walker whose psi is zero or not finite
    accepts only proposals where it is neither. Walkers that run away, or find no such place, stay put.
    """
    found = np.array(walkers)
    moved = found[:MOST_WALKERS]
    random = np.random.default_rng(seed)
    step = _FIRST_STEP_BOHR
    logs = _finite_or_least(log_psi([*parameters, moved])[0])
    for _ in range(TRANSITIONS):
        proposed = (moved + step * random.standard_normal(moved.shape)).astype(moved.dtype)
        new = _finite_or_least(log_psi([*parameters, proposed])[0])
        accepted = (np.log(random.uniform(size=len(moved))) < 2 * (new - logs)) & (new > _NOWHERE)
        moved[accepted], logs[accepted] = proposed[accepted], new[accepted]
        step = min(step * float(np.clip(accepted.mean() / _ACCEPTANCE, 0.5, 2.0)), _WIDEST_STEP_BOHR)
    lost = np.linalg.norm(moved - walkers[: len(moved)], axis=-1).max(-1) > _FARTHEST_BOHR
    moved[lost] = walkers[: len(moved)][lost]
    return found


def _finite_or_least(logs: np.ndarray) -> np.ndarray:
    """``log|psi|`` with non-finite values replaced by a wide floor whose differences do not overflow."""
    return np.where(np.isfinite(logs), logs, _NOWHERE).astype(np.float64)


def log_psi_runner(workload: Workload, walkers: int) -> Runner:
    """log|psi| of ``walkers`` walkers."""
    return workload_runner(workload.rebuild(program="log-psi", laplacian=None, walkers=walkers), workload.dtype)


def _leaves(named: dict[str, Any]) -> tuple[np.ndarray, ...]:
    return tuple(np.asarray(leaf) for leaf in jax.tree.leaves(tuple(named.values())))


def _arguments(workload: Workload, seed: int) -> dict[str, Any]:
    with jax.enable_x64(workload.dtype == "float64"):
        arguments = workload.inputs(seed)
    random = np.random.default_rng(seed)
    named = dict(zip(workload.argument_names, arguments, strict=True))
    if seed != SEEDS[0]:
        named["parameters"] = jax.tree.map(lambda leaf: _perturbed(leaf, random), named["parameters"])
        if "optimiser" in named:
            named["optimiser"] = jax.tree.map(lambda leaf: _under_way(leaf, random), named["optimiser"])
    return named


def signature_samples(program: Program, *others: Program) -> Iterator[Sample]:
    """One sample per seed from the types alone, for ``program`` and ``others`` of the same signature: normal floats,
    fair booleans, and integers: 0 to 3 at the first seed, 0 to 99 at the second, and -3 to -1 at the third (where the
    type has a sign).

    At the second seed, and at the edges, float arrays of two axes or more are divided by the square root of their
    fan-in (the product of all axes but the last, as ``jax.nn.initializers`` has it), which resembles trained
    parameters: with N(0, 1), logits of attention and logs of determinants are large and positive, which hides errors at
    other values; with the scaled ones, no softmax saturates. The other seeds have these as their ``milder`` arguments:
    the Laplacian of a transformer at N(0, 1) is wrong by 1e12 of its value in float64.

    Where the signature has walkers (see ``walkers_argument``), the last quarter of them are copies with two electrons
    exchanged, and the last samples have edge walkers: near coalescence, and far away. Their nuclei are the rows of the
    program's first constant [n, 3]. Where the signature has integers, one sample has those next to the constants and
    extents of the programs, and unsigned ones of all bits. ValueError for an element type that NumPy does not have.
    """
    at = walkers_argument(program.inputs)

    def sample(seed: int, label: str, *, fan_in: bool) -> Sample:
        arrays = _drawn(program, seed, fan_in=fan_in)
        if at is not None:
            arrays[at] = _exchanged(arrays[at])
        milder = None if fan_in else functools.partial(sample, seed, f"{label} over the fan-in", fan_in=True)
        return Sample(label, tuple(arrays), milder=milder)

    for seed in SEEDS:
        yield sample(seed, f"seed {seed}", fan_in=seed == SEEDS[1])
    if any(type_.dtype in ops.INTEGERS for type_ in program.inputs):
        integers = Integers.of(map(program_view, (program, *others)))
        arrays = [_of_all_sizes(array, integers) for array in _drawn(program, INTEGER_SEED, fan_in=True)]
        yield Sample(f"seed {INTEGER_SEED}, integers next to constants", tuple(arrays))
    if at is not None:
        nuclei = _nuclei(program)
        drawn = _drawn(program, EDGE_SEED, fan_in=True)
        arrays = [array if index == at else _near_one(array, len(nuclei)) for index, array in enumerate(drawn)]
        for edge, walkers, kinds in _at_edges(arrays[at], nuclei):
            moved = (*arrays[:at], walkers, *arrays[at + 1 :])
            yield Sample(f"seed {EDGE_SEED}, {edge}", moved, typical=False, kinds=kinds)


def edges_of(program: Program, arrays: Sequence[np.ndarray], label: str) -> Iterator[Sample]:
    """The arguments ``arrays`` of ``program`` with its walkers moved to the edges; none where there are no walkers
    (``walkers_argument``). ``label`` names the arguments."""
    at = walkers_argument(program.inputs)
    if at is None:
        return
    for edge, walkers, kinds in _at_edges(np.asarray(arrays[at]), _nuclei(program)):
        yield Sample(f"{edge} of {label}", (*arrays[:at], walkers, *arrays[at + 1 :]), typical=False, kinds=kinds)


def _drawn(program: Program, seed: int, *, fan_in: bool) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    arrays = [_random(type_, random, _INTEGERS.get(seed, _FEW)) for type_ in program.inputs]
    if fan_in:
        at = walkers_argument(program.inputs)
        arrays = [array if index == at else _over_fan_in(array) for index, array in enumerate(arrays)]
    return arrays


def _of_all_sizes(array: np.ndarray, integers: Integers) -> np.ndarray:
    """An array of integers next to constants, or of all bits without a sign; others are unchanged."""
    if not jax.numpy.issubdtype(array.dtype, np.integer):
        return array
    words = np.random.default_rng(INTEGER_SEED).integers(2**64, size=array.shape, dtype=np.uint64)
    if jax.numpy.iinfo(array.dtype).min == 0:
        return integers.drawn(np.asarray(words), MIXED, array.dtype)
    near = integers.drawn(np.asarray(words), LANDMARKS, array.dtype)
    return np.where(np.abs(near) <= _LARGEST_INDEX, near, near % 8)


def _over_fan_in(array: np.ndarray) -> np.ndarray:
    if array.ndim < 2 or not array.size or not jax.numpy.issubdtype(array.dtype, np.inexact):
        return array
    return np.asarray(array / np.sqrt(np.prod(array.shape[:-1]))).astype(array.dtype)


def _near_one(array: np.ndarray, nuclei: int) -> np.ndarray:
    """Shift a parameter with one number per nucleus and another axis (exponents and weights of envelopes) to about one,
    as in models: with exponents about zero, log|psi| would not decay far away. Others are unchanged."""
    of_nuclei = array.ndim > 1 and nuclei in (array.shape[0], array.shape[-1]) and array.dtype.kind == "f"
    return np.asarray(1 + 0.1 * array).astype(array.dtype) if of_nuclei else array


def _nuclei(program: Program) -> Sequence[Sequence[float]]:
    """Positions of nuclei (bohr) in a program lowered from a model; empty if it has none."""
    for node in program_view(program).walk():
        if node.op is ops.CONSTANT:
            type_ = node.results[0].type
            if len(type_.shape) == 2 and type_.shape[0] > 0 and type_.shape[1] == 3 and type_.dtype in WIDE_FLOATS:
                return [tuple(map(float, row)) for row in constant_array(node)]
    return ()


_FEW = (0, 4)
_INTEGERS = {SEEDS[1]: (0, 100), SEEDS[2]: (-3, 0)}
"""Indices and counts within bounds and beyond them, and from the end."""


def sample_of(counterexample: Counterexample) -> Sample:
    """A counterexample's inputs as the only sample of a check."""
    return Sample(counterexample.label, counterexample.arrays, typical=False)


def fits(arrays: Sequence[np.ndarray], inputs: Sequence[TensorType]) -> bool:
    """True if ``arrays`` have the types ``inputs``."""
    given = [(array.shape, array.dtype) for array in arrays]
    return given == [(type_.shape, numpy_dtype(type_)) for type_ in inputs]


def require_fitting(counterexample: Counterexample, where: str, *programs: Program) -> Program:
    """The one of ``programs`` whose inputs the arrays may be; InputError naming ``where`` these are from if none."""
    for program in programs:
        if fits(counterexample.arrays, program.inputs):
            return program
    have = ", ".join(f"{array.dtype}{list(array.shape)}" for array in counterexample.arrays)
    need = " or ".join(", ".join(map(str, program.inputs)) for program in programs)
    raise InputError(f"{where}: inputs of another program: they are {have}, it takes {need}")


def roundings_of(sample: Sample) -> Iterator[tuple[np.ndarray, ...]]:
    """``sample`` moved by a rounding or less, a few times: other roundings of the same numbers."""
    for seed in range(_ROUNDINGS):
        random = np.random.default_rng(seed)
        yield tuple(_rounded_otherwise(array, random) for array in sample.arrays)


def _rounded_otherwise(array: np.ndarray, random: np.random.Generator) -> np.ndarray:
    if not jax.numpy.issubdtype(array.dtype, np.floating):
        return array
    epsilon = float(jax.numpy.finfo(array.dtype).eps)
    return np.asarray(array * (1 + epsilon * random.integers(-1, 2, array.shape))).astype(array.dtype)


def walkers_argument(inputs: Sequence[TensorType]) -> int | None:
    """The position of the walkers, [walkers, electrons, 3] of f32 or f64: the argument with most walkers, or None."""
    found = [
        (type_.shape[0], -index)
        for index, type_ in enumerate(inputs)
        if len(type_.shape) == 3 and type_.shape[0] > 0 and type_.shape[1] > 0 and type_.shape[2] == 3
        if type_.dtype in WIDE_FLOATS
    ]
    return -max(found)[1] if found else None


def _perturbed(leaf: Any, random: np.random.Generator) -> Any:
    array = np.asarray(leaf)
    if not np.issubdtype(array.dtype, np.floating):
        return leaf
    spread = float(np.std(array)) or 1.0
    return (array + 0.1 * spread * random.standard_normal(array.shape)).astype(array.dtype)


def _under_way(leaf: Any, random: np.random.Generator) -> Any:
    """An optimiser's state after a few steps: nonzero moments, positive second moments, a step count."""
    array = np.asarray(leaf)
    if np.issubdtype(array.dtype, np.integer):
        return (array + 3).astype(array.dtype)
    return np.abs(_perturbed(leaf, random)) if np.issubdtype(array.dtype, np.floating) else leaf


def _exchanged(walkers: np.ndarray) -> np.ndarray:
    count = max(len(walkers) // 4, min(1, len(walkers) - 1))
    if count and walkers.shape[1] > 1:
        walkers[-count:] = walkers[:count]
        walkers[-count:, [0, 1]] = walkers[:count, [1, 0]]
    return walkers


def _random(type_: TensorType, random: np.random.Generator, integers: tuple[int, int]) -> np.ndarray:
    dtype = numpy_dtype(type_)
    if dtype == np.bool_:
        return random.integers(0, 2, type_.shape).astype(dtype)
    if np.issubdtype(dtype, np.integer):
        least, end = integers if np.issubdtype(dtype, np.signedinteger) or integers[0] >= 0 else _FEW
        return random.integers(least, end, type_.shape).astype(dtype)
    normal = np.asarray(random.standard_normal(type_.shape))
    if np.issubdtype(dtype, np.complexfloating):
        return (normal + 1j * random.standard_normal(type_.shape)).astype(dtype)
    return normal.astype(dtype)
