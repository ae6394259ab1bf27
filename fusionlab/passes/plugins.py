"""Passes outside the catalogue: ``path.py:Name`` from a file, and installed ones by their entry point.

A file is imported, and so run, only when the user has written it as ``path.py:Name``; an entry point of the group
``fusionlab.passes`` only when a pipeline names it. Every fault of such a pass is one line that names it: an exception,
a module that does not verify, another signature, a change without an event and an event without a reason.
"""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
import threading
import traceback
from dataclasses import dataclass, is_dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from jaxlib.mlir import ir

from fusionlab.errors import InputError, one_line, unknown
from fusionlab.hlo.program import Program
from fusionlab.hlo.python_file import run_file
from fusionlab.passes.interface import Applied, Event, Pass, Result, Setting, VerificationError

GROUP = "fusionlab.passes"
"""The entry point group of packages that bring passes."""

_IMPORTING = threading.RLock()
_HELD = "_guarded_by_name"
_REFERENCE = re.compile(r"(?P<path>.+\.py):(?P<name>\w+)")


def is_reference(name: str) -> bool:
    """True if ``name`` is written as a pass of a file, ``path.py:Name``."""
    return _REFERENCE.fullmatch(name) is not None


def with_whole_path(text: str) -> str:
    """``path.py:Name{...}`` with its absolute path, so that it is found from any folder; other ``text`` unchanged.

    So is ``text`` where a folder's name has a comma or a brace, with which a pipeline cannot be parsed.
    """
    reference, brace, options = text.partition("{")
    found = _REFERENCE.fullmatch(reference)
    if found is None or set(whole := str(Path(found["path"]).expanduser().resolve())) & set("{},"):
        return text
    return f"{whole}:{found['name']}{brace}{options}"


def installed() -> dict[str, EntryPoint]:
    """The passes that installed packages bring, by name; nothing of them is imported."""
    return {point.name: point for point in entry_points(group=GROUP)}


def from_file(reference: str) -> type[Pass]:
    """The pass ``path.py:Name``; its file is imported. InputError: no such file or name, not a pass, it raises.

    The class is named ``reference``, so that a printed pipeline can be parsed again.
    """
    found = _REFERENCE.fullmatch(reference)
    assert found is not None
    return _checked(_imported(Path(found["path"]).expanduser(), reference), found["name"], reference)


def from_entry_point(point: EntryPoint) -> type[Pass]:
    """The pass of an entry point; its package is imported. InputError as for ``from_file``."""
    module_name, _, attribute = point.value.partition(":")
    try:
        module = importlib.import_module(module_name.strip())
    except (Exception, SystemExit) as error:
        raise InputError(f"pass {point.name} ({point.value}) cannot be imported: {one_line(error)}") from None
    return _checked(module, attribute.partition("[")[0].strip(), point.name)


def documentation(class_: type[Pass]) -> str:
    """The docstring of the module of a user pass, else that of its class."""
    written = class_.__mro__[1]
    text = sys.modules[written.__module__].__doc__ or written.__doc__ or "no documentation"
    return text.strip()


def _imported(path: Path, reference: str) -> ModuleType:
    """The file as a module whose name is a digest of its path and content: an edited file is another module."""
    try:
        content = path.read_bytes()
    except OSError:
        raise InputError(f"{reference}: there is no file {path}") from None
    name = f"fusionlab_own_pass_{hashlib.sha256(str(path.resolve()).encode() + content).hexdigest()[:16]}"
    with _IMPORTING:  # another thread must not get a module that is not executed yet
        if name in sys.modules:
            return sys.modules[name]
        try:
            return run_file(path, name)
        except (Exception, SystemExit) as error:
            raise InputError(
                f"{reference}: the file cannot be imported: {one_line(error)}{_place(error, path)}"
            ) from None


