"""Brokers through time: when they registered, and when the logs of coordinators got another leader."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, NamedTuple

from coordinator_core.cluster.snapshot_settings import Levels
from coordinator_core.records import CONNECT_LOG, GROUP_LOG, LogPosition

COORDINATED: Final = frozenset((GROUP_LOG, CONNECT_LOG))
"""The topics whose leaders coordinate groups."""


class Registration(NamedTuple):
    """The registration of a broker that started.

    ``metadata_version`` is the highest level of the feature ``metadata.version`` that it supports, which identifies its
    release (21: 3.9); None: not known.
    """

    at: LogPosition
    broker: int
    metadata_version: int | None = None


class NewLeader(NamedTuple):
    """A partition of a coordinator's log has another leader, or none: the coordinator before is gone."""

    at: LogPosition
    topic: str
    partition: int


class BrokerHistory:
    """What the metadata log shows of brokers, in its order."""

    def __init__(self) -> None:
        self._registrations: list[Registration] = []
        self._registered: set[int] = set()
        self._restarts: list[Registration] = []
        self._unregistrations: list[Registration] = []
        self._new_leaders: list[NewLeader] = []

    def note_registration(self, broker: int, at: LogPosition, metadata_version: int | None = None) -> None:
        """Note that a broker registered; that alone does not make a version of the topics."""
        start = Registration(at, broker, metadata_version)
        self._registrations.append(start)
        if broker in self._registered:
            self._restarts.append(start)
        self._registered.add(broker)

    def note_unregistration(self, broker: int, at: LogPosition) -> None:
        """Note that a broker was unregistered."""
        self._unregistrations.append(Registration(at, broker))

    def note_leader(self, topic: str, partition: int, at: LogPosition) -> None:
        """Note that a partition has another leader, or none; only those of coordinators' logs are kept."""
        if topic in COORDINATED:
            self._new_leaders.append(NewLeader(at, topic, partition))

    def registrations(self, after_ms: int, upto_ms: int) -> list[Registration]:
        """Return the brokers that registered in ``(after_ms, upto_ms]``, in order."""
        return _within(self._registrations, after_ms, upto_ms)

    def restarts(self, after_ms: int, upto_ms: int, *, complete: bool) -> list[Registration]:
        """Return the brokers that registered again in ``(after_ms, upto_ms]``: they had been down before.

        Where the history is not ``complete`` from the beginning of the cluster on, each registration counts as one.
        """
        return _within(self._restarts if complete else self._registrations, after_ms, upto_ms)

    def is_led_anew(self, topic: str, partition: int, after_ms: int, upto_ms: int) -> bool:
        """Whether a partition of a coordinator's log got another leader, or lost it, in ``(after_ms, upto_ms]``."""
        return any(
            change[1:] == (topic, partition) and after_ms < change.at.timestamp_ms <= upto_ms
            for change in self._new_leaders
        )

    def levels_at(self, time_ms: int | None) -> Levels | None:
        """Return the bounds of ``metadata_version`` among the brokers at a time (None: at the end); None: not known."""
        last: dict[int, Registration] = {}
        for change in sorted([*self._registrations, *self._unregistrations], key=lambda change: change.at.offset):
            if time_ms is None or change.at.timestamp_ms <= time_ms:
                last[change.broker] = change
        levels = [change.metadata_version for change in last.values() if change.metadata_version is not None]
        return Levels(min(levels), max(levels)) if levels else None

    def metadata_versions(self) -> set[int]:
        """Return every ``metadata_version`` that a registration shows."""
        return {each.metadata_version for each in self._registrations if each.metadata_version is not None}


def _within(starts: list[Registration], after_ms: int, upto_ms: int) -> list[Registration]:
    """Return those in ``(after_ms, upto_ms]``."""
    first, end = (
        bisect_right(starts, time_ms, key=lambda start: start.at.timestamp_ms) for time_ms in (after_ms, upto_ms)
    )
    return starts[first:end]
