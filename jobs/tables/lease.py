"""Only one run writes the tables at a time: it holds a lease, a row of a Delta table that it renews while it runs.

Before and after each commit the run makes sure that the lease is still its own. Nobody takes a lease before it expires,
except from a process that is proven dead. So within two thirds of its length no question is needed: a third is left for
clocks of two machines that differ. Later, because the machine stood still or the renewal failed, the row is asked.

A machine may stand still between the check and the commit, and wake up after its lease was taken. So a run that takes
the lease of one that did not give it back first changes a property of every table: Delta lets no commit pass that began
before a change of the metadata. In this process a commit begins (the table is opened) before the check, so that nothing
can come between. In Spark it begins after the check. So what Spark is given to write asks for the time once its commit
has begun, and is an error if the lease may have ended by then.
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import threading
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from coordinator_core.errors import CoordinatorAuditError, InputError
from jobs.tables.conflicts import ConflictError, repeated, writing
from jobs.tables.delta import Tables
from jobs.tables.engine import is_elsewhere
from jobs.tables.nightly import LEASES
from jobs.tables.reader import Row, sql_text
from jobs.tables.table import Table, few

if TYPE_CHECKING:
    from jobs.tables.local_table import LocalTable

WRITER: Final = "writer"
"""Name of the lease that a run needs to write the tables."""


RETRIES: Final = 5
"""How often a row is written again that was not written because of another commit of the table meanwhile."""


_HELD: set[str] = set()
"""Random parts of the owners of leases that runs of this process hold now."""


class BusyError(CoordinatorAuditError):
    """Another run holds the lease."""


class LeaseLostError(CoordinatorAuditError):
    """This run did not renew its lease in time, and another run has taken it."""


def process_place() -> str | None:
    """Return a name of what numbers the processes that this one sees: the machine since it started, or a container.

    Containers may have one host name, and each has a process 1. None: it cannot be known here.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        numbering = os.readlink("/proc/self/ns/pid")
    except OSError:
        return None if sys.platform == "linux" else f"{uuid.getnode():x}"
    return hashlib.sha256(f"{boot} {numbering}".encode()).hexdigest()[:12]


class LeaseOwner(NamedTuple):
    """The process that holds a lease; ``parse`` is the inverse of ``text``.

    ``place``: as ``process_place``; empty: unknown, as it is of a run of a release that did not write it.
    """

    host: str
    place: str
    process: int
    token: str

    @classmethod
    def me(cls) -> LeaseOwner:
        """Return a new owner: this process, with a new random part."""
        return cls(socket.gethostname(), process_place() or "", os.getpid(), uuid.uuid4().hex[:16])

    @classmethod
    def parse(cls, text: str) -> LeaseOwner:
        """Return the owner that a row of the table names; one that this software did not write has no process."""
        host, _, rest = text.partition("/")
        process, _, token = rest.rpartition("/")
        name, _, place = host.partition("@")
        return cls(name, place, int(process) if process.isdecimal() else -1, token)

    @property
    def text(self) -> str:
        """The owner as the table stores it."""
        return f"{self.host}@{self.place}/{self.process}/{self.token}"

    def is_gone(self) -> bool:
        """Return whether the run is known to have ended; False for a process that cannot be seen from here.

        A run of this process may have ended without giving its lease back, because the disk was full.
        """
        if self.process < 0 or not self.place or (self.host, self.place) != (socket.gethostname(), process_place()):
            return False
        if self.process == os.getpid():
            return self.token not in _HELD
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False


class LeaseRow(NamedTuple):
    """A row of ``leases``."""

    name: str
    owner: str | None
    acquired_at: datetime
    expires_at: datetime


