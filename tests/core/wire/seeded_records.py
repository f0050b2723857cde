"""Batches of records from a seed: the same bytes in every run, whatever modules are loaded.

Hypothesis takes constants from the modules that are loaded, so its examples depend on what ran before.
"""

from collections.abc import Callable
from random import Random
from typing import Any, Final

from coordinator_core.records import Fields
from coordinator_core.wire.codec import UNKNOWN_TAGGED_FIELDS
from coordinator_core.wire.message_layout import Array, Node, Scalar, Sized, Struct, layout
from coordinator_core.wire.primitives import uuid_text
from coordinator_core.wire.record_codec import encode_value
from coordinator_core.wire.schema import RecordSchema

BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def random_value(node: Node, rng: Random, *, is_newer: bool) -> Any:
    """A value of a node of a layout; with ``is_newer`` a struct in it may have tags that no schema has."""
    match node:
        case Scalar("uuid"):
            return uuid_text(rng.randbytes(16))
        case Scalar("boolean"):
            return rng.random() < 0.5
        case Scalar("uint16"):
            return rng.choice([0, 7, 0xFFFF])
        case Scalar(name):
            half = 1 << (BITS[name] - 1)
            return rng.choice([0, -1, rng.randrange(100), rng.randrange(-half, half)])
        case Struct(nullable=False):
            return random_fields(node, rng, is_newer=is_newer)
    if node.nullable and rng.random() < 0.3:
        return None
    match node:
        case Sized("bytes"):
            return rng.randbytes(rng.choice([0, 3, 20]))
        case Sized():
            return rng.choice(["", "a", "größe", "x" * rng.randrange(120, 140)])
        case Array(element):
            return [random_value(element, rng, is_newer=is_newer) for _ in range(rng.choice([0, 1, 3]))]
        case Struct():
            return random_fields(node, rng, is_newer=is_newer)


def random_fields(struct: Struct, rng: Random, *, is_newer: bool) -> Fields:
    """Fields of a struct: any of the tagged ones absent."""
    fields = {slot.name: random_value(slot.node, rng, is_newer=is_newer) for slot in struct.slots}
    for _, slot in struct.tagged:
        if rng.random() < 0.5:
            fields[slot.name] = random_value(slot.node, rng, is_newer=is_newer)
    if struct.flexible and is_newer:
        known = {tag for tag, _ in struct.tagged}
        unknown = [tag for tag in range(12) if tag not in known]
        fields[UNKNOWN_TAGGED_FIELDS] = {tag: rng.randbytes(rng.randrange(3)) for tag in rng.sample(unknown, 2)}
    return fields


def plain_fields(struct: Struct, rng: Random) -> Fields:
    """Fields of a struct without any of the tagged ones."""
    return {slot.name: random_value(slot.node, rng, is_newer=False) for slot in struct.slots}


def random_batch(schema: RecordSchema, version: int, rng: Random) -> list[bytes]:
    """Values of one version, more than are decoded one by one: from one broker or from two releases in turn, and
    sometimes damaged.
    """
    message = schema.value

    def made(fields: Fields) -> bytes:
        return encode_value(schema.type, version, fields, schema.family)

    struct = layout(message, version)
    sources: list[Callable[[], bytes]] = [
        lambda: made(plain_fields(struct, rng)),
        lambda: made(random_fields(struct, rng, is_newer=False)),
        lambda: made(random_fields(struct, rng, is_newer=True)),
        lambda: _damaged(made(random_fields(struct, rng, is_newer=False)), rng),
    ]
    # Few different records: what two releases wrote alternates, as in a cluster that is being upgraded.
    chosen = [rng.choice(sources)() for _ in range(rng.choice([1, 2, 2, 2, 3, 5]))]
    rows = rng.choice([66, 67, 80, 120])
    return [chosen[row % len(chosen)] for row in range(rows)]


def _damaged(data: bytes, rng: Random) -> bytes:
    """The bytes cut, one of them changed, or some behind the last field."""
    at = rng.randrange(2, len(data)) if len(data) > 2 else 2
    match rng.randrange(3):
        case 0:
            return data[:at]
        case 1:
            return data + rng.randbytes(2)
    return data[:at] + rng.randbytes(1) + data[at + 1 :]
