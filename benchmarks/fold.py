"""How fast records change groups: ``python -m benchmarks.fold [LOG_FOLDER]``.

Prints JSON: group records a second on one core over the records of the folder (default: the churn corpus beside the
project), with the cost of a plain dict update for each record as the reference; and the seconds that a classic group
of 500 members takes for 1,000 rebalances, every subscription and assignment decoded.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from coordinator_core.groups.classic.protocols import assignment, subscription
from coordinator_core.groups.classic.state import ClassicGroup
from coordinator_core.groups.group import Group
from coordinator_core.records import AnyRecord, CoordinatorRecord, Family, LogPosition, RecordType
from coordinator_core.wire.embedded import encode_blob
from jobs.sources.files import find_logs
from jobs.sources.log_reader import LogReader
from tests.shared_data import CORPUS

REPEATS = 5
MEMBERS, REBALANCES = 500, 1_000


def group_records(folder: Path) -> list[AnyRecord]:
    """The group records under the folder, each partition in its order."""
    files = [file for file in find_logs([folder]) if file.family is Family.GROUP]
    partitions = sorted({file.partition for file in files})
    return [
        record
        for partition in partitions
        for record in LogReader([file for file in files if file.partition == partition], print).records()
        if record.type > RecordType.OFFSET_COMMIT
    ]


def fold(records: list[AnyRecord]) -> None:
    """What replay does with group records."""
    groups: dict[str, Group] = {}
    for record in records:
        group_id = record.group_id
        group = groups.get(group_id)
        if group is None:
            group = groups[group_id] = Group(group_id, from_start=True)
        group.apply(record)


def latest(records: list[AnyRecord]) -> None:
    """The reference: the latest value by key and nothing more, as compaction would keep it."""
    values: dict[tuple[str, int, str | None], object] = {}
    for record in records:
        values[record.group_id, record.type, record.key.get("memberId")] = record.value


def best(action: Callable[[list[AnyRecord]], None], records: list[AnyRecord]) -> float:
    """Seconds of the fastest of a few runs: the others were disturbed."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        action(records)
        times.append(time.perf_counter() - start)
    return min(times)


def classic_rebalances() -> float:
    """Seconds for a large classic group that rebalances again and again, with subscriptions that repeat."""
    topics = {"topics": [f"topic-{number}" for number in range(20)], "userData": None}
    wanted = encode_blob("ConsumerProtocolSubscription", 0, topics)
    members = [
        {
            "memberId": f"consumer-{number}",
            "groupInstanceId": None,
            "clientId": "consumer",
            "clientHost": "/10.0.0.1",
            "rebalanceTimeout": 300_000,
            "sessionTimeout": 45_000,
            "subscription": wanted,
            "assignment": encode_blob(
                "ConsumerProtocolAssignment",
                0,
                {"assignedPartitions": [{"topic": f"topic-{number % 20}", "partitions": [number]}], "userData": None},
            ),
        }
        for number in range(MEMBERS)
    ]
    value = {
        "protocolType": "consumer",
        "protocol": "range",
        "leader": "consumer-0",
        "currentStateTimestamp": 0,
        "members": members,
    }
    group = Group("large")
    start = time.perf_counter()
    for generation in range(1, REBALANCES + 1):
        at = LogPosition(0, generation, 0)
        group.apply(
            CoordinatorRecord(at, RecordType.GROUP_METADATA, {"group": "large"}, value | {"generation": generation})
        )
        if isinstance(group.state, ClassicGroup):
            for member in group.state.members.values():
                subscription(group.state, member)
                assignment(group.state, member)
    return time.perf_counter() - start


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else CORPUS / "churn" / "full" / "logs"
    records = group_records(folder)
    seconds, reference = best(fold, records), best(latest, records)
    print(
        json.dumps(
            {
                "benchmark": "fold",
                "folder": folder.parent.name,
                "group_records": len(records),
                "records_per_second": round(len(records) / seconds),
                "reference": "latest value by key in a dict",
                "times_reference": round(seconds / reference, 2),
                "classic_members": MEMBERS,
                "classic_rebalances": REBALANCES,
                "classic_seconds": round(classic_rebalances(), 2),
            }
        )
    )


if __name__ == "__main__":
    main()
