"""What a search found is remembered: the latest findings only, and no search is done twice."""

from types import SimpleNamespace

import pytest

from fusionlab.passes import laplacian_search
from fusionlab.passes.laplacian_search import find_laplacian
from fusionlab.passes.sums_over_directions import NoLaplacian, NotSeen


@pytest.fixture
def searched(monkeypatch):
    """The questions that were searched for; none has an answer."""
    asked = []

    def search(question):
        asked.append(question.producer.id)
        raise NotSeen(f"question {question.producer.id} went one way")

    monkeypatch.setattr(laplacian_search, "_FOUND", {})
    monkeypatch.setattr(laplacian_search, "_search", search)
    return asked


def ask(number):
    question = SimpleNamespace(producer=SimpleNamespace(id=number))
    with pytest.raises(NotSeen, match=f"question {number} went one way"):
        find_laplacian(question, "digest")


def test_a_reason_is_found_once_and_holds_no_search(searched):
    ask(1)
    ask(1)
    assert searched == [1]
    [kept] = laplacian_search._FOUND.values()
    assert isinstance(kept, NoLaplacian)
    assert kept.__traceback__ is None


def test_the_latest_findings_are_kept(searched):
    for number in range(40):
        ask(number)
    assert len(laplacian_search._FOUND) == 32
    ask(39)
    ask(0)
    assert searched == [*range(40), 0]
