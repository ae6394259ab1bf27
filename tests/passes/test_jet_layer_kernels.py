"""jet-layer-kernels: its cases (``cases/jet_layer_kernels/``); kernels: ``codegen/kernels/test_jet_layers.py``."""

from .case_files import test_case  # noqa: F401
