"""Ten small programs that are no wavefunctions: what `fusionlab launches` says of anybody's JAX.

Each is a function and its arguments (shapes alone, so nothing is allocated). Run the file to see, for an absent A100,
how many launches each makes and how many of them carry a scope and a source line:

    python examples/ten_programs.py
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import cho_solve, solve_triangular


def shape(*dims: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    """An argument without its data."""
    return jax.ShapeDtypeStruct(dims, dtype)


class Example(NamedTuple):
    """A function with the shapes of its arguments."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


# A transformer's training step: two layers, checkpointed, with cross entropy and plain gradient descent.


def _norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    with jax.named_scope("norm"):
        return x * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def _attention(p: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    with jax.named_scope("attention"):
        b, t, d = x.shape
        q, k, v = (jnp.reshape(x @ p[name], (b, t, 4, d // 4)) for name in ("q", "k", "v"))
        scores = jnp.einsum("bthc,bshc->bhts", q, k) / (d // 4) ** 0.5
        mask = jnp.tril(jnp.ones((t, t), bool))
        weights = jax.nn.softmax(jnp.where(mask, scores, -1e30), axis=-1)
        return jnp.einsum("bhts,bshc->bthc", weights, v).reshape(b, t, d) @ p["o"]


def _feed_forward(p: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    with jax.named_scope("feed_forward"):
        return jax.nn.gelu(x @ p["up"]) @ p["down"]


def _logits(params: dict[str, Any], tokens: jax.Array) -> jax.Array:
    with jax.named_scope("embed"):
        x = params["embed"][tokens]
    for layer, p in enumerate(params["layers"]):
        with jax.named_scope(f"layer_{layer}"):

            @jax.checkpoint
            def block(p: dict[str, jax.Array], x: jax.Array) -> jax.Array:
                x = x + _attention(p, _norm(x, p["norm_1"]))
                return x + _feed_forward(p, _norm(x, p["norm_2"]))

            x = block(p, x)
    with jax.named_scope("readout"):
        return x @ params["embed"].T


def transformer_step(params: dict[str, Any], tokens: jax.Array) -> tuple[dict[str, Any], jax.Array]:
    """One step of gradient descent on next-token prediction."""

    def loss(params: dict[str, Any]) -> jax.Array:
        logits = _logits(params, tokens[:, :-1])
        with jax.named_scope("cross_entropy"):
            chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], axis=-1)
            return -jnp.mean(chosen)

    value, gradient = jax.value_and_grad(loss)(params)
    with jax.named_scope("descent"):
        return jax.tree.map(lambda p, g: p - 1e-2 * g, params, gradient), value


def _transformer_arguments(width: int = 64) -> tuple[Any, ...]:
    square = shape(width, width)
    layer = dict.fromkeys(("q", "k", "v", "o"), square)
    layer |= {"up": shape(width, 4 * width), "down": shape(4 * width, width)}
    layer |= {"norm_1": shape(width), "norm_2": shape(width)}
    return {"embed": shape(256, width), "layers": [layer, layer]}, shape(8, 33, dtype=jnp.int32)


# A recurrent network over a sequence, and its gradient.


def scan_rnn(params: dict[str, jax.Array], xs: jax.Array) -> dict[str, jax.Array]:
    """The gradient of a gated recurrent network's loss, by `lax.scan`."""

    def cell(h: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        z = jax.nn.sigmoid(x @ params["wz"] + h @ params["uz"])
        candidate = jnp.tanh(x @ params["wh"] + h @ params["uh"])
        h = (1 - z) * h + z * candidate
        return h, h

    def loss(params_: dict[str, jax.Array]) -> jax.Array:
        params.update(params_)
        _, hs = lax.scan(cell, jnp.zeros((xs.shape[1], params["uz"].shape[0])), xs)
        return jnp.mean(hs**2)

    params = dict(params)
    return jax.grad(loss)(params)


# A physics-informed network: the residual of Poisson's equation.


def pinn(weights: list[jax.Array], x: jax.Array) -> jax.Array:
    """The mean squared residual of u_xx + u_yy = sin(x) sin(y)."""

    def u(point: jax.Array) -> jax.Array:
        h = point
        for w in weights[:-1]:
            h = jnp.tanh(h @ w)
        return (h @ weights[-1])[0]

    def residual(point: jax.Array) -> jax.Array:
        laplacian = jnp.trace(jax.hessian(u)(point))
        return laplacian - jnp.prod(jnp.sin(point))

    return jnp.mean(jax.vmap(residual)(x) ** 2)


# A pair potential with smooth cutoff, and its forces.


def force_field(positions: jax.Array, charges: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Energy and forces of a screened pair potential."""

    def energy(positions: jax.Array) -> jax.Array:
        difference = positions[:, None] - positions[None]
        squared = jnp.sum(difference**2, axis=-1) + jnp.eye(len(positions))
        distance = jnp.sqrt(squared)
        switch = jnp.where(distance < 5.0, 0.5 * (jnp.cos(jnp.pi * distance / 5.0) + 1), 0.0)
        pair = charges[:, None] * charges[None] * jnp.exp(-distance) / distance * switch
        return 0.5 * jnp.sum(pair - jnp.diag(jnp.diag(pair)))

    value, gradient = jax.value_and_grad(energy)(positions)
    return value, -gradient


# A pseudo-spectral solver.


def fft_solver(u: jax.Array) -> jax.Array:
    """Eight steps of the viscous Burgers equation."""
    k = jnp.fft.rfftfreq(u.shape[0], 1 / u.shape[0])

    def step(_: int, u: jax.Array) -> jax.Array:
        with jax.named_scope("nonlinear"):
            transformed = jnp.fft.rfft(0.5 * u * u)
        with jax.named_scope("diffusion"):
            spectrum = (jnp.fft.rfft(u) - 1e-3j * k * transformed) / (1 + 1e-5 * k**2)
            return jnp.fft.irfft(spectrum, u.shape[0])

    return lax.fori_loop(0, 8, step, u)


# Adam with clipping by the global norm.


def optimiser_step(params: Any, gradients: Any, first: Any, second: Any) -> tuple[Any, Any, Any]:
    """One step of Adam on a tree of parameters."""
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradients)))
    gradients = jax.tree.map(lambda g: g * jnp.minimum(1.0, 1.0 / norm), gradients)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
    params = jax.tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), params, first, second)
    return params, first, second


# Beam search's inner step: sorting, selection, gathers.


def sort_and_top_k(scores: jax.Array, table: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The best entries, their rows, and the ranks of all."""
    best, at = lax.top_k(scores, 8)
    ranks = jnp.argsort(jnp.argsort(scores, axis=-1), axis=-1)
    kept = jnp.cumsum(jnp.sort(jax.nn.softmax(scores), axis=-1), axis=-1) < 0.9
    return best, table[at], jnp.where(kept, ranks, -1)


# A convolutional network.


def convolution(filters: list[jax.Array], images: jax.Array) -> list[jax.Array]:
    """The gradient of a small convolutional network's loss."""

    def loss(filters: list[jax.Array]) -> jax.Array:
        x = images
        for w in filters:
            x = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = jax.nn.relu(x)
            x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return jnp.mean(x**2)

    return jax.grad(loss)(filters)


# Random-walk Metropolis sampling.


def sampling_loop(key: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Sixteen Metropolis steps of a banana-shaped density, and how many were accepted."""

    def log_density(x: jax.Array) -> jax.Array:
        return -0.5 * x[:, 0] ** 2 - 0.5 * (x[:, 1] - x[:, 0] ** 2) ** 2

    def step(carry: Any, key: jax.Array) -> tuple[Any, None]:
        x, accepted = carry
        first, second = jax.random.split(key)
        with jax.named_scope("propose"):
            proposed = x + 0.3 * jax.random.normal(first, x.shape)
        with jax.named_scope("accept"):
            ratio = log_density(proposed) - log_density(x)
            accept = jnp.log(jax.random.uniform(second, ratio.shape)) < ratio
            return (jnp.where(accept[:, None], proposed, x), accepted + accept), None

    start = (x, jnp.zeros(len(x), jnp.int32))
    (x, accepted), _ = lax.scan(step, start, jax.random.split(key, 16))
    return x, accepted


# Gaussian-process regression.


def cholesky(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Log-likelihood and weights of a Gaussian process."""
    with jax.named_scope("kernel_matrix"):
        squared = jnp.sum((x[:, None] - x[None]) ** 2, axis=-1)
        covariance = jnp.exp(-0.5 * squared) + 1e-3 * jnp.eye(len(x))
    with jax.named_scope("solve"):
        factor = jnp.linalg.cholesky(covariance)
        weights = cho_solve((factor, True), y)
        whitened = solve_triangular(factor, y, lower=True)
    with jax.named_scope("likelihood"):
        return -0.5 * jnp.sum(whitened**2) - jnp.sum(jnp.log(jnp.diag(factor))), weights


_TREE = {"w": shape(64, 32), "b": shape(32), "v": shape(128, 64)}
_GATES = {"wz": shape(16, 32), "uz": shape(32, 32), "wh": shape(16, 32), "uh": shape(32, 32)}

PROGRAMS = {
    "transformer_step": Example(transformer_step, _transformer_arguments()),
    "scan_rnn": Example(scan_rnn, (_GATES, shape(12, 8, 16))),
    "pinn": Example(pinn, ([shape(2, 32), shape(32, 32), shape(32, 1)], shape(64, 2))),
    "force_field": Example(force_field, (shape(48, 3), shape(48))),
    "fft_solver": Example(fft_solver, (shape(128),)),
    "optimiser_step": Example(optimiser_step, (_TREE, _TREE, _TREE, _TREE)),
    "sort_and_top_k": Example(sort_and_top_k, (shape(16, 512), shape(512, 8))),
    "convolution": Example(convolution, ([shape(3, 3, 3, 8), shape(3, 3, 8, 16)], shape(4, 16, 16, 3))),
    "sampling_loop": Example(sampling_loop, (shape(2, dtype=jnp.uint32), shape(256, 2))),
    "cholesky": Example(cholesky, (shape(64, 3), shape(64))),
}
for _example in PROGRAMS.values():  # fusionlab launches examples/ten_programs.py:pinn --by source
    vars(_example.function)["example_args"] = _example.arguments


def main() -> None:
    """A line for each program."""
    from fusionlab.testing import ledger

    print("program            launches  with scope  with source")
    for name, example in PROGRAMS.items():
        made = ledger(example.function, example.arguments, target="a100")
        runs = max(1, made.dynamic_launches)
        scoped, placed = (
            sum(row.dynamic_launches for row in made.rows if getattr(row, what)) / runs for what in ("scope", "source")
        )
        print(f"{name:<18} {made.dynamic_launches:>8,}  {scoped:>10.1%}  {placed:>11.1%}")


if __name__ == "__main__":
    main()
