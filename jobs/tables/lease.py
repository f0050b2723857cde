"""One run at a time: a lease on the tables, a row of a Delta table that its holder renews and others respect."""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from pyspark.sql import Row
from pyspark.sql.types import StringType, StructType, TimestampType

from coordinator_core.errors import CoordinatorAuditError
from jobs.tables.delta import Table, Tables, column

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


WRITER: Final = "writer"
"""The lease of whoever writes the tables: one at a time."""


class BusyError(CoordinatorAuditError):
    """Another run holds the tables."""


class LeaseLostError(CoordinatorAuditError):
    """This run was silent for longer than its lease, and another one has taken over."""


class LeaseOwner(NamedTuple):
    """A process; ``text`` and ``parse`` are inverse."""

    host: str
    process: int
    token: str

    @classmethod
    def me(cls) -> LeaseOwner:
        """A new owner in this process."""
        return cls(socket.gethostname(), os.getpid(), uuid.uuid4().hex[:8])

    @classmethod
    def parse(cls, text: str) -> LeaseOwner:
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
        self.owner = LeaseOwner.me().text
        self._lost: str | None = None

    def acquire(self) -> str | None:
        """Take the lease; returns the holder that it was taken over from, if that had not given it back.

        Raises:
            BusyError: another run holds it.
        """
        self._tables.create(LEASES)
        held = self._row()
        before: str | None = None
        if held is not None and held.owner is not None:
            before = str(held.owner)
            if not LeaseOwner.parse(before).is_gone() and _aware(held.expires_at) > _now():
                raise _busy(self._tables, held)
        try:
            taken = self._insert() if held is None else self._take_from(before)
        except Exception as error:  # two that take it at the same moment: Delta lets one commit
            held = self._row()
            if held is None or held.owner is None:
                raise
            raise _busy(self._tables, held) from error
        if not taken:
            raise _busy(self._tables, self._row())
        return before

    def renew(self) -> None:
        """Hold it for another length of time."""
        if not self._update({"expires_at": self._until()}, self.owner):
            held = self._row()
            self._lost = "nobody" if held is None else str(held.owner)

    def release(self) -> None:
        """Give it back, if it is still ours."""
        self._update({"owner": "NULL", "expires_at": _moment(_now())}, self.owner)

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

    def _insert(self) -> bool:
        row = f"'{self._name}', '{self.owner}', {_moment(_now())}, {self._until()}"
        return self._changed(
            f"MERGE INTO {self._tables.name(LEASES)} t USING (SELECT '{self._name}' AS name) s ON t.name = s.name "
            f"WHEN NOT MATCHED THEN INSERT (name, owner, acquired_at, expires_at) VALUES ({row})"
        )

    def _take_from(self, before: str | None) -> bool:
        mine = {"owner": f"'{self.owner}'", "acquired_at": _moment(_now()), "expires_at": self._until()}
        return self._update(mine, before)

    def _update(self, values: Mapping[str, str], owner: str | None) -> bool:
        """Set the row, as long as it is this owner's; returns whether it was."""
        changes = ", ".join(f"{name} = {value}" for name, value in values.items())
        is_owner = "owner IS NULL" if owner is None else f"owner = '{owner}'"
        return self._changed(
            f"UPDATE {self._tables.name(LEASES)} SET {changes} WHERE name = '{self._name}' AND {is_owner}"
        )

    def _changed(self, statement: str) -> bool:
        (done,) = self._tables.spark.sql(statement).collect()
        return int(done.num_affected_rows) == 1

    def _until(self) -> str:
        return _moment(_now() + self._length)


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
        # Where the tables cannot be written the lease runs out by itself; what ended the run is the thing to tell.
        with suppress(Exception):
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


def _moment(when: datetime) -> str:
    return f"TIMESTAMP '{when.isoformat()}'"


def _aware(when: datetime) -> datetime:
    """Spark gives local times without a zone."""
    return when.astimezone(UTC)
