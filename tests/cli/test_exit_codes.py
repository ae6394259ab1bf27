"""What a rewriting came to, and the exit code of it."""

from types import SimpleNamespace

import pytest

from fusionlab.cli.exit_codes import endings_of, exit_code
from fusionlab.equivalence.verdict import Verdict
from fusionlab.passes.interface import Applied, Declined

APPLIED = Applied("batch-replay", "a loop", "main", "batch-replay")
DECLINED = Declined("batch-replay", "unsafe", "it is a recurrence", "main")


@pytest.mark.parametrize(
    ("event", "verdict", "options", "endings", "code"),
    [
        (APPLIED, "equal", {}, {}, 0),
        (APPLIED, "different", {"unchecked": True}, {"different": "why"}, 1),
        (APPLIED, "not-checked", {}, {"not checked": "why"}, 1),
        (APPLIED, "not-checked", {"unchecked": True}, {}, 0),
        (DECLINED, "equal", {}, {"not applied": "it is a recurrence"}, 0),
        (DECLINED, "equal", {"require_applied": True}, {"not applied, and required": "it is a recurrence"}, 1),
    ],
)
def test_a_rewriting(event, verdict, options, endings, code):
    applied = isinstance(event, Applied)
    outcome = SimpleNamespace(events=(event,), equivalence=Verdict(verdict, reason="why"), applied=applied)
    found = endings_of(outcome, **{"unchecked": False, "require_applied": False, **options})
    assert (found, exit_code(found)) == (endings, code)
