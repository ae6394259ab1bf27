"""Program -> Compiled, XLA's result: for the CPU, the attached GPU, or, ahead of time, an absent one.

All private compile interfaces of JAX and XLA are used here and nowhere else.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import sqlite3
import tempfile
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fusionlab import jax_setup
from fusionlab.codegen.targets import Target
from fusionlab.errors import CompileError, InputError
from fusionlab.hlo.constants import constant_divided_by_zero
from fusionlab.hlo.meshes import hold_everywhere
from fusionlab.hlo.optimised.parser import HloModule, parse_optimized
from fusionlab.hlo.program import Program, of_gspmd, program_view
from fusionlab.hlo.view import name_entry_main
from fusionlab.store import package_versions

if TYPE_CHECKING:
    from fusionlab.codegen.cache import CompileCache
    from fusionlab.codegen.executable import Executable

_log = logging.getLogger(__name__)

NO_AUTOTUNING: dict[str, str | int | bool] = {"xla_gpu_enable_triton_gemm": False, "xla_gpu_autotune_level": 0}
"""No kernel is chosen by its clock: products are cuBLAS's, by its own heuristics. Without a device there is no
autotuner: Triton GEMMs then abort ("Couldn't find output tile sizes"), and algorithms differ from those of a tuned run,
so programs are only comparable when compiled by the same options."""
# The cost-model statistics add XLA's own estimate of every fusion's time to the HLO and change nothing else in it;
# with the analytical estimator they abort on sm_80.
_ABSENT_GPU = {
    **NO_AUTOTUNING,
    "xla_gpu_collect_cost_model_stats": True,
    "xla_gpu_enable_analytical_sol_latency_estimator": False,
}
RIGHT_ON_CPU: dict[str, str | int | bool] = {"xla_cpu_experimental_ynn_fusion_type": ""}
"""jaxlib 0.10.2's YNN library fusions give silently wrong float32 results on dense forward-Laplacian programs."""
_WAITING_S = 3600
_SEVERAL_ON_CPU: dict[str, str | int | bool] = {
    "xla_cpu_collective_call_warn_stuck_timeout_seconds": _WAITING_S,
    "xla_cpu_collective_call_terminate_timeout_seconds": _WAITING_S,
}
"""A CPU's virtual devices share its cores: a collective waits longer for the last of them than XLA's 40 s."""
FUSION_DUMP: dict[str, dict[str, str | int | bool]] = {
    "cuda": {"xla_dump_hlo_pass_re": "priority-fusion"},
    "cpu": {"xla_dump_hlo_pass_re": "^fusion$", "xla_dump_fusion_visualization": True},
}
_FRAMES = re.compile(r"const frames = (\[.*?\]);\n", re.DOTALL)
"""The decisions of a fusion pass in the page that draws them: number of the drawing, label, marked node."""
_PTX_ON_REQUEST = (0, 11)
_WITH_PTX: dict[str, str | int | bool] = {"xla_dump_emitter_re": ".*"}
"""XLA writes PTX into every dump before JAX 0.11, and from then on for the emitters that this names.

It makes a compile several times slower: every step of every kernel's code is written, too.
"""
_KEPT_ARTIFACTS = re.compile(
    r"(before_optimizations|gpu_after_optimizations|cpu_after_optimizations|buffer-assignment|live-range|"
    r"memory-usage-report|thunk_sequence|thunk_sequence_after_thunk_passes|thunk_metadata|priority_fusion_dump)\.txt$"
)


@dataclass(frozen=True)
class Memory:
    """XLA's buffer assignment, bytes on the device. ``alias_bytes`` are output bytes that reuse an argument's."""

    argument_bytes: int
    output_bytes: int
    temp_bytes: int
    alias_bytes: int


