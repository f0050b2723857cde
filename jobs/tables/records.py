"""The tables of decoded records. Their columns are derived from the record schemas (``schemas/``)."""

import re
from typing import Final, NamedTuple

import pyarrow as pa

from coordinator_core.records import COMMIT_TYPES, Family
from coordinator_core.wire.arrow_types import message_type
from coordinator_core.wire.schema import RecordSchema, record_schemas
from jobs.tables.log import BATCH, ORIGIN, POSITION, RUN, STRAY
from jobs.tables.table import BINARY, BOOLEAN, LONG, SHORT, STRING, Table, column

OFFSET_COMMIT_NAMES: Final = {
    ("key", "group"): "group_id",
    ("key", "_trailingBytes"): "key_trailing_bytes",
    ("value", "offset"): "committed_offset",
}
"""Fields whose column has a different name. All other columns are named after their field, in snake case."""


UNKNOWN_ABOUT: Final = "Bytes that no schema describes; null unless the writer is newer or faulty"


class FieldColumn(NamedTuple):
    """A column that holds one field of the key or the value (``part``)."""

    part: str
    field: str
    type: pa.DataType
    about: str


def snake_case(name: str) -> str:
    """Return a name in snake case: ``leaderEpoch`` as ``leader_epoch``, ``_trailingBytes`` as ``trailing_bytes``."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower().removeprefix("_")


def record_struct(schema: RecordSchema) -> pa.StructType:
    """Return the Arrow type of a record: a struct of key and value. Records of the metadata log have no key."""
    parts = {"key": schema.key, "value": schema.value}
    return pa.struct([pa.field(name, message_type(message)) for name, message in parts.items() if message])


def struct_columns(*families: Family) -> dict[str, RecordSchema]:
    """Return the schemas of all record types that have their own struct column, by the name of the column."""
    return {
        schema.name.lower(): schema
        for family in families
        for schema in record_schemas(family).values()
        if family is not Family.GROUP or schema.type not in COMMIT_TYPES
    }


def offset_commit_columns() -> dict[str, FieldColumn]:
    """Return the columns of an offset commit by name: the fields of both record types that commit offsets."""
    columns: dict[str, FieldColumn] = {}
    for record_type in reversed(COMMIT_TYPES):
        schema = record_schemas(Family.GROUP)[record_type]
        for part, message in (("key", schema.key), ("value", schema.value)):
            about = {field.name: field.about for field in message.fields} if message else {}
            for field in message_type(message) if message else ():
                name = OFFSET_COMMIT_NAMES.get((part, field.name), snake_case(field.name))
                columns[name] = FieldColumn(part, field.name, field.type, about.get(field.name, UNKNOWN_ABOUT))
    return columns


def _struct_fields(*families: Family) -> list[pa.Field]:
    return [column(name, record_struct(schema), schema.about) for name, schema in struct_columns(*families).items()]


DECODED = [
    column("record_type", SHORT, "Record type (number)"),
    column("record_name", STRING, "Record type (name in Kafka)"),
    column("value_version", SHORT, "Version of the value's schema; null for a tombstone"),
    column("is_tombstone", BOOLEAN, "True: the value is null, which deletes the key"),
]

RAW = [
    column("key", BINARY, "Key of the record, as bytes"),
    column("value", BINARY, "Value of the record, as bytes; null for a tombstone"),
]

BY_GROUP: Final = ("group_id", "log_topic", "log_partition", "log_offset")
"""The order of decoded records within a file: a question is mostly about one group."""

OFFSET_COMMITS = Table(
    "offset_commits",
    "One offset commit, or one tombstone of a committed offset",
    [
        *RUN,
        *POSITION,
        *BATCH,
        *ORIGIN,
        STRAY,
        *[column(name, field.type, field.about) for name, field in offset_commit_columns().items()],
        column(
            "producer_id", LONG, "Producer id of a transactional commit; -1: none; null if the dump does not contain it"
        ),
        column("producer_epoch", SHORT, "Epoch of the producer"),
        column(
            "outcome",
            STRING,
            "Outcome of the transaction: committed, aborted, open or unknown; null: not in a transaction",
        ),
        *DECODED,
    ],
    key=("cluster", "log_topic", "log_partition", "log_offset", "stray"),
    order=BY_GROUP,
)

GROUP_RECORDS = Table(
    "group_records",
    "One record of the group coordinator (offset commits excepted), of the share coordinator or of a Connect group",
    [
        *RUN,
        *POSITION,
        *BATCH,
        *ORIGIN,
        STRAY,
        column("group_id", STRING, "Id of the group"),
        *DECODED,
        *RAW,
        *_struct_fields(Family.GROUP, Family.SHARE, Family.CONNECT),
    ],
    key=("cluster", "log_topic", "log_partition", "log_offset", "stray"),
    order=BY_GROUP,
)

CLUSTER_RECORDS = Table(
    "cluster_records",
    "One record of the cluster metadata log",
    [*RUN, *POSITION, *BATCH, *ORIGIN, STRAY, *DECODED, *RAW, *_struct_fields(Family.METADATA)],
    key=("cluster", "log_topic", "log_partition", "log_offset", "stray"),
)

ARRIVED = Table(
    "arrived",
    "Rows on their way from a dump to their tables, where Spark writes the tables; empty between runs",
    [
        column("table", STRING, "Name of the table"),
        column("count", LONG, "Number of rows"),
        column("rows", BINARY, "The rows as an Arrow stream"),
    ],
    key=(),
)
