"""fusionlab: a compiler-level fusion study tool for neural-network variational Monte Carlo programs in JAX."""

from fusionlab import quiet_start as _quiet_start  # sets what must be set before JAX starts; imports no JAX

__version__ = "0.1.0"
__all__ = ["__version__"]

del _quiet_start
