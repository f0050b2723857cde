"""Changes of logs: of bytes, of whole batches and of fields of records, with right CRCs after the latter two."""

import random
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from coordinator_core.errors import CoordinatorAuditError
from coordinator_core.records import LOG_TOPICS, Family, Fields, RecordType
from coordinator_core.wire.batch_records import LogRecord
from coordinator_core.wire.batch_writer import NewRecord, Producer, encode_batch, frame
from coordinator_core.wire.batches import read_rows
from coordinator_core.wire.compression import compress
from coordinator_core.wire.embedded import AnyBlob, decode_assignment, decode_subscription, encode_blob
from coordinator_core.wire.record_codec import DecodedRecord, decode_record
from tests.core.wire.encoded import encode_record
from tests.core.wire.other_batches import encode_marker_batch
from tests.core.wire.samples import sample_records
from tests.core.wire.test_mutations import mutated
from tests.fuzz.samples import Logs, batch_starts

NUMBERS = (
    *(-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 127, 128, 255, 1000, 9_999, 10_001, 99_999, 1_000_001),
    *(2**15 - 1, 2**15, 2**16 - 1, 2**31 - 1, 2**31 - 2, 2**30, 2**40, 2**62, 2**63 - 1, 10**12, 4 * 10**12),
)
"""Numbers at the edges of Java's types, and of what somebody may have made a limit of."""

FEW = (-2, -1, 0, 1, 2, 3, 5, 17, 255)
MANY = 0.05
"""The share of counts that become any number: what they count is made, which takes its time."""

NAMES = (
    *("", " ", "-", ".", "..", "a/b", "../../x", "a'b", 'a"b', "<script>alert(1)</script>", "a\x00b", "a\nb"),
    *("\x1b[31mx", "a\u202eb", "\u2066x\u2069", "\ufeffx", "\x9bx", "\U0001f600", "a:b", "a@b", "a-0", "a" * 300),
    *("(", "[", "(a+)+$", "x", "-1", "1e9", "2147483647", "9" * 20, "9" * 5000, "NaN", "true", "\u0660", "1\u0662"),
)

FAMILIES = {topic: family for family, topic in LOG_TOPICS.items()}

MOST_OFFSET = 2**62
"""Above it batches cannot be written; an earlier change may have left any offset."""

RECORDS_OF_A_BATCH = 100_000
"""How many records a batch of records without content has."""

MOST_VALUES = 100_000
"""So many values a changed record has at most: lists within lists may each have become 300 times as long."""


def mutate(logs: Logs, choose: random.Random) -> tuple[Logs, str]:
    """Return changed logs, and what was done to them."""
    changed = dict(logs)
    done = []
    for _ in range(choose.choice((1, 1, 1, 2, 4))):
        groups = [name for name in changed if changed[name] and family_of(name) is not Family.METADATA]
        name = choose.choice(groups if groups and choose.random() < 0.85 else list(changed))
        kind: Callable[[bytes, Family, random.Random], bytes] = choose.choices(
            (_of_fields, _of_records, _of_types, _of_batches, _of_bytes), (60, 12, 12, 8, 8)
        )[0]
        changed[name] = kind(changed[name], family_of(name), choose)
        done.append(f"{kind.__name__} {name}")
    return changed, "; ".join(done)


def family_of(name: str) -> Family:
    """Return the kind of log of a file, from its folder."""
    return FAMILIES[name.split("/")[-2].rpartition("-")[0]]


def _of_bytes(data: bytes, family: Family, choose: random.Random) -> bytes:
    """Bytes flipped, cut, doubled or overwritten anywhere in the file: most of them break a CRC."""
    return mutated(data, choose)


def _of_fields(data: bytes, family: Family, choose: random.Random) -> bytes:
    """Some fields of the records of one to three batches, each with a right CRC."""

    def change(records: list[LogRecord]) -> list[LogRecord]:
        at = choose.randrange(len(records))
        return [*records[:at], changed_record(records[at], family, choose), *records[at + 1 :]]

    for _ in range(choose.randint(1, 3)):
        data = _with_batch(data, choose, change)
    return data


def _of_records(data: bytes, family: Family, choose: random.Random) -> bytes:
    """Whole records left out, doubled, put elsewhere, of another time, or of another log."""

    def change(records: list[LogRecord]) -> list[LogRecord]:
        at = choose.randrange(len(records))
        record = records[at]
        match choose.randrange(6):
            case 0:
                records = records[:at] + records[at + 1 :] or records
            case 1:
                records = records[: at + 1] + records[at:]
            case 2:
                records = choose.sample(records, len(records))
            case 3:
                records[at] = record._replace(timestamp=choose.choice(NUMBERS))
            case 4:
                records[at] = record._replace(value=None)
            case _:
                foreign = choose.choice(
                    [each for each in sample_records() if each.family is family] or sample_records()
                )
                fields = _in_group(foreign.key, record, family)
                records.insert(at, record._replace(key=fields, value=foreign.value))
        return records

    return _with_batch(data, choose, change)


