"""Small tables of metadata logs and of records that name topics, in which rows that must not count would show.

Each store has, beside the rows that count, rows of another cluster, of other logs and types, and without a position,
each of which makes another answer if a relation takes it.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from coordinator_core.records import CONNECT_LOG, GROUP_LOG, Family, MetadataRecordType, RecordType
from coordinator_core.wire.control import SNAPSHOT_FOOTER, SNAPSHOT_HEADER, control_name
from coordinator_core.wire.record_codec import encode_key, encode_value
from jobs.relations.topics import OFFSETS_EXAMINED
from jobs.sources.files import METADATA_TOPIC, SNAPSHOT_SUFFIX
from tests.jobs.relations.tables_of_logs import CLUSTER, append

Row = dict[str, Any]

KNOWN: Final = "5J6Vb5ZiR3aDu5l2a3l1Ew"
"""The id of the topic that the metadata log has."""
STRANGE: Final = "9J6Vb5ZiR3aDu5l2a3l1Ew"
NAMES: Final = RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER
FAR: Final = 7 + OFFSETS_EXAMINED
"""The first offset behind those that are looked at for topic ids from 7 on."""
STORES: Final = ("strange", "two", "snapshots", "one snapshot", "late", "none")


def fill_topic_stores(folder: Path) -> dict[str, Path]:
    """Fill tables below a folder, and return where they are.

    ``strange``: the metadata log has no topic that groups name. ``two``: it has those of one log partition only.
    ``snapshots``: it begins with a snapshot and has a hole. ``one snapshot``: there is nothing else of it. ``late``: it
    has no beginning. ``none``: there is one of another cluster only.
    """
    stores = {
        "strange": {**_log_from_start(), "group_records": _strange_groups()},
        "two": {**_log_from_start(), "group_records": _groups_of_two()},
        "snapshots": {**_log_behind_snapshots(), "group_records": []},
        "one snapshot": {**_one_snapshot(), "group_records": []},
        "late": {**_late_log(), "group_records": []},
        "none": {**_other_log(), "group_records": []},
    }
    for name, tables in stores.items():
        for table, rows in {"quarantine": [], **tables}.items():
            append(folder / name, table, [{"cluster": CLUSTER, **row} for row in rows])
    return {name: folder / name for name in stores}


def _change(offset: int | None, kind: MetadataRecordType, fields: Mapping[str, Any], **given: Any) -> Row:
    """A row of ``cluster_records``, in a batch of its own and in the first run unless something else is given."""
    value = encode_value(kind, 0, fields, Family.METADATA)
    at = {"log_topic": METADATA_TOPIC, "log_partition": 0, "log_offset": offset, "batch_base": offset}
    return {"run_id": "run 1", "timestamp_ms": 1_000, **at, "record_type": int(kind), "value": value, **given}


def _id(letter: str) -> str:
    return f"{letter * 21}A"


def _topic(offset: int | None, name: str, topic_id: str, **given: Any) -> Row:
    return _change(offset, MetadataRecordType.TOPIC, {"name": name, "topicId": topic_id}, **given)


def _no_op(offset: int | None, **given: Any) -> Row:
    return _change(offset, MetadataRecordType.NO_OP, {}, **given)


def _naming(topic_id: str, partition: int | None, offset: int | None, **given: Any) -> Row:
    """A row of ``group_records`` that names a topic by its id; none where the id is empty."""
    key = encode_key(NAMES, {"groupId": "g", "memberId": "m"})
    value = encode_value(NAMES, 0, {"topicPartitions": [{"topicId": topic_id, "partitions": [0]}] if topic_id else []})
    at = {"log_topic": GROUP_LOG, "log_partition": partition, "log_offset": offset, "batch_base": offset}
    return {**at, "timestamp_ms": 2_000, "record_type": int(NAMES), "key": key, "value": value, **given}


def _naming_otherwise(topic_id: str, partition: int, offset: int) -> Row:
    """A record of a type that is not asked which topics a group has, though it has a topic's id."""
    key = encode_key(RecordType.OFFSET_COMMIT, {"group": "g", "topic": "t", "partition": 0})
    fields = {"offset": 1, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 1, "topicId": topic_id}
    value = encode_value(RecordType.OFFSET_COMMIT, 4, fields)
    return _naming(topic_id, partition, offset, record_type=int(RecordType.OFFSET_COMMIT), key=key, value=value)


def _not_counted(topic_id: str, partition: int, offset: int) -> list[Row]:
    """Records that name a topic and must not count."""
    return [
        _naming(topic_id, partition, offset, cluster="other"),
        _naming(topic_id, partition, offset, log_topic=CONNECT_LOG),
        _naming_otherwise(topic_id, partition, offset),
        _naming(topic_id, partition, None),
        _naming(topic_id, None, offset),
    ]


def _log_from_start() -> dict[str, list[Row]]:
    """A metadata log whose first record only says that the log has its beginning, and the topics stored of it."""
    log = [_no_op(0), _topic(1, "t", KNOWN), _no_op(2, timestamp_ms=9_000)]
    stored = [{"topic": "t", "topic_id": KNOWN}, {"topic": "s", "topic_id": STRANGE, "cluster": "other"}]
    return {"cluster_records": log, "log_records": [*_in_log(log)], "topic_history": stored}


def _in_log(log: Iterable[Row]) -> Iterator[Row]:
    """Rows of ``log_records`` of these records."""
    names = ("cluster", "run_id", "log_topic", "log_partition", "log_offset", "timestamp_ms", "stray")
    for row in log:
        yield {"kind": "record", **{name: row[name] for name in names if name in row}}


