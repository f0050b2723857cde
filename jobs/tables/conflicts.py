"""Writes that another program's commit of the same table makes fail: which of them are repeated, in one place.

A run holds the lease on the tables, so that another commit of a table it writes is, as a rule, maintenance that a
platform does by itself: it moves rows to other files and changes none. Then the write is repeated as it was. Where the
other program has changed rows, only an append is repeated: all others were computed from rows that are no longer there.
"""

import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeVar

from coordinator_core.errors import CoordinatorAuditError, InputError
from jobs.tables.spark_errors import one_line

T = TypeVar("T")

LATE: Final = "coordinator-audit: the lease may have ended before this commit began"
"""What Spark says, where ``SparkTable`` asks, instead of committing. Whether the lease has ended is asked then."""

CONFLICT: Final = re.compile(
    r"\ACommitFailedError|DELTA_CONCURRENT_|DELTA_METADATA_CHANGED"
    rf"|Concurrent(Append|DeleteRead|DeleteDelete|Write|Modification)Exception|{LATE}"
)
"""What Spark and delta-rs say of a commit that another one made fail."""

MAINTENANCE: Final = frozenset({"OPTIMIZE", "VACUUM START", "VACUUM END", "FSCK", "SET TBLPROPERTIES", "REORG"})
"""Operations of Delta's history that change no row."""

MOST_NAMED: Final = 10
"""So many commits of others are looked at."""
ATTEMPTS: Final = 5
"""With the pauses between them they take 1.5 s. Another writer of one table is over by then, or will not be soon."""
PAUSE_S: Final = 0.1
"""Before the second attempt; twice as long before each further one."""


class TableCommit(NamedTuple):
    """A commit in the history of a table: the version that it made, when, Delta's name of what it did, and its note."""

    version: int
    written_ms: int
    operation: str
    note: str | None


class ConflictError(CoordinatorAuditError):
    """Another program changed a table while this run wrote it, or Spark was too slow for the lease of this run."""


def repeated(name: str, write: Callable[[], T], commits: Callable[[int], Sequence[TableCommit]], *, adds: bool) -> T:
    """Return what ``write`` returns; repeat it if a commit of another program made it fail.

    ``commits``: returns so many of the last commits of the table. ``adds``: the write appends rows once, whatever the
    table has.

    Raises:
        ConflictError: another program changed rows of the table, or committed again and again; or Spark began to
            commit later than the lease lasts, again and again.
    """
    # Versions tell what was committed meanwhile: the clocks of other machines may be behind, or ahead.
    before = 0 if adds else commits(1)[0].version
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return write()
        except Exception as error:
            found = CONFLICT.search(f"{type(error).__name__}: {error}")
            if found is None:
                raise
            others = [] if adds else sorted({each.operation for each in commits(MOST_NAMED) if each.version > before})
            # Without any named commit nobody knows what the other program did, and the rows may rest on what is gone.
            is_safe = adds or found[0] == LATE or (bool(others) and MAINTENANCE.issuperset(others))
            if is_safe and attempt < ATTEMPTS:
                # Not all writers wait equally long: two that failed together would meet again.
                time.sleep(PAUSE_S * 2 ** (attempt - 1) * random.uniform(0.5, 1.5))
                continue
            if found[0] == LATE:
                raise ConflictError(
                    f"table {name} was not written: in the last of {ATTEMPTS} attempts Spark began the commit later "
                    "than the lease of this run lasts. What was committed stays: raise nightly.lease_minutes, or give "
                    "Spark a machine with less other work, and run again"
                ) from error
            named = f" ({', '.join(others)})" if others else ""
            problem = one_line(error).rstrip(".")
            raise ConflictError(
                f"table {name} was changed by another program{named} while this run wrote it: {problem}. "
                "What was committed stays: keep other programs from writing the tables, and run again"
            ) from error
    raise AssertionError


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
