"""Small changes of a table by this process: as Spark makes them, and none over the change of another run."""

from pathlib import Path

import pytest
from deltalake import DeltaTable, Field, Schema
from deltalake.fs import DeltaStorageHandler
from deltalake.schema import PrimitiveType

from jobs.tables.history import HISTORY
from jobs.tables.local_table import LocalTable
from jobs.tables.nightly import DUMPED_FILES, NIGHTLY_STEPS
from jobs.tables.table import few


@pytest.fixture
def place(tmp_path: Path) -> str:
    DeltaTable.create(str(tmp_path / "files"), Schema.from_arrow(DUMPED_FILES.schema))
    return str(tmp_path / "files")


def opened(place: str) -> LocalTable:
    found = LocalTable.open(place)
    assert found is not None
    return found


def files(**sizes: int):
    return few(DUMPED_FILES, ({"cluster": "c", "path": path, "size": size} for path, size in sizes.items()))


def sizes(place: str) -> dict[str, int]:
    return {row["path"]: row["size"] for row in opened(place).rows().to_pylist()}


def test_no_thread_of_arrow_needs_the_interpreter_to_read_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a thread, in the file system of delta-rs, aborted the process if the interpreter ended meanwhile."""

    def from_table(*arguments: object) -> None:
        raise AssertionError("the file system of delta-rs is written in Python")

    monkeypatch.setattr(DeltaStorageHandler, "from_table", from_table)
    place = str(tmp_path / "a folder, größer")
    DeltaTable.create(place, Schema.from_arrow(DUMPED_FILES.schema))
    opened(place).append(files(a=1), "run/files")
    opened(place).append(files(b=2), "another run/files")
    assert sizes(place) == {"a": 1, "b": 2}


def test_a_transaction_is_committed_once_and_keeps_its_note(place: str) -> None:
    opened(place).append(files(a=1), "run/files", "made of nothing")
    assert DeltaTable(place).history(1)[0]["userMetadata"] == "made of nothing"
    opened(place).append(files(a=1), "run/files")
    opened(place).append(files(b=2), "another run/files")
    assert sizes(place) == {"a": 1, "b": 2}


def test_rows_are_merged_by_a_null_safe_key_and_deleted(place: str) -> None:
    opened(place).add(files(a=1, b=2, c=3))
    opened(place).merge(files(b=20, d=40), DUMPED_FILES.key, {"size": "s.size"}, "t.size < 10", insert=True)
    assert sizes(place) == {"a": 1, "b": 20, "c": 3, "d": 40}
    opened(place).merge(files(b=21, e=50), DUMPED_FILES.key, {"size": "s.size"}, "t.size < 10", insert=False)
    assert sizes(place) == {"a": 1, "b": 20, "c": 3, "d": 40}
    opened(place).delete(files(c=3, d=4))  # modified_ns is null in all of them
    assert sizes(place) == {"a": 1, "b": 20, "d": 40}
    opened(place).replace(files(z=0))
    assert sizes(place) == {"z": 0}
    opened(place).clear()
    assert sizes(place) == {}
    assert opened(place).size() == 0


def test_a_table_that_has_changed_meanwhile_is_not_replaced(place: str) -> None:
    one, other = opened(place), opened(place)
    assert one.replace_if_unchanged(files(a=1))
    assert not other.replace_if_unchanged(files(b=1))
    assert sizes(place) == {"a": 1}


def test_rows_of_history_are_merged_by_positions(tmp_path: Path) -> None:
    table, place = HISTORY["rebalances"], str(tmp_path / "rebalances")
    DeltaTable.create(place, Schema.from_arrow(table.schema))

    def row(offset: int | None, outcome: str) -> dict[str, object]:
        at = {"partition": None if offset is None else 1, "offset": offset, "timestamp_ms": 5}
        return {"cluster": "c", "group_id": "g", "at": at, "outcome": outcome, "is_open": outcome == "open"}

    opened(place).add(few(table, [row(1, "open"), row(2, "finished"), row(None, "open")]))
    update = {name: f"s.{name}" for name in table.schema.names}
    new = few(table, [row(1, "finished"), row(2, "cut off"), row(3, "open"), row(None, "finished")])
    opened(place).merge(new, table.key, update, "t.is_open", insert=True)
    found = [(each["at"]["offset"], each["outcome"]) for each in opened(place).rows().to_pylist()]
    assert sorted(found, key=str) == [(1, "finished"), (2, "finished"), (3, "open"), (None, "finished")]


def test_a_table_that_only_spark_can_write_is_left_to_it(tmp_path: Path) -> None:
    place = str(tmp_path / "steps")
    schema = Schema.from_arrow(NIGHTLY_STEPS.schema)
    DeltaTable.create(place, schema, configuration={"delta.minWriterVersion": "7", "delta.minReaderVersion": "3"})
    assert LocalTable.open(place) is None
    assert LocalTable.open(str(tmp_path / "none")) is None


def test_a_column_that_somebody_added_is_null_in_new_rows(place: str) -> None:
    DeltaTable(place).alter.add_columns([Field("owner", PrimitiveType("string"), nullable=True)])
    opened(place).append(files(a=1), "night 1")
    opened(place).add(files(b=2))
    opened(place).merge(files(b=3, c=4), ["cluster", "path"], {"size": "s.size"}, "true", insert=True)
    assert sizes(place) == {"a": 1, "b": 3, "c": 4}
    assert opened(place).rows()["owner"].null_count == 3
    opened(place).replace(files(d=5))
    assert sizes(place) == {"d": 5}
