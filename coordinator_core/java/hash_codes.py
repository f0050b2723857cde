"""Hash codes and natural orders of the Java types that Kafka uses as keys.

Sources: Java SE's String.hashCode and record hashing; Kafka's Uuid, TopicPartition, TopicIdPartition, TaskId.
All hash codes are returned as signed 32-bit numbers, as Java prints them.
"""

from base64 import urlsafe_b64decode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

import numpy as np

from coordinator_core.errors import InputError

K = TypeVar("K")


def int32(value: int) -> int:
    """Return the value as Java's int holds it."""
    return (value + 0x8000_0000 & 0xFFFF_FFFF) - 0x8000_0000


@lru_cache(maxsize=1 << 16)
def string_hash(text: str) -> int:
    """Return ``String.hashCode``: a polynomial with base 31 over UTF-16 code units."""
    value = 0
    if text.isascii():
        for unit in text.encode():
            value = value * 31 + unit
    else:
        units = text.encode("utf-16-be", "surrogatepass")
        for high, low in zip(units[::2], units[1::2], strict=True):
            value = value * 31 + (high << 8 | low)
    # Cut to 32 bits once, at the end: sums and products of what is cut away do not reach the lower bits.
    return int32(value)


def utf16(text: str) -> bytes:
    """Return a key that sorts strings as ``String.compareTo`` does: by UTF-16 code units, not by code points."""
    return text.encode("utf-16-be", "surrogatepass")


@lru_cache(maxsize=1 << 16)
def uuid_bits(uuid: str) -> tuple[int, int]:
    """Return the most and least significant signed longs of a Uuid in Kafka's base64url form; raises InputError
    otherwise.
    """
    try:
        raw = urlsafe_b64decode(uuid + "==")
    except ValueError as cause:
        raise InputError(f"{uuid!r} is not a Uuid: {cause}") from cause
    if len(raw) != 16:
        raise InputError(f"{uuid!r} is not a Uuid: {len(raw)} bytes instead of 16")
    return int.from_bytes(raw[:8], signed=True), int.from_bytes(raw[8:], signed=True)


@lru_cache(maxsize=1 << 16)
def uuid_hash(uuid: str) -> int:
    """Return ``Uuid.hashCode`` of Kafka's 128-bit id."""
    most, least = uuid_bits(uuid)
    mixed = most ^ least
    # Java shifts without the sign; in the lower 32 bits, which are left, that makes no difference.
    return int32(mixed >> 32 ^ mixed)


def spread(hash_code: int) -> int:
    """Return HashMap's secondary hash of a hash code."""
    # Tables use the lower bits alone: so the upper ones are mixed into them.
    return int32(hash_code ^ (hash_code & 0xFFFF_FFFF) >> 16)


@dataclass(frozen=True, slots=True)
class KeyType(Generic[K]):
    """A Java key class: its hash code, and a sort key for its natural order (None: the class is not Comparable)."""

    name: str
    hash_code: Callable[[K], int]
    order: Callable[[K], Any] | None


STRING: KeyType[str] = KeyType("String", string_hash, utf16)
UUID: KeyType[str] = KeyType("Uuid", uuid_hash, uuid_bits)
INTEGER: KeyType[int] = KeyType("Integer", int32, int)
TOPIC_PARTITION: KeyType[tuple[str, int]] = KeyType(
    "TopicPartition", lambda key: int32(31 * (31 + key[1]) + string_hash(key[0])), None
)
TOPIC_ID_PARTITION: KeyType[tuple[str, int]] = KeyType(
    "TopicIdPartition", lambda key: int32(31 * uuid_hash(key[0]) + key[1]), None
)
TASK_ID: KeyType[tuple[str, int]] = KeyType(
    "TaskId", lambda key: int32(31 * string_hash(key[0]) + key[1]), lambda key: (utf16(key[0]), key[1])
)


def spreads(key_type: KeyType[K], keys: Sequence[K]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return HashMap's secondary hashes of many keys, as an array."""
    codes = np.fromiter(map(key_type.hash_code, keys), np.int64, len(keys))
    return codes ^ (codes & 0xFFFF_FFFF) >> 16
