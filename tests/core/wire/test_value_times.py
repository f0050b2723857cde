"""Times of records whose batches have none: those of their values, as far as the order of the log allows."""

import numpy as np
import pytest

from coordinator_core.records import RecordType
from coordinator_core.wire.batch_format import IN_VALUE
from coordinator_core.wire.batches import read_columns
from coordinator_core.wire.record_codec import encode_key, encode_value
from coordinator_core.wire.value_times import SLACK_MS, ValueTimes, in_order, lack_times
from tests.core.wire.segments import message

DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("times", "right"),
    [
        ([], []),
        ([5, 5, 7], [5, 5, 7]),
        # A commit that was taken before another one, and written behind it.
        ([1_000, 1_003, 1_002, 1_010], [1_000, 1_002, 1_002, 1_010]),
        # A client named a time: of another year, or 0.
        ([10, 20, 4_000 * DAY_MS, 30, 40], [10, 20, -1, 30, 40]),
        ([DAY_MS, DAY_MS + 1, 0, DAY_MS + 2], [DAY_MS, DAY_MS + 1, -1, DAY_MS + 2]),
        # A static member got a new id in a group that came into its state a day ago.
        ([1, DAY_MS, DAY_MS + 5, 1, DAY_MS + 9], [1, DAY_MS, DAY_MS + 5, -1, DAY_MS + 9]),
        ([SLACK_MS + 5, 5, SLACK_MS + 6, 4], [5, 5, SLACK_MS + 6, -1]),
    ],
)
def test_times_do_not_go_back(times: list[int], right: list[int]) -> None:
    found = in_order(times)
    known = [time_ms for time_ms in found if time_ms >= 0]
    assert known == sorted(known)
    assert found == right


def commit(offset: int, time_ms: int | None, version: int = 1) -> bytes:
    key = encode_key(RecordType.OFFSET_COMMIT, {"group": "g", "topic": "t", "partition": 0})
    value = {"offset": offset, "metadata": "", "commitTimestamp": time_ms}
    value |= {"expireTimestamp": -1} if version == 1 else {"leaderEpoch": -1}
    blob = None if time_ms is None else encode_value(RecordType.OFFSET_COMMIT, version, value)
    return message(offset, key, blob, magic=0)


def state(offset: int, time_ms: int, version: int) -> bytes:
    value = {"protocolType": "consumer", "generation": 1, "protocol": None, "leader": None, "members": []}
    value |= {"currentStateTimestamp": time_ms} if version > 1 else {}
    key = encode_key(RecordType.GROUP_METADATA, {"group": "g"})
    return message(offset, key, encode_value(RecordType.GROUP_METADATA, version, value), magic=0)


def test_a_segment_gets_the_times_of_its_values() -> None:
    parts = [
        commit(0, 100),
        state(1, 120, 2),
        state(2, 130, 1),  # which has no time
        commit(3, None),
        commit(5, 140, 3),
        message(6, b"", b"damaged", magic=0),
        message(7, b"k", b"v", magic=1, timestamp=150),
        commit(8, 10),
    ]
    data = b"".join(parts)

    def read_at(position: int, size: int) -> bytes:
        return data[position : position + size]

    times = ValueTimes(read_columns(read_at, len(data)))
    (rows,) = read_columns(read_at, len(data))
    timed = times.put_into(rows)
    assert timed.column("timestamp").to_pylist() == [100, 120, -1, -1, 140, -1, 150, 150]
    assert timed.column("timestamp_type").to_pylist() == [IN_VALUE, IN_VALUE, -1, -1, IN_VALUE, -1, 0, IN_VALUE]
    assert lack_times(timed).tolist() == [True] * 6 + [False, True]
    cut = sum(map(len, parts[:4]))
    ranges = [*read_columns(read_at, len(data), 0, cut), *read_columns(read_at, len(data), cut, len(data))]
    found = [time_ms for part in ranges for time_ms in times.put_into(part).column("timestamp").to_pylist()]
    assert found == timed.column("timestamp").to_pylist()
    assert not np.any(ValueTimes([]).put_into(rows).column("timestamp_type").to_numpy() == IN_VALUE)
