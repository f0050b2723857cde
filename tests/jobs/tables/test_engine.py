"""Tables that this process cannot read are read through Spark, one table by itself."""

from collections.abc import Iterator
from typing import Any

import pytest

from coordinator_core.errors import InputError
from jobs.tables.engine import Engine
from jobs.tables.folder_reader import UnsupportedTableError


class Reader:
    """Has the tables ``new``, which only Spark can read, ``broken``, and ``old``."""

    def __init__(self, name: str, *, knows_new: bool) -> None:
        self.location, self.knows_new = name, knows_new

    def exists(self, table: str) -> bool:
        self._open(table)
        return table in ("new", "old")

    def rows(self, sql: str, **values: Any) -> Iterator[dict[str, Any]]:
        self._open(sql)
        yield from ({"by": self.location, "n": n} for n in range(values["count"]))

    def _open(self, table: str) -> None:
        if table == "new" and not self.knows_new:
            raise UnsupportedTableError("table new has aFeature")
        if table == "broken":
            raise InputError("table broken cannot be read")


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def reader(said: list[str]) -> Engine:
    def through_spark(error: UnsupportedTableError | None) -> Reader:
        said.append(str(error))
        return Reader("spark", knows_new=True)

    return Engine(Reader("folder", knows_new=False), through_spark)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_each_row_comes_once_from_the_reader_that_can_read_the_table(reader, said, count) -> None:
    assert list(reader.rows("old", count=count)) == [{"by": "folder", "n": n} for n in range(count)]
    assert said == []
    for _ in range(2):
        assert list(reader.rows("new", count=count)) == [{"by": "spark", "n": n} for n in range(count)]
    assert said == ["table new has aFeature"]
    assert list(reader.rows("old", count=count)) == [{"by": "folder", "n": n} for n in range(count)]


def test_whether_a_table_exists(reader, said) -> None:
    assert [reader.exists(table) for table in ("old", "new", "none")] == [True, True, False]
    assert len(said) == 1


def test_another_error_stays_an_error(reader) -> None:
    with pytest.raises(InputError, match="broken"):
        list(reader.rows("broken", count=1))
