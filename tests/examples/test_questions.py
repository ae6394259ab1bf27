"""The public questions of examples/questions: each file runs, and finds the fact that answers it."""

import re
import runpy
from pathlib import Path

import pytest

from tests.optional_packages import needs_the_cuda_plugin

pytestmark = [needs_the_cuda_plugin, pytest.mark.slow, pytest.mark.usefixtures("compile_cache")]

FOLDER = Path(__file__).parents[2] / "examples" / "questions"
MIB = 2**20

ONE_SIDE = {"log", "exponential", "negate", "multiply"}

FACTS = {
    "attention": lambda found: found["temp"] == 3 * 8 * 16 * 1024 * 1024 * 4 and len(found["shapes"]) == 2,
    "convolution": lambda found: (
        found == {"launches": (2, 5), "turned": 3, "flops": 2 * 32 * 128 * 56 * 56 * 64 * 3 * 3}
    ),
    "donated": lambda found: found["added"] == [] and "donated argument state" in found["flipped"][0],
    "ferminet_21": lambda found: found["ops"] > found["loop"] / 30 > 5 and found["loop"] > 10 * found["hessian"],
    "jax_13356": lambda found: found["launches"] == (111, 59) and found["slices copied"] == 5 * 12,
    "jax_17845": lambda found: found == {"cpu": 2 * 1000 * 40_000, "a100": 0},
    "jax_18424": lambda found: found == {"name": "input_reduce_fusion", "family": "reduction", "launches": 2},
    "jax_19327": lambda found: (
        found == {"cpu": (3, 1), "a100": (1, 1), "layout": ["copy_bitcast_fusion", "transpose_copy_fusion"]}
    ),
    "jax_37465": lambda found: len(found["written out"]) == 3 and found["temp"] > 3 * 63 * 64 * 64 * 4,
    "jax_37919": lambda found: found == {"inside": ["abs"]},
    "jax_40101": lambda found: found["copied"] == 0 and found["bytes"] < 100,
    "jax_5986": lambda found: found == {"conditionals": [0, 0, 1], "launches": [2000, 2000, 4000]},
    "jax_6566": lambda found: found == {"kernels": 2, "equal": True},
    "jax_7024": lambda found: found["a step"] == 18 and found["launching"] > 0.9,
    "jax_787": lambda found: (
        found == {"bytes": 551_102_853_132, "shape": "f32[1,2483,3,7449,2483]{4,3,2,1,0}", "source": "jax_787.py:10"}
    ),
    "jax_8409": lambda found: found == {"conditionals": (1, 0), "launches": (2, 4)},
    "layer_norm": lambda found: found == {"launches": 1, "temp": 0},
    "model_explorer_108": lambda found: found == dict.fromkeys(("stages", "clusters"), (0, True)),
    "one_hot": lambda found: found["temp"] < found["one-hot"] / 1000,
    "optimiser_step": lambda found: found.pop("launches") == 41 and sorted(found.values()) == [16, 25],
    "pytorch_xla_2997": lambda found: (
        {"exponential", "divide", "tanh", "reduce"} <= set(found["ops"]) and found["files"] == {"pytorch_xla_2997.py"}
    ),
    "reactant_2162": lambda found: found["launches"] == (2 * 274, 1) and "a loop of 274 trips" in found["loop"],
    "remat": lambda found: found == {"dot_general": 4, "tanh inside": True},
    "tf32": lambda found: found["TF32"] == [1, 0],
    "until_converged": lambda found: (
        found == {"round trips": 1, "source": "until_converged.py:20", "launches a trip": 6}
    ),
    "where": lambda found: found["inside"] > ONE_SIDE | {"erf", "select"},
    "xla_26987": lambda found: found == {"turned": [4 * MIB], "saved": 4 * MIB},
    "xla_27475": lambda found: (
        found["ops"] == {"exp", "div", "convert_element_type"}
        and (found["in excess"], round(found["moved over needed"], 1)) == ("strided-read", 7.6)
        and 1.2 < found["over the floor"] < 2
    ),
    "xla_41579": lambda found: found == {"launches": (1, 3), "together": ["mul", "add"]},
    "xla_42732": lambda found: found == {"launches": 0, "copies": 1},
    "xla_49131": lambda found: found["cpu"] == 64 * MIB and found["a100"] < 17 * MIB and found["exit code"] == 1,
}


def shown_lines():
    """The answering line of each file in the page, as a pattern; ``...`` stands for any words."""
    rows = [line.split("|") for line in (FOLDER / "README.md").read_text().splitlines() if line.startswith("| ")]
    files = {name: row for row in rows for name in re.findall(r"`(\w+)\.py`", row[1])}
    words = {name: (" ".join(part.split()) for part in row[4].split("...")) for name, row in files.items()}
    return {name: ".*".join(map(re.escape, parts)) for name, parts in words.items()}


SHOWN = shown_lines()


@pytest.mark.parametrize("name", FACTS)
def test_the_answer_is_found_and_is_one_line(name, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(FOLDER))
    found = runpy.run_path(str(FOLDER / f"{name}.py"))["answer"]()
    assert FACTS[name](found), found
    (line,) = capsys.readouterr().out.strip().splitlines()
    assert re.search(SHOWN[name], " ".join(line.split())), f"the page shows another line for {name}: {line}"


def test_every_question_has_its_fact_and_its_row():
    files = {path.stem for path in FOLDER.glob("*.py")} - {"commands"}
    assert files == set(FACTS)
    page = (FOLDER / "README.md").read_text()
    assert [name for name in FACTS if f"`{name}.py`" not in page] == []
