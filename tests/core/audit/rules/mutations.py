"""Changes of one record of a log, each of which a rule of the protocol forbids."""

import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import NamedTuple

from coordinator_core.groups.rules import Rule
from coordinator_core.records import CoordinatorRecord, Fields
from coordinator_core.wire.embedded import decode_assignment, encode_blob

Records = list[CoordinatorRecord]
NOBODYS_TOPIC = "AAAAAAAAAAAAAAAAAAAAAQ"
EPOCHS, TARGET_EPOCHS, TARGETS, CURRENTS, MEMBERS = (3, 11, 17), (6, 12, 20), (7, 13, 21), (8, 14, 22), (5, 10, 19)
RECONCILED = (8, 22)
ASSIGNED = {8: "assignedPartitions", 14: "assignedPartitions", 22: "activeTasks"}
REVOKING = {8: "partitionsPendingRevocation", 22: "activeTasksPendingRevocation"}
TARGET = {7: "topicPartitions", 13: "topicPartitions", 21: "activeTasks"}


OF_CONTENT = (Rule.ASSIGNED_NOT_THE_TARGET, Rule.DROPPED_WITHOUT_REVOCATION, Rule.STATE_AGAINST_ASSIGNMENT)
"""Where a record of a member's assignment is changed, or its target, the records after it break these."""
OF_HASH = (Rule.METADATA_HASH_WRONG,)
"""Where subscribed topics are changed, the metadata hashes after it are of others."""


class Mutation(NamedTuple):
    """``apply`` gives the log with the record at an index changed, or None where that makes no sense there.

    ``rules`` are those of which at least one has to fire, ``consequences`` those that may fire because the rest of the
    log goes on as if nothing had been changed. No other may.
    """

    name: str
    apply: Callable[[Records, int], Records | None]
    rules: frozenset[Rule]
    consequences: frozenset[Rule] = frozenset()

    def explains(self, fired: set[Rule]) -> bool:
        """Whether the right rule fired, and only it and its consequences."""
        return bool(fired & self.rules) and fired <= self.rules | self.consequences


def mutations_of(mutation: Mutation, records: Records, rng: random.Random) -> Iterator[Records]:
    """The log changed at one record, for all records where that is possible, in random order."""
    for index in rng.sample(range(len(records)), len(records)):
        changed = mutation.apply(records, index)
        if changed is not None:
            yield changed


def _with(records: Records, index: int, value: Fields) -> Records:
    return [*records[:index], records[index]._replace(value=value), *records[index + 1 :]]


def _edit(types: tuple[int, ...], change: Callable[[Records, int, Fields], bool]) -> Callable[..., Records | None]:
    """Change a copy of the value of a record of these types, unless ``change`` says that it cannot."""

    def apply(records: Records, index: int) -> Records | None:
        record = records[index]
        if record.type not in types or record.value is None:
            return None
        value = deepcopy(record.value)
        return _with(records, index, value) if change(records, index, value) else None

    return apply


def _drop(types: tuple[int, ...], when: Callable[[Records, int], bool]) -> Callable[..., Records | None]:
    def apply(records: Records, index: int) -> Records | None:
        if records[index].type not in types or not when(records, index):
            return None
        return records[:index] + records[index + 1 :]

    return apply


def _generation_again(records: Records, index: int) -> Records | None:
    """The same generation a second time, at the next offset; all later records have an offset more."""
    record = records[index]
    if record.type != 2 or record.value is None or not record.value["members"]:
        return None
    return [*records[: index + 1], *(_later(each) for each in records[index:])]


def _later(record: CoordinatorRecord) -> CoordinatorRecord:
    return record._replace(at=record.at._replace(offset=record.at.offset + 1))


def _field(name: str, change: Callable[[int], int], floor: int) -> Callable[[Records, int, Fields], bool]:
    def edit(records: Records, index: int, value: Fields) -> bool:
        if value[name] <= floor:
            return False
        value[name] = change(value[name])
        return True

    return edit


def _known_before(records: Records, index: int) -> bool:
    """Whether a record with the same key came before, and nothing ended it since."""
    mine = records[index]
    before = [each for each in records[:index] if each.type == mine.type and each.key == mine.key]
    return bool(before) and before[-1].value is not None


def _others(records: Records, index: int) -> dict[str, Fields]:
    """The last value of the same type of every other member that is there."""
    mine, found = records[index], dict[str, Fields]()
    for each in records[:index]:
        if each.type == mine.type and each.key["memberId"] != mine.key["memberId"]:
            found.pop(each.key["memberId"], None)
            if each.value is not None:
                found[each.key["memberId"]] = each.value
    return found


