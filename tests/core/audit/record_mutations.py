"""Changes of one record of a real log that no coordinator, and no client of Kafka's, would make.

The catalogue is by what is changed, not by the rule that notices it: see ``rules.mutations`` for those.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, NamedTuple

from coordinator_core.records import CoordinatorRecord, Fields
from coordinator_core.wire.embedded import Blob, decode_assignment, decode_subscription, encode_blob
from tests.core.audit.rules.mutations import ASSIGNED, REVOKING, TARGET, key_of

Records = list[CoordinatorRecord]
Unit = tuple[str, int]
EPOCHS, TARGET_EPOCHS, TARGETS, CURRENTS = (3, 11, 17), (6, 12, 20), (7, 13, 21), (8, 14, 22)
RECONCILED, GENERATION = (8, 22), (2,)
NO_SUCH_PARTITION = 9_999


class Place(NamedTuple):
    """A record of a log that is to be changed; ``rng`` chooses what of it."""

    records: Records
    index: int
    rng: random.Random

    @property
    def record(self) -> CoordinatorRecord:
        return self.records[self.index]

    def before(self) -> Fields | None:
        """The value before under the same key."""
        mine = (each for each in reversed(self.records[: self.index]) if each.type == self.record.type)
        return next((each.value for each in mine if each.key == self.record.key), None)

    def others(self) -> list[Fields]:
        """The last value of the same type of every other member that is there."""
        found: dict[str, Fields] = {}
        for each in self.records[: self.index]:
            if each.type == self.record.type and each.key["memberId"] != self.record.key["memberId"]:
                found.pop(each.key["memberId"], None)
                if each.value is not None:
                    found[each.key["memberId"]] = each.value
        return [*found.values()]


Change = Callable[[Place, Fields], bool]
"""Changes a copy of the record's value; False where that makes no sense there."""


class RecordMutation(NamedTuple):
    """A change of the value of a record of these types; ``drops``: the record is left out instead."""

    name: str
    types: tuple[int, ...]
    change: Change
    drops: bool = False


def changed_logs(mutation: RecordMutation, records: Records, rng: random.Random) -> Iterator[Records]:
    """The log changed at one record, for all records where that is possible, in random order."""
    for index in rng.sample(range(len(records)), len(records)):
        record = records[index]
        if record.type not in mutation.types:
            continue
        value = deepcopy(record.value)
        if (value is None) is not (mutation.drops and mutation.change is _any_tombstone):
            continue
        if mutation.change(Place(records, index, rng), value):
            kept = [] if mutation.drops else [record._replace(value=value)]
            yield [*records[:index], *kept, *records[index + 1 :]]


# --- numbers ---------------------------------------------------------------------------------------------------------


def _add(field: str, *steps: int, least: int = 0) -> Change:
    def change(place: Place, value: Fields) -> bool:
        value[field] += place.rng.choice(steps)
        return value[field] > least and value.get("memberEpoch", 1) > 0

    return change


def _known_epoch(place: Place, value: Fields) -> bool:
    """The member's epoch below the one that it had."""
    had = place.before()
    if had is None or had["memberEpoch"] < 2 or value["memberEpoch"] <= 1:
        return False
    value["memberEpoch"] = had["memberEpoch"] - 1
    return True


def _state(place: Place, value: Fields) -> bool:
    states = {0, 1, 2} if place.record.type == 8 else {1, 2, 3}
    value["state"] = place.rng.choice(sorted(states - {value["state"]}))
    return bool(value["memberEpoch"] > 0)


def _hash(to_zero: bool) -> Change:
    def change(place: Place, value: Fields) -> bool:
        if not value.get("metadataHash"):
            return False
        value["metadataHash"] = 0 if to_zero else value["metadataHash"] + 1
        return True

    return change


def _partition_epoch(place: Place, value: Fields) -> bool:
    entries = [each for each in value[ASSIGNED[place.record.type]] if each.get("assignmentEpochs")]
    if not entries or value["memberEpoch"] <= 0:
        return False
    entries[0]["assignmentEpochs"][0] = value["memberEpoch"] + 3
    return True


# --- partitions and tasks of members ---------------------------------------------------------------------------------


def _filled(entries: list[Fields]) -> list[Fields]:
    return [each for each in entries if each["partitions"]]


def _put(entries: list[Fields], unit: Unit, like: Fields) -> bool:
    name, number = unit
    for each in entries:
        if key_of(each) == name:
            each["partitions"].append(number)
            each.pop("assignmentEpochs", None)
            return each["partitions"].count(number) == 1
    entries.append({**like, "partitions": [number]})
    entries[-1].pop("assignmentEpochs", None)
    return True


