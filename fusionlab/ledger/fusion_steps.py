"""The decisions of XLA's fusion passes, read from its dumps: what was refused last, and the reason.

For a GPU, ``FusionProcessDumpProto`` in text form lists the steps of the pass: ``fusion`` (a producer went into a
consumer, which may get a new name), ``producer_ineligible`` (with the reason) and ``update_priority`` (XLA's estimate
in microseconds of producer and consumers unfused and fused; a fusion that would be slower is refused). The last step of
a producer that remains at the end is the refusal. ``codegen.compile`` asks XLA for the dump;
``ledger.refusals`` matches its refusals to launches.

For the CPU, the pages of ``xla_dump_fusion_visualization`` have a label per step and pair: ``Not fusing |producer| into
|consumer| as REASON``, ``About to fuse |producer| into |consumer| ..``, ``Fused |producer| into |fusion| ..``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

SLOWER = "XLA's cost model says that fused is slower"
_STEP = re.compile(r"fusion_steps \{\n  (\w+) \{\n(.*?)\n  \}\n\}", re.DOTALL)
_FIELD = re.compile(r'(\w+): (?:"((?:[^"\\]|\\.)*)"|(\S+))')


@dataclass(frozen=True)
class FusionStep:
    """One refusal in the dump: ``reason`` is XLA's (or SLOWER); times are per run, None where XLA reported none.

    ``consumers`` are the readers that it is about; () for all of them.
    """

    producer: str
    reason: str
    us_unfused: float | None = None
    us_fused: float | None = None
    consumers: tuple[str, ...] = ()


def read_steps(dump: str) -> tuple[FusionStep, ...]:
    """The last decision about every producer that was not fused away, in the order of the dump.

    A consumer that absorbs a producer and is renamed keeps its own refusal until XLA decides about it again.
    """
    last: dict[str, FusionStep] = {}
    for match in _STEP.finditer(dump):
        fields = {name: text or bare for name, text, bare in _FIELD.findall(match[2])}
        producer = fields.get("producer_name", "")
        last.pop(producer, None)
        if match[1] == "fusion":
            fused, consumer = fields.get("fusion_name", ""), fields.get("consumer_name", "")
            if fused and fused != consumer and consumer in last:
                last[fused] = replace(last.pop(consumer), producer=fused)
        elif match[1] == "producer_ineligible":
            last[producer] = FusionStep(producer, fields.get("reason", "no reason given"))
        elif match[1] == "update_priority":
            # The text form leaves out a field that is zero.
            unfused, fused = float(fields.get("us_unfused", 0)), float(fields.get("us_fused", 0))
            if fused >= unfused and fused > 0:
                last[producer] = FusionStep(producer, SLOWER, unfused, fused)
    return tuple(last.values())


_LABEL = re.compile(r"(Not fusing|About to fuse|Fused) \|([^|]+)\| into \|([^|]+)\|(?: as (.*))?")


def read_labels(labels: str) -> tuple[FusionStep, ...]:
    """The last decision about every pair of producer and consumer, from the labels of the CPU's fusion pass.

    ``labels`` has one a line. Pairs with the same producer and reason are one refusal. A consumer that absorbs a
    producer keeps its other refusals, under the name of the fusion, until XLA decides about it again.
    """
    last: dict[tuple[str, str], str] = {}
    consumer = ""
    for what, producer, into, reason in (one.groups() for one in map(_LABEL.match, labels.splitlines()) if one):
        last.pop((producer, into), None)
        if what == "Not fusing":
            last[producer, into] = reason.partition(" ; ")[0].rstrip(". ")
        elif what == "About to fuse":
            consumer = into
        else:
            last.pop((producer, consumer), None)
            renamed = {consumer: into}
            last = {(renamed.get(a, a), renamed.get(b, b)): why for (a, b), why in last.items()}
    grouped: dict[tuple[str, str], list[str]] = {}
    for (producer, into), reason in last.items():
        grouped.setdefault((producer, reason), []).append(into)
    return tuple(FusionStep(producer, why, consumers=tuple(into)) for (producer, why), into in grouped.items())
