"""A step of several devices: local energies, clipped around means over all walkers, as it stands and optimised.

    python benchmarks/several_devices.py [--model ferminet] [--molecule CH4] [--walkers 256] [--devices 4] [--calls 5]
    python benchmarks/several_devices.py --devices 8 --walkers 1024 --launches a100

On virtual CPU devices: the median milliseconds of a call of either, called in turns, and the largest difference. With
``--launches`` nothing runs: the launches of one device's part on an absent target, collectives apart.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from typing import Any

from fusionlab import jax_setup


def main() -> None:
    """Print one row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("model", "ferminet"), ("molecule", "CH4"), ("size", "full"), ("launches", "")):
        parser.add_argument(f"--{name}", default=default)
    for name, number in (("walkers", 256), ("devices", 4), ("calls", 5)):
        parser.add_argument(f"--{name}", type=int, default=number)
    given = parser.parse_args()
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={given.devices}"
    os.environ["NPROC"] = str(2 * given.devices)  # a collective waits in a thread for each device
    jax_setup.set_environment()
    jax_setup.load_jax()
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.sharding import AxisType, NamedSharding, PartitionSpec

    import fusionlab
    from fusionlab.workloads.catalogue import build

    part = given.walkers // given.devices
    workload = build(given.model, molecule=given.molecule, walkers=part, laplacian="replay", size=given.size)
    arguments = build(
        given.model, molecule=given.molecule, walkers=given.walkers, laplacian="replay", size=given.size
    ).inputs(1)
    split, whole = PartitionSpec("walkers"), PartitionSpec()
    is_walkers = [array.shape[:1] == (given.walkers,) and array.ndim == 3 for array in jax.tree.leaves(arguments)]
    specs = jax.tree.unflatten(jax.tree.structure(arguments), [split if each else whole for each in is_walkers])

    def step(*arrays: Any) -> Any:
        [local] = jax.tree.leaves(workload.function(*arrays))
        mean = lax.pmean(local.mean(), "walkers")
        spread = 5 * lax.pmean(jnp.abs(local - mean).mean(), "walkers")
        clipped = jnp.clip(local, mean - spread, mean + spread)
        return lax.pmean(clipped.mean(), "walkers"), local

    mesh = jax.make_mesh((given.devices,), ("walkers",), axis_types=(AxisType.Auto,))
    mapped = jax.shard_map(step, mesh=mesh, in_specs=specs, out_specs=(whole, split), check_vma=False)
    optimised = fusionlab.optimize(mapped, cache=False, check="never" if given.launches else "once")
    if given.launches:
        optimised.lower(*arguments)
        print(optimised.fusionlab.report(given.launches))
        return
    placed = jax.device_put(arguments, jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs))
    sides = {"as it stands": jax.jit(mapped), "optimised": optimised}
    results = {name: jax.block_until_ready(f(*placed)) for name, f in sides.items()}
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(given.calls):
        for name, function in sides.items():
            started = time.perf_counter()
            jax.block_until_ready(function(*placed))
            seconds[name].append(time.perf_counter() - started)
    before, after = (statistics.median(times) * 1e3 for times in seconds.values())
    [was, now] = (found[1] for found in results.values())
    off = float(jnp.max(jnp.abs(was - now)))
    print(f"{given.model} {given.molecule}, {given.walkers} walkers on {given.devices} devices: {before:.1f} ms as it")
    print(f"stands, {after:.1f} ms optimised ({before / after:.2f} times faster), largest difference {off:.2g} hartree")
    print(
        optimised.fusionlab.state,
        *(decision.verdict.line for decision in optimised.fusionlab.decisions[:1] if decision.verdict),
    )


if __name__ == "__main__":
    main()
