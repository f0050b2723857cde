"""Share groups (KIP-932): records given up or delivered again, stalls, and state that is not there or left over.

Evidence of the first three lies in the share state log, ``__share_group_state``; that of initialization in the group's
own log.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from coordinator_core.audit.finding_rows import MOST_EVIDENCE, FindingKind, FindingRow, Level
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory, counted, first_of
from coordinator_core.audit.folds.share_deliveries import GivenUp, ShareDelivery
from coordinator_core.durations import duration
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.log_partition import log_partition_of, share_partition
from coordinator_core.history.rows import ShareInitializationRow, SharePartitionRow
from coordinator_core.history.topic_inputs import SharePhase
from coordinator_core.records import GROUP_LOG, SHARE_LOG, LogPosition

MOST_NAMED = 5
"""How many ranges of offsets, or partitions, a finding names."""
CERTAIN_COUNT = 2
"""From this delivery count on an archived record counts as given up, and each that was sent to a dead-letter queue.

At the first delivery a rejected record looks like an offset without a record, such as a transaction marker, which
clients acknowledge as a gap.
"""


def archived(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Records that the group gave up, by topic. One of a name that was there before has a finding of its own.

    Offsets archived at their first delivery, rejected or without a record, are no more than a notice, and only where
    they are more than all that was acknowledged: each transaction marker stands beside a record at least, and of a
    compacted topic a batch may have lost most of its records.
    """
    for topic, deliveries in _by_topic(history.deliveries):
        ranges = [(delivery, given_up) for delivery in deliveries for given_up in delivery.given_up]
        certain = [(delivery, given_up) for delivery, given_up in ranges if _is_certain(given_up)]
        unclear = [(delivery, given_up) for delivery, given_up in ranges if not _is_certain(given_up)]
        lost, doubtful = (sum(each.last - each.first + 1 for _, each in some) for some in (certain, unclear))
        if lost < 1 and doubtful <= sum(delivery.accepted for delivery in deliveries):
            continue
        told = [f"{counted(lost, 'record')} of {topic} given up: {_named(certain)}"] if lost else []
        if doubtful:
            of_topic = "" if lost else f" of {topic}"
            told.append(
                f"{counted(doubtful, 'offset')}{of_topic} archived at the first delivery, rejected or without a record "
                f"(a transaction marker, compaction): {_named(unclear)}"
            )
        yield history.finding(
            FindingKind.SHARE_ARCHIVED,
            lost or doubtful,
            "; ".join(told),
            _latest(given_up.at for _, given_up in certain or unclear),
            subject=topic,
            level=None if lost else Level.NOTICE,
            complete=_has_all(history, deliveries),
            in_share_state=True,
        )


