"""What a sampler carries from one transition to the next."""

from __future__ import annotations

from typing import Any, NamedTuple


class State(NamedTuple):
    """Walkers ``r`` ``[W, electrons, 3]``, their ``log_psi`` and ``sign`` ``[W]``, and ``drift`` like r, or ()."""

    r: Any
    log_psi: Any
    sign: Any
    drift: Any
