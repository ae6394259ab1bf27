"""Program ``mcmc``: ten Metropolis-Hastings transitions of every walker.

Sources: DeepQMC 1.2.0 sampling/electron_samplers.py and oneQMC sampling/samplers.py, which agree; the paper's
protocol (Section III-A) fixes the number of transitions at ten for all ansätze.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from fusionlab.errors import unknown
from fusionlab.workloads.ansatz import Ansatz
from fusionlab.workloads.programs.drift import limited_drift
from fusionlab.workloads.programs.pruning import prune
from fusionlab.workloads.programs.samplers import SAMPLERS, Sampler
from fusionlab.workloads.programs.uniform import uniform
from fusionlab.workloads.programs.walker_state import State

USES_LAPLACIAN = False
TRANSITIONS = 10
LEAST_ACCEPTANCE = 0.05
"""The step shrinks as if at least this share had been accepted."""


def argument_names(laplacian: str) -> tuple[str, ...]:
    """The names of the function's arguments."""
    return ("parameters", "walkers", "key", "step")


def build(ansatz: Ansatz, laplacian: str = "none", sampler: Sampler | None = None) -> Callable[..., dict[str, Any]]:
    """``(parameters, walkers, key, step) -> {"walkers", "log_psi", "sign", "acceptance", "step"}``.

    ``walkers`` is ``[W, electrons, 3]``, ``key`` is ``uint32[2]``, ``step`` a scalar of the walkers' dtype (start
    with ``initial_step``); ``acceptance`` is the share accepted over all transitions. ``sampler`` is the ansatz's own
    by default (an adapter's own program where it has one). InputError: the ansatz names a sampler that is not in
    ``SAMPLERS``.
    """
    if ansatz.mcmc is not None and sampler is None:
        return ansatz.mcmc
    return partial(sample, ansatz, sampler or find_sampler(ansatz))


def find_sampler(ansatz: Ansatz) -> Sampler:
    """The settings of the sampler that ``ansatz`` names; InputError if there are none."""
    name = ansatz.upstream.sampler
    if name not in SAMPLERS:
        raise unknown("sampler", name, SAMPLERS)
    return SAMPLERS[name]


def initial_step(ansatz: Ansatz, dtype: Any) -> Any:
    """The scalar of ``dtype`` to call the program with first."""
    return jnp.asarray(find_sampler(ansatz).step, dtype)


def sample(ansatz: Ansatz, sampler: Sampler, parameters: Any, walkers: Any, key: Any, step: Any) -> dict[str, Any]:
    """The program itself; see ``build``."""
    evaluate = partial(_evaluate, ansatz, sampler, parameters)

    def transition(carry: tuple[State, Any, Any], key: Any) -> tuple[tuple[State, Any, Any], None]:
        state, step, accepted_before = carry
        proposal_key, acceptance_key = jax.random.split(key)
        proposal = evaluate(_propose(sampler, state, proposal_key, step), step)
        log_ratio = 2 * (proposal.log_psi - state.log_psi)
        if sampler.drift:
            log_ratio = log_ratio + _log_proposal_ratio(state, proposal, step)
        accepted = log_ratio > jnp.log(uniform(acceptance_key, log_ratio.shape, log_ratio.dtype))
        share = jnp.mean(accepted.astype(step.dtype))
        if sampler.target_acceptance is not None:
            step = step * jnp.maximum(share, LEAST_ACCEPTANCE) / sampler.target_acceptance
        return (_choose(accepted, proposal, state), step, accepted_before + share), None

    with jax.named_scope("mcmc"):
        state = evaluate(walkers, step)
        if sampler.prune_width is not None:
            key, prune_key = jax.random.split(key)
            state = prune(state, prune_key, sampler.prune_width)
        start = (state, step, jnp.zeros_like(step))
        (state, step, accepted), _ = jax.lax.scan(transition, start, jax.random.split(key, TRANSITIONS))
    return {
        "walkers": state.r,
        "log_psi": state.log_psi,
        "sign": state.sign,
        "acceptance": accepted / TRANSITIONS,
        "step": step,
    }


def _evaluate(ansatz: Ansatz, sampler: Sampler, parameters: Any, r: Any, step: Any) -> State:
    if not sampler.drift:
        sign, log_psi = jax.vmap(ansatz.log_psi, (None, 0))(parameters, r)
        return State(r, log_psi, sign, ())

    def log_and_sign(r: Any) -> tuple[Any, Any]:
        sign, log = ansatz.log_psi(parameters, r)
        return log, sign

    def of_one_walker(r: Any) -> State:
        (log, sign), gradient = jax.value_and_grad(log_and_sign, has_aux=True)(r)
        return State(r, log, sign, limited_drift(gradient, r, ansatz.molecule, step))

    return jax.vmap(of_one_walker)(r)  # type: ignore[no-any-return]


def _propose(sampler: Sampler, state: State, key: Any, step: Any) -> Any:
    noise = jax.random.normal(key, state.r.shape, state.r.dtype)
    if sampler.drift:
        return state.r + step * state.drift + jnp.sqrt(step) * noise
    return state.r + step * noise


def _log_proposal_ratio(state: State, proposal: State, step: Any) -> Any:
    """Log of the Langevin proposal density of the way back over that of the way there, ``[W]``."""
    mean_change = (state.r - proposal.r) + step / 2 * (state.drift - proposal.drift)
    return jnp.sum((state.drift + proposal.drift) * mean_change, axis=(1, 2))


def _choose(accepted: Any, proposal: State, state: State) -> State:
    def pick(new: Any, old: Any) -> Any:
        return jnp.where(accepted.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    return jax.tree.map(pick, proposal, state)  # type: ignore[no-any-return]