def _lacking(fields: dict[int, str]) -> Change:
    def change(place: Place, value: Fields) -> bool:
        entries = value[fields[place.record.type]]
        if not _filled(entries) or value.get("memberEpoch", 1) <= 0:
            return False
        entry = place.rng.choice(_filled(entries))
        entry["partitions"].pop(place.rng.randrange(len(entry["partitions"])))
        entry.pop("assignmentEpochs", None)
        return True

    return change


def _strange(fields: dict[int, str]) -> Change:
    def change(place: Place, value: Fields) -> bool:
        entries = value[fields[place.record.type]]
        if not entries or value.get("memberEpoch", 1) <= 0:
            return False
        return _put(entries, (key_of(entries[0]), NO_SUCH_PARTITION), entries[0])

    return change


def _twice(fields: dict[int, str]) -> Change:
    def change(place: Place, value: Fields) -> bool:
        for entry in _filled(value[fields[place.record.type]])[:1]:
            entry["partitions"].append(entry["partitions"][0])
            entry.pop("assignmentEpochs", None)
            return True
        return False

    return change


def _of_another(fields: dict[int, str], *, instead: bool) -> Change:
    """What another member has: as well, or instead of something of the same topic."""

    def change(place: Place, value: Fields) -> bool:
        field = fields[place.record.type]
        theirs = [(each, number) for other in place.others() for each in other[field] for number in each["partitions"]]
        mine = {key_of(each): each for each in _filled(value[field])}
        if instead:
            theirs = [
                (each, number)
                for each, number in theirs
                if key_of(each) in mine and number not in mine[key_of(each)]["partitions"]
            ]
        if not theirs or value.get("memberEpoch", 1) <= 0:
            return False
        entry, number = place.rng.choice(theirs)
        if instead:
            mine[key_of(entry)]["partitions"].pop(0)
        return _put(value[field], (key_of(entry), number), deepcopy(entry))

    return change


def _standby(place: Place, value: Fields) -> bool:
    """A standby in the process of the active task."""
    for entry in _filled(value["activeTasks"])[:1]:
        value["standbyTasks"].append({**entry, "partitions": entry["partitions"][:1]})
        return True
    return False


# --- what is assigned from -------------------------------------------------------------------------------------------


def _regex_loses(place: Place, value: Fields) -> bool:
    had = place.before()
    both = sorted(set(value["topics"]) & set(had["topics"])) if had is not None else []
    if both:
        value["topics"].remove(place.rng.choice(both))
    return bool(both)


def _regex_gains(place: Place, value: Fields) -> bool:
    value["topics"].append("no such topic")
    return True


def _share_state(whole_topic: bool) -> Change:
    def change(place: Place, value: Fields) -> bool:
        had = {each["topicId"]: each["partitions"] for each in (place.before() or {}).get("initializedTopics", ())}
        entries = [each for each in value["initializedTopics"] if had.get(each["topicId"])]
        if not entries:
            return False
        entry = place.rng.choice(entries)
        if whole_topic:
            value["initializedTopics"].remove(entry)
            return True
        lost = place.rng.choice(had[entry["topicId"]])
        if lost not in entry["partitions"] or len(entry["partitions"]) < 2:
            return False
        entry["partitions"].remove(lost)
        return True

    return change


def _instance_of_another(place: Place, value: Fields) -> bool:
    names = sorted({each["instanceId"] for each in place.others() if each.get("instanceId")} - {value["instanceId"]})
    if names:
        value["instanceId"] = place.rng.choice(names)
    return bool(names)


# --- classic groups --------------------------------------------------------------------------------------------------


def _with_members(change: Callable[[Fields], None]) -> Change:
    def changed(place: Place, value: Fields) -> bool:
        if value["members"]:
            change(value)
        return bool(value["members"])

    return changed


def _strange_leader(value: Fields) -> None:
    value["leader"] = "nobody"


def _no_protocol(value: Fields) -> None:
    value["protocol"] = None


def _second_instance(place: Place, value: Fields) -> bool:
    static = [each for each in value["members"] if each.get("groupInstanceId")]
    if not static or len(value["members"]) < 2:
        return False
    other = place.rng.choice([each for each in value["members"] if each is not static[0]])
    other["groupInstanceId"] = static[0]["groupInstanceId"]
    return True


Assignments = dict[str, Blob[Any]]


def _assignments(value: Fields) -> Assignments:
    blobs = {
        each["memberId"]: decode_assignment(value["protocolType"], value["protocol"], each["assignment"])
        for each in value["members"]
        if each["assignment"]
    }
    return {member: deepcopy(blob) for member, blob in blobs.items() if blob is not None}


