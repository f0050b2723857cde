"""What groups with epochs (consumer, share, streams) have in common in their coordinator's memory."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from coordinator_core.groups.epochs import INITIAL_EPOCH, NO_PREVIOUS_EPOCH, EpochGroup, EpochMember
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.records import AnyRecord, Fields

METADATA_REFRESH_INTERVAL_MS = 2**31 - 1
"""Topics are checked again after this time even if nothing requests it: in effect never."""


def heartbeat_response(member_id: str, epoch: int, **fields: object) -> Fields:
    """Return the response to a heartbeat of a group with epochs; ``fields`` are added to member and epoch."""
    return {
        "throttleTimeMs": 0,
        "errorCode": 0,
        "errorMessage": None,
        "memberId": member_id,
        "memberEpoch": epoch,
        "heartbeatIntervalMs": 0,
        **fields,
    }


MemberT = TypeVar("MemberT", bound=EpochMember)


def empty_member(member_type: type[MemberT], member_id: str, state: int, **fields: object) -> MemberT:
    """Return a member before anything is known about it, in the state of members that have nothing to do."""
    known: dict[str, Any] = {"client_id": "", "client_host": "", "member_epoch": 0, **fields}
    return member_type(member_id, state=state, previous_member_epoch=NO_PREVIOUS_EPOCH, **known)


StateT = TypeVar("StateT", bound=EpochGroup[Any, Any])


@dataclass(slots=True)
class LiveEpochGroup(Generic[StateT]):
    """A group with epochs; a new one, which no record has made yet, is empty.

    ``refresh_at_ms`` and ``refresh_epoch`` (soft state) say when topics are checked again without a request.
    """

    type: ClassVar[GroupType]

    group_id: str
    log: StateT
    refresh_at_ms: int = 0
    refresh_epoch: int = 0

    @property
    def group_epoch(self) -> int:
        """The group epoch."""
        return INITIAL_EPOCH if self.log.group_epoch is None else self.log.group_epoch

    @property
    def assignment_epoch(self) -> int:
        """The epoch of the target assignment."""
        return INITIAL_EPOCH if self.log.assignment_epoch is None else self.log.assignment_epoch

    @property
    def metadata_hash(self) -> int:
        """The hash of the group's topics as of the group epoch."""
        return self.log.metadata_hash or 0

    @property
    def timer_keys(self) -> Collection[str]:
        """The keys of timers that end with the group: none."""
        return ()

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self.log.members

    def _apply(self, record: AnyRecord, log: CoordinatorShard) -> None:
        """Apply a record to the log state; ``log`` holds the new state of a group that the record makes."""
        log.apply(record)
        state = log.groups[self.group_id].state
        if isinstance(state, type(self.log)):
            self.log = state

    def metadata_expired(self, now: int) -> bool:
        """Whether the group's topics have to be checked again."""
        return now >= self.refresh_at_ms or self.group_epoch < self.refresh_epoch

    def metadata_seen(self, now: int, epoch: int) -> None:
        """Note that the topics were checked; if the operation that bumps the group to this epoch fails, they are
        checked again.
        """
        self.refresh_at_ms, self.refresh_epoch = now + METADATA_REFRESH_INTERVAL_MS, epoch

    def request_metadata_refresh(self) -> None:
        """Note that a topic of the group changed: the next heartbeat checks the topics."""
        self.refresh_at_ms = self.refresh_epoch = 0

    def may_compute_target(self, now: int, interval_ms: int) -> bool:
        """Whether the last target is old enough for the next one; there is no timer for it."""
        last = self.log.assignment_timestamp or 0
        return last == 0 or interval_ms == 0 or now >= last + interval_ms
