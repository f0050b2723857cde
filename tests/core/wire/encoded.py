"""Decoded records as the bytes that they come from."""

from coordinator_core.records import Family
from coordinator_core.wire.record_codec import DecodedRecord, encode_key, encode_value


def encode_record(record: DecodedRecord, family: Family = Family.GROUP) -> tuple[bytes | None, bytes | None]:
    """Return the bytes of key and value of one record, None for a missing one; the inverse of ``decode_record``."""
    key = None if family is Family.METADATA else encode_key(record.type, record.key, family)
    if record.value is None or record.value_version is None:
        return key, None
    return key, encode_value(record.type, record.value_version, record.value, family)
