"""Facts about a function, in Python: what the commands ``launches``, ``explain`` and ``diff`` print, as objects.

Each object has the verdict first in ``repr``, a table for notebooks, ``to_dict()`` (the document of ``--json``) and
``to_dataframe()``. ``fusionlab.launches``, ``fusionlab.explain`` and ``fusionlab.diff`` return them.
"""

from fusionlab.facts.diff_facts import DiffFacts
from fusionlab.facts.fusion_facts import FusionFacts
from fusionlab.facts.interface import Facts
from fusionlab.facts.launch_facts import LaunchFacts

__all__ = ["DiffFacts", "Facts", "FusionFacts", "LaunchFacts"]
