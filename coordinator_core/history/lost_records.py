"""Offsets whose records are lost: what the rest of the log does not say may have been among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LostRecords:
    """Offsets that are lost, by topic and partition of the log, as (first, last), both included.

    What compaction removed is not lost: the last record of each key is there.
    """

    ranges: Mapping[tuple[str, int], Sequence[tuple[int, int]]] = field(default_factory=dict)

    def any_within(self, topic: str, partition: int, first: int, last: int | None) -> bool:
        """Return whether an offset from ``first`` to ``last`` is lost; None: to the end of the log."""
        return any(
            end >= first and (last is None or begin <= last) for begin, end in self.ranges.get((topic, partition), ())
        )


NOTHING_LOST = LostRecords()
