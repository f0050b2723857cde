"""Descriptions of groups that rest on a part of the log, held against those of the whole log."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from coordinator_core.groups.describe import POSSIBLY_THERE, Description

Described = dict[str, Description]
"""By group id."""

ABOUT_CERTAINTY = (
    "certainty",
    "unknownFields",
    "unnamedTopics",
    "topicsInDoubt",
    "unknownMembers",
    "unknownOffsets",
    "incompleteLists",
    "stateAsOf",
)


def wrong_certainties(said: Described, true: Described, *, lists_all: bool) -> Iterator[tuple[str, str]]:
    """What is said and is not so, as a kind and where."""
    for group_id in sorted(said.keys() | true.keys()):
        if group_id not in said:
            if lists_all:
                yield "group not listed", group_id
        elif group_id not in true:
            if said[group_id]["certainty"] != POSSIBLY_THERE:
                yield "group that was not there", group_id
        else:
            yield from _wrong(said[group_id], true[group_id], group_id)


def _wrong(said: Description, true: Description, path: str) -> Iterator[tuple[str, str]]:
    incomplete, unknown_offsets = said["incompleteLists"], set(said["unknownOffsets"])
    for part in said:
        if part in ABOUT_CERTAINTY:
            continue
        if part in ("offsets", "offsets_stable"):
            yield from _wrong_offsets(part, said, true, unknown_offsets, is_whole=part not in incomplete, path=path)
            continue
        if part == "settings" and said[part] is None:
            continue  # not known: in truth the group may have none of its own
        if part not in true:
            yield part, f"{path}: in truth a group of another type"
            continue
        if part == "settings":
            if said[part] != true[part]:
                yield part, f"{path}: {said[part]}, in truth {true[part]}"
            continue
        if isinstance(said[part], list):
            is_whole = part not in incomplete and "share_offsets" not in said["unknownFields"]
            yield from _wrong_partitions(part, said, true, is_whole=is_whole, path=path)
            continue
        for name, value in said[part].items():
            if name == "members" and isinstance(value, list):
                yield from _wrong_members(said, value, true[part]["members"], path=f"{path}.{part}")
            elif value is not None and not _agrees(value, true[part].get(name)):
                yield f"{part}.{name}", f"{path}: {value}, in truth {true[part].get(name)}"


def _agrees(said: Any, true: Any) -> bool:
    """Whether a value is the true one, or has nulls in its place: the counts of internal topics may be unknown."""
    if isinstance(said, dict) and isinstance(true, dict) and said.keys() == true.keys():
        return all(_agrees(each, true[name]) for name, each in said.items())
    if isinstance(said, list) and isinstance(true, list) and len(said) == len(true):
        return all(map(_agrees, said, true))
    return said is None or said == true


def _wrong_partitions(
    part: str, said: Description, true: Description, *, is_whole: bool, path: str
) -> Iterator[tuple[str, str]]:
    """Of share partitions; what is not known is null or ``unknown``, and then nothing is counted."""
    mine, theirs = ({(each["topic"], each["partition"]): each for each in of[part]} for of in (said, true))
    for key, row in mine.items():
        for name, value in row.items():
            if value not in (None, [], "unknown") and value != theirs.get(key, {}).get(name):
                yield f"{part}.{name}", f"{path} {key}: {value}, in truth {theirs.get(key)}"
    if is_whole and theirs.keys() - mine.keys():
        yield f"{part} not listed", f"{path}: {sorted(theirs.keys() - mine.keys())}"


def _wrong_offsets(
    part: str, said: Description, true: Description, unknown: set[str], *, is_whole: bool, path: str
) -> Iterator[tuple[str, str]]:
    mine, theirs = said[part], true.get(part) or {}
    if mine is None:
        return
    for name, value in mine.items():
        if name not in theirs or theirs[name] != value:
            yield part, f"{path}.{name}: {value}, in truth {theirs.get(name, 'none')}"
    missed = theirs.keys() - mine.keys() - unknown
    if missed and is_whole:
        yield f"{part} not listed", f"{path}: {sorted(missed)}"


def _wrong_members(
    said: Description, mine: list[Description], theirs: list[Description], path: str
) -> Iterator[tuple[str, str]]:
    known = {member_id(each): each for each in theirs}
    for member in mine:
        true = known.pop(member_id(member), None)
        if true is None:
            yield "member that was not there", f"{path} {member_id(member)}"
            continue
        for name, said_value in member.items():
            value = _without_gone(said, said_value, true.get(name))
            if value not in (None, {}) and value != true[name]:
                yield f"member.{name}", f"{path} {member_id(member)}: {value}, in truth {true[name]}"
    missed = known.keys() - set(said["unknownMembers"])
    if missed and "members" not in said["incompleteLists"]:
        yield "member not listed", f"{path}: {sorted(missed)}"


def member_id(member: Description) -> str:
    member_id: str = member.get("consumerId") or member.get("memberId") or ""
    return member_id


# --- needlessly unknown ----------------------------------------------------------------------------------------------

EPOCH, TARGET_EPOCH, METADATA, TARGET, CURRENT = ({3, 11, 17}, {6, 12, 20}, {5, 10, 19}, {7, 13, 21}, {8, 14, 22})


@dataclass
class KeyRecords:
    """The offsets of the records of one key, and which of them are tombstones."""

    offsets: list[int] = field(default_factory=list)
    tombstones: list[bool] = field(default_factory=list)
    is_transactional: bool = False


class KeyedRecord(NamedTuple):
    """An offset of a log that is there; ``key`` is None for the end of a transaction."""

    partition: int
    offset: int
    type: int = -1
    key: Description | None = None
    is_tombstone: bool = False
    is_transactional: bool = False


class Rule:
    """What the rule proves of the keys of a compacted log: see ``coordinator_core.groups.certainty``.

    It is computed here a second time, from the offsets alone.
    """

    def __init__(self, records: Iterable[KeyedRecord]) -> None:
        self._keys: dict[int, dict[tuple[str, int, str], KeyRecords]] = {}
        self._offsets: dict[int, list[int]] = {}
        for record in records:
            self._offsets.setdefault(record.partition, []).append(record.offset)
            if record.key is None:
                continue
            keys = self._keys.setdefault(record.partition, {})
            known = keys.setdefault(_about(record.type, record.key), KeyRecords())
            known.offsets.append(record.offset)
            known.tombstones.append(record.is_tombstone)
            known.is_transactional |= record.is_transactional

    @property
    def partitions(self) -> list[int]:
        return sorted(self._offsets)

    def end(self, partition: int) -> int:
        return self._offsets[partition][-1] + 1

    def there(self, partition: int, end: int) -> Iterator[tuple[str, int, str]]:
        """The keys that were there for certain."""
        offsets = self._offsets[partition]
        for of, records in self._keys[partition].items():
            index = bisect_left(records.offsets, end)
            if index == 0 or records.tombstones[index - 1] or (of[1] <= 1 and records.is_transactional):
                continue
            last = records.offsets[index - 1]
            is_whole = bisect_left(offsets, end) - bisect_left(offsets, last) == end - last
            if is_whole or index == len(records.offsets):
                yield of


def _about(record_type: int, key: Description) -> tuple[str, int, str]:
    """Group, record type, and the member, expression or partition that a key is about."""
    about = key.get("memberId") or key.get("regularExpression") or ""
    if "topic" in key:
        about = f"{key['topic']}-{key['partition']}"
    return key.get("groupId", key.get("group")), int(record_type), about


def needlessly_unknown(said: Described, there: Iterable[tuple[str, int, str]]) -> Iterator[tuple[str, str]]:
    """What the rule proves and is not said, as a kind and where."""
    for group_id, record_type, about in there:
        group = said.get(group_id)
        where = f"{group_id} {about}"
        if group is None or group["certainty"] == POSSIBLY_THERE:
            yield "group", where
        elif record_type <= 1:
            if "offsets" in group and about not in group["offsets"]:
                yield "offset", where
        elif group["listing"]["type"] is None:
            yield "type", where
        elif record_type in EPOCH | TARGET_EPOCH:
            name = "groupEpoch" if record_type in EPOCH else "targetAssignmentEpoch"
            if _own(group)[name] is None:
                yield name, where
        elif record_type in METADATA | TARGET | CURRENT:
            member = next((each for each in _own(group)["members"] if member_id(each) == about), None)
            names = {frozenset(METADATA): "clientId", frozenset(TARGET): "targetAssignment"}
            name = next((name for types, name in names.items() if record_type in types), "assignment")
            if member is None:
                if record_type not in TARGET:  # a target does not prove its member
                    yield "member", where
            elif name in member and member[name] is None:
                yield name, where


def _own(group: Description) -> Description:
    own: Description = next(
        group[part] for part in ("describe_consumer", "describe_share", "describe_streams") if part in group
    )
    return own


def _without_gone(said: Description, value: object, true: object) -> object:
    """Return an assignment without partitions that the truth lacks, of topics that may be gone as the answer says."""
    if not (isinstance(value, dict) and isinstance(true, dict) and "topicPartitions" in value):
        return value
    may_be_gone = {*said.get("unnamedTopics", ()), *said.get("topicsInDoubt", ())}
    there = true.get("topicPartitions") or ()
    kept = [each for each in value["topicPartitions"] if each in there or each.rpartition("-")[0] not in may_be_gone]
    return value | {"topicPartitions": kept}
