"""What the clients of protocols with epochs (KIP-848, KIP-932, KIP-1071) have in common: ids, epochs, reconciling."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from coordinator_core.coordinator.protocol import ErrorCode
from coordinator_core.coordinator.timer_keys import session_key
from coordinator_core.records import Fields
from coordinator_core.simulator.clients.client import Client
from coordinator_core.wire.primitives import uuid_text


class EpochClient(Client):
    """A client that has one API for all it says of its membership: ``heartbeat_api``."""

    heartbeat_api: ClassVar[str]

    def reset(self) -> None:
        """A new process makes up a new member id."""
        self.member_id = uuid_text(self.chance.uuid().bytes)
        self.abandon()

    @abstractmethod
    def abandon(self) -> None:
        """Back to epoch 0, with empty hands."""

    def identity(self, epoch: int) -> Fields:
        """Return what every heartbeat says: the group, the member and its epoch."""
        return {"groupId": self.group_id, "memberId": self.member_id, "memberEpoch": epoch}

    def refused(self, api: str, error: ErrorCode) -> None:
        """One that was fenced begins anew with empty hands; one that is not let in gives up."""
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
    """One that first gives up what is asked back, within a while, and then takes what it is to have."""

    def abandon(self) -> None:
        """Back to epoch 0, with nothing to give up and nothing to tell."""
        self.epoch = 0
        self._revoking = False
        self._news: Fields = {}

    def reconcile(self, *, asked_back: bool, changed: bool) -> None:
        """After an answer: ``asked_back`` is some of what it has, ``changed`` what it is to have."""
        if self._revoking:
            self.beat_in(self.script.heartbeat)
        elif asked_back:
            self._revoking = True
            self.soon(self.chance.between(1, self.wish.revocation_ms), self._revoked)
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
        """From now on it has what it is to have, and tells so."""
