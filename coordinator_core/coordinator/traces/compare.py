"""Equality of two results of a coordinator's operation: orders that the protocol leaves open do not count."""

import json
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from coordinator_core.errors import DecodeError
from coordinator_core.records import CoordinatorRecord, Fields, RecordType
from coordinator_core.wire.embedded import decode_blob
from coordinator_core.wire.record_codec import decode_record

_MEMBER_TOMBSTONES = {
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: 0,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: 1,
    RecordType.CONSUMER_GROUP_MEMBER_METADATA: 2,
}
_RECORD_ORDER = frozenset(("supportedProtocols", "topics", "subscribedTopicNames"))
"""Lists in records whose order a coordinator decides or passes on; all others are in the order of a hash map."""
_ASSIGNMENTS = frozenset(("assignment", "memberAssignment"))


class ComparedRecord(NamedTuple):
    """A record for comparison: type, key and value as plain JSON values."""

    type: int
    key: object
    version: int | None
    value: object


class Difference(NamedTuple):
    """One part of a step in which the model differs: the expected result, and that of the model."""

    part: str
    expected: Any
    actual: Any


def written(record: CoordinatorRecord) -> ComparedRecord:
    """Return a record of the model."""
    return ComparedRecord(int(record.type), plain(record.key), record.value_version, plain(record.value))


def recorded(record: Fields) -> ComparedRecord:
    """Return a record of a trace from its JSON."""
    return ComparedRecord(record["key_type"], record["key"], record["value_version"], record["value"])


def recorded_bytes(record: Fields) -> ComparedRecord:
    """Return a record of a trace from its bytes; raises DecodeError."""
    value = None if record["value_hex"] is None else bytes.fromhex(record["value_hex"])
    decoded = decode_record(bytes.fromhex(record["key_hex"]), value)
    return ComparedRecord(decoded.type, plain(decoded.key), decoded.value_version, plain(decoded.value))


def plain(value: object) -> object:
    """Return the value with bytes as base64, as in Kafka's JSON."""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(element) for element in value]
    return value


def same_records(actual: Sequence[ComparedRecord], expected: Sequence[ComparedRecord]) -> bool:
    """Whether the kinds of records are in the same order, and within one kind the same records in any order."""
    return list(_kinds(actual)) == list(_kinds(expected))


def _kinds(records: Sequence[ComparedRecord]) -> Iterator[tuple[object, list[str]]]:
    """Runs of records of one kind, each as a sorted list; a member's three tombstones are one thing."""
    for kind, run in groupby(_things(records), key=lambda thing: thing[0]):
        yield kind, sorted(text for _, text in run)


def _things(records: Sequence[ComparedRecord]) -> Iterator[tuple[object, str]]:
    at = 0
    while at < len(records):
        record = records[at]
        trio = records[at : at + 3]
        if [_MEMBER_TOMBSTONES.get(RecordType(tombstone.type)) for tombstone in trio if tombstone.type in _KNOWN] == [
            0,
            1,
            2,
        ] and all(tombstone.value is None and tombstone.key == record.key for tombstone in trio):
            yield "member tombstones", canonical_text(record.key)
            at += 3
        else:
            kind = record.type, record.value is None
            yield kind, canonical_text([record.key, record.version, record.value], _RECORD_ORDER)
            at += 1


_KNOWN = frozenset(RecordType)


def same(actual: object, expected: object) -> bool:
    """Whether two answers or snapshots are the same."""
    return canonical_text(plain(actual)) == canonical_text(expected)


def canonical_text(value: object, ordered: Collection[str] = ()) -> str:
    """Return the value as text, with all lists sorted but the ``ordered`` ones."""
    return json.dumps(_canonical(value, "", ordered), sort_keys=True)


def _canonical(value: object, name: str, ordered: Collection[str]) -> Any:
    if isinstance(value, dict):
        if "partitions" in value and "assignmentEpochs" in value:
            value = _paired(value)
        return {key: _canonical(each, key, ordered) for key, each in value.items()}
    if isinstance(value, list):
        elements = [_canonical(element, name, ordered) for element in value]
        return (
            elements if name in ordered else sorted(elements, key=lambda element: json.dumps(element, sort_keys=True))
        )
    if name in _ASSIGNMENTS and isinstance(value, str) and value:
        return _consumer_assignment(value)
    return value


def shown(expected: object, actual: object) -> list[str]:
    """Return the differences, one per line: ``-`` is expected and missing, ``+`` is not expected."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return [
            f"{name}: {line}"
            for name in dict.fromkeys((*expected, *actual))
            if canonical_text(expected.get(name)) != canonical_text(actual.get(name))
            for line in shown(expected.get(name), actual.get(name))
        ]
    wanted, given = _elements(expected), _elements(actual)
    lines = [f"- {line}" for line in wanted if line not in given] + [
        f"+ {line}" for line in given if line not in wanted
    ]
    return lines or ["the same in another order"]


def _elements(value: object) -> list[str]:
    return [canonical_text(each) for each in (value if isinstance(value, list) else [value])]


def _paired(value: Fields) -> Fields:
    """Partitions and their epochs are two parallel lists; as pairs they can be put in order."""
    epochs = value["assignmentEpochs"]
    pairs = value["partitions"] if epochs is None else list(zip(value["partitions"], epochs, strict=False))
    rest = {key: each for key, each in value.items() if key not in ("partitions", "assignmentEpochs")}
    return {**rest, "pairs": sorted(pairs)}


def _consumer_assignment(text: str) -> object:
    try:
        blob = decode_blob("ConsumerProtocolAssignment", b64decode(text))
    except (DecodeError, ValueError):
        return text
    return {"version": blob.version, **_canonical(plain(blob.fields), "", ())}
