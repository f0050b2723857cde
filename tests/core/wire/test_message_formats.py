"""Segments written and cleaned by Kafka's own classes (kafka-clients 3.9.0), read as those classes read them.

Every message format with every codec and timestamp type it has, four batches each: whole, cleaned so that the last
record is gone, cleaned again, and emptied (v2 keeps such a batch, older formats drop it). Keys and values may be null.
"""

import gzip
import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from coordinator_core.wire.batch_format import BatchHeader, Damage
from coordinator_core.wire.batches import read_columns, read_rows
from coordinator_core.wire.log_columns import columns_of_rows
from tests.core.wire.segments import reader

CASES = json.loads(gzip.decompress((Path(__file__).parents[2] / "data" / "message_formats.json.gz").read_bytes()))


def told(rows: list[Any]) -> list[list[Any]]:
    """Each batch when it begins: bounds and latest time; each record: offset, time, key, value."""
    lines: list[list[Any]] = []
    batch: BatchHeader | None = None
    for row in rows:
        assert not isinstance(row, Damage)
        header = row if isinstance(row, BatchHeader) else row.batch
        if header is not batch:
            batch = header
            lines.append(["batch", header.base_offset, header.last_offset, header.max_timestamp])
        if row is not header:
            lines.append(
                ["record", row.offset, row.timestamp, *(data and data.decode() for data in (row.key, row.value))]
            )
    return lines


@pytest.mark.parametrize("name", sorted(CASES))
def test_read_as_kafka_reads_them(name: str) -> None:
    data = b64decode(CASES[name]["segment"])
    rows = list(read_rows(reader(data), len(data)))
    assert told(rows) == CASES[name]["rows"]
    columns = [line for part in read_columns(reader(data), len(data)) for line in part.to_pylist()]
    assert columns == columns_of_rows(rows).to_pylist()
