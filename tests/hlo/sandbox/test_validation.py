"""Modules that cannot be studied are refused with a cause before XLA sees them; what JAX emits is accepted."""

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from fusionlab.errors import InputError
from fusionlab.hlo.program import Program
from fusionlab.hlo.sandbox.validation import MOST_NESTED, why_text_refused

REFUSED = sorted((Path(__file__).parent / "refused").glob("*.mlir"))
MAIN = "func.func public @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }"


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in REFUSED])
def test_a_refused_module_says_what_and_where(path):
    """The cause is in the module's first line."""
    cause = path.read_text().partition("\n")[0].removeprefix("// refused: ")
    with pytest.raises(InputError) as caught:
        Program.from_file(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert cause in str(caught.value)
    assert "\n" not in str(caught.value)


def calling_twice(count):
    """Functions that each call the next one twice: 2^count paths."""
    type_ = "(%x: tensor<f32>) -> tensor<f32>"
    call = "%{} = call @f{}(%{}) : (tensor<f32>) -> tensor<f32>"
    chain = [
        f"func.func private @f{i}{type_} {{\n{call.format(1, i + 1, 'x')}\n{call.format(2, i + 1, 1)}\n"
        "return %2 : tensor<f32>\n}"
        for i in range(count)
    ]
    last = f"func.func private @f{count}{type_} {{ return %x : tensor<f32> }}"
    main = f"func.func public @main{type_} {{\n{call.format(1, 0, 'x')}\nreturn %1 : tensor<f32>\n}}"
    return "\n".join([main, *chain, last])


def test_shared_callees_are_looked_at_once(program_of_text):
    program = program_of_text(calling_twice(12))
    assert program.inputs == program.outputs
    # Nothing that inlines calls would ever come back from this one; what refuses it must not walk 2^40 paths either.
    with pytest.raises(InputError, match="with its calls inlined has over 5,000,000 operations"):
        program_of_text(calling_twice(40))


def test_a_declaration_that_nobody_calls_is_accepted(program_of_text):
    assert program_of_text(f"func.func private @outside(tensor<f32>) -> tensor<f32>\n{MAIN}").platform == "any"


def sharded(x):
    mesh = jax.make_mesh((1,), ("i",), axis_types=(AxisType.Auto,), devices=jax.devices("cpu")[:1])
    return jax.lax.with_sharding_constraint(jnp.sin(x), NamedSharding(mesh, PartitionSpec("i")))


@pytest.mark.parametrize(
    "function",
    [
        sharded,
        lambda x: jax.lax.erf_inv(x) + jax.lax.top_k(x, 2)[0][0],
        lambda x: jnp.linalg.slogdet(x[:, None] * x)[1],
        lambda x: jax.random.normal(jax.random.key(0), x.shape) + jnp.sort(x),
        lambda x: jax.lax.switch(0, [jnp.sin, jnp.cos], jax.checkpoint(jnp.tanh)(x)),
        jnp.fft.fft,
    ],
    ids=["sharding", "chlo", "lapack", "random", "switch", "fft"],
)
def test_what_jax_emits_is_accepted(function, lowered, tmp_path):
    program = lowered(function, np.ones(4, np.float32))
    for content in (program.bytecode, program.text.encode()):
        (tmp_path / "module.mlir").write_bytes(content)
        assert Program.from_file(tmp_path / "module.mlir").inputs == program.inputs


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
        "import resource\nfrom fusionlab.hlo.sandbox.validation import why_text_refused\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "assert why_text_refused(b'dense<\"0x' + b'AB' * (10 << 20) + b'\">') is None\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 200 * 1024  # KiB, for 20 MiB
