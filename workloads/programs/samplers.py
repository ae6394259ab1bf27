"""The samplers that DeepQMC and oneQMC use by default, as literal settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sampler:
    """How walkers move.

    ``step`` is the first proposal width (bohr), or the time step (bohr^2) of a drifting proposal;
    ``target_acceptance`` is what the step is adapted to after every transition (None: fixed step); ``drift`` adds
    the gradient of log|psi| to the proposal (Metropolis-adjusted Langevin); ``prune_width`` replaces walkers of
    outlying log|psi| before the first transition (None: never).
    """

    step: float
    target_acceptance: float | None
    drift: bool = False
    prune_width: float | None = None


SAMPLERS = {
    "langevin": Sampler(step=1.0, target_acceptance=0.57, drift=True),
    "metropolis-deepqmc": Sampler(step=0.02, target_acceptance=0.525),
    "metropolis-deepqmc-psiformer": Sampler(step=1.0, target_acceptance=0.57),
    "metropolis-oneqmc": Sampler(step=1.0, target_acceptance=0.57, prune_width=4.0),
}
"""DeepQMC 1.2.0: conf/task/sampler_factory/decorr_{langevin,metropolis_ferminet,metropolis_psiformer}.yaml with the
defaults of sampling/electron_samplers.py. oneQMC: MetropolisSampler() and PruningSampler() of sampling/samplers.py,
as scripts/transferable.py chains them by default."""
