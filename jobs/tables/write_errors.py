"""What a file system says where a table cannot be written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from coordinator_core.errors import InputError
from jobs.tables.spark_errors import one_line

NO_WRITING: Final = re.compile(
    "No space left on device|File too large|Read-only file system|Permission denied|Disk quota exceeded"
)


@contextmanager
def writing(name: str) -> Iterator[None]:
    """Name the table in an error of its file system: Spark's own error names a file of the disk at most.

    Raises:
        InputError: there is no room, or the place cannot be written.
    """
    try:
        yield
    except Exception as error:
        # The error of a worker names the place, too.
        if isinstance(error, InputError) or (problem := NO_WRITING.search(str(error))) is None:
            raise
        raise InputError(
            f"table {name} cannot be written: {problem[0]} ({one_line(error)}). What was committed stays: make room, "
            "or let this user write there, and run again"
        ) from error
