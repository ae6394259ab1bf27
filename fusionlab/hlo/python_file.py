"""The program of a function in a Python file, ``FILE.py:FUNCTION``.

Its arguments are written as shapes, or are ``example_args``: a tuple, or a function without arguments that returns one,
as an attribute of the function or a name in the file.

The file is run as ``python FILE.py`` runs it, but not as ``__main__``: its folder is first on the import path, and its
output goes to stderr. What it raises is reported as its own, with the lines of the user's files.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import importlib.util
import inspect
import linecache
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import jax

from fusionlab.errors import InputError, one_line
from fusionlab.files import read_file
from fusionlab.hlo.argument_shapes import parse_shapes
from fusionlab.hlo.lowering import HostCallbackError, lower_function
from fusionlab.hlo.program import Program

EXAMPLES = "example_args"

_REFERENCE = re.compile(r"(?P<path>.+\.py)(?::(?P<name>.*))?", re.DOTALL)
_MOST_LINES = 4
_MOST_NAMED = 12
_ABSENT = object()
_PLACES = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), Path(__file__).parents[1])
"""Folders of Python and of this project, whose lines are not the user's."""


class PythonFunction:
    """A function of a Python file that ran: what it is called, and what it is."""

    def __init__(self, path: Path, name: str, value: Any, module: ModuleType) -> None:
        self.path, self.name, self.value, self.module = path, name, value, module

    @property
    def reference(self) -> str:
        """``FILE.py:FUNCTION``."""
        return f"{self.path}:{self.name}"


class _WithoutBytecode(SourceFileLoader):
    """Reads the source at every import: of a file edited within a second to the same size, bytecode is stale."""

    def path_stats(self, path: Any) -> Any:
        raise OSError("bytecode is neither read nor written")


def is_python(reference: str) -> bool:
    """True if ``reference`` is written as ``FILE.py`` or ``FILE.py:FUNCTION``."""
    return _REFERENCE.fullmatch(reference) is not None


def run_file(path: Path, name: str) -> ModuleType:
    """The file ``path``, run as a module of that ``name``; if it raises, the module is not kept."""
    loader = _WithoutBytecode(name, str(path))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def program_of_python(reference: str, shapes: Sequence[str], platforms: Sequence[str]) -> Program:
    """The function ``FILE.py:FUNCTION``, or the only one of ``FILE.py``, lowered for ``platforms`` (``cpu``, ``cuda``).

    ``shapes`` are its arguments, as ``--args`` writes them; without any, its ``example_args``. A program that is the
    same on several platforms has platform ``any``. InputError: no such file or function, arguments that do not fit,
    what the file raises, and a program that differs between ``platforms``.
    """
    found = _REFERENCE.fullmatch(reference)
    assert found is not None
    path = Path(found["path"])
    read_file(path)  # InputError where it cannot be read
    with _as_python_runs(path):
        module = _run(path)
        try:
            function = _function(module, path, found["name"])
            args = _arguments(function, shapes)
        except InputError:
            raise
        except (Exception, SystemExit) as error:  # of an object of the user's that is asked for an attribute
            raise _of_user(reference, error, path) from error
        programs = [_lowered(function, args, platform) for platform in dict.fromkeys(platforms)]
    if len(programs) == 1:
        return programs[0]
    if len({one.bytecode for one in programs}) > 1:
        named = " and ".join(one.platform for one in programs)
        raise InputError(f"{function.reference}: lowers differently for {named}; name targets of one platform")
    return replace(programs[0], platform="any")


@contextlib.contextmanager
def _as_python_runs(path: Path) -> Iterator[None]:
    """A context in which the folder of ``path`` is first on the import path, its name the only argument, stdout stderr.

    Afterwards JAX's settings are as before, and the modules of that folder are forgotten: another version of the file
    may import other modules of the same names.
    """
    folder, before = path.resolve().parent, set(sys.modules)
    import_path, settings, arguments = list(sys.path), dict(jax.config.values), list(sys.argv)
    sys.argv[:] = [str(path)]
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        sys.path[:], sys.argv[:] = import_path, arguments
        for name in set(sys.modules) - before:
            if _lies_in(folder, sys.modules[name]):
                del sys.modules[name]
        for setting, value in settings.items():
            if jax.config.values[setting] != value:
                jax.config.update(setting, value)


def _lies_in(folder: Path, module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).is_relative_to(folder) and not _is_installed(file)


def _run(path: Path) -> ModuleType:
    """The module of the file ``path``, by its own name unless a module is already called so."""
    name = path.stem
    if name in sys.modules or not name.isidentifier():
        name = f"own_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]}"
    try:
        return run_file(path.resolve(), name)
    except (Exception, SystemExit) as error:
        raise _of_user(str(path), error, path) from error


def _function(module: ModuleType, path: Path, name: str | None) -> PythonFunction:
    """The function called ``name`` (dots lead to attributes); without one, the only one of the file.

    Of several functions it is the only one with ``example_args`` of its own.
    """
    own = {key: value for key, value in vars(module).items() if _is_function(key, value, module)}
    if name is None:
        with_examples = [key for key, value in own.items() if hasattr(value, EXAMPLES)]
        obvious = list(own) if len(own) == 1 else with_examples
        if len(obvious) != 1:
            raise InputError(_which(path, list(own)))
        name = obvious[0]
    value: Any = module
    for part in name.split("."):
        value = getattr(value, part, _ABSENT)
    defined = f"the file defines {_listed(own)}" if own else "the file defines no function"
    if value is _ABSENT:
        raise InputError(f"{path}: there is no function {name!r}; {defined}")
    if isinstance(value, type) or not callable(value):
        kind = "a class" if isinstance(value, type) else f"of type {type(value).__name__}"
        raise InputError(f"{path}:{name}: is {kind}, not a function; {defined}")
    if inspect.isgeneratorfunction(value) or inspect.iscoroutinefunction(value):
        raise InputError(f"{path}:{name}: is a generator or a coroutine, which JAX does not trace; {defined}")
    return PythonFunction(path, name, value, module)