@dataclass(frozen=True)
class Compiled:
    """The result of compiling a program for a target.

    ``optimized_hlo`` is the scheduled module as text; ``thunk_sequence`` and ``thunk_metadata`` are XLA's own list of
    launches ("" on the CPU, whose list is in ``executable_bytes``), ``captured_thunks`` the same list after XLA has put
    runs of thunks into CUDA graphs. ``priority_fusion`` are the decisions of the fusion pass, step by step, and
    ``fused_hlo`` the module after it ("" on the CPU without ``fusions``). ``fusion_labels`` are the decisions of the
    CPU's fusion pass, a line each ("" for GPUs and without ``fusions``). ``buffer_assignment`` and ``live_ranges`` are
    XLA's texts of the place and time of every array in memory ("" on the CPU without ``dump``). ``ptx`` is the code of
    its own kernels, a PTX module after another ("" on the CPU). ``options`` are the compile options that were set.
    ``artifacts`` (only with ``dump=True``) maps the ending of each text that XLA dumped to that text. ``compile_s`` is
    the wall time of the compile itself, also when the record is ``from_cache``. ``serialized`` (only with
    ``serialize=True``) is the executable as XLA writes it. ``estimates_are_of_target`` is False for foreign text whose
    estimates of times XLA did not make for ``target``.
    """

    name: str
    target: Target
    optimized_hlo: str
    thunk_sequence: str
    thunk_metadata: str
    memory: Memory
    compile_s: float
    options: Mapping[str, str | int | bool]
    versions: str
    captured_thunks: str = field(default="", repr=False)
    priority_fusion: str = field(default="", repr=False)
    fused_hlo: str = field(default="", repr=False)
    artifacts: Mapping[str, str] = field(default_factory=dict, repr=False)
    from_cache: bool = field(default=False, compare=False)
    executable: Executable | None = field(default=None, compare=False, repr=False)
    serialized: bytes = field(default=b"", compare=False, repr=False)
    estimates_are_of_target: bool = True
    buffer_assignment: str = field(default="", repr=False)
    live_ranges: str = field(default="", repr=False)
    fusion_labels: str = field(default="", repr=False)
    ptx: str = field(default="", repr=False)

    @cached_property
    def module(self) -> HloModule:
        """``optimized_hlo``, parsed."""
        return parse_optimized(self.optimized_hlo)

    @cached_property
    def executable_bytes(self) -> bytes:
        """The executable of an attached device as XLA writes it, b"" for an absent one. CompileError where XLA cannot,
        as with a callback to Python."""
        if self.executable is None:
            return self.serialized
        import jax

        try:
            return _serialized(self.executable.loaded, self.executable.devices[0].client)
        except jax.errors.JaxRuntimeError as error:
            raise CompileError(f"{self.name} for {self.target.name}: {_first_line(error)}") from error

    def run(self, *arrays: Any) -> list[Any]:
        """Run on NumPy (or JAX) arrays, one per argument; returns NumPy arrays.

        InputError when the target is not attached; ValueError when an argument has another shape or dtype.
        """
        import numpy as np

        if self.executable is None:
            raise InputError(f"target {self.target.name} is not attached: programs compiled for it cannot be run here")
        return [np.asarray(result) for result in self.executable(self.executable.place(arrays))]


def compile_program(
    program: Program,
    target: Target,
    *,
    dump: bool = False,
    options: Mapping[str, str | int | bool] | None = None,
    cache: CompileCache | None = None,
    serialize: bool = False,
    fusions: bool = False,
    ptx: bool = False,
) -> Compiled:
    """Compile ``program`` for ``target`` with XLA.

    ``options`` are XLA flags for this compile only, on top of the target's own. ``cache`` is used for absent targets
    (whose compiles have no executable), unless the executable is asked for, as bytes, by ``serialize``. ``fusions``:
    the CPU's fusion decisions, too, which XLA draws one by one, in several times that of the compile. ``ptx``: the code
    of a GPU's kernels, which JAX 0.11 writes on request alone, in several times that of the compile. InputError: the
    program was lowered for another platform, the CUDA plugin is missing, XLA rejects the target's spec, there are fewer
    devices than it is for. CompileError: XLA fails.
    """
    if program.platform not in ("any", target.kind):
        raise InputError(
            f"{program.name} was lowered for {program.platform}, but target {target.name} needs {target.kind}: "
            f"lower it with platform {target.kind!r}"
        )
    chosen = _options_of(target) | dict(options or {})
    if cache is None or target.attached or serialize:
        return _compile(program, target, chosen, dump, serialize, fusions, ptx)
    key = cache.key(program, target, chosen | {"dump": dump}, versions())
    found = cache.load(key, program, target)
    if found is None or (ptx and not found.ptx):
        found = _compile(program, target, chosen, dump, serialize=False, ptx=ptx)
        cache.store(key, found)
    return found


def require_devices(target: Target) -> None:
    """Make what all compiles for ``target`` share, before several threads would. InputError as ``compile_program``."""
    _devices(target, 1)


