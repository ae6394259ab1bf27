"""Orbformer (oneQMC's ``orbformer-se``): a transformer over electrons whose orbitals come from the molecule.

In mode ``chem-pretrain`` a network over the nuclei and an orbital generator make the readout and the envelopes, so
one set of parameters serves many molecules; in mode ``leaf`` those are parameters themselves. Source of architecture
and constants: oneQMC wf/orbformer with the defaults of its command line (arXiv:2506.19960).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.errors import InputError, unknown
from fusionlab.workloads.ansatz import Ansatz, at_precision
from fusionlab.workloads.layers.attention import first_distance_scales
from fusionlab.workloads.layers.determinants import log_sum_of_determinants
from fusionlab.workloads.layers.electron_transformer import (
    electron_features,
    electron_transformer,
    init_electron_features,
    init_electron_transformer,
)
from fusionlab.workloads.layers.initial import Initial, drawing, ones
from fusionlab.workloads.layers.near_equal import join_determinants, near_equal_determinants, unit_cut_normal
from fusionlab.workloads.layers.nuclei_network import init_nuclei_network, look_up, nuclei_network
from fusionlab.workloads.layers.orbital_generator import init_orbital_generator, orbital_generator
from fusionlab.workloads.layers.padded_molecule import Dimensions, System, load_system, place_electrons
from fusionlab.workloads.layers.pair_distances import distance_matrix, opposite_spin_pairs, pair_distances
from fusionlab.workloads.layers.vector_features import smooth_length
from fusionlab.workloads.molecule import Molecule
from fusionlab.workloads.upstream import UPSTREAM

MODES = ("chem-pretrain", "leaf")
ATTENTIONS = ("plain", "flash")


@dataclass(frozen=True)
class OrbformerSize:
    """Numbers of heads, channels, layers, determinants and envelopes per nucleus."""

    heads: int
    head_width: int
    layers: int
    determinants: int
    envelopes: int
    feature_heads: int
    nuclei_width: int
    nuclei_heads: int
    nuclei_layers: int
    orbital_width: int
    orbital_heads: int
    orbital_layers: int

    @property
    def width(self) -> int:
        """Channels of an electron's representation."""
        return self.heads * self.head_width


SIZES = {
    "full": OrbformerSize(8, 32, 4, 16, 8, 16, 64, 2, 3, 128, 4, 3),
    "tiny": OrbformerSize(2, 16, 2, 2, 2, 4, 8, 2, 2, 8, 2, 2),
}


@dataclass(frozen=True)
class _Model:
    molecule: Molecule
    dimensions: Dimensions
    size: OrbformerSize
    mode: str
    attention: str


def build(
    molecule: Molecule,
    size: str = "full",
    *,
    mode: str = "chem-pretrain",
    attention: str = "plain",
    dimensions: Dimensions | None = None,
) -> Ansatz:
    """Orbformer on ``molecule``; 3,029,650 parameters in 88 arrays for CH4 at full size (leaf: 1,764,370 in 50).

    ``attention="flash"`` uses one fused kernel per attention where the program is lowered for CUDA. ``dimensions``
    pads nuclei and electrons to more slots than the molecule needs. InputError: a name or dimension does not fit.
    """
    for kind, given, known in (("size", size, SIZES), ("mode", mode, MODES), ("attention", attention, ATTENTIONS)):
        if given not in known:
            raise unknown(kind, given, known)
    if mode == "chem-pretrain" and molecule.charge != 0:
        raise InputError(
            f"orbformer's orbital generator makes one orbital per unit of nuclear charge: {molecule.name} must be "
            f"neutral, not of charge {molecule.charge}"
        )
    dimensions = dimensions or Dimensions.of(molecule)
    dimensions.require(molecule)
    model = _Model(molecule, dimensions, SIZES[size], mode, attention)
    upstream = UPSTREAM["orbformer"]
    return Ansatz(
        name="orbformer",
        molecule=molecule,
        init=_init(model),
        log_psi=at_precision(upstream.matmul_precision, lambda parameters, r: _log_psi(parameters, r, model)),
        upstream=upstream,
    )


def _init(model: _Model) -> Callable[[Any, Any], Any]:
    """One draw, and then the two tables that are not random."""
    size = model.size
    draw = drawing(
        {
            "features": init_electron_features(size.width, size.nuclei_width),
            "transformer": init_electron_transformer(size.width, size.heads, size.layers),
            "exponents": ones(model.dimensions.species, size.envelopes),
            "jastrow": Initial((2,), mean=math.log(math.e - 1)),  # softplus of it is 1
            **(_generators if model.mode == "chem-pretrain" else _leaves)(model),
        }
    )

    def init(key: Any, dtype: Any) -> Any:
        parameters = join_determinants(draw(key, dtype))
        parameters["exponents"] = jnp.asarray(_first_exponents(model.dimensions.species, size.envelopes), dtype)
        for block in parameters["transformer"]:
            block["attention"]["distance_scale"] = jnp.asarray(first_distance_scales(size.heads), dtype)
        return parameters

    return init


def _generators(model: _Model) -> dict[str, Any]:
    size, dims, width = model.size, model.dimensions, model.size.orbital_width
    envelope = near_equal_determinants(width, size.envelopes, size.determinants, width**-0.5)
    readout = near_equal_determinants(width, size.width, size.determinants, (width * size.width) ** -0.5)
    return {
        "nuclei": init_nuclei_network(dims.species, size.nuclei_width, size.nuclei_layers),
        "orbitals": init_orbital_generator(dims.charge, width, size.nuclei_width, size.orbital_layers),
        "envelope_up": envelope,
        "envelope_down": envelope,
        "readout_up": readout,
        "readout_down": readout,
    }


