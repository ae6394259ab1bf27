"""One script for a rented hour: the whole matrix in order of value, within a time limit.

    python -m fusionlab.measure.session --out DIR --prepare-only --device h100      # before, on any machine
    python -m fusionlab.measure.session --out DIR [--time-limit MINUTES]            # on the rented one

Stages: local energies of all models on CH4; their inference steps; the other molecules; other numbers of walkers. In
each stage every job is first prepared (lowered, rewritten and shown equal: several at once, because nothing is timed
then), unless it was before, and then measured alone, each in a process of its own with a limit of its own; a failure is
noted and the next one goes on. Call it again with the same DIR to go on where it stopped: what is done is not done
again, what failed only with ``--retry``.

DIR gets ``prepared/`` (an archive per job), ``records/`` (one file per measurement), ``verdicts/``, ``logs/`` and
``session.json`` (what was done).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fusionlab.codegen.targets import load_target
from fusionlab.errors import InputError
from fusionlab.files import require_writable, write_whole
from fusionlab.store import digest_of
from fusionlab.subprocesses import Running, module_command

MODELS = ("paulinet", "ferminet", "psiformer", "orbformer")
MOLECULES = ("CH4", "LiH", "C2H6", "C4H4")
STAGES = ("energies", "inference", "molecules", "walkers")
SWEEP = (0.25, 0.5, 2, 4)
"""Numbers of walkers beside the chosen one, as factors of it: 256, 512, 2048 and 4096 beside 1024."""
LATER_PEERS = "folx,folx-sparse"
"""The peers of all stages but the first, which has all of them."""
_LEAST_S = 20.0
_GRACE_S = 10.0
_LEAST = {"walkers": 1, "check_walkers": 1, "runs": 2, "repeats": 1, "jobs": 1}
_MOST_MINUTES = 7 * 24 * 60


@dataclass(frozen=True)
class BenchCall:
    """One call of ``fusionlab bench``; ``stage`` is its position in the order."""

    stage: str
    model: str
    molecule: str
    program: str
    walkers: int

    @property
    def name(self) -> str:
        """The name of its log and of its entry in ``session.json``."""
        return f"{self.model}-{self.molecule}-{self.program}-w{self.walkers}".replace(":", "-")


def jobs(
    models: Sequence[str], molecules: Sequence[str], walkers: int, stages: Sequence[str] = STAGES
) -> list[BenchCall]:
    """The jobs of the chosen stages, the most valuable first; the first molecule is the one of most stages."""
    first, *others = molecules
    of_stage = {
        "energies": [(first, "local-energy", walkers)],
        "inference": [(first, "inference-step", walkers)],
        "molecules": [(other, "local-energy", walkers) for other in others],
        "walkers": [(first, "local-energy", count) for factor in SWEEP if (count := round(walkers * factor)) >= 1],
    }
    return [
        BenchCall(stage, model, *what)
        for stage in STAGES
        if stage in stages
        for what in of_stage[stage]
        for model in models
    ]


@dataclass(frozen=True)
class Finished:
    """``document`` is the JSON it printed, or None; ``problem`` is the reason why it cannot be relied on."""

    document: dict[str, Any] | None
    problem: str
    seconds: float
    timed_out: bool = False


class Child:
    """``python -m fusionlab ARGUMENTS``, started on construction, with its stderr in ``log``."""

    def __init__(
        self, arguments: Sequence[str], log: Path, limit_s: float, environment: Mapping[str, str] | None = None
    ) -> None:
        command, own = module_command("fusionlab", arguments)
        self._limit_s = limit_s
        self._running = Running(command, {**own, **(environment or {})}, limit_s, log=log, grace_s=_GRACE_S)

    def wait(self) -> Finished:
        """The result, once the process has ended or timed out."""
        ended = self._running.wait()
        problem = ""
        if ended.exit_code is None:
            problem = f"not finished within {self._limit_s:.0f} s"
        elif ended.exit_code:
            problem = f"exit {ended.exit_code}: {ended.last_line[:300] or 'no message'}"
        try:
            document = json.loads(ended.output)
        except ValueError:
            document = None
        found = document if isinstance(document, dict) else None
        return Finished(found, problem, ended.seconds, ended.exit_code is None)


class Session:
    """The state of a session, kept in ``out/session.json``, and the execution of the remaining jobs."""

    def __init__(self, out: Path, options: argparse.Namespace) -> None:
        self._out, self._options = out, options
        self._until: float = time.monotonic() + 60 * options.time_limit
        for folder in ("prepared", "records", "verdicts", "logs"):
            require_writable(out / folder)
        self._path = out / "session.json"
        self.done = _read_done(self._path)

    def run(self, every: Sequence[BenchCall]) -> bool:
        """Run the open jobs, stage by stage; False when time ran out first."""
        for stage in dict.fromkeys(job.stage for job in every):
            pending = [job for job in every if job.stage == stage and not self._is_done(job)]
            for job, made in self._prepare_all(pending):
                if not self.is_prepared(job):
                    self._fail(job, f"prepare: {made.problem or 'nothing was shown equal'}", made)
            if self.left_s() < _LEAST_S and not all(map(self.is_prepared, pending)):
                return False
            for job in () if self._options.prepare_only else pending:
                if self._is_done(job) or not self.is_prepared(job):
                    continue
                if self.left_s() < _LEAST_S:
                    return False
                self._measure(job)
        return True

    def is_prepared(self, job: BenchCall) -> bool:
        """True if there is an archive of it, made with the same options."""
        return self._archive(job).exists()

    def left_s(self) -> float:
        """Seconds until the time limit."""
        return self._until - time.monotonic()

    def _archive(self, job: BenchCall) -> Path:
        kind = "cpu" if self._options.device == "cpu" else "gpu"  # an absent one stands for the attached one
        asked = digest_of(kind, *self._asked(job))[:8]
        return self._out / "prepared" / f"{job.name}-{asked}.zip"

    def _prepare_all(self, pending: Sequence[BenchCall]) -> Iterator[tuple[BenchCall, Finished]]:
        """Make the archives that are missing, a few at a time, in order; those that do not fit into the time limit are
        not begun."""
        running: list[tuple[BenchCall, Child]] = []
        for job in pending:
            again = self.done.get(job.name, {}).get("state") == "failed"
            if self.is_prepared(job) and not again:
                continue
            if len(running) >= self._options.jobs:
                first, child = running.pop(0)
                yield first, child.wait()
            if self.left_s() < _LEAST_S:
                break
            self._archive(job).unlink(missing_ok=True)
            _say(f"prepare: {job.name}")
            folders = {
                "device": self._options.device,
                "verdicts": self._out / "verdicts",
                "prepare": self._archive(job),
            }
            arguments = [*self._asked(job), *_words(folders)]
            log = self._out / "logs" / f"{job.name}.prepare.log"
            # Several processes may share the GPU here: none may preallocate its memory.
            running.append((job, Child(arguments, log, self._limit_s(), {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"})))
        for job, child in running:
            yield job, child.wait()

    def _measure(self, job: BenchCall) -> None:
        _say(f"measure: {job.name} ({self.left_s() / 60:.0f} min left)")
        log = self._out / "logs" / f"{job.name}.log"
        finished = Child(self._measuring(job), log, self._limit_s()).wait()
        # Exit code 1 means that the rewriting was left out; the others count.
        if not finished.timed_out and (finished.document or {}).get("variants"):
            self._note(job, "done", finished.problem, finished)
        else:
            self._fail(job, finished.problem or "nothing was measured", finished)

    def _fail(self, job: BenchCall, reason: str, finished: Finished) -> None:
        """Record a failure; a job cut short by the session's limit has not failed and stays open."""
        if finished.timed_out and self.left_s() < _LEAST_S:
            _say(f"stopped: {job.name}, the time limit is reached")
        else:
            self._note(job, "failed", reason, finished)

    def _asked(self, job: BenchCall) -> list[str]:
        """The words of ``bench`` that say what is made."""
        given = self._options
        against = given.against or ("" if job.stage == "energies" else LATER_PEERS)
        options = {
            "model": job.model,
            "molecule": job.molecule,
            "program": job.program,
            "walkers": job.walkers,
            "check-walkers": min(given.check_walkers, job.walkers),
            "size": "tiny" if given.tiny else "full",
            "against": against,
            "pipeline": given.pipeline,
        }
        return ["bench", "--json", *_words(options), *(word for each in given.also for word in ("--also", each))]

    def _measuring(self, job: BenchCall) -> list[str]:
        given = self._options
        options = {
            "runs": given.runs,
            "repeats": given.repeats,
            "records": self._out / "records",
            "device": given.device,
            "jobs": given.jobs,
            "time-limit": round(0.8 * self._limit_s()),
        }
        autotune = "--autotune" if given.autotune else "--no-autotune"
        return ["bench", str(self._archive(job)), "--json", autotune, *_words(options)]

    def _limit_s(self) -> float:
        limit_s: float = 60 * self._options.job_limit
        return min(limit_s, max(1.0, self.left_s()))

    def _is_done(self, job: BenchCall) -> bool:
        state = self.done.get(job.name, {}).get("state")
        return state == "done" or (state == "failed" and not self._options.retry)

    def _note(self, job: BenchCall, state: str, reason: str, finished: Finished) -> None:
        document = finished.document or {}
        path = document.get("path")
        self.done[job.name] = {
            "stage": job.stage,
            "state": state,
            "reason": reason,
            "seconds": round(finished.seconds, 1),
            "record": Path(path).name if path else None,
            "variants": [one["name"] for one in document.get("variants", [])],
            "not_measured": [f"{one['name']}, {one['step']}: {one['reason']}" for one in document.get("failures", [])],
        }
        write_whole(self._path, json.dumps({"jobs": self.done}, indent=1) + "\n")
        _say(f"{state}: {job.name}, {finished.seconds:.0f} s{', ' + reason if reason else ''}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _words(options: Mapping[str, Any]) -> Iterator[str]:
    """The options that have a value, as words of a command line."""
    for name, value in options.items():
        if value:
            yield from (f"--{name}", str(value))


def _read_done(path: Path) -> dict[str, dict[str, Any]]:
    """The jobs of an earlier call; InputError when the file is not as ``Session`` writes it."""
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    jobs = content.get("jobs") if isinstance(content, dict) else None
    if not isinstance(jobs, dict) or not all(isinstance(job, dict) for job in jobs.values()):
        raise InputError(f"{path}: says nothing of jobs; name another --out, or take the file away to begin anew")
    return jobs


def _require_possible(given: argparse.Namespace) -> None:
    """InputError for settings under which no job can succeed: raised up front, not after an hour of failures."""
    for name, least in _LEAST.items():
        if (value := getattr(given, name)) < least:
            raise InputError(f"--{name.replace('_', '-')} must be at least {least}, not {value}")
    for name in ("time_limit", "job_limit"):
        if not 0 < (value := getattr(given, name)) <= _MOST_MINUTES:
            raise InputError(f"--{name.replace('_', '-')} must be between 0 and {_MOST_MINUTES} minutes, not {value}")
    for name in ("models", "molecules"):
        if not all(word.strip() for word in getattr(given, name).split(",")):
            raise InputError(f"--{name} needs names, with commas between them")
    if given.device not in (None, "gpu", "cpu"):
        if not given.prepare_only:
            raise InputError(f"--device {given.device}: nothing can be timed there; say --prepare-only, or gpu or cpu")
        load_target(given.device)
    if wrong := set(given.stages.split(",")) - set(STAGES):
        raise InputError(f"unknown stage {sorted(wrong)[0]!r}; there are {', '.join(STAGES)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the session; 0 when something was measured or nothing was left to do, 1 when not, 2 for wrong options."""
    given = _parser().parse_args(arguments)
    try:
        _require_possible(given)
        session = Session(given.out, given)
    except InputError as error:
        print(f"fusionlab: {error}", file=sys.stderr)
        return 2
    every = jobs(given.models.split(","), given.molecules.split(","), given.walkers, given.stages.split(","))
    finished = session.run(every)
    state = {job.name: session.done.get(job.name, {}).get("state", "open") for job in every}
    if given.prepare_only:
        made = sum(session.is_prepared(job) for job in every)
        print(f"{made} prepared, {len(every) - made} not", file=sys.stderr)
        return 0 if made else 1
    counts = {word: sum(found == word for found in state.values()) for word in ("done", "failed", "open")}
    print(", ".join(f"{count} {word}" for word, count in counts.items()), file=sys.stderr)
    if not finished:
        print("the time limit is reached; call again with the same --out to go on", file=sys.stderr)
    if counts["done"]:
        command, environment = module_command("fusionlab", ["compare", str(given.out / "records")])
        subprocess.run(command, env=environment, check=False)
    return 0 if counts["done"] else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="Folder for records, verdicts, logs and what was done.")
    parser.add_argument("--time-limit", type=float, default=60.0, help="Minutes for everything (60).")
    parser.add_argument("--job-limit", type=float, default=12.0, help="Minutes for one of either (12).")
    parser.add_argument("--device", help="gpu, cpu, or with --prepare-only an absent GPU; a GPU if there is one.")
    parser.add_argument("--prepare-only", action="store_true", help="Make the archives, and time nothing.")
    parser.add_argument("--no-autotune", dest="autotune", action="store_false", help="As for `fusionlab bench`.")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--molecules", default=",".join(MOLECULES), help="The first is that of most stages.")
    parser.add_argument("--stages", default=",".join(STAGES))
    parser.add_argument("--walkers", type=int, default=1024)
    parser.add_argument("--check-walkers", type=int, default=16)
    parser.add_argument("--tiny", action="store_true", help="Narrow models, for a trial of this script.")
    parser.add_argument("--against", help="Peers, as for `fusionlab bench`.")
    parser.add_argument("--pipeline", help="As for `fusionlab bench`.")
    parser.add_argument("--also", action="append", default=[], help="As for `fusionlab bench`; repeatable.")
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument(
        "--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 2), help="Prepared or compiled at a time."
    )
    parser.add_argument("--retry", action="store_true", help="Do again what failed.")
    return parser


if __name__ == "__main__":
    sys.exit(main())
