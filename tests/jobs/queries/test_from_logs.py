"""Logs replayed without tables: what damaged bytes leave unknown."""

import re
from pathlib import Path

import pytest

from coordinator_core.records import CoordinatorRecord, LogPosition
from coordinator_core.wire.batch_writer import NewRecord, encode_batch
from coordinator_core.wire.control import COMMIT
from coordinator_core.wire.record_codec import encode_key
from jobs.queries.from_logs.answers import replay
from jobs.queries.from_logs.history import group_histories
from jobs.relations.moment import AsOf
from jobs.sources.bounded_warnings import EXAMPLES
from jobs.sources.files import find_logs
from tests.jobs.logs import batch, marker, write_segment


def commit(offset: int, topic: str) -> CoordinatorRecord:
    value = {"offset": offset, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 1}
    return CoordinatorRecord(LogPosition(0, offset, 1000), 1, {"group": "g", "topic": topic, "partition": 0}, value)


@pytest.mark.parametrize("is_damaged", [False, True])
def test_beyond_damaged_bytes_no_marker_commits(tmp_path: Path, is_damaged: bool) -> None:
    """The damaged batch may have been the first transaction's marker, and the one behind it that of the next."""
    between = bytearray(batch(commit(1, "b")))
    between[-1] ^= is_damaged
    batches = [batch(commit(0, "a"), producer_id=1), bytes(between)]
    batches += [batch(commit(2, "c"), producer_id=1), marker(COMMIT, 1, 3, 1000)]
    write_segment(tmp_path / "__consumer_offsets-0", batches)
    warnings: list[str] = []
    (then,) = replay(find_logs([tmp_path]), AsOf(), warnings.append).groups()
    committed = {partition.topic for partition in then.offsets.committed}
    assert committed == ({"c"} if is_damaged else {"a", "b", "c"})
    assert {partition.topic for partition in then.certainty.unknown_offsets} == ({"a"} if is_damaged else set())
    assert len(warnings) == is_damaged
    (history,) = group_histories(find_logs([tmp_path]), warnings.append)
    assert {commits.topic for commits in history.commits} == committed
    assert not history.transactions


def test_warnings_are_bounded_and_say_how_many_there_are(tmp_path: Path) -> None:
    """Records of two causes, and damaged batches: examples of each cause, and the number of the others."""
    key, batches = encode_key(1, {"group": "g", "topic": "t", "partition": 0}), list[bytes]()
    for offset in range(600):
        value = b"\x00\x63" if offset % 3 == 0 else b"\x00\x03\x00"
        batches.append(encode_batch([NewRecord(offset, 1000, key, value)]))
    for offset in range(600, 620, 2):
        damaged = bytearray(batch(commit(offset, "t")))
        damaged[-1] ^= 1
        batches += [bytes(damaged), batch(commit(offset + 1, "t"))]
    write_segment(tmp_path / "__consumer_offsets-0", batches)
    warnings: list[str] = []
    list(group_histories(find_logs([tmp_path]), warnings.append))
    counted = {
        cause: int(count)
        for count, cause in re.findall(
            r"^__consumer_offsets-0: (\d+) more like these: (.*)$", "\n".join(warnings), re.M
        )
    }
    assert counted == {
        "OffsetCommitValue.offset at byte 2: 8 bytes wanted, 1 left": 400 - EXAMPLES,
        "OffsetCommitValue.version at byte 0: version 99, known are 0 to 4": 200 - EXAMPLES,
        "the CRC is not that of the batch's bytes (bytes left out)": 10 - EXAMPLES,
    }
    about_records = [each for each in warnings if "-0 offset " in each and " more " not in each]
    assert [int(each.split(": ")[0].split()[-1]) for each in about_records] == [0, 1, 2, 3, 4, 6]
