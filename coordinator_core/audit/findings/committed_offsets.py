"""Committed offsets: rewound after a rebalance, beyond their partition's end, expired, written too often, held back, or
no longer used.
"""

import itertools
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from operator import attrgetter
from typing import Final

from coordinator_core.audit.finding_rows import FindingKind, FindingRow, Level
from coordinator_core.audit.findings.resets import MORE_REWINDS, EmptyTimes, cut_text, made_again, taken_by_turns
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.commits import PartitionCommits, Removal, Rewind
from coordinator_core.audit.folds.group_history import GroupHistory, counted, first_of
from coordinator_core.audit.folds.offset_spans import OffsetSpans
from coordinator_core.audit.folds.removals import EXPIRED, EXPIRED_OR_DELETED, OR_WITH_TOPIC
from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS, utc
from coordinator_core.durations import duration
from coordinator_core.groups.end_offsets import records_behind
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.history.grounds import UNREAD_ASSIGNMENT
from coordinator_core.history.rows import AssignmentRow
from coordinator_core.records import GROUP_LOG, LogPosition, elapsed_ms

MINUTE_MS = 60_000
OR_EXPIRED = (EXPIRED, EXPIRED_OR_DELETED)
COMMITTING = frozenset((GroupType.CLASSIC, GroupType.CONSUMER, GroupType.STREAMS))
"""Types of groups that commit offsets."""

COMMIT_BYTES: Final = 37
"""Bytes of a commit's record in a batch, at least, without the names of group and topic: 10 in the key (type,
partition, lengths of both names), 20 in the value (version 2 without metadata), 7 of the record (length, attributes,
two deltas, lengths of key and value, number of headers).
"""


