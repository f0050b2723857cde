"""A live broker does not show the ends of transactions: what is missing behind a key that came twice is one of them."""

from itertools import count

import pytest

from coordinator_core.records import Family, RecordType
from coordinator_core.wire.batch_format import Kind
from coordinator_core.wire.record_codec import encode_key, encode_value
from jobs.sources.bounded_warnings import EXAMPLES
from jobs.sources.log_reader import LogRow
from jobs.watch import followed_log
from jobs.watch.new_rows import LogPlace, NewRows
from tests.jobs.watch.samples import followed

PLACE = LogPlace("__consumer_offsets", Family.GROUP, 0)


def commit(offset: int, topic: str) -> LogRow:
    key = encode_key(RecordType.OFFSET_COMMIT, {"group": "g", "topic": topic, "partition": 0})
    value = {"offset": offset, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 1}
    data = encode_value(RecordType.OFFSET_COMMIT, 3, value)
    return LogRow(Kind.RECORD.value, offset, 1_000 + offset, key, data, None, False, -1, 0, -1)


def test_records_that_cannot_be_decoded_are_told_a_few_times() -> None:
    """A broker of a newer release may write them as long as the watch runs."""
    told: list[str] = []
    groups = followed(told.append)
    groups.begin()
    rows = [commit(offset, "a")._replace(value=b"\0\77") for offset in range(100)]
    groups.feed(NewRows(PLACE, rows, True))
    assert len(told) == EXAMPLES
    groups.faults.finish()
    assert told[-1].startswith(f"the followed logs: {100 - EXAMPLES} more like these: ")


@pytest.mark.parametrize("calls", [1, 5])
@pytest.mark.parametrize("hides_control", [True, False])
def test_a_hole_behind_a_key_that_came_twice_is_the_end_of_a_transaction(calls: int, hides_control: bool) -> None:
    """Before that key compaction may have taken something; of a copy of the log, everything may be lost."""
    rows = [commit(0, "a"), commit(2, "b"), commit(3, "a"), commit(5, "c"), commit(9, "d")]
    groups = followed()
    for first in range(0, len(rows), len(rows) // calls):
        groups.feed(NewRows(PLACE, rows[first : first + len(rows) // calls], True, hides_control=hides_control))
    coverage = groups.coverage[Family.GROUP]
    assert not coverage.unbroken(0, 0, 2)
    assert coverage.unbroken(0, 2, 3)
    assert [coverage.unbroken(0, 3, 5), coverage.unbroken(0, 2, 9)] == [hides_control, hides_control]


def test_the_keys_that_are_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_log, "MOST_KEYS", 3)
    groups, offsets = followed(), count()
    for topic in ("a", "b", "c", "d", "d"):
        groups.feed(NewRows(PLACE, [commit(next(offsets), topic)], True, hides_control=True))
    assert len(groups.logs[PLACE].keys) == 3
    assert groups.logs[PLACE].is_compacted_here, "a key may have come again unseen, or not"
    groups.feed(NewRows(PLACE, [commit(9, "a")], True, hides_control=True))
    assert not groups.coverage[Family.GROUP].unbroken(0, 0, 9)
