"""The records of every traced step lead to the state that the real coordinator had after it."""

from __future__ import annotations

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
    ],
)
def test_records_lead_to_the_state_after_each_step(
    trace_file: str, equal: int, rebalancing: int, forgotten: int
) -> None:
    tally = compared(read_lines(TRACES / f"{trace_file}.jsonl.gz"))
    print(f"\n{trace_file}: {dict(tally)}")
    assert tally == Counter(equal=equal, rebalancing=rebalancing, forgotten=forgotten)
