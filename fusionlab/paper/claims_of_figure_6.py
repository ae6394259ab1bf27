"""Sections III-C to III-F, Figure 6: arithmetic intensity by family, the roofs, and hardware counters.

Intensities here are fusionlab's FLOPs over the operand and result bytes of each launch; the characterisation's are
counted by the hardware, in which caches take part. CH4, inference, A5000.
"""

from __future__ import annotations

from functools import partial

from fusionlab.codegen.targets import load_target
from fusionlab.paper.claim import Claim, Judge, Statements, holds, untestable
from fusionlab.paper.claims_of_figure_5 import kernel_cell
from fusionlab.paper.figures import Figures, NotMeasured, Work

_NO_COUNTERS = "hardware counters; `fusionlab bench --counters` reads them where there is a GPU"
_BYTES = (
    "our bytes are operands and results of each launch, theirs are counted at the memory, behind the caches; our FLOPs "
    "count one per element of each operation, theirs executed instructions"
)


def _intensity(figures: Figures, model: str, family: str) -> float:
    work = figures.by_family(kernel_cell(model)).get(family, Work())
    found = work.intensity_flop_per_byte
    if found is None:
        raise NotMeasured([kernel_cell(model)])
    return found


def _cluster(low: float, high: float) -> Judge:
    """More than half of PauliNet's families that compute anything lie between ``low`` and ``high``."""

    def statements(figures: Figures) -> Statements:
        def most() -> tuple[bool, str]:
            found = {
                family: work.intensity_flop_per_byte
                for family, work in figures.by_family(kernel_cell("paulinet")).items()
                if work.flops and work.intensity_flop_per_byte is not None
            }
            inside = [value for value in found.values() if low <= value <= high]
            words = ", ".join(f"{family} {value:.2g}" for family, value in found.items())
            return len(inside) > len(found) / 2, f"{len(inside)} of {len(found)}: {words}"

        return [("", most)]

    return holds(statements)


def _only_gemm_near_roof(figures: Figures) -> Statements:
    """GEMM reaches a third of the compute roof, and no other family a tenth."""

    def near() -> tuple[bool, str]:
        peaks = load_target("a5000").peaks
        assert peaks is not None
        found = {
            family: work.of_compute_peak(peaks.fp32_flops_per_s) or 0.0
            for family, work in figures.by_family(kernel_cell("paulinet")).items()
        }
        order = sorted(found, key=lambda family: -found[family])
        words = ", ".join(f"{family} at {100 * found[family]:.0f} %" for family in order[:3])
        return order[0] == "gemm" and found[order[0]] >= 1 / 3 and found[
            order[1]
        ] <= 0.1, f"{words} of the compute roof"

    return [("", near)]


def _gemm_order(higher: str, *lower: str) -> Judge:
    """GEMMs of ``higher`` have more FLOPs per byte than those of each of ``lower``."""

    def statements(figures: Figures) -> Statements:
        def more(other: str) -> tuple[bool, str]:
            ours, theirs = (_intensity(figures, model, "gemm") for model in (higher, other))
            return ours > theirs, f"{ours:.1f} against {theirs:.1f} ({other})"

        return [(higher, partial(more, other)) for other in lower]

    return holds(statements)


def _below_ridge(figures: Figures) -> Statements:
    """What of the modelled time lies in families under the ridge of the A5000."""
    peaks = load_target("a5000").peaks
    assert peaks is not None
    ridge = peaks.fp32_flops_per_s / peaks.memory_bytes_per_s

    def share(model: str) -> tuple[bool, str]:
        found = figures.by_family(kernel_cell(model))
        under = sum(work.model_us for work in found.values() if (work.intensity_flop_per_byte or 0.0) < ridge)
        ours = under / sum(work.model_us for work in found.values())
        return ours > 0.5, f"{100 * ours:.0f} %"

    return [(model, partial(share, model)) for model in ("paulinet", "ferminet")]


CLAIMS = (
    Claim("III-C Obs. 2", "most of PauliNet's families lie at 0.01 to 0.1 FLOP/byte", "0.01-0.1", _cluster(0.01, 0.1),
          _BYTES),
    Claim("III-C Obs. 2", "only GEMMs of PauliNet approach the compute roof", "GEMM", holds(_only_gemm_near_roof)),
    Claim("III-C, III-D", "PauliNet's and FermiNet's time is mostly in memory-bound families", "memory-bound",
          holds(_below_ridge)),
    Claim("III-D Obs. 2", "FermiNet's GEMMs have a higher intensity than PauliNet's", "higher",
          _gemm_order("ferminet", "paulinet"), _BYTES),
    Claim("III-E Obs. 1", "Psiformer's GEMMs have a higher intensity than PauliNet's and FermiNet's", "higher",
          _gemm_order("psiformer", "paulinet", "ferminet"), _BYTES),
    Claim("III-F Obs. 2", "Orbformer's GEMMs have a lower intensity than Psiformer's", "lower",
          _gemm_order("psiformer", "orbformer"), _BYTES + "; our orbformer has plain attention"),
    Claim("III-C Obs. 2", "PauliNet: instruction throughput, FMA activity, SM throughput, L2 hits",
          "26, 14, 27, 48 %", untestable(_NO_COUNTERS)),
    Claim("III-D Obs. 2", "FermiNet: instruction throughput, L2 hits", "22, 50 %", untestable(_NO_COUNTERS)),
    Claim("III-E Obs. 2", "Psiformer: instruction throughput, SM throughput, tensor cores, L2 hits",
          "42, 31, 19, 60 %", untestable(_NO_COUNTERS)),
    Claim("III-F Obs. 2", "Orbformer: SM use, SM throughput, L2 hits", "37, 29, 51 %", untestable(_NO_COUNTERS)),
    Claim("IV-D", "FlashAttention-1 speeds one sampling step of Orbformer up by less than 20 %", "< 20 %",
          untestable("needs a GPU: `fusionlab bench --model orbformer-flash --program mcmc`")),
)  # fmt: skip
