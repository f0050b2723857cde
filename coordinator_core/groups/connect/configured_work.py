"""What a Connect group had to run in earlier epochs: a target rests on the work of its epoch (Connect on KIP-848)."""

from __future__ import annotations

from dataclasses import dataclass, field

from coordinator_core.groups.connect.state import ConnectGroup, Work
from coordinator_core.records import AnyRecord, ConnectRecordType


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
