"""Targets: the devices that programs are compiled for. Specs of absent GPUs are in this folder, one file each."""

from fusionlab.codegen.targets.target import Peaks, Target, load_target, target_names, target_of_clock, target_of_device

__all__ = ["Peaks", "Target", "load_target", "target_names", "target_of_clock", "target_of_device"]