def _take_from_another(fields: dict[int, str]) -> Callable[[Records, int, Fields], bool]:
    def edit(records: Records, index: int, value: Fields) -> bool:
        field = fields[records[index].type]
        mine = {key_of(each): each for each in value[field]}
        for other in _others(records, index).values():
            for theirs in other[field]:
                if theirs["partitions"]:
                    entry = mine.get(key_of(theirs))
                    partition = theirs["partitions"][0]
                    if entry is None:
                        value[field].append({**theirs, "partitions": [partition], "assignmentEpochs": None})
                    elif partition in entry["partitions"]:
                        return False
                    else:
                        entry["partitions"].append(partition)
                        entry["assignmentEpochs"] = None
                    return True
        return False

    return edit


def _twice(fields: dict[int, str]) -> Callable[[Records, int, Fields], bool]:
    def edit(records: Records, index: int, value: Fields) -> bool:
        entries = [each for each in value[fields[records[index].type]] if each["partitions"]]
        if not entries:
            return False
        entries[0]["partitions"].append(entries[0]["partitions"][0])
        entries[0]["assignmentEpochs"] = None
        return True

    return edit


def _strange_partition(fields: dict[int, str]) -> Callable[[Records, int, Fields], bool]:
    def edit(records: Records, index: int, value: Fields) -> bool:
        entries = value[fields[records[index].type]]
        if not entries or value.get("memberEpoch", 1) <= 0:
            return False
        entries[0]["partitions"].append(9_999)
        entries[0]["assignmentEpochs"] = None
        return True

    return edit


def _missing_partition(records: Records, index: int, value: Fields) -> bool:
    """Of a member that has reached its target; not the only one of a topic, which it may not subscribe to any more."""
    if value["state"] != (1 if records[index].type == 22 else 0) or value["memberEpoch"] <= 0:
        return False
    entries = [each for each in value[ASSIGNED[records[index].type]] if len(each["partitions"]) > 1]
    if not entries:
        return False
    entries[0]["partitions"].pop()
    entries[0]["assignmentEpochs"] = None
    last = {each.type: each.value for each in records[:index] if each.value is not None}
    kind = 3 if records[index].type == 8 else 17
    target = last.get(kind + 3) or {}
    return (last.get(kind) or {}).get("epoch") == target.get("assignmentEpoch") == value["memberEpoch"]


def _forget_revoking(records: Records, index: int, value: Fields) -> bool:
    field = REVOKING[records[index].type]
    others = [name for name in value if name.endswith("PendingRevocation") and name != field]
    if not value[field] or value["memberEpoch"] < 0 or any(value[name] for name in others):
        return False
    value[field] = []
    return True


def _unknown_state(records: Records, index: int, value: Fields) -> bool:
    value["state"] = 77
    return True


def _previous_epoch(records: Records, index: int, value: Fields) -> bool:
    if not _known_before(records, index) or value["memberEpoch"] <= 0:
        return False
    value["previousMemberEpoch"] += 100
    return True


def _with_members(edit: Callable[[Fields], bool]) -> Callable[[Records, int, Fields], bool]:
    return lambda records, index, value: bool(value["members"]) and edit(value)


def _strange_leader(value: Fields) -> bool:
    value["leader"] = "nobody"
    return True


def _no_protocol(value: Fields) -> bool:
    value["protocol"] = None
    return True


def _same_assignment_for_all(value: Fields) -> bool:
    """Every member gets what the first one with partitions has."""
    known = ("range", "roundrobin", "sticky", "cooperative-sticky")
    if value["protocolType"] != "consumer" or value["protocol"] not in known or len(value["members"]) < 2:
        return False
    for member in value["members"]:
        blob = decode_assignment("consumer", value["protocol"], member["assignment"])
        if blob is not None and any(each["partitions"] for each in blob.fields["assignedPartitions"]):
            for other in value["members"]:
                other["assignment"] = member["assignment"]
            return True
    return False


def _same_instance(value: Fields) -> bool:
    if len(value["members"]) < 2 or "groupInstanceId" not in value["members"][0]:
        return False
    for member in value["members"]:
        member["groupInstanceId"] = "one for all"
    return True


def key_of(entry: Fields) -> str:
    key: str = entry["topicId"] if "topicId" in entry else entry["subtopologyId"]
    return key


def _not_first(records: Records, index: int) -> bool:
    return index > 0 and _known_before(records, index)