def _is_function(name: str, value: Any, module: ModuleType) -> bool:
    """True for a public function that the file itself makes: defined, jitted, vmapped or partial."""
    if name.startswith("_") or name == EXAMPLES or isinstance(value, type | ModuleType) or not callable(value):
        return False
    return isinstance(value, functools.partial) or getattr(value, "__module__", None) == module.__name__


def _which(path: Path, names: Sequence[str]) -> str:
    if not names:
        return f"{path}: defines no function"
    return f"{path}: defines {len(names)} functions ({_listed(names)}); name one, as {path}:{names[0]}"


def _listed(names: Sequence[str] | dict[str, Any]) -> str:
    every = list(names)
    return ", ".join(every[:_MOST_NAMED]) + ", ..." * (len(every) > _MOST_NAMED)


def _arguments(function: PythonFunction, shapes: Sequence[str]) -> tuple[Any, ...]:
    """The arguments by their ``shapes``, else the function's or the file's ``example_args``; InputError unless they are
    as many as the function takes."""
    try:
        signature = inspect.signature(function.value)
    except (TypeError, ValueError):  # of a native function
        signature = None
    if shapes:
        args, origin = parse_shapes(" ".join(shapes)), "--args"
    else:
        examples = getattr(function.value, EXAMPLES, getattr(function.module, EXAMPLES, _ABSENT))
        args, origin = () if examples is _ABSENT else _examples(function, examples), EXAMPLES
        if examples is _ABSENT and signature is not None and _takes_some(signature):
            raise InputError(
                f"{_takes(function, signature)}; name their shapes, as --args 'f32[8,3] i32[]', or write {EXAMPLES} = "
                "(...) in the file"
            )
    if signature is None:
        return args
    try:
        signature.bind(*args)
    except TypeError as error:
        count = f"{len(args)} argument{'' if len(args) == 1 else 's'}"
        raise InputError(f"{_takes(function, signature)}, and {origin} has {count}: {error}") from None
    return args


def _takes(function: PythonFunction, signature: inspect.Signature) -> str:
    """The arguments of the function in words, with the last names of their types."""
    parameters = [one.replace(annotation=_named(one.annotation)) for one in signature.parameters.values()]
    short = signature.replace(parameters=parameters, return_annotation=_named(signature.return_annotation))
    return f"{function.reference}: takes {short}"


class _Name(str):
    """A type by its last name, as a signature prints it."""

    __repr__ = str.__str__


def _named(annotation: Any) -> Any:
    """``annotation`` without the modules of its types: ``Array`` for ``jax.jaxlib._jax.Array``."""
    if annotation is inspect.Signature.empty:
        return annotation
    return _Name(re.sub(r"(?:[A-Za-z_]\w*\.)+(?=[A-Za-z_])", "", inspect.formatannotation(annotation)))


def _takes_some(signature: inspect.Signature) -> bool:
    try:
        signature.bind()
    except TypeError:
        return True
    return False


def _examples(function: PythonFunction, examples: Any) -> tuple[Any, ...]:
    """``examples`` as a tuple: as it is written, or returned."""
    if callable(examples):
        try:
            examples = examples()
        except (Exception, SystemExit) as error:
            raise _of_user(f"{function.path}: {EXAMPLES}()", error, function.path) from error
    if not isinstance(examples, tuple):
        raise InputError(
            f"{function.path}: {EXAMPLES} is of type {type(examples).__name__}; write a tuple of the arguments, "
            "as (x,), or a function that returns one"
        )
    return examples


def _lowered(function: PythonFunction, args: Sequence[Any], platform: str) -> Program:
    try:
        jitted = function.value
        if not callable(getattr(jitted, "trace", None)):
            jitted = jax.jit(
                jitted, keep_unused=True
            )  # also of values: a Laplacian is found by the value that it is of
        program = lower_function(jitted, args, {}, platform)
    except HostCallbackError as error:
        raise InputError(f"{function.reference}: {error}") from error
    except (Exception, SystemExit) as error:
        raised = error.__cause__ if isinstance(error, InputError) and error.__cause__ is not None else error
        raise _of_user(function.reference, raised, function.path) from error
    return replace(program, name=re.sub(r"\W+", "_", function.name), provenance=function.reference)


def _of_user(what: str, error: BaseException, path: Path) -> InputError:
    """What the user's code raised, with the innermost lines of the user's files; without any, JAX's own error."""
    if isinstance(error, SyntaxError):
        where = f"{_short(error.filename or what)}" + f", line {error.lineno}" * (error.lineno is not None)
        return InputError(f"{where}: {type(error).__name__}: {error.msg}")
    lines = [
        f"  {_short(frame.filename)}:{frame.lineno}, in {frame.name}: "
        f"{linecache.getline(frame.filename, frame.lineno or 0).strip()}"
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path.resolve()) or not _is_installed(frame.filename)
    ]
    if not lines:
        return InputError(f"{what}: JAX cannot trace it with these arguments: {one_line(error)}")
    return InputError("\n".join([f"{what}: raises {one_line(error)}", *lines[-_MOST_LINES:]]))


def _is_installed(file: str) -> bool:
    """True for a file of Python, of an installed package, or of this project."""
    path = Path(file)
    if file.startswith("<") or not {"site-packages", "dist-packages"}.isdisjoint(path.parts):
        return True
    return any(path.is_relative_to(place) for place in _PLACES)


def _short(file: str) -> str:
    """``file`` from the current folder, if it lies below."""
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else file
