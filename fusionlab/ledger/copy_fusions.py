"""Fusions of a GPU's optimised HLO that XLA runs as a copy, or as a library call on slices, and not as a kernel.

XLA decides by the text (``xla/service/gpu/thunk_emitter.cc``, ``xla/backends/gpu/transforms/dynamic_slice_copy.cc``,
``xla/backends/gpu/codegen/copy.cc`` and ``fusions.cc``), so its thunk list follows from it:

- a fusion of ``copy`` alone, layouts equal;
- a fusion of one contiguous ``slice`` of an operand, from ``STATIC_SLICES_SINCE`` on;
- a ``dynamic-slice`` of an operand, or a ``dynamic-update-slice`` by one, whose offsets follow from the number of the
  trip. XLA has annotated the instruction (``dynamic_slice_config``) or, before JAX 0.10.2, the fusion
  (``__dynamic_memcpy``);
- a custom fusion of slices around one library call or copy (``dynamic_slice_fusion``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fusionlab.hlo.optimised.parser import Computation, HloModule, Instruction, Shape

STATIC_SLICES_SINCE = (0, 10, 2)
"""The first version of jaxlib that copies these. HLO text does not name the version that wrote it."""

_VIEWS = ("bitcast", "reshape")
_SLICES = ("slice", "dynamic-slice", "dynamic-update-slice")
_SLICED_CALLS = ("dynamic_slice_fusion", "address_computation", "dynamic_address_computation")
_AROUND_A_CALL = frozenset((*_SLICES, *_VIEWS, "parameter", "constant", "tuple", "get-tuple-element"))
_MEMCPY = "__dynamic_memcpy"


def sliced_call(module: HloModule, one: Instruction) -> Instruction | None:
    """The library call or the copy inside ``one``, if that is a fusion of it with slices; else None."""
    if one.fusion_kind != "kCustom":
        return None
    named = _part(_part(one.backend_config, "fusion_backend_config"), "custom_fusion_config").get("name")
    inside = module.computations[one.called[0]].instructions
    # Scalars compute the offsets.
    heroes = [each for each in inside if each.opcode not in _AROUND_A_CALL and (each.shape.is_tuple or each.shape.dims)]
    return heroes[0] if named in _SLICED_CALLS and len(heroes) == 1 else None


def is_copy_fusion(module: HloModule, one: Instruction, static_slices: bool = True) -> bool:
    """True if ``one`` is a fusion that XLA runs as a copy; ``static_slices``: whether it does so with those."""
    if one.fusion_kind not in ("kLoop", "kInput"):
        return False
    if _part(one.backend_config, "fusion_backend_config").get("kind") == _MEMCPY:
        return True
    inside = module.computations[one.called[0]]
    roots = [inside.by_name[name] for name in inside.root.operands] if inside.root.opcode == "tuple" else [inside.root]
    if all(_copies(inside, root) for root in roots):
        return True
    if len(roots) > 1:
        return False
    return (static_slices and _is_static(inside, roots[0])) or _is_annotated(inside, roots[0])


def _copies(inside: Computation, root: Instruction) -> bool:
    if root.opcode != "copy":
        return False
    source = inside.by_name[root.operands[0]]
    return source.opcode == "parameter" and source.shape.layout == root.shape.layout


def _is_static(inside: Computation, root: Instruction) -> bool:
    """True if ``root`` is a contiguous slice of a parameter, its layout kept."""
    if root.opcode != "slice":
        return False
    source = inside.by_name[root.operands[0]]
    return source.opcode == "parameter" and _order(source.shape) == _order(root.shape) and _is_contiguous(source, root)


def _is_annotated(inside: Computation, root: Instruction) -> bool:
    """True if ``root`` is, through views, a slice that XLA annotated of a parameter, or an update by a parameter."""
    moved = _behind(inside, root, _VIEWS)
    if moved.opcode not in _SLICES or "dynamic_slice_config" not in moved.backend_config:
        return False
    copied = root if moved.opcode != "dynamic-update-slice" else inside.by_name[moved.operands[1]]
    passed = [copied, *_between(inside, copied)]
    sliced = [each for each in passed if each.opcode in _SLICES]
    if passed[-1].opcode != "parameter" or len(sliced) > 1 or any(each.opcode == _SLICES[2] for each in sliced):
        return False
    plain = all("dynamic_slice_config" in each.backend_config or _is_static(inside, each) for each in sliced)
    return plain and (bool(sliced) or passed[-1].shape.byte_size == copied.shape.byte_size)


def _between(inside: Computation, one: Instruction) -> list[Instruction]:
    """What ``one`` is made of, through views and slices, to the first instruction that is neither."""
    found = []
    while one.opcode in (*_VIEWS, *_SLICES):
        one = inside.by_name[one.operands[0]]
        found.append(one)
    return found


def _behind(inside: Computation, one: Instruction, through: tuple[str, ...]) -> Instruction:
    while one.opcode in through:
        one = inside.by_name[one.operands[0]]
    return one


def _is_contiguous(source: Instruction, root: Instruction) -> bool:
    """True if the slice is one run of memory: once it takes a part of an axis, all axes beyond have extent 1."""
    bounds = re.findall(r"\[(\d+):(\d+)(?::(\d+))?\]", root.attributes.get("slice", ""))
    ranks = {len(bounds), len(source.shape.dims), len(root.shape.dims)}
    if len(ranks) > 1 or sorted(_order(source.shape)) != list(range(len(bounds))):
        return False
    partial = False
    for axis in _order(source.shape):
        extent, whole, step = root.shape.dims[axis], source.shape.dims[axis], int(bounds[axis][2] or 1)
        if (partial and extent != 1) or (extent < whole and step != 1 and extent > 1):
            return False
        partial = partial or extent < whole
    return True


def _order(shape: Shape) -> tuple[int, ...]:
    """The axes from minor to major; the default where the text has no layout."""
    named = re.findall(r"\d+", shape.layout.partition(":")[0])
    return tuple(map(int, named)) or tuple(reversed(range(len(shape.dims))))


def _part(config: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = config.get(key)
    return found if isinstance(found, dict) else {}
