"""Run by test_optimize in a process with four devices: shardings and shard_map around an optimised function."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as Spec

import fusionlab
from tests.forms.forms import FORMS
from tests.forms.networks import NETWORKS
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

# Collectives: what stands between them is rewritten, in every arrangement.
function = hoisting(lambda x: jax.lax.psum(repeated(x, x), "walkers"))
total = jax.jit(jax.shard_map(function, mesh=mesh, in_specs=Spec("walkers"), out_specs=Spec()))
equal(total(jnp.ones(4)), repeated(jnp.ones(4), 1.0).sum(keepdims=True))
decision_of(function)


def clipped(x, weight=1.0):
    """Energies around their mean by mean absolute deviations, as in training, and their mean over all walkers."""
    local = jax.vmap(functools.partial(FORMS["fori"], NETWORKS["mlp-with-pairs"]))(x)
    mean = lax.pmean(local.mean(), "walkers")
    spread = lax.pmean(jnp.abs(local - mean).mean(), "walkers")
    kept = jnp.clip(local, mean - spread, mean + spread)
    return lax.pmean(weight * kept.mean(), "walkers"), kept


def moved(x):
    """Steps of walkers, with collectives in the loop."""

    def step(x, _):
        energy, _ = clipped(x)
        return x + 0.1 * jnp.sin(x) * energy, energy

    return lax.scan(step, x, length=2)


def one_laplacian(function):
    """The decision of ``function``; that on its other parts is that there is nothing to rewrite."""
    [found] = [decision for decision in function.fusionlab.decisions if decision.rewritten is not None]
    assert "are the Laplacian of" in str(found.events)
    assert found.verdict is None or "identical" in found.verdict.line
    return found


positions = np.random.default_rng(0).standard_normal((8, 9)).astype(np.float32)
divided, by_device = {"mesh": mesh, "in_specs": Spec("walkers")}, positions.reshape(4, 2, 9)
for of_walkers, specs in ((clipped, (Spec(), Spec("walkers"))), (moved, (Spec("walkers"), Spec()))):
    on_mesh = functools.partial(jax.shard_map, **divided, out_specs=specs, check_vma=False)
    expected = jax.jit(on_mesh(of_walkers))(positions)
    inside, outside = (fusionlab.optimize(each, cache=False) for each in (of_walkers, on_mesh(of_walkers)))
    for found in (jax.jit(on_mesh(inside))(positions), outside(positions)):
        for ours, theirs in zip(found, expected, strict=True):
            equal(ours, theirs, rtol=1e-5, atol=1e-5)
    for function in (inside, outside):
        assert "2x9xf32" in map(str, one_laplacian(function).original.inputs), "each device has its two walkers"
for arrangement in (
    lambda optimize: jax.pmap(optimize(clipped), axis_name="walkers"),
    lambda optimize: optimize(jax.pmap(clipped, axis_name="walkers")),
    lambda optimize: jax.vmap(optimize(clipped), axis_name="walkers"),
):
    made = []

    def optimized(f, made=made):
        made.append(fusionlab.optimize(f, **UNCHECKED))
        return made[0]

    expected = jax.vmap(clipped, axis_name="walkers")(by_device)
    for ours, theirs in zip(arrangement(optimized)(by_device), expected, strict=True):
        equal(ours, theirs, rtol=1e-5, atol=1e-5)
    one_laplacian(made[0])

# With check_vma=True, casts between the collectives are part of the function.
laplacian = fusionlab.laplacian(NETWORKS["mlp-with-pairs"], **UNCHECKED)
centred = fusionlab.optimize(
    lambda x: (local := jax.vmap(laplacian)(x)[0]) - lax.pmean(jnp.clip(local, -1, 1).mean(), "walkers"), **UNCHECKED
)
found = jax.jit(jax.shard_map(centred, **divided, out_specs=Spec("walkers")))(positions)
local = jax.vmap(laplacian)(positions)[0]
equal(found, local - jnp.clip(local, -1, 1).mean(), 1e-4, 1e-4)
one_laplacian(centred)

slopes = [
    jax.grad(
        lambda w, f=f: jax.shard_map(
            f, mesh=mesh, in_specs=(Spec("walkers"), Spec()), out_specs=(Spec(), Spec("walkers")), check_vma=False
        )(positions, w)[0]
    )(1.5)
    for f in (clipped, fusionlab.optimize(clipped, **UNCHECKED))
]
equal(*slopes, rtol=1e-5)

arithmetic = fusionlab.optimize(lambda x: lax.psum(jnp.sin(x), "walkers"), **UNCHECKED)
equal(jax.vmap(arithmetic, axis_name="walkers")(jnp.ones(4)), 4 * jnp.sin(1) * jnp.ones(4))
assert "nothing to rewrite" in arithmetic.fusionlab.reason

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
