"""What a Spark worker's fold takes for one giant group: ``python -m benchmarks.replay [RECORDS]``.

Prints JSON: records a second of one core, Arrow in and Arrow out as Spark runs it, and the peak memory of the process.
The group is a consumer group of 50 members whose current assignments are written again and again.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator

import pyarrow as pa

from coordinator_core.records import RecordType
from coordinator_core.wire.primitives import uuid_text
from coordinator_core.wire.row import encode_key, encode_value
from jobs.arrow_fold import INPUT, folder

RECORDS, MEMBERS, BATCH = 1_000_000, 50, 10_000
TOPIC = uuid_text(bytes(range(16)))
GROUP = "payments"


def record(number: int) -> tuple[bytes, bytes]:
    """Each round of the members is an epoch, in which each of them has another partition."""
    epoch, member = 2 + number // (MEMBERS + 1), number % (MEMBERS + 1) - 1
    if member < 0:
        value = encode_value(RecordType.CONSUMER_GROUP_METADATA, 0, {"epoch": epoch})
        return encode_key(RecordType.CONSUMER_GROUP_METADATA, {"groupId": GROUP}), value
    key = encode_key(
        RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, {"groupId": GROUP, "memberId": f"member-{member}"}
    )
    assignment = {
        "memberEpoch": epoch,
        "previousMemberEpoch": epoch - 1,
        "state": 0,
        "assignedPartitions": [{"topicId": TOPIC, "partitions": [(member + epoch) % MEMBERS]}],
        "partitionsPendingRevocation": [],
    }
    return key, encode_value(RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, 0, assignment)


def batches(count: int) -> Iterator[pa.RecordBatch]:
    for first in range(0, count, BATCH):
        numbers = range(first, min(first + BATCH, count))
        pairs = [record(number) for number in numbers]
        size = len(pairs)
        given = {
            "log_topic": pa.array(["__consumer_offsets"] * size),
            "group_id": pa.array([GROUP] * size),
            "log_partition": pa.array([0] * size, pa.int32()),
            "log_offset": pa.array(numbers, pa.int64()),
            "timestamp_ms": pa.array([1_790_000_000_000 + number for number in numbers]),
            "batch_base": pa.array(numbers, pa.int64()),
            "key": pa.array([key for key, _ in pairs]),
            "value": pa.array([value for _, value in pairs]),
            "unbroken_since": pa.array([0] * size, pa.int64()),
            "from_start": pa.array([True] * size),
        }
        yield pa.RecordBatch.from_pydict({name: given.get(name, pa.nulls(size)) for name in INPUT})


def main(count: int) -> None:
    start = time.process_time()
    made = sum(batch.num_rows for batch in batches(count))
    alone = time.process_time() - start
    start = time.process_time()
    rows = sum(batch.num_rows for batch in folder("c", None)(batches(count)))
    seconds = time.process_time() - start - alone
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"records": made, "rows": rows, "records_a_second": round(count / seconds), "peak_mib": peak}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS)
