"""Gaps: offsets between the first and the last of a log that have no record, and their cause.

Compaction leaves holes, and so does missing data. What tells them apart, in this order:

- Offsets within the bounds of a batch that is there, or of an empty batch, went by compaction: brokers write batches
  without holes.
- A hole in which damaged bytes lie is ``damaged``.
- A consumer cannot see control records, one at the end of each transaction in a log partition. In a dump by a consumer
  a hole of at most as many offsets as there were commits since the hole before it is ``unknown``.
- Compaction works from the beginning of the log up to some offset, and leaves of each key the last record before it.
  So where a key occurs twice up to the end of a hole, compaction has not been there, and the hole is ``missing``. So is
  each hole in a log that brokers do not compact, such as the metadata log, whose records have no keys.
  Otherwise it is ``compaction``.

``coordinator_core.wire.offset_gaps`` finds the same in segment files.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from coordinator_core.records import LOG_TOPICS, RecordType
from coordinator_core.wire.batch_format import ENDS_WITHIN
from jobs.sources.log_reader import COMPACTED
from jobs.tables.reader import TableReader, Value

LISTED: Final = 100
"""Number of largest gaps that are listed for one log partition; all gaps are counted."""

COMMITS: Final = f"({RecordType.LEGACY_OFFSET_COMMIT.value}, {RecordType.OFFSET_COMMIT.value})"

FIRST_OF_BATCH: Final = "coalesce(batch_base, log_offset)"
LAST_OF_BATCH: Final = "coalesce(batch_last, log_offset)"

# The frame ends before the row itself: a hole lies between a row and the highest offset that came before it.
BEFORE: Final = (
    "OVER (PARTITION BY log_topic, log_partition ORDER BY first ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
)
IN_ORDER: Final = "OVER (PARTITION BY log_topic, log_partition ORDER BY first)"

HOLES: Final = f"""
placed AS (
  SELECT log_topic, log_partition, CASE WHEN kind = 'empty' THEN batch_base ELSE log_offset END AS first,
    log_offset AS last,
    -- A batch keeps its bounds when compaction takes its first or last record: within them nothing was lost.
    {FIRST_OF_BATCH} AS base, {LAST_OF_BATCH} AS batch_end,
    batch_base IS NULL AS is_blind,
    CASE WHEN record_type IN {COMMITS} THEN 1 ELSE 0 END AS is_commit
  FROM log WHERE stray IS NULL AND kind <> 'damaged'
), behind AS (
  SELECT log_topic, log_partition, first, base,
    max(last) {BEFORE} AS last_before,
    max(batch_end) {BEFORE} AS end_before,
    is_blind OR lag(is_blind) {IN_ORDER} AS is_blind,
    sum(is_commit) {BEFORE} AS commits
  FROM placed
), holes AS (
  SELECT log_topic, log_partition, last_before + 1 AS first_offset, first - 1 AS last_offset,
    greatest(last_before, end_before) + 1 AS low, least(first, base) - 1 AS high,
    is_blind, commits - coalesce(lag(commits) {IN_ORDER}, 0) AS commits
  FROM behind WHERE last_before + 1 < first
)"""
"""The holes between rows that follow each other in ``log``, of which ``low`` to ``high`` lies between their batches.