def _is_tombstone(records: Records, index: int) -> bool:
    """One of a member's three, not of a whole group's that goes on as another type."""
    record = records[index]
    same = [each for each in records if each.batch == record.batch and each.at.timestamp_ms == record.at.timestamp_ms]
    changes_type = any(each.type == 2 for each in same)
    return record.value is None and not changes_type and _known_before(records, index)


def _opens_for_member(records: Records, index: int) -> bool:
    """An epoch right after the records of a member that came or went."""
    before = records[index - 1] if index else None
    same = before is not None and before.batch == records[index].batch
    return same and before is not None and before.type in MEMBERS and records[index].value is not None


def _has_value(records: Records, index: int) -> bool:
    return records[index].value is not None


def _follows_targets(records: Records, index: int) -> bool:
    before = records[index - 1] if index else None
    same = before is not None and before.batch == records[index].batch
    return same and before is not None and before.type in TARGETS and records[index].value is not None


def _rules(*rules: Rule) -> frozenset[Rule]:
    return frozenset(rules)


def _lower(number: int) -> int:
    return number - 1


def _target_of_another(records: Records, index: int, value: Fields) -> bool:
    """Where the target is written at once with its metadata, so that the other's record stands."""
    later = [each for each in records[index + 1 :] if each.batch == records[index].batch]
    rewritten = {each.key.get("memberId") for each in later if each.type in TARGETS}
    if not any(each.type in TARGET_EPOCHS and each.value is not None for each in later):
        return False
    for member_id, other in _others(records, index).items():
        if member_id in rewritten:
            continue
        for theirs in other[TARGET[records[index].type]]:
            if theirs["partitions"]:
                mine = [each for each in value[TARGET[records[index].type]] if key_of(each) != key_of(theirs)]
                value[TARGET[records[index].type]] = [*mine, theirs]
                return True
    return False


def _keep_revoking(records: Records, index: int, value: Fields) -> bool:
    mine = [each for each in value[REVOKING[records[index].type]] if each["partitions"]]
    if not mine or value["memberEpoch"] <= 0:
        return False
    assigned = value[ASSIGNED[records[index].type]]
    same = [each for each in assigned if key_of(each) == key_of(mine[0])]
    if same:
        same[0]["partitions"] += mine[0]["partitions"]
        same[0]["assignmentEpochs"] = None
    else:
        assigned.append(mine[0])
    return True


def _strange_revoking(records: Records, index: int, value: Fields) -> bool:
    mine = value[REVOKING[records[index].type]]
    if not mine or value["memberEpoch"] <= 0:
        return False
    mine[0]["partitions"].append(9_999)
    mine[0]["assignmentEpochs"] = None
    return True


def _later_partition_epoch(records: Records, index: int, value: Fields) -> bool:
    mine = [each for each in value[ASSIGNED[records[index].type]] if each.get("assignmentEpochs")]
    if not mine or value["memberEpoch"] <= 0:
        return False
    mine[0]["assignmentEpochs"][0] = value["memberEpoch"] + 1
    return True


def _joins(records: Records, index: int) -> bool:
    """The only current assignment of a member that came with it."""
    record = records[index]
    same = [e for e in records if (e.batch, e.type, e.key) == (record.batch, record.type, record.key)]
    mine = [each for each in records[:index] if each.key.get("memberId") == record.key["memberId"]]
    came = [each for each in mine if each.type in MEMBERS and each.batch == record.batch]
    return record.value is not None and len(same) == 1 and len(came) == 1 and len({e.batch for e in mine}) == 1


def _strange_subtopology(records: Records, index: int, value: Fields) -> bool:
    if not value["activeTasks"]:
        return False
    value["activeTasks"][0]["subtopologyId"] = "no such subtopology"
    return True


def _begins_after_conversion(records: Records, index: int) -> bool:
    """The group record of the new type, in a batch that ends the old one with its members."""
    record = records[index]
    batch = [each for each in records if each.batch == record.batch]
    ends = [each for each in batch if each.type in (2, 3) and each.type != record.type and each.value is None]
    again = [each for each in batch if each.type == record.type and each.value is not None]
    classic = [each.value for each in records[:index] if each.type == 2 and each.value is not None]
    members = record.type == 2 or bool(classic and classic[-1]["members"])
    gone = record.type == 3 or any(each.type == 5 and each.value is None for each in batch)
    return record.value is not None and bool(ends) and members and gone and len(again) == 1


