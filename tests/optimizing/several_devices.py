"""Run by test_calls in a process with four devices: shardings and shard_map around an optimised function."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import fusionlab
from tests.optimizing.networks import arguments, energy, repeated

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

given = jax.device_put(walkers, over)
checked = fusionlab.optimize(repeated, pipeline="hoist-loop-invariants", cache=False)
np.testing.assert_allclose(checked(given, 0.5), repeated(walkers, 0.5), rtol=1e-6)
assert checked.fusionlab.decisions[0].compared_on == "the given arguments"

hoist = {"pipeline": "hoist-loop-invariants", **options}
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

explicit = NamedSharding(jax.make_mesh((4,), ("walkers",), axis_types=(AxisType.Explicit,)), PartitionSpec("walkers"))
function = fusionlab.optimize(repeated, **hoist)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    np.testing.assert_allclose(function(jax.device_put(walkers, explicit), 0.5), repeated(walkers, 0.5), rtol=1e-6)
assert any("explicit axes" in str(warning.message) for warning in said), said
assert "use Auto axes or shard_map" in function.fusionlab.reason

with jax.set_mesh(mesh):
    function = fusionlab.optimize(repeated, **hoist)
    np.testing.assert_allclose(function(given, 0.5), repeated(walkers, 0.5), rtol=1e-6)
    assert function.fusionlab.state == "rewritten", function.fusionlab.reason
