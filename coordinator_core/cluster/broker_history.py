"""Brokers through time: when they registered, when they were away, and which of them led the logs of coordinators.

A broker is away while it is fenced or unregistered: other brokers do not name it to clients (KIP-631).
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from coordinator_core.cluster.snapshot_settings import METADATA_VERSION, Levels
from coordinator_core.cluster.versioned_map import VersionedMap
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


class FeatureLevel(NamedTuple):
    """The level of a feature that the cluster works with (KIP-584), 0: off; and the record that says so.

    ``was_on``: it was higher before. Where no record sets a level, it is 0 since the first broker registered that
    supports the feature (``is_set`` is False).
    """

    level: int
    at: LogPosition
    was_on: bool = False
    is_set: bool = True


SET_ELSEWHERE: Final = "kraft.version"
"""The feature whose level is in a control record of the metadata log, which this history is not made of (KIP-853)."""

NO_LEADER: Final = -1
"""The leader of a partition that no broker leads."""


class BrokerAbsence(NamedTuple):
    """A time over which a broker was away that had been there before.

    ``since``: None where it was before the log begins. ``until``: None while it lasts, as far as the log shows.
    ``shutdown`` is where the broker announced that it shuts down (``inControlledShutdown``). ``is_planned``: whether it
    did; None: its records do not say so (before Kafka 3.3), or the log does not show its registration. ``is_fenced``:
    a record says that it went; False: there was no controller to write it.
    """

    broker: int
    since: LogPosition | None
    until: LogPosition | None
    shutdown: LogPosition | None
    is_planned: bool | None
    is_fenced: bool = True


class BrokerChange(NamedTuple):
    """A broker went, or came (``is_there``): back, or for the first time."""

    at: LogPosition
    broker: int
    is_there: bool


class Leadership(NamedTuple):
    """A partition of a coordinator's log has this leader from ``at`` on; ``NO_LEADER``: none.

    ``epoch`` is the leader epoch; None: the log does not show the partition's beginning.
    """

    at: LogPosition
    topic: str
    partition: int
    leader: int
    epoch: int | None


@dataclass(slots=True)
class _Life:
    """What is known of a broker now.

    ``is_there``: None: not known. ``tells_shutdown``: whether its records would say that it shuts down; None: not
    known. ``absence`` is the number of the one that lasts.
    """

    is_there: bool | None = None
    shutdown: LogPosition | None = None
    tells_shutdown: bool | None = None
    absence: int | None = None


class BrokerHistory:
    """What the metadata log shows of brokers, in its order."""

    def __init__(self) -> None:
        self._registrations: list[Registration] = []
        self._restarts: list[Registration] = []
        self._unregistrations: list[Registration] = []
        self._registered: set[int] = set()
        self._lives: dict[int, _Life] = {}
        self._there: VersionedMap[int, bool] = VersionedMap()
        self._absences: list[BrokerAbsence] = []
        self._changes: list[BrokerChange] = []
        self._leaders: dict[tuple[str, int], list[Leadership]] = {}
        self.led_again: dict[tuple[str, int], int | None] = {}
        """Since when (ms) a partition of any topic has a leader that had none; None: it has none."""
        self._levels: dict[str, list[tuple[LogPosition, int]]] = {}
        self._supported: dict[str, LogPosition] = {}
        self.has_unseen_ends = False
        """Whether a broker, or a controller in its process, started again while it was there, as far as records say."""

    # --- filling -----------------------------------------------------------------------------------------------------

    def note_registration(
        self,
        broker: int,
        at: LogPosition,
        metadata_version: int | None = None,
        *,
        fenced: bool = False,
        tells_shutdown: bool = False,
    ) -> None:
        """Note that a broker registered; that alone does not make a version of the topics.

        It is ``fenced`` until it has caught up. ``tells_shutdown``: its records say when it shuts down.
        """
        start = Registration(at, broker, metadata_version)
        self._registrations.append(start)
        self.has_unseen_ends |= self._is_there(broker)
        if broker in self._registered:
            self._restarts.append(start)
        self._registered.add(broker)
        life = self._lives.setdefault(broker, _Life())
        if life.is_there is None:
            life.is_there = not fenced
            self._there.put(broker, life.is_there, at.offset)
        # Before the announcement of a shutdown is forgotten: an absence that begins here may be the announced one.
        self.note_fenced(broker, at, fenced=fenced)
        life.shutdown, life.tells_shutdown = None, tells_shutdown

    def note_controller(self, node: int) -> None:
        """Note that a controller registered; it may be in the process of the broker of that id."""
        self.has_unseen_ends |= self._is_there(node)

    def note_lost(self, broker: int, at: LogPosition) -> None:
        """Note that a broker had gone by that place, if it was there: nobody was there to fence it."""
        life = self._lives.get(broker)
        if life is not None and self._is_there(broker) and life.shutdown is None:
            self.note_fenced(broker, at, fenced=True)
            self._absences[-1] = self._absences[-1]._replace(is_fenced=False)

    def _is_there(self, broker: int) -> bool:
        return broker in self._registered and self._lives[broker].is_there is True

    def note_unregistration(self, broker: int, at: LogPosition) -> None:
        """Note that a broker was unregistered."""
        self._unregistrations.append(Registration(at, broker))
        self.note_fenced(broker, at, fenced=True)

    def note_shutdown(self, broker: int, at: LogPosition) -> None:
        """Note that a broker announced that it shuts down."""
        self._lives.setdefault(broker, _Life()).shutdown = at

    def note_fenced(self, broker: int, at: LogPosition, *, fenced: bool) -> None:
        """Note that a broker is fenced from here on, or is not any more."""
        life = self._lives.setdefault(broker, _Life())
        was_there, life.is_there = life.is_there, not fenced
        # Records repeat it: a registration says it, too. An absence begins and ends with a change only.
        if was_there is life.is_there:
            return
        if was_there is None:  # the log does not show its registration: it was the other thing before
            self._there.put(broker, fenced, -1)
        self._there.put(broker, life.is_there, at.offset)
        self._changes.append(BrokerChange(at, broker, life.is_there))
        if fenced:
            life.absence = len(self._absences)
            is_planned = True if life.shutdown is not None else False if life.tells_shutdown else None
            self._absences.append(BrokerAbsence(broker, at, None, life.shutdown, is_planned))
        elif life.absence is not None:
            self._absences[life.absence] = self._absences[life.absence]._replace(until=at)
            life.absence = None
        elif was_there is None:
            self._absences.append(BrokerAbsence(broker, None, at, None, None))

    def note_level(self, feature: str, level: int, at: LogPosition) -> None:
        """Note the level of a feature that the cluster works with from here on (KIP-584)."""
        self._levels.setdefault(feature, []).append((at, level))

    def note_support(self, features: Iterable[str], at: LogPosition) -> None:
        """Note the features of which a broker that registers supports a level above 0."""
        for feature in features:
            if feature == SET_ELSEWHERE:
                continue
            self._supported.setdefault(feature, at)

    def note_leader(self, topic: str, partition: int, leader: int, epoch: int | None, at: LogPosition) -> None:
        """Note the leader of a partition; outside of the logs of coordinators only since when one has a leader again.

        ``epoch``: None where a record changes the leader and the epoch is the next one.
        """
        place = topic, partition
        if leader == NO_LEADER or self.led_again.get(place, 0) is None:
            self.led_again[place] = None if leader == NO_LEADER else at.timestamp_ms
        if topic not in COORDINATED:
            return
        led = self._leaders.setdefault(place, [])
        if epoch is None and led and led[-1].epoch is not None:
            epoch = led[-1].epoch + 1
        led.append(Leadership(at, topic, partition, leader, epoch))

    # --- asking ------------------------------------------------------------------------------------------------------

    def registrations(self, after_ms: int, upto_ms: int) -> list[Registration]:
        """Return the brokers that registered in ``(after_ms, upto_ms]``, in order."""
        return _within(self._registrations, after_ms, upto_ms)

    def restarts(self, after_ms: int, upto_ms: int, *, complete: bool) -> list[Registration]:
        """Return the brokers that registered again in ``(after_ms, upto_ms]``: they had been down before.

        Where the history is not ``complete`` from the beginning of the cluster on, each registration counts as one.
        """
        return _within(self._restarts if complete else self._registrations, after_ms, upto_ms)

    def leaders(self, topic: str, partition: int) -> list[Leadership]:
        """Return who led a partition of a coordinator's log, in order; the same leader may have a new epoch."""
        return self._leaders.get((topic, partition), [])

    def leader_at(self, topic: str, partition: int, time_ms: int | None, upto_ms: int | None = None) -> int | None:
        """Return who led a partition of a coordinator's log at a time (None: at the end); ``NO_LEADER``: no broker.

        None: not known, or another one led it by ``upto_ms``, up to which the time may be.
        """
        led = self.leaders(topic, partition)
        last, latest = (
            len(led) if until is None else bisect_right(led, until, key=lambda each: each.at.timestamp_ms)
            for until in (time_ms, time_ms if upto_ms is None else upto_ms)
        )
        # Who led at the earlier time, and all up to the later one: of several it is not known which one led.
        possible = {each.leader for each in led[max(last - 1, 0) : latest]}
        return possible.pop() if last and len(possible) == 1 else None

    def partitions(self, topic: str) -> list[int]:
        """Return the partitions of a coordinator's log whose leaders are known."""
        return sorted(partition for name, partition in self._leaders if name == topic)

    def absences(self) -> list[BrokerAbsence]:
        """Return the times over which brokers were away, in the order in which they began, as far as the log shows."""
        return self._absences

    @property
    def last_change(self) -> LogPosition | None:
        """Where a broker last came or went; None: nowhere."""
        return self._changes[-1].at if self._changes else None

    def changes(self, after_ms: int, upto_ms: int) -> list[BrokerChange]:
        """Return the brokers that went or came in ``(after_ms, upto_ms]``, in order."""
        return [change for change in self._changes if after_ms < change.at.timestamp_ms <= upto_ms]

    def away_at(self, offset: int) -> frozenset[int]:
        """Return the brokers that are away once the record at an offset of the metadata log was applied.

        A broker of which nothing is known is not among them.
        """
        return frozenset(broker for broker in self._there if self._there.at(broker, offset) is False)

    def is_led_anew(self, topic: str, partition: int, after_ms: int, upto_ms: int) -> bool:
        """Whether a partition of a coordinator's log got another leader, or lost it, in ``(after_ms, upto_ms]``."""
        return any(
            before.leader != now.leader and after_ms < now.at.timestamp_ms <= upto_ms
            for before, now in pairwise(self.leaders(topic, partition))
        )

    def level_at(self, time_ms: int) -> int | None:
        """Return the level of the feature ``metadata.version`` that the cluster worked with at a time.

        None: not known.
        """
        before = [level for at, level in self._levels.get(METADATA_VERSION, ()) if at.timestamp_ms <= time_ms]
        return before[-1] if before else None

    def features(self, *, from_start: bool) -> dict[str, FeatureLevel]:
        """Return the levels of features at the end, by name.

        ``from_start``: the metadata log begins with the cluster, so that what brokers support and no record sets is 0.
        """
        supported = self._supported.items() if from_start else ()
        never_set = {feature: FeatureLevel(0, at, is_set=False) for feature, at in supported}
        is_set = {
            feature: FeatureLevel(levels[-1][1], levels[-1][0], any(level > 0 for _, level in levels[:-1]))
            for feature, levels in self._levels.items()
        }
        return dict(sorted((never_set | is_set).items()))

    def levels_at(self, time_ms: int | None) -> Levels | None:
        """Return the bounds of ``metadata_version`` among the brokers at a time (None: at the end); None: not known."""
        # A broker's newest registration counts, also while it is away: it comes back with that release, or registers
        # again.
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
