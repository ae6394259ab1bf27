"""The optimised module of an executable, or of the dump where this JAX cannot give an absent GPU's."""

import jax
import pytest

from fusionlab.codegen import compile as module


class Refusing:
    def hlo_modules(self):
        raise jax.errors.JaxRuntimeError("UNIMPLEMENTED: no modules")


@pytest.mark.parametrize(("version", "dumped", "text"), [
    ((0, 8, 0), True, "HloModule dumped"), ((0, 8, 0), False, None), ((0, 10, 2), True, None),
])  # fmt: skip
def test_the_dump_stands_in_before_jax_0_9_alone(version, dumped, text, tmp_path, monkeypatch):
    monkeypatch.setattr(jax, "__version_info__", version)
    if dumped:
        (tmp_path / "module_0000.jit_f.sm_8.0_gpu_after_optimizations.txt").write_text("HloModule dumped")
    if text is not None:
        assert module._optimized_text(Refusing(), tmp_path) == text
        return
    with pytest.raises(jax.errors.JaxRuntimeError, match="no modules"):
        module._optimized_text(Refusing(), tmp_path)
