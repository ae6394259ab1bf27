"""A script: compile StableHLO for an absent GPU with the JAX of this environment. It imports JAX and nothing of ours.

``python only_xla.py FOLDER FIRST END`` reads ``FOLDER/request.json``: ``module`` (StableHLO text), ``spec`` (the GPU),
``droppable`` (options that this XLA may not know) and ``compiles``, a list of options of XLA. It makes those from FIRST
to before END. Compile number N writes into ``FOLDER/N``: what XLA dumps, ``hlo.txt`` (the optimised module, where
XLA gives it) and last ``result.json``. A compile with a result is not made again: after a crash of XLA the next process
goes on behind it.

Interfaces of JAX 0.4.35 to 0.11: each is tried as the newest has it, then as older ones had it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_NO_SUCH_OPTION = re.compile(r"No such compile option: '(\w+)'")


def main(folder: Path, first: int, end: int) -> None:
    """The compiles of the request in ``folder`` from number ``first`` to before ``end``."""
    os.environ.update({"JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1", "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "2"})
    request = json.loads((folder / "request.json").read_text("utf-8"))
    devices = _absent_devices(str(request["spec"]))
    for number in range(first, end):
        place, options = folder / str(number), request["compiles"][number]
        if not (place / "result.json").exists():
            result = _compile(str(request["module"]), devices, options, request["droppable"], place)
            (place / "part").write_text(json.dumps(result), "utf-8")
            (place / "part").rename(place / "result.json")


def _absent_devices(spec: str) -> list[Any]:
    from jax.experimental import topologies

    _load_cuda_plugin()
    return list(topologies.get_topology_desc(platform="cuda", topology="1x1x1", target_config=spec).devices)


def _load_cuda_plugin() -> None:
    """Load the plugin, which JAX does not for a process on the CPU."""
    import importlib
    import pkgutil

    import jax_plugins
    from jax._src import xla_bridge

    if "cuda" not in getattr(xla_bridge, "_backend_factories", {}):
        for _, name, _ in pkgutil.iter_modules(jax_plugins.__path__):
            if name.startswith("xla_cuda"):
                importlib.import_module(f"jax_plugins.{name}").initialize()


def _compile(
    module: str, devices: Sequence[Any], options: Mapping[str, Any], droppable: Sequence[str], place: Path
) -> dict[str, Any]:
    """The result of one compile, or its ``error``."""
    kept = {"xla_dump_to": str(place), "xla_dump_hlo_as_text": True, "xla_dump_hlo_as_long_text": True, **options}
    while True:
        shutil.rmtree(place, ignore_errors=True)  # of a compile that failed or was ended
        place.mkdir()
        started = time.perf_counter()
        try:
            executable = _executable(module, devices, kept)
        except Exception as error:  # whatever this version raises is the answer
            gone = _NO_SUCH_OPTION.search(str(error))
            if gone is None or gone[1] not in droppable or gone[1] not in kept:
                return {"error": _said(error)}
            del kept[gone[1]]
            continue
        compile_s = time.perf_counter() - started
        return {
            "compile_s": compile_s,
            "memory": _memory(executable),
            "options": {name: value for name, value in kept.items() if name != "xla_dump_to"},
            "versions": _versions(),
            "plugin": _plugin_folder(),
            "hlo": _write_text(executable, place),
        }


def _said(error: Exception) -> str:
    """The first line of the message, and the second where that only announces it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]


def _executable(module: str, devices: Sequence[Any], options: Mapping[str, Any]) -> Any:
    import numpy as np
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jaxlib.mlir import ir

    given = compiler.get_compile_options(
        num_replicas=1,
        num_partitions=1,
        device_assignment=np.array([[devices[0].id]]),
        env_options_overrides=dict(options),
    )
    client = devices[0].client
    with mlir.make_ir_context():
        parsed = ir.Module.parse(module)
        chosen = _device_list(xla_client, devices)
        if chosen is None:  # before JAX 0.6
            return client.compile(mlir.module_to_bytecode(parsed), compile_options=given)
        try:
            return client.compile(parsed, executable_devices=chosen, compile_options=given)
        except TypeError:  # before JAX 0.8
            bytecode = mlir.module_to_bytecode(parsed)
        try:
            return client.compile(bytecode, executable_devices=chosen, compile_options=given)
        except TypeError:
            return client.compile(bytecode, compile_options=given)


def _device_list(xla_client: Any, devices: Sequence[Any]) -> Any:
    try:
        from jax._src.lib import _jax

        made = _jax.DeviceList
    except (ImportError, AttributeError):
        made = getattr(xla_client, "DeviceList", None)
    return None if made is None else made(tuple(devices))


def _memory(executable: Any) -> dict[str, int] | None:
    """XLA's memory analysis; None where this version has none of an absent GPU: then the dump has it."""
    try:
        found = executable.get_compiled_memory_stats()
    except Exception:  # not implemented, by any error of any version
        return None
    names = ("argument", "output", "temp", "alias")
    return {f"{name}_bytes": int(getattr(found, f"{name}_size_in_bytes")) for name in names}


def _write_text(executable: Any, place: Path) -> bool:
    """Write the optimised module; False where this version gives none of an absent GPU: then the dump has it."""
    try:
        text = executable.hlo_modules()[0].to_string()
    except Exception:  # not implemented, by any error of any version
        return False
    (place / "hlo.txt").write_text(text, "utf-8")
    return True


def _plugin_folder() -> str:
    import jax_plugins

    found = [path for folder in jax_plugins.__path__ for path in Path(folder).glob("xla_cuda*")]
    return str(found[0]) if found else ""


def _versions() -> str:
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for package in ("jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda13-plugin"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:4]))