class Lease:
    """A lease that this process holds. Call ``check`` before writing."""

    def __init__(self, tables: Tables, name: str, length: timedelta) -> None:
        self._tables = tables
        self._name = name
        self._length = length
        self.owner = LeaseOwner.me().text
        self._lost: str | None = None
        self._confirmed = _now()
        self._renewing = threading.Lock()

    def acquire(self) -> str | None:
        """Take the lease. Return the previous holder if it died without releasing the lease, otherwise None.

        Raises:
            BusyError: another run holds the lease.
        """
        self._tables.create(LEASES)
        held = self._row()
        before: str | None = None
        if held is not None and held.owner is not None:
            before = str(held.owner)
            # A Spark Connect server goes on for a while with the work of a client that is dead.
            is_gone = not is_elsewhere(self._tables.session) and LeaseOwner.parse(before).is_gone()
            if not is_gone and _aware(held.expires_at) > _now():
                raise _busy(self._tables, held)
        token = LeaseOwner.parse(self.owner).token
        self._confirmed = _now()
        # Before the row names it: a run of this process that finds the row must not take its holder for gone.
        _HELD.add(token)
        try:
            self._take(held, before)
        except Exception:
            _HELD.discard(token)
            raise
        return before

    def _take(self, held: LeaseRow | None, before: str | None) -> None:
        try:
            taken = self._insert() if held is None else self._take_from(before)
        except Exception as error:  # two runs take the lease at the same moment: Delta lets one of them commit
            held = self._row()
            # Nobody was faster: the error is not that of a race.
            if held is None or held.owner in (None, before):
                raise
            raise _busy(self._tables, held) from error
        if not taken:
            raise _busy(self._tables, self._row())

    def renew(self) -> None:
        """Extend the lease by its full length from now. Raises ConflictError if other programs do not let it."""
        with self._renewing:
            # Taken before the row is written: the lease counts from a time at which nobody else can have had it.
            began = _now()
            if self._update({"expires_at": began + self._length}, self.owner):
                self._confirmed = began
                return
            held = self._row()
            self._lost = "another run" if held is None or held.owner is None else str(held.owner)

    def release(self) -> None:
        """Release the lease if this process still holds it."""
        # First, so that the next run of this process may take the lease even if the table cannot be written now.
        _HELD.discard(LeaseOwner.parse(self.owner).token)
        # The row stays, without an owner: who finds it so need not fence the tables.
        self._update({"owner": None, "expires_at": _now()}, self.owner)

    def check(self, *, ask: bool = False) -> datetime:
        """Make sure that this run still holds the lease: call this before each commit.

        Return a time until which nobody takes it, also by a clock that is a sixth of its length late. ``ask``: the row
        is asked, however short ago it was renewed.

        Raises:
            LeaseLostError: another run has taken the lease.
            ConflictError: it has to be renewed, and other programs do not let it.
        """
        # Below 0 the clock was set back: how long the lease was held is not known, and the row is asked.
        is_fresh = timedelta(0) <= _now() - self._confirmed < self._length * 2 / 3
        if self._lost is None and (ask or not is_fresh):
            self.renew()
        if self._lost is not None:
            raise LeaseLostError(
                f"this run did not renew its lease on {self._tables.location} in time, and {self._lost} took it; "
                "completed work is kept"
            )
        return self._confirmed + self._length * 5 / 6

    def _row(self) -> LeaseRow | None:
        local = self._tables.local(LEASES)
        return self._through_spark() if local is None else self._of(local.rows())

    def _through_spark(self) -> LeaseRow | None:
        rows = self._tables.read(LEASES).where(f"name = {sql_text(self._name)}").collect()
        return LeaseRow(*rows[0]) if rows else None

    def _of(self, rows: pa.Table) -> LeaseRow | None:
        return next((row for lease in rows.to_pylist() if (row := LeaseRow(**lease)).name == self._name), None)

    def _insert(self) -> bool:
        new = LeaseRow(self._name, self.owner, _now(), _now() + self._length)
        if (local := self._tables.local(LEASES)) is not None:
            # Read and written as one version: of two runs that find no row, one fails to commit.
            return self._of(local.rows()) is None and self._put(local, new)
        name = sql_text(self._name)
        row = ", ".join(map(_literal, new))
        return self._changed(
            f"MERGE INTO {self._tables.name(LEASES)} t USING (SELECT {name} AS name) s ON t.name = s.name "
            f"WHEN NOT MATCHED THEN INSERT ({', '.join(new._fields)}) VALUES ({row})"
        )

    def _take_from(self, before: str | None) -> bool:
        return self._update({"owner": self.owner, "acquired_at": _now(), "expires_at": _now() + self._length}, before)

    def _update(self, values: Row, owner: str | None) -> bool:
        """Change the row if ``owner`` holds the lease. Return whether it was changed.

        Raises:
            ConflictError: another program committed to the table first, again and again: who holds the lease is open.
        """
        if self._tables.local(LEASES) is not None:
            return self._update_here(values, owner)
        changes = ", ".join(f"{name} = {_literal(value)}" for name, value in values.items())
        is_owner = "owner IS NULL" if owner is None else f"owner = {sql_text(owner)}"
        is_row = f"name = {sql_text(self._name)} AND {is_owner}"
        return self._changed(f"UPDATE {self._tables.name(LEASES)} SET {changes} WHERE {is_row}")

    def _update_here(self, values: Row, owner: str | None) -> bool:
        # Not each commit of the table changes the row: VACUUM makes one, too.
        for _ in range(RETRIES):
            local = self._tables.local(LEASES)
            held = None if local is None else self._of(local.rows())
            if local is None or held is None or held.owner != owner:
                return False
            if self._put(local, held._replace(**values)):
                return True
        raise ConflictError(
            f"the row of lease {self._name} of {self._tables.name(LEASES)} was not changed: each of {RETRIES} times "
            "another program committed to the table first. What was committed stays: keep other programs from writing "
            "the tables, and run again"
        )

    def _put(self, local: LocalTable, row: LeaseRow) -> bool:
        """Write the row if nobody has changed the table since it was read; other leases stay as they are."""
        others = [lease for lease in local.rows().to_pylist() if lease["name"] != self._name]
        with writing(self._tables.name(LEASES)):
            return local.replace_if_unchanged(few(LEASES, [*others, row._asdict()]))

    def _changed(self, statement: str) -> bool:
        name = self._tables.name(LEASES)
        with writing(name):
            (done,) = repeated(
                name,
                lambda: self._tables.spark.sql(statement).collect(),
                partial(self._tables.commits, LEASES),
                adds=False,
            )
        return int(done.num_affected_rows) == 1


