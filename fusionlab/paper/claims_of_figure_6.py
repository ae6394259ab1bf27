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


def _gemm_order(higher: str, *lower: str) -> Judge:
    """GEMMs of ``higher`` have more FLOPs per byte than those of each of ``lower``."""

    def statements(figures: Figures) -> Statements:
        def more(other: str) -> tuple[bool, str]:
            ours, theirs = (_intensity(figures, model, "gemm") for model in (higher, other))
            return ours > theirs, f"{ours:.1f} against {theirs:.1f} ({other})"

        return [(higher, partial(more, other)) for other in lower]

    return holds(statements)


def _memory_bound(figures: Figures, model: str) -> float:
    """What of the modelled time lies in families under the ridge of the A5000, 0 to 1."""
    peaks = load_target("a5000").peaks
    assert peaks is not None
    ridge = peaks.fp32_flops_per_s / peaks.memory_bytes_per_s
    under = {
        family
        for family, work in figures.by_family(kernel_cell(model)).items()
        if (work.intensity_flop_per_byte or 0.0) < ridge
    }
    return figures.share(kernel_cell(model), lambda group: group.family in under)


def _mostly_memory_bound(figures: Figures) -> Statements:
    def statement(model: str) -> tuple[bool, str]:
        ours = _memory_bound(figures, model)
        return ours > 0.5, f"{100 * ours:.0f} %"

    return [(model, partial(statement, model)) for model in ("paulinet", "ferminet")]


def _more_memory_bound(figures: Figures) -> Statements:
    """Orbformer has fewer FLOPs per byte over all its launches. Time under the ridge would not do: Psiformer's GEMMs,
    taken together, lie on it."""

    def whole(model: str) -> float:
        work = sum(figures.by_family(kernel_cell(model)).values(), start=Work())
        if work.intensity_flop_per_byte is None:
            raise NotMeasured([kernel_cell(model)])
        return work.intensity_flop_per_byte

    def statement() -> tuple[bool, str]:
        ours, other = whole("orbformer"), whole("psiformer")
        return ours < other, f"Orbformer {ours:.1f} against Psiformer {other:.1f} FLOP/byte"

    return [("", statement)]


CLAIMS = (
    Claim("III-C Obs. 2", "most of PauliNet's families lie at 0.01 to 0.1 FLOP/byte", "0.01-0.1", _cluster(0.01, 0.1),
          _BYTES),
    Claim("III-C Obs. 2", "only GEMMs of PauliNet approach the compute roof", "GEMM",
          untestable("library GEMMs are modelled at the roof, so that they come near it is the model's own; it needs "
                     "times of kernels that were measured")),
    Claim("III-C, III-D", "PauliNet's and FermiNet's time is mostly in memory-bound families", "memory-bound",
          holds(_mostly_memory_bound)),
    Claim("III-F", "Orbformer is more memory-bound than Psiformer", "more",
          holds(_more_memory_bound), _BYTES + "; our orbformer has plain attention"),
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
