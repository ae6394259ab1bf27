"""What every command does to a terminal and to a pipe: JSON, silence, no colours when they are not wanted, and where
the noise of native libraries goes."""

import io
import json
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from fusionlab.cli import VERBS, main
from fusionlab.cli import terminal as terminal_module
from fusionlab.cli.terminal import Steps, log_path

ROOT = Path(__file__).parents[2]
COLOUR = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7])(?:;[0-9;]*)?m")


def options_of(command):
    return {name for parameter in command.params for name in parameter.opts}


@pytest.mark.parametrize("name", VERBS)
def test_every_command_has_json_and_quiet(name):
    command = main.get_command(click.Context(main), name)
    assert {"--json", "--quiet"} <= options_of(command)
    assert (command.name, bool(command.help)) == (name, True)
    parameters = [parameter.name for parameter in command.params]
    assert len(set(parameters)) == len(parameters)  # of two with one name a value is lost


DOCUMENTS = """
dump FILE --target cpu
apply FILE --target cpu --pass batch-replay
graph FILE --view stages
launches FILE --target cpu
clusters FILE --target cpu
replays FILE
check FILE --target cpu --pass batch-replay --no-oracles
passes
models --model ferminet --molecule LiH
compare RECORDS
paper --no-run
completion bash
"""


@pytest.mark.parametrize("command", DOCUMENTS.split("\n")[1:-1])
def test_quiet_json_is_one_document_and_nothing_else(command, replay_file, tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    places = {"FILE": replay_file, "RECORDS": ROOT / "studies" / "bench"}
    result = cli(*(places.get(word, word) for word in command.split()), "--json", "--quiet", code=0)
    assert json.loads(result.stdout)
    assert result.stderr == ""


def on_a_terminal(*words, **variables):
    """Output of the command with a terminal for stdout and stderr."""
    ours, its = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **variables}
    process = subprocess.Popen(
        [sys.executable, "-m", "fusionlab", *words], stdout=its, stderr=its, stdin=subprocess.DEVNULL, env=environment
    )
    os.close(its)
    output = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        output += part
        if not part:
            break
    os.close(ours)
    assert process.wait() == 0, output
    return output.decode()


def test_no_colours_when_they_are_not_wanted(tmp_path):
    found = on_a_terminal("passes", NO_COLOR="1", COLUMNS="120", FUSIONLAB_CACHE=str(tmp_path))
    assert "fuse-jvp-replay" in found
    assert not COLOUR.search(found)


def test_native_noise_and_tracebacks_go_to_the_log(tmp_path):
    script = """
from fusionlab.cli.terminal import keep_native_log
keep_native_log()
import logging, os, sys
os.write(2, b"a native line\\n")
print("our line", file=sys.stderr)
logging.getLogger("fusionlab.passes.pipeline").error("pass x failed", exc_info=ZeroDivisionError("a bug"))
"""
    log = tmp_path / "logs" / "own.log"

    def said(where):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "FUSIONLAB_LOG": str(where)}
        command = [sys.executable, "-c", script]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stderr

    assert said(log) == "our line\n"
    for part in ("a native line", "ZeroDivisionError: a bug"):
        assert part in log.read_text()
    assert {"a native line", "our line"} <= set(said("-").splitlines())

    unwritable = tmp_path / "a file"
    unwritable.write_text("in the way")
    for full in ("/dev/full", unwritable / "own.log"):
        assert said(full) == "our line\n"


@pytest.mark.parametrize("words", ["passes", "passes --json", "passes --help", "--help", "--version"])
def test_a_full_disk_behind_stdout_is_one_line(words, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FUSIONLAB_CACHE": str(tmp_path)}
    command = [sys.executable, "-m", "fusionlab", *words.split()]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment, check=False)
    assert done.returncode == 2
    assert re.fullmatch(r"fusionlab: .*cannot be written: No space left on device\n", done.stderr)


