"""Run by test_calls in a process with four devices: shardings and shard_map around an optimised function."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import fusionlab
from tests.optimizing.networks import arguments, energy, laplacians, repeated

mesh = jax.make_mesh((4,), ("walkers",), axis_types=(AxisType.Auto,))
over, everywhere = (NamedSharding(mesh, spec) for spec in (PartitionSpec("walkers"), PartitionSpec()))
parameters, walkers = arguments(walkers=8)
expected = jax.jit(energy)(parameters, walkers)
options = {"cache": False, "check": "never"}

function = fusionlab.optimize(energy, in_shardings=(everywhere, over), out_shardings=over, **options)
found = function(parameters, walkers)
np.testing.assert_allclose(found, expected, rtol=1e-5)
assert found.sharding == over
assert function.fusionlab.state == "rewritten", function.fusionlab.reason
text = function.lower(parameters, walkers).compile().as_text()
assert "all-gather" not in text, "the walkers are gathered"
assert "all-reduce" not in text, "the walkers are summed over"

over_auto = jax.device_put(walkers, over)
checked = fusionlab.optimize(repeated, pipeline="licm", cache=False)
np.testing.assert_allclose(checked(over_auto, 0.5), repeated(walkers, 0.5), rtol=1e-6)
assert checked.fusionlab.decisions[0].compared_on == "the given arguments and variants of them"

hoist = {"pipeline": "licm", **options}
# With check_vma=True, JAX itself asks for casts inside the energy's linearized gradient.
for original, chosen, check_vma in ((energy, options, False), (lambda p, x: repeated(x, p[1][1][0]), hoist, True)):
    function = fusionlab.optimize(original, **chosen)
    mapped = jax.shard_map(
        function,
        mesh=mesh,
        in_specs=(PartitionSpec(), PartitionSpec("walkers")),
        out_specs=PartitionSpec("walkers"),
        check_vma=check_vma,
    )
    np.testing.assert_allclose(jax.jit(mapped)(parameters, walkers), original(parameters, walkers), rtol=1e-5)
    (decision,) = function.fusionlab.decisions
    assert decision.rewritten is not None, decision.reason
    assert "2x2x3xf32" in map(str, decision.original.inputs), "each device has its two walkers"

function = fusionlab.optimize(lambda x: jax.lax.psum(repeated(x, x), "walkers"), **hoist)
total = jax.jit(jax.shard_map(function, mesh=mesh, in_specs=PartitionSpec("walkers"), out_specs=PartitionSpec()))
np.testing.assert_allclose(total(jnp.ones(4)), repeated(jnp.ones(4), 1.0).sum(keepdims=True), rtol=1e-6)
assert "mesh" in function.fusionlab.reason

around = fusionlab.optimize(total, **hoist)
np.testing.assert_allclose(around(jnp.ones(4)), total(jnp.ones(4)), rtol=1e-6)

explicit_mesh = jax.make_mesh((4,), ("walkers",), axis_types=(AxisType.Explicit,))
explicit, whole = (NamedSharding(explicit_mesh, spec) for spec in (PartitionSpec("walkers"), PartitionSpec()))
w, x = parameters[0][0], walkers.reshape(8, 6)[:, :3]
expected = laplacians(w, x)
given = jax.device_put(w, whole), jax.device_put(x, explicit)
functions = [fusionlab.optimize(laplacians, cache=False, check=check) for check in ("once", "never")]
for function, around, on in zip(
    functions, (lambda f: f, jax.jit), ("the given arguments and variants of them", ""), strict=True
):
    found = around(function)(*given)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert found.sharding.is_equivalent_to(explicit, 1), found.sharding
    (decision,) = function.fusionlab.decisions
    assert decision.rewritten is not None, decision.reason
    assert decision.compared_on == on
assert "all-gather" not in function.lower(*given).compile().as_text(), "the walkers are gathered"

function = fusionlab.optimize(lambda x, w, unused: repeated(x, w), **hoist)
batched = jax.jit(jax.vmap(function, (0, None, 0)))
np.testing.assert_allclose(batched(given[1], 0.5, given[1]), repeated(x, 0.5), rtol=1e-6)
assert function.fusionlab.state == "rewritten", function.fusionlab.reason


def of_its_mesh(x, w):
    return repeated(x, w) / max(1, jax.typeof(x).sharding.mesh.size)


# Without its mesh it is another function, which must not be rewritten in its place.
function = fusionlab.optimize(of_its_mesh, pipeline="licm", cache=False)
np.testing.assert_allclose(function(given[1], 0.5), repeated(x, 0.5) / 4, rtol=1e-6)
assert "mesh" in function.fusionlab.reason

function = fusionlab.optimize(lambda x, w: jax.sharding.reshard(repeated(x, w), whole), **hoist)
np.testing.assert_allclose(function(given[1], 0.5), repeated(x, 0.5), rtol=1e-6)
assert "mesh" in function.fusionlab.reason


def moved(x, w):
    return jax.sharding.reshard(repeated(x, w), PartitionSpec())


with jax.set_mesh(explicit_mesh):
    np.testing.assert_allclose(functions[0](*given), expected, rtol=1e-4)
    slope, of_original = (jax.grad(lambda x, f=f: f(given[0], x).sum())(given[1]) for f in (functions[1], laplacians))
    np.testing.assert_allclose(slope, of_original, rtol=1e-5, atol=1e-5)
    function = fusionlab.optimize(moved, **hoist)
    np.testing.assert_allclose(function(given[1], 0.5), repeated(x, 0.5), rtol=1e-6)
    assert "mesh" in function.fusionlab.reason

with jax.set_mesh(mesh):
    function = fusionlab.optimize(repeated, **hoist)
    np.testing.assert_allclose(function(over_auto, 0.5), repeated(walkers, 0.5), rtol=1e-6)
    assert function.fusionlab.state == "rewritten", function.fusionlab.reason
