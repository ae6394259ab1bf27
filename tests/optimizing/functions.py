"""A small network with a Laplacian by replay, as its authors would write it, a loop with something to hoist, and passes
with a bug."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

import fusionlab
from fusionlab.hlo.program import Program
from fusionlab.optimizing.optimize import Optimized
from fusionlab.optimizing.rewriting import Policy
from fusionlab.passes.interface import Applied, Pass, Result

HOIST = "licm"


def hoisting(function, **options):
    """``function`` optimised by HOIST, which is not checked unless ``options`` say so."""
    return fusionlab.optimize(function, HOIST, **{"check": "never", "cache": False, **options})


def decision_of(function):
    """The decision on a function of one program, which is rewritten."""
    (decision,) = function.fusionlab.decisions
    assert decision.rewritten is not None, decision.reason
    return decision


def log_psi(parameters, x):
    hidden = x.reshape(-1, 3)
    for weights, bias in parameters:
        hidden = jnp.tanh(hidden @ weights + bias + hidden.mean(0) @ weights)
    return jnp.sum(hidden**2)


def kinetic(parameters, r):
    """Of one walker [electrons, 3]."""
    x = r.reshape(-1)
    gradient, jvp = jax.linearize(jax.grad(lambda x: log_psi(parameters, x)), x)
    eye = jnp.eye(x.size)
    laplacian = jax.lax.fori_loop(0, x.size, lambda i, sum_: sum_ + jvp(eye[i])[i], 0.0)
    return -0.5 * (laplacian + gradient @ gradient)


def energy(parameters, walkers):
    """Of walkers [walkers, electrons, 3]."""
    return jax.vmap(kinetic, (None, 0))(parameters, walkers)


def arguments(walkers=4, electrons=2):
    keys = jax.random.split(jax.random.key(0), 3)
    parameters = [
        (jax.random.normal(keys[0], (3, 5)) / 2, jnp.ones(5) / 10),
        (jax.random.normal(keys[1], (5, 5)) / 2, jnp.zeros(5)),
    ]
    return parameters, jax.random.normal(keys[2], (walkers, electrons, 3))


def repeated(x, w):
    """Five times x -> x sin(w): sin(w) is computed in every trip until it is hoisted."""
    return jax.lax.fori_loop(0, 5, lambda i, value: value * jnp.sin(w), x)


def of_integers(x, w):
    """Finite at integers x alone; at 0, sin(w) is hidden."""
    return jnp.where(x == jnp.round(x), x, jnp.nan) * jnp.sin(w)


def laplacians(w, x):
    """Of sum(tanh(x w)^2) for walkers [walkers, 3], batched by hand: ``vmap`` of a loop fails over Explicit axes in JAX
    0.10.2."""
    gradient, jvp = jax.linearize(jax.grad(lambda x: jnp.sum(jnp.tanh(x @ w) ** 2)), x)
    sharding = jax.typeof(x).sharding

    def add(k, sum_):
        along = jnp.broadcast_to(jnp.eye(3)[k], x.shape, out_sharding=None if sharding.mesh.empty else sharding)
        return sum_ + jnp.sum(jvp(along) * along, axis=1)

    return jax.lax.fori_loop(0, 3, add, 0.0 * gradient[:, 0])


class Rewording(Pass):
    """A pass that replaces ``old`` by ``new`` in the module's text."""

    old: ClassVar[str]
    new: ClassVar[str]

    def run(self, program, setting):
        assert self.old in program.text
        text = program.text.replace(self.old, self.new)
        other = Program(program.name, text.encode(), program.platform, program.provenance)
        return Result(other, (Applied(self.name, "made it wrong", "", self.name),))


@dataclass(frozen=True)
class SineToCosine(Rewording):
    """A wrong rewrite: sin becomes cos."""

    name: ClassVar[str] = "sine-to-cosine"
    old, new = "stablehlo.sine", "stablehlo.cosine"


@dataclass(frozen=True)
class OtherConstant(Rewording):
    """A constant of 1e-30 becomes another one."""

    name: ClassVar[str] = "other-constant"
    old, new = "1.000000e-30", "2.000000e-30"


@dataclass(frozen=True)
class Broken(Pass):
    """A pass with a bug."""

    name: ClassVar[str] = "broken"

    def run(self, program, setting):
        raise ZeroDivisionError("a bug")


def made_by(pass_, function=repeated, **policy):
    return Optimized(function, Policy((pass_,), **policy), {})


def wrong(function=repeated, **policy):
    """``function`` with cosines in the place of its sines."""
    return made_by(SineToCosine(), function, **policy)