def _commit_of_nobodys_topic(records: Records, index: int) -> Records | None:
    """A commit of a topic that no member subscribes to, while the group has members with assignments."""
    record = records[index]
    if (
        record.type != 1
        or record.value is None
        or not _is_alive(records[:index], names_topics="topicId" in record.value)
    ):
        return None
    value = {**record.value, "topicId": NOBODYS_TOPIC} if "topicId" in record.value else record.value
    return [
        *records[:index],
        record._replace(key={**record.key, "topic": "nobodys"}, value=value),
        *records[index + 1 :],
    ]


def _is_alive(records: Records, *, names_topics: bool) -> bool:
    """Whether it is a classic group of consumers with members, or a consumer group; there, commits of transactions,
    which name no topic id, are not judged.
    """
    last = next((each for each in reversed(records) if each.type in (2, 3)), None)
    if last is None or last.value is None:
        return False
    if last.type == 2:
        return bool(last.value["members"]) and last.value["protocolType"] == "consumer"
    if not names_topics:
        return False
    gone = {each.key["memberId"] for each in records if each.type == 5 and each.value is None}
    return any(each.type == 5 and each.value is not None and each.key["memberId"] not in gone for each in records)


def _strange_commit(records: Records, index: int) -> Records | None:
    """A commit of a partition that nobody has, of a topic of which a classic group's members have others."""
    record = records[index]
    groups = [each for each in records[:index] if each.type in (2, 3)]
    if record.type != 1 or record.value is None or not groups or groups[-1].type != 2 or groups[-1].value is None:
        return None
    held = set()
    for member in groups[-1].value["members"]:
        blob = decode_assignment(groups[-1].value["protocolType"], groups[-1].value["protocol"], member["assignment"])
        if blob is not None and "assignedPartitions" in blob.fields:
            held |= {each["topic"] for each in blob.fields["assignedPartitions"] if each["partitions"]}
    if record.key["topic"] not in held:
        return None
    key = {**record.key, "partition": 9_999}
    return [*records[:index], record._replace(key=key), *records[index + 1 :]]


def _dropped_partition(records: Records, index: int, value: Fields) -> bool:
    """A partition that the member had, and asks nobody to wait for, while it still has to revoke others."""
    had = _value_before(records, index)
    if not value[REVOKING[records[index].type]] or had is None or value["memberEpoch"] <= 0:
        return False
    known = {(key_of(each), number) for each in had[ASSIGNED[records[index].type]] for number in each["partitions"]}
    for entry in value[ASSIGNED[records[index].type]]:
        for number in entry["partitions"]:
            if (key_of(entry), number) in known:
                entry["partitions"].remove(number)
                entry["assignmentEpochs"] = None
                return True
    return False


def _waits_for_nothing(records: Records, index: int, value: Fields) -> bool:
    """A stable member at the group's epoch, which lacks nothing."""
    is_streams = records[index].type == 22
    target = _last_of(records, index, 21 if is_streams else 7, records[index].key)
    epoch = _last_of(records, index, 20 if is_streams else 6)
    if value["state"] != (1 if is_streams else 0) or epoch is None or target is None:
        return False
    if not 0 < value["memberEpoch"] == epoch["assignmentEpoch"] or is_streams:
        return False
    wanted = {(key_of(each), number) for each in target["topicPartitions"] for number in each["partitions"]}
    has = {(key_of(each), number) for each in value["assignedPartitions"] for number in each["partitions"]}
    value["state"] = 2
    return wanted == has


def _value_before(records: Records, index: int) -> Fields | None:
    return _last_of(records, index, records[index].type, records[index].key)


def _last_of(records: Records, index: int, record_type: int, key: Fields | None = None) -> Fields | None:
    """The value of the last record before of this type, and key."""
    for each in reversed(records[:index]):
        if each.type == record_type and (key is None or each.key == key):
            value: Fields | None = each.value
            return value
    return None


def _listed_twice(value: Fields) -> bool:
    if value["protocolType"] != "consumer" or value["protocol"] == "stream":
        return False
    for member in value["members"]:
        blob = decode_assignment("consumer", value["protocol"], member["assignment"])
        fields = deepcopy(blob.fields) if blob is not None else {"assignedPartitions": []}
        for entry in fields["assignedPartitions"]:
            if entry["partitions"] and blob is not None:
                entry["partitions"].append(entry["partitions"][0])
                member["assignment"] = encode_blob("ConsumerProtocolAssignment", blob.version, fields)
                return True
    return False


