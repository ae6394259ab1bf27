"""Refused fusions grouped by cause, with what the boundaries cost and what XLA itself says of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fusionlab.ledger.refusals import Refusal


def xla_estimates(found: Sequence[Refusal]) -> dict[str, Any]:
    """XLA's own times over all trips, of the refusals that it weighed; ``us_lost`` is what fusing would have saved."""
    weighed = [one for one in found if one.us_unfused is not None and one.us_fused is not None]
    unfused = sum((one.us_unfused or 0.0) * one.dynamic_launches for one in weighed) if weighed else None
    fused = sum((one.us_fused or 0.0) * one.dynamic_launches for one in weighed) if weighed else None
    return {
        "refusals_with": len(weighed),
        "refusals_without": len(found) - len(weighed),
        "us_unfused": unfused,
        "us_fused": fused,
        "us_lost": None if unfused is None or fused is None else unfused - fused,
    }


def launches_refused(found: Sequence[Refusal]) -> int:
    """Dynamic launches of the kernels of ``found``, each kernel once."""
    return sum({one.kernel: one.dynamic_launches for one in found}.values())


def by_cause(found: Sequence[Refusal]) -> list[dict[str, Any]]:
    """Refusals by cause. The launches of a kernel with several causes count for its costliest boundary's."""
    causes: dict[str, list[Refusal]] = {}
    counted: dict[str, Refusal] = {}
    for one in found:
        causes.setdefault(one.cause, []).append(one)
        counted.setdefault(one.kernel, one)
    groups = []
    for cause, same in causes.items():
        known = [one.boundary_us for one in same if one.boundary_us is not None]
        groups.append(
            {
                "cause": cause,
                "refusals": len(same),
                "kernels": len({one.kernel for one in same}),
                "dynamic_launches": launches_refused([one for one in same if counted[one.kernel] is one]),
                "boundary_us": sum(known) if known else None,
                "xla": xla_estimates(same),
            }
        )
    return sorted(groups, key=lambda group: -(group["boundary_us"] or 0.0))
