"""Facts about a function: what ``launches``, ``kernels``, ``explain``, ``memory`` and ``diff`` print, as objects.

Each object has the verdict first in ``repr``, a table for notebooks, ``to_dict()`` (the document of ``--json``) and
``to_dataframe()``. The functions of these names in ``fusionlab`` return them.
"""

from fusionlab.facts.diff_facts import DiffFacts
from fusionlab.facts.fusion_facts import FusionFacts
from fusionlab.facts.interface import Facts
from fusionlab.facts.kernel_facts import KernelFacts
from fusionlab.facts.launch_facts import LaunchFacts
from fusionlab.facts.memory_facts import MemoryFacts

__all__ = ["DiffFacts", "Facts", "FusionFacts", "KernelFacts", "LaunchFacts", "MemoryFacts"]