@contextmanager
def held(
    tables: Tables, name: str, length: timedelta, fenced: Iterable[Table] = ()
) -> Iterator[tuple[Lease, str | None]]:
    """Hold a lease, and renew it in the background. Yields the lease, and the dead run that held it before or None.

    While it is held, each commit of these ``tables`` makes sure that it is. ``fenced``: the tables of which a run that
    did not give the lease back can commit nothing any more.

    Raises:
        BusyError: another run holds the lease.
    """
    lease = Lease(tables, name, length)
    before = lease.acquire()
    # From here on each commit asks; what came before, such as the row of the lease itself, must not.
    before_check, tables.check_lease = tables.check_lease, lease.check
    done = threading.Event()

    def renew() -> None:
        # Three times in its length: one renewal may fail before the lease stops to count as fresh.
        while not done.wait(length.total_seconds() / 3):
            try:
                lease.renew()
            except Exception:
                # The Spark session may have ended together with the run. The next renewal, or the expiry, decides.
                continue

    renewer = threading.Thread(target=renew, name=f"lease {name}", daemon=True)
    renewer.start()
    try:
        if before is not None:
            _fence(tables, fenced, LeaseOwner.parse(lease.owner).token)
        yield lease, before
    finally:
        done.set()
        renewer.join()
        tables.check_lease = before_check
        # If the tables cannot be written, the lease expires by itself. The error that ended the run must not be hidden.
        with suppress(Exception):
            lease.release()


def _fence(tables: Tables, fenced: Iterable[Table], token: str) -> None:
    for table in fenced:
        # A damaged table takes nobody's commit.
        with suppress(InputError):
            if table is not LEASES and tables.exists(table):
                tables.fence(table, token)


def _busy(tables: Tables, row: LeaseRow | None) -> BusyError:
    if row is None or row.owner is None:
        return BusyError(f"another run is just taking the lease on the tables at {tables.location}")
    since, until = (_aware(when).isoformat(timespec="seconds") for when in (row.acquired_at, row.expires_at))
    return BusyError(
        f"another run, {row.owner}, has been writing the tables at {tables.location} since {since}; "
        f"its lease lasts until {until}"
    )


def _now() -> datetime:
    return datetime.now(UTC)


def _literal(value: str | datetime | None) -> str:
    if value is None:
        return "NULL"
    return sql_text(value) if isinstance(value, str) else f"TIMESTAMP '{value.isoformat()}'"


def _aware(when: datetime) -> datetime:
    """Return the time in UTC. Spark returns local times without a zone."""
    return when.astimezone(UTC)