def load_compiled(
    compiled: Compiled, serialized: bytes, program: Program, options: Mapping[str, str | int | bool]
) -> Compiled:
    """``compiled``, the record of a compile ahead of time with ``options`` for what now is attached, with its
    executable, loaded from ``serialized``.

    CompileError: XLA does not load it there (another version, another kind of device).
    """
    jax_setup.load_jax()
    import jax
    from jax._src.lib import _jax

    from fusionlab.codegen.executable import Executable

    devices = _devices(compiled.target, 1)
    xla_options = _xla_options(devices, _options_of(compiled.target) | dict(options))
    try:
        chosen = _jax.DeviceList(tuple(devices))
        found = devices[0].client.deserialize_executable(serialized, chosen, xla_options)
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        raise CompileError(f"{compiled.name} for {compiled.target.name}: {_first_line(error)}") from error
    return replace(compiled, executable=Executable(found, tuple(devices), program.inputs))


def versions() -> str:
    """The versions that a compile depends on, e.g. ``jax 0.10.2, jaxlib 0.10.2, jax-cuda12-plugin 0.10.2``."""
    found = package_versions("jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda13-plugin")
    return ", ".join(f"{package} {version}" for package, version in found.items())


def _options_of(target: Target) -> dict[str, str | int | bool]:
    if target.kind == "cpu":
        return dict(RIGHT_ON_CPU)
    return {} if target.attached else dict(_ABSENT_GPU)


def _compile(
    program: Program,
    target: Target,
    options: dict[str, str | int | bool],
    dump: bool,
    serialize: bool,
    fusions: bool = False,
    ptx: bool = False,
) -> Compiled:
    jax_setup.load_jax()
    import jax

    from fusionlab.codegen.executable import Executable

    if (refused := of_gspmd(program)) is not None:
        raise InputError(f"{program.provenance}: {refused[0]}")
    if (divided := constant_divided_by_zero(program_view(program))) is not None:
        raise CompileError(
            f"{program.name}: XLA ends the process where integer constants are divided by 0: {divided.told}"
        )
    devices = _devices(target, program.devices)
    if len(devices) > 1 and target.kind == "cpu":
        options = _SEVERAL_ON_CPU | options
    with tempfile.TemporaryDirectory(prefix="fusionlab-xla-") as folder:
        dumped: dict[str, str | int | bool] = {}
        if target.kind == "cuda" or dump or fusions:
            dumped = {"xla_dump_to": folder, "xla_dump_hlo_as_text": True}
        if target.kind == "cuda" or fusions:
            dumped |= FUSION_DUMP[target.kind]
        if ptx and target.kind == "cuda":
            dumped |= options_for_ptx(jax.__version_info__)
        started = time.perf_counter()
        xla_executable, kept = _backend_compile(program, target, devices, options, dumped)
        compile_s = time.perf_counter() - started
        compiled = compiled_of_dump(
            Path(folder),
            name=program.name,
            target=target,
            optimized_hlo=_optimized_text(xla_executable, Path(folder)),
            memory=_memory(xla_executable),
            compile_s=compile_s,
            options=kept,
            versions=versions(),
            keep_artifacts=dump,
        )
    if target.kind == "cuda" and not compiled.thunk_sequence:
        _log.warning("%s: XLA wrote no thunk sequence; launches will be counted from its HLO", program.name)
    return replace(
        compiled,
        executable=Executable(xla_executable, tuple(devices), program.inputs) if target.attached else None,
        serialized=_serialized(xla_executable, devices[0].client) if serialize else b"",
    )


def options_for_ptx(jax_version: tuple[int, ...]) -> dict[str, str | int | bool]:
    """The options by which that version of JAX dumps the code of kernels; none where it always does."""
    return _WITH_PTX if jax_version >= _PTX_ON_REQUEST else {}


