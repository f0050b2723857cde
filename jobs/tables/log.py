"""The tables that hold the log: as dumped, decoded, set aside, and accounted for."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from jobs.tables.delta import Table, column

STRING, LONG, INT, SHORT = StringType(), LongType(), IntegerType(), ShortType()

RUN = [
    column("cluster", STRING, "Name of the cluster that wrote the log"),
    column("run_id", STRING, "Run that took the record in; sorts by time"),
]

POSITION = [
    column("log_topic", STRING, "Topic of the log"),
    column("log_partition", INT, "Partition of the log; null when the dump does not say"),
    column("log_offset", LONG, "Offset in the log; null when the dump does not say, and for damaged bytes"),
    column("timestamp_ms", LONG, "The record's timestamp, ms since the epoch; -1 for none, null when not dumped"),
]

BATCH = [
    column("batch_base", LONG, "First offset that the record batch covers; null when the dump does not say"),
    column("batch_last", LONG, "Last offset that the record batch covers"),
]

ORIGIN = [
    column("source", STRING, "File, or broker, that the record was read from"),
    column(
        "place",
        LONG,
        "Where in it: byte position of the batch in a segment, line number (from 1) in JSON lines, "
        "number of the record (from 0) in a KRaft snapshot",
    ),
]

STRAY = column(
    "stray",
    STRING,
    "Source (of a KRaft snapshot its name) and place of a row without an offset, which identify it; null for others",
)

DUMPED = [
    *POSITION,
    column("timestamp_type", STRING, "CreateTime, LogAppendTime or NoTimestampType; null when the dump does not say"),
    column("kind", STRING, "record, control, empty (a batch emptied by compaction) or damaged (no record at all)"),
    column("key", BinaryType(), "The key as logged"),
    column("value", BinaryType(), "The value as logged, null for a tombstone; the bytes at fault of a damaged row"),
    column(
        "headers",
        ArrayType(StructType([StructField("key", STRING), StructField("value", BinaryType())])),
        "Record headers; null for none",
    ),
    *BATCH,
    column("leader_epoch", INT, "Leader epoch of the batch"),
    column("compression", STRING, "Codec of the batch"),
    column("producer_id", LONG, "Producer of the batch, -1 for none; null when the dump does not say"),
    column("producer_epoch", SHORT, "Epoch of that producer"),
    column("sequence", INT, "Sequence number of the record, -1 for none"),
    column("is_transactional", BooleanType(), "Written in a transaction; null when the dump does not say"),
    column(
        "control_type",
        STRING,
        "What a control record says: COMMIT, ABORT, LEADER_CHANGE, ...; UNKNOWN if emptied",
    ),
    column("coordinator_epoch", INT, "Epoch of the transaction coordinator that wrote a COMMIT or ABORT"),
    column(
        "outcome",
        STRING,
        "Of a transactional record: committed, aborted, or open at the end of what was dumped; unknown when the dump "
        "does not show transactions, or data is missing before the marker; null for a record outside of them",
    ),
    *ORIGIN,
    column("error", STRING, "Why the bytes of a damaged row are no record"),
    column("extra", MapType(STRING, STRING), "Further columns of the dump, as text; null for none"),
]
"""What a source yields, in this order."""

LOG_PARTITION: Final = ("log_topic", "log_partition")
"""The columns that name a log partition within a cluster."""

PLACED: Final = "log_offset IS NOT NULL AND log_partition IS NOT NULL"
"""Rows whose place in the log is known. Dumps without positions have others, which cannot be ordered."""

LOG_RECORDS = Table(
    "log_records",
    "One record of a log as dumped, with its position, its producer and the outcome of its transaction",
    StructType(
        [
            *RUN,
            column("record_type", SHORT, "First two bytes of the key of a coordinator log; null for other logs"),
            *DUMPED,
            STRAY,
            column("revised_by", STRING, "Run that last learned more about the record (its batch, its outcome)"),
            column("value_dropped", BooleanType(), "True: maintenance has dropped the value, which was no tombstone"),
        ]
    ),
    key=("cluster", "log_topic", "log_partition", "log_offset", "kind", "stray"),
)

QUARANTINE = Table(
    "quarantine",
    "One record that could not be decoded, or bytes of a log that are no record",
    StructType(
        [
            *RUN,
            *POSITION,
            *ORIGIN,
            STRAY,
            column("reason", STRING, "What is wrong, with the record type and the field path where one was reached"),
            column("part", STRING, "Which bytes are at fault: key, value, or damaged (no record at all)"),
            column("byte_position", LONG, "Byte position of the fault in that key or value, in the file for damage"),
            column("key", BinaryType(), "The key as logged"),
            column("value", BinaryType(), "The value as logged, or the bytes at fault"),
        ]
    ),
    key=("cluster", "log_topic", "log_partition", "log_offset", "stray"),
)

GAP = StructType(
    [
        column("first_offset", LONG, "First offset of the gap"),
        column("last_offset", LONG, "Last offset of the gap"),
        column(
            "cause", STRING, "missing, damaged, or unknown (control records that a consumer cannot see, or missing)"
        ),
    ]
)

RUNS = Table(
    "runs",
    "What one run took from one log partition: offsets, counts that add up, gaps",
    StructType(
        [
            *RUN,
            column("job", STRING, "ingest or decode"),
            column("log_topic", STRING, "Topic of the log"),
            column("log_partition", INT, "Partition of the log; null when the dump does not say"),
            column("first_offset", LONG, "Lowest offset that the run added to log_records"),
            column("last_offset", LONG, "Highest offset that the run added to log_records"),
            column("records", LONG, "Rows added, without empty batches: decoded + quarantined + control"),
            column("control", LONG, "Control records among them"),
            column("decoded", LONG, "Rows of offset_commits, group_records and cluster_records; null before decode"),
            column("quarantined", LONG, "Rows of quarantine; null before decode"),
            column("empty_batches", LONG, "Batches that compaction has emptied; they hold no record"),
            column("compacted_offsets", LONG, "Offsets without a record that compaction explains"),
            column("unknown_offsets", LONG, "Offsets without a record in dumps that cannot show control records"),
            column("missing_offsets", LONG, "Offsets without a record that nothing explains"),
            column("damaged_offsets", LONG, "Offsets without a record where damaged bytes lie"),
            column("gaps", ArrayType(GAP), "The largest gaps that compaction does not explain"),
            column("finished_at", TimestampType(), "When the run had this partition complete"),
            column("version", STRING, "Version of this software"),
        ]
    ),
    key=("cluster", "run_id", "job", "log_topic", "log_partition"),
)
