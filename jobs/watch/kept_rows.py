"""The newest final rows of a group: what its findings and explanations rest on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from coordinator_core.audit.audited_rows import AuditedRow

MOST_ROWS: Final = 1_000
"""So many rows are kept of any group."""
MOST_REBALANCES: Final = 12
"""Of a large group as many rows are kept as this many rebalances make in which all of its work moves."""
SLACK: Final = 1.25
"""Rows are dropped when there are this many times as many: seldom, and many at once."""


@dataclass(slots=True)
class KeptRows:
    """Rows in the order in which they became final, and the number of the record that made them so.

    A row becomes final when what it tells is over. So the oldest rows are what was over first, and what is kept is
    whole from some record on: rows that one record made final are kept or dropped together. ``size`` is their number,
    ``fed`` that of all records that made rows final, also of dropped ones.
    """

    limit: int = MOST_ROWS
    size: int = 0
    fed: int = 0
    _parts: deque[tuple[int, Sequence[AuditedRow]]] = field(default_factory=deque)

    def __iter__(self) -> Iterator[AuditedRow]:
        for _, rows in self._parts:
            yield from rows

    def add(self, rows: Sequence[AuditedRow]) -> None:
        """Keep the rows that a record made final."""
        self.fed += 1
        self._parts.append((self.fed, rows))
        self.size += len(rows)

    @property
    def is_full(self) -> bool:
        """Whether rows are to be dropped: call ``drop_oldest``."""
        return self.size > self.limit * SLACK

    def drop_oldest(self, open_rows: int) -> None:
        """Drop the oldest rows of a group that has so many open rows now."""
        self.limit = max(MOST_ROWS, MOST_REBALANCES * open_rows)
        while self.size > self.limit and len(self._parts) > 1:
            self.size -= len(self._parts.popleft()[1])

    @property
    def first(self) -> int:
        """The number of the first record whose rows are kept."""
        return self._parts[0][0] if self._parts else self.fed + 1

    def since(self, number: int) -> list[tuple[int, Sequence[AuditedRow]]]:
        """Return the rows of records behind that number, by the numbers of their records."""
        batches = []
        for part in reversed(self._parts):
            if part[0] <= number:
                break
            batches.append(part)
        return batches[::-1]

    def restore(self, parts: Iterable[tuple[int, Sequence[AuditedRow]]]) -> None:
        """Take rows that were stored, in their order."""
        for number, rows in parts:
            self._parts.append((number, rows))
            self.size += len(rows)
            self.fed = number
