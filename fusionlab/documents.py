"""The documents of ``--json``: the fields that all of them begin with. docs/json.md describes every document."""

from __future__ import annotations

from typing import Any

from fusionlab import __version__

_FIRST_FORM = 1


def headed(document: Any, command: str) -> Any:
    """``document`` of ``command`` with ``schema``, ``fusionlab``, ``versions`` and ``target`` before its own fields.

    Its own values of these stay. ``target`` is None where the document has several, each with its own. Lists, which
    ``models`` and ``passes`` print, have no fields and stay as they are.
    """
    from fusionlab.codegen.compile import versions

    if not isinstance(document, dict):
        return document
    head = {
        "schema": f"fusionlab-{command}-{_FIRST_FORM}",
        "fusionlab": __version__,
        "versions": versions(),
        "target": None,
    }
    return head | document
