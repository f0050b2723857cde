"""Control records: transaction markers (KIP-98) and the records of the KRaft log (KIP-595, KIP-630, KIP-853)."""

import struct
from typing import NamedTuple

from coordinator_core.errors import DecodeError
from coordinator_core.records import Fields
from coordinator_core.wire.codec import reader
from coordinator_core.wire.message_layout import layout
from coordinator_core.wire.schema import control_schemas

CONTROL_TYPES = (
    "ABORT",
    "COMMIT",
    "LEADER_CHANGE",
    "SNAPSHOT_HEADER",
    "SNAPSHOT_FOOTER",
    "KRAFT_VERSION",
    "KRAFT_VOTERS",
)
"""By the type field of the control record's key."""

ABORT, COMMIT = 0, 1
SNAPSHOT_HEADER, SNAPSHOT_FOOTER = 3, 4

KEY = struct.Struct(">hh")
END_TXN_MARKER = struct.Struct(">hi")


class ControlRecord(NamedTuple):
    """A control record. ``coordinator_epoch`` is that of the transaction coordinator, None if the record is not a
    marker.
    """

    type: int
    coordinator_epoch: int | None

    @property
    def name(self) -> str:
        """Kafka's name, or ``UNKNOWN(type)`` for types of newer brokers."""
        return control_name(self.type)


def control_name(control_type: int) -> str:
    """Kafka's name of a control record type."""
    return CONTROL_TYPES[control_type] if 0 <= control_type < len(CONTROL_TYPES) else f"UNKNOWN({control_type})"


def parse_control(key: bytes | None, value: bytes | None) -> ControlRecord | None:
    """Return the control record, or None if its bytes are too short."""
    if key is None or len(key) < KEY.size:
        return None
    _, control_type = KEY.unpack_from(key)
    if control_type not in (ABORT, COMMIT):
        return ControlRecord(control_type, None)
    if value is None or len(value) < END_TXN_MARKER.size:
        return None
    return ControlRecord(control_type, END_TXN_MARKER.unpack_from(value)[1])


def encode_marker(control_type: int, coordinator_epoch: int) -> tuple[bytes, bytes]:
    """Return key and value of the marker that ends a transaction: ``control_type`` is ABORT or COMMIT."""
    return KEY.pack(0, control_type), END_TXN_MARKER.pack(0, coordinator_epoch)


def snapshot_time_ms(header: bytes | None) -> int:
    """Return the time (ms) of the last record that a KRaft snapshot covers, from the value of its header; raises
    DecodeError.
    """
    return int((kraft_fields(SNAPSHOT_HEADER, header) or {})["lastContainedLogTimestamp"])


def kraft_fields(control_type: int, value: bytes | None) -> Fields | None:
    """Return the fields of a control record of the KRaft log; None if no schema knows its type.

    All of them have the layout of version 0, whatever their field ``version`` says. Raises DecodeError.
    """
    message = control_schemas().get(control_type)
    if message is None:
        return None
    if value is None:
        raise DecodeError("no value", record_type=message.name)
    try:
        fields: Fields
        fields, end = reader(layout(message, 0))(value, 0)
        if end != len(value):
            raise DecodeError(f"{len(value) - end} bytes after its fields", position=end)
    except DecodeError as error:
        raise error.within("", record_type=message.name) from None
    return fields


MARKERS = {control_name(COMMIT): True, control_name(ABORT): False}
"""The names of transaction markers: whether the transaction that one ends was committed."""