def _in_blobs(
    protocol_type: str, schema: str, change: Callable[[Place, Fields, dict[str, list[Fields]]], bool]
) -> Change:
    """Change the assignments: by member, entries with a topic and partitions, or a connector and tasks."""

    def changed(place: Place, value: Fields) -> bool:
        if value["protocolType"] != protocol_type or value["protocol"] in (None, "stream"):
            return False
        blobs = _assignments(value)
        field = "assignedPartitions" if protocol_type == "consumer" else "assignment"
        entries = {member: blob.fields[field] for member, blob in blobs.items() if blob.fields[field] is not None}
        if not change(place, value, entries):
            return False
        for each in value["members"]:
            if each["memberId"] in entries:
                blob = blobs[each["memberId"]]
                each["assignment"] = encode_blob(schema, blob.version, blob.fields)
        return True

    return changed


def _numbers(entry: Fields) -> list[int]:
    numbers: list[int] = entry["partitions"] if "partitions" in entry else entry["tasks"]
    return numbers


def _with_work(entries: dict[str, list[Fields]]) -> list[tuple[str, Fields]]:
    return [(member, each) for member, mine in entries.items() for each in mine if _numbers(each)]


def _drop_unit(place: Place, value: Fields, entries: dict[str, list[Fields]]) -> bool:
    """A partition of the leader's own topics, which it knows, or a task in a configuration that is known."""
    leader = next((each for each in value["members"] if each["memberId"] == value["leader"]), None)
    had = place.before()
    if leader is None or had is None:
        return False
    if value["protocolType"] == "connect":
        offsets = [_config_offset(each) for each in (had, value)]
        work = _with_work(entries) if None not in offsets and offsets[0] == offsets[1] else []
    else:
        asked = decode_subscription("consumer", value["protocol"], leader["subscription"])
        own = asked.fields["topics"] if asked is not None else ()
        work = [(member, each) for member, each in _with_work(entries) if each["topic"] in own]
    if not work:
        return False
    _numbers(place.rng.choice(work)[1]).pop()
    return True


def _config_offset(value: Fields) -> int | None:
    told = next(iter(_assignments(value).values()), None) if value["protocolType"] == "connect" else None
    return None if told is None else told.fields["configOffset"]


def _swap(place: Place, value: Fields, entries: dict[str, list[Fields]]) -> bool:
    """One partition of a topic, or a task, for another of another member."""
    work = _with_work(entries)
    pairs = [
        (mine, theirs)
        for first, mine in work
        for second, theirs in work
        if first < second and (value["protocolType"] == "connect" or mine["topic"] == theirs["topic"])
    ]
    if not pairs or value["protocol"] not in ("range", "roundrobin", "default", "compatible", "sessioned"):
        return False
    mine, theirs = place.rng.choice(pairs)
    if mine.get("connector") != theirs.get("connector"):
        return False
    _numbers(mine)[0], _numbers(theirs)[0] = _numbers(theirs)[0], _numbers(mine)[0]
    return True


def _double(place: Place, value: Fields, entries: dict[str, list[Fields]]) -> bool:
    work = _with_work(entries)
    if not work or len(entries) < 2:
        return False
    member, entry = place.rng.choice(work)
    other = place.rng.choice([each for each in entries if each != member])
    numbers = "tasks" if "tasks" in entry else "partitions"
    entries[other].append({**entry, numbers: _numbers(entry)[:1]})
    return True


def _listed_twice(place: Place, value: Fields, entries: dict[str, list[Fields]]) -> bool:
    work = _with_work(entries)
    if work:
        numbers = _numbers(place.rng.choice(work)[1])
        numbers.append(numbers[0])
    return bool(work)


def _strange_number(place: Place, value: Fields, entries: dict[str, list[Fields]]) -> bool:
    work = _with_work(entries)
    if work:
        _numbers(place.rng.choice(work)[1]).append(NO_SUCH_PARTITION)
    return bool(work)


def _of_consumers(change: Callable[[Place, Fields, dict[str, list[Fields]]], bool]) -> Change:
    return _in_blobs("consumer", "ConsumerProtocolAssignment", change)


def _of_workers(change: Callable[[Place, Fields, dict[str, list[Fields]]], bool]) -> Change:
    return _in_blobs("connect", "ConnectProtocolAssignment", change)


# --- records that are left out ---------------------------------------------------------------------------------------


def _any_tombstone(place: Place, value: Fields | None) -> bool:
    return True


