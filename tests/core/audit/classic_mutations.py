"""Changes of one record of a classic group that neither a coordinator nor a client of Kafka's would make."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from coordinator_core.records import Fields
from coordinator_core.wire.embedded import Blob, decode_assignment, decode_subscription, encode_blob
from tests.core.audit.record_change import Change, Place, RecordMutation

GENERATION = (2,)
NO_SUCH_PARTITION = 9_999
CONNECT_PROTOCOLS = ("default", "compatible", "sessioned")


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


def _generation(step: int) -> Change:
    def change(place: Place, value: Fields) -> bool:
        """A group that was there counts on: it has members, as in the generation before, with other assignments."""
        had = place.before()
        value["generation"] += step
        assigned = [sorted(each["assignment"] for each in of["members"]) for of in (value, had or value)]
        return bool(value["generation"] > 0 and had and had["members"] and assigned[0] and assigned[0] != assigned[1])

    return change


def _no_leader(value: Fields) -> None:
    value["leader"] = None


def _member_twice(value: Fields) -> None:
    value["members"].append(deepcopy(value["members"][0]))


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


Work = dict[str, list[Fields]]
"""By member, entries with a topic and partitions, or a connector and tasks."""


def _in_blobs(
    protocol_type: str, schema: str, change: Callable[[Place, Fields, Work], bool], *, streams: bool = False
) -> Change:
    """Change the assignments of consumers or workers; ``streams``: those of Kafka Streams."""

    def changed(place: Place, value: Fields) -> bool:
        if value["protocolType"] != protocol_type or not value["protocol"]:
            return False
        if streams is not (value["protocol"] == "stream"):
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


def _with_work(entries: Work) -> list[tuple[str, Fields]]:
    return [(member, each) for member, mine in entries.items() for each in mine if _numbers(each)]


def _drop_unit(place: Place, value: Fields, entries: Work) -> bool:
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


Owned = tuple[str, Fields, int]
"""One unit: its member, the entry that lists it, and its number."""


def _swap(same_resource: bool, *protocols: str) -> Callable[[Place, Fields, Work], bool]:
    """One partition, or connector or task, for another of another member that may have it too."""

    def change(place: Place, value: Fields, entries: Work) -> bool:
        if value["protocol"] not in protocols:
            return False
        units = [(member, entry, number) for member, entry in _with_work(entries) for number in _numbers(entry)]
        pairs = [
            (mine, theirs)
            for mine in units
            for theirs in units
            if mine[0] < theirs[0] and (_name(mine[1]) == _name(theirs[1])) is same_resource
        ]
        if not pairs:
            return False
        mine, theirs = place.rng.choice(pairs)
        _move(entries, mine, theirs[0])
        _move(entries, theirs, mine[0])
        return True

    return change


def _name(entry: Fields) -> str:
    return str(entry["topic"] if "topic" in entry else entry["connector"])


def _move(entries: Work, unit: Owned, member: str) -> None:
    _, entry, number = unit
    _numbers(entry).remove(number)
    theirs = next((each for each in entries[member] if _name(each) == _name(entry)), None)
    if theirs is None:
        theirs = deepcopy(entry)
        _numbers(theirs).clear()
        entries[member].append(theirs)
    _numbers(theirs).append(number)
    _numbers(theirs).sort()


def _double(place: Place, value: Fields, entries: Work) -> bool:
    work = _with_work(entries)
    if not work or len(entries) < 2:
        return False
    member, entry = place.rng.choice(work)
    other = place.rng.choice([each for each in entries if each != member])
    numbers = "tasks" if "tasks" in entry else "partitions"
    entries[other].append({**entry, numbers: _numbers(entry)[:1]})
    return True


def _listed_twice(place: Place, value: Fields, entries: Work) -> bool:
    work = _with_work(entries)
    if work:
        numbers = _numbers(place.rng.choice(work)[1])
        numbers.append(numbers[0])
    return bool(work)


def _strange_number(place: Place, value: Fields, entries: Work) -> bool:
    work = _with_work(entries)
    if work:
        _numbers(place.rng.choice(work)[1]).append(NO_SUCH_PARTITION)
    return bool(work)


def _not_subscribed(place: Place, value: Fields, entries: Work) -> bool:
    """A partition moves to a member that does not subscribe to its topic."""
    topics = {}
    for each in value["members"]:
        asked = decode_subscription("consumer", value["protocol"], each["subscription"])
        topics[each["memberId"]] = asked.fields["topics"] if asked is not None else ()
    moves = [
        ((member, entry, number), other)
        for member, entry in _with_work(entries)
        for number in _numbers(entry)
        for other in entries
        if other != member and entry["topic"] not in topics.get(other, ())
    ]
    if moves:
        _move(entries, *place.rng.choice(moves))
    return bool(moves)


def _claims(place: Place, value: Fields) -> bool:
    """A member that was there says that it has a partition, or task, of which nobody knows."""
    had = {each["memberId"] for each in (place.before() or {"members": []})["members"]}
    for each in value["members"]:
        blob = decode_subscription(value["protocolType"], value["protocol"], each["subscription"])
        if each["memberId"] not in had or blob is None:
            continue
        blob = deepcopy(blob)
        if value["protocolType"] == "connect":
            running = blob.nested
            if running is None or not running.fields["assignment"]:
                continue
            _numbers(running.fields["assignment"][0]).append(NO_SUCH_PARTITION)
            blob.fields["allocation"] = encode_blob("ConnectProtocolAssignment", running.version, running.fields)
            each["subscription"] = encode_blob("ConnectProtocolMetadata", blob.version, blob.fields)
            return True
        if blob.fields.get("ownedPartitions") and _is_of_the_generation_before(place, blob):
            _numbers(blob.fields["ownedPartitions"][0]).append(NO_SUCH_PARTITION)
            each["subscription"] = encode_blob("ConsumerProtocolSubscription", blob.version, blob.fields)
            return True
    return False


def _is_of_the_generation_before(place: Place, blob: Blob[Any]) -> bool:
    had = place.before()
    return had is not None and blob.fields.get("generationId") == had["generation"]


def _of_consumers(change: Callable[[Place, Fields, Work], bool]) -> Change:
    return _in_blobs("consumer", "ConsumerProtocolAssignment", change)


def _of_workers(change: Callable[[Place, Fields, Work], bool]) -> Change:
    return _in_blobs("connect", "ConnectProtocolAssignment", change)


def _of_streams_clients(change: Callable[[Place, Fields, Work], bool]) -> Change:
    return _in_blobs("consumer", "ConsumerProtocolAssignment", change, streams=True)


CLASSIC_MUTATIONS = (
    RecordMutation("generation lower", GENERATION, _generation(-2)),
    RecordMutation("generation again", GENERATION, _generation(-1)),
    RecordMutation("no leader", GENERATION, _with_members(_no_leader)),
    RecordMutation("member twice", GENERATION, _with_members(_member_twice)),
    RecordMutation("members: claim what is not theirs", GENERATION, _claims),
    RecordMutation("leader from elsewhere", GENERATION, _with_members(_strange_leader)),
    RecordMutation("no protocol", GENERATION, _with_members(_no_protocol)),
    RecordMutation("instance id twice", GENERATION, _second_instance),
    RecordMutation("consumers: one less", GENERATION, _of_consumers(_drop_unit)),
    RecordMutation("consumers: swapped", GENERATION, _of_consumers(_swap(True, "range", "roundrobin"))),
    RecordMutation("sticky consumers: swapped", GENERATION, _of_consumers(_swap(True, "sticky", "cooperative-sticky"))),
    RecordMutation("consumers: topic of another", GENERATION, _of_consumers(_not_subscribed)),
    RecordMutation("streams clients: one less", GENERATION, _of_streams_clients(_drop_unit)),
    RecordMutation("streams clients: doubled", GENERATION, _of_streams_clients(_double)),
    RecordMutation("consumers: doubled", GENERATION, _of_consumers(_double)),
    RecordMutation("consumers: listed twice", GENERATION, _of_consumers(_listed_twice)),
    RecordMutation("consumers: strange", GENERATION, _of_consumers(_strange_number)),
    RecordMutation("workers: one less", GENERATION, _of_workers(_drop_unit)),
    RecordMutation("workers: swapped", GENERATION, _of_workers(_swap(True, *CONNECT_PROTOCOLS))),
    RecordMutation("workers: swapped, of two connectors", GENERATION, _of_workers(_swap(False, *CONNECT_PROTOCOLS))),
    RecordMutation("workers: doubled", GENERATION, _of_workers(_double)),
    RecordMutation("workers: listed twice", GENERATION, _of_workers(_listed_twice)),
)
