"""The report of a program without stages: an unrolled training step, which opens folded and unfolds on demand."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.report.pictures.folding import MOST_MEMBERS
from tests.browser.conftest import studied
from tests.browser.reading import boxes, every, load, one, until

pytestmark = pytest.mark.slow

LAYERS = 9
SECTIONS = ("summary", "launches", "graph", "clusters", "refusals", "reproduce")


def step(weights, x):
    """Gradient descent of equal layers, unrolled, without a scope."""

    def loss(weights):
        y = x
        for i in range(LAYERS):
            scaled = (y - jnp.mean(y, axis=-1, keepdims=True)) / jnp.sqrt(1 + jnp.var(y, axis=-1, keepdims=True))
            y = y + jax.nn.softmax(jnp.tanh(scaled @ weights[i]))
        return jnp.mean(y**2)

    return jax.tree.map(lambda w, g: w - 0.01 * g, weights, jax.grad(loss)(weights))


@pytest.fixture(scope="module")
def folder(lowered, tmp_path_factory):
    program = lowered(step, LAYERS * [np.ones((8, 8), np.float32)], np.ones((4, 8), np.float32), platform="cuda")
    assert program.ops > 1000
    return studied(program, tmp_path_factory.mktemp("any"))


@pytest.fixture
def report(chromium, folder):
    """The report with the sections that the tests read unfolded."""
    chromium.get("about:blank")
    chromium.get_log("browser")
    page = load(chromium, folder / "report.html", unfolded=False)
    for section in SECTIONS[1:]:
        page.execute_script("document.querySelector(arguments[0] + ' > details').open = true", f"#{section}")
        until(page, lambda section=section: every(page, f"#{section} .body > *"))
    return page


def test_it_opens_folded_and_unfolds_on_demand(report):
    assert report.get_log("browser") == []
    first = boxes(report)
    assert 3 < len(first) < 30
    assert "jvp (forward pass)" in one(report, "#graph svg").text
    report.execute_script(
        "document.querySelector('#graph .box.group.folded').dispatchEvent(new MouseEvent('click', { bubbles: true }))"
    )
    until(report, lambda: len(boxes(report)) > len(first))
    assert len(boxes(report)) <= len(first) + MOST_MEMBERS


def test_constants_and_broadcasts_are_drawn_when_asked_for(report):
    caption = one(report, "#graph figcaption").text
    shown, hidden = map(int, re.search(r"([\d,]+) ops; ([\d,]+) constants", caption.replace(",", "")).groups())
    assert shown > 0
    assert hidden > 0
    one(report, "#graph .controls input[type=checkbox]").click()
    caption = one(report, "#graph figcaption").text.replace(",", "")
    assert f"{shown + hidden} ops" in caption
    assert "hidden" not in caption
    one(report, "#graph .controls input[type=checkbox]").click()


def test_nothing_was_applied_so_there_is_one_column(report):
    assert "nothing was applied" in one(report, "#subtitle").text
    assert [head.text for head in every(report, "#summary .totals thead th")] == ["", "original"]
    assert len(every(report, "#launches table.matrix")) == 1
    assert len(every(report, "#graph .pane")) == 1


def test_there_are_no_words_of_stages(report):
    for section in SECTIONS:
        text = one(report, f"#{section} .body").get_attribute("textContent")
        assert not re.search(r"\bstages?\b", text.replace("--view stages", "")), section
