"""Which part of a log partition the tables hold at a moment: leader epochs, end, and what is missing."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from coordinator_core.groups.certainty import LogGaps
from coordinator_core.records import GROUP_LOG
from jobs.relations.gaps import LAST_OF_BATCH, DamagedRange, GapsSeen, Place, damage_of, gaps_below, lost_behind
from jobs.relations.given_partitions import given, numbered
from jobs.relations.logs import ends_missing
from jobs.relations.moment import NEVER_MS, AsOf
from jobs.relations.unreadable import last_unplaced
from jobs.relations.up_to_date import has_all_records
from jobs.sources.files import FIRST_SEGMENT, log_name
from jobs.tables.reader import Row, TableReader, Value
from jobs.tables.table import PLACED

LAST_OFFSET: Final = 1 << 62
"""Stands for the end of a moment that has none."""
NOTHING: Final = "FALSE"
"""The SQL condition that no row meets."""

# However long a log is, a row for each leader epoch and kind of row comes back, from columns of positions alone.
# An empty batch has no record left, but its bounds tell that all its offsets went by compaction.
EXAMINED: Final = f"""
SELECT log_topic, log_partition, leader_epoch, kind, count(log_offset) AS records,
  min(CASE WHEN kind = 'empty' THEN batch_base ELSE log_offset END) AS first, min(batch_base) AS base,
  max(log_offset) AS last, max({LAST_OF_BATCH}) AS last_of_batch,
  coalesce(bool_or(log_offset = 0 OR source LIKE '%{FIRST_SEGMENT}'), FALSE) AS has_start,
  coalesce(bool_or(is_transactional), FALSE) AS has_transactions,
  min(log_offset) FILTER (WHERE timestamp_ms > :time_ms) AS late,
  min(log_offset) FILTER (WHERE log_offset >= cut) AS left_out,
  max(log_offset) FILTER (WHERE log_offset < cut) AS before