def _less_share_state(records: Records, index: int, value: Fields) -> bool:
    had = _value_before(records, index)
    known = {each["topicId"]: each["partitions"] for each in (had or {}).get("initializedTopics", ())}
    for entry in value["initializedTopics"]:
        if entry["topicId"] in known and entry["partitions"][-1] in known[entry["topicId"]]:
            entry["partitions"].pop()
            return True
    return False


def _other_hash(records: Records, index: int, value: Fields) -> bool:
    if not value.get("metadataHash"):
        return False
    value["metadataHash"] += 1
    return True


def _strange_topic(records: Records, index: int, value: Fields) -> bool:
    value["topics"].append("no such topic")
    return True


def _lost_topic(records: Records, index: int, value: Fields) -> bool:
    had = _value_before(records, index)
    both = [] if had is None else [topic for topic in value["topics"] if topic in had["topics"]]
    if both:
        value["topics"].remove(both[0])
    return bool(both)


def _first_target(records: Records, index: int) -> bool:
    """The first target record of a member, or its copy of that of the member whose place it takes."""
    later = [each for each in records[index + 1 :] if each.batch == records[index].batch]
    again = any(each.type == records[index].type and each.key == records[index].key for each in later)
    return records[index].value is not None and not _known_before(records, index) and not again


