"""What files are that are not logs, by their names and first bytes, and what to do with them.

Brokers keep other files beside segments, and people give files of every kind.
"""

import re
from typing import Final, NamedTuple

from coordinator_core.wire.batch_format import MAGIC_AT, MIN_LENGTH, UP_TO_MAGIC


class FileKind(NamedTuple):
    """A kind of file: its names, its first bytes or both, what it is, and what to do."""

    what: str
    do: str
    name: re.Pattern[str] | None = None
    begins: re.Pattern[bytes] | None = None


def _named(name: str, what: str, do: str) -> FileKind:
    return FileKind(what, do, name=re.compile(name))


def _beginning(begins: bytes, what: str, do: str, name: str | None = None) -> FileKind:
    return FileKind(what, do, None if name is None else re.compile(name), re.compile(begins, re.DOTALL))


TAKE_LOG: Final = "give the segment beside it (.log)"
FORMATTERS: Final = (
    "give the segments, or what kafka-console-consumer prints with --formatter "
    "org.apache.kafka.tools.consumer.OffsetsMessageFormatter, and once more with GroupMetadataMessageFormatter"
)
UNPACK: Final = "unpack it, and give what is in it"

KINDS: Final = (
    _named(r".*\.(index|timeindex|txnindex)", "an index of a segment, which has no records", TAKE_LOG),
    _named(r"\d+\.snapshot", "a broker's snapshot of producers, which has no records", TAKE_LOG),
    _named(r".*\.log\.deleted", "a segment that the broker has replaced and is about to delete", "it is not needed"),
    _named(r".*\.cleaned", "a segment that the log cleaner was making",
        "it is not needed, as the segments that it cleans are there"),
    _named(r"leader-epoch-checkpoint|partition\.metadata|meta\.properties|.*-checkpoint|\.lock|\.kafka_cleanshutdown",
        "a broker's note beside its logs", TAKE_LOG),
    _named(r"\d{20}\.log\.(gz|bz2|xz|zst|lz4)", "a packed segment", "unpack it, or name it itself"),
    _beginning(rb"\x1f\x8b|BZh|\xfd7zXZ\x00|\x28\xb5\x2f\xfd|\x04\x22\x4d\x18",
        "a packed file, and no archive", UNPACK),
    _beginning(rb"7z\xbc\xaf\x27\x1c|Rar!", "an archive that is neither tar nor zip", UNPACK),
    _beginning(rb"ORC|ARROW1|FEA1", "a table in a form that is not read", "write it as Parquet"),
    _beginning(rb"SQLite format 3\0", "a database", "give segments (.log)"),
    _beginning(rb"%PDF-|\x89PNG|\xff\xd8\xff", "a document or picture", "give the text or the segment that it shows"),
    _beginning(rb"(CreateTime|LogAppendTime|NoTimestampType):-?\d+\t|Partition:\d+\t",
        "output of the console consumer without a formatter, which loses bytes",
        FORMATTERS),
    _beginning(rb"\0[\x01-\x1f]", "keys or values as bytes, as the console consumer prints them without a formatter",
        FORMATTERS,
        r"(?!\d{20}\.log).*"),  # a segment begins so, too, where its first bytes are damaged
    _beginning(rb"\s*<(!DOCTYPE|html|\?xml)", "a web page", "give the file that it links"),
    _beginning(rb"(\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d|[A-Z][a-z]{2} \d{1,2} \d\d:\d\d:\d\d |\{\"(@timestamp|log)\":)",
        "an application log", "give it as --broker-log if it is a broker's"),
    _beginning(rb"\{[^\n]*\"(end_offset|resource_type)\"", "a snapshot of a cluster",
        "give it as --topics or --end-offsets"),
    _beginning(rb"\s*(\[\s*)?\{", "JSON that has no records",
        "give objects with key and value in base64, partition, offset and timestamp"),
    _beginning(rb"([^\n]*\n){0,9}?(GROUP\s+TOPIC\s|TOPIC\s+PARTITION\s|[\w.-]+:\d+:\d+\s*\n)",
        "end offsets, as Kafka's tools print them", "give it as --end-offsets"),
    _beginning(rb"(key|value|offset|timestamp|topic|partition)(,\w+)+\r?\n|[A-Za-z0-9+/=]*,[A-Za-z0-9+/=]*(,[\w:.+-]*)*\r?\n",
        "comma-separated values, of which no column is known for sure",
        "have the sink write JSON lines, Avro or Parquet, with key, value, offset and timestamp"),
    _beginning(rb"\0{512}", "a file of zeros, as brokers allocate it before they write", "copy it again later"),
    _beginning(rb"[\t\r\n\x20-\x7e\x80-\xff]{64}|[\t\r\n\x20-\x7e]+\Z", "text that is not output of Kafka's tools",
        "give segments, or what kafka-dump-log --offsets-decoder or the console formatters print"),
)  # fmt: skip
"""The first that fits counts."""


def kind_of(name: str, head: bytes) -> FileKind | None:
    """Return what a file is that is no log, by its name and its first bytes; None: a log, or nothing that is known."""
    for kind in KINDS:
        if kind.name is not None and not kind.name.fullmatch(name):
            continue
        if kind.begins is None or (not begins_with_batch(head) and kind.begins.match(head)):
            return kind
    return None


def begins_with_batch(head: bytes) -> bool:
    """Return whether these first bytes may be those of a record batch, or of a message of the old formats.

    No log has come to an offset of eight bytes: what begins with another byte than 0 is something else.
    """
    if len(head) < UP_TO_MAGIC:
        return False
    least = MIN_LENGTH.get(head[MAGIC_AT])
    return least is not None and int.from_bytes(head[8:12], "big", signed=True) >= least and head[0] == 0
