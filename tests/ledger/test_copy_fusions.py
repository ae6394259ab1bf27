"""Launches counted from HLO text are those of XLA's own thunk list: fusions that XLA runs as copies are none."""

import dataclasses
import re

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.ledger.copy_fusions import STATIC_SLICES_SINCE
from fusionlab.ledger.ledger import SCHEDULED_HLO, count_launches, launches
from tests.ledger.by_hand import compiled_of, text_of
from tests.optional_packages import needs_the_cuda_plugin

pytestmark = pytest.mark.versions

TEXT = text_of("copy_fusions.hlo")


def test_what_xla_copies_is_no_launch_and_near_misses_are():
    sites = launches(compiled_of(TEXT))
    copied = {site.hlo_name for site in sites if site.is_copy}
    launched = {site.hlo_name for site in sites if not site.is_copy}
    assert copied == {*re.findall(r"%(copied_\w+) = ", TEXT), "kernel_solve"}
    assert launched == {*re.findall(r"%(kernel_\w+) = ", TEXT), "product", "end"}
    assert all(site.computation for site in sites)


def test_on_the_cpu_they_are_kernels():
    sites = launches(compiled_of(TEXT.replace("__cublas$", "lapack_"), target="cpu"))
    assert not [site.hlo_name for site in sites if site.is_copy]


def test_older_xla_slices_with_a_kernel():
    assert STATIC_SLICES_SINCE == (0, 10, 2)
    older = dataclasses.replace(compiled_of(TEXT), versions="jax 0.10.1, jaxlib 0.10.1")
    assert "copied_rows" in {site.hlo_name for site in launches(older) if not site.is_copy}


MATRIX, STACK = jax.ShapeDtypeStruct((16, 16), jnp.float32), jax.ShapeDtypeStruct((7, 16, 16), jnp.float32)
INDEX, PREDICATE = jax.ShapeDtypeStruct((), jnp.int32), jax.ShapeDtypeStruct((), bool)


def scanned(x, xs):
    return lax.scan(lambda c, a: (jnp.sin(c @ a), None), x, xs)[0]


def squared(x):
    return jnp.sin(x @ x)


PROGRAMS = {
    "slices of a stack": (scanned, MATRIX, STACK),
    "a stack of results": (lambda x: lax.scan(lambda c, _: (jnp.sin(c @ c), c), x, None, length=7), MATRIX),
    "reversed": (lambda x, xs: lax.scan(lambda c, a: (jnp.sin(c @ a), c @ c), x, xs, reverse=True), MATRIX, STACK),
    "a gradient": (jax.grad(lambda x, xs: scanned(x, xs).sum(), argnums=(0, 1)), MATRIX, STACK),
    "loops in a loop": (lambda x, xs: lax.scan(lambda c, a: (scanned(c, xs), c + a), x, xs), MATRIX, STACK),
    "places of data": (lambda x, xs, k: lax.fori_loop(0, 7, lambda i, c: jnp.sin(c @ xs[k]), x), MATRIX, STACK, INDEX),
    "static slices": (lambda x: (x[3:11] @ x, x[::2] @ x, x[:, :4].T @ x), MATRIX),
    "solves": (lambda x, y: jax.scipy.linalg.solve_triangular(x, jnp.sin(y)) @ jnp.linalg.inv(x), MATRIX, MATRIX),
    "an index": (
        lambda k, x: lax.switch(k, [lambda y: y, lambda y: jnp.sin(y @ y), lambda y: jnp.tanh(y) @ y], x), INDEX, MATRIX
    ),
    "predicates": (
        lambda p, x: lax.fori_loop(
            0, 5, lambda i, c: lax.cond(p, squared, lambda y: lax.cond(i > 2, squared, jnp.exp, y), c), x
        ),
        PREDICATE, MATRIX,
    ),
}  # fmt: skip


@needs_the_cuda_plugin
@pytest.mark.parametrize("name", PROGRAMS)
def test_counts_from_the_text_are_those_of_the_thunk_list(name, lowered):
    function, *given = PROGRAMS[name]
    compiled = compile_program(lowered(function, *given, platform="cuda"), load_target("a100"))
    by_list, by_text = count_launches(compiled), count_launches(dataclasses.replace(compiled, thunk_sequence=""))
    assert by_text.launch_source == SCHEDULED_HLO
    assert dataclasses.replace(by_list, launch_source=SCHEDULED_HLO) == by_text
    if "jaxlib 0.9" not in compiled.versions and "jaxlib 0.8" not in compiled.versions:  # lists without names
        assert by_list.launch_source != SCHEDULED_HLO
