"""A night of tables that only Spark opens, made on a copy of them in a folder, and then published to the catalog.

Each statement of Spark costs a second, whatever its rows: a night makes hundreds of them through a catalog, and some
thirty this way. The copy is kept from night to night where the setting ``engine.working_copy`` has a place for it. Then
only the tables are copied again that somebody else has changed since.

What is small, this process copies and publishes. What is large, Spark does, where it has the files of this machine:
then the copy is a folder as any other, in which Spark makes what is too much for this process.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from jobs.tables import publication
from jobs.tables.catalog import CATALOG
from jobs.tables.conflicts import MAINTENANCE, ConflictError, TableCommit
from jobs.tables.damage import find, is_there
from jobs.tables.delta import SENT_BYTES, Tables
from jobs.tables.engine import Rows, is_beside, is_empty
from jobs.tables.kept_copy import MANIFEST, Same, published
from jobs.tables.nightly import LEASES
from jobs.tables.publication import Planned
from jobs.tables.table import Table

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame, SparkSession


COPIED: Final = {name: table for name, table in CATALOG.items() if table.key and table is not LEASES}
"""The tables that a night works on, by name. The lease stays where others look for it, and a table without a key has
what Spark's tasks hand over to each other within a step.
"""

TOGETHER: Final = 4
"""How many tables are asked for, copied, or published at a time: Spark's driver plans one while it commits another."""

REPLACED_BYTES: Final = 8 << 20
"""A table whose files are not larger is replaced as a whole where rows have changed: Spark takes one job for that, and
three to find the rows for MERGE."""

COMMITS: Final = 10
"""How many commits of a table are looked at, the newest: maintenance by the platform makes few in a day."""


class Plan(NamedTuple):
    """What makes a table of the catalog equal to its copy: a function of the catalog, and how many commits it makes."""

    commits: int
    write: Callable[[Tables], None]


