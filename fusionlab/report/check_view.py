"""The verdict of a check for a terminal: figures per output, histograms, what the oracles say."""

from __future__ import annotations

from rich.console import Console

from fusionlab.equivalence.verdict import OracleAgreement, OutputError, Verdict
from fusionlab.report.tables import print_rows

_COLUMNS = ("", "off truth", "tolerance", "in float64", "tolerance", "most ULP", "mean shift", "Monte-Carlo error")


def print_verdict(verdict: Verdict, console: Console) -> None:
    """The verdict in the first line, a row per output, its histograms, and the oracles."""
    console.print(f"verdict: {verdict.line}", soft_wrap=True)
    if verdict.outputs:
        print_rows("rewritten against original", _COLUMNS, [_row(output) for output in verdict.outputs], console)
    for output in verdict.outputs:
        for line in _histograms(output):
            console.print(line, soft_wrap=True)
    for oracle in verdict.oracles:
        console.print(f"oracle: {_said(oracle)}", soft_wrap=True)


def _row(output: OutputError) -> list[str]:
    figures = (
        output.max_abs_error,
        output.tolerance,
        output.max_abs_error_float64,
        output.tolerance_float64,
        output.max_ulp,
        output.mean_shift,
        output.standard_error,
    )
    return [output.name, *("-" if figure is None else f"{figure:.3g}" for figure in figures)]


def _histograms(output: OutputError) -> list[str]:
    lines = []
    if any(output.ulp_histogram):
        bins = [f"{_ulps(k, len(output.ulp_histogram))}: {n:,}" for k, n in enumerate(output.ulp_histogram) if n]
        lines.append(f"{output.name}, elements by ULP from the original: {', '.join(bins)}")
    if output.abs_histogram:
        bins = [f"1e{decade:+d}: {count:,}" for decade, count in output.abs_histogram]
        lines.append(f"{output.name}, elements by |difference| of at least: {', '.join(bins)}")
    return lines


def _ulps(bin_: int, bins: int) -> str:
    if bin_ == bins - 1:
        return "not finite"
    if bin_ < 2:
        return str(bin_)
    return f"{2 ** (bin_ - 1):,}-{2**bin_ - 1:,}" if bin_ < 20 else f"over 2^{bin_ - 1}"


def _said(oracle: OracleAgreement) -> str:
    if oracle.agrees is None:
        return f"{oracle.name} was not asked: {oracle.reason}"
    word = "agrees with" if oracle.agrees else "does not agree with"
    return f"{oracle.name} {word} the original: off by {oracle.max_abs_error:.3g} (tolerance {oracle.tolerance:.3g})"
