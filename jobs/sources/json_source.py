"""Reads files of JSON lines with ``json_lines.read``, one task for each file: the ``place`` of a row is its line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from jobs.sources.dump_batches import dumped_batches
from jobs.sources.printed import json_lines


class JsonLinesReader(NamedTuple):
    """The files of a dump. Rows of other ``topics`` are left out; those without a topic are not."""

    files: Sequence[str]
    topics: frozenset[str]

    def partitions(self) -> Sequence[str]:
        """Return the files."""
        return self.files

    def size(self, partition: str) -> int:
        """Return the size of a file in bytes."""
        return os.path.getsize(partition)

    def read(self, partition: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one file."""
        rows = json_lines.read(Path(partition))
        wanted = (row for row in rows if row.get("log_topic") is None or row["log_topic"] in self.topics)
        return dumped_batches({**row, "source": partition} for row in wanted)