class WorkingCopy:
    """The copy in ``place`` of the tables of a catalog, of which this run holds the lease."""

    def __init__(self, there: Tables, place: Path) -> None:
        self.there = there
        self._place = place
        self._same: dict[str, Same] = {}
        self.spark = there.spark if is_beside(there.spark) else None
        """Spark, where it has the files of this machine."""
        self.tables = Tables(None if self.spark is None else lambda: there.spark, str(place), there.limits)
        """The tables of the copy."""
        self.copied_bytes = 0
        """Size of the files that were copied to make the copy equal to the catalog."""
        self.tables.check_lease = there.check_lease

    # --- from the catalog --------------------------------------------------------------------------------------------

    def renew(self, most_bytes: int | None) -> bool:
        """Make the copy equal to the catalog, unless more than ``most_bytes`` would have to be copied (None: any).

        Return whether it is equal now.

        Raises:
            InputError: a table of the catalog has another format, or cannot be read.
        """
        kept = published(self._place, self.there.location)
        names = self.there.names() & COPIED.keys()
        with ThreadPoolExecutor(TOGETHER) as together:
            commits = dict(zip(names, together.map(self._commits, names), strict=True))
            damaged = {damage.table for damage in find(str(self._place), COPIED, {})}
            kept = {name: same for name, same in kept.items() if name not in damaged}
            stale = [name for name in names if not self._is_same(name, kept.get(name), commits[name])]
            sizes = dict(
                zip(stale, together.map(lambda name: self.there.there(COPIED[name]).size(), stale), strict=True)
            )
            if most_bytes is not None and sum(sizes.values()) > most_bytes:
                return False
            self._place.mkdir(parents=True, exist_ok=True)
            # Without its manifest a copy is nobody's: a run that is killed from here on leaves nothing to go on from.
            (self._place / MANIFEST).unlink(missing_ok=True)
            for name in COPIED.keys() - (names - {*stale}):
                shutil.rmtree(self._place / name, ignore_errors=True)
            list(together.map(self._copy, stale, sizes.values()))
        for name in names:
            newest = commits[name][0]
            self._same[name] = Same(newest.version, newest.written_ms, self._version(name))
        self.copied_bytes = sum(sizes.values())
        return True

    def _commits(self, name: str) -> list[TableCommit]:
        return self.there.there(COPIED[name]).commits(COMMITS)

    def _newest(self, names: Iterable[str]) -> list[TableCommit]:
        with ThreadPoolExecutor(TOGETHER) as together:
            return [commits[0] for commits in together.map(self._commits, names)]

    def _is_same(self, name: str, kept: Same | None, commits: list[TableCommit]) -> bool:
        """Whether the copy of a table has the rows that the catalog's has now, by its last commits, newest first."""
        if kept is None or not is_there(self._place / name) or self._version(name) != kept.copied:
            return False
        return not _changes(kept, commits)

    def _copy(self, name: str, size: int) -> None:
        from deltalake import write_deltalake  # not at the top: workers have no use for it

        table, place = COPIED[name], str(self._place / name)
        self.there.create(table)  # it is there: its columns are looked at
        self.tables.create(table)
        # A user may have added columns to the table.
        if self.spark is not None and size > SENT_BYTES:
            rows = self.there.read(table)
            rows.write.format("delta").mode("append").option("mergeSchema", "true").save(place)
        else:
            for part in self.there.there(table).slices(SENT_BYTES):
                write_deltalake(place, part, mode="append", schema_mode="merge")
        self.tables.note_rows(table)

    # --- to the catalog ----------------------------------------------------------------------------------------------

    def publish(self) -> dict[str, int]:
        """Write to the catalog what has changed in the copy. Return counts.

        Raises:
            ConflictError: another program has changed a table since it was copied; nothing was published.
        """
        made = [name for name in COPIED if is_there(self._place / name)]
        plans = {name: plan for name in made if (plan := self._plan(name)) is not None}
        with ThreadPoolExecutor(TOGETHER) as together:
            list(together.map(self.there.create, (COPIED[name] for name in made if name not in self._same)))
            before = dict(zip(plans, together.map(self._unchanged, plans), strict=True))
            if plans:
                # A catalog has no transaction over several tables: the note lets the next run restore them if this one
                # is killed.
                publication.begin(
                    self.there, {name: Planned(before[name].version, plan.commits) for name, plan in plans.items()}
                )
                list(together.map(lambda plan: plan.write(self.there), plans.values()))
                publication.end(self.there)
        self.follow(name for name in made if name in plans or name not in self._same)
        return {"tables": len(plans), "commits": sum(plan.commits for plan in plans.values())}

    def follow(self, names: Iterable[str] | None = None) -> None:
        """Take note that tables of the catalog (None: all) have the rows that their copies have."""
        wanted = [*(self._same if names is None else names)]
        for name, newest in zip(wanted, self._newest(wanted), strict=True):
            self._same[name] = Same(newest.version, newest.written_ms, self._version(name))

    def keep(self) -> None:
        """Let the next night go on from this copy, as far as it was published."""
        same = {name: same for name, same in self._same.items() if self._version(name) == same.copied}
        (self._place / MANIFEST).write_text(json.dumps({self.there.location: same}), encoding="utf-8")

    def _unchanged(self, name: str) -> TableCommit:
        """Return the newest commit of a table of the catalog, which has not changed since it was copied."""
        commits = self._commits(name)
        others = _changes(self._same[name], commits) if name in self._same else []
        if others:
            raise ConflictError(
                f"table {self.there.name(COPIED[name])} was changed by another program ({', '.join(others)}) during "
                "this night, of which nothing was published: keep other programs from writing the tables, and run again"
            )
        return commits[0]

    def _plan(self, name: str) -> Plan | None:
        """Return what makes the catalog's table what the copy is; None: it is so."""
        from deltalake import DeltaTable  # not at the top: workers have no use for it

        table, place = COPIED[name], str(self._place / name)
        same = self._same.get(name)
        now = DeltaTable(place)
        before = DeltaTable(place, version=0 if same is None else same.copied)  # a table begins without rows
        files, old_files = set(now.file_uris()), set(before.file_uris())
        new, gone = sorted(files - old_files), sorted(old_files - files)
        # No file went, so that no row has changed: files of Delta are never written again.
        if not gone:
            return _appended(table, new, self.spark)
        if self.spark is not None and sum(Path(file).stat().st_size for file in (*new, *gone)) > SENT_BYTES:
            return _changed_by_spark(table, _read(table, gone, self.spark), _read(table, new, self.spark))
        return _changed(table, before, now)

    def _version(self, name: str) -> int:
        from deltalake import DeltaTable  # not at the top: workers have no use for it

        return DeltaTable(str(self._place / name)).version()


