"""The plugin prints the ledgers of a test that fails, and of no other."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.versions

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", params=["at a desk", "CI"])
def said(tmp_path_factory, request):
    """What pytest prints of these tests; where the environment has ``CI``, its summary repeats messages whole."""
    folder = tmp_path_factory.mktemp("mine")
    shutil.copy(Path(__file__).with_name("failing_tests.txt"), folder / "test_kernels.py")
    command = [sys.executable, "-m", "pytest", "-p", "fusionlab.testing.plugin", "-p", "no:cacheprovider", "-q"]
    environment = {name: value for name, value in os.environ.items() if name not in ("CI", "BUILD_NUMBER")}
    environment |= {"PYTHONPATH": str(ROOT)} | ({"CI": "true"} if request.param == "CI" else {})
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.stdout


def test_a_failing_test_shows_its_ledger_once(said):
    """Those that an assertion has shown whole are no sections beside it; of two equal ones there is one section."""
    assert "5 failed, 2 passed, 1 error" in said, said
    assert said.count("fusionlab ledger of chosen") == 4
    assert "fusionlab ledger of other" not in said
    assert said.count("chosen on cpu: 1 launch, at most 0 allowed") >= 2
    assert said.count("chosen on cpu: 1 launch of 1 site, 0 copies and memsets, 0 B of temp memory ") == 3
    launch = r"1  \S+ \(elementwise, .*test_kernels.py:9\)  \| return jnp.tanh\(x\) \+ x"
    assert len(re.findall(launch, said)) == 5, "three sections, two messages"


def test_ledgers_of_fixtures_belong_to_the_tests_that_have_them(said):
    assert "it cannot be told: ZeroDivisionError" in said
    assert "where 1 = <ledger of chosen on cpu>.dynamic_launches" in said
    assert "in assert_launches" not in said, "the test's own line is shown, and not fusionlab's"
