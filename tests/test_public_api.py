"""The public interface, name by name with its signatures: a change is seen as a diff of ``public_api.txt``.

What goes or changes there needs a new minor version (before 1.0) and a line in CHANGELOG.md.
"""

import dataclasses
import inspect
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import fusionlab

ROOT = Path(__file__).parents[1]
MODULES = ("fusionlab", "fusionlab.facts", "fusionlab.testing", "fusionlab.passes.matcher")


def described(module_name):
    module = import_module(module_name)
    for name in sorted(module.__all__):
        yield from entry(f"{module_name}.{name}", getattr(module, name))


def entry(name, value):
    if inspect.isclass(value):
        fields = ", ".join(f"{f.name}: {f.type}" for f in dataclasses.fields(value)) if is_record(value) else ""
        yield f"class {name}({fields})"
        for member, one in sorted(vars(value).items()):
            if member.startswith("_"):
                continue
            function = getattr(one, "__func__", getattr(one, "fget", getattr(one, "func", one)))
            if inspect.isfunction(function):
                kind = "" if inspect.isfunction(one) else f"{type(one).__name__} "
                yield f"  {kind}{member}{inspect.signature(function)}"
    elif callable(value):
        yield f"{name}{inspect.signature(value)}"
    else:
        yield f"{name}: {type(value).__name__}"


def is_record(value):
    return dataclasses.is_dataclass(value) and "__init__" in vars(value)


def test_the_public_interface(golden):
    lines = [f"fusionlab {fusionlab.__version__}", *(line for name in MODULES for line in described(name))]
    golden(ROOT / "tests" / "public_api.txt", "\n".join(lines) + "\n")


def test_it_is_small_and_every_name_is_there():
    assert len(fusionlab.__all__) <= 20
    assert {name for name in vars(fusionlab) if not name.startswith(("_", "@"))} <= {  # @: names of pytest
        *fusionlab.__all__, *(path.stem for path in (ROOT / "fusionlab").iterdir()),
    }  # fmt: skip
    assert set(fusionlab._HOMES) == set(fusionlab.__all__) - {"__version__"}
    assert dir(fusionlab) == sorted(fusionlab.__all__)
    assert all(getattr(fusionlab, name) is not None for name in fusionlab.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'optimise'"):
        _ = fusionlab.optimise
    assert not hasattr(fusionlab, "nothing_such")


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == fusionlab.__version__
    assert f"\nversion: {fusionlab.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert changelog.startswith("# Changelog\n\n## Unreleased\n")
    assert f"\n## {fusionlab.__version__} (" in changelog


def test_the_lowest_versions_are_those_that_are_allowed():
    """Every lower bound of what is installed is in requirements-lowest.txt, as it stands."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines = (ROOT / "requirements-lowest.txt").read_text().splitlines()
    lowest = dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    for requirement in (*project["dependencies"], *extras["targets"], *extras["models"]):
        name, _, bounds = requirement.partition(">=")
        bound = bounds.partition(",")[0].split(".")
        assert lowest[name].split(".")[: len(bound)] == bound, requirement
