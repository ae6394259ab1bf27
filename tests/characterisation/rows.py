"""Rows of the matrix, made by hand."""

from fusionlab.characterisation.matrix import GROUP_BY, GROUP_FIGURES


def row(groups=(), **more):
    """A row with these groups: (phase, family, microseconds)."""
    rows = [[phase, "B", family, 10, 2000, 1000, us, 0, 0] for phase, family, us in groups]
    return {
        "versions": "1",
        "sources": "s",
        "model_us": sum(us for _, _, us in groups),
        "unmodelled_us_launches": 0,
        "dynamic_launches": 10 * len(rows),
        "argument_bytes": 1,
        "output_bytes": 2,
        "temp_bytes": 4,
        "alias_bytes": 1,
        "electrons": 10,
        "most_laplacian_trips": 30,
        "groups": {"columns": [*GROUP_BY, *GROUP_FIGURES], "rows": rows},
        **more,
    }