def rewound(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield a finding for each rebalance soon after which commits of moved partitions went back to lower offsets: from
    what was committed before the move, or by a member that had lost the partition.

    A member goes back to offsets of its own, too, where its requests overtake each other, and goes on with the next.
    What goes back while the group has no members is a reset, however soon after its last rebalance.
    """
    takers, turns, empty = _takers(history), taken_by_turns(history, limits), EmptyTimes(history.epochs, history.lost)
    by_rebalance: dict[int, list[tuple[PartitionCommits, Rewind]]] = defaultdict(list)
    doubts: dict[int, set[str]] = defaultdict(set)
    rebalances = sorted(history.rebalances, key=lambda row: row.at.offset)
    starts = [row.at.offset for row in rebalances]
    for commit in history.commits:
        # Where two writers take turns, each goes back from what the other one wrote: no rebalance did it.
        if (commit.topic, commit.partition) in turns:
            continue
        for rewind in (each for each in commit.rewinds if not empty.proven_at(each.at)):
            from_ms = rewind.at.timestamp_ms - CLOCK_TOLERANCE_MS
            until_ms = rewind.at.timestamp_ms + CLOCK_TOLERANCE_MS
            doubt = made_again(history, commit, from_ms - limits.rewind_window_ms, until_ms)
            # A consumer notices only by its next metadata that a topic was made again. Until then it commits the
            # position that it had before, and brokers from 4.1 on record that with the id of the new topic.
            unseen_ms = from_ms - limits.metadata_age_ms
            if doubt is None or history.topics.began_within(commit.topic, unseen_ms, until_ms, again=True):
                continue
            taken = [at for at in takers.get((commit.topic, commit.partition), ()) if at.offset < rewind.at.offset]
            is_own = bool(taken) and (rewind.log_offset_before or 0) > taken[-1].offset
            if is_own and not _had_lost(history, rewind.metadata, commit, rewind.at):
                continue
            since_ms = elapsed_ms(taken[-1].timestamp_ms, rewind.at.timestamp_ms) if taken else None
            if since_ms is not None and since_ms <= limits.rewind_window_ms:
                # The rebalance that gave the partition away is the last one that began before its new member had it.
                index = bisect_right(starts, taken[-1].offset) - 1
                if index >= 0:
                    by_rebalance[index].append((commit, rewind))
                    doubts[index].add(doubt)
    for index, rewinds in sorted(by_rebalance.items()):
        lost = sum(rewind.before - rewind.after for _, rewind in rewinds)
        if lost <= 0:
            continue
        rebalance, (commits, first) = rebalances[index], rewinds[0]
        detail = (
            f"after the rebalance to {rebalance.to_epoch}, {counted(len(rewinds), 'commit')} went back by {lost} "
            f"offsets in total, the first of {commits.topic}-{commits.partition} from {first.before} to {first.after}"
            f"{max(doubts[index])}{_committers(history, rewinds)}"
            f"{cut_text((each for each, _ in rewinds), MORE_REWINDS)}"
        )
        yield history.finding(
            FindingKind.OFFSETS_REWOUND,
            lost,
            detail,
            [rebalance.at, *(rewind.at for _, rewind in rewinds)],
            subject=commits.topic,
            complete=rebalance.history_complete,
        )


def _committers(history: GroupHistory, rewinds: list[tuple[PartitionCommits, Rewind]]) -> str:
    """Return who committed, where the commits name a member, and how many of them it made for partitions that it had
    lost.
    """
    names = history.members()
    made: dict[str, list[bool]] = defaultdict(list)
    for commits, rewind in rewinds:
        if rewind.metadata in names:
            made[names[rewind.metadata]].append(_had_lost(history, rewind.metadata, commits, rewind.at))
    return "".join(
        f"; {len(by)} committed by {name}" + (f", {sum(by)} of them for partitions that it had lost" if any(by) else "")
        for name, by in made.items()
    )


def _had_lost(history: GroupHistory, member_id: str | None, commits: PartitionCommits, at: LogPosition) -> bool:
    """Whether the member had had the partition, and did not have it any more, when it committed."""
    ends = [
        row.until
        for row in history.assignments
        if row.kind == "current"
        and row.member_id == member_id
        and (row.topic, row.partition) == (commits.topic, commits.partition)
        and row.since.offset < at.offset
    ]
    # It may have had the partition several times: if one of these lasts, the commit was its own to make.
    return bool(ends) and all(end is not None and end.offset < at.offset for end in ends)


def beyond_the_end(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield a finding for the partitions of each topic whose committed offset is beyond their end."""
    beyond: dict[str, list[tuple[int, PartitionCommits]]] = defaultdict(list)
    doubts: dict[str, set[str]] = defaultdict(set)
    for commit in history.commits:
        end = history.ends.get(TopicPartition(commit.topic, commit.partition))
        if end is not None and commit.offset is not None:
            lag = records_behind(end, commit.offset, commit.last.timestamp_ms, commit.topic_id)
            doubt = made_again(history, commit, commit.last.timestamp_ms - CLOCK_TOLERANCE_MS, end.time_ms)
            if lag is not None and lag < 0 and doubt is not None:
                beyond[commit.topic].append((-lag, commit))
                doubts[commit.topic].add(doubt)
    for topic, of_topic in sorted(beyond.items()):
        records, first = of_topic[0]
        end = history.ends[TopicPartition(topic, first.partition)]
        detail = (
            f"{counted(len(of_topic), 'partition')} committed beyond the end, the first: {topic}-{first.partition} at "
            f"{first.offset}, which ended at {end.offset} ({utc(end.time_ms)}): lag {-records}; a consumer that starts "
            f"there is out of range and goes to the earliest or latest offset{max(doubts[topic])}"
        )
        most = max(records for records, _ in of_topic)
        yield history.finding(
            FindingKind.COMMITTED_BEYOND_END,
            most,
            detail,
            [commit.last for _, commit in of_topic],
            subject=topic,
            is_open=True,
        )


def _takers(history: GroupHistory) -> dict[tuple[str, int], list[LogPosition]]:
    """Return where each partition was given to another member, by topic name and partition."""
    rows: dict[tuple[str, int], list[AssignmentRow]] = defaultdict(list)
    for row in history.assignments:
        if row.kind == "current" and row.role == "partition" and row.topic is not None:
            rows[(row.topic, row.partition)].append(row)
    takers = {}
    for unit, intervals in rows.items():
        intervals.sort(key=lambda row: row.since.offset)
        # A partition has one member at a time: neighbours in the log's order are its former and its next one.
        takers[unit] = [row.since for before, row in itertools.pairwise(intervals) if row.member_id != before.member_id]
    return takers


def expired(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield offsets that were removed while the group and the topic still existed, by topic.

    Without times nothing tells whether they had been there long enough to expire, nor whether the group went with them.
    """
    removed: dict[str, list[Removal]] = defaultdict(list)
    partitions: Counter[str] = Counter()
    readers = _Readers(history)
    for commit in history.commits:
        expired_ones = [
            removal
            for removal in commit.removals
            if removal.at.timestamp_ms >= 0 and removal.how.startswith(OR_EXPIRED) and readers.may_miss(commit, removal)
        ]
        removed[commit.topic] += expired_ones
        partitions[commit.topic] += bool(expired_ones)
    for topic, removals in sorted(removed.items()):
        number = partitions[topic]
        if number > 0:
            ways = Counter(removal.how for removal in removals)
            how = "; ".join(f"{ways[way]} {way}" for way in sorted(ways)) if len(ways) > 1 else next(iter(ways))
            times = f", {len(removals)} times in all" if len(removals) > number else ""
            detail = f"committed offsets of {counted(number, 'partition')} of {topic} were removed{times}: {how}"
            of_topic = (commit for commit in history.commits if commit.topic == topic)
            detail += cut_text(of_topic, attrgetter("more_removals"))
            with_topic = [removal.how.endswith(OR_WITH_TOPIC) for removal in removals]
            are_back = any(readers.are_back(topic, removal.at) for removal in removals)
            detail += "" if are_back else "; nobody has read the topic since"
            yield history.finding(
                FindingKind.OFFSETS_EXPIRED,
                number,
                detail,
                [removal.at for removal in removals],
                subject=topic,
                level=Level.NOTICE if all(with_topic) or not are_back else None,
                complete=not any(with_topic),
            )


class _Readers:
    """Who was in a group, and what they read. While it has members, brokers remove what was committed for topics that
    none of them subscribes to, after the retention (KIP-211) or as asked (KIP-496): a topic that a group no longer
    reads ends so. What a streams group reads is in its topology, of which brokers leave the repartition topics out.
    """

    def __init__(self, history: GroupHistory) -> None:
        there: dict[str | None, list[tuple[LogPosition, LogPosition | None]]] = defaultdict(list)
        topics = {commit.topic for commit in history.commits if commit.removals}
        internal = [
            name for name in topics if name.startswith(f"{history.group_id}-") and name.endswith("-repartition")
        ]
        for row in history.memberships if topics else ():
            if row.group_type in COMMITTING:
                for topic in (None, *(internal if row.group_type == GroupType.STREAMS else row.subscribed_topics)):
                    there[topic].append((row.joined, row.left))
        for each in history.assignments if topics else ():
            if each.kind == "current" and each.topic in topics:
                there[each.topic].append((each.since, each.until))
        self._empty, self._lost = EmptyTimes(history.epochs, history.lost), history.lost
        self._spans = {topic: OffsetSpans.of(spans) for topic, spans in there.items()}
        self._committed = dict[str, int]()
        for commit in history.commits:
            self._committed[commit.topic] = max(self._committed.get(commit.topic, -1), commit.last.offset)

    def may_miss(self, commit: PartitionCommits, removal: Removal) -> bool:
        """Whether a member may have to begin without an offset: the group reads the topic, or did so later, or had no
        member of whom it is known, and none is hidden by what is lost.
        """
        at, place = removal.at.offset, removal.at.partition
        is_read, has_members = (self._spans.get(topic, OffsetSpans()).any_at(at) for topic in (commit.topic, None))
        if is_read or commit.last.offset > at:
            return True
        if has_members:
            return False
        return self._empty.proven_at(removal.at) or not self._lost.any_within(GROUP_LOG, place, 0, at)

    def are_back(self, topic: str, at: LogPosition) -> bool:
        """Whether somebody reads a topic, or commits for it, after its offsets were removed. Those that a group leaves
        behind that is no longer used expire as they should.
        """
        spans = self._spans.get(topic, OffsetSpans())
        is_read_again = bool(spans.begins) and spans.begins[-1] > at.offset
        return is_read_again or spans.any_at(at.offset) or self._committed[topic] > at.offset


def floods(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield a finding if the group commits too often per minute and partition."""
    # Without times nothing tells a rate.
    timed = [commit for commit in history.commits if min(commit.first.timestamp_ms, commit.last.timestamp_ms) >= 0]
    commits = sum(commit.commits for commit in timed)
    if commits < limits.flood_commits:
        return
    first = min((commit.first for commit in timed), key=lambda at: at.offset)
    last = max((commit.last for commit in timed), key=lambda at: at.offset)
    # A partition that commits for a moment has no rate of its own: what it commits counts as that of a minute.
    active_ms = sum(max(commit.last.timestamp_ms - commit.first.timestamp_ms, MINUTE_MS) for commit in timed)
    rate = round(commits * MINUTE_MS / active_ms)
    if rate >= limits.commits_per_partition_minute:
        # The value of a record differs from one to the next.
        least = COMMIT_BYTES + len(history.group_id.encode())
        size = sum(commit.commits * (least + len(commit.topic.encode())) for commit in timed)
        detail = (
            f"{commits} commits for {len(timed)} partitions, {rate} per minute and partition: at least "
            f"{size} bytes in the log before it is compressed or compacted{_of_log(history, commits, first.partition)}"
        )
        yield history.finding(
            FindingKind.FLOODS_THE_LOG, rate, detail, [first, last], threshold=limits.commits_per_partition_minute
        )


def _of_log(history: GroupHistory, commits: int, partition: int) -> str:
    """Return in words how much of the log partition the commits are, and how far compaction has been."""
    place = GROUP_LOG, partition
    read = history.records_read(place)
    if read is None or not read.records:
        return ""
    text = f", {round(100 * commits / read.records)}% of the {read.records} records read of {GROUP_LOG}-{partition}"
    if place in history.lost.ranges:
        return text
    # Offsets begin at 0 and compaction does not renumber: an offset below the last one without a record had one.
    missing = read.last + 1 - read.records
    if not missing:
        return f"{text}; none of its offsets is missing, so that compaction has removed nothing"
    return (
        f"{text}; {missing} of its {read.last + 1} offsets have no record (compaction, or the ends of transactions in "
        f"what a consumer read), none of the {read.last + 1 - read.whole_from} from offset {read.whole_from} on"
    )


def open_transactions(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield one finding for the transactions that have been open for too long: by the oldest of them.

    Those that may have ended since, in records that are lost, are left out; so are those before a hole of the log.
    """
    old = [
        each
        for each in history.transactions
        if history.lost.range_since((GROUP_LOG, each.first.partition), each.first.offset) is None
        and history.has_lasted(each.first.timestamp_ms, limits.open_transaction_ms)
    ]
    if not old:
        return
    old.sort(key=lambda each: each.first.timestamp_ms)
    age = history.now_ms - old[0].first.timestamp_ms
    partitions = counted(max(each.partitions for each in old), "partition")
    if len(old) == 1:
        detail = f"the transaction of producer {old[0].producer_id} has been open for at least {duration(age)}: it "
        detail += f"blocks the offsets of {partitions}"
    else:
        detail = f"{len(old)} transactions were left open, the oldest, of producer {old[0].producer_id}, for at least "
        detail += f"{duration(age)}: they block the offsets of at least {partitions}; the producers of the next: "
        detail += first_of([str(each.producer_id) for each in old[1:]])
    yield history.finding(
        FindingKind.TRANSACTION_LEFT_OPEN,
        age,
        detail,
        [each.first for each in old],
        threshold=limits.open_transaction_ms,
        is_open=True,
    )


def zombies(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield one finding if the group is no longer used; if it still has members, one for each topic that is not."""
    kept = [commit for commit in history.commits if commit.offset is not None]
    if not kept:
        return
    last = max((commit.last for commit in kept), key=lambda at: at.timestamp_ms)
    if any(row.is_open for row in history.memberships):
        yield from _topics(history, limits, kept)
        return
    ends = [last, *(row.left for row in history.memberships if row.left is not None)]
    latest = max(ends, key=lambda at: at.timestamp_ms)
    if history.has_lasted(latest.timestamp_ms, limits.zombie_ms) and not history.loses(latest):
        silent = history.now_ms - latest.timestamp_ms
        known = history.knows_members_at(latest)
        who = "no member and " if known else ""
        detail = f"{who}no commit for {duration(silent)}; offsets of {counted(len(kept), 'partition')} are kept"
        yield history.finding(
            FindingKind.ZOMBIE_GROUP, silent, detail, [latest], threshold=limits.zombie_ms, is_open=True, complete=known
        )


def _topics(history: GroupHistory, limits: Thresholds, kept: list[PartitionCommits]) -> Iterator[FindingRow]:
    """Yield topics without new commits of which no member has a partition.

    Where the log does not say which topics members read, only deleted topics are reported.
    """
    held = {row.topic for row in history.assignments if row.is_open}
    unread = history.present is not None and history.present.missing == UNREAD_ASSIGNMENT
    hidden = (
        unread
        or history.group_type == "STREAMS"
        or any(row.is_open and row.role == "partition" and row.topic is None for row in history.assignments)
    )
    by_topic: dict[str, list[PartitionCommits]] = defaultdict(list)
    for commit in kept:
        by_topic[commit.topic].append(commit)
    for topic, commits in sorted(by_topic.items()):
        last = max((commit.last for commit in commits), key=lambda at: at.timestamp_ms)
        if topic in held or not history.has_lasted(last.timestamp_ms, limits.zombie_ms) or history.loses(last):
            continue
        silent, topics = history.now_ms - last.timestamp_ms, history.topics
        gone = topics.reach.covers_end(history.now_ms) and topic not in topics.partitions
        if hidden and not gone:
            continue
        detail = (
            f"offsets of {counted(len(commits), 'partition')} of {topic} are kept; "
            f"the last commit was {duration(silent)} ago"
        )
        if gone:
            detail += "; the topic was deleted"
        yield history.finding(
            FindingKind.ZOMBIE_TOPIC, silent, detail, [last], threshold=limits.zombie_ms, subject=topic, is_open=True
        )
