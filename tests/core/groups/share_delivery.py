"""The recorded log of share delivery, and what is known about it (``data/samples/share_delivery``)."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coordinator_core.records import AnyRecord, CoordinatorRecord, LogPosition

RECORDING = Path(__file__).resolve().parents[3] / "data" / "samples" / "share_delivery"

Line = dict[str, Any]


def known_lines(name: str) -> Iterator[Line]:
    """The lines of a file of ``known``."""
    with gzip.open(RECORDING / "known" / f"{name}.jsonl.gz", "rt") as lines:
        yield from map(json.loads, lines)


def decoded_records() -> Iterator[AnyRecord]:
    """The records of the share state log as Kafka's own classes decode them, partition by partition."""
    for line in known_lines("decoded_share_state"):
        at = LogPosition(line["partition"], line["offset"], line["timestamp"])
        yield CoordinatorRecord(at, line["type"], line["key"], line["value"], line["valueVersion"], line["batchBase"])


def folded_states() -> Iterator[Line | None]:
    """The state of the record's share partition after each of them, as Kafka's share coordinator holds it."""
    for line in known_lines("folded_share_state"):
        yield line["state"]
