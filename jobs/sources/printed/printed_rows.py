"""What every form of printed records becomes: rows with some of the columns ``tables.log.DUMPED``."""

import re
from base64 import b64decode
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from coordinator_core.errors import InputError
from coordinator_core.records import LOG_TOPICS, Family
from coordinator_core.wire.batch_format import TIMESTAMP_TYPES

Row = dict[str, Any]
"""Some of the columns ``tables.log.DUMPED``; missing columns are null. ``segment``: the segment's name, if known."""

FAMILIES: Final = {topic: family for family, topic in LOG_TOPICS.items()}

NAMED_PLACE: Final = re.compile(
    rf"(?P<topic>{'|'.join(map(re.escape, FAMILIES))})"
    r"(?:[-+](?P<partition>\d{1,6})(?!\d)|.*?/partition=(?P<folder>\d{1,6})/)"
)
"""A log partition in the name of a file or folder: as brokers name it, or as sinks do.

Confluent's: ``TOPIC+3+0000.json``, ``TOPIC/partition=3/``; Aiven's: ``TOPIC-3-0.jsonl``.
"""

FOLDER_OF_PARTITION: Final = re.compile(r"/partition=(?P<folder>\d{1,6})/")
"""A folder of Spark's, where the topic is a column."""

NAMED_TOPIC: Final = re.compile(r"/topic=(?P<folder>[a-zA-Z0-9._-]+)/|(?:^|/)(?P<file>[a-zA-Z0-9._-]+)\+\d+\+\d+[^/]*$")
"""Any topic in the name of a folder of Spark's, or of a file of Confluent's sink."""

COLUMNS: Final = (
    *("key", "value", "payload", "topic", "partition", "offset", "timestamp", "ts", "timestampType", "tstype"),
    *("headers", "metadata"),
)
"""The fields of a record that are known, whatever the case in which a database or a sink writes them."""

HEX_DIGITS: Final = "hexadecimal digits, not base64: convert them (xxd -r -p | base64 -w 0)"
HEX: Final = re.compile(r"^(?:0x|\\x)?00[0-9a-fA-F]{2}")
"""How hexadecimal digits of a key or value begin, as databases print them."""

IN_LOWER_CASE: Final = {name.lower(): name for name in COLUMNS}

TIMESTAMP_CODES: Final = {name: code for code, name in TIMESTAMP_TYPES.items()}


SEGMENT: Final = re.compile(r"\d{20}\.(log|checkpoint)")
"""How brokers name the files of a log."""

NOT_PRINTED_BYTES: Final = "not_printed_bytes"
"""In ``extra``: how many bytes of key and value the text does not have; the record's fields are not all there."""


class PrintedPlace(NamedTuple):
    """The log partition that a name tells; empty and None where it does not."""

    topic: str = ""
    partition: int | None = None

    @property
    def family(self) -> Family:
        """The kind of log; of the group coordinator where nothing else is said."""
        return FAMILIES.get(self.topic, Family.GROUP)


def place_of(name: str) -> PrintedPlace:
    """Return the log partition that a path names; of several the last one."""
    found = [*NAMED_PLACE.finditer(name)]
    if not found and (of_topic := NAMED_TOPIC.search(name)) is not None:
        folder = FOLDER_OF_PARTITION.search(name)
        return PrintedPlace(of_topic["folder"] or of_topic["file"], None if folder is None else int(folder["folder"]))
    if not found:
        folder = FOLDER_OF_PARTITION.search(name)
        partition = None if folder is None else int(folder["folder"])
        return PrintedPlace(next((topic for topic in FAMILIES if topic in name), ""), partition)
    return PrintedPlace(found[-1]["topic"], int(found[-1]["partition"] or found[-1]["folder"]))


def known_names(names: Iterable[str]) -> list[str]:
    """Return the names of fields or columns, those that are known in the case that they have in Kafka."""
    return [IN_LOWER_CASE.get(name.lower(), name) for name in names]


def millis(time: int) -> int:
    """Return a time in ms since the epoch, be it given in s, ms, µs or ns: from 1973 on, its size tells in which.

    Read as ms, seconds would be of the first months of 1970, and the others of no time that a broker has.
    """
    if SECONDS <= time < 10 * SECONDS:
        return time * 1000
    return time // 1_000_000 if time >= NANOS else time // 1000 if time >= MICROS else time


def from_base64(text: str, name: str) -> bytes:
    """Return the bytes that a text has; raises InputError where it is none, or of hexadecimal digits.

    All keys and values of these logs begin with a version of two bytes, below 256, so that base64 begins with an A.
    """
    if HEX.match(text):
        raise InputError(f"{name}: {HEX_DIGITS}")
    try:
        return b64decode(text, validate=True)
    except ValueError as error:
        raise InputError(f"{name}: invalid base64: {error}") from error


def damaged(data: bytes, cause: str, place: int) -> Row:
    """Return a row for bytes that are not a record; ``place``: their line."""
    return {"kind": "damaged", "value": data, "error": cause, "place": place}


SECONDS: Final = 10**9
MICROS: Final = 10**14
NANOS: Final = 10**17
"""From these numbers on, up to the next one, a time is in that unit; seconds only up to ten times as much."""

BITS: Final = {"producerEpoch": 15, "partitionLeaderEpoch": 31, "coordinatorEpoch": 31, "sequence": 31}
"""Of numbers that have not 63 bits beside their sign."""


def integer(value: object, name: str) -> int:
    """Return a number that was printed as one or as text; raises InputError, also where it is too large."""
    text = str(value)[:40]
    try:
        number = int(text)
    except ValueError:
        raise InputError(f"{name}: not a number: {text!r}") from None
    if number.bit_length() > BITS.get(name, 63):
        raise InputError(f"{name}: too large: {text!r}")
    return number
