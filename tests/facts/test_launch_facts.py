"""Facts of launches on the CPU: figures that are not known have no column, and nothing is called the most of equals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fusionlab

pytestmark = [pytest.mark.usefixtures("module_cache"), pytest.mark.versions]

X = jax.ShapeDtypeStruct((64, 64), np.float32)


def sorted_twice(x):
    with jax.named_scope("first"):
        x = jnp.sort(x)
    with jax.named_scope("second"):
        return jnp.sort(x, axis=0)


def test_without_a_model_no_time_is_promised():
    found = fusionlab.launches(sorted_twice, X, target="cpu")
    groups, sites = found.tables()
    assert sites.title == f"launch sites, {len(found.rows)} of {len(found.rows)}"
    assert not any("ms" in column or "us" in column for table in (groups, sites) for column in table.columns)
    assert not any("cost model" in line for line in found.notes)
    assert any("no modelled time" in line for line in found.notes)


def test_a_program_without_launches_has_no_sites(cli, tmp_path):
    found = fusionlab.launches(lambda x: x, X, target="cpu")
    assert (len(found.rows), len(found.tables())) == (0, 1)
    (tmp_path / "model.py").write_text("def f(x):\n    return x\n")
    said = cli("launches", tmp_path / "model.py:f", "--args", "f32[8]", "--target", "cpu", code=0).stdout
    assert "launch sites" not in said


def test_the_most_of_equal_groups_is_not_named():
    def sines(x):
        return jnp.sin(jnp.sort(x))

    tied = fusionlab.launches(sines, X, target="cpu", by="op")
    assert sorted(group.dynamic_launches for group in tied.groups.values())[-2:] == [1, 1]
    assert "most in" not in tied.verdict
    first = fusionlab.launches(lambda x: jnp.sort(sines(x)), X, target="cpu", by="op")
    assert first.verdict.endswith("; most in sort (2 of 3)")


def test_one_is_singular():
    found = fusionlab.launches(lambda x: jnp.tanh(x), X, target="cpu")
    assert found.dynamic_launches == 1
    assert "1 launch has no modelled time" in found.notes
