"""The snippet of docs/optimize.md runs."""

import re
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "docs" / "optimize.md").read_text()


def test_the_snippet_runs_and_is_rewritten(compile_cache, capsys):
    (snippet,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names = {}
    exec(compile(snippet, "docs/optimize.md", "exec"), names)
    assert names["energies"].shape == (16,)
    assert names["local_energies"].fusionlab.state == "rewritten"
    assert "sparsify-directions" in capsys.readouterr().out
