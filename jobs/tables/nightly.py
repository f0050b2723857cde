"""The tables in which nightly runs record their steps, the files that they have read, and who of them writes."""

from typing import Final

import pyarrow as pa

from jobs.tables.table import DOUBLE, INT, LONG, STRING, TIMESTAMP, Table, column

NIGHTLY_STEPS: Final = Table(
    "nightly_steps",
    "One step of one nightly run: duration, counts, and how it ended",
    [
        column("night", STRING, "Id of the run; sorts by time"),
        column("number", INT, "Position of the step in the run, from 1"),
        column("step", STRING, "Name of the step, as in the setting nightly.steps"),
        column("ended", STRING, "done, failed or skipped"),
        column("started_at", TIMESTAMP, "When the step began"),
        column("seconds", DOUBLE, "Duration in seconds"),
        column("counts", pa.map_(STRING, LONG), "Counts of the step, by name"),
        column("error", STRING, "Error of a failed step; null for other steps"),
        column("version", STRING, "Version of this software"),
    ],
    key=("night", "number"),
)

DUMPED_FILES: Final = Table(
    "dumped_files",
    "One local dump file as a nightly run ingested it; it is read again only after it has changed",
    [
        column("cluster", STRING, "Name of the cluster that wrote the log"),
        column("path", STRING, "Path of the file"),
        column("size", LONG, "Size in bytes"),
        column("modified_ns", LONG, "Modification time, ns since the epoch"),
    ],
    key=("cluster", "path"),
)

LEASES: Final = Table(
    "leases",
    "Which run may write the tables now; one row for each lease",
    [
        column("name", STRING, "Name of the lease"),
        column("owner", STRING, "Holder of the lease: host@place/process id/random part; null: not held"),
        column("acquired_at", TIMESTAMP, "When the holder took the lease"),
        column("expires_at", TIMESTAMP, "When the lease ends if it is not renewed"),
    ],
    key=("name",),
)