def compiled_of_dump(
    folder: Path,
    *,
    name: str,
    target: Target,
    optimized_hlo: str,
    memory: Memory,
    compile_s: float,
    options: Mapping[str, str | int | bool],
    versions: str,
    keep_artifacts: bool = False,
) -> Compiled:
    """The record of a compile from what XLA dumped into ``folder``; without an executable.

    ``optimized_hlo`` is "" where the executable gave none: then it is the dump's.
    """
    texts = _read_dump(folder)
    return Compiled(
        name=name,
        target=target,
        optimized_hlo=optimized_hlo or dumped_hlo(folder),
        thunk_sequence=texts.get("thunk_sequence.txt", ""),
        thunk_metadata=texts.get("thunk_metadata.txt", ""),
        memory=memory,
        compile_s=compile_s,
        options=options,
        versions=versions,
        captured_thunks=texts.get("thunk_sequence_after_thunk_passes.txt", ""),
        priority_fusion=texts.get("priority_fusion_dump.txt", "").partition("\nhlo_module_before_fusion:")[0],
        fused_hlo=texts.get("after_fusion.txt", texts.get("before_fusion.txt", "")),
        fusion_labels=fusion_labels(folder),
        buffer_assignment=_ending(texts, "buffer-assignment.txt"),
        live_ranges=_ending(texts, "live-range.txt"),
        ptx=_ptx_modules(folder),
        artifacts=texts if keep_artifacts else {},
    )


def _memory(xla_executable: Any) -> Memory:
    stats = xla_executable.get_compiled_memory_stats()
    return Memory(
        argument_bytes=stats.argument_size_in_bytes,
        output_bytes=stats.output_size_in_bytes,
        temp_bytes=stats.temp_size_in_bytes,
        alias_bytes=stats.alias_size_in_bytes,
    )


def _backend_compile(
    program: Program,
    target: Target,
    devices: Sequence[Any],
    options: dict[str, str | int | bool],
    dumped: dict[str, str | int | bool],
) -> tuple[Any, dict[str, str | int | bool]]:
    """XLA's executable, and the options that this version of XLA accepted.

    Of several absent devices each has its part of the arguments, as XLA chooses it where nothing says it; attached ones
    have whole arguments and results.
    """
    import jax
    from jax._src.lib import _jax

    module, several = program.parse(), len(devices) > 1
    name_entry_main(module)
    if several and target.attached:
        hold_everywhere(module)
    kept = dict(options)
    while True:
        xla_options = _xla_options(devices, {**kept, **dumped})
        if several and not target.attached:
            build = xla_options.executable_build_options
            build.allow_spmd_sharding_propagation_to_parameters = [True] * len(program.inputs)
            build.allow_spmd_sharding_propagation_to_output = [True] * len(program.outputs)
        client = devices[0].client
        compile_module = client.compile_and_load if target.attached else client.compile
        try:
            with module.context:
                chosen = _jax.DeviceList(tuple(devices))
                return compile_module(module, executable_devices=chosen, compile_options=xla_options), kept
        except jax.errors.JaxRuntimeError as error:
            message = str(error)
            gone = re.search(r"No such compile option: '(\w+)'", message)
            if gone is None or gone[1] not in {**_ABSENT_GPU, **RIGHT_ON_CPU, **_SEVERAL_ON_CPU} or gone[1] not in kept:
                raise CompileError(f"{program.name} for {target.name}: {_first_line(error)}") from error
            _log.info("this XLA has no option %s; compiling without it", gone[1])
            del kept[gone[1]]


def _xla_options(devices: Sequence[Any], overrides: dict[str, str | int | bool]) -> Any:
    import numpy as np
    from jax._src import compiler

    return compiler.get_compile_options(
        num_replicas=1,
        num_partitions=len(devices),
        device_assignment=np.array([devices], dtype=object),
        env_options_overrides=overrides,
    )


def _serialized(xla_executable: Any, client: Any) -> bytes:
    if hasattr(xla_executable, "serialize"):
        return bytes(xla_executable.serialize())
    return bytes(client.serialize_executable(xla_executable))  # JAX 0.8.0


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _devices(target: Target, count: int) -> list[Any]:
    """The first ``count`` devices of the target; InputError where fewer are attached."""
    if not target.attached:
        return _absent_devices(target.spec, target.source, count)
    import jax

    if target.kind == "cpu":
        # LAPACK's kernels are bound when a factorisation is lowered in this process; programs from files need them too.
        import numpy as np
        from jaxlib import lapack

        lapack.prepare_lapack_call("getrf_ffi", np.dtype("float32"))
        if count > 1:
            jax_setup.provide_cpu_devices(count)
    if len(found := jax.devices(target.kind)) < count:
        more = f"; start with XLA_FLAGS=--xla_force_host_platform_device_count={count}" * (target.kind == "cpu")
        raise InputError(f"a program for {count} devices, and there are {len(found)} of target {target.name}{more}")
    return list(found[:count])


