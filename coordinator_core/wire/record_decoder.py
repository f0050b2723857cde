"""Records of one kind of log, from their bytes to the form that replay takes."""

from typing import NamedTuple

from coordinator_core.errors import DecodeError
from coordinator_core.records import AnyRecord, CoordinatorRecord, Family, Fields, LogPosition, RecordType, group_of_key
from coordinator_core.wire.record_codec import decode_key, decode_metadata, decode_value

CACHED_KEYS = 1 << 18
"""How many decoded keys are kept: the keys of offset commits repeat."""

NO_BATCH = -1
"""The base offset of a batch that is not known."""


class UnreadableRecord(NamedTuple):
    """A record that cannot be decoded, by a newer broker or damaged: what it says of its group is unknown.

    ``key`` and ``type`` are None where the key cannot be read either: then it may be about any group of its partition.
    """

    at: LogPosition
    cause: str
    type: int | None = None
    key: Fields | None = None

    @property
    def group_id(self) -> str | None:
        """The group that it is about; None: any."""
        return None if self.key is None else group_of_key(self.key)

    @property
    def is_commit(self) -> bool:
        """Whether it says something of a committed offset, and of nothing else."""
        return self.type is not None and self.type <= RecordType.OFFSET_COMMIT


class RecordDecoder:
    """Decodes the records of one family. Records with the same key share one dict of key fields."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self._keys: dict[bytes, tuple[int, Fields]] = {}

    def record(
        self, at: LogPosition, key: bytes, value: bytes | None, batch_base_offset: int | None = None
    ) -> AnyRecord:
        """Return the decoded record at a position; ``key`` is ignored for the metadata log, whose records have no keys.

        Raises:
            DecodeError: the bytes do not decode; UnknownTypeError for a type without a schema.
        """
        batch = NO_BATCH if batch_base_offset is None else batch_base_offset
        if self.family is Family.METADATA:
            record_type, version, fields = decode_metadata(value or b"")
            return CoordinatorRecord(at, record_type, {}, fields, version, batch)
        record_type, key_fields = self._key(key)
        if value is None:
            return CoordinatorRecord(at, record_type, key_fields, None, None, batch)
        version, fields = decode_value(value, record_type, self.family)
        return CoordinatorRecord(at, record_type, key_fields, fields, version, batch)

    def unreadable(self, at: LogPosition, key: bytes, error: DecodeError) -> UnreadableRecord:
        """Return what is known of a record for which ``record`` has raised this error."""
        try:
            # Mostly the value is at fault, and the key still tells whose record it is.
            record_type, key_fields = self._key(key)
        except DecodeError:
            return UnreadableRecord(at, str(error))
        return UnreadableRecord(at, str(error), record_type, key_fields)

    def _key(self, data: bytes) -> tuple[int, Fields]:
        decoded = self._keys.get(data)
        if decoded is None:
            decoded = decode_key(data, self.family)
            if len(self._keys) < CACHED_KEYS:
                self._keys[data] = decoded
        return decoded
