"""The drift of a Langevin proposal: the gradient of log|psi|, tamed near nuclei and where it is large."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from fusionlab.workloads.molecule import Molecule


def limited_drift(gradient: Any, r: Any, molecule: Molecule, step: Any) -> Any:
    """``gradient`` ``[electrons, 3]`` shortened for a time step ``step``; ``r`` as it, both in bohr units.

    With v the gradient of one electron, z its vector from the nearest nucleus and Z that charge:
    a = (1 + v.z / |v||z|) / 2 + Z^2 z^2 / (10 (4 + Z^2 z^2)); v is scaled by 2 / (1 + sqrt(1 + 2 a v^2 step)) (after
    Umrigar, Nightingale and Runge, J. Chem. Phys. 99, 2865, 1993), and the move ``step * v`` is cut to the distance
    |z| (DeepQMC 1.2.0 sampling/sampling_utils.py).
    """
    tiny = jnp.asarray(jnp.finfo(r.dtype).eps, r.dtype)
    differences = r[:, None, :] - jnp.asarray(molecule.nuclei, r.dtype)
    squares = jnp.sum(differences**2, axis=-1)
    nearest = jnp.argmin(squares, axis=-1)
    z2 = jnp.take_along_axis(squares, nearest[:, None], axis=1)[:, 0]
    z = jnp.take_along_axis(differences, nearest[:, None, None], axis=1)[:, 0]
    charge = jnp.asarray(molecule.charges, r.dtype)[nearest]
    distance = jnp.sqrt(z2)
    v2 = jnp.sum(gradient**2, axis=-1)
    cosine = jnp.sum(gradient * z, axis=-1) / (jnp.maximum(jnp.sqrt(v2), tiny) * jnp.maximum(distance, tiny))
    charge_term = charge**2 * z2
    a = (1 + cosine) / 2 + charge_term / (10 * (4 + charge_term))
    drift = gradient * (2 / (1 + jnp.sqrt(1 + 2 * a * v2 * step)))[:, None]
    speed = jnp.maximum(jnp.sqrt(jnp.sum(drift**2, axis=-1)), tiny)
    return drift * jnp.minimum(1, distance / (step * speed))[:, None]