def _any_value(place: Place, value: Fields) -> bool:
    return True


def _first_of_member(place: Place, value: Fields) -> bool:
    return not any(each.key.get("memberId") == place.record.key["memberId"] for each in place.records[: place.index])


RECORD_MUTATIONS = (
    RecordMutation("epoch lower", EPOCHS, _add("epoch", -1, least=2)),
    RecordMutation("epoch higher", EPOCHS, _add("epoch", 1, 5, least=3)),
    RecordMutation("target epoch lower", TARGET_EPOCHS, _add("assignmentEpoch", -1, least=2)),
    RecordMutation("target epoch higher", TARGET_EPOCHS, _add("assignmentEpoch", 1)),
    RecordMutation("member epoch higher", CURRENTS, _add("memberEpoch", 1, 50, least=1)),
    RecordMutation("member epoch lower", CURRENTS, _known_epoch),
    RecordMutation("previous epoch", CURRENTS, _add("previousMemberEpoch", -1, 1, 100, least=-1)),
    RecordMutation("member state", RECONCILED, _state),
    RecordMutation("partition epoch", RECONCILED, _partition_epoch),
    RecordMutation("metadata hash", EPOCHS, _hash(to_zero=False)),
    RecordMutation("no metadata hash", EPOCHS, _hash(to_zero=True)),
    RecordMutation("assigned: one less", CURRENTS, _lacking(ASSIGNED)),
    RecordMutation("assigned: strange", CURRENTS, _strange(ASSIGNED)),
    RecordMutation("assigned: of another", RECONCILED, _of_another(ASSIGNED, instead=False)),
    RecordMutation("assigned: of another instead", RECONCILED, _of_another(ASSIGNED, instead=True)),
    RecordMutation("assigned: twice", CURRENTS, _twice(ASSIGNED)),
    RecordMutation("revoking: one less", RECONCILED, _lacking(REVOKING)),
    RecordMutation("revoking: strange", RECONCILED, _strange(REVOKING)),
    RecordMutation("target: one less", TARGETS, _lacking(TARGET)),
    RecordMutation("target: strange", TARGETS, _strange(TARGET)),
    RecordMutation("target: of another", TARGETS, _of_another(TARGET, instead=False)),
    RecordMutation("target: of another instead", TARGETS, _of_another(TARGET, instead=True)),
    RecordMutation("target: twice", TARGETS, _twice(TARGET)),
    RecordMutation("target: standby beside active", (21,), _standby),
    RecordMutation("regex loses a topic", (16,), _regex_loses),
    RecordMutation("regex gains a topic", (16,), _regex_gains),
    RecordMutation("share state of a partition lost", (15,), _share_state(whole_topic=False)),
    RecordMutation("share state of a topic lost", (15,), _share_state(whole_topic=True)),
    RecordMutation("instance id of another", (5, 19), _instance_of_another),
    RecordMutation("generation lower", GENERATION, _add("generation", -2, least=2)),
    RecordMutation("leader from elsewhere", GENERATION, _with_members(_strange_leader)),
    RecordMutation("no protocol", GENERATION, _with_members(_no_protocol)),
    RecordMutation("instance id twice", GENERATION, _second_instance),
    RecordMutation("consumers: one less", GENERATION, _of_consumers(_drop_unit)),
    RecordMutation("consumers: swapped", GENERATION, _of_consumers(_swap)),
    RecordMutation("consumers: doubled", GENERATION, _of_consumers(_double)),
    RecordMutation("consumers: listed twice", GENERATION, _of_consumers(_listed_twice)),
    RecordMutation("consumers: strange", GENERATION, _of_consumers(_strange_number)),
    RecordMutation("workers: one less", GENERATION, _of_workers(_drop_unit)),
    RecordMutation("workers: swapped", GENERATION, _of_workers(_swap)),
    RecordMutation("workers: doubled", GENERATION, _of_workers(_double)),
    RecordMutation("workers: listed twice", GENERATION, _of_workers(_listed_twice)),
    RecordMutation("no tombstone of a member", (5, 10, 19), _any_tombstone, drops=True),
    RecordMutation("no tombstone of an assignment", CURRENTS, _any_tombstone, drops=True),
    RecordMutation("no tombstone of a target", TARGETS, _any_tombstone, drops=True),
    RecordMutation("no epoch", EPOCHS, _any_value, drops=True),
    RecordMutation("no target epoch", TARGET_EPOCHS, _any_value, drops=True),
    RecordMutation("no target", TARGETS, _any_value, drops=True),
    RecordMutation("no member", (5, 10, 19), _first_of_member, drops=True),
)
