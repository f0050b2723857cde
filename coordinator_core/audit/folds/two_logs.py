"""The history of a group id that lives in two logs: Connect workers that moved to KIP-848, or back.

A classic group of workers is in ``__consumer_offsets``, one on KIP-848 in ``__worker_offsets``. Offsets of the two logs
cannot be compared; their times can. Each log says of the conversion only that the group was deleted, or that it began:
what one log ends and the other continues at the same time, with the same number, is a conversion.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Protocol, TypeVar

from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.groups.classic.protocols import CONNECT_PROTOCOL_TYPE
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.log_partition import log_partition_of
from coordinator_core.history.causes import CauseKind, cause
from coordinator_core.history.grounds import CONVERTED_ELSEWHERE, MAY_BE_CONVERTED, MAY_HAVE_MOVED, lost_offsets
from coordinator_core.history.rows import (
    DOWNGRADED,
    LEFT_OR_EXPIRED,
    UPGRADED,
    Cause,
    GroupEpochRow,
    MembershipRow,
    RebalanceRow,
)
from coordinator_core.history.testimony import lacking
from coordinator_core.records import CONNECT_LOG, GROUP_LOG, LogPosition

APART_MS = 1_000
"""The two records of a conversion are at most this far apart."""
GROUP_DELETED = "group deleted"


class _OfGroup(Protocol):
    """A row that names the type of its group, which tells its log."""

    @property
    def group_type(self) -> str: ...


Row = TypeVar("Row", bound=_OfGroup)


def by_log(history: GroupHistory) -> list[GroupHistory]:
    """Return the history of each log in which the group lives, the log that begins first being the first.

    A group in one log has one. In the other case conversions are named in both.
    """
    workers = [row for row in history.epochs if row.group_type == GroupType.CONNECT]
    if not workers:
        return [_in_doubt(history)]
    if len(workers) == len(history.epochs):
        return [_in_doubt(_moved_here(history))]
    classic, connect = (_part(history, on_kip_848=on_kip_848) for on_kip_848 in (False, True))
    for ended, begun, kind in _conversions(classic, connect):
        if kind is CauseKind.GROUP_UPGRADED:
            before = _gone_before(classic, ended, begun)
            classic = _ended(classic, ended, begun, UPGRADED, "upgrade")
            said = f"generation {ended.epoch} became group epoch {begun.epoch}"
            connect = _begun(
                connect, begun, cause(kind, _end_of(ended), detail=said, source=GROUP_LOG), *before, after=ended
            )
        else:
            connect = _ended(connect, ended, begun, DOWNGRADED, "downgrade")
            told = f"group epoch {ended.epoch} became generation {begun.epoch}" if ended.missing is None else None
            if ended.missing is None and ended.target is None:
                told = f"group epoch {ended.epoch} has no target: the generation is the last epoch that had one"
            classic = _begun(classic, begun, cause(kind, _end_of(ended), detail=told, source=CONNECT_LOG), after=ended)
    moved = _moved_here(connect)
    classic, connect = _in_doubt(classic, moved.epochs), _in_doubt(moved, classic.epochs)
    parts = _open_in_one_log(_cut_by(connect.epochs, classic), _cut_by(classic.epochs, connect))
    return sorted(parts, key=lambda part: part.epochs[0].opened.timestamp_ms)


def combined(histories: Iterable[GroupHistory]) -> Iterator[GroupHistory]:
    """Yield one history per group id; a group may have one in each log, that of ``__worker_offsets`` coming first.

    Only groups of ``__worker_offsets`` are held in memory.
    """
    workers: dict[str, GroupHistory] = {}
    for history in histories:
        if history.group_type == GroupType.CONNECT:
            workers[history.group_id] = history
        elif history.group_id in workers:
            yield _together(workers.pop(history.group_id), history)
        else:
            yield history
    yield from workers.values()


def last_time(own_ms: Mapping[str, int], epochs: Iterable[GroupEpochRow]) -> int:
    """Return the last time of the log in which a group lives now, of the last times of its logs by topic.

    That another log goes on, which it left or which has only its offsets, says nothing of it.
    """
    by_log: dict[str, GroupEpochRow] = {}
    for row in epochs:
        topic = CONNECT_LOG if row.group_type == GroupType.CONNECT else GROUP_LOG
        by_log[topic] = max(row, by_log.get(topic, row), key=lambda each: each.opened.offset)
    if len(by_log) == 2:
        by_log.pop(GROUP_LOG if _is_not_before(by_log[CONNECT_LOG], by_log[GROUP_LOG]) else CONNECT_LOG)
    shown = by_log.keys() & own_ms.keys() or own_ms.keys()
    return max((own_ms[topic] for topic in shown), default=0)


def log_topic(history: GroupHistory) -> str:
    """Return the topic of the log of such a part."""
    return CONNECT_LOG if history.group_type == GroupType.CONNECT else GROUP_LOG


def told_rebalances(history: GroupHistory) -> list[RebalanceRow]:
    """Return the rebalances of all logs of a group, with the conversions named."""
    return [row for part in by_log(history) for row in part.rebalances]


def time_order(part: GroupHistory, at: LogPosition) -> tuple[int, int, int]:
    """Return a key that orders records of both logs of a group: by time, then by what the conversions prove.

    ``part`` is the history of the log of the record, from ``by_log``.
    """
    # Turns count the conversions so far: even ones are in the classic log, odd ones on KIP-848.
    back = CauseKind.GROUP_DOWNGRADED
    if part.group_type == GroupType.CONNECT:
        moved = [row for row in part.epochs if row.ended_by == DOWNGRADED and _end_of(row).offset < at.offset]
        turn = 2 * len(moved) + 1
    else:
        known = (row.causes for row in part.epochs if row.opened.offset <= at.offset)
        turn = 2 * len({each.at for causes in known for each in causes if each.kind == back})
    return at.timestamp_ms, turn, at.offset


def _together(connect: GroupHistory, classic: GroupHistory) -> GroupHistory:
    rows: Iterator[Any] = chain.from_iterable(
        chain(
            history.epochs,
            history.rebalances,
            history.memberships,
            history.assignments,
            history.violations,
            history.targets,
            history.initializations,
            history.share_partitions or history.deliveries,
            history.commits,
            history.commit_counts,
            history.trails,
            history.transactions,
            history.sizes,
            (event for event in history.events if event.group_id is not None),
        )
        for history in (connect, classic)
    )
    own_ms = {CONNECT_LOG: connect.now_ms, GROUP_LOG: classic.now_ms}
    return GroupHistory.gather(
        classic.group_id,
        last_time(own_ms, (*connect.epochs, *classic.epochs)),
        rows,
        classic.topics,
        classic.share_logs,
        connect.lost.joined(classic.lost),
        [event for event in classic.events if event.group_id is None],
    ).replaced(logs_ms=own_ms)


def _part(history: GroupHistory, *, on_kip_848: bool) -> GroupHistory:
    """The rows of one log, as of its own end. A violation does not say of which it is: its time does."""
    last_ms = history.logs_ms.get(CONNECT_LOG if on_kip_848 else GROUP_LOG)
    ends = {} if last_ms is None else {"now_ms": last_ms}

    def rows_of_log(rows: Iterable[Row]) -> list[Row]:
        return [row for row in rows if (row.group_type == GroupType.CONNECT) == on_kip_848]

    epochs = rows_of_log(history.epochs)
    return history.replaced(
        epochs=epochs,
        rebalances=rows_of_log(history.rebalances),
        memberships=rows_of_log(history.memberships),
        assignments=rows_of_log(history.assignments),
        targets=rows_of_log(history.targets),
        violations=[row for row in history.violations if _lives(epochs, row.at.timestamp_ms)],
        commits=() if on_kip_848 else history.commits,
        commit_counts=() if on_kip_848 else history.commit_counts,
        transactions=() if on_kip_848 else history.transactions,
        events=() if on_kip_848 else history.events,
        sizes=[row for row in history.sizes if (row.log_topic == CONNECT_LOG) == on_kip_848],
        **ends,
    )


def _lives(epochs: Sequence[GroupEpochRow], time_ms: int) -> bool:
    return any(
        row.opened.timestamp_ms <= time_ms and (row.ended is None or time_ms <= row.ended.timestamp_ms)
        for row in epochs
    )


def _conversions(classic: GroupHistory, connect: GroupHistory) -> list[tuple[GroupEpochRow, GroupEpochRow, CauseKind]]:
    """What ends, what continues it, and which way it goes: a generation becomes a group epoch, and the epoch of the
    last target a generation.
    """
    conversions = []
    for ended in classic.epochs:
        if (begun := _begun_by(ended, ended.epoch, connect.epochs)) is not None:
            conversions.append((ended, begun, CauseKind.GROUP_UPGRADED))
    target = None
    for ended in connect.epochs:
        target = ended.epoch if ended.target is not None else target
        if (begun := _begun_by(ended, target, _first_of_lives(classic.epochs))) is not None:
            conversions.append((ended, begun, CauseKind.GROUP_DOWNGRADED))
    return conversions


def _begun_by(ended: GroupEpochRow, number: int | None, epochs: Iterable[GroupEpochRow]) -> GroupEpochRow | None:
    """Return which of the epochs of the other log, of this ``number``, the group goes on in; groups move back and forth
    within a second, so it is the nearest one. A group of workers may have been there without members before, unless
    its log shows that it came from the other one.
    """
    begins = [row for row in epochs if row.epoch == number and _continues(ended, row)]
    # In the classic log the number of an epoch may come again: the nearest in time is meant.
    return min(begins, key=lambda row: abs(_end_of(ended).timestamp_ms - row.opened.timestamp_ms), default=None)


def _continues(ended: GroupEpochRow, begun: GroupEpochRow) -> bool:
    if ended.ended is None or ended.ended_by != GROUP_DELETED:
        return False
    if begun.members == () and begun.missing != CONVERTED_ELSEWHERE:
        return False
    return abs(ended.ended.timestamp_ms - begun.opened.timestamp_ms) <= APART_MS


def _first_of_lives(epochs: Sequence[GroupEpochRow]) -> Iterator[GroupEpochRow]:
    """The epochs with which a log begins, and those after an end of the group."""
    before: GroupEpochRow | None = None
    for epoch in epochs:
        if before is None or before.ended_by == GROUP_DELETED:
            yield epoch
        before = epoch


def _end_of(row: GroupEpochRow) -> LogPosition:
    assert row.ended is not None
    return row.ended


def _gone_before(classic: GroupHistory, ended: GroupEpochRow, begun: GroupEpochRow) -> list[Cause]:
    """Return the members of the last generation that are not in the group on KIP-848: they had left just before."""
    return [
        cause(CauseKind.MEMBER_LEFT_OR_EXPIRED, _end_of(ended), member=row.member_id, source=GROUP_LOG)
        for row in classic.memberships
        if row.left == ended.ended and row.member_id not in (begun.members or ())
    ]


def _ended(history: GroupHistory, epoch: GroupEpochRow, begun: GroupEpochRow, how: str, went_by: str) -> GroupHistory:
    """Return the history with the end of an epoch that another log continues with ``begun``.

    Members that go on there did not leave, even where a tombstone of the same time removes each of them. Where it is
    not known who goes on, it is not known of any.
    """
    at = _end_of(epoch)
    goes_on = frozenset(begun.members or ())
    missing = begun.missing if begun.members is None else None

    def went(row: MembershipRow) -> str:
        return went_by if row.member_id in goes_on else LEFT_OR_EXPIRED

    def is_now(row: MembershipRow) -> bool:
        # A worker that goes on in the other log may have its own tombstone, just before that of the group.
        return row.left is not None and (
            row.left == at or (row.left.timestamp_ms == at.timestamp_ms and row.member_id in goes_on)
        )

    return history.replaced(
        epochs=_changed(history.epochs, lambda row: row == epoch, ended_by=how),
        rebalances=_changed(
            history.rebalances, lambda row: row.finished == at and row.outcome == GROUP_DELETED, outcome=how
        ),
        memberships=[
            lacking(row, missing)._replace(went_by=went(row)) if is_now(row) else row for row in history.memberships
        ],
    )


def _moved_here(connect: GroupHistory) -> GroupHistory:
    """Return the history with the upgrades that this log proves where the other one does not show what they continue.

    A conversion writes all workers and their target at once. A worker that joins is alone, and no target is there yet:
    some worker computes it when it is asked to.
    """
    before: GroupEpochRow | None = None
    for row in connect.epochs:
        is_known = row.missing in (None, CONVERTED_ELSEWHERE)
        is_first = before is None or not before.members or before.ended_by == GROUP_DELETED
        has_target_at_once = row.target == row.opened._replace(offset=row.opened.offset + 1)
        is_told = any(each.kind == CauseKind.GROUP_UPGRADED for each in row.causes)
        if is_known and is_first and row.members and has_target_at_once and not is_told:
            connect = _begun(connect, row, cause(CauseKind.GROUP_UPGRADED, row.opened))
        before = row
    return connect


def _in_doubt(history: GroupHistory, others: Sequence[GroupEpochRow] = ()) -> GroupHistory:
    """Return the history of a log with a doubt about each end of workers that no conversion explains: only a group
    without members can be deleted. One without members may have moved where the other log, whose epochs are
    ``others``, goes on at the same time behind records that are missing, or was not read.
    """
    unseen_ms = [row.opened.timestamp_ms for row in others if row.missing not in (None, CONVERTED_ELSEWHERE)]

    def may_have_moved(row: GroupEpochRow) -> bool:
        ended_ms = _end_of(row).timestamp_ms
        near = any(abs(ended_ms - begun_ms) <= APART_MS for begun_ms in unseen_ms)
        return row.members != () or near or (row.group_type != GroupType.CONNECT and _lacks_log_of_workers(history))

    doubted = [
        row
        for row in history.epochs
        if (row.group_type == GroupType.CONNECT or row.protocol_type == CONNECT_PROTOCOL_TYPE)
        and row.ended_by == GROUP_DELETED
        and may_have_moved(row)
    ]
    if not doubted:
        return history
    ends = {_end_of(row) for row in doubted}
    times_ms = {end.timestamp_ms for end in ends}

    def is_cut(row: RebalanceRow) -> bool:
        return row.finished in ends and row.outcome == GROUP_DELETED

    return history.replaced(
        epochs=_lacking(history.epochs, MAY_BE_CONVERTED, lambda row: row in doubted),
        rebalances=_changed(_lacking(history.rebalances, MAY_BE_CONVERTED, is_cut), is_cut, outcome="unknown"),
        # A tombstone of the same time may remove each of them first.
        memberships=_lacking(
            history.memberships,
            MAY_BE_CONVERTED,
            lambda row: row.left is not None and row.left.timestamp_ms in times_ms,
        ),
    )


def _cut_by(others: Sequence[GroupEpochRow], own: GroupHistory) -> GroupHistory:
    """Return the history of a log with a doubt about each stay of a member over records that are lost, during which the
    other log, whose epochs are ``others``, shows the group: it moved there and back in between.
    """
    times_ms = sorted(row.opened.timestamp_ms for row in others)

    def missing(row: MembershipRow) -> str | None:
        begin, end = row.joined, row.left
        first = bisect_right(times_ms, begin.timestamp_ms)
        was_there = first < len(times_ms) and (end is None or times_ms[first] < end.timestamp_ms)
        until = None if end is None else end.offset
        lost = own.lost.first_within(log_topic(own), begin.partition, begin.offset, until) if was_there else None
        return None if lost is None else lost_offsets(lost - 1, lost + 1)

    return own.replaced(memberships=[lacking(row, missing(row)) for row in own.memberships])


def _lacks_log_of_workers(history: GroupHistory) -> bool:
    """Whether the log to which a classic group would have moved is there, and was not read."""
    partitions = history.topics.partitions.get(CONNECT_LOG)
    return partitions is not None and (
        history.records_read((CONNECT_LOG, log_partition_of(history.group_id, partitions))) is None
    )


def _open_in_one_log(classic: GroupHistory, connect: GroupHistory) -> Iterator[GroupHistory]:
    """Yield both with a doubt about what is open in a log while the other one goes on: a group lives in one of them.

    A group on KIP-848 stays there when it has no workers any more, also while some join as a classic group.
    """
    for own, other in ((classic, connect), (connect, classic)):
        last, later = own.epochs[-1], other.epochs[-1]
        is_of_workers = last.group_type == GroupType.CLASSIC or (
            last.group_type == GroupType.CONNECT and last.members != ()
        )
        goes_on = later.ended_by not in (UPGRADED, DOWNGRADED) and _is_not_before(later, last)
        yield _with_open_ends(own) if last.ended is None and is_of_workers and goes_on else own


def _is_not_before(later: GroupEpochRow, last: GroupEpochRow) -> bool:
    """Whether an epoch may be the later one of two in different logs: the number decides where the clocks may not."""
    after_ms = later.opened.timestamp_ms - last.opened.timestamp_ms
    return after_ms > 0 if abs(after_ms) > APART_MS else later.epoch >= last.epoch


def _with_open_ends(history: GroupHistory) -> GroupHistory:
    return history.replaced(
        epochs=_lacking(history.epochs, MAY_HAVE_MOVED, _is_open),
        rebalances=_lacking(history.rebalances, MAY_HAVE_MOVED, _is_open),
        memberships=_lacking(history.memberships, MAY_HAVE_MOVED, _is_open),
        assignments=_lacking(history.assignments, MAY_HAVE_MOVED, _is_open),
    )


def _begun(
    history: GroupHistory, epoch: GroupEpochRow, *why: Cause, after: GroupEpochRow | None = None
) -> GroupHistory:
    """Members that were there before are not a cause. The epochs that its log skips were the generations before.

    ``after``: the epoch of the other log that this one continues; None: that is not known.
    """

    def follows(row: GroupEpochRow | RebalanceRow) -> bool:
        """Whether it is the first epoch, or the rebalance for which workers join again after a conversion back."""
        at = row.opened if isinstance(row, GroupEpochRow) else row.at
        is_next = row.history_complete and at.offset > epoch.opened.offset and at == following
        return at == epoch.opened or (is_next and [each.kind for each in row.causes] == [CauseKind.UNKNOWN])

    def explained(row: Any) -> bool:
        return follows(row) and row.missing == CONVERTED_ELSEWHERE

    following = next((row.opened for row in history.epochs if row.opened.offset > epoch.opened.offset), None)
    known = {"history_complete": True, "missing": None}
    again = (why[0]._replace(detail=None),)
    of_epochs, of_rebalances = (
        _changed(_changed(rows, explained, **known), follows, causes=again)
        for rows in (history.epochs, history.rebalances)
    )
    of_epochs = _changed(of_epochs, lambda row: row.opened == epoch.opened, causes=why)
    of_rebalances = _changed(of_rebalances, lambda row: row.at == epoch.opened, causes=why)
    # The epoch of a downgrade may not be the last one, where records are missing behind it.
    is_upgrade = any(each.kind == CauseKind.GROUP_UPGRADED for each in why)
    number = None if after is None or (after.missing is not None and not is_upgrade) else after.epoch
    before = None if after is None or after.members is None else len(after.members)
    of_rebalances = _changed(
        of_rebalances, lambda row: row.at == epoch.opened, from_epoch=number, members_before=before
    )
    return history.replaced(epochs=of_epochs, rebalances=of_rebalances)


def _is_open(row: Any) -> bool:
    return bool(row.is_open)


def _lacking(rows: Sequence[Any], missing: str, which: Any) -> list[Any]:
    return [lacking(row, missing) if which(row) else row for row in rows]


def _changed(rows: Sequence[Any], which: Any, **fields: Any) -> list[Any]:
    return [row._replace(**fields) if which(row) else row for row in rows]
