"""The records of every traced step lead to the state that the real coordinator had after it."""

from collections import Counter

import pytest

from tests.differential.decoded import read_lines
from tests.differential.traced_states import compared
from tests.shared_data import TRACES


@pytest.mark.parametrize(
    ("trace_file", "equal", "rebalancing", "forgotten"),
    [
        ("consumer", 4893, 0, 0),
        ("share", 5066, 0, 0),
        ("streams", 4915, 0, 0),
        ("classic", 2571, 2749, 0),
        ("migration", 3829, 1087, 10),
        ("failover-consumer", 2270, 0, 0),
        ("failover-share", 2266, 0, 0),
        ("failover-streams", 1888, 0, 0),
        ("failover-classic", 1031, 1182, 0),
        ("failover-migration", 1906, 338, 12),
        ("names-consumer", 2162, 0, 0),
        ("names-share", 2106, 0, 0),
        ("names-streams", 2141, 0, 0),
        ("names-classic", 960, 1270, 0),
        ("names-migration", 1743, 378, 1),
    ],
)
def test_records_lead_to_the_state_after_each_step(
    trace_file: str, equal: int, rebalancing: int, forgotten: int
) -> None:
    tally = compared(read_lines(TRACES / f"{trace_file}.jsonl.gz"))
    print(f"\n{trace_file}: {dict(tally)}")
    assert tally == Counter(equal=equal, rebalancing=rebalancing, forgotten=forgotten)
