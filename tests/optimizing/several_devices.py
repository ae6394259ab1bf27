"""Run by test_optimize in a process with four devices: shardings and shard_map around an optimised function."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as Spec

import fusionlab
from tests.optimizing.functions import arguments, decision_of, energy, hoisting, laplacians, log_psi, repeated

ON_VARIED = "the given arguments and variants of them"
UNCHECKED = {"cache": False, "check": "never"}


def equal(found, expected, rtol=1e-6, atol=0.0):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)


def require_original(function, *given, expected):
    """It runs as it was, for what is rewritten knows no mesh."""
    equal(function(*given), expected)
    assert "mesh" in function.fusionlab.reason


def require_divided(function, *given):
    text = function.lower(*given).compile().as_text()
    assert "all-gather" not in text, "the walkers are gathered"
    assert "all-reduce" not in text, "the walkers are summed over"


# Auto axes
mesh = jax.make_mesh((4,), ("walkers",), axis_types=(AxisType.Auto,))
over, everywhere = (NamedSharding(mesh, spec) for spec in (Spec("walkers"), Spec()))
parameters, walkers = arguments(walkers=8)

function = fusionlab.optimize(energy, in_shardings=(everywhere, over), out_shardings=over, **UNCHECKED)
found = function(parameters, walkers)
equal(found, jax.jit(energy)(parameters, walkers), rtol=1e-5)
assert found.sharding == over
decision_of(function)
require_divided(function, parameters, walkers)

over_auto = jax.device_put(walkers, over)
checked = hoisting(repeated, check="once", exact_s=0)  # an exact verdict would spare the variants
equal(checked(over_auto, 0.5), repeated(walkers, 0.5))
assert decision_of(checked).compared_on == ON_VARIED

with jax.set_mesh(mesh):
    function = hoisting(repeated)
    equal(function(over_auto, 0.5), repeated(walkers, 0.5))
    decision_of(function)

# shard_map; with check_vma=True, JAX itself asks for casts inside the energy's linearized gradient.
for original, optimize, check_vma in (
    (energy, lambda f: fusionlab.optimize(f, **UNCHECKED), False),
    (lambda p, x: repeated(x, p[1][1][0]), hoisting, True),
):
    function = optimize(original)
    specs = {"in_specs": (Spec(), Spec("walkers")), "out_specs": Spec("walkers")}
    mapped = jax.jit(jax.shard_map(function, mesh=mesh, check_vma=check_vma, **specs))
    equal(mapped(parameters, walkers), original(parameters, walkers), rtol=1e-5)
    assert "2x2x3xf32" in map(str, decision_of(function).original.inputs), "each device has its two walkers"

exact = jax.vmap(jax.hessian(lambda y: log_psi(parameters, y.reshape(2, 3))))(walkers.reshape(8, 6))
for check_vma in (False, True):
    laplacian = fusionlab.laplacian(lambda x: log_psi(parameters, x), **UNCHECKED)
    specs = {"in_specs": Spec("walkers"), "out_specs": Spec("walkers"), "check_vma": check_vma}
    equal(jax.jit(jax.shard_map(jax.vmap(laplacian), mesh=mesh, **specs))(walkers)[0], jnp.trace(exact, 0, 1, 2), 1e-4)
    assert "are the Laplacian of" in str(decision_of(laplacian).events)

function = hoisting(lambda x: jax.lax.psum(repeated(x, x), "walkers"))
total = jax.jit(jax.shard_map(function, mesh=mesh, in_specs=Spec("walkers"), out_specs=Spec()))
equal(total(jnp.ones(4)), repeated(jnp.ones(4), 1.0).sum(keepdims=True))
assert "mesh" in function.fusionlab.reason
equal(hoisting(total)(jnp.ones(4)), total(jnp.ones(4)))

# Explicit axes
explicit_mesh = jax.make_mesh((4,), ("walkers",), axis_types=(AxisType.Explicit,))
explicit, whole = (NamedSharding(explicit_mesh, spec) for spec in (Spec("walkers"), Spec()))
w, x = parameters[0][0], walkers.reshape(8, 6)[:, :3]
expected, given = laplacians(w, x), (jax.device_put(w, whole), jax.device_put(x, explicit))
by_itself, inside = (fusionlab.optimize(laplacians, cache=False, check=check, exact_s=0) for check in ("once", "never"))
for function, called, on in ((by_itself, by_itself, ON_VARIED), (inside, jax.jit(inside), "")):
    found = called(*given)
    equal(found, expected, rtol=1e-4)
    assert found.sharding.is_equivalent_to(explicit, 1), found.sharding
    assert decision_of(function).compared_on == on
require_divided(inside, *given)

function = hoisting(lambda x, w, unused: repeated(x, w))
equal(jax.jit(jax.vmap(function, (0, None, 0)))(given[1], 0.5, given[1]), repeated(x, 0.5))
decision_of(function)


def of_its_mesh(x, w):
    """Another function without its mesh, which must not be rewritten instead."""
    return repeated(x, w) / max(1, jax.typeof(x).sharding.mesh.size)


require_original(hoisting(of_its_mesh, check="once"), given[1], 0.5, expected=repeated(x, 0.5) / 4)
resharded = hoisting(lambda x, w: jax.sharding.reshard(repeated(x, w), whole))
require_original(resharded, given[1], 0.5, expected=repeated(x, 0.5))

with jax.set_mesh(explicit_mesh):
    equal(by_itself(*given), expected, rtol=1e-4)
    slopes = [jax.grad(lambda x, f=f: f(given[0], x).sum())(given[1]) for f in (inside, laplacians)]
    equal(*slopes, rtol=1e-5, atol=1e-5)
    resharded = hoisting(lambda x, w: jax.sharding.reshard(repeated(x, w), Spec()))
    require_original(resharded, given[1], 0.5, expected=repeated(x, 0.5))
