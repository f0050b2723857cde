"""Copies of the tables of a catalog that a night works on, and their publication: whole, or taken back."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, Field, write_deltalake
from pyspark.sql import SparkSession

from jobs.tables import publication, working_copy
from jobs.tables.conflicts import ConflictError
from jobs.tables.copies import rows_here
from jobs.tables.delta import Tables
from jobs.tables.format import FORMAT, FORMAT_VERSION
from jobs.tables.kept_copy import MANIFEST
from jobs.tables.nightly import DUMPED_FILES, LEASES, NIGHTLY_STEPS
from jobs.tables.one_writer import writing
from jobs.tables.table import Table, few
from jobs.tables.working_copy import COPIED, WorkingCopy, _changed

SCHEMA = "spark_catalog.published"
LENGTH = timedelta(minutes=5)
MOST = 1 << 30
AT = datetime(2026, 11, 29, 1, 2, 3, tzinfo=UTC)


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """Where the catalog has its tables. Tests look there by themselves: Spark takes a second for it."""
    return tmp_path / "catalog"


@pytest.fixture
def catalog(spark: SparkSession, only_spark_opens: None, there: Path) -> Iterator[Tables]:
    """Two tables with rows, and that of leases, in a schema whose tables only Spark opens."""
    spark.sql(f"CREATE SCHEMA published LOCATION '{there}'")
    by_path = Tables(None, str(there))
    for table, rows in ((DUMPED_FILES, files(a=1, b=1)), (NIGHTLY_STEPS, [step(1)]), (LEASES, [])):
        by_path.create(table)
        by_path.append(table, few(table, rows), "before")
        spark.sql(f"CREATE TABLE {SCHEMA}.{table.name} USING delta LOCATION '{there / table.name}'")
    yield Tables(spark, SCHEMA)
    spark.sql("DROP SCHEMA published CASCADE")


@contextmanager
def alone(tables: Tables) -> Iterator[None]:
    """What ``writing`` does for whoever has the lease, which is seconds of Spark: where no lease is tested."""
    publication.take_back(tables)
    with tables.copying():
        yield


def files(**sizes: int) -> list[dict[str, Any]]:
    return [{"cluster": "c", "path": path, "size": size, "modified_ns": 0} for path, size in sizes.items()]


def step(number: int) -> dict[str, Any]:
    row = dict.fromkeys(NIGHTLY_STEPS.schema.names)
    return row | {"night": "n", "number": number, "started_at": AT, "counts": [("records", number)]}


def elsewhere(patched: pytest.MonkeyPatch) -> None:
    """Spark does not have the files of this machine."""
    patched.setattr(working_copy, "is_beside", lambda session: False)


def all_is_large(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(working_copy, "REPLACED_BYTES", -1)
    patched.setattr(working_copy, "SENT_BYTES", 1)


def renewed(catalog: Tables, place: Path) -> WorkingCopy:
    copy = WorkingCopy(catalog, place)
    assert copy.renew(MOST)
    return copy


def change(tables: Tables) -> None:
    """What a night does: rows are new, others change, others go, and a table is new."""
    tables.append(NIGHTLY_STEPS, few(NIGHTLY_STEPS, [step(2)]), "night")
    changed = {"size": "s.size", "modified_ns": "s.modified_ns"}
    tables.merge(DUMPED_FILES, few(DUMPED_FILES, files(a=2, c=3)), changed, insert=True)
    tables.delete(DUMPED_FILES, few(DUMPED_FILES, files(b=1)).select(["cluster", "path"]))


def rows(there: Path, table: Table) -> list[dict[str, Any]]:
    """The rows of a table, by its key."""
    found = DeltaTable(str(there / table.name)).to_pyarrow_table().to_pylist()
    return sorted(found, key=lambda row: [row[name] for name in table.key])


def sizes(there: Path) -> dict[str, int]:
    return {row["path"]: row["size"] for row in rows(there, DUMPED_FILES)}


def steps(there: Path) -> list[int]:
    return [row["number"] for row in rows(there, NIGHTLY_STEPS)]


def assert_published(there: Path, place: Path) -> None:
    """The catalog has the rows of the copy."""
    for table in (DUMPED_FILES, NIGHTLY_STEPS):
        assert rows(there, table) == rows(place, table)
    assert sizes(there) == {"a": 2, "c": 3}
    assert steps(there) == [1, 2]


@pytest.mark.parametrize(
    ("patches", "commits"),
    [((), 2), ((all_is_large, elsewhere), 3), ((all_is_large,), 3)],
    ids=["small", "large", "large, by Spark"],
)
def test_a_published_night_is_in_the_catalog_and_its_copy_goes_on(
    catalog: Tables,
    there: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    patches: tuple[Callable[[pytest.MonkeyPatch], None], ...],
    commits: int,
) -> None:
    for patch in patches:
        patch(monkeypatch)
    with writing(catalog, LENGTH):
        copy = renewed(catalog, tmp_path / "copy")
        change(copy.tables)
        assert copy.publish() == {"tables": 2, "commits": commits}
        assert copy.publish() == {"tables": 0, "commits": 0}
        copy.keep()
    assert_published(there, tmp_path / "copy")
    assert catalog.properties(LEASES)[publication.NOTE] == ""
    assert catalog.properties(DUMPED_FILES)[FORMAT] == str(FORMAT_VERSION)
    assert WorkingCopy(catalog, tmp_path / "copy").renew(0)


def test_a_catalog_without_tables_gets_them_all_also_empty_ones(
    spark: SparkSession, catalog: Tables, there: Path, tmp_path: Path
) -> None:
    for table in (DUMPED_FILES, NIGHTLY_STEPS, LEASES):
        spark.sql(f"DROP TABLE {SCHEMA}.{table.name}")
        shutil.rmtree(there / table.name)
    fresh = Tables(spark, SCHEMA)
    with writing(fresh, LENGTH):
        copy = renewed(fresh, tmp_path / "copy")
        for table in (DUMPED_FILES, NIGHTLY_STEPS):
            copy.tables.create(table)
        copy.tables.append(NIGHTLY_STEPS, few(NIGHTLY_STEPS, [step(1)]), "night")
        assert copy.publish() == {"tables": 1, "commits": 1}
    assert steps(there) == [1]
    assert sizes(there) == {}


@pytest.mark.parametrize("kills", [pytest.param((1, 3), marks=pytest.mark.long), (1,)])
def test_what_a_killed_publication_has_written_is_taken_back(
    spark: SparkSession,
    catalog: Tables,
    there: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kills: tuple[int, ...],
) -> None:
    """Runs die one after the other: after the first commit, and after the last one, before the note of them goes."""
    place, before = tmp_path / "copy", ({"a": 1, "b": 1}, [1])
    commit, made = Tables.commit, list[str]()
    for killed in kills:

        def dies(self: Tables, table: Table, write: Any, killed: int = killed, **given: Any) -> Any:
            if self.location == SCHEMA and table is not LEASES:
                if len(made) == killed:
                    raise KeyboardInterrupt
                made.append(table.name)
            return commit(self, table, write, **given)

        made.clear()
        tables = Tables(spark, SCHEMA)
        with alone(tables), monkeypatch.context() as patched:
            assert (sizes(there), steps(there)) == before
            patched.setattr(working_copy, "TOGETHER", 1)
            patched.setattr(working_copy, "REPLACED_BYTES", -1)
            copy = renewed(tables, place)
            change(copy.tables)
            patched.setattr(Tables, "commit", dies)
            patched.setattr(publication, "end", lambda tables: None)
            with pytest.raises(KeyboardInterrupt) if killed < 3 else nullcontext():
                copy.publish()
        assert len(made) == killed
        assert (sizes(there), steps(there)) != before
    again = Tables(spark, SCHEMA)
    with writing(again, LENGTH):
        assert (sizes(there), steps(there)) == before
        copy = renewed(again, place)
        change(copy.tables)
        copy.publish()
    assert_published(there, place)


def test_a_table_that_another_program_changed_after_a_kill_is_not_restored(catalog: Tables, there: Path) -> None:
    (newest,) = catalog.there(DUMPED_FILES).commits(1)
    publication.begin(catalog, {DUMPED_FILES.name: publication.Planned(newest.version, 1)})
    for path in ("x", "y"):
        Tables(None, str(there)).append(DUMPED_FILES, few(DUMPED_FILES, files(**{path: 1})), path)
    problem = r"dumped_files has 2 commits since version 1, .* made 1 at most"
    with pytest.raises(ConflictError, match=problem), writing(catalog, LENGTH):
        pass
    assert sizes(there) == {"a": 1, "b": 1, "x": 1, "y": 1}


def newer(place: Path) -> None:
    Tables(None, str(place)).append(DUMPED_FILES, few(DUMPED_FILES, files(z=1)), "another")


def without_a_file(place: Path) -> None:
    next((place / DUMPED_FILES.name).glob("*.parquet")).unlink()


def with_manifest(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Path], None]:
    def spoil(place: Path) -> None:
        (place / MANIFEST).write_text(json.dumps(change(json.loads((place / MANIFEST).read_text()))))

    return spoil


def of_another_metastore(said: dict[str, Any]) -> dict[str, Any]:
    version, written_ms, copied = said[SCHEMA][DUMPED_FILES.name]
    return {SCHEMA: said[SCHEMA] | {DUMPED_FILES.name: [version, written_ms - 1, copied]}}


def test_a_copy_is_made_again_where_it_is_not_what_the_catalog_has(
    spark: SparkSession, catalog: Tables, there: Path, tmp_path: Path
) -> None:
    one, both = {"dumped_files"}, {"dumped_files", "nightly_steps"}
    kept = tmp_path / "kept"

    def made_again(name: str, spoil: Callable[[Path], object] = lambda place: None) -> set[str]:
        """The tables that are copied again once the copy was spoilt."""
        place = shutil.copytree(kept, tmp_path / name)
        spoil(place)
        before = ids(place)
        renewed(catalog, place)
        here = DeltaTable(str(place / DUMPED_FILES.name)).to_pyarrow_table()
        assert sorted(here["path"].to_pylist()) == [*sizes(there)]
        return {table for table, made in ids(place).items() if made != before.get(table)}

    def ids(place: Path) -> dict[str, str]:
        return {table: DeltaTable(str(place / table)).metadata().id for table in both if (place / table).exists()}

    with alone(catalog):
        renewed(catalog, kept).keep()
        assert made_again("same") == set()
        assert made_again("newer", newer) == one
        assert made_again("absent", lambda place: shutil.rmtree(place / DUMPED_FILES.name)) == one
        assert made_again("damaged", without_a_file) == one
        assert made_again("another metastore", with_manifest(of_another_metastore)) == one
        assert made_again("elsewhere", with_manifest(lambda said: {"main.other": said[SCHEMA]})) == both
        assert made_again("unfinished", lambda place: (place / MANIFEST).unlink()) == both
        spark.sql(f"OPTIMIZE {SCHEMA}.dumped_files")
        assert made_again("maintained") == set()
        spark.sql(f"DELETE FROM {SCHEMA}.dumped_files WHERE path = 'b'")
        assert made_again("older") == one


def test_nothing_is_published_over_what_another_program_wrote_meanwhile(
    spark: SparkSession, catalog: Tables, there: Path, tmp_path: Path
) -> None:
    with alone(catalog):
        copy = renewed(catalog, tmp_path / "copy")
        change(copy.tables)
        spark.sql(f"DELETE FROM {SCHEMA}.dumped_files WHERE path = 'a'")
        with pytest.raises(ConflictError, match=r"dumped_files was changed by another program \(DELETE\)"):
            copy.publish()
    assert (sizes(there), steps(there)) == ({"b": 1}, [1])


def test_a_copy_that_is_too_large_is_left_to_spark(catalog: Tables, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    assert not WorkingCopy(catalog, copy).renew(1000)
    assert not (copy / DUMPED_FILES.name).exists()


@pytest.mark.parametrize("patch", [lambda patched: None, all_is_large], ids=["small", "large"])
def test_columns_of_a_user_stay(
    catalog: Tables,
    there: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    patch: Callable[[pytest.MonkeyPatch], None],
) -> None:
    patch(monkeypatch)
    changed = DeltaTable(str(there / DUMPED_FILES.name))
    changed.alter.add_columns([Field("owner", "string")])
    changed.update(updates={"owner": "'me'"})
    with alone(catalog):
        copy = renewed(catalog, tmp_path / "copy")
        copy.tables.merge(DUMPED_FILES, few(DUMPED_FILES, files(a=2)), {"size": "s.size"})
        copy.publish()
    assert [(row["path"], row["size"], row["owner"]) for row in rows(there, DUMPED_FILES)] == [
        ("a", 2, "me"),
        ("b", 1, "me"),
    ]


@pytest.mark.parametrize("table", COPIED.values(), ids=list(COPIED))
def test_rows_that_are_gone_or_new_are_told_by_any_key(table: Table, tmp_path: Path) -> None:
    tables = Tables(None, str(tmp_path))
    tables.create(table)
    place = str(tmp_path / table.name)
    one = few(table, [dict.fromkeys(table.schema.names)])
    tables.replace(table, one)
    assert _changed(table, DeltaTable(place), DeltaTable(place)) is None
    for before, now in ((0, 1), (1, 0)):
        plan = _changed(table, DeltaTable(place, version=before), DeltaTable(place, version=now))
        assert plan is not None
        assert plan.commits == 1


def test_lists_within_null_structs_come_through(spark: SparkSession, tmp_path: Path) -> None:
    """Spark leaves anything in their offsets."""
    columns = "id long, value struct<names: array<string>, more: struct<counts: array<int>>>"
    values = [None, {"names": ["a"], "more": None}, {"names": None, "more": {"counts": [1, 2]}}]
    found = rows_here(spark.createDataFrame([(number, values[number % 7 % 3]) for number in range(1000)], columns))
    assert rows_here(spark.createDataFrame([], columns)).num_rows == 0
    write_deltalake(str(tmp_path / "t"), found)
    assert DeltaTable(str(tmp_path / "t")).to_pyarrow_table().sort_by("id").equals(found.sort_by("id"))
