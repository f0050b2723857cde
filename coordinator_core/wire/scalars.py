"""Fixed-width values of many rows, from big-endian bytes to Arrow."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Raw = npt.NDArray[Any]

WIRE_TYPES: Final = {
    "boolean": "u1",
    "int8": "i1",
    "int16": ">i2",
    "uint16": ">u2",
    "int32": ">i4",
    "int64": ">i8",
    "uuid": "V16",
}
"""The numpy type that a value has on the wire."""

_NATIVE: Final = {"int8": "i1", "int16": "i2", "uint16": "i4", "int32": "i4", "int64": "i8"}

_ALPHABET: Final = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8)


def to_arrow(name: str, raw: Raw) -> pa.Array:
    """Return values of a wire type as an Arrow array."""
    if name == "uuid":
        return _uuids(raw)
    if name == "boolean":
        return pa.array(raw != 0)
    return pa.array(raw.astype(_NATIVE[name]))


def _uuids(raw: Raw) -> pa.Array:
    """Ids repeat a lot: each distinct one becomes text once."""
    fixed = pa.Array.from_buffers(pa.binary(16), len(raw), [None, pa.py_buffer(np.ascontiguousarray(raw))])
    distinct = fixed.dictionary_encode()
    return _uuid_texts(distinct.dictionary).take(distinct.indices)


def _uuid_texts(ids: pa.FixedSizeBinaryArray) -> pa.StringArray:
    """base64url without padding: 16 bytes and 2 of padding are 6 groups of 3, each of 4 characters of 6 bits."""
    count = len(ids)
    padded = np.zeros((count, 18), np.uint8)
    padded[:, :16] = np.frombuffer(ids.buffers()[1], np.uint8).reshape(-1, 16)[ids.offset : ids.offset + count]
    groups = padded.reshape(-1, 3).astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
    sextets = groups[:, np.newaxis] >> np.array([18, 12, 6, 0], np.uint32) & 0x3F
    texts = np.ascontiguousarray(_ALPHABET[sextets].reshape(count, 24)[:, :22])
    offsets = np.arange(0, 22 * count + 1, 22, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(texts))
