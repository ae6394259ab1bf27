"""Random programs and replays keep their numbers through raising and every pass; ``make full`` runs more."""

import pytest
from hypothesis import Phase

from tests.fuzzing import batch


@pytest.mark.parametrize(
    ("part", "seed", "count"),
    [
        pytest.param("programs", 76, 3, marks=pytest.mark.slow),
        pytest.param("replays", 76, 2, marks=pytest.mark.slow),
        pytest.param("integers", 76, 12, marks=pytest.mark.slow),
        pytest.param("programs", 77, 150, marks=pytest.mark.full),
        pytest.param("replays", 78, 30, marks=pytest.mark.full),
        pytest.param("integers", 77, 200, marks=pytest.mark.full),
    ],
)
def test_random_ones_keep_their_numbers(part, seed, count):
    """Without shrinking: an example takes seconds, and the seed makes it again."""
    assert batch.run(part, seed, count, [Phase.generate])["failure"] is None
