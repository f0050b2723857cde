"""What a Spark worker's fold takes for one giant group: ``python -m benchmarks.replay [RECORDS]``.

Prints JSON: records a second, sorted by Spark and folded by one worker, its rows counted; and the peak memory of that
worker. The group is a consumer group of 50 members whose current assignments are written again and again.
"""

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from coordinator_core.audit.settings import AuditSettings
from coordinator_core.records import Fields, RecordType
from coordinator_core.wire.primitives import uuid_text
from coordinator_core.wire.record_codec import encode_key, encode_value
from jobs import settings
from jobs.pipeline.replay_arrow import folder
from jobs.tables import session
from jobs.tables.history import REPLAYED
from jobs.tables.spark_reader import spark_types

RECORDS, MEMBERS = 1_000_000, 50
TOPIC = uuid_text(bytes(range(16)))
GROUP = "payments"

MEMBER: Fields = {
    "instanceId": None,
    "rackId": None,
    "clientId": "client",
    "clientHost": "/10.0.0.1",
    "subscribedTopicNames": ["orders"],
    "subscribedTopicRegex": None,
    "rebalanceTimeoutMs": 300_000,
    "serverAssignor": "uniform",
}

INPUT_SCHEMA = pa.schema(
    {
        **dict.fromkeys(("log_topic", "group_id"), pa.string()),
        **{"log_partition": pa.int32(), "log_offset": pa.int64(), "timestamp_ms": pa.int64(), "batch_base": pa.int64()},
        **dict.fromkeys(("key", "value"), pa.binary()),
        **{"state": pa.string(), "committed_topic": pa.string(), "committed_partition": pa.int32()},
        **{"committed_topic_id": pa.string(), "leader_epoch": pa.int32(), "unbroken_since": pa.int64()},
        **dict.fromkeys(("gap_follows", "from_start"), pa.bool_()),
        "unreadable": pa.string(),
    }
)
"""The columns of ``replay_arrow.Input``."""


def record(number: int) -> tuple[bytes, bytes]:
    """Members join with a partition each; then epoch follows epoch, to which they all come with what they have."""
    if number < MEMBERS:
        return _of_member(RecordType.CONSUMER_GROUP_MEMBER_METADATA, number, MEMBER)
    if number < 2 * MEMBERS:
        target = {"topicPartitions": [{"topicId": TOPIC, "partitions": [number - MEMBERS]}]}
        return _of_member(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, number - MEMBERS, target)
    epoch, step = divmod(number - 2 * MEMBERS, MEMBERS + 2)
    epoch += 1
    if step == 0:
        return _of_group(RecordType.CONSUMER_GROUP_METADATA, {"epoch": epoch})
    if step == 1:
        return _of_group(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, {"assignmentEpoch": epoch})
    assignment = {
        "memberEpoch": epoch,
        "previousMemberEpoch": epoch - 1,
        "state": 0,
        "assignedPartitions": [{"topicId": TOPIC, "partitions": [step - 2]}],
        "partitionsPendingRevocation": [],
    }
    return _of_member(RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, step - 2, assignment)


def _of_group(record_type: RecordType, value: Fields) -> tuple[bytes, bytes]:
    return encode_key(record_type, {"groupId": GROUP}), encode_value(record_type, 0, value)


def _of_member(record_type: RecordType, member: int, value: Fields) -> tuple[bytes, bytes]:
    key = {"groupId": GROUP, "memberId": f"member-{member}"}
    return encode_key(record_type, key), encode_value(record_type, 0, value)


def batches(numbers_of: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in numbers_of:
        numbers = batch.column(0).to_pylist()
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
            "gap_follows": pa.array([False] * size),
            "from_start": pa.array([True] * size),
        }
        columns = [given.get(field.name, pa.nulls(size, field.type)).cast(field.type) for field in INPUT_SCHEMA]
        yield pa.RecordBatch.from_arrays(columns, schema=INPUT_SCHEMA)


def measured(peaks: Path) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The fold of the job, which says at its end how much memory the process has had at most."""
    fold = folder("c", None, AuditSettings())

    def run(given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from fold(given)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        (peaks / f"{os.getpid()}-{time.monotonic_ns()}").write_text(str(peak))

    return run


def main(count: int) -> None:
    spark = session.get_or_create(settings.load(flags={"spark.master": "local[2]"}).spark)
    with tempfile.TemporaryDirectory() as folder_name:
        home, peaks = str(Path(folder_name) / "rows"), Path(folder_name) / "peaks"
        peaks.mkdir()
        schema = spark_types(INPUT_SCHEMA)
        spark.range(count).mapInArrow(batches, schema).write.parquet(home)
        start = time.perf_counter()
        rows = spark.read.parquet(home).repartition("log_topic", "group_id")
        rows = rows.sortWithinPartitions("log_topic", "group_id", "log_partition", "log_offset")
        made = rows.mapInArrow(measured(peaks), spark_types(REPLAYED.schema)).count()
        seconds = time.perf_counter() - start
        peak = max(int(file.read_text()) for file in peaks.iterdir())
    print(json.dumps({"records": count, "rows": made, "records_a_second": round(count / seconds), "peak_mib": peak}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS)
