"""Which groups a question to the tables is about."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jobs.tables.reader import Row, TableReader, Value


@dataclass(frozen=True, slots=True)
class Selection:
    """The records of one cluster's logs of these topics: of all groups, or of one."""

    tables: TableReader
    cluster: str
    topics: Sequence[str]
    group_id: str | None = None

    @property
    def condition(self) -> str:
        """The SQL condition on ``cluster``, ``log_topic`` and ``group_id`` that ``rows`` can use."""
        of_group = "" if self.group_id is None else " AND group_id = :group_id"
        return f"cluster = :cluster AND log_topic IN :topics{of_group}"

    def rows(self, sql: str, **values: Value) -> Iterator[Row]:
        """Yield the rows of a query, as the reader of the tables does."""
        given: dict[str, Value] = {"cluster": self.cluster, "topics": self.topics, "group_id": self.group_id}
        return self.tables.rows(sql, **given, **values)
