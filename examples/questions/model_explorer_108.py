"""model-explorer 108: how does one look at HLO in Model Explorer?"""

import json
from pathlib import Path

import jax
from commands import array, run, saved


def block(x, w):
    """A matrix product and a softmax."""
    return jax.nn.softmax(x @ w)


def answer():
    """The graph of the operations, and of what XLA fused into one kernel, as files of Model Explorer."""
    program = saved(block, array(64, 128), array(128, 256))
    found = {}
    for view in ("stages", "clusters"):
        out = Path(program).with_name(f"{view}.json")
        code, lines = run("graph", program, "--view", view, "--out", str(out))
        found[view] = (code, len(json.loads(out.read_text())["graphs"][0]["nodes"]) > 0)
    print(f"{lines[0]}, and {len(lines) - 1} files of data for its nodes".replace(str(out.parent), "."))
    return found


if __name__ == "__main__":
    answer()
