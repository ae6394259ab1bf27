"""Nsight Compute's raw CSV, in the form that its documentation describes."""

from pathlib import Path

import numpy as np
import pytest

from fusionlab.errors import InputError
from fusionlab.measure.ncu import counters_of, profiled, read_counters

TABLE = Path(__file__).with_name("ncu_raw.csv")


def test_launches_of_one_kernel_are_one_row_weighted_by_time():
    gemm, add = read_counters(TABLE.read_text().splitlines())
    assert (gemm.name, gemm.launches, gemm.us, gemm.tensor_pipe) == ("gemm_128x64", 1, 20.0, 0.7)
    assert (add.launches, add.us) == (2, 4.0)
    assert add.achieved_occupancy == pytest.approx((0.5 * 3 + 0.9) / 4)
    assert add.l2_hit_rate == pytest.approx((0.4 * 3 + 0.8) / 4)
    assert add.tensor_pipe is None


@pytest.mark.parametrize(
    ("text", "message"),
    [("==ERROR== nothing", "no table"), (TABLE.read_text().replace("gpu__time_duration.sum", "x"), "no column")],
)
def test_what_is_no_table_says_so(text, message):
    with pytest.raises(InputError, match=message):
        read_counters(text.splitlines())


@pytest.fixture
def counted(tmp_path, monkeypatch, lowered):
    """``counted(script, x, limit_s)``: the counters of ``x * 2`` of three numbers, with a shell script for ncu."""
    program = lowered(lambda x: x * 2, np.ones(3, np.float32))

    def of(script, x=np.ones(3, np.float32), limit_s=60.0):  # noqa: B008
        if script is not None:
            (tmp_path / "ncu").write_text(f"#!/bin/sh\n{script}\n")
            (tmp_path / "ncu").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin" if script is not None else "")
        return counters_of(program, [x], "cpu", limit_s)

    return of


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (None, "not on the PATH"),
        ("echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'", "may not read the GPU's counters"),
        ("echo broken >&2; exit 3", "ncu failed: broken"),
        ("echo '==PROF== connected'; echo '==ERROR== it failed'; exit 3", "ncu failed: ==ERROR== it failed"),
        ("sleep 5", "did not finish within 1 s"),
    ],
)
def test_what_ncu_cannot_do_is_said(counted, script, message):
    with pytest.raises(InputError, match=message):
        counted(script, limit_s=1.0)


@pytest.mark.slow
def test_the_program_that_is_counted_runs_in_a_process_of_its_own(counted):
    """A stand-in for ncu runs its command, as ncu does, and prints the table above."""
    run = f'while [ "$1" != off ]; do shift; done\nshift\n"$@" || exit 1\ncat {TABLE}'
    assert [one.name for one in counted(run)] == ["gemm_128x64", "loop_add_fusion"]
    with pytest.raises(InputError, match="ncu failed"):
        counted(run, np.ones(4, np.float32))


class FakeDriver:
    """CUDA's driver with the calls that it gets; ``failing`` returns an error."""

    def __init__(self, failing=""):
        self.calls, self._failing = [], failing

    def __getattr__(self, name):
        def call(*_):
            self.calls.append(name)
            return 201 if name == self._failing else 0

        return call


def test_the_context_that_xla_leaves_is_made_current_before_the_marks():
    driver = FakeDriver()
    profiled(lambda: driver.calls.append("run"), driver)
    assert driver.calls[-4:] == ["cuCtxSetCurrent", "cuProfilerStart", "run", "cuProfilerStop"]


def test_a_mark_that_fails_ends_the_process_with_cudas_code():
    driver = FakeDriver("cuProfilerStart")
    with pytest.raises(SystemExit, match="cuProfilerStart returned the CUDA error 201"):
        profiled(lambda: driver.calls.append("run"), driver)
    assert "run" not in driver.calls