def _of_types(data: bytes, family: Family, choose: random.Random) -> bytes:
    """Records of groups of other types under the id of a group: each alone may be right, together they are not."""
    return _with_batch(data, choose, lambda records: with_other_types(records, family, choose))


def with_other_types(records: list[LogRecord], family: Family, choose: random.Random) -> list[LogRecord]:
    """The records of a group, and after one of them up to four of groups of other types under its id."""
    samples = [each for each in sample_records() if each.family is family]
    at, mixed = choose.randrange(len(records)), list(records)
    for foreign in choose.choices(samples, k=choose.randint(1, 4)) if samples else ():
        key = _in_group(foreign.key, records[at], family)
        mixed.insert(choose.randint(at, len(mixed)), records[at]._replace(key=key, value=foreign.value))
    return mixed


def _in_group(key: bytes | None, record: LogRecord, family: Family) -> bytes | None:
    """The key of another record with the group of this one, where both have one."""
    try:
        mine, foreign = (decode_record(each, None, family) for each in (record.key, key))
        group = mine.key.get("groupId", mine.key.get("group"))
        name = "groupId" if "groupId" in foreign.key else "group"
        if group is not None and name in foreign.key:
            foreign.key[name] = group
        return encode_record(foreign, family)[0]
    except CoordinatorAuditError:
        return key


def _of_batches(data: bytes, family: Family, choose: random.Random) -> bytes:
    """Batches left out, doubled, swapped, far away, compressed, of very many records, or of other kinds."""
    starts = [*batch_starts(data)]
    if not starts:
        return data
    parts = [data[low:high] for low, high in zip(starts, [*starts[1:], len(data)], strict=True)]
    at = choose.randrange(len(parts))
    offset = int.from_bytes(parts[at][:8], "big") % MOST_OFFSET
    match choose.randrange(8):
        case 0:
            del parts[at]
        case 1:
            parts.insert(at, parts[at])
        case 2:
            choose.shuffle(parts)
        case 3:
            parts[at] = (choose.choice(NUMBERS) % 2**56).to_bytes(8, "big") + parts[at][8:]
        case 4:
            parts[at] = _many_records(offset, choose)
        case 5:
            producer = Producer(choose.choice((-1, 0, 1, 2**62)), choose.choice((-1, 0, 2**15 - 1)), -1)
            marker = choose.choice((0, 1, 2, 5))
            parts[at] = encode_marker_batch(marker, 0, offset=offset, timestamp=0, producer=producer)
        case 6:
            del parts[: at + 1]
        case _:
            count = choose.choice([number for number in NUMBERS if abs(number) < 2**31])
            times = choose.choice(NUMBERS), choose.choice(NUMBERS)
            delta = max(count - 1, 0)
            parts[at] = frame(
                parts[at][61:], base_offset=offset, last_offset=offset + delta, count=count,
                base_timestamp=times[0], max_timestamp=times[1], attributes=choose.randrange(128),
            )  # fmt: skip
    return b"".join(parts)


def _many_records(offset: int, choose: random.Random) -> bytes:
    """A batch of very many records without content, compressed to almost nothing; the deltas are all 0 or all 1."""
    count = choose.choices((10, 1000, RECORDS_OF_A_BATCH), (60, 38, 2))[0]
    one = bytes((12, 0, 0, choose.choice((0, 2)), 1, 1, 0))
    return frame(
        compress(4, one * count), base_offset=offset, last_offset=offset + count - 1, count=count,
        base_timestamp=0, max_timestamp=0, attributes=4,
    )  # fmt: skip


def _with_batch(data: bytes, choose: random.Random, change: Callable[[list[LogRecord]], list[LogRecord]]) -> bytes:
    """The file with one batch of it changed and written again, in place."""
    starts = [*batch_starts(data)]
    if not starts:
        return data
    at = choose.choice(starts)
    end = min(at + 12 + int.from_bytes(data[at + 8 : at + 12], "big"), len(data))
    batch = data[at:end]
    try:
        rows = list(read_rows(lambda position, size: batch[position : position + size], len(batch)))
        records = [row for row in rows if isinstance(row, LogRecord)]
        if not records or len(records) > 10_000:
            return data
        header = records[0].batch
        written = change(records)
        new = [
            NewRecord(each.offset if each.offset >= 0 else header.base_offset, each.timestamp, each.key, each.value)
            for each in written
        ]
        producer = Producer(header.producer_id, header.producer_epoch, header.base_sequence)
        made = encode_batch(
            new,
            compression=choose.choice(("none", "none", "gzip", "snappy", "lz4", "zstd")),
            leader_epoch=header.leader_epoch,
            producer=producer,
            transactional=header.is_transactional,
            control=header.is_control,
        )
    except (CoordinatorAuditError, OverflowError, ValueError):
        return data
    return data[:at] + made + data[end:]


