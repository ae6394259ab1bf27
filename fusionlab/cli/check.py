"""``fusionlab check``: compare two programs on walkers of every kind, by float64 truth and other oracles."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli import options
from fusionlab.cli.exit_codes import exit_code, failed_passes
from fusionlab.cli.pipelines import passes_of, pipeline_text
from fusionlab.cli.sources import circumstances, load_pair
from fusionlab.cli.terminal import say
from fusionlab.errors import InputError
from fusionlab.files import require_writable
from fusionlab.workload import Workload

if TYPE_CHECKING:
    from rich.console import Console

    from fusionlab.equivalence.counterexample import Counterexample
    from fusionlab.equivalence.samples import Sample
    from fusionlab.equivalence.verdict import Verdict
    from fusionlab.hlo.program import Program
    from fusionlab.passes.interface import Event, Pass
    from fusionlab.study import Circumstances

_ANOTHER_ALGORITHM = "it compares rewritings; another Laplacian (--against-laplacian) is another algorithm"


@click.command("check")
@options.source
@click.argument("other", required=False)
@options.target
@options.passes(
    "Compare with the source after this pass; repeatable.", "Compare with the source after these passes: 'a,b{x=1}'."
)
@click.option("--against-laplacian", "other_laplacian", help="Compare with the same model and this Laplacian.")
@options.check
@options.inputs("Compare on these inputs only: a worst walker that was saved, or arrays of numpy.savez in order.")
@click.option("--worst", help="File to save the worst walker in.  [default: one below $FUSIONLAB_CACHE, printed]")
@click.option("--oracles/--no-oracles", default=True, help="Ask brute force and the reference interpreter too.")
@click.option("--exact", is_flag=True, help="Compare in prime fields alone: no tolerance, steered predicates.")
@options.verbose
@options.cache
@options.verb
def command(
    source: dict[str, Any],
    other: str | None,
    asked: dict[str, Any],
    other_laplacian: str | None,
    check: dict[str, Any],
    inputs: str | None,
    worst: str | None,
    oracles: bool,
    exact: bool,
    verbose: bool,
    console: Console,
    where: dict[str, Any],
) -> tuple[dict[str, Any], int]:
    """Compare two programs, or a program and its rewriting. Exit 0 equal, 1 different or not checked, 2 bad input.

    Of two Python functions both are lowered for the CPU, which runs them, unless --target says otherwise.
    """
    from fusionlab.codegen.cache import kept_folder
    from fusionlab.passes.pipeline import print_pipeline
    from fusionlab.report.tables.programs import print_refusals, print_verdict

    if source["model"] is not None and source["file"] is not None and other is None:
        source["file"], other = None, source["file"]
    loaded, against, where["target"] = load_pair(source, other, where["target"])
    chosen = passes_of(**asked) if pipeline_text(**asked) else ()
    given = circumstances(loaded, **where, **check)
    if sum((bool(chosen), against is not None, other_laplacian is not None)) != 1:
        raise InputError("name one thing to compare with: a second FILE, --pass or --pipeline, or --against-laplacian")
    if exact:
        document, events = check_exactly_alone(
            loaded, chosen, against, given, console, other_laplacian, inputs, verbose=verbose
        )
        equal = document["exact"]["result"] == "identical"
    else:
        if worst is not None:
            options.require_file_name(worst, "--worst")
        verdict, events = compared(loaded, chosen, against, given, other_laplacian, inputs, oracles)
        saved, equal = None, verdict.passed
        if verdict.counterexample is not None:
            name = hashlib.sha256(verdict.counterexample.to_bytes()).hexdigest()[:16]
            saved = worst or str(kept_folder("worst-walkers") / f"{name}.npz")
            again = options.typed(click.get_current_context(), inputs=saved, worst=None, as_json=None)
            again = f"fusionlab check {again}"
            try:
                require_writable(Path(saved).parent)
                replace(verdict.counterexample, command=again).save(Path(saved))
            except InputError as error:
                if worst is not None:
                    raise
                saved = None
                say(f"the worst walker is not kept: {error}; --worst names another file")
            else:
                say(f"the worst walker is in {saved}; again: {again}")
        print_verdict(verdict, console, verbose=verbose)
        document = {**verdict.to_json(), "worst_walker": verdict.worst or None, "worst_walker_file": saved}
    print_refusals(events, console, verbose=verbose)
    failed = failed_passes(events)
    for why in failed.values():
        say(why)
    document = {
        "name": loaded.title if isinstance(loaded, Workload) else loaded.name,
        "target": given.target.name,
        "pipeline": print_pipeline(chosen),
        **document,
        "events": [event.to_json() for event in events],
    }
    return document, exit_code([*failed, "done" if equal else "different"])


def check_exactly_alone(
    source: Workload | Program,
    passes: Sequence[Pass],
    other: Program | None,
    given: Circumstances,
    console: Console,
    laplacian: str | None = None,
    inputs: str | None = None,
    *,
    verbose: bool = False,
) -> tuple[dict[str, Any], tuple[Event, ...]]:
    """The exact check of ``source`` against ``other`` or its rewriting by ``passes``; no floating-point verdict."""
    from fusionlab.study import check_exactly, check_pair_exactly, lower, rewrite

    if not given.exact:
        raise InputError("--exact asks for the check that --no-exact leaves out")
    if inputs is not None:
        raise InputError("--inputs are numbers of a floating-point check; --exact draws its own points")
    if laplacian is not None:
        raise InputError(f"--exact: {_ANOTHER_ALGORITHM}")
    original = lower(source, given)
    events: tuple[Event, ...] = ()
    if other is None:
        result, _ = rewrite(original, passes, given)
        identity, events = check_exactly(source, original, result, given), result.events
    else:
        identity = check_pair_exactly(original, other, given)
    console.print(identity.line if verbose else identity.short, soft_wrap=True, markup=False)
    reason = "--exact: nothing was compared in floating point"
    return {"verdict": "not-checked", "reason": reason, "exact": identity.to_json()}, events


def compared(
    source: Workload | Program,
    passes: Sequence[Pass],
    other: Program | None,
    given: Circumstances,
    laplacian: str | None,
    inputs: str | None,
    oracles: bool,
) -> tuple[Verdict, tuple[Event, ...]]:
    """The verdict on ``source`` against ``other``, its rewriting by ``passes``, or the same model with ``laplacian``.

    ``inputs`` is the file of a counterexample, the only inputs then compared.
    """
    from fusionlab.equivalence.counterexample import Counterexample
    from fusionlab.equivalence.samples import require_fitting
    from fusionlab.hlo import lowering
    from fusionlab.study import judge, lower, rewrite

    point = None if inputs is None else Counterexample.load(Path(inputs))
    if laplacian is not None:
        return _against_laplacian(source, laplacian, point, str(inputs), oracles, given), ()
    if other is not None:
        return _against_file(source, other, point, str(inputs), oracles, given), ()
    original = lower(source, given)
    if point is not None and isinstance(source, Workload):
        small = source.rebuild(walkers=given.walkers_of(source))
        require_fitting(point, str(inputs), lowering.lower(small, given.target.kind))
    result, _ = rewrite(original, passes, given)
    return judge(source, original, result, given, inputs=point, oracles=oracles), result.events


def _against_file(
    source: Workload | Program,
    other: Program,
    point: Counterexample | None,
    inputs: str,
    oracles: bool,
    given: Circumstances,
) -> Verdict:
    """Checked in a process of its own: a file's program may crash it, or never end."""
    from fusionlab.equivalence.few_walkers import resized
    from fusionlab.equivalence.isolated import check_files
    from fusionlab.equivalence.samples import require_fitting, sample_of, workload_samples
    from fusionlab.hlo.lowering import lower
    from fusionlab.study import check_pair_exactly

    platform = given.target.kind if other.platform == "any" else other.platform
    if isinstance(source, Workload):
        given.progress(f"lower: {source.title} for {platform}, to stand beside {other.provenance}")
    original = lower(source, platform) if isinstance(source, Workload) else source
    identity = check_pair_exactly(original, other, given) if given.exact and point is None else None
    samples: Iterable[Sample] | None = None
    few = resized((original, other), given.check_walkers) if given.check_walkers is not None else None
    if point is not None:
        samples = [sample_of(point)]
        own = require_fitting(point, inputs, original, *(() if few is None else few.programs[:1])) is original
        few = None if own else few
    pair, walkers = ((original, other), None) if few is None else (few.programs, few.walkers)
    if isinstance(source, Workload) and samples is None:
        samples = workload_samples(source if walkers is None else source.rebuild(walkers=walkers))
    where, limit_s = "their own shapes" if walkers is None else f"{walkers} walkers", given.check_time_limit_s
    given.progress(f"check: at {where}, at most {limit_s:.0f} s")
    verdict = check_files(*pair, samples=samples, oracles=oracles, time_limit_s=limit_s)
    return replace(verdict, walkers=verdict.walkers if walkers is None else walkers, exact=identity)


