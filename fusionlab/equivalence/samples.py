"""Inputs on which two programs are compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from fusionlab.codegen.executable import numpy_dtype
from fusionlab.hlo.program import Program, TensorType
from fusionlab.workload import Workload

SEEDS = (1, 2, 3)


@dataclass(frozen=True)
class Sample:
    """Flat arguments of a program, and what they are."""

    label: str
    arrays: tuple[np.ndarray, ...]


def workload_samples(workload: Workload) -> Iterator[Sample]:
    """One sample per seed: fresh parameters and walkers; from the second seed on, the parameters are perturbed.

    Parameters at their initial values hide terms (zeros, ones), so a tenth of each array's spread (or 0.1 where it is
    constant) is added as noise. The last quarter of the walkers (at least one, where there are two) repeats the
    first with electrons 0 and 1 exchanged: where these are both spin-up, both signs of psi occur whatever the
    parameters are.
    """
    for seed in SEEDS:
        with jax.enable_x64(workload.dtype == "float64"):
            arguments = workload.inputs(seed)
        random = np.random.default_rng(seed)
        named = dict(zip(workload.argument_names, arguments, strict=True))
        if seed != SEEDS[0]:
            named["parameters"] = jax.tree.map(lambda leaf, rng=random: _perturbed(leaf, rng), named["parameters"])
        if "walkers" in named:
            named["walkers"] = _exchanged(np.array(named["walkers"]))
        leaves = jax.tree.leaves(tuple(named.values()))
        label = f"seed {seed}, {'initial' if seed == SEEDS[0] else 'perturbed'} parameters"
        yield Sample(label, tuple(np.asarray(leaf) for leaf in leaves))


def signature_samples(program: Program) -> Iterator[Sample]:
    """One sample per seed from the types alone: normal floats, small non-negative integers, fair booleans.

    ValueError for an element type that NumPy does not have.
    """
    for seed in SEEDS:
        random = np.random.default_rng(seed)
        yield Sample(f"seed {seed}", tuple(_random(type_, random) for type_ in program.inputs))


def _perturbed(leaf: Any, random: np.random.Generator) -> Any:
    array = np.asarray(leaf)
    if not np.issubdtype(array.dtype, np.floating):
        return leaf
    spread = float(np.std(array)) or 1.0
    return (array + 0.1 * spread * random.standard_normal(array.shape)).astype(array.dtype)


def _exchanged(walkers: np.ndarray) -> np.ndarray:
    count = max(len(walkers) // 4, min(1, len(walkers) - 1))
    if count and walkers.shape[1] > 1:
        walkers[-count:] = walkers[:count]
        walkers[-count:, [0, 1]] = walkers[:count, [1, 0]]
    return walkers


def _random(type_: TensorType, random: np.random.Generator) -> np.ndarray:
    dtype = numpy_dtype(type_)
    if dtype == np.bool_:
        return random.integers(0, 2, type_.shape).astype(dtype)
    if np.issubdtype(dtype, np.integer):
        return random.integers(0, 4, type_.shape).astype(dtype)
    normal = np.asarray(random.standard_normal(type_.shape))
    if np.issubdtype(dtype, np.complexfloating):
        return (normal + 1j * random.standard_normal(type_.shape)).astype(dtype)
    return normal.astype(dtype)
