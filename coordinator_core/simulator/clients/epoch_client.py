"""What the clients of protocols with epochs (KIP-848, KIP-932, KIP-1071) share: ids, epochs and reconciliation."""

from abc import abstractmethod
from typing import ClassVar

from coordinator_core.coordinator.epoch_group import LiveEpochGroup
from coordinator_core.coordinator.member_timers import session_key
from coordinator_core.coordinator.protocol import ErrorCode
from coordinator_core.groups.epochs import LEAVE_GROUP_MEMBER_EPOCH, LEAVE_GROUP_STATIC_MEMBER_EPOCH
from coordinator_core.records import Fields
from coordinator_core.simulator.clients.client import Client
from coordinator_core.simulator.ground_truth import TrueCause
from coordinator_core.wire.primitives import uuid_text


class EpochClient(Client):
    """A client whose whole membership uses one API, ``heartbeat_api``; ``_news`` goes into the next heartbeat."""

    heartbeat_api: ClassVar[str]
    heartbeat_version: ClassVar[int] = 0
    _news: Fields

    def reset(self) -> None:
        """Choose a new member id, as a new process does."""
        self.member_id = uuid_text(self.chance.uuid().bytes)
        self.abandon()

    @abstractmethod
    def abandon(self) -> None:
        """Return to epoch 0 and drop all work."""

    def identity(self, epoch: int) -> Fields:
        """Return the fields of every heartbeat: group, member and epoch; of a static member also its instance."""
        fields = {"groupId": self.group_id, "memberId": self.member_id, "memberEpoch": epoch}
        return fields if self.setup.instance_id is None else fields | {"instanceId": self.setup.instance_id}

    def tell(self, epoch: int, news: Fields, why: tuple[TrueCause, ...] = ()) -> None:
        """Send a heartbeat at this epoch with this news; ``why`` has the causes of an epoch that it opens."""
        self.shard.send(self, self.heartbeat_api, self.heartbeat_version, self.identity(epoch) | news, why)

    def beat(self) -> None:
        """Send a heartbeat with what changed since the last one."""
        self.tell(self.epoch, self._news, self.subscription_changed())

    def say_goodbye(self) -> None:
        """Leave the group; a static member tells that it may return."""
        self.tell(LEAVE_GROUP_MEMBER_EPOCH if self.setup.instance_id is None else LEAVE_GROUP_STATIC_MEMBER_EPOCH, {})

    def subscription_changed(self) -> tuple[TrueCause, ...]:
        """Return what this heartbeat changes beside the membership: the topics by name."""
        names, live = self._news.get("subscribedTopicNames"), self.shard.memory.live.get(self.group_id)
        known = live.log.members.get(self.member_id) if isinstance(live, LiveEpochGroup) else None
        if self.epoch == 0 or names is None or known is None:
            return ()
        changed = set(names) ^ set(known.subscribed_topic_names)
        return (TrueCause("subscription_changed", self.member_id, tuple(sorted(changed))),) if changed else ()

    def refused(self, api: str, error: ErrorCode) -> None:
        """Join again without work if fenced; stop if not accepted."""
        if api != self.heartbeat_api or not self.running:
            return
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH) and self.epoch > 0:
            self.commit(())
            self.abandon()
            self.soon(self.chance.between(50, 500), self.join)
        else:
            self._stop()

    def session_key(self) -> str:
        """Return the key of the member's session timer."""
        return session_key(self.group_id, self.member_id)


class ReconcilingClient(EpochClient):
    """A client that first gives up the work it is asked for, within a while, and then takes its new work."""

    def abandon(self) -> None:
        """Return to epoch 0, with nothing to give up and nothing to report."""
        self.epoch = 0
        self._revoking = False
        self._news = {}

    def reconcile(self, *, asked_back: bool, changed: bool) -> None:
        """After a response: give up ``asked_back`` first, and take over what is ``changed`` after that."""
        if self._revoking:
            self.beat_in(self.script.heartbeat)
        elif asked_back:
            self._revoking = True
            self.soon(self.chance.between(1, self.setup.revocation_ms), self._revoked)
            self.beat_in(self.script.heartbeat)
        elif changed:
            self.take_over()
        else:
            self.rest()

    def _revoked(self) -> None:
        """What was asked back is given up; what is new is taken."""
        if self._revoking:
            self._revoking = False
            self.take_over()

    @abstractmethod
    def take_over(self) -> None:
        """Own the assigned work from now on, and report that."""
