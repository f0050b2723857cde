"""The metadata hash: which topics, partitions and racks a coordinator used for an epoch (KIP-1101).

Consumer, share and streams groups store the hash of their subscribed topics in each epoch record. XXH3-64 with seed 0
over little-endian bytes, kept as a signed int64.
"""

import base64
import struct
from collections.abc import Iterable

import xxhash

from coordinator_core.cluster.image import Topic
from coordinator_core.java.hash_codes import utf16

_HASH_VERSION = b"\x00"
_INT = struct.Struct("<i")
_LONG = struct.Struct("<q")
_UNSIGNED_LONG = struct.Struct("<Q")


def topic_hash(topic: Topic) -> int:
    """Return the hash of one topic: its id, name, partition count and the sorted racks of each partition."""
    bits = base64.urlsafe_b64decode(topic.id + "==")
    # A Java Uuid is two longs, of which each is hashed in little-endian order: both halves are turned round.
    parts = [_HASH_VERSION, bits[7::-1], bits[:7:-1], _text(topic.name), _INT.pack(topic.partitions)]
    for partition in range(topic.partitions):
        parts.append(_INT.pack(partition))
        racks = topic.racks[partition] if partition < len(topic.racks) else ()
        for rack in sorted(racks, key=utf16):
            units = _utf16(rack)
            # Java's length of a string: UTF-16 units of two bytes each.
            parts += (_INT.pack(len(units) // 2), units, _INT.pack(len(units) // 2))
    return _hash(b"".join(parts))


def group_hash(topic_hashes: Iterable[tuple[str, int]]) -> int:
    """Return the hash of a group's subscribed topics from (name, topic hash) pairs in any order; 0 without topics.

    The caller leaves out subscribed topics that do not exist. Of two pairs with one name the later one is kept.
    """
    by_name = sorted(dict(topic_hashes).items())
    return _hash(b"".join([_LONG.pack(value) for _, value in by_name])) if by_name else 0


def _hash(data: bytes) -> int:
    value: int = _LONG.unpack(_UNSIGNED_LONG.pack(xxhash.xxh3_64_intdigest(data)))[0]
    return value


def _text(text: str) -> bytes:
    units = _utf16(text)
    return units + _INT.pack(len(units) // 2)


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")
