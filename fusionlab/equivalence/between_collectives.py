"""Two programs of several devices, compared function by function between their collectives.

Two programs whose collectives and everything else around these functions are the same text are equal if the functions
are: each is compared as a program of its own, of arguments of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fusionlab.codegen.between_collectives import around_parts, divided, parts
from fusionlab.equivalence.exact.identity import Identity
from fusionlab.equivalence.verdict import Verdict
from fusionlab.hlo.program import Program

BY_FUNCTION = "function by function between the collectives"


class OtherAround(Exception):
    """Two programs differ outside of their functions between collectives."""


def functions_between(original: Program, rewritten: Program) -> dict[str, tuple[Program, Program]]:
    """Pairs of functions that differ, by name; of equal programs all of them. OtherAround with the reason if the
    programs are not the same around them, or have none."""
    ours, theirs = divided(original), divided(rewritten)
    if around_parts(ours) != around_parts(theirs):
        raise OtherAround("the programs differ outside of their functions between collectives")
    first, second = parts(ours), parts(theirs)
    if first.keys() != second.keys() or any(part.has_collectives for part in (*first.values(), *second.values())):
        raise OtherAround("their functions between collectives are not the same, or have collectives inside")
    pairs = {name: (part, second[name]) for name, part in first.items()}
    if not pairs:
        raise OtherAround("the programs have no function between collectives that would be rewritten")
    differing = {name: pair for name, pair in pairs.items() if str(pair[0].parse()) != str(pair[1].parse())}
    return differing or pairs


def identity_of_all(found: Sequence[Identity]) -> Identity:
    """The exact verdict on the programs, from those on their functions: the first that is not ``identical``."""
    failed = next((one for one in found if one.result == "not-identical"), None)
    failed = failed or next((one for one in found if one.result != "identical"), None)
    if failed is not None:
        return replace(failed, reason=f"{failed.reason} ({BY_FUNCTION})")
    walkers = {one.walkers for one in found}
    return Identity(
        "identical",
        min(one.draws for one in found),
        min(one.primes for one in found),
        min(sum(one.error_probability for one in found), 1.0),
        BY_FUNCTION,
        walkers=walkers.pop() if len(walkers) == 1 else None,
        at_ties="; ".join(filter(None, (one.at_ties for one in found))),
        except_for="; ".join(dict.fromkeys(filter(None, (one.except_for for one in found)))),
    )


def verdict_of_all(found: Sequence[Verdict], why: str) -> Verdict:
    """The verdict in floating point on the programs, from those on their functions, with the reason ``why``."""
    failed = next((one for one in found if one.verdict == "different"), None)
    failed = failed or next((one for one in found if not one.passed), None)
    if failed is not None:
        return replace(failed, reason="; ".join(filter(None, (failed.reason, why))))
    walkers = {one.walkers for one in found}
    return Verdict(
        "equal" if all(one.verdict == "equal" for one in found) else "within-bound",
        tuple(output for one in found for output in one.outputs),
        walkers.pop() if len(walkers) == 1 else None,
        reason=why,
    )
