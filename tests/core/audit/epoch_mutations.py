"""Changes of one record of a group with epochs (consumer, share, streams) that no coordinator would write."""

from copy import deepcopy

from coordinator_core.records import CoordinatorRecord, Fields
from tests.core.audit.record_change import Change, Place, RecordMutation, any_record
from tests.core.audit.rules.mutations import ASSIGNED, REVOKING, TARGET, key_of

Unit = tuple[str, int]
EPOCHS, TARGET_EPOCHS, TARGETS, CURRENTS = (3, 11, 17), (6, 12, 20), (7, 13, 21), (8, 14, 22)
MEMBERS, RECONCILED, TOPOLOGY = (5, 10, 19), (8, 22), (23,)
STANDBY, WARMUP = ({21: f"{role}Tasks", 22: f"{role}Tasks"} for role in ("standby", "warmup"))
NO_SUCH_PARTITION = 9_999
NO_SUCH_STATE = 9


# --- numbers ---------------------------------------------------------------------------------------------------------


def _add(field: str, *steps: int, least: int = 0) -> Change:
    def change(place: Place, value: Fields) -> bool:
        value[field] = value.get(field, least) + place.rng.choice(steps)
        return value[field] > least and value.get("memberEpoch", 1) > 0

    return change


def _known_epoch(place: Place, value: Fields) -> bool:
    """The member's epoch below the one that it had."""
    had = place.before()
    if had is None or had["memberEpoch"] < 2 or value["memberEpoch"] <= 1:
        return False
    value["memberEpoch"] = had["memberEpoch"] - 1
    return True


def _set_epoch(epoch: int) -> Change:
    """The epoch of a member that is not static: those have -2 while they are away, and 0 when they come back."""

    def change(place: Place, value: Fields) -> bool:
        member = next((each for each in reversed(place.records[: place.index]) if _is_metadata_of(place, each)), None)
        is_dynamic = member is not None and member.value is not None and not member.value.get("instanceId")
        had, value["memberEpoch"] = value["memberEpoch"], epoch
        return is_dynamic and had > 0

    return change


def _is_metadata_of(place: Place, record: CoordinatorRecord) -> bool:
    return record.type in MEMBERS and record.key["memberId"] == place.record.key["memberId"]


def _no_such_state(place: Place, value: Fields) -> bool:
    value["state"] = NO_SUCH_STATE
    return True


def _state(place: Place, value: Fields) -> bool:
    states = {0, 1, 2} if place.record.type == 8 else {1, 2, 3}
    value["state"] = place.rng.choice(sorted(states - {value["state"]}))
    return bool(value["memberEpoch"] > 0)


def _hash(to_zero: bool) -> Change:
    def change(place: Place, value: Fields) -> bool:
        if not value.get("metadataHash"):
            return False
        if not to_zero:
            value["metadataHash"] += 1
        elif place.record.type == 3:
            del value["metadataHash"]  # a tagged field, which is not written where it is 0
        else:
            value["metadataHash"] = 0
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


def _warm_up(place: Place, value: Fields) -> bool:
    """A warm-up task, which no assignor of Kafka's assigns yet."""
    for entry in _filled(value["activeTasks"])[:1]:
        value["warmupTasks"].append({"subtopologyId": entry["subtopologyId"], "partitions": [NO_SUCH_PARTITION]})
        return value.get("memberEpoch", 1) > 0
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


def _other_subtopology(place: Place, value: Fields) -> bool:
    """A subtopology gets another name, in a topology that is used."""
    value["subtopologies"][0]["subtopologyId"] = "no such"
    return any(_filled(each.value["activeTasks"]) for each in place.records if each.type == 21 and each.value)


def _epoch_between(place: Place, value: Fields) -> bool:
    """An epoch of a member that was at another one before, and goes on from this one."""
    had, mine = place.before(), place.record
    later = (each for each in place.records[place.index + 1 :] if each.type == mine.type and each.key == mine.key)
    then = next(later, None)
    return had is not None and had["memberEpoch"] != value["memberEpoch"] and then is not None and bool(then.value)


def _new_share_state(place: Place, value: Fields) -> bool:
    """Share partitions that are assigned next were initialised."""
    had = {each["topicId"] for each in (place.before() or {}).get("initializedTopics", ())}
    then = next((each for each in place.records[place.index + 1 :] if each.type in (13, 15) and each.value), None)
    if then is None or then.type != 13 or then.value is None:
        return False
    assigned = {each["topicId"] for each in _filled(then.value["topicPartitions"])}
    return bool(({each["topicId"] for each in value["initializedTopics"]} - had) & assigned)


def _is_used(place: Place, value: Fields) -> bool:
    """Whether the first value of a record, from which targets were computed later."""
    return place.before() is None and any(each.type in TARGETS for each in place.records[place.index :])


def _instance_of_another(place: Place, value: Fields) -> bool:
    names = sorted({each["instanceId"] for each in place.others() if each.get("instanceId")} - {value["instanceId"]})
    if names:
        value["instanceId"] = place.rng.choice(names)
    return bool(names)


def _first_of_member(place: Place, value: Fields) -> bool:
    return not any(each.key.get("memberId") == place.record.key["memberId"] for each in place.records[: place.index])


EPOCH_MUTATIONS = (
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
    RecordMutation("member epoch -1", CURRENTS, _set_epoch(-1)),
    RecordMutation("member epoch -2, not static", RECONCILED, _set_epoch(-2)),
    RecordMutation("member epoch 0, not static", CURRENTS, _set_epoch(0)),
    RecordMutation("member state that is not one", CURRENTS, _no_such_state),
    RecordMutation("assigned to a stranger", CURRENTS, any_record, stranger=True),
    RecordMutation("target of a stranger", TARGETS, any_record, stranger=True),
    RecordMutation("standby assigned: one less", (22,), _lacking(STANDBY)),
    RecordMutation("standby assigned: strange", (22,), _strange(STANDBY)),
    RecordMutation("standby target: one less", (21,), _lacking(STANDBY)),
    RecordMutation("standby target: strange", (21,), _strange(STANDBY)),
    RecordMutation("warm-up assigned", (22,), _warm_up),
    RecordMutation("warm-up target", (21,), _warm_up),
    RecordMutation("topology epoch higher", TOPOLOGY, _add("epoch", 1, 5)),
    RecordMutation("topology epoch that was validated higher", (17,), _add("validatedTopologyEpoch", 1, 5, least=-1)),
    RecordMutation("another subtopology", TOPOLOGY, _other_subtopology),
    RecordMutation("no tombstone of a member", MEMBERS, any_record, drops=True, tombstones=True),
    RecordMutation("no tombstone of an assignment", CURRENTS, any_record, drops=True, tombstones=True),
    RecordMutation("no tombstone of a target", TARGETS, any_record, drops=True, tombstones=True),
    RecordMutation("no epoch", EPOCHS, any_record, drops=True),
    RecordMutation("no target epoch", TARGET_EPOCHS, any_record, drops=True),
    RecordMutation("no target", TARGETS, any_record, drops=True),
    RecordMutation("no member", MEMBERS, _first_of_member, drops=True),
    RecordMutation("no tombstone of a group", EPOCHS, any_record, drops=True, tombstones=True),
    RecordMutation("no tombstone of a target epoch", TARGET_EPOCHS, any_record, drops=True, tombstones=True),
    RecordMutation("no current assignment", CURRENTS, _epoch_between, drops=True),
    RecordMutation("no topology", TOPOLOGY, _is_used, drops=True),
    RecordMutation("no share state", (15,), _new_share_state, drops=True),
    RecordMutation("no regular expression", (16,), _is_used, drops=True),
)
