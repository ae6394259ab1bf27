"""Random programs and replays keep their numbers through raising and every pass; ``make full`` runs more."""

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzzing import programs, properties, replays

# Without shrinking: an example takes seconds, and the seed makes it again.
quick = {
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "phases": [Phase.explicit, Phase.generate],
}


@pytest.mark.slow
@settings(max_examples=3, derandomize=True, **quick)
@given(programs.programs())
def test_random_programs_keep_their_numbers(program):
    properties.check_program(program)


@pytest.mark.slow
@settings(max_examples=2, derandomize=True, **quick)
@given(replays.replays())
def test_random_replays_are_right_or_left_alone(replay):
    replays.check_replay(replay)


@pytest.mark.full
@seed(77)
@settings(max_examples=150, **quick)
@given(programs.programs())
def test_more_random_programs(program):
    properties.check_program(program)


@pytest.mark.full
@seed(78)
@settings(max_examples=30, **quick)
@given(replays.replays())
def test_more_random_replays(replay):
    replays.check_replay(replay)