MUTATIONS = (
    Mutation(
        "group epoch one lower",
        _edit(EPOCHS, _field("epoch", _lower, 3)),
        _rules(Rule.EPOCH_REPEATED, Rule.EPOCH_WENT_BACK, Rule.EPOCH_SKIPPED),
        _rules(Rule.MEMBER_EPOCH_AHEAD, Rule.ASSIGNMENT_EPOCH_AHEAD),
    ),
    Mutation(
        "group epoch two lower",
        _edit(EPOCHS, _field("epoch", lambda epoch: epoch - 2, 4)),
        _rules(Rule.EPOCH_WENT_BACK, Rule.EPOCH_SKIPPED),
        _rules(Rule.MEMBER_EPOCH_AHEAD, Rule.ASSIGNMENT_EPOCH_AHEAD),
    ),
    Mutation(
        "group epoch higher",
        _edit(EPOCHS, _field("epoch", lambda epoch: epoch + 5, 2)),
        _rules(Rule.EPOCH_SKIPPED),
        _rules(Rule.EPOCH_WENT_BACK, Rule.ASSIGNMENT_EPOCH_NOT_THE_GROUPS),
    ),
    Mutation(
        "assignment epoch lower",
        _edit(TARGET_EPOCHS, _field("assignmentEpoch", _lower, 3)),
        _rules(Rule.ASSIGNMENT_EPOCH_NOT_THE_GROUPS),
        _rules(Rule.MEMBER_EPOCH_AHEAD_OF_TARGET, Rule.MEMBER_EPOCH_NOT_THE_TARGETS),
    ),
    Mutation(
        "assignment epoch higher",
        _edit(TARGET_EPOCHS, _field("assignmentEpoch", lambda epoch: epoch + 1, 1)),
        _rules(Rule.ASSIGNMENT_EPOCH_AHEAD),
        _rules(Rule.MEMBER_EPOCH_NOT_THE_TARGETS),
    ),
    Mutation(
        "member epoch higher",
        _edit(CURRENTS, _field("memberEpoch", lambda epoch: epoch + 50, 0)),
        _rules(Rule.MEMBER_EPOCH_AHEAD),
        _rules(Rule.MEMBER_EPOCH_AHEAD_OF_TARGET, Rule.PREVIOUS_EPOCH_WRONG, Rule.MEMBER_EPOCH_WENT_BACK),
    ),
    Mutation("previous member epoch", _edit(CURRENTS, _previous_epoch), _rules(Rule.PREVIOUS_EPOCH_WRONG)),
    Mutation(
        "unknown member state",
        _edit(CURRENTS, _unknown_state),
        _rules(Rule.UNKNOWN_MEMBER_STATE),
        _rules(Rule.STATE_AGAINST_ASSIGNMENT),
    ),
    Mutation(
        "a partition that another member has",
        _edit(RECONCILED, _take_from_another(ASSIGNED)),
        _rules(Rule.ASSIGNED_TO_TWO, Rule.ASSIGNED_BEFORE_REVOKED),
        _rules(*OF_CONTENT, Rule.ASSIGNED_OUTSIDE_TARGET),
    ),
    Mutation(
        "a partition from nowhere",
        _edit(CURRENTS, _strange_partition(ASSIGNED)),
        _rules(Rule.ASSIGNED_OUTSIDE_TARGET),
        _rules(*OF_CONTENT),
    ),
    Mutation("a partition twice", _edit(CURRENTS, _twice(ASSIGNED)), _rules(Rule.UNIT_TWICE_IN_RECORD)),
    Mutation(
        "a partition less",
        _edit(RECONCILED, _missing_partition),
        _rules(Rule.ASSIGNED_NOT_THE_TARGET),
        _rules(*OF_CONTENT, Rule.COMMIT_BY_NO_OWNER, Rule.REVOKING_NOT_OWNED),
    ),
    Mutation(
        "a partition less on the way",
        _edit(RECONCILED, _dropped_partition),
        _rules(Rule.DROPPED_WITHOUT_REVOCATION),
        _rules(*OF_CONTENT, Rule.COMMIT_BY_NO_OWNER, Rule.REVOKING_NOT_OWNED),
    ),
    Mutation(
        "a revocation less",
        _edit(RECONCILED, _forget_revoking),
        _rules(Rule.STATE_AGAINST_ASSIGNMENT),
        _rules(*OF_CONTENT),
    ),
    Mutation("waits for nothing", _edit(RECONCILED, _waits_for_nothing), _rules(Rule.STATE_AGAINST_ASSIGNMENT)),
    Mutation("a target partition twice", _edit(TARGETS, _twice(TARGET)), _rules(Rule.UNIT_TWICE_IN_RECORD)),
    Mutation(
        "no target metadata",
        _drop(TARGET_EPOCHS, _follows_targets),
        _rules(Rule.TARGET_WITHOUT_EPOCH, Rule.MEMBER_EPOCH_AHEAD_OF_TARGET),
        _rules(Rule.ASSIGNMENT_OVERDUE),
    ),
    Mutation(
        "a member's tombstone less",
        _drop((*CURRENTS, *TARGETS, *MEMBERS), _is_tombstone),
        _rules(Rule.MEMBER_REMOVED_IN_PART),
        _rules(
            Rule.GROUP_REMOVED_WITH_MEMBERS,
            Rule.MEMBER_REMOVED_WITH_ASSIGNMENT,
            Rule.TARGET_OF_TWO,
            Rule.TARGET_INCOMPLETE,
            Rule.INSTANCE_ID_OF_TWO,
            *OF_HASH,
        ),
    ),
    Mutation(
        "no epoch for who came or went",
        _drop(EPOCHS, _opens_for_member),
        _rules(Rule.JOIN_WITHOUT_EPOCH, Rule.DEPARTURE_WITHOUT_EPOCH, Rule.EPOCH_SKIPPED, Rule.ASSIGNMENT_EPOCH_AHEAD),
        _rules(Rule.MEMBER_EPOCH_AHEAD),
    ),
    Mutation("leader from elsewhere", _edit((2,), _with_members(_strange_leader)), _rules(Rule.LEADER_WITHOUT_MEMBER)),
    Mutation("no protocol", _edit((2,), _with_members(_no_protocol)), _rules(Rule.PROTOCOL_AGAINST_MEMBERS)),
    Mutation(
        "everyone has the same",
        _edit((2,), _with_members(_same_assignment_for_all)),
        _rules(Rule.ASSIGNED_TO_TWO),
        _rules(Rule.GENERATION_CHANGED_IN_PLACE, Rule.COMMIT_BY_NO_OWNER, Rule.OWNED_NOT_ASSIGNED),
    ),
    Mutation(
        "a partition twice in a classic assignment",
        _edit((2,), _with_members(_listed_twice)),
        _rules(Rule.UNIT_TWICE_IN_RECORD),
        _rules(Rule.GENERATION_CHANGED_IN_PLACE),
    ),
    Mutation(
        "one instance id",
        _edit((2,), _with_members(_same_instance)),
        _rules(Rule.INSTANCE_ID_OF_TWO),
        _rules(Rule.GENERATION_CHANGED_IN_PLACE),
    ),
    Mutation("a generation again", _generation_again, _rules(Rule.GENERATION_REPEATED)),
    Mutation(
        "generation lower",
        _edit((2,), _field("generation", lambda generation: generation - 2, 3)),
        _rules(Rule.GENERATION_WENT_BACK, Rule.GENERATION_CHANGED_IN_PLACE, Rule.CONVERSION_EPOCH_WRONG),
    ),
    Mutation(
        "a target partition of another",
        _edit((7, 21), _target_of_another),
        _rules(Rule.TARGET_OF_TWO),
        _rules(*OF_CONTENT, Rule.ASSIGNED_OUTSIDE_TARGET, Rule.REPLACEMENT_NOT_A_COPY),
    ),
    Mutation("revoking what it keeps", _edit(RECONCILED, _keep_revoking), _rules(Rule.ASSIGNED_WHILE_REVOKING)),
    Mutation("revoking what it never had", _edit(RECONCILED, _strange_revoking), _rules(Rule.REVOKING_NOT_OWNED)),
    Mutation("a later partition epoch", _edit(RECONCILED, _later_partition_epoch), _rules(Rule.PARTITION_EPOCH_WRONG)),
    Mutation(
        "no assignment for who came",
        _drop(CURRENTS, _joins),
        _rules(Rule.JOIN_WITHOUT_ASSIGNMENT),
        _rules(
            *OF_CONTENT,
            Rule.TOMBSTONE_WITHOUT_VALUE,
            Rule.REVOKING_NOT_OWNED,
            Rule.COMMIT_BY_NO_OWNER,
            Rule.PREVIOUS_EPOCH_WRONG,
        ),
    ),
    Mutation(
        "share state not initialised",
        _edit((13,), _strange_partition({13: "topicPartitions"})),
        _rules(Rule.SHARE_STATE_MISSING),
        _rules(Rule.ASSIGNED_NOT_THE_TARGET),
    ),
    Mutation(
        "less share state",
        _edit((15,), _less_share_state),
        _rules(Rule.SHARE_STATE_LOST),
        _rules(Rule.SHARE_STATE_MISSING),
    ),
    Mutation("another metadata hash", _edit(EPOCHS, _other_hash), _rules(Rule.METADATA_HASH_WRONG)),
    Mutation(
        "a regex that matches a topic that is not there",
        _edit((16,), _strange_topic),
        _rules(Rule.REGEX_TOPICS_WRONG),
        _rules(*OF_HASH),
    ),
    Mutation("a regex that loses a topic", _edit((16,), _lost_topic), _rules(Rule.REGEX_TOPIC_LOST), _rules(*OF_HASH)),
    Mutation(
        "no target record of a member",
        _drop(TARGETS, _first_target),
        _rules(Rule.TARGET_INCOMPLETE, Rule.REPLACEMENT_NOT_A_COPY),
        _rules(*OF_CONTENT, Rule.ASSIGNED_OUTSIDE_TARGET, Rule.TOMBSTONE_WITHOUT_VALUE),
    ),
    Mutation(
        "unknown subtopology",
        _edit((21,), _strange_subtopology),
        _rules(Rule.TASK_OUTSIDE_TOPOLOGY),
        _rules(*OF_CONTENT, Rule.ASSIGNED_OUTSIDE_TARGET),
    ),
    Mutation("no group of the new type", _drop((2, 3), _begins_after_conversion), _rules(Rule.TYPE_CHANGED_IN_PART)),
    Mutation("a commit of nobody's partition", _strange_commit, _rules(Rule.COMMIT_BY_NO_OWNER)),
    Mutation("a commit of nobody's topic", _commit_of_nobodys_topic, _rules(Rule.COMMIT_BY_NO_SUBSCRIBER)),
)


