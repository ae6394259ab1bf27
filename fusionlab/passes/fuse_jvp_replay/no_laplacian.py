"""Why a sum over directions is not replaced: the kinds of refusals of this pass."""

from __future__ import annotations

from fusionlab.passes.refusals import Refusal


class NotALaplacian(Refusal):
    """A sum is not the Laplacian of a value of the program; the message says what was tried."""


class NoMatch(NotALaplacian):
    """The sum equals the Laplacian of no candidate in all draws, or there is no candidate."""


class UncoveredMatch(NotALaplacian):
    """The sum equals a Laplacian in all draws, but has properties that draws do not cover."""


class Unevaluated(Refusal):
    """A sum has no value in a prime field: an op is not raised, or has no exact meaning."""


class LimitReached(NotALaplacian):
    """The sum cannot be evaluated within the limits of time and memory."""
