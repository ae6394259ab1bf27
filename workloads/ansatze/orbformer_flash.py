"""Orbformer with its electron attention as one fused kernel (the paper's ``mhsea``); the rest as in orbformer."""

from __future__ import annotations

from dataclasses import replace

from fusionlab.workloads.ansatz import Ansatz
from fusionlab.workloads.ansatze import orbformer
from fusionlab.workloads.molecule import Molecule


def build(molecule: Molecule, size: str = "full") -> Ansatz:
    """As ``orbformer.build``; derivatives take the plain attention, so the kernel serves log-psi and sampling."""
    return replace(orbformer.build(molecule, size, attention="flash"), name="orbformer-flash")
