"""Jets of small JAX functions by the engine, and the same numbers by JAX's own second derivatives of the function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.codegen.cpu_options import CPU_OPTIONS
from fusionlab.codegen.laplacian.interpreter import forward_laplacian
from fusionlab.codegen.laplacian.jet import Coordinates, densify
from fusionlab.codegen.laplacian.sparsity import Sparsity
from fusionlab.codegen.laplacian.state import Options, State
from fusionlab.codegen.raising import Raising
from fusionlab.hlo.batch_axes import resized_shapes, walker_axes
from fusionlab.hlo.dependence import live_nodes
from fusionlab.hlo.view import view_of


@dataclass(frozen=True)
class Jets:
    """Per result of a function: value [S], Laplacian [S], rows [K, *S] and the owners of its slots (None if dense); and
    where directions became dense, if the engine made them."""

    values: list[np.ndarray]
    laplacians: list[np.ndarray]
    rows: list[np.ndarray]
    owners: list[tuple[np.ndarray, ...] | None]
    sparsity: Sparsity | None = None


@pytest.fixture(scope="session")
def jets_of(lowered: Callable[..., Any]) -> Callable[..., Jets]:
    """``jets_of(function, x, *others, platform="cpu", walkers=True, options=Options())``: the forward Laplacian of it.

    ``x`` is [B, ...] with 3 N trailing elements, or without B if not ``walkers``. The function is lowered in the
    dtypes of its arguments. The StableHLO of the jets is appended to ``text_of``.
    """

    def run(
        function: Any,
        x: Any,
        *others: Any,
        platform: str = "cpu",
        walkers: bool = True,
        options: Options | None = None,
        text_of: list[str] | None = None,
    ) -> Jets:
        with jax.enable_x64(True):
            flat = view_of(lowered(function, x, *others, platform=platform).parse())
            coordinates = Coordinates(int(np.prod(x.shape[int(walkers) :])) // 3, 3)
            marks = walker_axes(flat, [(flat.arguments[0], 0)]) if walkers else {}
            one = Raising(shapes=resized_shapes(marks, x.shape[0], 1))
            nodes = live_nodes(flat.nodes, flat.arguments, flat.returns)
            owners: list[Any] = []
            sparsity: list[Sparsity] = []

            def both(*arrays: Any) -> Any:
                raising, x = Raising(fold=True), flat.arguments[0]
                state = State(x, coordinates, int(walkers), raising, one, options or Options())
                jets = forward_laplacian(state, nodes, dict(zip(flat.arguments, arrays, strict=True)), flat.returns)
                owners[:] = [jet.owners for jet in jets]
                assert state.sparsity is not None
                sparsity[:] = [state.sparsity]
                laplacians = [jnp.zeros_like(j.value) if j.laplacian is None else j.laplacian for j in jets]
                return [
                    (jet.value, laplacian, densify(jet, coordinates).jacobian)
                    for jet, laplacian in zip(jets, laplacians, strict=True)
                ]

            leaves = jax.tree.leaves((x, *others))
            compute = jax.jit(both, compiler_options=CPU_OPTIONS)
            if text_of is not None:
                text_of.append(compute.lower(*leaves).as_text())
            results = compute(*leaves)
            values, laplacians, rows = zip(*results, strict=True)
            return Jets(*(list(map(np.asarray, part)) for part in (values, laplacians, rows)), list(owners), *sparsity)

    return run


@pytest.fixture(scope="session")
def brute_force() -> Callable[..., Jets]:
    """``brute_force(function, x, *others, walkers=True)``: JAX's derivatives of the function itself, walker by walker.

    One ``jvp`` of ``jvp`` per coordinate: the rows of the Jacobian and the diagonal of the Hessian.
    """
    known: dict[Any, tuple[Jets, Any]] = {}

    def run(function: Any, x: Any, *others: Any, walkers: bool = True) -> Jets:
        def of_one(one: Any) -> Any:
            shape = ((1,) if walkers else ()) + tuple(one.shape)

            def flat(coordinates: Any) -> list[Any]:
                results = jax.tree.leaves(function(coordinates.reshape(shape), *others))
                results = [result[0] if walkers else result for result in results]
                # Integers are as good as constants, and JAX's tangents of them are of a type of their own.
                return [r if jnp.issubdtype(r.dtype, jnp.inexact) else r.astype(one.dtype) for r in results]

            def along(direction: Any) -> Any:
                def slope(coordinates: Any) -> Any:
                    return jax.jvp(flat, (coordinates,), (direction,))

                (_, slopes), (_, curvatures) = jax.jvp(slope, (one.reshape(-1),), (direction,))
                return curvatures, slopes

            curvatures, slopes = jax.vmap(along)(jnp.eye(one.size, dtype=one.dtype))
            # The values by themselves: JAX 0.10's jvp of a reduction forgets an initial value that is not 0.
            return flat(one.reshape(-1)), [curvature.sum(0) for curvature in curvatures], slopes

        with jax.enable_x64(True):
            batched = jax.vmap(of_one, out_axes=(0, 0, 1)) if walkers else of_one
            parts = jax.jit(batched, compiler_options=CPU_OPTIONS)(x)
            return Jets(*([np.asarray(array) for array in part] for part in parts), [])

    def once(function: Any, x: Any, *others: Any, walkers: bool = True) -> Jets:
        key = (function, id(x), *map(id, others), walkers)
        if key not in known:  # what the ids are of is kept with the result
            known[key] = run(function, x, *others, walkers=walkers), (x, others)
        return known[key][0]

    return once


@pytest.fixture
def check_jets(jets_of: Callable[..., Jets], brute_force: Callable[..., Jets]) -> Callable[..., Jets]:
    """``check_jets(function, x, *others, tolerance=1e-10, **how)``: the jets, once they agree with brute force."""

    def check(function: Any, x: Any, *others: Any, tolerance: float = 1e-10, **how: Any) -> Jets:
        found = jets_of(function, x, *others, **how)
        expected = brute_force(function, x, *others, walkers=how.get("walkers", True))
        assert_equal_jets(found, expected, tolerance)
        return found

    return check


def assert_equal_jets(found: Jets, expected: Jets, tolerance: float) -> None:
    """Values, Laplacians and rows agree to ``tolerance`` of the largest magnitude in each array."""
    for name in ("values", "laplacians", "rows"):
        pairs: Sequence[Any] = list(zip(getattr(found, name), getattr(expected, name), strict=True))
        for i, (ours, theirs) in enumerate(pairs):
            assert ours.shape == theirs.shape, f"{name} of result {i}"
            scale = max(float(np.abs(theirs).max(initial=0)), 1e-3)
            np.testing.assert_allclose(ours / scale, theirs / scale, rtol=0, atol=tolerance, err_msg=f"{name} of {i}")
