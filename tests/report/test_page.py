"""``report.html`` as text: untrusted text cannot end its element, nothing is loaded, the policy fits what is inside."""

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest

from fusionlab.report import page as page_package
from fusionlab.report.document import LAUNCH_FIELDS
from fusionlab.report.page import LAUNCH_COLUMNS, SCRIPTS, embedded, page

FOLDER = Path(page_package.__file__).parent
HOSTILE = "</script><script>alert(1)</script><!-- \u2028 @SCRIPT@ @STYLE@"


def elements(html, name):
    return re.findall(rf"<{name}(?: [^>]*)?>(.*?)</{name}>", html, re.DOTALL)


def test_text_of_programs_stays_inside_its_element():
    document = {"name": HOSTILE}
    data, script = elements(page(document), "script")
    assert json.loads(data) == document
    assert "alert" not in script
    assert "<" not in embedded(document)
    assert len(page({"a": "@SCRIPT@"})) - len(page({})) == len('"a":"@SCRIPT@"')  # marks in the data are not filled in


def test_a_number_that_json_lacks_is_an_error():
    with pytest.raises(ValueError, match="JSON"):
        page({"model_us": float("nan")})


def test_the_policy_names_the_script_and_the_style_and_nothing_else():
    html = page({"name": HOSTILE})
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    (style,) = elements(html, "style")
    script = elements(html, "script")[-1]
    for kind, content in (("script", script), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_nothing_is_loaded_from_anywhere_and_markup_is_never_made_from_text():
    addresses = re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"'`)]*", page({}))
    assert set(addresses) <= {"http://www.w3.org/2000/svg"}
    making = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    assert [name for name in SCRIPTS if re.search(making, (FOLDER / name).read_text())] == []
    assert sorted(path.name for path in FOLDER.glob("*.js")) == sorted(SCRIPTS)  # all are joined


def test_the_launch_table_shows_fields_of_the_document_in_ways_that_the_script_knows():
    assert {field for _, field, _ in LAUNCH_COLUMNS} <= set(LAUNCH_FIELDS)
    tables, formats = ((FOLDER / name).read_text() for name in ("tables.js", "dom.js"))
    cells = set(re.findall(r"(\w+):", re.search(r"const CELLS = \{(.*)\};", tables)[1]))
    numbers = set(re.findall(r"^  (\w+): \(value\)", formats, re.MULTILINE))
    assert {kind for *_, kind in LAUNCH_COLUMNS} <= cells | numbers | {"launch"}
    columns = json.loads(re.search(r"const LAUNCH_COLUMNS = (\[.*?\]);\n", page({}))[1])
    assert [tuple(column) for column in columns] == list(LAUNCH_COLUMNS)
