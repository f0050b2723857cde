"""What the log tells of the work of a Connect group that its state does not have: earlier epochs, and what may wait."""

from dataclasses import dataclass, field
from typing import NamedTuple

from coordinator_core.groups.connect.state import ConnectGroup, Work, max_delay_ms
from coordinator_core.records import AnyRecord, ConnectRecordType


class DelayEnd(NamedTuple):
    """A delay ends between these times (broker's clock)."""

    earliest_ms: int
    latest_ms: int


NO_DELAY = DelayEnd(-1, -1)


@dataclass(slots=True)
class RebalanceDelay:
    """The scheduled rebalance delay of a group. Give it every record of the group in log order.

    The coordinator lets the work of a worker that leaves wait for ``scheduled.rebalance.max.delay.ms``. A further
    departure in that time does not make it longer. A coordinator that loads the group begins the delay again if work
    waits.

    ``ends`` says when the last delay may end: there are several answers where a worker left at the very time at which a
    delay ended, or a coordinator loaded the group. ``departure_epoch`` is the group epoch that the last departure
    opens. ``running`` are the workers that run something. ``leader_epoch`` is that of the log partition at the last
    record, which is of ``last_ms``. ``is_certain`` is False where the log does not tell when a coordinator loaded the
    group: then a delay may have begun at any time.
    """

    ends: list[DelayEnd] = field(default_factory=lambda: [NO_DELAY])
    departure_epoch: int | None = None
    running: list[str] = field(default_factory=list)
    leader_epoch: int | None = None
    last_ms: int = 0
    is_certain: bool = True

    def follow(self, group: ConnectGroup | None, record: AnyRecord, leader_epoch: int | None) -> None:
        """Take a record in; ``group`` is the group after it, None where the record ended it."""
        time_ms = record.at.timestamp_ms
        if leader_epoch is not None and self.leader_epoch not in (None, leader_epoch):
            delay_ms = max_delay_ms(group or ConnectGroup())
            # When the new coordinator loaded the group is not in the log: it was between the last record of the one
            # before and its own first one.
            self.ends = [NO_DELAY, DelayEnd(self.last_ms + delay_ms, time_ms + delay_ms)]
        self.leader_epoch, self.last_ms, self.is_certain = leader_epoch, time_ms, leader_epoch is not None
        if group is None:
            self.ends, self.departure_epoch = [NO_DELAY], None
            self.running.clear()
        elif record.type == ConnectRecordType.CURRENT_MEMBER_ASSIGNMENT:
            self._follow_current(group, record)

    def note_gap(self, group: ConnectGroup | None, time_ms: int) -> None:
        """Note that records may be missing before this time: a delay may have begun at any of them."""
        self.ends = [NO_DELAY, DelayEnd(0, time_ms + max_delay_ms(group or ConnectGroup()))]

    def may_wait(self, time_ms: int) -> bool:
        """Return whether work may wait for a worker at this time."""
        return not self.is_certain or any(time_ms <= end.latest_ms for end in self.ends)

    def _follow_current(self, group: ConnectGroup, record: AnyRecord) -> None:
        member_id, was_running = record.key["memberId"], False
        if member_id in self.running:
            self.running.remove(member_id)
            was_running = True
        if record.value is not None:
            current = group.members[member_id].current
            if current is not None and (current.work.connectors or current.work.tasks):
                self.running.append(member_id)
            return
        self.departure_epoch = (group.group_epoch or 0) + 1
        time_ms, delay_ms = record.at.timestamp_ms, max_delay_ms(group)
        # Only a worker that ran something leaves work that could wait for it.
        if was_running and delay_ms:
            going_on = [end for end in self.ends if time_ms <= end.latest_ms]
            # Where the last delay may be over, this departure begins the next one; while it surely runs, none begins.
            if any(end.earliest_ms <= time_ms for end in self.ends):
                going_on.append(DelayEnd(time_ms + delay_ms, time_ms + delay_ms))
            self.ends = list(dict.fromkeys(going_on))


@dataclass(slots=True)
class ConfiguredWork:
    """The work of a group by the epoch from which it had to run it. Give it every record of the group in log order.

    Work on which neither the present target nor a later one can rest is dropped. The group's own state has the newest
    work alone: a coordinator that loads a compacted log does not know any other.
    """

    by_epoch: dict[int, Work] = field(default_factory=dict)

    def follow(self, group: ConnectGroup | None, record: AnyRecord) -> None:
        """Take a record in; ``group`` is the group after it, None where the record ended it."""
        if group is None or group.work_epoch is None:
            self.by_epoch.clear()
        elif record.type == ConnectRecordType.CONNECTORS_TASKS_METADATA:
            self.by_epoch[group.work_epoch] = group.work
        elif record.type == ConnectRecordType.TARGET_ASSIGNMENT and group.assignment_epoch is not None:
            since = self._since(group.assignment_epoch)
            if since is not None:
                self.by_epoch = {epoch: work for epoch, work in self.by_epoch.items() if epoch >= since}

    def at(self, epoch: int) -> Work | None:
        """Return what the group had to run in the epoch of the present target or a later one; None: not seen."""
        since = self._since(epoch)
        return None if since is None else self.by_epoch[since]

    def _since(self, epoch: int) -> int | None:
        return max((known for known in self.by_epoch if known <= epoch), default=None)
