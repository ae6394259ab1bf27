"""The snippets of docs/optimize.md run."""

import re
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "docs" / "optimize.md").read_text()


def test_the_snippets_run_and_are_rewritten(compile_cache, capsys):
    snippets = "\n".join(re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL))
    names = {}
    exec(compile(snippets, "docs/optimize.md", "exec"), names)
    assert names["energies"].shape == (16,)
    assert names["local_energies"].fusionlab.state == "rewritten"
    assert "sparsify-directions" in capsys.readouterr().out