# --- Connect groups on KIP-848 ---------------------------------------------------------------------------------------


def _listed(value: Fields) -> Fields:
    """Return the first list of work in a record, which is made if there is none."""
    if not value["connectorsTasks"]:
        value["connectorsTasks"].append({"connectors": [], "tasks": []})
    listed: Fields = value["connectorsTasks"][0]
    return listed


def _strange_task(records: Records, index: int, value: Fields) -> bool:
    if value["memberEpoch"] <= 0:
        return False
    _listed(value)["tasks"].append({"connectorId": "strange", "taskId": 0})
    return True


def _takes_from_another(records: Records, index: int, value: Fields) -> bool:
    """A worker runs a task that another one runs."""
    if value["memberEpoch"] <= 0:
        return False
    for other in _others(records, index).values():
        for task in _listed(deepcopy(other))["tasks"]:
            _listed(value)["tasks"].append(task)
            return True
    return False


def _task_twice(records: Records, index: int, value: Fields) -> bool:
    tasks = _listed(value)["tasks"]
    tasks += tasks[:1]
    return bool(tasks)


def _in_a_target(edit: Callable[[list[Fields]], bool]) -> Callable[[Records, int, Fields], bool]:
    """Edit a target by the lists of those of its workers that have tasks."""
    return lambda records, index, value: edit([each for each in map(_listed, value["members"]) if each["tasks"]])


def _target_without_a_task(workers: list[Fields]) -> bool:
    return bool(workers and workers[0]["tasks"].pop())


