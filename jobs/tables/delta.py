"""Access to the Delta tables, by path or by catalog name: create them with comments, append exactly once, merge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import cached_property, partial, wraps
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar

import pyarrow as pa

from coordinator_core.errors import InputError
from jobs.settings import EngineLimits
from jobs.tables.conflicts import ConflictError, TableCommit, repeated, writing
from jobs.tables.damage import is_there
from jobs.tables.engine import Engine, Rows, Session, limits_of, runs_steps, started, works_here
from jobs.tables.format import FORMAT, FORMAT_VERSION, check_format
from jobs.tables.reader import (
    MissingTableError,
    Value,
    absolute,
    can_open,
    is_catalog_name,
    is_folder,
    is_store,
    sql_name,
)
from jobs.tables.spark_errors import one_line
from jobs.tables.table import Table, sql_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobs.tables.copies import TableCopies
    from jobs.tables.local_table import LocalTable
    from jobs.tables.opened import Known
    from jobs.tables.registered import RegisteredTables
    from jobs.tables.spark_reader import SparkReader
    from jobs.tables.spark_table import SparkTable

P = ParamSpec("P")
T = TypeVar("T")

INDEXED_COLUMNS = 12
"""Number of leading columns for which Delta keeps minimum and maximum. The columns by which the jobs select are among
them; each further column makes every write slower."""

SENT_BYTES = 64 << 20
"""What this process makes at most to be sent to Spark. Databricks takes rows of 128 MB."""

FENCE = "coordinatorAudit.writer"
"""Property of a table: the random part of the run that took the lease of one that did not give it back."""


class CheckLease(Protocol):
    """Raises LeaseLostError if another run has taken the lease of this one; ``ask``: the row says it, not the time."""

    def __call__(self, *, ask: bool = False) -> datetime | None:
        """Check the lease. Return the time until which nobody can take it; None: nobody does."""


def _no_lease(*, ask: bool = False) -> None:
    """Pass: whoever writes without a lease is alone."""


def _writes(method: Callable[Concatenate[Tables, Table, P], None]) -> Callable[Concatenate[Tables, Table, P], None]:
    """Make what a method of ``Tables`` writes one commit as ``Tables.commit`` has it."""

    @wraps(method)
    def named(self: Tables, table: Table, /, *given: P.args, **options: P.kwargs) -> None:
        rows = given[0] if given else None
        grown_by = rows.nbytes if isinstance(rows, pa.Table) else None
        adds = method.__name__ == "append"
        self.commit(table, lambda: method(self, table, *given, **options), adds=adds, grown_by=grown_by)

    return named


class Tables:
    """The tables at one location: a folder (a path or a URI), or a schema of a catalog (``main.audit``).

    A name without a dot and without a slash is a folder. ``session``: see ``engine``. ``registered``: the schema that
    names them, where they have a path that this process can open; ``location`` is that path then. ``registered_in``: a
    schema that is to name the tables of a folder or an object store.
    """

    def __init__(
        self, session: Session, location: str, limits: EngineLimits | None = None, registered_in: str | None = None
    ) -> None:
        self.registered: RegisteredTables | None = None
        if registered_in is not None and can_open(location):
            self.registered = self._named_in(registered_in, session, absolute(location))
        if session is not None and not can_open(location):
            session, location = self._found(session, location)
        # In an object store, Spark needs credentials of its own: it does all of a night there, or nothing.
        self.session = session if runs_steps(session) or not is_store(location) else None
        self.limits = limits_of(self.session, limits or EngineLimits())
        self.is_folder = is_folder(location)
        self._created: set[str] = set()
        self._empty: set[str] = set()
        self._opened: Known = {}
        self._is_format_checked = False
        self._copies: TableCopies | None = None
        self._asked: TableCopies | None = None
        self.location = absolute(location)
        self.check_lease: CheckLease = _no_lease
        """Called before and after each commit."""
        self._safe_until: datetime | None = None

    @staticmethod
    def _named_in(schema: str, session: Session, place: str) -> RegisteredTables:
        """Return the tables of a place as far as earlier runs have registered them."""
        from jobs.tables.local_table import LocalTable
        from jobs.tables.registered import NAMES, RegisteredTables

        leases = LocalTable.open(f"{place}/leases")
        named = "" if leases is None else leases.properties().get(NAMES + schema, "")
        return RegisteredTables(lambda: started(session), schema, place, filter(None, named.split(",")))

    def _found(self, session: Session, location: str) -> tuple[Session, str]:
        """Return Spark and the place of tables that only Spark can open, as far as their name says."""
        spark = started(session)
        if is_catalog_name(location):
            from jobs.tables.registered import registered  # not at the top: most runs need no Spark

            self.registered = registered(spark, location, works_in_store=not runs_steps(session))
        if self.registered is not None:
            return session, self.registered.place
        return spark, location

    @cached_property
    def spark(self) -> SparkSession:
        """The session of Spark, which starts when it is first asked for.

        Raises:
            InputError: these tables were opened without Spark.
        """
        return started(self.session)

    @property
    def schema(self) -> str | None:
        """Return the schema of a catalog that names the tables; None: none does."""
        if self.registered is not None:
            return self.registered.schema
        return self.location if is_catalog_name(self.location) else None

    def name(self, table: Table) -> str:
        """Return the table's name in Spark's SQL."""
        return sql_name(self.location, table.name)

    def names(self) -> set[str]:
        """Return the names of all tables that a schema of a catalog has."""
        return {row.tableName for row in self.spark.sql(f"SHOW TABLES IN {self.location}").collect()}

    def exists(self, table: Table) -> bool:
        """Return whether the table exists. Raise InputError if it exists but cannot be read."""
        if self.is_here():
            if not self._has_files(table):
                return False
            if self.local(table) is not None:
                return True
        if self._copies is not None and table.name in self._created:
            return True
        try:
            self.read(table)
        except MissingTableError:
            return False
        return True

    def _has_files(self, table: Table) -> bool:
        """Return whether there is a file of the table, be it damaged: then it must not be taken for a new one."""
        if self.is_folder:
            return is_there(Path(self.location, table.name))
        from deltalake import DeltaTable  # not at the top: Python workers of Spark have no use for it

        return DeltaTable.is_deltatable(f"{self.location}/{table.name}")

    def create(self, table: Table) -> None:
        """Create the table if it does not exist; otherwise check that its columns are those of this release.

        Raises:
            InputError: the table cannot be created, or the existing table has other columns or a newer format.
        """
        if table.name in self._created:
            return
        if self.exists(table):
            self._verify(table)
        else:
            self._make(table)
            self._empty.add(table.name)
            if self._copies is not None:
                self._copies.is_new(table.name)
        if self.registered is not None:
            self.registered.add(table.name)
        self._created.add(table.name)

    def is_here(self) -> bool:
        """Return whether this process takes part in the steps of a night; see ``engine``."""
        return works_here(self.session, self.location)

    def engine(self, given: Mapping[str, str] | None = None) -> Engine:
        """Return the engine over the tables as they are now; over given texts of ``SparkReader`` it is Spark alone."""
        here: FolderReader | None = None
        limits = self.limits
        if given is None and self.is_here():
            from jobs.tables.folder_reader import FolderReader  # not at the top: Python workers have no use for it

            here = FolderReader(self.location)
        elif given is None and self._copies is not None:
            from jobs.tables.copies import CopiesReader

            here = CopiesReader(self._copies)
            limits = replace(limits, staged_bytes=min(limits.staged_bytes, SENT_BYTES))
        return Engine(here, None if self.session is None else lambda error: self.spark_reader(given), limits)

    def spark_reader(self, given: Mapping[str, str] | None = None) -> SparkReader:
        """Return a reader that is Spark, over the tables as they are now; ``given``: see there."""
        from jobs.tables.spark_reader import SparkReader  # not at the top: most runs need no Spark

        return SparkReader(self.spark, self.location, given)

    def asked(self) -> Engine:
        """Return the engine for a question, over the tables as they are now.

        Where only Spark can open them, this process reads copies of the small ones, and keeps them for later questions.
        """
        if self.is_here():
            return self.engine()
        from jobs.tables.copies import CopiesReader, TableCopies  # not at the top: workers have no use for it

        if self._asked is None:
            self._asked = TableCopies(self.spark, self.location, self.limits.copied_bytes)
        self._asked.renew()
        return Engine(CopiesReader(self._asked), lambda error: self.spark_reader(), self.limits)

    @contextmanager
    def copying(self) -> Iterator[None]:
        """Let this process read copies of small tables where only Spark can open them: for a run that has the lease, so
        that nothing changes a row but what passes ``commit``.
        """
        if self.is_here():
            yield
            return
        from jobs.tables.copies import TableCopies

        self._copies = copies = TableCopies(self.spark, self.location, self.limits.copied_bytes)
        try:
            yield
        finally:
            self._copies = None
            copies.close()

    def newest_commit(self, table: Table) -> TableCommit:
        """Return the newest commit of a table."""
        return self.commits(table, 1)[0] if self._copies is None else self._copies.newest_commit(table.name)

    def commits(self, table: Table, most: int) -> list[TableCommit]:
        """Return the last commits of a table, the newest first."""
        if self.is_here():
            from jobs.tables.opened import commits  # not at the top: Python workers have no use for it

            if (found := commits(f"{self.location}/{table.name}", most)) is not None:
                return found
        return self.there(table).commits(most)

    def are_copied(self, wanted: Iterable[Table]) -> bool:
        """Return whether this process reads copies of all these tables."""
        names = [table.name for table in wanted]
        opened = self._copies and self.engine().here(lambda reader: all(map(reader.exists, names)))
        return bool(opened)

    def _make(self, table: Table) -> None:
        """Create the table without a Spark job. Another run may create the same table meanwhile."""
        self.check_lease()
        properties = {FORMAT: str(FORMAT_VERSION), "delta.dataSkippingNumIndexedCols": str(INDEXED_COLUMNS)}
        try:
            if self.is_here():
                self._make_here(table, properties)
                return
            self.there(table).create(properties)
        except Exception as error:
            raise InputError(f"table {self.name(table)} cannot be created: {one_line(error)}") from error

    def _make_here(self, table: Table, properties: Mapping[str, str | None]) -> None:
        """Create the table in this process, in a twentieth of the time that Spark takes to plan it."""
        from deltalake import DeltaTable, Schema  # not at the top: Python workers of Spark have no use for it

        DeltaTable.create(
            f"{self.location}/{table.name}",
            Schema.from_arrow(pa.schema(table.columns)),
            mode="ignore",
            description=table.about,
            configuration=properties,
            raise_if_key_not_exists=False,
        )

    def _verify(self, table: Table) -> None:
        """Raise InputError for a table that another release created with other columns, or that was changed by hand."""
        existing = (self.local(table) or self.there(table)).schema()
        if not self._is_format_checked:
            check_format(self.location, self.properties(table))
            # All tables of a location have the same format.
            self._is_format_checked = True
        for wanted in table.schema:
            there = existing.field(wanted.name).type if wanted.name in existing.names else None
            if there != wanted.type:
                problem = "is missing" if there is None else f"has type {sql_type(there)}"
                raise InputError(
                    f"table {self.name(table)} does not match this release: column {wanted.name} {problem}, "
                    f"expected type {sql_type(wanted.type)}"
                )

    def properties(self, table: Table) -> dict[str, str]:
        """Return the properties of a table that exists."""
        return (self.local(table) or self.there(table)).properties()

    def read(self, table: Table) -> DataFrame:
        """Return all rows.

        Raises:
            MissingTableError: the table does not exist.
            InputError: the table cannot be read.
        """
        from jobs.tables.spark_reader import read  # not at the top: most runs need no Spark

        return read(self.spark, self.location, table.name)

    def commit(self, table: Table, write: Callable[[], T], *, adds: bool = False, grown_by: int | None = None) -> T:
        """Return what ``write`` returns, which makes one commit of the table. Every change of a table passes here.

        ``adds``: it appends rows once, whatever the table has. ``grown_by``: the bytes of its rows; None: unknown.

        Raises:
            LeaseLostError: another run has taken the lease of this one; nothing was written.
            InputError: the place cannot be written.
            ConflictError: another program changed the table meanwhile.
        """

        attempts = count()

        def fenced() -> T:
            # What made the first attempt fail may be the fence of the next run.
            self._safe_until = self.check_lease(ask=next(attempts) > 0)
            # A run whose lease was lost while it wrote ends here, and goes on to no other table.
            done = write()
            self.check_lease()
            return done

        with writing(self.name(table)):
            try:
                return repeated(self.name(table), fenced, partial(self.commits, table), adds=adds)
            except ConflictError:
                self.check_lease(ask=True)  # the next run is not another program
                raise
            finally:
                if self._copies is not None:
                    # Also after an error: Spark may have committed before it failed to say so.
                    self._copies.forget(table.name, grown_by)

    def fence(self, table: Table, token: str) -> None:
        """Change a property of a table, so that every commit of it fails that began before: another run's, too."""
        self.set_property(table, FENCE, token)

    def set_property(self, table: Table, name: str, value: str) -> None:
        """Set a property of a table."""

        def change() -> None:
            (self.local(table) or self.there(table)).set_property(name, value)

        self.commit(table, change, adds=True)

    def note_rows(self, table: Table) -> None:
        """Take note that others have written rows: a table that this object has created is not empty any more."""
        self._empty.discard(table.name)

    def local(self, table: Table) -> LocalTable | None:
        """Return the table for small changes by this process; None where Spark has to make them."""
        if not self.is_here():
            return None
        from jobs.tables.local_table import LocalTable  # not at the top: Python workers of Spark have no use for it

        return LocalTable.open(f"{self.location}/{table.name}", self.check_lease, self._opened)

    def kept(self, table: Table) -> LocalTable | SparkTable:
        """Return the table for maintenance: it is Spark's where Spark runs the steps."""
        return (None if runs_steps(self.session) else self.local(table)) or self.there(table)

    def there(self, table: Table) -> SparkTable:
        """Return the table as Spark reads and changes it."""
        from jobs.tables.spark_table import SparkTable  # not at the top: most runs need no Spark

        return SparkTable(self.spark, self.location, table, self._safe_until)

    @_writes
    def append(self, table: Table, rows: Rows, transaction: str, note: str | None = None) -> None:
        """Append rows as one transaction, which may have a note.

        If a transaction of this name was committed before, change nothing.
        """
        name = f"{transaction}/{table.name}"
        if isinstance(rows, pa.Table) and (local := self.local(table)) is not None:
            self._empty.discard(table.name)
            local.append(_in_order(table, rows), name, note)
            return
        self._empty.discard(table.name)
        self.there(table).write(rows, "append", note, txnAppId=name, txnVersion="1")

    @_writes
    def replace(self, table: Table, rows: Rows, note: str | None = None) -> None:
        """Replace all rows of the table by these, in one commit, which may have a note."""
        if isinstance(rows, pa.Table) and (local := self.local(table)) is not None:
            self._empty.discard(table.name)
            local.replace(_in_order(table, rows), note)
            return
        self._empty.discard(table.name)
        self.there(table).write(rows, "overwrite", note)

    @_writes
    def replace_where(self, table: Table, /, rows: Rows, condition: str, **values: Value) -> None:
        """Replace the rows that meet a condition by these, which all meet it, in one commit.

        The condition is SQL for ``TableReader``, and ``values`` are those that it names.
        """
        self._empty.discard(table.name)
        if isinstance(rows, pa.Table) and (local := self.local(table)) is not None:
            local.replace_where(_in_order(table, rows), condition, values)
        else:
            self.there(table).replace_where(rows, condition, values)

    @_writes
    def clear(self, table: Table) -> None:
        """Delete all rows."""
        (self.local(table) or self.there(table)).clear()

    @_writes
    def delete(self, table: Table, rows: Rows) -> None:
        """Delete the rows that equal one of ``rows`` in all columns of ``rows``."""
        if table.name in self._empty:
            return
        local = self.local(table) if isinstance(rows, pa.Table) else None
        if local is not None and local.size() <= self.limits.merged_bytes:
            local.delete(rows)
            return
        self.there(table).delete(rows)

    @_writes
    def merge(
        self,
        table: Table,
        rows: Rows,
        update: Mapping[str, str],
        *,
        when: str = "true",
        insert: bool = False,
        key: Sequence[str] | None = None,
        among: str = "true",
    ) -> None:
        """Update the rows of the table that have the key of one of ``rows`` and satisfy ``when``.

        ``key``: other columns than the key of the table. ``among`` (SQL on ``t`` and ``s``): where it is false, two
        rows do not have the same key.

        ``update`` maps columns to SQL expressions; like ``when``, they refer to the table as ``t`` and to ``rows`` as
        ``s``. With ``insert``, rows whose key the table does not have are inserted.
        """
        local = self.local(table) if isinstance(rows, pa.Table) else None
        if insert and table.name in self._empty:
            # Nothing to match, and no other run writes (lease): an append takes a tenth of the Spark jobs of MERGE.
            self._empty.discard(table.name)
            if local is None:
                self.there(table).write(rows, "append")
            else:
                local.add(_in_order(table, rows))
            return
        if local is not None and local.size() <= self.limits.merged_bytes:
            ordered = _in_order(table, rows) if insert else rows  # rows that only change others may lack columns
            local.merge(ordered, key or table.key, update, when, insert=insert, among=among)
            return
        given = key or table.key
        self.there(table).merge(rows, given, update, when, insert=insert, among=among)


def _in_order(table: Table, rows: pa.Table) -> pa.Table:
    rows = rows.select(table.schema.names)
    return rows.sort_by([(name, "ascending") for name in table.order]) if table.order else rows
