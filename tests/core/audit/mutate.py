"""Records of targets, changed in one place: what an audit has to notice."""

import copy
import random
from collections.abc import Callable
from typing import Any

from coordinator_core.records import CoordinatorRecord, Fields, RecordType
from coordinator_core.wire.embedded import decode_blob, encode_blob

ASSIGNMENT = "ConsumerProtocolAssignment"
NO_SUCH_PARTITION = 10_000
TARGETS = {
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: ("topicPartitions", "topicId"),
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER: ("topicPartitions", "topicId"),
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER: ("activeTasks", "subtopologyId"),
}
Entries = list[Fields]
Mutation = Callable[[Entries, int, int | None], bool]
"""Changes the entries of one member: (entries, index of the entry, a partition of another member in it) -> done."""


def swap_owner(entries: Entries, index: int, other: int | None) -> bool:
    if other is None or other in entries[index]["partitions"]:
        return False
    entries[index]["partitions"][0] = other
    return True


def duplicate(entries: Entries, index: int, other: int | None) -> bool:
    entries[index]["partitions"].append(entries[index]["partitions"][0] if other is None else other)
    return True


def drop(entries: Entries, index: int, other: int | None) -> bool:
    del entries[index]["partitions"][0]
    if not entries[index]["partitions"]:
        del entries[index]
    return True


def other_count(entries: Entries, index: int, other: int | None) -> bool:
    entries[index]["partitions"].append(NO_SUCH_PARTITION)
    return True


MUTATIONS: dict[str, Mutation] = {each.__name__: each for each in (swap_owner, duplicate, drop, other_count)}


def mutated(
    record: CoordinatorRecord, mutation: Mutation, others: dict[str, dict[str, list[int]]], rng: random.Random
) -> CoordinatorRecord | None:
    """The record with one member's target changed; None where it has nothing to change.

    ``others`` are the targets of the members before the record, by topic id (streams: subtopology).
    """
    value = copy.deepcopy(record.value)
    if value is None:
        return None
    if record.type == RecordType.GROUP_METADATA:
        return _mutated_generation(record, value, mutation, rng)
    field, name = TARGETS[RecordType(record.type)]
    entries = value[field]
    filled = [index for index, entry in enumerate(entries) if entry["partitions"]]
    if not filled:
        return None
    index = rng.choice(filled)
    mine = record.key["memberId"]
    held = [
        number
        for member, target in others.items()
        if member != mine
        for number in target.get(entries[index][name], ())
        if number not in entries[index]["partitions"]
    ]
    done = mutation(entries, index, rng.choice(held) if held else None)
    return record._replace(value=value) if done else None


def _mutated_generation(
    record: CoordinatorRecord, value: Any, mutation: Mutation, rng: random.Random
) -> CoordinatorRecord | None:
    if value["protocolType"] != "consumer" or value["protocol"] == "stream":
        return None
    blobs = {
        each["memberId"]: decode_blob(ASSIGNMENT, each["assignment"]) for each in value["members"] if each["assignment"]
    }
    filled = [
        each
        for each in value["members"]
        if each["memberId"] in blobs and blobs[each["memberId"]].fields["assignedPartitions"]
    ]
    if not filled:
        return None
    member = rng.choice(filled)
    fields = copy.deepcopy(blobs[member["memberId"]].fields)
    entries = fields["assignedPartitions"]
    index = rng.randrange(len(entries))
    held = [
        number
        for other, blob in blobs.items()
        if other != member["memberId"]
        for entry in blob.fields["assignedPartitions"]
        if entry["topic"] == entries[index]["topic"]
        for number in entry["partitions"]
    ]
    if not mutation(entries, index, rng.choice(held) if held else None):
        return None
    member["assignment"] = encode_blob(ASSIGNMENT, blobs[member["memberId"]].version, fields)
    return record._replace(value=value)
