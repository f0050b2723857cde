"""Arrow structs of decoded keys and values back to their bytes, a column at a time: the inverse of ``batch_decode``.

Only messages whose fields are numbers, ids, text and bytes have columns here, such as offset commits: their volume is
what a log mostly is. Unknown tagged fields are left out, so a row that has some does not give back its bytes.
"""

from base64 import urlsafe_b64decode
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.errors import SchemaError
from coordinator_core.wire.batch_decode import Decoded, DecodedType
from coordinator_core.wire.cursor import Ints
from coordinator_core.wire.message_layout import Node, Scalar, Sized, Slot, layout
from coordinator_core.wire.record_codec import TRAILING_BYTES
from coordinator_core.wire.scalars import WIRE_TYPES, Raw
from coordinator_core.wire.schema import Message

VARINT_BYTES: Final = 5
"""The most bytes that an unsigned varint of 32 bits takes."""


def same_keys(data: pa.Array, decoded: Decoded, record_type: int, message: Message) -> npt.NDArray[np.bool_]:
    """Return which keys are of a type, and encode to the bytes that they were decoded from."""
    same = np.zeros(len(data), np.bool_)
    if (group := decoded.groups.get(record_type)) is not None:
        encoded = encode_columns(message, message.versions.start, record_type, group.values)
        same[group.rows] = _equal(data, group.rows, encoded)
    return same


def same_values(data: pa.Array, decoded: Decoded, record_type: int, message: Message) -> npt.NDArray[np.bool_]:
    """Return which values are of a type, and encode to the bytes that they were decoded from."""
    same = np.zeros(len(data), np.bool_)
    group = decoded.groups.get(record_type)
    if group is None:
        return same
    versions = decoded.numbers[group.rows]
    for version in np.unique(versions).tolist():
        of_version = _of_version(group, versions == version)
        encoded = encode_columns(message, version, version, of_version.values)
        same[of_version.rows] = _equal(data, of_version.rows, encoded)
    return same


def _of_version(group: DecodedType, wanted: npt.NDArray[np.bool_]) -> DecodedType:
    return group if wanted.all() else DecodedType(group.rows[wanted], group.values.filter(pa.array(wanted)))


def _equal(data: pa.Array, rows: Ints, encoded: pa.Array) -> npt.NDArray[np.bool_]:
    given = data if len(rows) == len(data) else data.take(pa.array(rows))
    are_equal: npt.NDArray[np.bool_] = pc.equal(given.cast(pa.binary()), encoded).to_numpy(zero_copy_only=False)
    return are_equal


def encode_columns(message: Message, version: int, number: int, values: pa.StructArray) -> pa.Array:
    """Return the bytes of keys or values of one version.

    ``number`` is the int16 before the fields: the record type of a key, the version of a value.

    Raises:
        SchemaError: a field is an array or a struct.
    """
    node = layout(message, version)
    parts = _Parts(len(values))
    parts.fixed(">i2", np.full(len(values), number))
    for slot in node.slots:
        parts.add(slot.node, values.field(slot.name))
    if node.flexible:
        _add_tagged(parts, node.tagged, values)
    parts.sized(pc.fill_null(values.field(TRAILING_BYTES), b""))
    return parts.joined()


def _add_tagged(parts: "_Parts", tagged: tuple[tuple[int, Slot], ...], values: pa.StructArray) -> None:
    """Add the tagged fields; one that is null is not there."""
    count = np.zeros(len(values), np.int64)
    for _, slot in tagged:
        count += values.field(slot.name).is_valid().to_numpy(zero_copy_only=False)
    parts.varint(count)
    for tag, slot in tagged:
        column = values.field(slot.name)
        field = _Parts(len(values))
        field.add(slot.node, column)
        content = field.joined()
        whole = _Parts(len(values))
        whole.varint(np.full(len(values), tag))
        whole.varint(pc.binary_length(content).to_numpy())
        whole.sized(content)
        # Tag and size belong to the field: where it is absent none of its bytes is there.
        parts.sized(pc.if_else(column.is_valid(), whole.joined(), b""))


