"""What is published: a source distribution and, from it, a wheel that works by itself in a clean environment."""

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import fusionlab

ROOT = Path(__file__).parents[2]
KEPT_OUT = {".git", ".venv", "build", "dist", "fusionlab-dump"}
TINY = ("--size", "tiny", "--molecule", "LiH", "--walkers", "4")


def run(*command, cwd):
    """The command's stdout; it runs without the checkout on its path."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["FUSIONLAB_CACHE"] = "off"
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with the wheel and the source distribution, built from a copy of the checkout."""
    import shutil

    folder = tmp_path_factory.mktemp("build")
    ignored = shutil.ignore_patterns(*KEPT_OUT, "*.egg-info", "__pycache__", ".*_cache", ".hypothesis", ".venv*")
    shutil.copytree(ROOT, folder / "source", ignore=ignored, symlinks=True)
    run(sys.executable, "-m", "build", "--outdir", folder / "dist", folder / "source", cwd=folder)
    return folder / "dist"


@pytest.fixture(scope="module")
def environment(built, tmp_path_factory):
    """A clean virtual environment with the wheel in it, and a folder far from the checkout."""
    folder = tmp_path_factory.mktemp("clean")
    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    (wheel,) = built.glob("*.whl")
    run(folder / "venv/bin/pip", "install", "--quiet", f"{wheel}[targets]", cwd=folder)
    return folder


@pytest.mark.slow
def test_what_is_in_the_distributions(built):
    (wheel,), (source,) = built.glob("*.whl"), built.glob("*.tar.gz")
    assert wheel.name == f"fusionlab-{fusionlab.__version__}-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    needed = [
        "fusionlab/py.typed", "fusionlab/hlo/optimised/hlo.lark",
        "fusionlab/codegen/targets/a100.txtpb", "fusionlab/cli/stablehlo_ops.json",
        "fusionlab/characterisation/claims.toml", "fusionlab/characterisation/page.md",
        f"fusionlab-{fusionlab.__version__}.dist-info/licenses/LICENSE",
    ]  # fmt: skip
    assert set(needed) <= set(names)
    assert {name.partition("/")[0] for name in names} == {"fusionlab", f"fusionlab-{fusionlab.__version__}.dist-info"}
    folders = ("fusionlab", "fusionlab/workloads", "fusionlab/characterisation")
    python = {str(path.relative_to(ROOT)) for top in folders for path in (ROOT / top).rglob("*.py")}
    assert len(python) > 300
    assert python <= set(names)
    with tarfile.open(source) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "CHANGELOG.md", "CITATION.cff", "README.md", "mkdocs.yml", "tests/conftest.py"} <= packed
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "studies" / "corpus").iterdir()} <= packed


@pytest.mark.full
def test_the_command_and_the_workloads_are_there(environment):
    command = environment / "venv/bin/fusionlab"
    assert run(command, "--version", cwd=environment) == f"fusionlab, version {fusionlab.__version__}\n"
    listed = json.loads(run(command, "models", "--json", cwd=environment))
    assert {"paulinet", "ferminet", "psiformer", "orbformer"} <= {one["name"] for one in listed}
    where = run(environment / "venv/bin/python", "-c", "import fusionlab; print(fusionlab.__file__)", cwd=environment)
    assert where.startswith(str(environment))


@pytest.mark.full
def test_the_main_job_runs_outside_the_checkout(environment):
    arguments = ("apply", "--model", "paulinet", "--pass", "fuse-jvp-replay", *TINY, "--check-walkers", "2", "--json")
    document = json.loads(run(environment / "venv/bin/fusionlab", *arguments, cwd=environment))
    assert document["equivalence"]["verdict"] in ("equal", "within-bound")
    assert document["after"]["dynamic_launches"] < document["before"]["dynamic_launches"] / 5


@pytest.mark.full
def test_a_type_checker_sees_the_types(environment):
    (environment / "user.py").write_text(
        "from fusionlab import parse_pipeline\nreveal_type(parse_pipeline('layout'))\n"
    )
    skipped = "\n".join(f"[mypy-{name}.*]\nfollow_imports = skip\n" for name in ("jax", "jaxlib", "numpy"))
    (environment / "mypy.ini").write_text(f"[mypy]\nfollow_imports = silent\n{skipped}")
    python = environment / "venv/bin/python"
    said = run(sys.executable, "-m", "mypy", "--python-executable", python, "user.py", cwd=environment)
    assert 'Revealed type is "tuple[fusionlab.passes.interface.Pass, ...]"' in said.replace("builtins.", "")
