"""What the target audit of a group keeps between two records, apart from the group's state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from coordinator_core.audit.targets.classic_connect import ConnectTargetState
from coordinator_core.audit.targets.connect_inputs import WorkerTargetState
from coordinator_core.audit.targets.group_view import GroupView
from coordinator_core.audit.targets.leader_views import LeaderMemory
from coordinator_core.audit.targets.stored_forms import STORED_RECORDS, STORED_VIEW
from coordinator_core.groups.record_types import RecordTypes
from coordinator_core.records import AnyRecord

DEFAULT_JDK = 17


@dataclass(slots=True)
class TargetAuditState:
    """What the audit keeps between two records.

    ``view`` has the orders of the maps of a group with epochs (None: the group has no epochs); ``pending`` are the
    records of the last operation (time and batch) that ``view`` does not contain yet. ``born``: the log has shown every
    record of the group since this offset; None: the group may have begun earlier. ``fitted`` is the offset of the last
    target with verdict ``identical``. ``leader_epoch`` is the leader epoch of the log partition, where known.
    ``connect`` is for Connect groups with the classic protocol, ``workers`` for those on KIP-848.
    """

    operation: tuple[int, int] = (-1, -1)
    pending: Annotated[list[AnyRecord], STORED_RECORDS] = field(default_factory=list)
    view: Annotated[GroupView, STORED_VIEW] | None = None
    born: int | None = None
    fitted: int | None = None
    leader_epoch: int | None = None
    classic: LeaderMemory = field(default_factory=LeaderMemory)
    connect: ConnectTargetState = field(default_factory=ConnectTargetState)
    workers: WorkerTargetState = field(default_factory=WorkerTargetState)

    def view_of(self, kind: RecordTypes, jdk: int | None) -> GroupView:
        """Return the view of the group as a group of this type."""
        if self.view is None or self.view.kind is not kind:
            self.view = GroupView.of(kind, jdk or DEFAULT_JDK)
        return self.view

    def note_leader(self, leader_epoch: int | None, offset: int) -> None:
        """Take in the leader epoch of an operation: with a new one, a coordinator has loaded the partition before
        it.
        """
        if leader_epoch is None:
            return
        if self.view is not None and self.leader_epoch is not None and leader_epoch > self.leader_epoch:
            self.view.orders.new_leader(leader_epoch, offset)
        self.leader_epoch = leader_epoch