def unqueued(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Records given up that are in no dead-letter queue although the group has one, by topic (KIP-1191)."""
    for topic, deliveries in _by_topic(history.deliveries):
        lost = [delivery for delivery in deliveries if delivery.unqueued]
        at = [at for delivery in lost for at in (delivery.first_unqueued, delivery.last_unqueued) if at is not None]
        number = sum(delivery.unqueued for delivery in lost)
        if number:
            reasons = ", ".join(sorted({delivery.unqueued_why or "" for delivery in lost}))
            detail = f"{counted(number, 'record')} of {topic} archived, and not in a dead-letter queue: {reasons}"
            yield history.finding(
                FindingKind.SHARE_UNQUEUED,
                number,
                detail,
                _latest(at),
                subject=topic,
                complete=_has_all(history, deliveries),
                in_share_state=True,
            )


def redelivered(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Topics of which many deliveries were not the first ones."""
    for topic, deliveries in _by_topic(history.deliveries):
        again = sum(delivery.redelivered for delivery in deliveries)
        ended = sum(delivery.ended for delivery in deliveries)
        if ended <= 0 or again < limits.share_redelivered or again < limits.share_redelivered_ratio * ended:
            continue
        most = max(delivery.most_delivered for delivery in deliveries)
        share = round(100 * again / ended)
        detail = (
            f"{again} of {ended} deliveries of {topic} ({share}%) were of records delivered before, up to {most} "
            f"times: released, or the lock timed out"
        )
        at = [
            redelivery
            for delivery in deliveries
            for redelivery in (delivery.first_redelivery, delivery.last_redelivery)
            if redelivery is not None
        ]
        yield history.finding(
            FindingKind.SHARE_REDELIVERED,
            again,
            detail,
            at,
            threshold=limits.share_redelivered,
            subject=topic,
            complete=_has_all(history, deliveries),
            in_share_state=True,
        )


def stalled(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Share partitions that do not advance, although a member has had them since before their last write.

    A member that comes takes what waits at once: what it does not take was deleted meanwhile, which is not written.
    While the partition or its state has no leader nothing is delivered; to fetch from a new leader writes its epoch.
    No more than a notice where offsets without a state are all that holds a share partition up: a member may be at
    work on them, and renew its lock (KIP-1222), or they have no record.
    """
    lasting = [each for each in reversed(history.assignments) if each.kind == "current" and each.is_open]
    held = {(each.topic_id, each.partition): each.since.timestamp_ms for each in lasting}  # the first of several
    for delivery in history.deliveries:
        row = delivery.current
        if row is None or history.lost.as_known(row) is not row:
            continue
        held_ms, at_end = held.get((row.topic_id, row.partition)), history.topics
        places = (delivery.topic or row.topic_id, row.partition), (SHARE_LOG, row.since.partition)
        led_ms = [at_end.led_again.get(place, 0) for place in places]
        if held_ms is None or held_ms > row.since.timestamp_ms or None in led_ms:
            continue
        held_ms = max(held_ms, *(each_ms or 0 for each_ms in led_ms))
        since = _stalled_since(row, held_ms, history.shares_ms, limits.share_stalled_ms)
        if since is None:
            continue
        since_ms = max(since.timestamp_ms, held_ms)
        idle = history.shares_ms - since_ms
        standstill = "nothing was written" if since == row.since else "the first unsettled offset stays"
        is_sure = row.available if since == row.since else not row.unknown
        detail = (
            f"{_share_partition(delivery)}: {standstill} for {duration(idle)}; offset {row.next_offset} blocks it, "
            f"{counted(row.available or 0, 'record')} wait for the next delivery"
        )
        if locked := _locked(row):
            detail += f"; {counted(locked, 'offset')} in the hands of members, or without a record (compaction)"
        if not at_end.reach.covers(since_ms, since_ms + limits.share_stalled_ms):
            detail += "; or it has no leader: the metadata log, which would show it, does not reach so far"
        yield history.finding(
            FindingKind.SHARE_STALLED,
            idle,
            detail,
            [since],
            threshold=limits.share_stalled_ms,
            subject=_share_partition(delivery),
            level=None if is_sure else Level.NOTICE,
            is_open=True,
            complete=row.history_complete,
            in_share_state=True,
        )


def _stalled_since(row: SharePartitionRow, held_ms: int, now_ms: int, limit_ms: int) -> LogPosition | None:
    """Since when a share partition stalls: no write while records wait or are locked, or writes that settle only later
    offsets.
    """
    since, shown = row.since, row.next_offset_shown
    waits = row.available or _locked(row)
    if waits and now_ms - max(since.timestamp_ms, held_ms) >= limit_ms:
        return since
    blocked_ms = since.timestamp_ms - max(shown.timestamp_ms, held_ms)
    return shown if (waits or row.archiving) and blocked_ms >= limit_ms else None


def _locked(row: SharePartitionRow) -> int:
    """How many records members may have had in their hands at the last write; 0 where it is not known.

    They are the offsets of which the log has no state, less those that count as complete without one, such as records
    of an aborted transaction.
    """
    if row.unknown is None or row.complete is None or row.acknowledged is None or row.archived is None:
        return 0
    return max(0, row.unknown - max(0, row.complete - row.acknowledged - row.archived))


def initializing(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Share state that was asked for, or is being deleted, and does not come to an end, by topic."""
    subscribed = {topic for row in history.lasting(history.memberships) for topic in row.subscribed_topics}
    waiting: dict[tuple[str, str], list[ShareInitializationRow]] = defaultdict(list)
    for row in history.lasting(history.initializations):
        is_wanted = row.phase == SharePhase.DELETING or row.was_initialized or row.topic in subscribed
        if row.phase != SharePhase.INITIALIZED and is_wanted:
            waiting[row.topic, row.phase].append(row)
    for (topic, phase), rows in waiting.items():
        since = min((row.since for row in rows), key=lambda at: at.timestamp_ms)
        age = history.shares_ms - since.timestamp_ms
        if age < limits.share_initializing_ms:
            continue
        if phase == SharePhase.DELETING:
            detail = f"the deletion of the share state of {topic} has lasted {duration(age)}"
        else:
            asked = max(row.asked for row in rows)
            detail = (
                f"the share state of {_partitions(topic, rows)} was asked for {counted(asked, 'time')} in "
                f"{duration(age)} and is not there: a partition that never had state is assigned to no member"
            )
        yield history.finding(
            FindingKind.SHARE_INITIALIZING,
            age,
            detail,
            sorted({at for row in rows for at in (row.since, row.last_asked)}, key=lambda at: at.offset),
            threshold=limits.share_initializing_ms,
            subject=topic,
            is_open=True,
            complete=all(row.history_complete for row in rows),
        )


def orphaned(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Share partitions that only one of the two logs knows: initialized without state, or state without its group.

    Judged only where both logs were read from their beginning, and beyond the record that the other one lacks.
    """
    initialized = {
        (row.topic_id, row.partition): row
        for row in history.initializations
        if row.is_open and row.phase == SharePhase.INITIALIZED
    }
    # In any phase: state that is still being deleted is not left over.
    known = {row.topic_id for row in history.initializations if row.is_open}
    states = {
        (delivery.topic_id, delivery.partition): delivery
        for delivery in history.deliveries
        if delivery.current is not None
    }
    missing = [
        row
        for unit, row in initialized.items()
        if unit not in states and row.history_complete and _would_show(history, unit, row.since)
    ]
    if missing:
        named = first_of([f"{row.topic}-{row.partition}" for row in missing])
        detail = f"{counted(len(missing), 'share partition')} initialized without state in {SHARE_LOG}: {named}"
        yield _orphans(history, detail, [row.since for row in missing], in_share_state=False)
    left = [
        delivery.current
        for unit, delivery in states.items()
        if delivery.current is not None
        and delivery.topic_id not in known
        and delivery.current.history_complete
        and _is_left_over(history, delivery, delivery.current)
    ]
    if left:
        named = first_of([f"{row.topic or row.topic_id}-{row.partition}" for row in left])
        lacks = f"of a group that is not in {GROUP_LOG}" if history.now_ms == 0 else "that the group does not list"
        detail = f"{counted(len(left), 'share partition')} with state in {SHARE_LOG} {lacks}: {named}"
        yield _orphans(history, detail, [row.since for row in left], in_share_state=True)


def _orphans(
    history: GroupHistory, detail: str, evidence: Sequence[LogPosition], *, in_share_state: bool
) -> FindingRow:
    return history.finding(
        FindingKind.SHARE_STATE_ORPHANED, len(evidence), detail, evidence, is_open=True, in_share_state=in_share_state
    )


def _would_show(history: GroupHistory, unit: tuple[str, int], at: LogPosition) -> bool:
    """Whether the share state log would show a share partition, had it state at that time."""
    count, logs = history.topics.partitions.get(SHARE_LOG, 0), history.share_logs
    number = log_partition_of(share_partition(history.group_id, *unit), count) if count else -1
    return number in logs.whole and logs.last_ms[number] >= at.timestamp_ms


def _is_left_over(history: GroupHistory, delivery: ShareDelivery, row: SharePartitionRow) -> bool:
    """Whether the group's whole log, which goes on after the state was written, does not have the share partition."""
    if history.now_ms == 0:
        # A log in which the group would be goes on after its share state began, and does not have the group.
        count = history.topics.partitions.get(GROUP_LOG, 0)
        number = log_partition_of(history.group_id, count) if count else -1
        last_ms = history.share_logs.groups_ms.get(number)
        return last_ms is not None and last_ms >= delivery.began.timestamp_ms
    ends = [
        initialization.until
        for initialization in history.initializations
        if initialization.until is not None and initialization.topic_id == row.topic_id
    ]
    gone_ms = max((at.timestamp_ms for at in ends), default=0)
    # Brokers of 4.0 (early access) record with a share group neither the partitions that have state nor a hash.
    has_hash = [epoch.metadata_hash is not None for epoch in history.epochs if epoch.group_type == GroupType.SHARE]
    is_seen = bool(history.initializations) or (bool(history.epochs) and any(has_hash or [True]))
    is_whole = all(initialization.history_complete for initialization in history.initializations) and all(
        epoch.history_complete for epoch in history.epochs
    )
    later_ms = history.share_logs.last_ms.get(row.since.partition, 0)
    return is_seen and is_whole and history.now_ms >= row.since.timestamp_ms and later_ms > gone_ms


def _has_all(history: GroupHistory, deliveries: Iterable[ShareDelivery]) -> bool:
    """Whether these are all deliveries of their topic: each share partition of it that was initialized has its state in
    a partition of the share state log that was read from its beginning and lacks nothing.
    """
    seen = {(delivery.topic_id, delivery.partition): delivery.began.partition for delivery in deliveries}
    topic_ids = {topic_id for topic_id, _ in seen}
    initialized = {
        (row.topic_id, row.partition)
        for row in history.initializations
        if row.topic_id in topic_ids and (row.was_initialized or row.phase == SharePhase.INITIALIZED)
    }
    return initialized <= seen.keys() and history.share_logs.whole.issuperset(seen.values())


def _by_topic(deliveries: Iterable[ShareDelivery]) -> Iterator[tuple[str, list[ShareDelivery]]]:
    """Yield topics by name with their deliveries. One that was created again is another topic: it has other records."""
    by_topic: dict[str, list[ShareDelivery]] = defaultdict(list)
    for delivery in deliveries:
        by_topic[delivery.topic_id].append(delivery)
    for of_topic in by_topic.values():
        yield of_topic[0].topic or of_topic[0].topic_id, of_topic


def _is_certain(given_up: GivenUp) -> bool:
    return given_up.dead_letter or given_up.delivery_count >= CERTAIN_COUNT


def _latest(positions: Iterable[LogPosition]) -> list[LogPosition]:
    """Each position once, the latest of them."""
    return sorted(set(positions), key=lambda at: (at.timestamp_ms, at.partition, at.offset))[-MOST_EVIDENCE:]


def _named(ranges: Sequence[tuple[ShareDelivery, GivenUp]]) -> str:
    """The latest of the ranges, such as ``orders-0 10 to 11 after 3 deliveries (the limit)``."""
    sentences = []
    for delivery, given_up in sorted(ranges, key=lambda pair: pair[1].at.timestamp_ms)[-MOST_NAMED:]:
        offsets = str(given_up.first) if given_up.first == given_up.last else f"{given_up.first} to {given_up.last}"
        limit = " (the limit)" if given_up.delivery_count == given_up.delivery_limit else ""
        count = "1 delivery" if given_up.delivery_count == 1 else f"{given_up.delivery_count} deliveries"
        sentences.append(f"{_share_partition(delivery)} {offsets} after {count}{limit}")
    more = len(ranges) - len(sentences)
    return ", ".join(sentences) + (f", and {more} more" if more > 0 else "")


def _share_partition(delivery: ShareDelivery) -> str:
    return f"{delivery.topic or delivery.topic_id}-{delivery.partition}"


def _partitions(topic: str, rows: Sequence[ShareInitializationRow]) -> str:
    numbers = sorted(row.partition for row in rows)
    more = ", ..." if len(numbers) > MOST_NAMED else ""
    return f"{topic} {','.join(map(str, numbers[:MOST_NAMED]))}{more}"
