"""How fast targets are audited: ``python -m benchmarks.audit [REBALANCES]``.

Prints JSON: processor seconds to audit the rebalances (default 10,000) of a consumer group of 50 members and 500
partitions, in which members come and go, with the verdicts.
"""

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator

from coordinator_core.assignors.coordinator_view import Subscriber, SubscriptionView
from coordinator_core.assignors.registry import assign
from coordinator_core.audit.targets.auditor import TargetAuditor
from coordinator_core.cluster.image import Topic
from coordinator_core.cluster.metadata_hash import group_hash, topic_hash
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.group import Group
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import AnyRecord, CoordinatorRecord, Fields, LogPosition, RecordType

MEMBERS, PARTITIONS, TOPICS = 50, 500, 10
GROUP = "benchmark"


def topic_history() -> TopicHistory:
    history = TopicHistory()
    history.open_version(LogPosition(0, 0, 0))
    for number in range(TOPICS):
        topic_id = "A" * 21 + "ABCDEFGHIJ"[number]
        history.put_topic(Topic(f"topic-{number}", topic_id, PARTITIONS // TOPICS))
    return history


def log(rebalances: int, topics: TopicHistory) -> Iterator[AnyRecord]:
    """The log of a group whose members come until there are enough, and then go and come by turns."""
    rng, view, image = random.Random(0), SubscriptionView(), topics.version(0).image
    names = sorted(image.by_name)
    hashed = group_hash((name, topic_hash(image.by_name[name])) for name in names)
    subscriber = Subscriber(tuple(names))
    offset = joined = 0
    for epoch in range(2, rebalances + 2):
        batch, records = offset, list[tuple[int, Fields, Fields | None]]()
        updates: dict[str, Subscriber] = {}
        homogeneous = None
        if len(view.members) == MEMBERS:
            leaver = rng.choice(list(view.members))
            key = {"groupId": GROUP, "memberId": leaver}
            records += [
                (RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, key, None),
                (RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, key, None),
                (RecordType.CONSUMER_GROUP_MEMBER_METADATA, key, None),
            ]
            view.remove_target(leaver)
            view.remove_member(leaver)
            records.append(_epoch(epoch, hashed))
            for record in records:
                yield _record(record, offset, batch, epoch)
                offset += 1
            batch, records = offset, []
        else:
            joined += 1
            joiner = f"member-{joined}"
            value: Fields = {"instanceId": None, "rackId": None, "clientId": "c", "clientHost": "/h"}
            value |= {"subscribedTopicNames": names, "subscribedTopicRegex": "", "rebalanceTimeoutMs": 45_000}
            value |= {"serverAssignor": None, "classicMemberMetadata": None}
            records.append((RecordType.CONSUMER_GROUP_MEMBER_METADATA, {"groupId": GROUP, "memberId": joiner}, value))
            records.append(_epoch(epoch, hashed))
            updates[joiner] = subscriber
            homogeneous = view.judge(joiner, subscriber)
        spec = view.spec(image, updates, homogeneous=homogeneous)
        work = assign("uniform", spec, image).members
        for member in updates:
            view.put_member(member, subscriber)
        for member in spec.members:
            new, old = work.get(member, {}), view.targets.get(member)
            if old is None or {t: set(n) for t, n in old.items()} != {t: set(n) for t, n in new.items()}:
                held = [{"topicId": topic, "partitions": list(numbers)} for topic, numbers in new.items()]
                key = {"groupId": GROUP, "memberId": member}
                records.append((RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, key, {"topicPartitions": held}))
                view.put_target(member, new.items())
        end = {"assignmentEpoch": epoch, "assignmentTimestamp": epoch * 1000}
        records.append((RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, {"groupId": GROUP}, end))
        for record in records:
            yield _record(record, offset, batch, epoch)
            offset += 1


def _epoch(epoch: int, hashed: int) -> tuple[int, Fields, Fields]:
    return RecordType.CONSUMER_GROUP_METADATA, {"groupId": GROUP}, {"epoch": epoch, "metadataHash": hashed}


def _record(record: tuple[int, Fields, Fields | None], offset: int, batch: int, epoch: int) -> AnyRecord:
    record_type, key, value = record
    return CoordinatorRecord(LogPosition(0, offset, epoch * 1000), record_type, key, value, 0, batch)


def main(rebalances: int) -> None:
    topics = topic_history()
    records = list(log(rebalances, topics))
    auditor = TargetAuditor(Group(GROUP, from_start=True), None, topics, coverage=Coverage({0: [(0, len(records))]}))
    start = time.process_time()
    verdicts = Counter(str(row.verdict) for record in records for row in auditor.feed(record))
    seconds = time.process_time() - start
    facts = {"members": MEMBERS, "partitions": PARTITIONS, "rebalances": rebalances, "records": len(records)}
    print(json.dumps({**facts, "seconds": round(seconds, 2), "verdicts": verdicts}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
