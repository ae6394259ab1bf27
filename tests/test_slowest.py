"""The table of the slowest tests, from a JUnit file."""

import re
from pathlib import Path

from tests.conftest import FIRST
from tests.slowest import ids_from, recorded, seconds_of, table

XML = """<testsuites><testsuite name="pytest">
<testcase classname="tests.hlo.test_a" name="test_one[x|y]" time="2.0" />
<testcase classname="tests.test_b" name="test_two" time="3.5" />
<testcase classname="tests.hlo.test_a" name="test_three" time="0.5" />
</testsuite></testsuites>"""


def test_files_in_the_order_of_their_seconds_with_the_slowest_of_their_tests(tmp_path):
    path = tmp_path / "fast.xml"
    path.write_text(XML)
    title, *_, first, second = table("fast", seconds_of(path), 2).splitlines()
    assert title == "## Fast: 3 tests, 6 s; the 2 slowest take 6 s"
    assert first == "| `test_b.py` | 4 | two 3.5 |"
    assert second == "| `hlo/test_a.py` | 2 | one[x/y] 2.0 |"


def test_the_files_that_are_begun_first_are_there():
    assert [name for name in FIRST if not (Path(__file__).parent / name).is_file()] == []


def test_ids_of_those_that_took_long(tmp_path):
    path = tmp_path / "fast.xml"
    path.write_text(XML.replace("tests.test_b", "tests.hlo.test_b.TestThat"))
    assert ids_from(path, 2.0, 0.0) == ["hlo/test_a.py::test_one[x|y]", "hlo/test_b.py::TestThat::test_two"]


def test_the_fastest_case_of_a_function_stays_if_it_is_fast_enough(tmp_path):
    path = tmp_path / "fast.xml"
    path.write_text(XML.replace("test_three", "test_one[z]").replace('"0.5"', '"2.2"'))
    assert ids_from(path, 2.0, 0.0) == [
        "hlo/test_a.py::test_one[x|y]", "hlo/test_a.py::test_one[z]", "test_b.py::test_two",
    ]  # fmt: skip
    assert ids_from(path, 2.0, 2.5) == ["hlo/test_a.py::test_one[z]", "test_b.py::test_two"]


def test_the_recorded_tests_are_there():
    folder = Path(__file__).parent
    for each in recorded():
        file, *_, name = each.partition("[")[0].split("::")
        assert re.search(rf"\b{name}\b", (folder / file).read_text()), each
