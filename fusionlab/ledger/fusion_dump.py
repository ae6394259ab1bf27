"""XLA's priority-fusion dump, read as records: what its fusion pass refused, and why.

The dump (``FusionProcessDumpProto`` in text form) lists what the pass did, step by step: ``fusion`` (a producer went
into a consumer, which may get a new name), ``producer_ineligible`` (with the reason) and ``update_priority`` (XLA's
estimate in microseconds of producer and consumers unfused and fused; what would get slower is not fused). Of a producer
that is still there at the end, the last step is the refusal.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass

SLOWER = "XLA's cost model says that fused is slower"
_STEP = re.compile(r"fusion_steps \{\n  (\w+) \{\n(.*?)\n  \}\n\}", re.DOTALL)
_FIELD = re.compile(r'(\w+): (?:"((?:[^"\\]|\\.)*)"|(\S+))')


@dataclass(frozen=True)
class Step:
    """One refusal as the dump has it: ``reason`` is XLA's (or SLOWER); times are per run, None where XLA gave none."""

    producer: str
    reason: str
    us_unfused: float | None = None
    us_fused: float | None = None


def read_steps(dump: str) -> tuple[Step, ...]:
    """The last decision about every producer that was not fused away, in the order of the dump.

    A consumer that takes something in and is renamed keeps its own refusal until XLA decides about it again.
    """
    last: dict[str, Step] = {}
    for match in _STEP.finditer(dump):
        fields = {name: text or bare for name, text, bare in _FIELD.findall(match[2])}
        producer = fields.get("producer_name", "")
        last.pop(producer, None)
        if match[1] == "fusion":
            fused, consumer = fields.get("fusion_name", ""), fields.get("consumer_name", "")
            if fused and fused != consumer and consumer in last:
                last[fused] = dataclasses.replace(last.pop(consumer), producer=fused)
        elif match[1] == "producer_ineligible":
            last[producer] = Step(producer, fields.get("reason", "no reason given"))
        elif match[1] == "update_priority":
            # The text form leaves out a field that is zero.
            unfused, fused = float(fields.get("us_unfused", 0)), float(fields.get("us_fused", 0))
            if fused >= unfused and fused > 0:
                last[producer] = Step(producer, SLOWER, unfused, fused)
    return tuple(last.values())