def _strange_groups() -> list[Row]:
    return [_naming(STRANGE, 0, 5), _naming(STRANGE, 0, 9), *_not_counted(KNOWN, 0, 5)]


def _groups_of_two() -> list[Row]:
    """Partition 0 names the topic of the metadata log, partition 1 one that it does not have, until far behind."""
    return [
        _naming("", 0, 4),
        _naming(KNOWN, 0, 5),
        _naming(STRANGE, 1, 7),
        _naming(KNOWN, 1, FAR),
        _naming(STRANGE, 1, 3, value=None),
        *_not_counted(KNOWN, 0, 5),
        *_not_counted(KNOWN, 1, 7),
        *_not_counted(KNOWN, 1, 2),
    ]


def _file(end: int) -> str:
    return f"{end:020}-0000000001{SNAPSHOT_SUFFIX}"


def _snapshot(end: int, topic: str, **given: Any) -> list[Row]:
    """The records in a snapshot: a topic that tells it from others."""
    return [_topic(None, topic, KNOWN, stray=f"{_file(end)}#1", place=1, **given)]


def _ends(end: int, kinds: Iterable[int] = (SNAPSHOT_HEADER, SNAPSHOT_FOOTER), **given: Any) -> list[Row]:
    """The control records of a snapshot; its header has the time of its last record."""
    of_log = {"run_id": "run 1", "log_topic": METADATA_TOPIC, "log_partition": 0, "kind": "control", **given}
    values = {SNAPSHOT_HEADER: b"\0\0" + (end * 10).to_bytes(8, "big") + b"\0", SNAPSHOT_FOOTER: b"\xff"}
    return [
        {**of_log, "stray": f"{_file(end)}#{kind}", "control_type": control_name(kind), "value": values[kind]}
        for kind in kinds
    ]


def _log_behind_snapshots() -> dict[str, list[Row]]:
    """Of the snapshots 80 ends before the log begins, 120 has no footer, 130 has a record that cannot be decoded, and
    of 140 nothing was decoded; 150 is that from which the log goes on, 160 a later one.
    """
    first, second = {"run_id": "run 1"}, {"run_id": "run 2"}
    log = [
        _no_op(100, timestamp_ms=600, **first),
        _topic(101, "a", _id("A"), timestamp_ms=1_200, **first),
        _no_op(102, timestamp_ms=1_100, batch_base=101, **first),
        _topic(103, "b", _id("B"), timestamp_ms=1_300, **first),
        _no_op(105, timestamp_ms=10_000, **second),
        _topic(106, "c", _id("C"), timestamp_ms=11_000, **second),
        _topic(151, "d", _id("D"), timestamp_ms=15_000, **second),
    ]
    other = [_topic(offset, "x", _id("X"), cluster="other", timestamp_ms=500) for offset in range(100, 160)]
    snapshots = [row for end in (80, 120, 130, 150, 160) for row in _snapshot(end, f"of {end}", **second)]
    snapshots += _snapshot(140, "of 140", cluster="other") + _snapshot(150, "other's", cluster="other")
    ends = [*_ends(80), *_ends(120, (SNAPSHOT_HEADER,)), *_ends(130), *_ends(140), *_ends(150), *_ends(160, **second)]
    ends += [
        *_ends(120, (SNAPSHOT_FOOTER,), cluster="other"),
        *_in_log(row for row in snapshots if row["run_id"] == "run 2"),
    ]
    before = [{**row, "log_offset": 10, "timestamp_ms": 1} for row in _in_log([other[0]])]
    groups = [
        {"kind": "record", "log_topic": GROUP_LOG, "log_partition": 0, "log_offset": at % 60 + 100} for at in range(180)
    ]
    unreadable = [{"stray": f"{_file(130)}#2"}, {"stray": f"{_file(150)}#2", "cluster": "other"}, {"log_offset": 3}]
    return {
        "cluster_records": [*log, *other, *snapshots],
        "log_records": [*_in_log([*log, *other, *other, *other]), *ends, *before, *groups],
        "quarantine": unreadable,
        "topic_history": [],
    }


def _one_snapshot() -> dict[str, list[Row]]:
    stray = [_no_op(None, stray="a dump#1")]
    snapshot = [*stray, *_snapshot(150, "t")]
    return {"cluster_records": snapshot, "log_records": _ends(150), "topic_history": []}


def _late_log() -> dict[str, list[Row]]:
    """More records than the first ones, which tell where the log begins; the last one has the last time."""
    log = [_no_op(50, timestamp_ms=5_000), _topic(51, "t", KNOWN, timestamp_ms=5_100)]
    log += [_no_op(offset, batch_base=51, timestamp_ms=5_100 + offset) for offset in range(52, 200)]
    stray = [_topic(None, "t", KNOWN, stray="a dump#1", timestamp_ms=3)]
    rows = [*log, *stray, *_others_log()]
    return {"cluster_records": rows, "log_records": [*_in_log(log)], "topic_history": []}


def _other_log() -> dict[str, list[Row]]:
    return {"cluster_records": _others_log(), "log_records": [*_in_log(_others_log())], "topic_history": []}


def _others_log() -> list[Row]:
    """A metadata log of another cluster, from its start, of later times."""
    return [_topic(0, "x", _id("X"), cluster="other", timestamp_ms=999_000)]
