"""PTX -> registers, spills and SASS, by NVIDIA's ``ptxas`` and ``nvdisasm``.

Both come as wheels (the extra ``kernels``), and with every CUDA toolkit. XLA has an assembler of its own, of the
version that it was built with: registers may differ by a few where the versions do.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from fusionlab.device_code.ptx import PtxKernel
from fusionlab.store import Store, cache_folder, digest_of

_log = logging.getLogger(__name__)

INSTALL = "pip install 'fusionlab[kernels]'"
_FORMAT = 1
_LIMIT_S = 300
_FUNCTION = re.compile(
    r"Function properties for (\S+)\n(.*?)(?=Function properties for |Compiling entry |\Z)", re.DOTALL
)


@dataclass(frozen=True)
class Resources:
    """What a thread of a kernel takes: ``registers`` (of 32 bits), ``stack_bytes`` of local memory, and the bytes that
    its instructions store to and load from there because registers ran out (static: each instruction once)."""

    registers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    shared_bytes: int


@lru_cache(maxsize=4)
def find_tool(name: str) -> Path | None:
    """The executable ``ptxas`` or ``nvdisasm``: of an NVIDIA wheel, else on the PATH; None where there is none."""
    spec = importlib.util.find_spec("nvidia")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    for folder in folders:
        for found in sorted(Path(folder).glob(f"*/bin/{name}"), reverse=True):
            return found
    on_path = shutil.which(name)
    return Path(on_path) if on_path else None


@lru_cache(maxsize=4)
def tool_version(tool: Path) -> str:
    """The version that a tool prints of itself, ``V12.9.86``; "" where it prints none."""
    done = subprocess.run([tool, "--version"], capture_output=True, text=True, check=False, timeout=_LIMIT_S)
    found = re.search(r"\bV\d+(\.\d+)+", done.stdout)
    return found[0] if found else ""


def resources_of(kernels: Iterable[PtxKernel]) -> Mapping[str, Resources]:
    """Kernel name to its resources; empty without ``ptxas``. Modules that it refuses are logged and left out."""
    modules = list(dict.fromkeys(kernel.module for kernel in kernels))
    tool = find_tool("ptxas")
    if tool is None or not modules:
        return {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda module: _assembled(tool, module), modules))
    return {name: one for part in found for name, one in part.items()}


def _assembled(tool: Path, module: str) -> dict[str, Resources]:
    folder = cache_folder()
    store = None if folder is None else Store(folder / "registers")
    key = digest_of(_FORMAT, tool_version(tool), module)
    known = (
        store.load(key, lambda content: {name: Resources(**one) for name, one in content.items()}) if store else None
    )
    if known is not None:
        return known
    with tempfile.TemporaryDirectory(prefix="fusionlab-ptx-") as place:
        text = _run_ptxas(tool, module, Path(place))
    found = {} if text is None else parse_resources(text)
    if store and found:
        store.store(key, {name: asdict(one) for name, one in found.items()})
    return found


def _run_ptxas(tool: Path, module: str, folder: Path) -> str | None:
    """What ``ptxas -v`` says of a module, whose cubin is then in ``folder``; None, with a warning, where it fails."""
    path = folder / "kernel.ptx"
    path.write_text(module)
    target = re.search(r"^\.target\s+(\w+)", module, re.MULTILINE)
    architecture = target[1] if target else "sm_80"
    command = [str(tool), f"-arch={architecture}", "-v", str(path), "-o", str(folder / "kernel.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LIMIT_S)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "rror" in line or "fatal" in line] or ["it fails"]
        _log.warning("%s (%s) does not assemble a kernel: %s", tool, tool_version(tool), lines[0])
        return None
    return done.stderr


def parse_resources(text: str) -> dict[str, Resources]:
    """Kernel name to its resources, of what ``ptxas -v`` prints."""
    found = {}
    for name, said in _FUNCTION.findall(text):
        numbers = {
            unit: int(match[1]) if (match := re.search(rf"(\d+) {unit}", said)) else 0
            for unit in ("bytes stack", "bytes spill stores", "bytes spill loads", "bytes smem")
        }
        used = re.search(r"Used (\d+) registers", said)
        if used:  # a function that is called and not launched has none
            found[name] = Resources(int(used[1]), *numbers.values())
    return found


def sass_of(kernel: PtxKernel) -> str | None:
    """The machine code of a kernel as text; None without ``ptxas`` or ``nvdisasm``, or where one of them fails."""
    assembler, disassembler = find_tool("ptxas"), find_tool("nvdisasm")
    if assembler is None or disassembler is None:
        return None
    with tempfile.TemporaryDirectory(prefix="fusionlab-ptx-") as place:
        if _run_ptxas(assembler, kernel.module, Path(place)) is None:
            return None
        command = [str(disassembler), "-c", str(Path(place) / "kernel.cubin")]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LIMIT_S)
    if done.returncode:
        _log.warning("%s does not disassemble %s: %s", disassembler, kernel.name, done.stderr.strip()[:200])
        return None
    return _section(done.stdout, kernel.name)


def _section(text: str, name: str) -> str:
    """The code of one kernel in the disassembly of a module."""
    parts = re.split(r"^\s*//-+ ", text, flags=re.MULTILINE)
    own = next((part for part in parts if part.startswith(f".text.{name} ")), text)
    lines = [line.rstrip() for line in own.splitlines() if re.match(r"\s*(/\*[0-9a-f]+\*/|\.L_)", line)]
    return "\n".join(lines)
