"""Environments of other versions: which Python, made whole or not at all, kept, deleted. Nothing is downloaded."""

import sys
from pathlib import Path

import pytest

from fusionlab.errors import InputError
from fusionlab.store import package_versions
from fusionlab.subprocesses import Ended
from fusionlab.versions import environments
from fusionlab.versions.environments import (
    NoEnvironment,
    environment,
    kept_environments,
    nightly_version,
    parse_versions,
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FUSIONLAB_CACHE", str(tmp_path))
    return tmp_path / "environments"


@pytest.fixture
def commands(monkeypatch):
    """The commands that would have been run; the first makes the interpreter."""
    said = []

    def run(command, version):
        said.append(command)
        made = next((Path(word) for word in command if word.endswith("/new")), None)
        if made is not None:
            (made / "bin").mkdir(parents=True)
            (made / "bin" / "python").write_text("")
        return 1.0

    monkeypatch.setattr(environments, "_run", run)
    monkeypatch.setattr(environments, "_python_for", lambda version: "/usr/bin/python3.11")
    monkeypatch.setattr(environments.shutil, "which", lambda name: None)
    return said


def test_versions_are_the_oldest_first():
    assert parse_versions(" 0.10.2,0.6.2, 0.4.35") == ("0.4.35", "0.6.2", "0.10.2")


def listing(monkeypatch, output, exit_code=0, errors=""):
    """pip says ``output`` to a question about versions."""

    class Listed:
        def __init__(self, command, *rest):
            assert command[1:6] == ["-m", "pip", "index", "versions", "jax"]

        def wait(self):
            return Ended(exit_code, output.encode(), errors, 1.0)

    monkeypatch.setattr(environments, "Running", Listed)


def test_a_nightly_is_the_newest_of_pip_s_indexes(monkeypatch):
    listing(
        monkeypatch, "jax (0.11.2)\nAvailable versions: 0.12.0.dev20261127, 0.12.0.dev20261128, 0.11.2, 0.11.1rc1\n"
    )
    assert nightly_version() == "0.12.0.dev20261128"
    assert parse_versions("0.12.0.dev20261128,0.11.2") == ("0.11.2", "0.12.0.dev20261128")


@pytest.mark.parametrize(
    ("output", "exit_code", "errors", "said"),
    [
        ("Available versions: 0.11.2, 0.11.1rc1", 0, "", "no package index of pip has a nightly of JAX"),
        ("", 1, "ERROR: no network\n", "pip does not list the versions of JAX: ERROR: no network"),
    ],
)
def test_no_nightly_is_said_in_a_line(monkeypatch, output, exit_code, errors, said):
    listing(monkeypatch, output, exit_code, errors)
    with pytest.raises(InputError, match=said):
        nightly_version()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0.6", "'0.6' is no version"),
        ("0.6.2,,latest", "'latest' is no version"),
        ("0.6.2;rm", "'0.6.2;rm' is no version"),
        (",", "names no version"),
        ("0.6.2,0.06.2", "named twice"),
        ("0.4.28,0.6.2", "JAX 0.4.28 cannot compile for an absent GPU; the oldest that can is 0.4.34"),
    ],
)
def test_bad_versions(text, said):
    with pytest.raises(InputError, match=said):
        parse_versions(text)


def test_an_environment_is_made_once(folder, commands):
    lines = []
    made = environment("0.6.2", lines.append)
    assert made.python == folder / "jax-0.6.2" / "bin" / "python"
    assert commands[0][:3] == ["/usr/bin/python3.11", "-m", "venv"]
    assert commands[1][-3:] == ["jax==0.6.2", "jaxlib==0.6.2", "jax-cuda12-plugin==0.6.2"]
    assert lines[0] == f"environment: JAX 0.6.2 by pip in {folder / 'jax-0.6.2'}"
    assert environment("0.6.2") == made
    assert len(commands) == 2
    assert [one.version for one in kept_environments()] == ["0.6.2"]


def test_one_whose_interpreter_is_gone_is_made_again(folder, commands):
    broken = folder / "jax-0.6.2" / "bin"
    broken.mkdir(parents=True)
    (broken / "python").symlink_to("/nowhere/python3.11")
    made = environment("0.6.2")
    assert made.python.exists()
    assert environment("0.6.2") == made
    assert len(commands) == 2


