"""Nights over logs of extreme shapes: ``python -m benchmarks.shapes SHAPE [--size N] [--catalog]``.

- ``groups``: 100,000 groups, each with one rebalance and commits of two partitions;
- ``members``: a consumer group and a classic group of 10,000 members each, which one member leaves 20 times;
- ``rebalances``: a classic group of two members that rebalances a million times;
- ``commits``: 10,000,000 commits of 2,000 groups, all in one log partition.

``--size`` is the number that is named. ``--catalog``: the tables are in Spark's catalog, so that Spark does all steps.
Prints JSON: records, seconds of the clock and of processors by step, the peak memory of each kind of process (MiB), and
of Spark's tasks their number, the seconds of the longest, and the most rows that one has read.
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.generate import START_MS, GeneratedSegments, generate, rebalance
from benchmarks.nightly import night, peaks
from benchmarks.skew import written
from coordinator_core.groups.log_partition import log_partition_of
from coordinator_core.records import Fields, RecordType
from coordinator_core.wire.batch_writer import NewRecord, encode_batch
from coordinator_core.wire.embedded import encode_blob
from coordinator_core.wire.primitives import uuid_text
from coordinator_core.wire.record_codec import encode_key, encode_value
from jobs import settings
from jobs.tables import session
from jobs.tables.delta import Tables

Write = Callable[[Path, int], None]
LOG_PARTITIONS = 4
EVERY_MS = 20
FLUSH_EACH = 10_000
TOPIC = ("orders", uuid_text(bytes(range(16))))
LEAVES = 20


def encoded(kind: RecordType, version: int, key: Fields, value: Fields | None) -> NewRecord:
    """Return a record without its place."""
    return NewRecord(0, 0, encode_key(kind, key), None if value is None else encode_value(kind, version, value))


def commit(group: str, partition: int, offset: int, time_ms: int) -> NewRecord:
    """Return the record of a committed offset."""
    key = {"group": group, "topic": TOPIC[0], "partition": partition}
    value = {"offset": offset, "leaderEpoch": 1, "metadata": "", "commitTimestamp": time_ms, "topicId": TOPIC[1]}
    return encoded(RecordType.OFFSET_COMMIT, 4, key, value)


def append(log: GeneratedSegments, operations: Iterator[list[NewRecord]], time_ms: int) -> None:
    """Append a batch for each operation, ``EVERY_MS`` after the one before."""
    for number, records in enumerate(operations):
        at_ms = time_ms + EVERY_MS * number
        placed = [record._replace(offset=log.next_offset + nth, timestamp=at_ms) for nth, record in enumerate(records)]
        log.append(encode_batch(placed), len(placed))
        if number % FLUSH_EACH == 0:
            log.flush()
    log.flush()


def many_groups(out: Path, size: int) -> None:
    """Groups that did little."""
    logs = [GeneratedSegments(out / f"__consumer_offsets-{number}") for number in range(LOG_PARTITIONS)]
    names: list[list[str]] = [[] for _ in logs]
    for number in range(size):
        name = f"group-{number:07d}"
        names[log_partition_of(name, LOG_PARTITIONS)].append(name)
    for log, mine in zip(logs, names, strict=True):
        append(log, (operation for name in mine for operation in small_group(name)), START_MS)


def small_group(name: str) -> Iterator[list[NewRecord]]:
    """What one group writes: its rebalance, then two commits of each of two partitions."""
    yield rebalance(name, [TOPIC], 1)
    for offset in (100, 200):
        yield [commit(name, partition, offset, START_MS) for partition in range(2)]


def many_members(out: Path, size: int) -> None:
    """A consumer group and a classic group with many members, in one log partition."""
    log = GeneratedSegments(out / "__consumer_offsets-0")
    append(log, consumer_group("many-consumers", size), START_MS)
    append(log, classic_group("many-classic", size, LEAVES), START_MS)


def consumer_group(name: str, size: int) -> Iterator[list[NewRecord]]:
    """What a group of the new protocol writes: its members come together, then leave one by one."""
    key = {"groupId": name}
    members = [f"member-{number:06d}" for number in range(size)]
    joined = {
        **{"instanceId": None, "rackId": None, "clientId": "consumer", "clientHost": "/10.0.0.1"},
        **{"subscribedTopicNames": [TOPIC[0]], "subscribedTopicRegex": ""},
        **{"rebalanceTimeoutMs": 300_000, "serverAssignor": None},
    }

    def of(kind: RecordType, member: str, value: Fields | None) -> NewRecord:
        return encoded(kind, 0, {**key, "memberId": member}, value)

    def opened(epoch: int, targets: list[NewRecord]) -> list[NewRecord]:
        assigned = {"assignmentEpoch": epoch, "assignmentTimestamp": START_MS}
        return [
            encoded(RecordType.CONSUMER_GROUP_METADATA, 0, key, {"epoch": epoch, "metadataHash": 1}),
            *targets,
            encoded(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, 0, key, assigned),
        ]

    def current(epoch: int, number: int, member: str) -> NewRecord:
        share = {"topicId": TOPIC[1], "partitions": [number], "assignmentEpochs": [1]}
        value = {
            **{"memberEpoch": epoch, "previousMemberEpoch": epoch - 1, "state": 0},
            **{"assignedPartitions": [share], "partitionsPendingRevocation": []},
        }
        return of(RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, member, value)

    target = RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER
    shares = [{"topicPartitions": [{"topicId": TOPIC[1], "partitions": [number]}]} for number in range(size)]
    yield [
        *(of(RecordType.CONSUMER_GROUP_MEMBER_METADATA, member, joined) for member in members),
        *opened(1, [of(target, member, share) for member, share in zip(members, shares, strict=True)]),
        *(current(1, number, member) for number, member in enumerate(members)),
    ]
    for epoch in range(2, min(LEAVES, size - 1) + 2):
        gone = members.pop()
        kinds = (RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, target, RecordType.CONSUMER_GROUP_MEMBER_METADATA)
        yield [*(of(kind, gone, None) for kind in kinds), *opened(epoch, [])]
        for number, member in enumerate(members):
            yield [current(epoch, number, member)]


def classic_group(name: str, size: int, generations: int) -> Iterator[list[NewRecord]]:
    """A classic group whose members stay, generation after generation."""
    wanted = encode_blob("ConsumerProtocolSubscription", 0, {"topics": [TOPIC[0]], "userData": None})
    members = [
        {
            **{"memberId": f"consumer-{number}", "groupInstanceId": None, "clientId": "consumer"},
            **{"clientHost": "/10.0.0.1", "rebalanceTimeout": 300_000, "sessionTimeout": 45_000},
            "subscription": wanted,
            "assignment": encode_blob(
                "ConsumerProtocolAssignment",
                0,
                {"assignedPartitions": [{"topic": TOPIC[0], "partitions": [number]}], "userData": None},
            ),
        }
        for number in range(size)
    ]
    first = {"protocolType": "consumer", "protocol": "range", "leader": "consumer-0", "members": members}
    for generation in range(1, generations + 1):
        now = {"generation": generation, "currentStateTimestamp": START_MS + EVERY_MS * generation}
        yield [encoded(RecordType.GROUP_METADATA, 3, {"group": name}, first | now)]


def many_rebalances(out: Path, size: int) -> None:
    """One group that does nothing else."""
    append(GeneratedSegments(out / "__consumer_offsets-0"), classic_group("restless", 2, size), START_MS)


def many_commits(out: Path, size: int) -> None:
    """Commits of all groups in one log partition."""
    generate(out, size, 2_000)


SHAPES: dict[str, tuple[Write, int]] = {
    "groups": (many_groups, 100_000),
    "members": (many_members, 10_000),
    "rebalances": (many_rebalances, 1_000_000),
    "commits": (many_commits, 10_000_000),
}
"""What writes the log of each shape, and its full size."""


def measure(write: Write, size: int, place: Path, *, in_catalog: bool) -> dict[str, Any]:
    """Return the figures of a first night over a log."""
    log, events = place / "log", place / "events"
    events.mkdir()
    write(log, size)
    conf = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": events.as_uri(), "spark.eventLog.compress": "false"}
    conf |= {"spark.sql.warehouse.dir": str(place / "warehouse")} if in_catalog else {}
    flags = {"input.paths": [str(log)], "spark.master": "local[2]", "spark.conf": conf}
    chosen = settings.load(environment={}, flags=flags | {"nightly.report": place / "report.html"})
    spark = session.get_or_create(chosen.spark)
    if in_catalog:
        spark.sql("CREATE SCHEMA audit")
    tables = Tables(spark, "spark_catalog.audit" if in_catalog else str(place / "tables"), chosen.engine.limits)
    with peaks() as found:
        figures = night(tables, chosen)
    done = written(events)
    read = [task["Input Metrics"]["Records Read"] + task["Shuffle Read Metrics"]["Total Records Read"] for task in done]
    longest = max((task["Executor Run Time"] for task in done), default=0)
    tasks = {"tasks": len(done), "longest_task_s": longest / 1000, "most_rows_of_a_task": max(read, default=0)}
    return figures | tasks | {f"{kind}_mib": amount for kind, amount in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shape", choices=SHAPES, nargs="?", default="groups")
    parser.add_argument("--size", type=int)
    parser.add_argument("--catalog", action="store_true")
    wanted = parser.parse_args()
    write, size = SHAPES[wanted.shape]
    with tempfile.TemporaryDirectory(prefix="shape-") as place:
        found = measure(write, wanted.size or size, Path(place), in_catalog=wanted.catalog)
    print(json.dumps({"shape": wanted.shape, "size": wanted.size or size, **found}, indent=1))


if __name__ == "__main__":
    main()