def _leaves(model: _Model) -> dict[str, Any]:
    size, dims = model.size, model.dimensions
    envelope = Initial((dims.electrons, dims.nuclei, size.envelopes, size.determinants), mean=size.envelopes**-0.5)
    readout = near_equal_determinants(size.width, dims.electrons, size.determinants, size.width**-0.5)
    return {
        "nuclei": unit_cut_normal(dims.nuclei, size.nuclei_width),
        "envelope_up": envelope,
        "envelope_down": envelope,
        "readout_up": readout,
        "readout_down": readout,
    }


def _first_exponents(species: int, envelopes: int) -> np.ndarray:
    """Table ``[species, envelopes]`` with 0.1 + softplus(table) = Z / k, clipped to [1, species + 1]."""
    z, k = np.arange(1, species + 1)[:, None], np.arange(1, envelopes + 1)
    return np.asarray(np.log(np.expm1(np.clip(z / k, 1.0, species + 1.0) - 0.1)))


def _log_psi(parameters: Any, r: Any, model: _Model) -> tuple[Any, Any]:
    size, dims = model.size, model.dimensions
    with jax.named_scope("stage_a"):
        system = load_system(model.molecule, dims, r.dtype)
        x = place_electrons(r, model.molecule, dims)
        differences = x[:, None, :] - system.positions
        pair_mask = system.electron_mask[:, None] & system.nuclei_mask[None, :]
        nodes = parameters["nuclei"]
        if model.mode == "chem-pretrain":
            nodes = nuclei_network(nodes, system, size.nuclei_heads)
        h = electron_features(parameters["features"], differences, nodes, pair_mask, dims.up, size.feature_heads)
        distances = distance_matrix(x, 1e-10)
    with jax.named_scope("stage_b"):
        h = electron_transformer(
            parameters["transformer"], h, distances, system.electron_mask, size.heads, model.attention
        )
        sources = _orbital_sources(parameters, system, nodes, model)
    with jax.named_scope("stage_c"):
        exponents = 0.1 + jax.nn.softplus(look_up(parameters["exponents"], system.species))
        decay = pair_mask[..., None].astype(r.dtype) * jnp.exp(-exponents * smooth_length(differences))
        orbitals = _orbitals(parameters, sources, h, decay, system, model)
    with jax.named_scope("stage_d"):
        filled = system.electron_mask[:, None] & system.electron_mask[None, :]
        orbitals = jnp.where(filled, orbitals, jnp.eye(dims.electrons, dtype=r.dtype))
        sign, log_sum = log_sum_of_determinants(orbitals, constant_shift=True)
        return sign, log_sum + _jastrow(parameters["jastrow"], x, system, dims)


def _orbital_sources(parameters: Any, system: System, nodes: Any, model: _Model) -> tuple[Any, Any] | None:
    if model.mode == "leaf":
        return None
    return orbital_generator(parameters["orbitals"], system, nodes, model.dimensions, model.size.orbital_heads)


def _orbitals(parameters: Any, sources: Any, h: Any, decay: Any, system: System, model: _Model) -> Any:
    """``[determinants, electrons, orbitals]``: envelope times projection, each spin's rows with its own weights."""
    size, up, mask = model.size, model.dimensions.up, system.electron_mask
    rows = []
    for index, (spin, chosen) in enumerate((("up", slice(None, up)), ("down", slice(up, None)))):
        coefficients, weights = parameters[f"envelope_{spin}"], parameters[f"readout_{spin}"]
        if sources is not None:
            coefficients, weights = _generate(coefficients, weights, sources[index], size)
        envelope = jnp.einsum("ojkd,ijk->dio", coefficients, decay[chosen])
        projected = (h[chosen] * mask[chosen, None].astype(h.dtype)) @ weights
        projected = projected.reshape(-1, model.dimensions.electrons, size.determinants).transpose(2, 0, 1)
        rows.append(envelope * (projected * mask.astype(h.dtype)))
    return jnp.concatenate(rows, axis=1)


def _generate(envelope: Any, readout: Any, source: Any, size: OrbformerSize) -> tuple[Any, Any]:
    """Envelope coefficients ``[orbitals, nuclei, envelopes, determinants]`` and projection ``[width, orbitals x d]``.

    ``source`` is ``[orbitals, nuclei, orbital width]``, zero in masked slots; the projection sees its sum over nuclei.
    """
    orbitals, nuclei, _ = source.shape
    coefficients = (source @ envelope).reshape(orbitals, nuclei, size.envelopes, size.determinants)
    weights = (jnp.sum(source, axis=1) @ readout).reshape(orbitals, size.width, size.determinants)
    return coefficients / math.sqrt(size.envelopes), weights.transpose(1, 0, 2).reshape(size.width, -1)


def _jastrow(alpha: Any, x: Any, system: System, dimensions: Dimensions) -> Any:
    """-1/4 sum a exp(-r / a) over same-spin pairs i < j and -1/2 sum b exp(-r / b) over the others, masked."""
    distance = pair_distances(x)
    i, j = np.triu_indices(dimensions.electrons, k=1)
    mask = (system.electron_mask[:, None] & system.electron_mask[None, :])[i, j].astype(x.dtype)
    opposite = jnp.asarray(opposite_spin_pairs(dimensions.up, dimensions.down), x.dtype)
    a, b = jax.nn.softplus(alpha[0]), jax.nn.softplus(alpha[1])
    same_sum = jnp.sum(a * jnp.exp(-distance / a) * (1 - opposite) * mask)
    return -0.25 * same_sum - 0.5 * jnp.sum(b * jnp.exp(-distance / b) * opposite * mask)
