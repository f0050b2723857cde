"""How fast records become history: ``python -m benchmarks.history [LOG_FOLDER]``.

Prints JSON: group records a second of processor time over the records of the folder (default: the churn corpus beside
the project), with the plain replay of the same records, no history made, as the reference; the seconds that a classic
group of 500 members takes for 1,000 rebalances; and the memory that 1,000,000 records of one group take, of which no
row is kept.
"""

import gc
import json
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.fold import group_records
from coordinator_core.cluster.metadata_log import fold_metadata_log
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.group import Group
from coordinator_core.history.history_fold import GroupFold
from coordinator_core.records import AnyRecord, CoordinatorRecord, Family, Fields, LogPosition, RecordType
from coordinator_core.wire.embedded import encode_blob
from jobs.sources.files import find_logs
from jobs.sources.log_reader import LogReader
from tests.shared_data import CORPUS

REPEATS = 5
MEMBERS, REBALANCES = 500, 1_000
GIANT = 1_000_000
ByGroup = dict[str, list[AnyRecord]]


def topic_history(folder: Path) -> TopicHistory:
    files = [file for file in find_logs([folder]) if file.family is Family.METADATA]
    return fold_metadata_log(LogReader(files, print).records())


def best(action: Callable[[], object]) -> float:
    """Processor seconds of the fastest of a few runs: the others were disturbed."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def history(groups: ByGroup, topics: TopicHistory) -> int:
    rows = 0
    for group, records in groups.items():
        state = GroupFold(Group(group), topics=topics)
        for record in records:
            rows += len(state.feed(record))
        rows += sum(1 for _ in state.open_rows())
    return rows


def replay(groups: ByGroup) -> None:
    for group_id, records in groups.items():
        group = Group(group_id)
        for record in records:
            group.apply(record)


def classic_generations() -> Iterator[AnyRecord]:
    """A large classic group; with every generation one member is another, and takes what the one before had."""
    topics = {"topics": [f"topic-{number}" for number in range(20)], "userData": None}
    wanted = encode_blob("ConsumerProtocolSubscription", 0, topics)
    given = [
        {"assignedPartitions": [{"topic": f"topic-{number % 20}", "partitions": [number]}], "userData": None}
        for number in range(MEMBERS)
    ]
    members: list[Fields] = [
        {
            "memberId": f"consumer-{number}",
            "groupInstanceId": None,
            "clientId": "consumer",
            "clientHost": "/10.0.0.1",
            "rebalanceTimeout": 300_000,
            "sessionTimeout": 45_000,
            "subscription": wanted,
            "assignment": encode_blob("ConsumerProtocolAssignment", 0, given[number]),
        }
        for number in range(MEMBERS)
    ]
    value = {"protocolType": "consumer", "protocol": "range", "currentStateTimestamp": 0}
    for generation in range(1, REBALANCES + 1):
        number = generation % MEMBERS
        members[number] = members[number] | {"memberId": f"consumer-{number}-{generation}"}
        fields = {**value, "generation": generation, "leader": members[0]["memberId"], "members": list(members)}
        at = LogPosition(0, generation, generation)
        yield CoordinatorRecord(at, RecordType.GROUP_METADATA, {"group": "large"}, fields, 3, generation)


def giant_group() -> Iterator[AnyRecord]:
    """A group in which one member passes a partition on and gets it back, a million records long."""
    metadata = {
        "instanceId": None,
        "rackId": None,
        "clientId": "c",
        "clientHost": "/10.0.0.1",
        "subscribedTopicNames": ["t"],
        "subscribedTopicRegex": "",
        "rebalanceTimeoutMs": 1,
        "serverAssignor": None,
    }
    key = {"groupId": "giant", "memberId": "m"}
    yield CoordinatorRecord(LogPosition(0, 0, 0), RecordType.CONSUMER_GROUP_MEMBER_METADATA, key, metadata, 0, 0)
    for offset in range(1, GIANT):
        at, epoch = LogPosition(0, offset, offset), offset // 2 + 2
        if offset % 2:
            yield CoordinatorRecord(at, RecordType.CONSUMER_GROUP_METADATA, key, {"epoch": epoch}, 0, offset)
            continue
        partitions = [{"topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": [offset // 2 % 2]}]
        current = {
            "memberEpoch": epoch - 1,
            "previousMemberEpoch": epoch - 2,
            "state": 0,
            "assignedPartitions": partitions,
            "partitionsPendingRevocation": [],
        }
        yield CoordinatorRecord(at, RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, key, current, 0, offset)


def drain(records: Iterator[AnyRecord], group_id: str) -> tuple[float, int]:
    """Processor seconds and rows of a group whose rows are not kept."""
    state, rows, start = GroupFold(Group(group_id)), 0, time.process_time()
    for record in records:
        rows += len(state.feed(record))
    return time.process_time() - start, rows


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else CORPUS / "churn" / "full" / "logs"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    giant_seconds, giant_rows = drain(giant_group(), "giant")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    classic_seconds, classic_rows = drain(classic_generations(), "large")
    groups: ByGroup = defaultdict(list)
    for record in group_records(folder):
        groups[record.group_id].append(record)
    topics = topic_history(folder)
    count = sum(map(len, groups.values()))
    gc.collect()
    gc.freeze()
    seconds, reference = best(lambda: history(groups, topics)), best(lambda: replay(groups))
    print(
        json.dumps(
            {
                "benchmark": "history",
                "folder": folder.parent.name,
                "group_records": count,
                "rows": history(groups, topics),
                "records_per_second": round(count / seconds),
                "reference": "replay without history",
                "times_reference": round(seconds / reference, 2),
                "classic_members": MEMBERS,
                "classic_rebalances": REBALANCES,
                "classic_rows": classic_rows,
                "classic_seconds": round(classic_seconds, 2),
                "giant_records": GIANT,
                "giant_rows": giant_rows,
                "giant_records_per_second": round(GIANT / giant_seconds),
                "giant_extra_mib": round((memory - before) / 1024, 1),
                "peak_mib": round(memory / 1024, 1),
            }
        )
    )


if __name__ == "__main__":
    main()