A row follows the highest offset so far, not the one of the row before: an empty batch covers several. ``is_blind``: a
consumer made the dump, on one side at least. ``commits``: as many since the hole before.
"""

PARTS: Final = """
SELECT log_topic, log_partition, first_offset, last_offset, TRUE AS is_within FROM holes WHERE low > high
UNION ALL SELECT log_topic, log_partition, first_offset, low - 1 AS last_offset, TRUE AS is_within
FROM holes WHERE low <= high AND first_offset < low
UNION ALL SELECT log_topic, log_partition, high + 1 AS first_offset, last_offset, TRUE AS is_within
FROM holes WHERE low <= high AND high < last_offset
"""
"""The parts of holes that lie within batches."""

GAPS: Final = f"""
WITH begins AS ({{begins}}), history AS (
  SELECT l.log_topic AS log_topic, l.log_partition AS log_partition, log_offset, kind, record_type, batch_base,
    batch_last, stray, source, place, key_hash, floor
  FROM $log_records AS l JOIN begins AS b ON l.log_topic = b.log_topic AND l.log_partition = b.log_partition
  WHERE l.cluster = :cluster
), log AS (
  SELECT * FROM history
  WHERE coalesce(log_offset, batch_base) >= floor OR (kind = 'damaged' AND batch_base IS NULL)
), {HOLES}, between_batches AS (
  SELECT log_topic, log_partition, low AS first_offset, high AS last_offset, is_blind, commits
  FROM holes WHERE low <= high
), damage AS (
  SELECT log_topic, log_partition, batch_base AS damaged_at FROM log WHERE kind = 'damaged' AND batch_base IS NOT NULL
  UNION ALL
  SELECT d.log_topic AS log_topic, d.log_partition AS log_partition,
    coalesce(max(CASE WHEN f.place < d.place THEN f.last END) + 1,
      min(CASE WHEN f.place > d.place THEN f.first END) - 1) AS damaged_at
  FROM (SELECT * FROM log WHERE kind = 'damaged' AND batch_base IS NULL) AS d
  JOIN (
    SELECT {FIRST_OF_BATCH} AS first, {LAST_OF_BATCH} AS last, source, place FROM log WHERE kind <> 'damaged'
  ) AS f ON f.source = d.source
  GROUP BY d.log_topic, d.log_partition, d.source, d.place
), damaged AS (
  SELECT DISTINCT g.log_topic AS log_topic, g.log_partition AS log_partition, g.first_offset AS first_offset
  FROM between_batches AS g JOIN damage AS d ON g.log_topic = d.log_topic AND g.log_partition = d.log_partition
  AND d.damaged_at >= g.first_offset AND d.damaged_at <= g.last_offset
), repeats AS (
  SELECT log_topic, log_partition, min(log_offset) AS first_repeat FROM (
    SELECT h.log_topic AS log_topic, h.log_partition AS log_partition, log_offset, row_number() OVER (
      PARTITION BY h.log_topic, h.log_partition, key_hash ORDER BY log_offset) AS nth
    FROM history AS h
    JOIN (
      SELECT log_topic, log_partition, max(last_offset) AS upto FROM between_batches GROUP BY log_topic, log_partition
    ) AS g ON h.log_topic = g.log_topic AND h.log_partition = g.log_partition AND h.log_offset <= g.upto
    WHERE kind = 'record' AND key_hash IS NOT NULL
  ) AS numbered WHERE nth = 2 GROUP BY log_topic, log_partition
)
SELECT log_topic, log_partition, first_offset, last_offset, 'compaction' AS cause FROM ({PARTS}) AS within_batches
UNION ALL
SELECT g.log_topic AS log_topic, g.log_partition AS log_partition, g.first_offset AS first_offset,
  g.last_offset AS last_offset,
  CASE
    WHEN d.first_offset IS NOT NULL THEN 'damaged'
    -- The order is that of the proofs: damage was seen, markers are possible, a repeated key rules compaction out.
    WHEN is_blind AND g.last_offset - g.first_offset + 1 <= commits THEN 'unknown'
    WHEN g.log_topic IN :never OR first_repeat <= g.last_offset THEN 'missing'
    ELSE 'compaction'
  END AS cause
FROM between_batches AS g
LEFT JOIN damaged AS d
ON g.log_topic = d.log_topic AND g.log_partition = d.log_partition AND g.first_offset = d.first_offset
LEFT JOIN repeats AS r ON g.log_topic = r.log_topic AND g.log_partition = r.log_partition
"""
"""The gaps of log partitions, each from an offset on (``{{begins}}``, with the column ``floor``), and their causes.

