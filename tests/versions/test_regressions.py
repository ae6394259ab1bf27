"""The four regressions of docs/drift.md, each found with its cause by one command: where their environments are."""

import jax
import pytest

from fusionlab.versions.environments import kept_environments
from tests.docs.pages import ROOT, Snippet, parts

pytestmark = [pytest.mark.full]

FOUND = {
    "many_small": ("0.6.2,0.8.0", "launches", (1, 12), "pass horizontal_loop_fusion", "gone"),
    "histogram": ("0.9.2,0.10.2", "cas_loops", (0, 1), "xla_gpu_ftz=true", "returns"),
    "phases": ("0.4.35,0.6.2", "temp_bytes", (0, 80_000_016), "pass reshape-mover", "returns"),
    "segments": ("0.8.0,0.9.2", "launches", (3, 2), "pass layout_normalization", "alike"),
}


@pytest.mark.parametrize("name", FOUND)
def test_it_is_found_with_its_cause(name, as_json, tmp_path, monkeypatch):
    versions, figure, (older, newer), by, how = FOUND[name]
    monkeypatch.delenv("FUSIONLAB_CACHE", raising=False)
    if not {*versions.split(",")} <= {jax.__version__, *(one.version for one in kept_environments())}:
        pytest.skip(f"no environments: fusionlab drift FILE --jax {versions} makes them")
    page = parts(ROOT / "docs" / "drift.md")
    code = next(part.code for part in page if isinstance(part, Snippet) and part.file == "regressions.py")
    (tmp_path / "regressions.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    (step,) = as_json("drift", f"regressions.py:{name}", "--jax", versions, "--cause", "--no-cache")["steps"]
    found = next(one for one in step["causes"] if one["figure"] == figure)
    assert (found["older"], found["newer"]) == (older, newer)
    assert (found["how"], next(iter(found["by"]), None)) == (how, by)