def changed_record(record: LogRecord, family: Family, choose: random.Random) -> LogRecord:
    """The record with one to three fields of its key or value changed; as bytes if it cannot be decoded."""
    try:
        decoded = decode_record(record.key, record.value, family)
    except CoordinatorAuditError:
        return record._replace(value=mutated(record.value or b"", choose))
    for _ in range(20):
        fields = _copy(decoded.value) if decoded.value and choose.random() < 0.9 else None
        key = decoded.key if fields is not None else _copy(decoded.key)
        for _ in range(choose.randint(1, 3)):
            _change_one(fields if fields is not None else key, decoded, choose)
        if sum(1 for _ in islice(_values(fields), MOST_VALUES)) == MOST_VALUES:
            continue
        try:
            new = encode_record(decoded._replace(key=key, value=fields or decoded.value), family)
        except (CoordinatorAuditError, OverflowError):
            continue
        return record._replace(key=new[0], value=new[1])
    return record._replace(value=mutated(record.value or b"", choose))


def _change_one(fields: Fields, decoded: DecodedRecord, choose: random.Random) -> None:
    """Change one field, however deep it lies; often one that counts something."""
    counts = list(_counts(fields))
    if counts and choose.random() < 0.3:
        within, name = choose.choice(counts)
        within[name] = choose.choice(NUMBERS if choose.random() < MANY else FEW)
        return
    within: Any = fields
    while True:
        names = list(within) if isinstance(within, dict) else range(len(within))
        if not names:
            return
        name = choose.choice(list(names))
        inner = within[name]
        if isinstance(inner, dict | list) and inner and choose.random() < 0.8:
            within = inner
            continue
        within[name] = _other(inner, name, within, decoded, choose)
        return


def _counts(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield where numbers of partitions, tasks and the like lie."""
    names = range(len(value)) if isinstance(value, list) else list(value)
    for name in names:
        inner = value[name]
        if isinstance(inner, dict | list):
            yield from _counts(inner)
        elif isinstance(inner, int) and (isinstance(name, int) or "artition" in name or "task" in name.lower()):
            yield value, name


def _other(value: Any, name: Any, within: Any, decoded: DecodedRecord, choose: random.Random) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return choose.choice((*NUMBERS, value + 1, value - 1))
    if isinstance(value, str):
        return choose.choice((*NAMES, value + "x"))
    if isinstance(value, bytes):
        return _other_blob(value, name, within, decoded, choose)
    if isinstance(value, list):
        match choose.randrange(4):
            case 0:
                return []
            case 1:
                return value * choose.choice((2, 300))
            case 2:
                return value[:-1]
            case _:
                return value[::-1]
    return None


def _other_blob(data: bytes, name: Any, within: Any, decoded: DecodedRecord, choose: random.Random) -> bytes:
    """A blob of a classic member with other fields, or with other bytes."""
    if decoded.type == RecordType.GROUP_METADATA and decoded.value and choose.random() < 0.85:
        kind, protocol = decoded.value.get("protocolType") or "", decoded.value.get("protocol")
        decode = decode_assignment if name == "assignment" else decode_subscription
        try:
            blob = decode(kind, protocol, data)
            if blob is not None:
                return _other_fields(blob, decoded, choose)
        except (CoordinatorAuditError, OverflowError):
            pass
    return mutated(data, choose)


def _other_fields(blob: AnyBlob, decoded: DecodedRecord, choose: random.Random) -> bytes:
    fields = _copy(blob.fields)
    if blob.nested is not None and choose.random() < 0.5:
        outer = next(name for name, value in fields.items() if isinstance(value, bytes) and value)
        fields[outer] = _other_fields(blob.nested, decoded, choose)
    else:
        _change_one(fields, decoded._replace(value=None), choose)
    return encode_blob(blob.message, blob.version, fields)


def _values(value: Any) -> Iterator[Any]:
    """Yield every value, however deep it lies."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _values(inner)
    else:
        yield value


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy(each) for name, each in value.items()}
    return [_copy(each) for each in value] if isinstance(value, list) else value