A gap is split where its cause changes. Damaged bytes that do not tell their offsets lie behind the last batch before
them in their file, or before the first one; compaction may have removed records at the ends of both. Keys are looked
at only up to the last hole between batches; no such hole, no look.
"""

NEVER_COMPACTED: Final = [topic for family, topic in LOG_TOPICS.items() if family not in COMPACTED]

OFFSETS: Final = "last_offset - first_offset + 1"
SUMMARY: Final = f"""
SELECT * FROM (
  SELECT log_topic, log_partition, first_offset, last_offset, cause,
    sum({OFFSETS}) OVER (PARTITION BY log_topic, log_partition, cause) AS offsets,
    row_number() OVER (PARTITION BY log_topic, log_partition, cause ORDER BY first_offset) AS nth,
    row_number() OVER (
      PARTITION BY log_topic, log_partition, cause = 'compaction' ORDER BY {OFFSETS} DESC, first_offset) AS largest
  FROM ({GAPS}) AS gaps
) AS ranked WHERE nth = 1 OR (cause <> 'compaction' AND largest <= :listed)
"""
"""The largest gaps that compaction does not explain, and of each cause a gap at least, with the sum of its offsets."""

COUNTED: Final = {"compaction": "compacted", "unknown": "unknown", "missing": "missing", "damaged": "damaged"}

Gaps: TypeAlias = dict[str, Any]
"""What the columns of ``runs`` say of the gaps of a log partition."""

Place = tuple[str, int]
"""Topic and number of a log partition."""


def summary(tables: TableReader, cluster: str, floors: Mapping[Place, int]) -> dict[Place, Gaps]:
    """Return for each log partition with gaps the missing offsets by cause, and its largest ones, as ``runs`` has them.

    ``floors``: the offset from which on a log partition is looked at.
    """
    if not floors:
        return {}
    begins, values = listed(floors)
    rows = tables.rows(SUMMARY.format(begins=begins), cluster=cluster, never=NEVER_COMPACTED, listed=LISTED, **values)
    gaps: dict[Place, Gaps] = defaultdict(lambda: {**{f"{name}_offsets": 0 for name in COUNTED.values()}, "gaps": []})
    for row in rows:
        of_place = gaps[row["log_topic"], row["log_partition"]]
        of_place[f"{COUNTED[row['cause']]}_offsets"] = int(row["offsets"])
        # A row that came along only for the sum of its cause is none of the largest gaps.
        if row["cause"] != "compaction" and row["largest"] <= LISTED:
            of_place["gaps"].append({name: row[name] for name in ("first_offset", "last_offset", "cause")})
    for of_place in gaps.values():
        of_place["gaps"].sort(key=lambda gap: gap["first_offset"])
    return dict(gaps)


def listed(floors: Mapping[Place, int]) -> tuple[str, dict[str, Value]]:
    """Return a text of these log partitions, with the offset of each as ``floor``, and the values that it names."""
    rows, values = [], dict[str, Value]()
    for number, ((topic, partition), floor) in enumerate(floors.items()):
        # The name of a topic is anybody's text and goes in as a value; numbers can stand in the query itself.
        values[f"topic_{number}"] = topic
        rows.append(f"SELECT :topic_{number} AS log_topic, {partition} AS log_partition, {floor} AS floor")
    return " UNION ALL ".join(rows), values


# --- of one log partition, as seen from a moment -------------------------------------------------------------------

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
        elif row["last_offset"] is not None:  # the row of OF_PLACE about what batches lack within their bounds
            missing = row["last_offset"]
    causes = _Causes(tables, cluster, place, damage, max((hole["last_offset"] for hole in holes), default=-1))
    for hole in holes:
        first, last = hole["first_offset"], hole["last_offset"]
        if first < limit:
            missing = max(missing, min(last, limit - 1))
            may_hide_ends |= bool(hole["is_blind"])
        # Each commit may be of a transaction of its own, whose end a consumer does not see.
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
        if any(first <= damaged.first <= last for damaged in self._damage):
            return True
        # Each of these offsets may be the marker of one of the commits before it.
        if last - first + 1 <= unseen:
            return False
        return not self._is_compacted or self._repeats_up_to(last)

    def _repeats_up_to(self, offset: int) -> bool:
        """Return whether a key occurs twice up to an offset: then compaction has not been there."""
        looked_up_to = -1
        while not self._is_looked_up and self._repeat is None and looked_up_to < self._last:
            # A repeat early in the log is found without a look at all keys; the shorter looks cost little.
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


def lost_behind(damage: Iterable[DamagedRange], last: int) -> int | None:
    """Return the last offset that is lost behind the ``last`` record of a log partition; None: none is.

    A file that ends within a batch has lost nothing: a broker that writes it leaves it so.
    """
    behind = (max(hole.last, last + 1) for hole in damage if hole.first > last and not hole.is_cut_off)
    return max(behind, default=None)


def damage_of(tables: TableReader, cluster: str, place: Place) -> list[DamagedRange]:
    """Return the damage of a log partition.

    Where bytes do not tell their offsets, it is the one behind the last batch before them in their file, or the one
    before the first batch.
    """
    return list(_damage(tables, _given(cluster, place)))


def _damage(tables: TableReader, given: dict[str, Value]) -> Iterator[DamagedRange]:
    rows = tables.rows(f"SELECT batch_base, batch_last, source, place, error FROM {LOG} AND kind = 'damaged'", **given)
    for row in list(rows):
        first, last = row["batch_base"], row["batch_last"]
        if first is None:
            first = last = _beside(tables, given, row["source"], row["place"])
        if first is not None:
            yield DamagedRange(first, first if last is None else last, ENDS_WITHIN in (row["error"] or ""))


def _beside(tables: TableReader, given: dict[str, Value], source: str, place: int) -> int | None:
    """Return the offset at which bytes at this place of a file lie; None if the file has no record."""
    (near,) = tables.rows(
        f"SELECT max({LAST_OF_BATCH}) FILTER (WHERE place < :place) AS last, "
        f"min({FIRST_OF_BATCH}) FILTER (WHERE place > :place) AS next "
        f"FROM {LOG} AND kind <> 'damaged' AND source = :source",
        **given,
        source=source,
        place=place,
    )
    if near["last"] is not None:
        # Logs are appended to: what lies behind a batch in its file has the offsets behind it.
        return int(near["last"]) + 1
    return None if near["next"] is None else int(near["next"]) - 1


def _given(cluster: str, place: Place) -> dict[str, Value]:
    return {"cluster": cluster, "topic": place[0], "partition": place[1]}
