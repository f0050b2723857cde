"""The coordinator at a moment, from the tables: its groups, their topics, and what is known of all of it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Final

from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.topic_changes import TopicInterval
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import InputError
from coordinator_core.groups.certainty import NO_OFFSET, CommitRecords, LogGaps, record_key
from coordinator_core.groups.describe import Surroundings
from coordinator_core.groups.group import Group
from coordinator_core.groups.moved_groups import without_moved
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.groups.proven_state import GroupKeys, GroupThen, prove, prove_offsets, still_unread, undecided
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.groups.share.state_log import SHARE_SNAPSHOT, ShareStateLog
from coordinator_core.groups.simple_groups import without_forgotten
from coordinator_core.history.knowledge import GivenShareState, Knowledge
from coordinator_core.history.lost_records import LostRecords
from coordinator_core.records import CONNECT_LOG, AnyRecord, Family, Fields, RecordType
from coordinator_core.wire.record_codec import decode_key
from coordinator_core.wire.record_decoder import RecordDecoder
from jobs.queries.from_tables.commits import (
    KEY,
    NO_COMMITS,
    OF_GROUP,
    GroupCommitsThen,
    GroupKey,
    commits_of,
    commits_then,
    order_of_groups,
    read_offsets,
    read_records,
)
from jobs.queries.from_tables.selection import Selection
from jobs.queries.moment_times import LogEnd, MomentTimes
from jobs.relations.given_partitions import stored_given
from jobs.relations.log_extent import (
    NOTHING,
    Extents,
    StoredLogExtent,
    before_end,
    below_ends,
    extents_at,
    followed,
    gaps_by_name,
    has_transactions,
    names_without_ends,
    reasons_of_ends,
)
from jobs.relations.logs import newest_times, times_of_groups, without_times
from jobs.relations.moment import AsOf
from jobs.relations.positions import stored_position
from jobs.relations.share_state import given_share_state
from jobs.relations.topics import stored_topics, topics_given
from jobs.relations.unreadable import UnreadKey, last_of_keys, places, unreadable_of_groups
from jobs.sources.files import FAMILIES, GROUP_TOPICS, SHARE_TOPICS
from jobs.tables.reader import Row, TableReader

GROUP: Final = ("log_topic", "log_partition", "group_id")
RECORD: Final = ", ".join((*GROUP, "log_offset", "timestamp_ms", "batch_base", "key", "value"))


def record_of(row: Row, decoder: RecordDecoder) -> AnyRecord:
    """Return the record of a row with the columns ``RECORD``."""
    at = stored_position(row["log_partition"], row["log_offset"], row["timestamp_ms"])
    return decoder.record(at, row["key"], row["value"], row["batch_base"])


class GroupRecords:
    """The records of the groups of a selection; one group is in memory at a time."""

    def __init__(self, selected: Selection, extents: Extents) -> None:
        """``extents`` of the log partitions end at the moment."""
        self._selected, self._extents = selected, extents

    def named(self) -> Iterator[str]:
        """Yield the ids of the groups that have records up to the moment, each once."""
        before = f"{self._selected.condition} AND {before_end(self._extents)}"
        rows = self._selected.rows(f"SELECT DISTINCT group_id FROM $group_records WHERE {before}")
        return (row["group_id"] for row in rows)

    def by_group(self) -> Iterator[tuple[GroupKey, list[Row]]]:
        """Yield the rows of each group by ``order_of_groups``, in the order of the log."""
        rows = self._rows("group_id, log_topic, log_partition, log_offset")
        return ((key, list(of_group)) for key, of_group in groupby(rows, OF_GROUP))

    def by_log(self) -> Iterator[tuple[Group, Iterator[AnyRecord]]]:
        """Yield each group as it was before its first record, and its records in the order of the log."""
        for (topic, partition, group_id), rows in groupby(self._rows(", ".join((*GROUP, "log_offset"))), OF_GROUP):
            family = FAMILIES[topic]
            group = Group(group_id, from_start=self._extents[topic, partition].from_start, family=family)
            decoder = RecordDecoder(family)
            yield group, (record_of(row, decoder) for row in rows)

    def later_keys(self) -> dict[GroupKey, list[bytes]]:
        """Return the keys with a record behind the moment, by group, where they decide what is known of it."""
        keys: dict[GroupKey, list[bytes]] = defaultdict(list)
        later_rows = followed(self._extents)
        if later_rows == NOTHING:
            return keys
        for row in self._selected.rows(
            f"SELECT DISTINCT {', '.join(GROUP)}, key FROM $group_records "
            f"WHERE {self._selected.condition} AND {later_rows}"
        ):
            keys[OF_GROUP(row)].append(row["key"])
        return keys

    def fold(
        self, key: GroupKey, rows: Iterable[Row], last_commit: int | None, later: Iterable[bytes]
    ) -> tuple[Group, GroupKeys]:
        """Return a group after its records, and which keys it has.

        ``last_commit``: the offset of its last commit, which makes a group, too. ``later``: its ``later_keys``.
        """
        topic, partition, group_id = key
        extent, family = self._extents[topic, partition], FAMILIES[topic]
        shard, keys, decoder = CoordinatorShard(extent.from_start, family), GroupKeys(), RecordDecoder(family)
        keys.followed.update(record_key(*decode_key(of_record, family)) for of_record in later)
        group = shard.group(group_id)
        for row in rows:
            # In its place in the log: behind a tombstone a commit makes the group anew, before one it does not.
            if last_commit is not None and last_commit < row["log_offset"]:
                group.commit()
                last_commit = None
            record = record_of(row, decoder)
            shard.apply(record, None, extent.leader_epoch(row["log_offset"]))
            keys.note(record, group)
        if last_commit is not None:
            group.commit()
        shard.follow(extent.last_epoch)
        return group, keys

    def _rows(self, order: str) -> Iterator[Row]:
        """Yield the records up to the moment, with the columns ``RECORD``."""
        return self._selected.rows(
            f"SELECT {RECORD} FROM $group_records WHERE {self._selected.condition} AND {before_end(self._extents)} "
            f"ORDER BY {order}"
        )


class UnreadKeys:
    """The keys of the groups of a selection, up to the ends of ``extents``. The groups are ``by_group``."""

    def __init__(self, selected: Selection, extents: Extents) -> None:
        self._selected, self._extents = selected, extents
        self.by_group = self._by_group(below_ends(extents))
        self._removed = self._last_tombstones() if self.by_group else {}

    def note(self, group: GroupKey, keys: GroupKeys) -> dict[TopicPartition, int]:
        """Note those of one group; return the offset of the last such commit of each of its partitions."""
        commits: dict[TopicPartition, int] = {}
        for unread in self.by_group.get(group, ()):
            fields = _key_of(unread)
            if (partition := _committed(unread, fields)) is not None:
                if unread.offset > self._removed.get((group, partition), -1):
                    commits[partition] = unread.offset
            else:
                keys.note_unreadable(unread.record_type, fields, unread.offset)
        return commits

    def note_later(self, later: dict[GroupKey, list[bytes]]) -> dict[GroupKey, list[TopicPartition]]:
        """Add to ``later`` the keys of such records behind the moment; return the partitions of those of commits."""
        commits: dict[GroupKey, list[TopicPartition]] = defaultdict(list)
        later_rows = followed(self._extents)
        for group, of_group in ({} if later_rows == NOTHING else self._by_group(later_rows)).items():
            for unread in of_group:
                if (partition := _committed(unread, _key_of(unread))) is not None:
                    commits[group].append(partition)
                else:
                    later.setdefault(group, []).append(unread.key)
        return commits

    def _last_tombstones(self) -> dict[tuple[GroupKey, TopicPartition], int]:
        """Return the offset of the last tombstone of each partition of groups with records that cannot be decoded."""
        rows = self._selected.rows(
            f"SELECT {KEY}, max(log_offset) AS last FROM $offset_commits WHERE {self._selected.condition} "
            f"AND {before_end(self._extents)} AND is_tombstone AND group_id IN :groups GROUP BY {KEY}",
            groups=sorted({group_id for _, _, group_id in self.by_group}),
        )
        return {
            (
                (row["log_topic"], row["log_partition"], row["group_id"]),
                TopicPartition(row["topic"], row["partition"]),
            ): row["last"]
            for row in rows
        }

    def _by_group(self, condition: str) -> dict[GroupKey, list[UnreadKey]]:
        selected = self._selected
        unread: Iterator[UnreadKey] = last_of_keys(selected.tables, selected.cluster, condition, selected.group_id)
        by_group: dict[GroupKey, list[UnreadKey]] = defaultdict(list)
        for unread_key in unread:
            by_group[*unread_key.place, unread_key.group_id].append(unread_key)
        return by_group


def _key_of(unread: UnreadKey) -> Fields:
    return decode_key(unread.key, FAMILIES[unread.place[0]])[1]


def _committed(unread: UnreadKey, key: Fields) -> TopicPartition | None:
    """Return the partition whose commit a record is; None: it is about the group."""
    is_commit = FAMILIES[unread.place[0]] is Family.GROUP and unread.record_type <= RecordType.OFFSET_COMMIT
    return TopicPartition(key["topic"], key["partition"]) if is_commit else None


@dataclass(slots=True)
class _Evidence:
    """What the tables have of one group: records, commits, and what is behind the moment or cannot be decoded.

    ``followed_commits`` are partitions with a commit behind the moment that cannot be decoded.
    """

    rows: Sequence[Row] = ()
    commits: GroupCommitsThen = NO_COMMITS
    later: Sequence[bytes] = ()
    followed_commits: Sequence[TopicPartition] = ()


class StoredGroups:
    """The groups of a selection in logs that end at a moment."""

    def __init__(self, selected: Selection, extents: Extents) -> None:
        self._selected, self._extents = selected, extents
        self._records = GroupRecords(selected, extents)
        self._unread = UnreadKeys(selected, extents)
        self._has_transactions = cache(
            lambda place: has_transactions(selected.tables, selected.cluster, place, extents[place])
        )

    def all(self) -> Iterator[GroupThen]:
        """Yield every group that there was or may have been, by group id; one is in memory at a time."""
        return without_moved(self._of_logs())

    def _of_logs(self) -> Iterator[GroupThen]:
        """Yield what each log shows of each group, by ``order_of_groups``."""
        for key, evidence in self._evidence():
            group, keys = self._records.fold(key, evidence.rows, evidence.commits.last, evidence.later)
            unread_commits = self._unread.note(key, keys)
            then = GroupThen(group, read_offsets(evidence.commits.held))
            extent = self._extents[key[:2]]
            if not extent.gaps.lists_all or unread_commits or keys.has_unread:
                # A commit that cannot be decoded may be of a transaction that was open.
                may_be_open = bool(unread_commits) and self._has_transactions(key[:2])
                then = _proven(then, keys, evidence, extent, unread_commits, may_be_open=may_be_open)
            if extent.may_hide_ends:
                then = undecided(then)
            if then.is_possible:
                yield then

    def _evidence(self) -> Iterator[tuple[GroupKey, _Evidence]]:
        """Yield what there is of each group, by ``order_of_groups``."""
        is_whole = all(extent.gaps.lists_all for extent in self._extents.values())
        later = {} if is_whole else self._records.later_keys()
        followed_commits = {} if is_whole else self._unread.note_later(later)
        # Groups that only later or unreadable records name may have been there, too: they have no rows to come with.
        others = {*later, *self._unread.by_group, *followed_commits}
        parts: Iterable[tuple[GroupKey, GroupCommitsThen | list[Row] | None]] = merge(
            self._records.by_group(),
            commits_then(self._selected, self._extents),
            ((key, None) for key in sorted(others, key=order_of_groups)),
            key=lambda part: order_of_groups(part[0]),
        )
        for key, of_group in groupby(parts, itemgetter(0)):
            evidence = _Evidence(later=later.get(key, ()), followed_commits=followed_commits.get(key, ()))
            for _, part in of_group:
                if isinstance(part, GroupCommitsThen):
                    evidence.commits = part
                elif part is not None:
                    evidence.rows = part
            yield key, evidence


def _proven(
    then: GroupThen,
    keys: GroupKeys,
    evidence: _Evidence,
    extent: StoredLogExtent,
    unread: dict[TopicPartition, int],
    *,
    may_be_open: bool,
) -> GroupThen:
    """Return what the log proves of a group; ``unread`` has the commits that cannot be decoded, with their offsets.

    ``may_be_open``: one of them may be of a transaction that was open.
    """
    group, certainty = prove(then.group, keys, extent.gaps)
    records = read_records(evidence.commits.about)
    for partition in evidence.followed_commits:
        held = then.offsets.committed.get(partition)
        # A later commit follows the known one, whether its value can be decoded or not.
        known = records.get(partition) or CommitRecords(NO_OFFSET if held is None else held.at.offset)
        records[partition] = known._replace(is_followed=True)
    return prove_offsets(
        GroupThen(group, then.offsets, certainty),
        records,
        extent.gaps,
        transactions_are_known=extent.transactions_are_known and not may_be_open,
        unread=still_unread(unread, then.offsets),
    )


class StoredShareLog:
    """The share state log up to a time (ms; None: to its end), as far as it is about the groups of a selection."""

    def __init__(self, selected: Selection, time_ms: int | None) -> None:
        self._selected = replace(selected, topics=SHARE_TOPICS)
        self._time_ms = time_ms

    @cached_property
    def _extents(self) -> Extents:
        return extents_at(self._selected.tables, self._selected.cluster, AsOf(self._time_ms), SHARE_TOPICS)

    @cached_property
    def given(self) -> GivenShareState:
        """What was given of the log, as seen from that time."""
        return given_share_state(self._selected.tables, self._selected.cluster, self._extents)

    def state(self, sure_ms: int | None) -> ShareStateLog | None:
        """Return the state of the share partitions; None where the log was not given.

        ``sure_ms``: the latest time that was surely not later than the moment; None: the moment is a time. Of each
        share partition, what came before its last snapshot is in the snapshot.
        """
        extents, selected = self._extents, self._selected
        if not extents:
            return None
        lost = {partition for (_, partition), extent in extents.items() if extent.gaps.lost >= 0}
        log = ShareStateLog(lost=lost.union(self.given.doubtful), sure_ms=sure_ms)
        upto = f"{selected.condition} AND {before_end(extents)}"
        snapshots = selected.rows(
            f"SELECT key, max(log_offset) AS since FROM $group_records WHERE {upto} "
            f"AND record_type = {SHARE_SNAPSHOT} GROUP BY key"
        )
        # The first two bytes of a key are the record type, the others the share partition.
        since = {row["key"][2:]: row["since"] for row in snapshots}
        rows = selected.rows(f"SELECT {RECORD} FROM $group_records WHERE {upto} ORDER BY log_partition, log_offset")
        holes, decoder, last = self._holes(), RecordDecoder(Family.SHARE), dict[int, int]()
        hole = next(holes, None)
        for row in rows:
            # Holes come in the order of the rows: what was lost is taken in before the record behind it.
            while hole is not None and hole <= (row["log_partition"], row["log_offset"]):
                log.lose(hole[0])
                hole = next(holes, None)
            last[row["log_partition"]] = row["log_offset"]
            if row["log_offset"] >= since.get(row["key"][2:], 0):
                log.apply(record_of(row, decoder))
        if hole is not None:
            for partition, _ in (hole, *holes):
                log.lose(partition)
        # What is lost behind the last record has none behind it that would show the hole.
        for (_, partition), extent in extents.items():
            if extent.gaps.lost > last.get(partition, -1):
                log.lose(partition)
        return log

    def _holes(self) -> Iterator[tuple[int, int]]:
        """Yield partition and offset of each record before which offsets are missing, and of each that is unreadable,
        in order.
        """
        tables, cluster = self._selected.tables, self._selected.cluster
        behind_holes = tables.tuples(
            "SELECT log_partition, log_offset FROM (SELECT log_partition, log_offset, "
            "lag(log_offset) OVER (PARTITION BY log_topic, log_partition ORDER BY log_offset) AS before "
            "FROM $log_records WHERE cluster = :cluster AND log_topic IN :topics AND kind IN ('record', 'control') "
            f"AND {before_end(self._extents)}) AS placed WHERE before < log_offset - 1 "
            "ORDER BY log_partition, log_offset",
            cluster=cluster,
            topics=SHARE_TOPICS,
        )
        unread: Iterator[tuple[int, int]] = iter(places(tables, cluster, SHARE_TOPICS, below_ends(self._extents)))
        return merge(behind_holes, unread)


def log_ends(extents: Extents) -> Iterator[LogEnd]:
    """Yield how each log partition ends."""
    for (_, partition), each in extents.items():
        yield LogEnd(partition, each.gaps, each.asked, each.last, each.last_ms, each.left_out, each.left_out_ms)


class StoredMoment:
    """The coordinator at a moment, from the tables: all groups, or one. From log files: ``ReplayedGroups``."""

    def __init__(self, tables: TableReader, cluster: str, moment: AsOf, group_id: str | None = None) -> None:
        """Raises InputError where no log of groups was taken in."""
        self._tables, self._cluster = tables, cluster
        self._selected = Selection(tables, cluster, GROUP_TOPICS, group_id)
        self._extents: Extents = {}
        # The times of the moment ask how the logs end, and so fill the extents on the way.
        self._times = MomentTimes.looked_up(moment, self._read)
        if not self._extents:
            raise InputError(f"{tables.location}: no log of a cluster {cluster!r}")
        self._span = times_of_groups(tables, cluster)
        last_ms = self._span[1]
        if moment.time_ms is not None and last_ms is not None and moment.time_ms > last_ms:
            for extent in self._extents.values():
                if extent.asked is None:  # else its end at that time is known
                    extent.gaps, extent.transactions_are_known = extent.gaps.after_end(), False
        for (topic, partition), extent in self._extents.items():
            if topic == CONNECT_LOG and partition in self._times.untimed:
                extent.gaps = extent.gaps.untimed()
        self._shares = StoredShareLog(self._selected, self._times.shares_ms)
        self._groups = StoredGroups(self._selected, self._extents)

    def _read(self, topics: Sequence[str], at: AsOf) -> list[LogEnd]:
        extents = extents_at(self._tables, self._cluster, at, list(topics))
        self._extents |= extents
        ends = [*log_ends(extents)]
        if topics == [CONNECT_LOG] and ends:
            # Only where an offset cuts a log does its extent have a last time, and offsets say nothing of this log.
            times = newest_times(self._tables, self._cluster, CONNECT_LOG, at.time_ms)
            return [end._replace(last_ms=times.get(end.partition)) for end in ends]
        return ends

    def groups(self) -> Iterator[GroupThen]:
        """Yield every group that there was or may have been, by group id; one is in memory at a time."""
        return without_forgotten(self._groups.all(), lambda: self.surroundings().oldest_broker)

    def named(self) -> set[str]:
        """Return the ids of all groups of which a record up to the moment tells, be it a tombstone."""
        of_records = GroupRecords(self._selected, self._extents).named()
        return {*of_records, *commits_of(self._selected, self._extents).named()}

    def records(self) -> Iterator[tuple[Group, Iterator[AnyRecord]]]:
        """Yield each group as it was before its first record here, and its records in the order of the log."""
        return GroupRecords(self._selected, self._extents).by_log()

    def gaps(self) -> dict[str, LogGaps]:
        """Return what is missing in each partition of the group logs, by the name of the partition."""
        return gaps_by_name(self._extents)

    def span(self) -> tuple[int | None, int | None]:
        """Return the times of the first and the last record in the logs of groups; see ``GroupsThen``."""
        return self._span

    def knowledge(self) -> Knowledge:
        """Return what the logs lack, as seen from the moment."""
        tables, cluster = self._tables, self._cluster
        first_ms, last_ms = self._span
        if last_ms is not None and self._times.topics_ms is not None:
            # The span is that of all that was taken in: as seen from the moment, the logs end there.
            last_ms = min(last_ms, self._times.topics_ms)
        return Knowledge(
            stored_given(tables, cluster),
            self.gaps(),
            LostRecords({}, *unreadable_of_groups(tables, cluster, below_ends(self._extents))),
            topics_given(tables, cluster),
            first_ms,
            last_ms,
            lambda: self._shares.given,
            names_without_ends(self._extents),
            without_times(tables, cluster),
            missing_ends=reasons_of_ends(self._extents),
        )

    @cached_property
    def _topics(self) -> TopicHistory | None:
        return stored_topics(self._tables, self._cluster)

    def topics(self) -> TopicHistory | None:
        """Return the history of topics; None if it is unknown."""
        return self._topics

    def image(self) -> TopicImage | None:
        """Return the topics at the moment; None if they are unknown, as at an offset whose record has no time."""
        if self._topics is None or not self._times.is_timed:
            return None
        return self._topics.image_at(self._times.topics_ms, self._span[1] or 0, self._times.upto_ms)

    def lives(self, topic: str) -> list[TopicInterval] | None:
        """Return the times over which a topic stayed as it was, also after the moment; None if topics are unknown."""
        return None if self._topics is None else [*self._topics.intervals([topic])]

    def surroundings(self) -> Surroundings:
        """Return the facts outside a group that its description needs."""
        shares = self._shares.state(self._times.sure_ms)
        around = Surroundings(self.image(), shares)
        topics = self._topics if self._times.is_timed else None
        return around.with_brokers(topics, self._times.topics_ms, self._times.upto_ms)