def _against_laplacian(
    source: Workload | Program,
    laplacian: str,
    point: Counterexample | None,
    inputs: str,
    oracles: bool,
    given: Circumstances,
) -> Verdict:
    from fusionlab.equivalence.check import check_workload
    from fusionlab.equivalence.exact.identity import Identity
    from fusionlab.equivalence.samples import require_fitting, sample_of
    from fusionlab.hlo.lowering import lower

    if not isinstance(source, Workload):
        raise InputError("--against-laplacian is for a model; a FILE has no other Laplacian")
    small = source.rebuild(walkers=given.walkers_of(source))
    other = small.rebuild(laplacian=laplacian)
    if other.argument_names != small.argument_names:
        raise InputError(
            f"--against-laplacian {laplacian}: it takes other arguments ({', '.join(other.argument_names)})"
        )
    given.progress(f"check: {small.walkers} walkers in {small.dtype} and float64")
    if point is not None:
        require_fitting(point, inputs, lower(small, given.target.kind))
    lowered = [lower(other.rebuild(dtype=dtype), given.target.kind) for dtype in (small.dtype, "float64")]
    samples = None if point is None else [sample_of(point)]
    identity = Identity("not-covered", 0, 0, 1.0, _ANOTHER_ALGORITHM) if given.exact and point is None else None
    return replace(check_workload(small, lowered[0], lowered[1], samples, oracles=oracles), exact=identity)
