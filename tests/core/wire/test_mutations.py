"""Real records with flipped, cut, doubled and overwritten bytes: only errors of the tree, and both decoders agree."""

import random

import pyarrow as pa
import pytest

from coordinator_core.errors import DecodeError
from coordinator_core.records import Family, Fields
from coordinator_core.wire.arrow_types import message_type, to_arrow
from coordinator_core.wire.batch_decode import Decoded, decode_keys, decode_values
from coordinator_core.wire.embedded import decode_assignment, decode_subscription
from coordinator_core.wire.record_codec import decode_key, decode_metadata, decode_value
from coordinator_core.wire.schema import record_schemas
from tests.core.wire.samples import RawRecord, sample_records

BATCH = 5_000

HOSTILE = [b"\xff" * 10, b"\x7f\xff\xff\xff", b"\x80\x80\x80\x80\x10", b"\x00", b"\x80\x00", b"\xff\xff\xff\xff\x0f"]
"""Lengths and counts that cannot be meant, overlong varints, a broken text."""


def mutated(data: bytes, choose: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(choose.randint(1, 3)):
        at = choose.randrange(len(changed) + 1)
        match choose.randrange(6):
            case 0 if at < len(changed):
                changed[at] ^= 1 << choose.randrange(8)
            case 1 if at < len(changed):
                changed[at] = choose.randrange(256)
            case 2:
                del changed[at:]
            case 3:
                del changed[at : at + choose.randint(1, 4)]
            case 4:
                changed[at:at] = changed[at : at + choose.randint(1, 8)]
            case _:
                hostile = choose.choice(HOSTILE)
                changed[at : at + choose.choice((0, len(hostile)))] = hostile
    return bytes(changed)


def check_columns(decoded: Decoded, plain: dict[int, Fields | str], family: Family, *, keys: bool) -> None:
    """``plain`` is what the plain decoder says of each row: fields, or the text of its error."""
    seen = set(decoded.errors)
    for row, error in decoded.errors.items():
        assert str(error) == plain[row]
    for number, group in decoded.groups.items():
        schema = record_schemas(family)[number]
        message = schema.key if keys else schema.value
        assert message is not None
        rows = group.rows.tolist()
        group.values.validate(full=True)
        assert group.values.equals(to_arrow([plain[row] for row in rows], message_type(message)))  # type: ignore[misc]
        seen |= set(rows)
    assert seen == set(plain)


def plain_key(data: bytes, family: Family) -> Fields | str:
    try:
        return decode_key(data, family)[1]
    except DecodeError as error:
        return str(error)


def plain_value(data: bytes, record_type: int, family: Family) -> Fields | str:
    try:
        return decode_value(data, record_type, family)[1]
    except DecodeError as error:
        return str(error)


def check_batch(records: list[RawRecord], choose: random.Random, family: Family) -> None:
    """Mutated keys in one batch, mutated values in another whose keys are whole."""
    drawn = choose.choices(records, k=BATCH)
    keys = [mutated(record.key or b"", choose) for record in drawn]
    decoded = decode_keys(pa.array(keys, pa.binary()), family)
    check_columns(decoded, {row: plain_key(key, family) for row, key in enumerate(keys)}, family, keys=True)

    valued = [record for record in choose.choices(records, k=BATCH) if record.value is not None]
    types = decode_keys(pa.array([record.key for record in valued], pa.binary()), family).numbers
    values = [mutated(record.value or b"", choose) for record in valued]
    plain = {row: plain_value(value, int(types[row]), family) for row, value in enumerate(values)}
    check_columns(decode_values(pa.array(values, pa.binary()), types, family), plain, family, keys=False)


def of_family(family: Family) -> list[RawRecord]:
    return [record for record in sample_records() if record.family is family]


@pytest.mark.parametrize("family", [Family.GROUP, Family.SHARE])
def test_mutated_records(family: Family) -> None:
    check_batch(of_family(family), random.Random(5), family)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(30))
def test_very_many_mutated_records(seed: int) -> None:
    """30 batches of keys and 30 of values: about 290,000 mutated records."""
    check_batch(of_family(Family.GROUP), random.Random(seed), Family.GROUP)


def test_mutated_metadata_records() -> None:
    choose = random.Random(7)
    errors = 0
    for record in choose.choices(of_family(Family.METADATA), k=BATCH):
        try:
            decode_metadata(mutated(record.value or b"", choose))
        except DecodeError:
            errors += 1
    assert 0 < errors < BATCH


def test_mutated_blobs_of_classic_members() -> None:
    choose = random.Random(11)
    members = []
    for record in of_family(Family.GROUP):
        number, _ = decode_key(record.key or b"")
        if number == 2 and record.value:
            group = decode_value(record.value, number)[1]
            members += [(group["protocolType"], group["protocol"], member) for member in group["members"]]
    errors = 0
    for protocol_type, protocol, member in choose.choices(members, k=BATCH):
        try:
            decode_subscription(protocol_type, protocol, mutated(member["subscription"], choose))
            decode_assignment(protocol_type, protocol, mutated(member["assignment"], choose))
        except DecodeError:
            errors += 1
    assert 0 < errors < BATCH
