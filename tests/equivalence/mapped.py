"""Local energies on several devices as StableHLO, lowered without any of them."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as Spec

from fusionlab.hlo.program import Program
from tests.forms.forms import FORMS
from tests.forms.networks import NETWORKS

SHARDED, SHARED = Spec("walkers"), Spec()


def energies(x):
    """With the value whose Laplacian they are, without which a program does not hold it."""
    network = NETWORKS["mlp-with-pairs"]
    return jax.vmap(lambda y: FORMS["fori"](network, y) + network(y))(x)


def clipped(x):
    """The mean over all walkers of energies, clipped by their mean absolute deviation, and the energies."""
    local = energies(x)
    mean = lax.pmean(local.mean(), "walkers")
    spread = lax.pmean(jnp.abs(local - mean).mean(), "walkers")
    return lax.pmean(jnp.clip(local, mean - spread, mean + spread).mean(), "walkers"), local


def lowered(function, devices=4, walkers=16, outside=(SHARED, SHARDED), platform="cpu"):
    """``function`` of [walkers, 9] over ``devices``."""
    mesh = AbstractMesh((devices,), ("walkers",), axis_types=(AxisType.Auto,))
    mapped = jax.shard_map(function, mesh=mesh, in_specs=SHARDED, out_specs=outside, check_vma=False)
    traced = jax.jit(mapped).trace(jax.ShapeDtypeStruct((walkers, 9), jnp.float32))
    module = traced.lower(lowering_platforms=(platform,)).compiler_ir("stablehlo")
    return Program.from_module(module, name="mapped", provenance="a test")