FROM (
  SELECT log_topic, log_partition, leader_epoch, kind, log_offset, {{cut}} AS cut, timestamp_ms, batch_base, batch_last,
    source, is_transactional
  FROM $log_records WHERE cluster = :cluster AND log_topic IN :topics AND log_partition IS NOT NULL AND {{among}}
) AS placed GROUP BY log_topic, log_partition, leader_epoch, kind
"""
"""The positions of the records of log partitions. ``{{cut}}``: the offset that the moment names of each, or null."""


@dataclass(slots=True)
class StoredLogExtent:
    """One log partition. ``epochs`` are its leader epochs with the offset at which each begins.

    ``end`` is the first offset that is later than the moment, None if there is none, and ``asked`` the end offset that
    the moment names. Where the moment names an offset, and a record is left out for it, ``left_out`` is the offset of
    the first one, ``left_out_ms`` its time, and ``last`` and ``last_ms`` those of the last record below it (None: there
    is none).
    ``gaps`` is what is missing as seen from the moment, and ``transactions_are_known`` says whether no transaction can
    have been open then of which nothing is left. ``may_hide_ends``: a dump by a consumer shows no transactions, and
    lacks offsets at which some may have ended, or has none at all. ``missing_end`` says in words why records are
    missing behind the last one.
    """

    from_start: bool = False
    epochs: list[tuple[int, int]] = field(default_factory=list)
    end: int | None = None
    asked: int | None = None
    left_out: int | None = None
    left_out_ms: int | None = None
    last: int | None = None
    last_ms: int | None = None
    gaps: LogGaps = field(default_factory=LogGaps)
    transactions_are_known: bool = True
    may_hide_ends: bool = False
    missing_end: str | None = None

    def leader_epoch(self, offset: int) -> int | None:
        """Return the leader epoch of the record at an offset; None if the dump does not contain it."""
        index = bisect_right(self.epochs, offset, key=lambda each: each[0]) - 1
        return self.epochs[index][1] if index >= 0 else None

    @property
    def last_epoch(self) -> int | None:
        """The leader epoch of the last record before the end."""
        if self.end is not None:
            return self.leader_epoch(self.end - 1)
        return self.epochs[-1][1] if self.epochs else None


Extents = dict[Place, StoredLogExtent]
"""By topic and number of the log partition."""


class _Bounds(NamedTuple):
    """What the rows of a log partition cover: first offset and its batch, last offset, and the last of its batch."""

    first: int
    base: int | None
    last: int
    last_of_batch: int
    has_transactions: bool


def extents_at(tables: TableReader, cluster: str, moment: AsOf, topics: Sequence[str]) -> Extents:
    """Return the partitions of these logs up to a moment.

    At the end of the log, ``log_ranges`` knows those of which nothing is missing. The others take a pass over the
    columns of positions.
    """
    if moment != AsOf() or not has_all_records(tables, cluster):
        extents = _examined(tables, cluster, moment, topics)
    else:
        extents, in_doubt = _whole(tables, cluster, topics)
        if in_doubt:
            extents |= _examined(tables, cluster, moment, topics, in_doubt)
    if moment.offsets:
        _add_empty(extents, tables, cluster, moment, topics)
    _add_unreadable(extents, tables, cluster, topics)
    _add_missing_ends(extents, tables, cluster)
    return extents


def _add_missing_ends(extents: Extents, tables: TableReader, cluster: str) -> None:
    """Add to the gaps what is missing behind the last record of a log partition."""
    # Nothing tells of the logs of Connect and of share groups that they go on.
    is_asked = any(topic == GROUP_LOG for topic, _ in extents)
    for place, missing in ends_missing(tables, cluster).items() if is_asked else ():
        extent = extents.get(place)
        # What is lost behind the last record is known already, and up to where.
        if extent is None or extent.gaps.lost > missing.last:
            continue
        gaps, first = extent.gaps, missing.last + 1
        if extent.end is None and extent.asked is None:
            extent.gaps, extent.missing_end = replace(gaps, missing=first, lost=first), missing.reason
            # Any record behind the end may have begun a transaction.
            extent.transactions_are_known = False
        # The moment is before the end: what is lost behind it matters only where something is missing before it.
        elif gaps.missing >= 0:
            extent.gaps, extent.missing_end = replace(gaps, lost_later=True), missing.reason


def reasons_of_ends(extents: Extents) -> dict[str, str]:
    """Return in words why the ends of log partitions are missing, by name, as far as that matters at the moment."""
    ends = {log_name(*place): extent.missing_end for place, extent in extents.items()}
    return {name: reason for name, reason in ends.items() if reason is not None}


def _add_empty(extents: Extents, tables: TableReader, cluster: str, moment: AsOf, topics: Iterable[str]) -> None:
    """Add the partitions that the moment names and that were given without a record: none of them reaches it."""
    asked = {(topic, number): end for topic in topics for number, end in moment.offsets.items() if end > 0}
    without = asked.keys() - extents.keys()
    for place in without & given(tables).get(cluster, set()) if without else ():
        # The moment says that the log goes on up to there, so that all of it is lost here.
        extents[place] = StoredLogExtent(asked=asked[place], gaps=LogGaps(asked[place] - 1, asked[place] - 1))


def _add_unreadable(extents: Extents, tables: TableReader, cluster: str, topics: Sequence[str]) -> None:
    """Add to the gaps the records that may be about any group: their keys cannot be decoded."""
    for place, offset in last_unplaced(tables, cluster, topics, below_ends(extents)).items():
        extent = extents.get(place)
        if extent is not None:
            extent.gaps = extent.gaps.with_unreadable(offset)
            # It may be a commit of a transaction that was open, but only in a log that has transactions.
            extent.transactions_are_known = extent.transactions_are_known and not has_transactions(
                tables, cluster, place, extent
            )


def has_transactions(tables: TableReader, cluster: str, place: Place, extent: StoredLogExtent) -> bool:
    """Return whether a log partition has a record of a transaction before the moment."""
    rows = tables.rows(
        "SELECT kind FROM $log_records WHERE cluster = :cluster AND log_topic = :topic AND log_partition = :partition "
        f"AND is_transactional AND {below_ends({place: extent})} LIMIT 1",
        cluster=cluster,
        topic=place[0],
        partition=place[1],
    )
    return next(rows, None) is not None


def _whole(tables: TableReader, cluster: str, topics: Sequence[str]) -> tuple[Extents, set[Place]]:
    """Return the partitions of these logs of which no offset is missing, at their end; and the others."""
    given: dict[str, Value] = {"cluster": cluster, "topics": topics}
    ranges: dict[Place, list[Mapping[str, object]]] = {}
    for row in tables.rows(
        "SELECT log_topic, log_partition, leader_epoch, min(first_offset) AS first, max(last_offset) AS last, "
        "sum(records) AS records, coalesce(bool_or(has_start), FALSE) AS has_start FROM $log_ranges "
        "WHERE cluster = :cluster AND log_topic IN :topics GROUP BY log_topic, log_partition, leader_epoch "
        "ORDER BY first",
        **given,
    ):
        ranges.setdefault(_place(row), []).append(row)
    others = tables.rows(
        "SELECT DISTINCT log_topic, log_partition FROM $log_records WHERE cluster = :cluster AND log_topic IN :topics "
        "AND kind IN ('damaged', 'empty') AND log_partition IS NOT NULL",
        **given,
    )
    # Ranges count records: what is damaged, and batches that compaction has emptied, are in none of them.
    in_doubt = {_place(row) for row in others}
    in_doubt |= {place for place, of_place in ranges.items() if _lacks_offsets(of_place)}
    return {place: _from_ranges(of_place) for place, of_place in ranges.items() if place not in in_doubt}, in_doubt


def _lacks_offsets(ranges: list[Row]) -> bool:
    # From offset 0 on without a hole there are as many records as offsets.
    return bool(sum(row["records"] for row in ranges) != max(row["last"] for row in ranges) + 1)


def _from_ranges(ranges: list[Row]) -> StoredLogExtent:
    """Return a partition at its end from its ranges by leader epoch."""
    epochs = [(row["first"], row["leader_epoch"]) for row in ranges if row["leader_epoch"] is not None]
    return StoredLogExtent(any(row["has_start"] for row in ranges), epochs)


def _examined(
    tables: TableReader, cluster: str, moment: AsOf, topics: Sequence[str], places: Iterable[Place] | None = None
) -> Extents:
    """Return these partitions of the logs (None: all), from the positions of their records."""
    cuts = " ".join(f"WHEN {partition} THEN {end}" for partition, end in moment.offsets.items())
    rows = list(
        tables.rows(
            EXAMINED.format(
                cut=f"CASE log_partition {cuts} END" if cuts else "CAST(NULL AS BIGINT)",
                among="TRUE" if places is None else any_of(sorted(places)),
            ),
            cluster=cluster,
            topics=topics,
            time_ms=NEVER_MS if moment.time_ms is None else moment.time_ms,
        )
    )
    extents: Extents = {}
    records = [row for row in rows if row["kind"] in ("record", "control") and row["records"]]
    for row in sorted(records, key=lambda row: row["first"]):
        extent = extents.setdefault(_place(row), StoredLogExtent())
        extent.asked = moment.offsets.get(row["log_partition"])
        extent.from_start |= row["has_start"]
        epoch = row["leader_epoch"]
        if epoch is not None and epoch not in (known for _, known in extent.epochs):
            extent.epochs.append((row["first"], epoch))  # rows come by first offset: where the epoch began
        # Each epoch and kind is a row of its own: the first late record of all of them ends the log.
        if row["late"] is not None:
            extent.end = min(row["late"], LAST_OFFSET if extent.end is None else extent.end)
    _cut_off(extents, records, tables, cluster)
    _add_gaps(extents, rows, tables, cluster)
    return extents


def gaps_by_name(extents: Extents) -> dict[str, LogGaps]:
    """Return what is missing in each log partition, by the name of the partition."""
    return {log_name(*place): extent.gaps for place, extent in extents.items()}


def names_without_ends(extents: Extents) -> list[str]:
    """Return the names of the log partitions whose dump may hide how transactions ended."""
    return [log_name(*place) for place, extent in sorted(extents.items()) if extent.may_hide_ends]


def _place(row: Row) -> Place:
    return row["log_topic"], row["log_partition"]


def _cut_off(extents: Extents, records: list[Row], tables: TableReader, cluster: str) -> None:
    """Set where the offsets that the moment names end the partitions, and the times of the records on both sides."""
    if all(extent.asked is None for extent in extents.values()):
        return
    left_out: dict[Place, int] = {}
    before: dict[Place, int] = {}
    for row in records:
        place = _place(row)
        if row["left_out"] is not None:
            left_out[place] = min(row["left_out"], left_out.get(place, LAST_OFFSET))
        if row["before"] is not None:
            before[place] = max(row["before"], before.get(place, -1))
    times = _times(tables, cluster, [*left_out.items(), *before.items()])
    for place, extent in extents.items():
        if place in before:
            extent.last, extent.last_ms = before[place], times[place, before[place]]
        # A moment may name a time, too: whichever of the two comes first ends the log.
        if place in left_out and extent.asked is not None and (extent.end is None or extent.asked < extent.end):
            extent.end, extent.left_out = extent.asked, left_out[place]
            extent.left_out_ms = times[place, left_out[place]]


def _times(tables: TableReader, cluster: str, wanted: list[tuple[Place, int]]) -> dict[tuple[Place, int], int]:
    """Return the timestamps of the records at these positions."""
    if not wanted:
        return {}
    rows = tables.rows(
        "SELECT log_topic, log_partition, log_offset, timestamp_ms FROM $log_records "
        # One text for all partitions: it may find these offsets in other partitions, too, where nobody asks for them.
        "WHERE cluster = :cluster AND log_topic IN :topics AND log_offset IN :offsets "
        "AND kind IN ('record', 'control')",
        cluster=cluster,
        topics=sorted({topic for (topic, _), _ in wanted}),
        offsets=sorted({offset for _, offset in wanted}),
    )
    return {(_place(row), row["log_offset"]): row["timestamp_ms"] for row in rows}


def _add_gaps(extents: Extents, rows: list[Row], tables: TableReader, cluster: str) -> None:
    """Set for each partition what is missing as seen from the moment."""
    of_lines = numbered(tables, cluster)
    for place, extent in extents.items():
        extent.gaps = LogGaps(at_end=extent.end is None)
        of_place = [row for row in rows if _place(row) == place]
        bounds = _bounds([row for row in of_place if row["kind"] != "damaged" and row["last"] is not None])
        records = sum(row["records"] for row in of_place if row["kind"] in ("record", "control"))
        is_damaged = any(row["kind"] == "damaged" for row in of_place)
        # As many records as offsets: nothing is missing, and no row has to be looked at.
        if not is_damaged and records == bounds.last + 1 and (extent.asked or 0) <= bounds.last + 1:
            continue
        damage = damage_of(tables, cluster, place)
        seen = gaps_below(tables, cluster, place, _end_of_gaps(extent), damage)
        extent.gaps = _gaps_of(extent, bounds, seen, damage)
        extent.may_hide_ends = seen.may_hide_ends or place in of_lines
        is_known = extent.gaps.lists_all or not bounds.has_transactions
        extent.transactions_are_known = is_known and not extent.may_hide_ends


def _bounds(rows: list[Row]) -> _Bounds:
    first = min(rows, key=lambda row: row["first"])
    return _Bounds(
        first["first"],
        first["base"],
        max(row["last"] for row in rows),
        max(row["last_of_batch"] for row in rows),
        any(row["has_transactions"] for row in rows),
    )


def _end_of_gaps(extent: StoredLogExtent) -> int | None:
    """Return up to where what is missing counts: the end offset of the moment, even if no record follows it."""
    return extent.asked if extent.end is None else extent.end


def _gaps_of(extent: StoredLogExtent, bounds: _Bounds, seen: GapsSeen, damage: list[DamagedRange]) -> LogGaps:
    """Return what is missing in a partition: between its rows, before the first, and after the last."""
    missing, lost, lost_later, _ = seen
    asked = _end_of_gaps(extent)
    end = LAST_OFFSET if asked is None else asked
    first = bounds.first
    if first > 0:
        missing = max(missing, min(first, end) - 1)
        # What lies before a record in its own batch was compacted: only offsets before that batch can be lost.
        before_batch = first if bounds.base is None else min(first, bounds.base)
        is_damaged = any(hole.first < first for hole in damage)
        # Behind a start that was read only compaction can have removed them; without it nobody knows what was there.
        if before_batch > 0 and (not extent.from_start or is_damaged):
            lost, lost_later = max(lost, min(before_batch, end) - 1), lost_later or before_batch > end
    behind = lost_behind(damage, bounds.last)
    if behind is not None and behind >= end:
        lost_later = True
    elif behind is not None:
        missing = lost = behind
    # A batch whose last records were compacted still shows that the log came as far as its last offset.
    end_of_log = max(bounds.last, bounds.last_of_batch, lost) + 1
    if extent.end is None and extent.asked is not None and extent.asked > end_of_log:
        missing = lost = extent.asked - 1  # the log, as far as it is there, does not reach the moment
    # Where nothing is missing below the moment, nothing depends on what is lost later: log files are not read so far.
    return LogGaps(missing, lost, lost_later and missing >= 0, at_end=extent.end is None)


def before_end(extents: Extents) -> str:
    """Return an SQL condition: a row has a place, and is before the end of its partition."""
    return f"{PLACED} AND {below_ends(extents)}"


def below_ends(extents: Extents) -> str:
    """Return an SQL condition: a row that has a place is before the end of its partition."""
    ends = {place: extent.end for place, extent in extents.items() if extent.end is not None}
    return f"log_offset < coalesce({by_place(ends)}, {LAST_OFFSET})" if ends else "TRUE"


def any_of(places: Iterable[Place]) -> str:
    """Return an SQL condition: a row is of one of these log partitions. Files of others need not be read for it."""
    numbers = _by_topic({place: str(place[1]) for place in places})
    logs = (f"(log_topic = '{topic}' AND log_partition IN ({', '.join(of)}))" for topic, of in numbers.items())
    return f"({' OR '.join(logs) or NOTHING})"


def by_place(numbers: Mapping[Place, int]) -> str:
    """Return an SQL expression: the number that a row's log partition has here, or null.

    It takes as long for fifty partitions as for one; a condition for each partition would take longer with each.
    """
    whens = _by_topic({place: f"WHEN {place[1]} THEN {number}" for place, number in numbers.items()})
    logs = (f"WHEN '{topic}' THEN CASE log_partition {' '.join(of)} END" for topic, of in whens.items())
    return f"CASE log_topic {' '.join(logs)} END" if whens else "CAST(NULL AS BIGINT)"


def _by_topic(parts: Mapping[Place, str]) -> dict[str, list[str]]:
    """Return the parts of a text about log partitions by their topic, which is of a log that Kafka has."""
    of_topics: dict[str, list[str]] = {}
    for (topic, _), part in parts.items():
        of_topics.setdefault(topic, []).append(part)
    return of_topics


def followed(extents: Extents) -> str:
    """Return an SQL condition: a row follows the moment, and what it says of the moment depends on that.

    It is ``NOTHING`` where no row can.
    """
    ends = {
        place: extent.end for place, extent in extents.items() if extent.end is not None and extent.gaps.missing >= 0
    }
    return f"log_offset >= {by_place(ends)}" if ends else NOTHING
