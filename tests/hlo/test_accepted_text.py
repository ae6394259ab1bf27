"""Which text MLIR's parser may see: NUL bytes and deep nesting are refused, everything JAX writes is not."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.hlo.accepted_text import MOST_NESTED, why_text_refused


@pytest.mark.parametrize("brackets", ["()", "[]", "{}", "<>"])
def test_the_limit_is_a_limit(brackets):
    opening, closing = (bracket.encode() for bracket in brackets)
    assert why_text_refused(opening * MOST_NESTED + closing * MOST_NESTED) is None
    assert "nest deeper" in why_text_refused(opening * (MOST_NESTED + 1))


def test_depth_is_counted_across_parts_of_the_file():
    padding = b" " * (1 << 20)
    half = b"(" * (MOST_NESTED // 2 + 1)
    assert "nest deeper" in why_text_refused(half + padding + half)
    assert why_text_refused(half + b")" * len(half) + padding + half) is None


def test_strings_and_arrows_do_not_count():
    quoted = b'"' + b"(" * 10_000 + b'\\"' + b"[" * 10_000 + b'"'
    assert why_text_refused(quoted) is None
    assert why_text_refused(b"// it's a (" + b"(" * 1000 + b"\n") is None
    assert "nest deeper" in why_text_refused(b"(() -> " * (MOST_NESTED + 1))
    assert why_text_refused(b"() -> ()\n" * 10_000) is None


def test_a_closing_bracket_too_many_hides_nothing():
    deep = b"(" * (MOST_NESTED + 1)
    for closing in (b")" * (1 << 21), b")" * 1000, b"// " + b">" * 1000 + b"\n", b'"' + b">" * 1000 + b'"'):
        assert "nest deeper" in why_text_refused(closing + deep)
        assert "nest deeper" in why_text_refused(deep[:200] + closing.replace(b")", b"") + deep[200:])


def test_a_nul_byte_is_named_with_its_line():
    assert why_text_refused(b"one\ntwo\nthr\0ee") == ("there is a NUL byte in line 3: neither text nor MLIR bytecode")


def test_what_jax_writes_is_far_below_the_limit(lowered):
    def nested(x):
        for _ in range(8):
            x = jax.lax.cond(x[0] > 0, lambda y: jax.jit(jnp.sin)(y), lambda y: y, x)
        return jax.vmap(jax.hessian(lambda y: (jnp.tanh(y) ** 2).sum()))(x[None])

    assert why_text_refused(lowered(nested, np.ones(3, np.float32)).text.encode()) is None


def test_a_large_constant_costs_a_few_times_its_size():
    command = (
        "import resource\nfrom fusionlab.hlo.accepted_text import why_text_refused\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "assert why_text_refused(b'dense<\"0x' + b'AB' * (10 << 20) + b'\">') is None\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 200 * 1024  # KiB, for 20 MiB