def _checked(module: ModuleType, attribute: str, name: str) -> type[Pass]:
    """The class ``attribute`` of ``module``, wrapped; InputError if it is not a pass."""
    if not hasattr(module, attribute):
        own = [key for key, value in vars(module).items() if isinstance(value, type) and issubclass(value, Pass)]
        raise InputError(f"{name}: {unknown('name in this file', attribute, [one for one in own if one != 'Pass'])}")
    found = getattr(module, attribute)
    if isinstance(found, Pass):
        raise InputError(f"{name}: is an object; name its class, {type(found).__name__}")
    if not (isinstance(found, type) and issubclass(found, Pass)):
        raise InputError(f"{name}: is not a pass: not a subclass of fusionlab.Pass")
    if found.__abstractmethods__ or not is_dataclass(found) or not found.__dataclass_params__.frozen:
        raise InputError(f"{name}: is not a pass: it needs @dataclass(frozen=True) and a method run(program, setting)")
    return _guarded(found, name)


def _guarded(found: type[Pass], name: str) -> type[Pass]:
    """``found`` under the requested name, with its results validated: one class, whose instances compare equal; it is
    held by ``found`` itself."""
    with _IMPORTING:
        held: dict[str, type[Pass]] = vars(found).get(_HELD, {})
        if name not in held:
            held = {**held, name: _guard(found, name)}
            setattr(found, _HELD, held)
        return held[name]


def _guard(found: type[Pass], name_: str) -> type[Pass]:

    @dataclass(frozen=True)
    class Guarded(found):  # type: ignore[valid-type,misc]
        name = name_

        def run(self, program: Program, setting: Setting) -> Result:
            try:
                result = super().run(program, setting)
            except InputError as error:
                raise InputError(f"pass {self.name}: {error}") from error
            except VerificationError as error:
                raise InputError(str(error)) from error
            except (Exception, SystemExit) as error:
                place = _place(error, Path(sys.modules[found.__module__].__file__ or ""))
                raise InputError(f"pass {self.name} failed: {one_line(error)}{place}") from error
            return _accepted(self, program, result)

    Guarded.__name__ = Guarded.__qualname__ = found.__name__
    return Guarded


def _accepted(pass_: Pass, program: Program, result: Any) -> Result:
    """``result`` with this pass named in its events; InputError where it breaks the contract."""
    if not isinstance(result, Result) or not isinstance(result.program, Program):
        raise InputError(f"pass {pass_.name} gave {type(result).__name__} and no fusionlab.Result")
    if not result.events:
        raise InputError(f"pass {pass_.name} gave no event: an Applied, or a Declined that says why, is needed")
    if bool(result.applied) != (result.program.digest != program.digest):
        what = "an Applied and the same program" if result.applied else "another program and no Applied"
        raise InputError(f"pass {pass_.name} gave {what}")
    if result.applied:
        try:
            module = result.program.parse()
            with module.context:
                module.operation.verify()
        except ir.MLIRError as error:
            line = str(error).splitlines()[0]
            raise InputError(f"pass {pass_.name} produced an invalid module: {line}") from None
        if (result.program.inputs, result.program.outputs) != (program.inputs, program.outputs):
            raise InputError(f"pass {pass_.name} changed the types of the program's arguments or results")
    return Result(result.program, tuple(_named(event, pass_) for event in result.events))


def _named(event: Event, pass_: Pass) -> Event:
    """``event`` of the pass by its name in the pipeline, by which it can be resolved again."""
    if isinstance(event, Applied):
        mine = event.resolved.partition("{")[0] == pass_.name
        return replace(event, pass_name=pass_.name, resolved=event.resolved if mine else str(pass_))
    return replace(event, pass_name=pass_.name)


def _place(error: BaseException, path: Path) -> str:
    """The innermost line of the user's file in the traceback of an error."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame.lineno for frame in frames if Path(frame.filename).resolve() == path.resolve()]
    return f" ({path.name}, line {own[-1]})" if own else ""
