"""What groups were at a moment, from the tables: folded in this process, group by group, with their offsets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Final

from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.topic_history import TopicHistory, TopicInterval
from coordinator_core.errors import InputError
from coordinator_core.groups.certainty import NO_OFFSET, CommitRecords, LogGaps, record_key
from coordinator_core.groups.describe import Surroundings
from coordinator_core.groups.group import Group
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.groups.proven_state import GroupKeys, GroupThen, prove, prove_offsets
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.groups.share.state_log import SHARE_SNAPSHOT, ShareStateLog
from coordinator_core.history.given_share_state import GivenShareState
from coordinator_core.history.knowledge import Knowledge
from coordinator_core.history.lost_records import LostRecords
from coordinator_core.records import AnyRecord, Family, LogPosition, RecordType
from coordinator_core.wire.record_codec import decode_key
from coordinator_core.wire.record_decoder import RecordDecoder
from jobs.queries.from_tables.commits import (
    NO_COMMITS,
    OF_GROUP,
    GroupCommitsThen,
    GroupKey,
    Row,
    commits_then,
    order_of_groups,
    read_offsets,
    read_records,
)
from jobs.queries.from_tables.selection import Selection
from jobs.queries.interface import sure_ms
from jobs.relations.log_extent import Extents, before_end, extents_at, followed, gaps_by_name, names_without_ends
from jobs.relations.logs import times_of_groups
from jobs.relations.moment import AsOf
from jobs.relations.share_state import given_share_state
from jobs.relations.topics import stored_topics, topics_given
from jobs.relations.unreadable import UnreadKey, last_of_keys, places, unreadable_of_groups
from jobs.sources.files import FAMILIES, GROUP_TOPICS, SHARE_TOPICS
from jobs.sources.given_partitions import stored_given
from jobs.tables.reader import TableReader

GROUP: Final = ("log_topic", "log_partition", "group_id")
RECORD: Final = ", ".join((*GROUP, "log_offset", "timestamp_ms", "batch_base", "key", "value"))


class StoredMoment:
    """The coordinator at a moment, from the tables: all groups, or one. From log files: ``ReplayedGroups``."""

    def __init__(self, tables: TableReader, cluster: str, moment: AsOf, group_id: str | None = None) -> None:
        """Raises InputError where no log of groups was taken in."""
        self._tables, self._cluster = tables, cluster
        self._selected = Selection(tables, cluster, GROUP_TOPICS, group_id)
        self._extents = extents_at(tables, cluster, moment, GROUP_TOPICS)
        if not self._extents:
            raise InputError(f"{tables.location}: no log of a cluster {cluster!r}")
        self._span = times_of_groups(tables, cluster)
        last_ms = self._span[1]
        if moment.time_ms is not None and last_ms is not None and moment.time_ms > last_ms:
            for extent in self._extents.values():
                extent.gaps, extent.transactions_are_known = extent.gaps.after_end(), False
        self._time_ms = self._share_ms = moment.time_ms
        self._sure_ms: int | None = None
        cuts = [of for of in self._extents.values() if of.left_out_ms is not None]
        if cuts and moment.time_ms is None:
            # Topics as of the last record that counts; share state before the first that does not.
            self._share_ms = min(of.left_out_ms or 0 for of in cuts) - 1
            self._sure_ms = min(sure_ms(of.asked, of.left_out or 0, of.left_out_ms or 0, of.last_ms) for of in cuts)
            self._time_ms = max((of.last_ms for of in cuts if of.last_ms is not None), default=self._share_ms)
        self._known_topics: list[TopicHistory | None] = []
        self._unread: dict[GroupKey, list[UnreadKey]] = defaultdict(list)
        for each in last_of_keys(tables, cluster, before_end(self._extents), group_id):
            self._unread[*each.place, each.group_id].append(each)

    def groups(self) -> Iterator[GroupThen]:
        """Yield every group that there was or may have been, by group id; one is in memory at a time."""
        is_whole = all(extent.gaps.lists_all for extent in self._extents.values())
        later = {} if is_whole else self._later_keys()
        followed_commits = {} if is_whole else self._later_unread(later)
        for key, rows, commits in self._each_group({*later, *self._unread, *followed_commits}):
            group, known = self._folded(key, rows, commits.last, later.get(key, ()))
            unread = self._note_unread(key, known)
            each = self._proven(
                key,
                GroupThen(group, read_offsets(commits.held)),
                known,
                commits.about,
                unread,
                followed_commits.get(key, ()),
            )
            if each.is_possible:
                yield each

    def gaps(self) -> dict[str, LogGaps]:
        """Return what is missing in each partition of the group logs, by the name of the partition."""
        return gaps_by_name(self._extents)

    def span(self) -> tuple[int | None, int | None]:
        """Return the times of the first and the last record in the logs of groups; see ``GroupsThen``."""
        return self._span

    def knowledge(self) -> Knowledge:
        """Return what the logs lack, as seen from the moment."""
        tables, cluster = self._tables, self._selected.cluster
        unreadable = unreadable_of_groups(tables, cluster, before_end(self._extents))
        lost = LostRecords({}, *unreadable)
        topics = topics_given(tables, cluster)
        first_ms, last_ms = self._span
        if last_ms is not None and self._time_ms is not None:
            last_ms = min(last_ms, self._time_ms)
        return Knowledge(
            stored_given(tables, cluster),
            self.gaps(),
            lost,
            topics,
            first_ms,
            last_ms,
            lambda: self._given_share_state,
            names_without_ends(self._extents),
        )

    def _each_group(self, others: Iterable[GroupKey]) -> Iterator[tuple[GroupKey, list[Row], GroupCommitsThen]]:
        """Yield the records and the commits of each group, in the order of the groups; for the other groups nothing."""
        records = groupby(self._records("group_id, log_topic, log_partition, log_offset"), OF_GROUP)
        parts = merge(
            ((key, list(mine)) for key, mine in records),
            commits_then(self._selected, self._extents),
            ((key, None) for key in sorted(others, key=order_of_groups)),
            key=lambda each: order_of_groups(each[0]),
        )
        for key, of_group in groupby(parts, itemgetter(0)):
            rows: list[Row] = []
            commits = NO_COMMITS
            for _, part in of_group:
                if isinstance(part, GroupCommitsThen):
                    commits = part
                elif isinstance(part, list):
                    rows = part
            yield key, rows, commits

    def _records(self, order: str) -> Iterator[Row]:
        """Yield the records of the groups up to the moment, with the columns ``RECORD``."""
        return self._selected.rows(
            f"SELECT {RECORD} FROM $group_records WHERE {self._selected.condition} AND {before_end(self._extents)} "
            f"ORDER BY {order}"
        )

    def _later_keys(self) -> dict[GroupKey, list[bytes]]:
        """Return the keys with a record behind the moment, by group, where they decide what is known of it."""
        found: dict[GroupKey, list[bytes]] = {}
        for row in self._selected.rows(
            f"SELECT DISTINCT {', '.join(GROUP)}, key FROM $group_records "
            f"WHERE {self._selected.condition} AND {followed(self._extents)}"
        ):
            found.setdefault(OF_GROUP(row), []).append(row["key"])
        return found

    def _later_unread(self, later: dict[GroupKey, list[bytes]]) -> dict[GroupKey, list[TopicPartition]]:
        """Add to ``later`` the keys of records behind the moment that cannot be decoded; return those of commits."""
        commits: dict[GroupKey, list[TopicPartition]] = defaultdict(list)
        selected = self._selected
        for each in last_of_keys(self._tables, selected.cluster, followed(self._extents), selected.group_id):
            family = FAMILIES[each.place[0]]
            if family is Family.GROUP and each.record_type <= RecordType.OFFSET_COMMIT:
                fields = decode_key(each.key, family)[1]
                commits[*each.place, each.group_id].append(TopicPartition(fields["topic"], fields["partition"]))
            else:
                later.setdefault((*each.place, each.group_id), []).append(each.key)
        return commits

    def _folded(
        self, key: GroupKey, rows: list[Row], last_commit: int | None, later: Iterable[bytes]
    ) -> tuple[Group, GroupKeys]:
        """Return a group after its records, of which the last commit is one, and which keys it has."""
        topic, partition, group_id = key
        extent, family = self._extents[topic, partition], FAMILIES[topic]
        shard, keys, decoder = CoordinatorShard(extent.from_start, family), GroupKeys(), RecordDecoder(family)
        keys.followed.update(record_key(*decode_key(each, family)) for each in later)
        group = shard.group(group_id)
        for row in rows:
            if last_commit is not None and last_commit < row["log_offset"]:
                group.commit()
                last_commit = None
            record = _record(row, decoder)
            shard.apply(record, None, extent.leader_epoch(row["log_offset"]))
            keys.note(record, group)
        if last_commit is not None:
            group.commit()
        shard.follow(extent.last_epoch)
        return group, keys

    def _note_unread(self, key: GroupKey, keys: GroupKeys) -> dict[TopicPartition, int]:
        """Note the keys of a group whose last value cannot be decoded; return its partitions with such a commit."""
        commits: dict[TopicPartition, int] = {}
        for each in self._unread.get(key, ()):
            fields = decode_key(each.key, FAMILIES[each.place[0]])[1]
            if FAMILIES[each.place[0]] is Family.GROUP and each.record_type <= RecordType.OFFSET_COMMIT:
                commits[TopicPartition(fields["topic"], fields["partition"])] = each.offset
            else:
                keys.note_unreadable(each.record_type, fields, each.offset)
        return commits

    def _proven(
        self,
        key: GroupKey,
        then: GroupThen,
        keys: GroupKeys,
        about: Iterable[Row],
        unread: Mapping[TopicPartition, int],
        followed_commits: Iterable[TopicPartition],
    ) -> GroupThen:
        """Return what the log proves of a group; ``unread`` are the commits that cannot be decoded.

        ``followed_commits`` are partitions with such a commit behind the moment.
        """
        extent = self._extents[key[:2]]
        if extent.gaps.lists_all and not unread and not keys.has_unread:
            return _undecided(then) if extent.may_hide_ends else then
        group, certainty = prove(then.group, keys, extent.gaps)
        records = read_records(about)
        for partition in followed_commits:
            held = then.offsets.committed.get(partition)
            known = records.get(partition) or CommitRecords(NO_OFFSET if held is None else held.at.offset)
            records[partition] = known._replace(is_followed=True)
        proven = prove_offsets(
            GroupThen(group, then.offsets, certainty),
            records,
            extent.gaps,
            transactions_are_known=extent.transactions_are_known,
            unread=keys.still_unread(unread, then.offsets),
        )
        return _undecided(proven) if extent.may_hide_ends else proven

    def records(self) -> Iterator[tuple[Group, Iterator[AnyRecord]]]:
        """Yield each group as it was before its first record here, and its records in the order of the log."""
        for (topic, partition, group_id), mine in groupby(self._records(", ".join((*GROUP, "log_offset"))), OF_GROUP):
            family = FAMILIES[topic]
            group = Group(group_id, from_start=self._extents[topic, partition].from_start, family=family)
            decoder = RecordDecoder(family)
            yield group, (_record(row, decoder) for row in mine)

    def topics(self) -> TopicHistory | None:
        """Return the history of topics; None if it is unknown."""
        if not self._known_topics:
            self._known_topics.append(stored_topics(self._tables, self._selected.cluster))
        return self._known_topics[0]

    def image(self) -> TopicImage | None:
        """Return the topics at the moment; None if they are unknown."""
        topics = self.topics()
        return None if topics is None else topics.image_at(self._time_ms, self._span[1] or 0)

    def lives(self, topic: str) -> list[TopicInterval] | None:
        """Return the times over which a topic stayed as it was, also after the moment; None if topics are unknown."""
        topics = self.topics()
        return None if topics is None else [*topics.intervals([topic])]

    def surroundings(self) -> Surroundings:
        """Return the facts outside a group that its description needs."""
        return Surroundings(self.image(), self._share_state()).with_brokers(self.topics(), self._time_ms)

    def _share_state(self) -> ShareStateLog | None:
        """Return the state of the share partitions; of each, what came before its last snapshot is in the snapshot."""
        extents = self._share_extents
        if not extents:
            return None
        lost = {partition for (_, partition), of in extents.items() if of.gaps.lost >= 0}
        lost.update(self._given_share_state.absent)
        log, decoder = ShareStateLog(lost=lost, sure_ms=self._sure_ms), RecordDecoder(Family.SHARE)
        shares = replace(self._selected, topics=SHARE_TOPICS)
        mine = f"{shares.condition} AND {before_end(extents)}"
        snapshots = shares.rows(
            f"SELECT key, max(log_offset) AS since FROM $group_records WHERE {mine} "
            f"AND record_type = {SHARE_SNAPSHOT} GROUP BY key"
        )
        # The first two bytes of a key are the record type, the others the share partition.
        since = {row["key"][2:]: row["since"] for row in snapshots}
        rows = shares.rows(f"SELECT {RECORD} FROM $group_records WHERE {mine} ORDER BY log_partition, log_offset")
        unread = places(self._tables, self._cluster, SHARE_TOPICS, before_end(extents))
        holes = merge(self._share_log_holes(extents), unread)
        hole = next(holes, None)
        for row in rows:
            while hole is not None and hole <= (row["log_partition"], row["log_offset"]):
                log.lose(hole[0])
                hole = next(holes, None)
            if row["log_offset"] >= since.get(row["key"][2:], 0):
                log.apply(_record(row, decoder))
        if hole is not None:
            for partition, _ in (hole, *holes):
                log.lose(partition)
        return log

    @cached_property
    def _given_share_state(self) -> GivenShareState:
        """Return what was given of the share state log, as seen from the moment."""
        return given_share_state(self._tables, self._cluster, self._share_extents)

    @cached_property
    def _share_extents(self) -> Extents:
        """Return the extents of the share state log at the moment."""
        return extents_at(self._tables, self._cluster, AsOf(self._share_ms), SHARE_TOPICS)

    def _share_log_holes(self, extents: Extents) -> Iterator[tuple[int, int]]:
        """Yield partition and offset of each record of the share state log before which offsets are missing."""
        return self._tables.tuples(
            "SELECT log_partition, log_offset FROM (SELECT log_partition, log_offset, "
            "lag(log_offset) OVER (PARTITION BY log_topic, log_partition ORDER BY log_offset) AS before "
            f"FROM $log_records WHERE cluster = :cluster AND log_topic IN :topics AND {before_end(extents)} "
            "AND kind IN ('record', 'control')) AS placed WHERE before < log_offset - 1 "
            "ORDER BY log_partition, log_offset",
            cluster=self._cluster,
            topics=SHARE_TOPICS,
        )


def _undecided(then: GroupThen) -> GroupThen:
    """Return a group of a dump that does not show which commits are in transactions, nor how these ended."""
    commits_hold = not then.offsets.committed
    certainty = replace(then.certainty, transactions_are_known=False, commits_hold=commits_hold)
    return then._replace(certainty=certainty)


def _record(row: Row, decoder: RecordDecoder) -> AnyRecord:
    at = LogPosition(row["log_partition"], row["log_offset"], row["timestamp_ms"])
    return decoder.record(at, row["key"], row["value"], row["batch_base"])
