"""Psiformer as oneQMC implements it: a transformer over electrons, full determinants, and a Jastrow factor.

Source of architecture and constants: oneQMC wf/psiformer.py with its defaults (extra biases on, no layer norm, one
projection for both spins, no flash attention); ansatz by von Glehn, Spencer and Pfau, arXiv:2211.13672.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from fusionlab.workloads.ansatz import Ansatz, assemble
from fusionlab.workloads.layers.dense import init_linear, linear
from fusionlab.workloads.layers.determinants import log_sum_of_determinants
from fusionlab.workloads.layers.initial import cut_normal, normal, ones
from fusionlab.workloads.layers.jastrow import ANTIPARALLEL, PARALLEL, psiformer_decay
from fusionlab.workloads.layers.pair_distances import opposite_spin_pairs, pair_distances
from fusionlab.workloads.layers.self_attention import self_attention
from fusionlab.workloads.molecule import Molecule


@dataclass(frozen=True)
class PsiformerSize:
    """Attention heads, channels of one head, transformer layers and determinants."""

    heads: int
    head_width: int
    layers: int
    determinants: int

    @property
    def width(self) -> int:
        """Channels of an electron's representation."""
        return self.heads * self.head_width


# A tiny one still needs at least as many channels as there are electrons: fewer make every Slater matrix singular.
SIZES = {"full": PsiformerSize(4, 64, 4, 16), "tiny": PsiformerSize(2, 16, 2, 2)}


def build(molecule: Molecule, size: str = "full") -> Ansatz:
    """Psiformer on ``molecule``; 1,363,778 parameters in 46 arrays for CH4 at full size. InputError: unknown size."""
    return assemble("psiformer", molecule, size, SIZES, _initial, _log_psi)


def _initial(molecule: Molecule, size: PsiformerSize) -> dict[str, Any]:
    electrons, nuclei, width = molecule.electrons, len(molecule.charges), size.width
    envelope = ones(size.determinants, electrons, 1, nuclei)

    def layer() -> dict[str, Any]:
        attention = {part: init_linear(width, width, normal) for part in ("query", "key", "value", "output")}
        return {"attention": attention, "dense": init_linear(width, width, cut_normal)}

    return {
        "encoder": init_linear(4 * nuclei + 1, width, cut_normal, bias=None),
        "layers": [layer() for _ in range(size.layers)],
        "readout": init_linear(width, size.determinants * electrons, cut_normal, bias=None),
        "envelope_weight": envelope,
        "envelope_decay": envelope,
        "jastrow": {"same": ones(), "opposite": ones()},
    }


def _log_psi(parameters: Any, r: Any, molecule: Molecule, size: PsiformerSize) -> tuple[Any, Any]:
    with jax.named_scope("stage_a"):
        features, nuclear_distances = _features(r, molecule)
        h = linear(parameters["encoder"], features)
    with jax.named_scope("stage_b"):
        for layer in parameters["layers"]:
            h = h + self_attention(layer["attention"], h, size.heads)
            h = h + jnp.tanh(linear(layer["dense"], h))
    with jax.named_scope("stage_c"):
        orbitals = _orbitals(parameters, h, nuclear_distances, size.determinants)
    with jax.named_scope("stage_d"):
        sign, log_sum = log_sum_of_determinants(orbitals, constant_shift=True)
        return sign, log_sum + _jastrow(parameters["jastrow"], r, molecule)


def _features(r: Any, molecule: Molecule) -> tuple[Any, Any]:
    """``[electrons, 4 nuclei + 1]``: (d log(1 + |d|) / |d|, log(1 + |d|)) per nucleus, then the spin as +1 or -1.

    Also the distances ``[electrons, nuclei]``. An electron exactly on a nucleus has no value, as in oneQMC.
    """
    difference = r[:, None, :] - jnp.asarray(molecule.nuclei, r.dtype)
    distance = jnp.sqrt(jnp.sum(difference * difference, axis=-1, keepdims=True))
    scaled = jnp.log1p(distance)
    per_nucleus = jnp.concatenate([difference * scaled / distance, scaled], axis=-1)
    spins = jnp.asarray([1.0] * molecule.n_up + [-1.0] * molecule.n_down, r.dtype)
    return jnp.concatenate([per_nucleus.reshape(r.shape[0], -1), spins[:, None]], axis=-1), distance[..., 0]


def _orbitals(parameters: Any, h: Any, nuclear_distances: Any, determinants: int) -> Any:
    """``[determinants, electrons, orbitals]``: projection times sum_I pi exp(-|sigma r_I|), one set for both spins."""
    electrons = h.shape[0]
    projected = linear(parameters["readout"], h).reshape(electrons, determinants, electrons).swapaxes(0, 1)
    decay = jnp.exp(-jnp.abs(parameters["envelope_decay"] * nuclear_distances))
    envelope = jnp.sum(parameters["envelope_weight"] * decay, axis=-1)
    return projected * envelope.swapaxes(1, 2)


def _jastrow(parameters: Any, r: Any, molecule: Molecule) -> Any:
    """The cusps of all pairs i < j; both kinds are computed for every pair and one is chosen, as in oneQMC."""
    distance = pair_distances(r)
    opposite = jnp.asarray(opposite_spin_pairs(molecule.n_up, molecule.n_down))
    same = psiformer_decay(PARALLEL, parameters["same"], distance)
    other = psiformer_decay(ANTIPARALLEL, parameters["opposite"], distance)
    return jnp.sum(jnp.where(opposite, other, same))
