"""XLA options for programs that run a few times on the CPU: fast compiles, correct results."""

from __future__ import annotations

import jax

from fusionlab.codegen.compile import RIGHT_ON_CPU

CPU_OPTIONS: dict[str, str | int | bool] = {"xla_backend_optimization_level": 0}
"""Half the compile time of the defaults, or less; the programs run slower."""
if jax.__version_info__ >= (0, 8, 1):  # JAX 0.8.0 has no YNN library
    CPU_OPTIONS.update(RIGHT_ON_CPU)
if jax.__version_info__ < (0, 11):  # JAX 0.11 has no such option
    CPU_OPTIONS["xla_cpu_use_fusion_emitters"] = False
