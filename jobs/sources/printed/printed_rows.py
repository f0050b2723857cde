"""What every form of printed records becomes: rows with some of the columns ``tables.log.DUMPED``."""

from __future__ import annotations

import re
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
    if not found:
        folder = FOLDER_OF_PARTITION.search(name)
        partition = None if folder is None else int(folder["folder"])
        return PrintedPlace(next((topic for topic in FAMILIES if topic in name), ""), partition)
    return PrintedPlace(found[-1]["topic"], int(found[-1]["partition"] or found[-1]["folder"]))


def damaged(data: bytes, cause: str, place: int) -> Row:
    """Return a row for bytes that are not a record; ``place``: their line."""
    return {"kind": "damaged", "value": data, "error": cause, "place": place}


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