def _changes(same: Same, commits: Sequence[TableCommit]) -> list[str]:
    """Return in words what may have changed rows of a table since it was like its copy, by its last commits, newest
    first.
    """
    since = [commit for commit in commits if commit.version > same.version]
    changes = sorted({commit.operation for commit in since} - MAINTENANCE)
    if len(since) == len(commits):
        # Behind so many commits of maintenance another program's change may be hidden.
        return [*changes, f"{len(commits)} commits or more"]
    is_known = (commits[len(since)].version, commits[len(since)].written_ms) == (same.version, same.written_ms)
    return changes if is_known else [*changes, "another table was made in its place"]


def _read(table: Table, files: Sequence[str], spark: SparkSession) -> DataFrame:
    """Return the rows of Parquet files of a table."""
    from jobs.tables.spark_reader import spark_types  # not at the top: most nights need no Spark

    return spark.read.schema(spark_types(table.schema)).parquet(*files)


def _appended(table: Table, files: list[str], spark: SparkSession | None) -> Plan | None:
    """Return the plan that appends the rows of Parquet files: Spark reads many, or as many are sent at a time as it
    takes.
    """
    from jobs.tables.copies import row_bytes

    about = [pq.read_metadata(file) for file in files]
    rows = sum(each.num_rows for each in about)
    stored = sum(each.row_group(number).total_byte_size for each in about for number in range(each.num_row_groups))
    if not rows:
        return None
    together = -(-rows * SENT_BYTES // max(stored, SENT_BYTES, rows * row_bytes(table.schema)))
    if spark is not None and together < rows:
        return Plan(1, lambda there: there.append(table, _read(table, files, spark), Path(files[0]).name))
    return Plan(-(-rows // together), partial(_append, table, files, together))


def _append(table: Table, files: list[str], together: int, there: Tables) -> None:
    """Append the rows of files, so many of them ``together``."""
    waiting = table.schema.empty_table()
    name = count()
    for batch in ds.dataset(files, schema=table.schema, format="parquet").to_batches():
        waiting = pa.concat_tables([waiting, pa.Table.from_batches([batch], table.schema)])
        while waiting.num_rows >= together:
            there.append(table, waiting.slice(0, together), f"{Path(files[0]).name}/{next(name)}")
            waiting = waiting.slice(together)
    if waiting.num_rows:
        there.append(table, waiting, f"{Path(files[0]).name}/{next(name)}")


def _key(table: Table) -> list[str]:
    """Return the columns that say which row is gone. Some keys have fields of a struct: then it is the whole struct."""
    return [*dict.fromkeys(part.split(".")[0] for part in table.key)]


def _changed_by_spark(table: Table, old: DataFrame, new: DataFrame) -> Plan:
    """Return the plan that changes rows: all those of the files that are new, and of those that are gone.

    They are not compared: the merge reads as many.
    """
    # A file that went may have most of its rows in a new one: gone is only a key that no new file has.
    gone = old.select(*_key(table)).subtract(new.select(*_key(table)))
    return Plan(2, partial(_change, table, new, gone))


def _changed(table: Table, before: DeltaTable, now: DeltaTable) -> Plan | None:
    """Return the plan that changes rows: their keys say which."""
    from deltalake import QueryBuilder

    asked = QueryBuilder().register("now", now).register("before", before)

    def rows(sql: str, schema: pa.Schema = table.schema) -> pa.Table:
        return pa.table(asked.execute(sql).read_all()).select(schema.names).cast(schema)

    key = pa.schema([table.schema.field(name) for name in _key(table)])
    names = ", ".join(f'"{name}"' for name in key.names)
    changed = rows("SELECT * FROM now EXCEPT SELECT * FROM before")
    # EXCEPT takes two nulls for equal, as keys here have some.
    gone = rows(f"SELECT {names} FROM before EXCEPT SELECT {names} FROM now", key)
    if not (changed.num_rows or gone.num_rows):
        return None
    has_own_columns = len(pa.schema(now.schema().to_arrow())) == len(table.schema)  # a user may have added others
    if has_own_columns and sum(pa.table(now.get_add_actions())["size_bytes"].to_pylist()) <= REPLACED_BYTES:
        return Plan(1, lambda there: there.replace(table, rows("SELECT * FROM now")))
    return Plan(bool(gone.num_rows) + bool(changed.num_rows), partial(_change, table, changed, gone))


def _change(table: Table, changed: Rows, gone: Rows, there: Tables) -> None:
    """Delete the rows with the keys of those that are ``gone``, and put in those that are ``changed`` or new."""
    if not is_empty(gone):
        there.delete(table, gone)
    if not is_empty(changed):
        there.merge(table, changed, {name: f"s.{name}" for name in table.schema.names}, insert=True)