def _target_with_a_strange_task(workers: list[Fields]) -> bool:
    for listed in workers[:1]:
        listed["tasks"].append({"connectorId": "strange", "taskId": 0})
    return bool(workers)


def _target_of_two_workers(workers: list[Fields]) -> bool:
    for listed in workers[1:2]:
        listed["tasks"].append(workers[0]["tasks"][0])
    return len(workers) > 1


def _keeps(records: Records, index: int) -> bool:
    """A worker says that it stopped something, and another one starts that before it says anything else."""
    key, before = records[index].key, [each for each in records[:index] if each.type == 7]
    mine = [each.value for each in before if each.key == key]
    if records[index].value is None or not mine or mine[-1] is None:
        return False
    stopped = [task for task in _tasks(mine[-1]) if task not in _tasks(records[index].value)]
    for each in records[index + 1 :]:
        if each.key == key or each.type == 6:
            return False
        if each.type == 7 and any(task in _tasks(each.value) for task in stopped):
            return True
    return False


def _tasks(value: Fields | None) -> list[Fields]:
    return [task for listed in (value or {"connectorsTasks": []})["connectorsTasks"] for task in listed["tasks"]]


def _begins(records: Records, index: int) -> bool:
    """A worker's first current assignment, of the operation in which it joined."""
    joins = index > 1 and records[index - 2].type == 5 and records[index - 2].batch == records[index].batch
    value = records[index].value
    return joins and value is not None and value["memberEpoch"] == 0 and not _known_before(records, index)


_AHEAD = _rules(Rule.ASSIGNMENT_EPOCH_AHEAD, Rule.MEMBER_EPOCH_AHEAD)
CONNECT_MUTATIONS = (
    Mutation(
        "group epoch skipped",
        _edit((3,), lambda records, index, value: _raised(value, "epoch", value["epoch"] > 1)),
        _rules(Rule.EPOCH_SKIPPED),
        _rules(Rule.EPOCH_WENT_BACK),
    ),
    Mutation(
        "no epoch for a worker that came or went",
        _drop((3,), _opens_for_member),
        _rules(Rule.JOIN_WITHOUT_EPOCH, Rule.DEPARTURE_WITHOUT_EPOCH),
        _AHEAD | _rules(Rule.EPOCH_SKIPPED),
    ),
    Mutation(
        "no current assignment for a worker that came",
        _drop((7,), _begins),
        _rules(Rule.JOIN_WITHOUT_ASSIGNMENT),
        _rules(Rule.TOMBSTONE_WITHOUT_VALUE),
    ),
    Mutation(
        "worker ahead of the target",
        _edit((7,), lambda records, index, value: _raised(value, "memberEpoch", value["memberEpoch"] > 0)),
        _rules(Rule.MEMBER_EPOCH_AHEAD_OF_TARGET),
        _rules(Rule.MEMBER_EPOCH_AHEAD, Rule.MEMBER_EPOCH_WENT_BACK),
    ),
    Mutation("work outside the target", _edit((7,), _strange_task), _rules(Rule.ASSIGNED_OUTSIDE_TARGET)),
    Mutation(
        "work of another worker",
        _edit((7,), _takes_from_another),
        _rules(Rule.ASSIGNED_TO_TWO, Rule.ASSIGNED_BEFORE_REVOKED),
        _rules(Rule.ASSIGNED_OUTSIDE_TARGET),
    ),
    Mutation(
        "work that was not yet stopped",
        _drop((7,), _keeps),
        _rules(Rule.ASSIGNED_BEFORE_REVOKED),
        _rules(Rule.WORK_UNASSIGNED),
    ),
    Mutation("a task twice in a record", _edit((7,), _task_twice), _rules(Rule.UNIT_TWICE_IN_RECORD)),
    Mutation(
        "a target without a task",
        _edit((6,), _in_a_target(_target_without_a_task)),
        _rules(Rule.WORK_UNASSIGNED, Rule.ASSIGNED_OUTSIDE_TARGET),
    ),
    Mutation(
        "a target with a strange task",
        _edit((6,), _in_a_target(_target_with_a_strange_task)),
        _rules(Rule.WORK_OUTSIDE_GROUP),
    ),
    Mutation(
        "a target that gives a task to two",
        _edit((6,), _in_a_target(_target_of_two_workers)),
        _rules(Rule.TARGET_OF_TWO),
    ),
)


def _raised(value: Fields, name: str, possible: bool) -> bool:
    value[name] += 100
    return possible