@lru_cache(maxsize=8)
def _absent_devices(spec: str, source: str, count: int) -> list[Any]:
    import jax
    from jax.experimental import topologies

    jax_setup.load_cuda_plugin()
    captured = jax_setup.Captured()
    try:
        with jax_setup.captured_stderr() as captured:
            topology = topologies.get_topology_desc(platform="cuda", topology=f"1x1x{count}", target_config=spec)
    except NotImplementedError:
        raise InputError(
            "compiling for a GPU that is not there needs JAX's CUDA plugin: pip install 'fusionlab[targets]'"
        ) from None
    except jax.errors.JaxRuntimeError as error:
        # XLA names the unknown field only in its log, which TF_CPP_MIN_LOG_LEVEL=3 switches off.
        cause = re.search(r"Error parsing text-format \S* (.*)", captured.text)
        raise InputError(f"{source}: not a usable GPU spec: {cause[1] if cause else error}") from None
    return list(topology.devices)


def _optimized_text(xla_executable: Any, folder: Path) -> str:
    """The optimised module; from the dump in ``folder`` where the executable has none: an absent GPU before JAX 0.9."""
    import jax

    try:
        return str(xla_executable.hlo_modules()[0].to_string())
    except jax.errors.JaxRuntimeError:
        if jax.__version_info__ >= (0, 9) or not (dumped := dumped_hlo(folder)):
            raise
        return dumped


def dumped_hlo(folder: Path) -> str:
    """The optimised module of a GPU that XLA dumped into ``folder``; "" for none."""
    found = next(iter(sorted(folder.glob("*gpu_after_optimizations.txt"))), None)
    return "" if found is None else found.read_text("utf-8", "replace")


def _ending(texts: Mapping[str, str], ending: str) -> str:
    """The dumped text with this ending, whatever the device before it; "" for none."""
    return next((text for name, text in texts.items() if name.endswith(ending)), "")


def _ptx_modules(folder: Path) -> str:
    """The dumped PTX, module after module in the order of their names; those without a kernel are left out."""
    modules = (path.read_text("utf-8", "replace") for path in sorted(folder.glob("*.ptx")))
    return "\n".join(dict.fromkeys(text for text in modules if ".entry" in text))


def _read_dump(folder: Path) -> dict[str, str]:
    """The dumped texts to keep, by the ending of their file name after ``module_NNNN.<module name>.``."""
    texts: dict[str, str] = {}
    first = "before_optimizations.txt"
    prefixes = [path.name.removesuffix(first) for path in folder.glob(f"*.{first}")]
    for path in sorted(folder.iterdir()):
        if between := re.search(r"\.(after|before)_(priority-)?fusion\.", path.name):  # its ending has a number
            ending = f"{between[1]}_fusion.txt"
        elif _KEPT_ARTIFACTS.search(path.name):
            ending = next((path.name.removeprefix(each) for each in prefixes if path.name.startswith(each)), "")
        else:
            continue
        if ending:
            texts[ending] = path.read_text("utf-8", "replace")
    return texts


def fusion_labels(folder: Path) -> str:
    """The labels in ``folder`` of XLA:CPU's fusion pass, a line each: a page per computation (before JAX 0.11) or an
    archive with a database, its steps in order. CompileError for one in another form."""
    found: list[str] = []
    for path in sorted((*folder.glob("*_fusion.html"), *folder.glob("*_fusion.pyz"))):
        try:
            found += _labels_of_archive(path) if path.suffix == ".pyz" else _labels_of_page(path)
        except (ValueError, KeyError, zipfile.BadZipFile, sqlite3.Error) as error:
            raise CompileError(
                "this XLA writes its record of the CPU's fusions in another form, which fusionlab cannot read; use a "
                "tested version of JAX (docs/limits.md), or a GPU target"
            ) from error
    return "\n".join(found)


def _labels_of_page(path: Path) -> list[str]:
    frames = _FRAMES.search(path.read_text("utf-8", "replace"))
    return [str(label) for _, label, _ in json.loads(frames[1] if frames else "")]


def _labels_of_archive(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive, contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(archive.read("fusions.db"))
        return [str(label) for (label,) in database.execute("SELECT label FROM frames ORDER BY id")]
