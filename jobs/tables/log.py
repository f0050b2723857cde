"""The tables of the log as it was dumped: its records, what could not be decoded, and the ledger of runs."""

import pyarrow as pa

from jobs.tables.table import BINARY, BOOLEAN, INT, LONG, SHORT, STRING, TIMESTAMP, Table, array, column

RUN = [
    column("cluster", STRING, "Name of the cluster that wrote the log"),
    column("run_id", STRING, "Run that ingested the record; sorts by time"),
]

POSITION = [
    column("log_topic", STRING, "Topic of the log"),
    column(
        "log_partition",
        INT,
        "Partition of the log; -1: of a segment that does not tell it; null if the dump does not contain it",
    ),
    column("log_offset", LONG, "Offset in the log; null if the dump does not contain it, and for damaged bytes"),
    column("timestamp_ms", LONG, "Timestamp of the record, ms since the epoch; -1: it has none; null: not in the dump"),
]

BATCH = [
    column("batch_base", LONG, "First offset of the record batch; null if the dump does not contain it"),
    column("batch_last", LONG, "Last offset of the record batch"),
]

ORIGIN = [
    column("source", STRING, "File or broker from which the record was read"),
    column(
        "place",
        LONG,
        "Position in the source: byte in a segment, line (from 1) of JSON lines, record (from 0) of a KRaft snapshot",
    ),
]

STRAY = column("stray", STRING, "Identifies a row without an offset: source#place")

DUMPED = [
    *POSITION,
    column(
        "timestamp_type",
        STRING,
        "CreateTime, LogAppendTime, NoTimestampType, or InValue (of the value); null: not in the dump",
    ),
    column("kind", STRING, "record, control, empty (a batch emptied by compaction) or damaged"),
    column("key", BINARY, "Key of the record"),
    column("value", BINARY, "Value of the record, null for a tombstone; the damaged bytes of a damaged row"),
    column(
        "headers", array(pa.struct([pa.field("key", STRING), pa.field("value", BINARY)])), "Record headers; null: none"
    ),
    *BATCH,
    column("leader_epoch", INT, "Leader epoch of the batch"),
    column("compression", STRING, "Compression codec of the batch"),
    column("producer_id", LONG, "Producer id of the batch; -1: none; null if the dump does not contain it"),
    column("producer_epoch", SHORT, "Epoch of the producer"),
    column("sequence", INT, "Sequence number of the record; -1: none"),
    column("is_transactional", BOOLEAN, "True: it was written in a transaction"),
    column(
        "control_type",
        STRING,
        "Type of a control record: COMMIT, ABORT, LEADER_CHANGE, ...; UNKNOWN if compaction removed it",
    ),
    column("coordinator_epoch", INT, "Epoch of the transaction coordinator"),
    column(
        "outcome", STRING, "Outcome of the transaction: committed, aborted, open or unknown; null: not in a transaction"
    ),
    *ORIGIN,
    column("error", STRING, "Why the bytes of a damaged row are not a record"),
    column("extra", pa.map_(STRING, STRING), "Other columns of the dump, as text; null: none"),
]
"""The columns that every source yields, in this order."""

KEPT = {
    field.name: field
    for field in (
        column("key", BINARY, "Key of the record; null if another table gives it back"),
        column("value", BINARY, "Value of the record, or the damaged bytes; null if another table gives it back"),
    )
}

LOG_RECORDS = Table(
    "log_records",
    "One record of a log as dumped, with its position, its producer and the outcome of its transaction",
    [
        *RUN,
        column("record_type", SHORT, "Record type: the first two bytes of the key"),
        *(KEPT.get(field.name, field) for field in DUMPED),
        STRAY,
        column("revised_by", STRING, "Last run that added facts about the record"),
        column("value_dropped", BOOLEAN, "True: maintenance has deleted the value"),
        column("key_hash", LONG, "Hash of the key (xxhash64); null: no key"),
    ],
    key=("cluster", "log_topic", "log_partition", "log_offset", "kind", "stray"),
)

LOG_RANGES = Table(
    "log_ranges",
    "Offsets of one log partition, in one leader epoch and without a gap, that one run added",
    [
        *RUN,
        column("log_topic", STRING, "Topic of the log"),
        column("log_partition", INT, "Partition of the log"),
        column("first_offset", LONG, "First offset of the range"),
        column("last_offset", LONG, "Last offset of the range"),
        column("leader_epoch", INT, "Leader epoch of its batches; null if the dump does not contain it"),
        column("records", LONG, "Number of records and control records"),
        column("first_ms", LONG, "Earliest time of a record, ms since the epoch; null: none has a time"),
        column("last_ms", LONG, "Latest time of a record; null: none has a time"),
        column("has_start", BOOLEAN, "True: it proves that the log partition was read from its start"),
    ],
    key=("cluster", "run_id", "log_topic", "log_partition", "first_offset"),
)

QUARANTINE = Table(
    "quarantine",
    "One record that could not be decoded, or damaged bytes of a log",
    [
        *RUN,
        *POSITION,
        *ORIGIN,
        STRAY,
        column("reason", STRING, "The error, with record type and field path if decoding got so far"),
        column("part", STRING, "What could not be decoded: key, value, type (no schema has it) or damaged"),
        column("byte_position", LONG, "Byte position of the error in the key or value; of damaged bytes in the file"),
        column("key", BINARY, "Key of the record"),
        column("value", BINARY, "Value of the record, or the damaged bytes"),
        column("record_type", SHORT, "Record type (number)"),
        column("group_id", STRING, "Group that the key names"),
    ],
    key=("cluster", "log_topic", "log_partition", "log_offset", "stray"),
)

GAP = pa.struct(
    [
        column("first_offset", LONG, "First offset of the gap"),
        column("last_offset", LONG, "Last offset of the gap"),
        column(
            "cause", STRING, "missing, damaged, or unknown (missing, or control records that a consumer cannot see)"
        ),
    ]
)

RUNS = Table(
    "runs",
    "What one run read from one log partition: offsets, counts that must add up, gaps",
    [
        *RUN,
        column("job", STRING, "ingest or decode"),
        column("log_topic", STRING, "Topic of the log"),
        column(
            "log_partition",
            INT,
            "Partition of the log; -1: of a segment that does not tell it; null if the dump does not contain it",
        ),
        column("first_offset", LONG, "Lowest offset that this run added to log_records"),
        column("last_offset", LONG, "Highest offset that this run added to log_records"),
        column("records", LONG, "Rows added, empty batches not counted; equals decoded + quarantined + control"),
        column("control", LONG, "Number of control records among these rows"),
        column(
            "decoded", LONG, "Rows added to offset_commits, group_records and cluster_records; null before decoding"
        ),
        column("quarantined", LONG, "Rows added to quarantine; null before decoding"),
        column("empty_batches", LONG, "Batches without records, because compaction has removed them"),
        column("compacted_offsets", LONG, "Offsets without a record, removed by compaction"),
        column("unknown_offsets", LONG, "Offsets without a record that may be control records"),
        column("missing_offsets", LONG, "Offsets without a record that neither compaction nor damage explains"),
        column("damaged_offsets", LONG, "Offsets without a record because the bytes are damaged"),
        column("gaps", array(GAP), "The largest gaps not caused by compaction"),
        column("finished_at", TIMESTAMP, "When the run had finished this partition"),
        column("version", STRING, "Version of this software"),
    ],
    key=("cluster", "run_id", "job", "log_topic", "log_partition"),
)