@pytest.mark.parametrize(
    ("words", "closed", "code", "said"),
    [
        ("passes", "stdout", 0, ""),
        ("passes --json", "stdout", 2, "fusionlab: --json: standard output is closed; open it, or leave out --json\n"),
        ("passes", "stderr", 0, ""),
        ("paper", "stdin", 2, "start it with --yes"),
        ("paper", "stderr", 2, ""),
    ],
)
def test_a_stream_that_the_shell_closed(words, closed, code, said, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, closed, None)
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    monkeypatch.undo()
    assert ended.value.code == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        "apply FILE --pass licm --target cpu --out NAME",
        "dump NAME",
        "bisect FILE --pass licm --out NAME",
        "compare NAME",
    ],
)
def test_a_name_that_is_too_long_is_one_line(words, replay_file, cli):
    given = {"FILE": replay_file, "NAME": "x" * 300}
    said = cli(*(given.get(word, word) for word in words.split()), "--quiet", code=2).stderr
    assert re.fullmatch(r"fusionlab: x{300}: .*File name too long.*\n", said)


def test_a_log_in_no_home_folder_is_one_line(tmp_path):
    variables = {"FUSIONLAB_CACHE": str(tmp_path), "FUSIONLAB_LOG": "~nouser/x", "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "fusionlab", "passes"], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
    )  # fmt: skip
    assert re.fullmatch(r"fusionlab: ~nouser/x: .*; set FUSIONLAB_LOG to another path\n", done.stderr)
    [log] = tmp_path.glob("fusionlab-*/logs/xla.log")
    assert log.is_file()


def test_the_log_lies_beside_the_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("FUSIONLAB_LOG", raising=False)
    monkeypatch.setenv("FUSIONLAB_CACHE", str(tmp_path))
    assert log_path() == tmp_path / "logs" / "xla.log"
    monkeypatch.setenv("FUSIONLAB_CACHE", "off")
    assert log_path() is not None
    assert tmp_path not in log_path().parents


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_long_step_says_how_long_and_clears_it_away_on_a_terminal(monkeypatch):
    monkeypatch.setattr(terminal_module, "_SILENT_S", 0.02)
    monkeypatch.setattr(terminal_module, "_TICK_S", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stream)
        steps = Steps()
        steps("one")
        deadline = time.monotonic() + 30
        while stream.isatty() and " s\x1b[K" not in stream.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
        steps.clear()
        said = stream.getvalue()
        assert said.startswith("one\n")
        assert ("\r  0 s\x1b[K" in said, said.endswith("\r\x1b[K")) == (stream.isatty(), stream.isatty())
    steps("two")
    assert stream.getvalue() == "one\ntwo\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(shell, cli):
    assert "_FUSIONLAB_COMPLETE" in cli("completion", shell, code=0).stdout
    cli("completion", "tcsh", code=2)


COMPLETED = {
    "fusionlab lau": {"launches"},
    "fusionlab dump --model pa": {"paulinet"},
    "fusionlab dump --molecule C": {"CH4", "C2H6", "C4H4"},
    "fusionlab apply --pass fuse": {"fuse-jvp-replay"},
    "fusionlab dump --target a1": {"a100"},
    "fusionlab graph --view k": {"kernel:"},
}


@pytest.mark.parametrize(("words", "offered"), COMPLETED.items(), ids=COMPLETED)
def test_names_are_completed(words, offered, monkeypatch, capsys):
    monkeypatch.setenv("_FUSIONLAB_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    with pytest.raises(SystemExit):
        main(prog_name="fusionlab")
    assert {line.partition(",")[2] for line in capsys.readouterr().out.split()} == offered
    assert isinstance(main, click.Group)


def test_a_folder_that_is_not_there_is_not_made(cli, replay_file, tmp_path):
    out = tmp_path / "no" / "such" / "x.mlir"
    said = cli("apply", replay_file, "--pass", "batch-replay", "--target", "cpu", "--out", out, code=2).stderr
    assert said == f"fusionlab: {out}: there is no folder {out.parent}; make it, or name another file with --out\n"
    assert not (tmp_path / "no").exists()
