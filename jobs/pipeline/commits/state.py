"""What the pass over commits keeps: the newest commit of each partition, sums of hours, commits beside records."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jobs.pipeline.commits.columns import (
    NULL,
    Flags,
    GrowingColumns,
    Ids,
    Ints,
    counted_before,
    distinct,
    flags,
    ints,
    nullable,
    order_of,
    runs_of,
    structs,
)
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.table import COMMIT

SCHEMA: Final = COMMIT_SUMMARIES.schema
AT: Final = SCHEMA.field("first").type
HELD: Final = SCHEMA.field("committed").type
HELD_SCHEMA: Final = pa.schema(list(HELD))
REWIND, REMOVAL, BESIDE = (SCHEMA.field(name).type.value_type for name in ("rewinds", "removals", "beside"))

COUNTS: Final = {"commits": 0, "written": 0, "tombstones": 0, "rewind_count": 0, "removal_count": 0}
ENDS: Final = dict.fromkeys(("first", "first_ms", "first_offset", "last", "last_ms", "last_offset"), NULL)


@dataclass(slots=True)
class Commits:
    """Commits and tombstones as arrays of one length: what they are about, and what is compared.

    ``row``: their rows in ``table``; only the few that are kept are ever read. ``key``, ``group``, ``topic``:
    ids (``topic``: of the topic id, -1 for none). ``hour``: since 1970, -1 without a time. ``run``: index of the run
    that added the row. All others are values of the log, with ``NULL`` for null.
    """

    table: pa.Table
    row: Ints
    key: Ints
    group: Ints
    hour: Ints
    at: Ints
    time: Ints
    offset: Ints
    topic: Ints
    expires: Ints
    committed_at: Ints
    run: Ints
    is_tombstone: Flags

    def __len__(self) -> int:
        return len(self.row)

    def take(self, rows: Ints | Flags) -> "Commits":
        """Return some of the rows, by number or by flag."""
        return Commits(self.table, *(getattr(self, name)[rows] for name in self.__slots__[1:]))

    def rows(self, names: tuple[str, ...]) -> pa.Table:
        """Return columns of the table for these rows."""
        return self.table.select(list(names)).take(pa.array(self.row))


@dataclass(slots=True)
class Before:
    """What held before each of some commits. ``has``: an offset was committed."""

    has: Flags
    at: Ints
    offset: Ints
    topic: Ints
    expires: Ints
    committed_at: Ints

    def take(self, rows: Ints) -> "Before":
        """Return some of the rows."""
        return Before(*(getattr(self, name)[rows] for name in self.__slots__))


def positions(partition: int, offsets: Ints, times: Ints) -> pa.Array:
    """Return positions in a log partition as structs; null where there is no offset."""
    fields = {
        "partition": pa.array(np.full(len(offsets), partition)),
        "offset": nullable(offsets),
        "timestamp_ms": nullable(times),
    }
    return structs(fields, AT, offsets == NULL)


class Found:
    """Values that were found for the rows of a table, each with the number of its row."""

    def __init__(self, of_type: pa.DataType) -> None:
        self.type = of_type
        self._owners: list[Ints] = []
        self._values: list[pa.Array] = []

    def add(self, owners: Ints, values: pa.Array) -> None:
        """Add values; those of one owner come in their order."""
        if len(owners):
            self._owners.append(owners)
            self._values.append(values)

    def all(self) -> tuple[Ints, pa.Array]:
        """Return all owners and values."""
        if not self._owners:
            return np.empty(0, np.int64), pa.array([], self.type)
        return np.concatenate(self._owners), pa.concat_arrays(self._values)


class Sums:
    """Counts, first and last commit of each row of a table, and the steps back and removals among them."""

    def __init__(self, **more: int) -> None:
        self.columns = GrowingColumns(**COUNTS, **ENDS, **more)
        self.rewinds, self.removals = Found(REWIND), Found(REMOVAL)

    def add_counted(self, owners: Ints, commits: Commits) -> None:
        """Add commits that hold; ``owners`` has the row of each. Those of one owner come in their order."""
        # By owner, and within one in their order: a block for each, with its first and its last commit at the ends.
        order = order_of(owners)
        begins, ends = runs_of(owners[order])
        ids = owners[order][begins]
        first, last = order[begins], order[ends]
        columns = self.columns
        is_first = columns["commits"][ids] == 0
        of = {"": commits.at, "_ms": commits.time, "_offset": commits.offset}
        for name, values in of.items():
            columns.set(ids[is_first], **{f"first{name}": values[first[is_first]]})
            columns.set(ids, **{f"last{name}": values[last]})
        columns["commits"][ids] += ends - begins + 1

    def add_written(self, owners: Ints, commits: Commits) -> None:
        """Add records as they are in the log, of any outcome."""
        size = int(owners.max()) + 1 if len(owners) else 0
        for name, which in (("written", ~commits.is_tombstone), ("tombstones", commits.is_tombstone)):
            # bincount adds up owners that occur more than once; an indexed += would count each of them once.
            self.columns[name][:size] += np.bincount(owners[which], minlength=size)

    def add_steps(self, kind: str, owners: Ints, steps: pa.Array) -> None:
        """Add ``rewinds``, or ``removals``."""
        if len(owners):
            (self.rewinds if kind == "rewinds" else self.removals).add(owners, steps)
            counts = np.bincount(owners)
            self.columns["rewind_count" if kind == "rewinds" else "removal_count"][: len(counts)] += counts


MOST_HELD: Final = 1 << 20
"""After so many commits that held at the end of a chunk, those that hold no longer are let go: so memory grows with the
keys of the log partition, and not with its commits."""


class NewestCommits(Sums):
    """All commits of each group and partition: their sums, the one that holds, and those without a known outcome."""

    def __init__(self) -> None:
        super().__init__(newest=-1, has=0, offset=NULL, topic=-1, expires=NULL, committed_at=NULL, ended=NULL)
        self._held: list[tuple[Ints, pa.Table]] = []
        self._loaded: list[tuple[Ints, pa.Table]] = []
        self._pending: list[tuple[Ints, pa.Table]] = []
        self._settled: set[int] = set()

    def load(self, keys: Ints, states: pa.Table, topic_ids: Ids) -> None:
        """Go on from rows of all commits, whose columns ``states`` has."""
        columns = self.columns
        columns.set(keys, **{name: ints(states[name], 0) for name in COUNTS}, ended=ints(states["ended"]))
        for name in ("first", "last"):
            at = states[name].combine_chunks()
            place = {name: ints(pc.struct_field(at, "offset")), f"{name}_ms": ints(pc.struct_field(at, "timestamp_ms"))}
            columns.set(keys, **place, **{f"{name}_offset": ints(states[f"{name}_offset"])})
        # The highest offset that counted, be it a commit or a tombstone: commits below it are overtaken.
        newest = np.maximum(columns["last"][keys], columns["ended"][keys])
        committed = states["committed"].combine_chunks()
        has = flags(committed.is_valid())
        columns.set(keys, newest=np.maximum(newest, -1), has=has)
        held = pa.Table.from_struct_array(committed.filter(pa.array(has)))
        columns.set(
            keys[has],
            offset=ints(held["committed_offset"]),
            topic=topic_ids.of_text(held["topic_id"].combine_chunks()),
            expires=ints(held["expire_timestamp"]),
            committed_at=ints(held["commit_timestamp"]),
        )
        self._held.append((keys[has], held))
        for name, steps in (("rewinds", self.rewinds), ("removals", self.removals)):
            steps.add(*_listed(keys, states[name]))
        owners, pending = _listed(keys, states["pending"])
        self._loaded.append((owners, pa.Table.from_struct_array(pending)))

    def settle(self, offsets: Ints) -> None:
        """Note that these commits, which were pending, come again with their outcome."""
        self._settled.update(offsets.tolist())

    def add_pending(self, commits: Commits) -> None:
        """Add commits of transactions without a known end."""
        if len(commits):
            self._pending.append((commits.key, commits.rows(COMMIT).cast(HELD_SCHEMA)))

    def in_their_order(self, commits: Commits) -> Commits:
        """Leave out the commits that a later commit of the same partition overtook while their transaction was open.

        The commits are ordered by key, and those of one key by when they count.
        """
        # A commit counts unless one before it in its block, or in an earlier chunk, lies behind it in the log.
        begins, ends = runs_of(commits.key)
        newest = np.repeat(self.columns["newest"][commits.key[begins]], ends - begins + 1)
        is_begin = np.zeros(len(commits), np.bool_)
        is_begin[begins] = True
        rises = is_begin | (np.diff(commits.at, prepend=-1) > 0)
        if rises.all() and (commits.at > newest).all():
            return commits
        # One running maximum for all blocks: offsets become ranks, which are below the number of commits, and each
        # block is lifted above the one before it, so that its first commit is higher than all that came before.
        rank = np.argsort(np.argsort(commits.at, kind="stable"), kind="stable")
        segment = np.cumsum(is_begin) - 1
        highest = np.maximum.accumulate(segment * len(commits) + rank)
        return commits.take((highest == segment * len(commits) + rank) & (commits.at > newest))

    def before(self, commits: Commits) -> Before:
        """Return what held before each of these, which are ordered by key, and within a key by when they count."""
        begins, _ = runs_of(commits.key)
        keys = commits.key[begins]
        values = {
            "has": ~commits.is_tombstone,
            "newest": commits.at,
            **{name: getattr(commits, name) for name in ("offset", "topic", "expires", "committed_at")},
        }
        columns_before = []
        for name, value in values.items():
            # Within a block it is the commit one place before; of the first, what an earlier chunk left.
            previous = np.empty_like(value)
            previous[1:] = value[:-1]
            previous[begins] = self.columns[name][keys]
            columns_before.append(previous)
        return Before(*columns_before)

    def keep(self, commits: Commits) -> None:
        """Keep the last of these commits or tombstones of each key; they are ordered by key."""
        _, ends = runs_of(commits.key)
        last = commits.take(ends)
        self.columns.set(
            last.key,
            newest=last.at,
            has=~last.is_tombstone,
            offset=last.offset,
            topic=last.topic,
            expires=last.expires,
            committed_at=last.committed_at,
        )
        held = last.take(~last.is_tombstone)
        self._held.append((held.key, held.rows(COMMIT).cast(HELD_SCHEMA)))
        if sum(len(keys) for keys, _ in self._held) > MOST_HELD:
            self._held = [self._last_held()]

    def _last_held(self) -> tuple[Ints, pa.Table]:
        keys, table = _together(self._held)
        last = np.full(int(keys.max()) + 1 if len(keys) else 0, -1)
        last[keys] = np.arange(len(keys))  # of a key that occurs more than once, the last assignment stays
        rows = last[last >= 0]
        return keys[rows], table.take(pa.array(rows))

    def held(self, count: int) -> pa.Array:
        """Return the commit that holds for each of ``count`` keys."""
        keys, table = self._last_held()
        row = np.zeros(count, np.int64)  # keys without a commit take row 0, and are null by ``absent``
        row[keys] = np.arange(len(keys))
        absent = self.columns["has"][:count] == 0
        if not len(keys):
            return pa.nulls(count, HELD)
        return structs({name: table[name].combine_chunks().take(pa.array(row)) for name in COMMIT}, HELD, absent)

    def pending(self) -> tuple[Ints, pa.Array]:
        """Return the commits without a known outcome, with their keys."""
        keys, table = _together(self._loaded)
        left = np.flatnonzero(~np.isin(ints(table["log_offset"]), list(self._settled)))
        keys, table = _together([(keys[left], table.take(pa.array(left))), *self._pending])
        return keys, structs({name: table[name].combine_chunks() for name in COMMIT}, HELD)


def _together(pieces: list[tuple[Ints, pa.Table]]) -> tuple[Ints, pa.Table]:
    if not pieces:
        return np.empty(0, np.int64), HELD_SCHEMA.empty_table()
    return np.concatenate([keys for keys, _ in pieces]), pa.concat_tables([table for _, table in pieces])


def _listed(owners: Ints, column: pa.ChunkedArray) -> tuple[Ints, pa.Array]:
    """Return the values of a column of lists, each with the owner of its row."""
    lists = column.combine_chunks()
    return np.repeat(owners, ints(pc.list_value_length(lists), 0)), pc.list_flatten(lists)


class Hours(Sums):
    """The sums of each hour, by key and run."""

    def __init__(self) -> None:
        super().__init__()
        self._ids = Ids()
        self.beside = Found(BESIDE)

    def __len__(self) -> int:
        return len(self._ids)

    def of(self, keys: Ints, hours: Ints, runs: Ints) -> Ints:
        """Return the row of each hour; new ones get a row in all columns."""
        # Key, hour and run as one number, digit by digit: hours and runs are first numbered from 0, so that it fits
        # into 64 bits and is sorted in few steps. Only of each different one, not of each commit, is an object made.
        (hour_rows, hour), (run_rows, run) = (distinct(values) for values in (hours - hours.min(initial=0), runs))
        first, inverse = distinct((keys * max(1, len(hour_rows)) + hour) * max(1, len(run_rows)) + run)
        named = zip(keys[first].tolist(), hours[first].tolist(), runs[first].tolist(), strict=True)
        ids = self._ids.of(named)
        self.columns.grow(len(self._ids))
        return ids[inverse]

    def names(self) -> NDArray[np.int64]:
        """Return key, hour and run of each row."""
        return np.array(list(self._ids.numbers), np.int64).reshape(-1, 3)


class CommitsBesideRecords:
    """The first and the last commit of each partition between two records of its group."""

    def __init__(self) -> None:
        none = dict.fromkeys(("stretch", "topic", "run", "first", "last", "last_ms"), NULL)
        self.columns = GrowingColumns(**none)
        self._records = GrowingColumns(seen=0)
        self._new = np.empty((0, 2), np.int64)

    def add_records(self, groups: Ints, offsets: Ints) -> None:
        """Take in the records of groups of a chunk, before its commits."""
        self._new = np.stack([groups, offsets], axis=1)

    def stretches(self, groups: Ints, offsets: Ints) -> Ints:
        """Return for each commit how many records of its group lie before it."""
        self._records.grow(int(max(groups.max(initial=-1), self._new[:, 0].max(initial=-1))) + 1)
        return self._records["seen"][groups] + counted_before(groups, offsets, *self._new.T)

    def end_chunk(self) -> None:
        """Count the records of the chunk as seen."""
        self._records.grow(int(self._new[:, 0].max(initial=-1)) + 1)
        # add.at, and no indexed +=: a group that occurs twice counts twice.
        np.add.at(self._records["seen"], self._new[:, 0], 1)
        self._new = np.empty((0, 2), np.int64)

    def add(self, commits: Commits, stretches: Ints) -> tuple[Ints, ...]:
        """Take in commits; return key, offset, time, topic id and run of those that are first or last of a stretch.

        ``stretches`` has a number for each commit. A stretch is the commits of a key between two records of its group;
        another topic id or run ends it too. The last ones of the chunk are kept, as more may follow.
        """
        # By key, and within a key in the order of the log, as the sort is stable: a stretch is a block of equal rows.
        order = order_of(commits.key)
        ordered, stretch = commits.take(order), stretches[order]
        changes = np.stack([ordered.key, stretch, ordered.topic, ordered.run], axis=1)
        differs = (changes[1:] != changes[:-1]).any(axis=1)
        begins = np.flatnonzero(np.concatenate([[True], differs])) if len(ordered) else np.empty(0, np.int64)
        # From here on one element is a block, not a commit: key, stretch[begins] and so on.
        ends = np.append(begins[1:], len(ordered))[: len(begins)] - 1
        key = ordered.key[begins]
        is_first_of_key = np.concatenate([[True], key[1:] != key[:-1]])[: len(key)]
        is_last_of_key = np.concatenate([key[1:] != key[:-1], [True]])[: len(key)]
        kept = self.columns
        # Only the first block of a key can continue the stretch with which the chunk before it ended.
        goes_on = (
            is_first_of_key
            & (kept["stretch"][key] == stretch[begins])
            & (kept["topic"][key] == ordered.topic[begins])
            & (kept["run"][key] == ordered.run[begins])
        )
        ended = self._kept(key[is_first_of_key & ~goes_on])
        firsts = ordered.take(begins[~goes_on])
        # What goes on has its first commit in an earlier chunk.
        first = np.where(goes_on, kept["first"][key], ordered.at[begins])
        # A stretch of one commit has no other last one: it would be counted twice.
        done = ~is_last_of_key & (ordered.at[ends] != first)
        lasts = ordered.take(ends[done])
        open_ends = ordered.take(ends[is_last_of_key])
        kept.set(
            open_ends.key,
            stretch=stretch[ends[is_last_of_key]],
            topic=open_ends.topic,
            run=open_ends.run,
            first=first[is_last_of_key],
            last=open_ends.at,
            last_ms=open_ends.time,
        )
        return tuple(
            np.concatenate([old, *new])
            for old, *new in zip(
                ended, *((each.key, each.at, each.time, each.topic, each.run) for each in (firsts, lasts)), strict=True
            )
        )

    def finish(self, count: int) -> tuple[Ints, ...]:
        """Return the last commits of the last stretches of ``count`` keys."""
        return self._kept(np.arange(count))

    def _kept(self, keys: Ints) -> tuple[Ints, ...]:
        kept = self.columns
        keys = keys[(kept["last"][keys] != NULL) & (kept["last"][keys] != kept["first"][keys])]
        return keys, *(kept[name][keys] for name in ("last", "last_ms", "topic", "run"))
