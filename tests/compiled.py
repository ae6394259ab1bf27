"""One cache of compiled programs for a run of the tests: shared by its processes, and by the tiers that make starts.

What XLA made of a program is decided by the program, the options and the versions, and both caches here (JAX's
persistent one, and this project's records of compiles for absent GPUs) have those in their keys. What is decided by
our sources, verdicts and rewritten programs, is not shared: every test has its own. A folder that a target of make
names holds one cache for each state of the sources, so that no run reads what another revision left there.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from tests.turns import digest_of_sources

_NAMED, _OF_THIS_RUN = "FUSIONLAB_TEST_CACHE", "FUSIONLAB_TEST_CACHE_OF_THIS_RUN"


def share_compiled_programs() -> Path:
    """The folder of this run, which JAX uses from now on, in processes that are started from here too."""
    folder = os.environ.get(_OF_THIS_RUN)
    if folder is None:
        folder = os.environ[_OF_THIS_RUN] = str(_of_make() or _temporary())
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(Path(folder) / "jax")
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.05"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
    os.environ["JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES"] = "none"  # they would be options of compiles for GPUs
    os.environ["FUSIONLAB_CACHE"] = str(cache_with_shared_compiles(_temporary()))  # where no test asks for its own
    return Path(folder)


def cache_with_shared_compiles(folder: Path) -> Path:
    """A folder for FUSIONLAB_CACHE below ``folder``: all its own, but for the compiles of this run."""
    cache, compiles = folder / "cache", Path(os.environ[_OF_THIS_RUN]) / "absent-gpus"
    compiles.mkdir(parents=True, exist_ok=True)
    cache.mkdir(parents=True)
    (cache / "compiles").symlink_to(compiles)
    return cache


def _of_make() -> Path | None:
    named = os.environ.get(_NAMED)
    if not named:
        return None
    folder = Path(named) / digest_of_sources()[:16]
    for other in Path(named).glob("*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
    return folder


def _temporary() -> Path:
    folder = tempfile.mkdtemp(prefix="fusionlab-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