class _Parts:
    """The bytes of many rows, part by part; neighbouring parts of fixed width are one."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._done: list[pa.Array] = []
        self._fixed: list[tuple[str, Raw]] = []

    def fixed(self, wire: str, numbers: Raw) -> None:
        """Add numbers of a wire type."""
        self._fixed.append((wire, numbers))

    def sized(self, content: pa.Array) -> None:
        """Add text or bytes as they are."""
        self._close()
        self._done.append(content.cast(pa.binary()))

    def varint(self, numbers: Ints) -> None:
        """Add unsigned varints."""
        if numbers.max(initial=0) < 0x80:
            self.fixed("u1", numbers)
            return
        # A row for each number, a column for each byte that it may take; ``used`` are those that it takes. A mask picks
        # row by row, so the bytes come out one number after the other.
        rest = numbers[:, np.newaxis] >> np.arange(0, 7 * VARINT_BYTES, 7)
        follows = rest >> 7 > 0
        used = np.concatenate([np.ones((len(numbers), 1), np.bool_), follows[:, :-1]], axis=1)
        content = ((rest & 0x7F) | np.where(follows, 0x80, 0)).astype(np.uint8)[used]
        offsets = np.zeros(len(numbers) + 1, np.int32)
        np.cumsum(used.sum(axis=1), out=offsets[1:])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
        self.sized(pa.Array.from_buffers(pa.binary(), len(numbers), buffers))

    def add(self, node: Node, column: pa.Array) -> None:
        """Add the values of a field."""
        match node:
            case Scalar("uuid"):
                self.fixed("V16", _uuids(column))
            case Scalar("boolean"):
                self.fixed("u1", pc.fill_null(column, False).to_numpy(zero_copy_only=False))
            case Scalar(name):
                self.fixed(WIRE_TYPES[name], pc.fill_null(column, 0).to_numpy(zero_copy_only=False))
            # Below, a null and an empty text would come out as the same bytes.
            case Sized("utf16_string") | Sized(nullable=True):
                raise SchemaError(f"no columns encode {node}")
            case Sized(kind, compact):
                lengths = pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)
                if compact:
                    self.varint(lengths.astype(np.int64) + 1)
                else:
                    self.fixed(">i2" if kind == "string" else ">i4", lengths)
                self.sized(pc.fill_null(column.cast(pa.binary()), b""))
            case _:
                raise SchemaError("arrays and structs have no columns that encode them")

    def joined(self) -> pa.Array:
        """Return the bytes of each row."""
        self._close()
        return self._done[0] if len(self._done) == 1 else pc.binary_join_element_wise(*self._done, b"")

    def _close(self) -> None:
        if not self._fixed:
            return
        # One array of records holds all neighbouring numbers: its bytes are those of the rows, one after the other.
        records = np.empty(self._count, [(str(place), wire) for place, (wire, _) in enumerate(self._fixed)])
        for place, (_, numbers) in enumerate(self._fixed):
            records[str(place)] = numbers
        width = records.dtype.itemsize
        offsets = np.arange(0, width * self._count + 1, width, dtype=np.int32)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(records.view(np.uint8))]
        self._done.append(pa.Array.from_buffers(pa.binary(), self._count, buffers))
        self._fixed = []


def _uuids(texts: pa.Array) -> Raw:
    """Return ids as bytes. They repeat a lot: each distinct one is converted once; null is 0."""
    distinct = pc.fill_null(texts, "A" * 22).dictionary_encode()
    ids = b"".join(urlsafe_b64decode(f"{text}==") for text in distinct.dictionary.to_pylist())
    of_rows: Raw = np.frombuffer(ids, "V16")[distinct.indices.to_numpy()]
    return of_rows
