"""One run at a time: a lease on the tables, a row of a Delta table that its holder renews and others respect."""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from pyspark.sql import Row
from pyspark.sql.types import StringType, StructType, TimestampType

from coordinator_core.errors import CoordinatorAuditError
from jobs.tables import Table, Tables, column

LEASES: Final = Table(
    "leases",
    "Who may write the tables now: one row for each kind of run",
    StructType(
        [
            column("name", StringType(), "What the lease is for"),
            column("owner", StringType(), "Holder: host, process id and a random part; null: nobody"),
            column("acquired_at", TimestampType(), "Since when"),
            column("expires_at", TimestampType(), "Until when it holds, unless it is renewed"),
        ]
    ),
    key=("name",),
)


class BusyError(CoordinatorAuditError):
    """Another run holds the tables."""


class LeaseLostError(CoordinatorAuditError):
    """This run was silent for longer than its lease, and another one has taken over."""


class Owner(NamedTuple):
    """A process; ``text`` and ``parse`` are inverse."""

    host: str
    process: int
    token: str

    @classmethod
    def me(cls) -> Owner:
        """A new owner in this process."""
        return cls(socket.gethostname(), os.getpid(), uuid.uuid4().hex[:8])

    @classmethod
    def parse(cls, text: str) -> Owner:
        """The owner that a row names."""
        host, process, token = text.rsplit("/", 2)
        return cls(host, int(process), token)

    @property
    def text(self) -> str:
        """As in the table."""
        return f"{self.host}/{self.process}/{self.token}"

    def is_gone(self) -> bool:
        """Whether the process is known to be dead; of another host nobody knows."""
        if self.host != socket.gethostname():
            return False
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False


class Lease:
    """A held lease; ``check`` it before writing."""

    def __init__(self, tables: Tables, name: str, length: timedelta) -> None:
        self._tables = tables
        self._name = name
        self._length = length
        self.owner = Owner.me().text
        self._lost: str | None = None

    def acquire(self) -> str | None:
        """Take the lease; returns the holder that it was taken over from, if that had not given it back.

        Raises:
            BusyError: another run holds it.
        """
        self._tables.create(LEASES)
        held = self._row()
        before = held.owner if held is not None else None
        if before is not None and not Owner.parse(before).is_gone() and _aware(held.expires_at) > _now():
            raise _busy(self._tables, held)
        unchanged = "t.owner IS NULL" if before is None else f"t.owner = '{before}'"
        try:
            self._write(self.owner, unchanged, insert=True)
        except Exception as error:  # two that take it at the same moment: Delta lets one commit
            held = self._row()
            if held is None or held.owner is None or held.owner == self.owner:
                raise
            raise _busy(self._tables, held) from error
        held = self._row()
        if held is None or held.owner != self.owner:
            raise _busy(self._tables, held)
        return before

    def renew(self) -> None:
        """Hold it for another length of time."""
        self._write(self.owner, f"t.owner = '{self.owner}'", insert=False)
        held = self._row()
        if held is None or held.owner != self.owner:
            self._lost = "nobody" if held is None else str(held.owner)

    def release(self) -> None:
        """Give it back, if it is still ours."""
        self._write(None, f"t.owner = '{self.owner}'", insert=False)

    def check(self) -> None:
        """Raises LeaseLostError if another run has taken over."""
        if self._lost is not None:
            raise LeaseLostError(
                f"the lease on {self._tables.home} ran out while this run was silent, and {self._lost} took it; "
                "what is done is kept"
            )

    def _row(self) -> Row | None:
        rows = self._tables.read(LEASES).where(f"name = '{self._name}'").collect()
        return rows[0] if rows else None

    def _write(self, owner: str | None, when: str, *, insert: bool) -> None:
        now = _now()
        row = self._tables.spark.createDataFrame([(self._name, owner, now, now + self._length)], LEASES.schema)
        changes = {"owner": "s.owner", "acquired_at": "s.acquired_at", "expires_at": "s.expires_at"}
        if not insert:
            del changes["acquired_at"]
        self._tables.merge(LEASES, row, changes, when=when, insert=insert)


@contextmanager
def held(tables: Tables, name: str, length: timedelta) -> Iterator[tuple[Lease, str | None]]:
    """The lease, renewed in the background, and the dead holder that it was taken from; raises BusyError."""
    lease = Lease(tables, name, length)
    before = lease.acquire()
    done = threading.Event()

    def renew() -> None:
        while not done.wait(length.total_seconds() / 3):
            try:
                lease.renew()
            except Exception:
                # The session may be gone with the run that it belongs to; the next turn, or the expiry, decides.
                continue

    renewer = threading.Thread(target=renew, name=f"lease {name}", daemon=True)
    renewer.start()
    try:
        yield lease, before
    finally:
        done.set()
        renewer.join()
        lease.release()


def _busy(tables: Tables, row: Row | None) -> BusyError:
    if row is None or row.owner is None:
        return BusyError(f"another run takes the tables at {tables.home} at this moment")
    since, until = (_aware(when).isoformat(timespec="seconds") for when in (row.acquired_at, row.expires_at))
    return BusyError(
        f"another run, {row.owner}, works on the tables at {tables.home} since {since}, at least to {until}"
    )


def _now() -> datetime:
    return datetime.now(UTC)


def _aware(when: datetime) -> datetime:
    """Spark gives local times without a zone."""
    return when.astimezone(UTC)