def test_one_that_another_process_made_meanwhile_is_taken(folder, tmp_path, monkeypatch):
    new, place = tmp_path / "new", folder / "jax-0.6.2"
    (new / "bin").mkdir(parents=True)

    def faster(self, target):
        (place / "bin").mkdir(parents=True)
        (place / "bin" / "python").write_text("theirs")
        raise OSError(39, "Directory not empty")

    monkeypatch.setattr(Path, "rename", faster)
    environments._put(new, place)
    assert (place / "bin" / "python").read_text() == "theirs"


def test_one_that_cannot_be_put_in_its_place_is_an_error(folder, tmp_path):
    with pytest.raises(InputError, match=r"jax-0.6.2: cannot be made: No such file"):
        environments._put(tmp_path / "new", folder / "jax-0.6.2")


@pytest.mark.parametrize("cache", ["/proc/nope", "file"])
def test_a_folder_that_cannot_be_made(cache, tmp_path, commands, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FUSIONLAB_CACHE", str(tmp_path / cache))
    with pytest.raises(InputError, match=r"environments: cannot be made: .*; set FUSIONLAB_CACHE to another folder"):
        environment("0.6.2")
    assert commands == []


def test_without_a_cache_the_folder_is_of_this_user_alone(tmp_path, commands, monkeypatch):
    monkeypatch.setenv("FUSIONLAB_CACHE", "off")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = environment("0.6.2")
    parent = made.folder.parents[1]
    assert (parent.parent, parent.stat().st_mode & 0o777) == (tmp_path, 0o700)
    parent.chmod(0o777)
    with pytest.raises(InputError, match="not a folder of this user alone"):
        environment("0.8.0")
    parent.rename(tmp_path / "other")
    parent.symlink_to(tmp_path / "other")
    with pytest.raises(InputError, match="not a folder of this user alone"):
        environment("0.8.0")


def test_uv_makes_it_where_it_is(folder, commands, monkeypatch):
    monkeypatch.setattr(environments.shutil, "which", lambda name: "/usr/bin/uv" if name == "uv" else None)
    environment("0.6.2")
    assert [command[:3] for command in commands] == [
        ["/usr/bin/uv", "venv", "--quiet"],
        ["/usr/bin/uv", "pip", "install"],
    ]


def test_a_failed_one_leaves_nothing(folder, monkeypatch):
    def fail(command, version):
        raise NoEnvironment("JAX 0.6.2 cannot be installed: no network")

    monkeypatch.setattr(environments, "_run", fail)
    monkeypatch.setattr(environments, "_python_for", lambda version: sys.executable)
    with pytest.raises(NoEnvironment, match="no network"):
        environment("0.6.2")
    assert list(folder.iterdir()) == []


def test_pip_s_last_error_is_the_reason():
    code = "import sys; sys.exit('noise\\nERROR: No matching distribution found for jax==0.4.99\\n')"
    with pytest.raises(NoEnvironment, match=r"JAX 0.4.99 cannot be installed: ERROR: No matching distribution"):
        environments._run([sys.executable, "-c", code], "0.4.99")


def test_uv_s_reason_is_its_first_error_and_the_last_line():
    code = "import sys; sys.exit('error: Failed to fetch jax\\n  Caused by: x\\n  Caused by: no route to host\\n')"
    with pytest.raises(NoEnvironment, match=r"installed: error: Failed to fetch jax: Caused by: no route to host$"):
        environments._run([sys.executable, "-c", code], "0.4.99")


def test_without_a_python_the_versions_that_it_needs_are_named(folder, monkeypatch):
    monkeypatch.setattr(environments, "_interpreter", lambda python: None)
    monkeypatch.setattr(environments.shutil, "which", lambda name: None)
    with pytest.raises(
        NoEnvironment, match=r"JAX 0.11.2 needs Python 3.12 or 3.13, and none was found; install one, or uv"
    ):
        environment("0.11.2")


@pytest.mark.parametrize(("version", "first"), [("0.4.35", "3.11"), ("0.10.2", "3.11"), ("0.11.0", "3.12")])
def test_the_oldest_python_that_it_runs_on(version, first, monkeypatch):
    monkeypatch.setattr(environments, "_interpreter", lambda python: python)
    assert environments._python_for(version) == first


def test_an_interpreter_is_found_and_has_its_version():
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert environments._interpreter(own)
    assert environments._interpreter("3.99") is None


def test_the_version_of_this_process_needs_none(folder):
    found = package_versions("jax", "jaxlib", "jax-cuda12-plugin")
    if len(found) < 3 or len(set(found.values())) > 1:
        pytest.skip("no plugin of the version of JAX")
    assert environment(found["jax"]).python == Path(sys.executable)
    assert not folder.exists()
