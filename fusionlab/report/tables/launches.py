"""The launch table: the fields of each launch in a study document, and the columns of its page.

A new column is a line here; ``ledger.launch_rows`` has the available fields.
"""

from __future__ import annotations

LAUNCH_FIELDS = (
    "name", "family", "phase", "stage", "role", "loop", "trip_count", "static_launches", "dynamic_launches", "flops",
    "bytes", "model_us", "model_source", "in_cuda_graph", "stage_share", "op_name", "source", "attributed_by",
    "unmodelled", "ops",
)  # fmt: skip
"""Columns in the document; ``ops`` are positions of the StableHLO ops of the launch among the program's."""

LAUNCH_COLUMNS = (
    ("launch", "name", "launch"),
    ("model time", "model_us", "us"),
    ("runs", "dynamic_launches", "count"),
    ("bytes", "bytes", "bytes"),
    ("FLOPs", "flops", "flops"),
    ("family", "family", "family"),
    ("stage", "stage", "text"),
    ("role", "role", "text"),
    ("source", "source", "source"),
    ("scope", "op_name", "scope"),
)
"""Columns on the page: label, field, and its format in the script (``tables.js``)."""
