"""Inputs on which two programs are compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from fusionlab.hlo.program import Program
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
    constant) is added as noise. The last quarter of the walkers repeats the first with two spin-up electrons
    exchanged, so that both signs of psi occur whatever the parameters are.
    """
    for seed in SEEDS:
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
    """One sample per seed from the types alone: normal floats, small non-negative integers, fair booleans."""
    for seed in SEEDS:
        random = np.random.default_rng(seed)
        yield Sample(f"seed {seed}", tuple(_random(type_.shape, type_.dtype, random) for type_ in program.inputs))


def _perturbed(leaf: Any, random: np.random.Generator) -> Any:
    array = np.asarray(leaf)
    if not np.issubdtype(array.dtype, np.floating):
        return leaf
    spread = float(np.std(array)) or 1.0
    return (array + 0.1 * spread * random.standard_normal(array.shape)).astype(array.dtype)


def _exchanged(walkers: np.ndarray) -> np.ndarray:
    count = len(walkers) // 4
    if count and walkers.shape[1] > 1:
        walkers[-count:] = walkers[:count]
        walkers[-count:, [0, 1]] = walkers[:count, [1, 0]]
    return walkers


def _random(shape: tuple[int, ...], dtype: str, random: np.random.Generator) -> np.ndarray:
    if dtype == "i1":
        return random.integers(0, 2, shape).astype(np.bool_)
    if dtype.startswith(("i", "ui")):
        return random.integers(0, 4, shape).astype(
            dtype.replace("ui", "uint") if dtype[0] == "u" else f"int{dtype[1:]}"
        )
    return random.standard_normal(shape).astype({"f64": np.float64, "f32": np.float32}.get(dtype, np.float32))
