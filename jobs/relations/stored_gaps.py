"""What is missing of one log partition in the tables, and why; ``gaps`` tells how the causes are found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from coordinator_core.wire.batch_format import ENDS_WITHIN
from jobs.relations.gaps import HOLES, NEVER_COMPACTED, PARTS, Place
from jobs.tables.reader import TableReader

LOG: Final = "$log_records WHERE cluster = :cluster AND log_topic = :topic AND log_partition = :partition"
FIRST_KEYS: Final = 1 << 16
"""A log that was not compacted repeats a key early: so many offsets are looked at first."""

OF_PLACE: Final = f"""
WITH log AS (SELECT * FROM {LOG}), {HOLES}, parts AS (
  {PARTS}
  UNION ALL SELECT log_topic, log_partition, batch_base, batch_last, TRUE FROM log
  WHERE kind = 'empty' AND control_type IS NULL
)
SELECT low AS first_offset, high AS last_offset, is_blind, commits FROM holes WHERE low <= high
UNION ALL
SELECT NULL, max(least(last_offset, :end - 1)), NULL, NULL FROM parts WHERE first_offset < :end
"""
"""The holes between batches, and in a row without a first offset the last offset that a batch lacks below an end."""


class GapsSeen(NamedTuple):
    """The highest offsets below a moment that are missing and lost (-1: none), and whether later ones are lost.

    ``may_hide_ends``: below the moment a dump by a consumer lacks offsets at which transactions may have ended.
    """

    missing: int
    lost: int
    lost_later: bool
    may_hide_ends: bool = False


class DamagedRange(NamedTuple):
    """Bytes that are no record: the first and the last of the offsets lost. ``is_cut_off``: a file ends there."""

    first: int
    last: int
    is_cut_off: bool


def gaps_below(
    tables: TableReader, cluster: str, place: Place, end: int | None, damage: list[DamagedRange]
) -> GapsSeen:
    """Return what is missing between the rows of a log partition, as seen from an end offset; None: from its end."""
    limit = (1 << 62) if end is None else end
    missing, lost, lost_later, may_hide_ends = -1, -1, False, False
    holes = []
    for row in tables.rows(OF_PLACE, **_given(cluster, place), end=limit):
        if row["first_offset"] is not None:
            holes.append(row)
        elif row["last_offset"] is not None:
            missing = row["last_offset"]
    causes = _Causes(tables, cluster, place, damage, max((hole["last_offset"] for hole in holes), default=-1))
    for hole in holes:
        first, last = hole["first_offset"], hole["last_offset"]
        if first < limit:
            missing = max(missing, min(last, limit - 1))
            may_hide_ends |= bool(hole["is_blind"])
        if causes.is_lost(first, last, hole["commits"] if hole["is_blind"] else 0):
            lost_later |= last >= limit
            if first < limit:
                lost = max(lost, min(last, limit - 1))
    return GapsSeen(missing, lost, lost_later, may_hide_ends)


class _Causes:
    """Tells holes that compaction explains from others."""

    def __init__(self, tables: TableReader, cluster: str, place: Place, damage: list[DamagedRange], last: int) -> None:
        """``last`` is the last offset of any hole."""
        self._tables = tables
        self._given = _given(cluster, place)
        self._damage = damage
        self._is_compacted = place[0] not in NEVER_COMPACTED
        self._last = last
        self._is_looked_up = False
        self._repeat: int | None = None

    def is_lost(self, first: int, last: int, unseen: int) -> bool:
        """Return whether a hole between batches is damage, or loss. ``unseen``: as many may be control records."""
        if any(first <= each.first <= last for each in self._damage):
            return True
        if last - first + 1 <= unseen:
            return False
        return not self._is_compacted or self._repeats_up_to(last)

    def _repeats_up_to(self, offset: int) -> bool:
        """Return whether a key occurs twice up to an offset: then compaction has not been there."""
        looked_up_to = -1
        while not self._is_looked_up and self._repeat is None and looked_up_to < self._last:
            looked_up_to = min(self._last, max(FIRST_KEYS, looked_up_to * 16))
            (row,) = self._tables.rows(
                "SELECT min(log_offset) AS first FROM (SELECT log_offset, "
                f"row_number() OVER (PARTITION BY key_hash ORDER BY log_offset) AS nth FROM {LOG} "
                "AND kind = 'record' AND key_hash IS NOT NULL AND log_offset <= :until) AS numbered WHERE nth = 2",
                **self._given,
                until=looked_up_to,
            )
            self._repeat = row["first"]
        self._is_looked_up = True
        return self._repeat is not None and self._repeat <= offset


def damage_of(tables: TableReader, cluster: str, place: Place) -> list[DamagedRange]:
    """Return the damage of a log partition.

    Where bytes do not tell their offsets, it is the one behind the last record before them in their file, or the one
    before the first record.
    """
    return list(_damage(tables, _given(cluster, place)))


def _damage(tables: TableReader, given: dict[str, Any]) -> Iterator[DamagedRange]:
    rows = tables.rows(f"SELECT batch_base, batch_last, source, place, error FROM {LOG} AND kind = 'damaged'", **given)
    for row in list(rows):
        first, last = row["batch_base"], row["batch_last"]
        if first is None:
            first = last = _beside(tables, given, row["source"], row["place"])
        if first is not None:
            yield DamagedRange(first, first if last is None else last, ENDS_WITHIN in (row["error"] or ""))


def _beside(tables: TableReader, given: dict[str, Any], source: str, place: int) -> int | None:
    """Return the offset at which bytes at this place of a file lie; None if the file has no record."""
    (near,) = tables.rows(
        "SELECT max(log_offset) FILTER (WHERE place < :place) AS last, "
        f"min(log_offset) FILTER (WHERE place > :place) AS next FROM {LOG} AND kind <> 'damaged' AND source = :source",
        **given,
        source=source,
        place=place,
    )
    if near["last"] is not None:
        return int(near["last"]) + 1
    return None if near["next"] is None else int(near["next"]) - 1


def _given(cluster: str, place: Place) -> dict[str, Any]:
    return {"cluster": cluster, "topic": place[0], "partition": place[1]}
