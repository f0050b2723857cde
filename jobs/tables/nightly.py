"""The tables in which nightly runs keep what they did, and which files they have read."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import DoubleType, MapType, StructType, TimestampType

from jobs.tables.delta import Table, column
from jobs.tables.log import INT, LONG, STRING

NIGHTLY_STEPS: Final = Table(
    "nightly_steps",
    "One step of one nightly run: how long it took, what it counted, how it ended",
    StructType(
        [
            column("night", STRING, "The run; sorts by time"),
            column("number", INT, "Place of the step in the run, from 1"),
            column("step", STRING, "Its name in the setting nightly.steps"),
            column("ended", STRING, "done, failed, or skipped: not due, or not asked for"),
            column("started_at", TimestampType(), "When it began"),
            column("seconds", DoubleType(), "How long it took"),
            column("counts", MapType(STRING, LONG), "What it counted, by name"),
            column("error", STRING, "Why it failed; null if it did not"),
            column("version", STRING, "Version of this software"),
        ]
    ),
    key=("night", "number"),
)

DUMPED_FILES: Final = Table(
    "dumped_files",
    "A local file of a dump as it was when a nightly run took it in; one that is still so is not read again",
    StructType(
        [
            column("cluster", STRING, "Name of the cluster that the dump is of"),
            column("path", STRING, "The file"),
            column("size", LONG, "Its size, bytes"),
            column("modified_ns", LONG, "Its modification time, ns since the epoch"),
        ]
    ),
    key=("cluster", "path"),
)
