"""When no broker coordinated the groups of a log partition, as the metadata log says.

The leader of a partition of ``__consumer_offsets`` coordinates its groups. It is away while the partition has no
leader, or while its leader is fenced or unregistered: clients are not sent to it. A broker that fails is fenced once
its session has expired, and where another one takes over then, that is the moment until which it was away: the log does
not say since when.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import NamedTuple

from coordinator_core.cluster.broker_history import COORDINATED, NO_LEADER, BrokerHistory
from coordinator_core.records import LogPosition

FOUND_AGAIN_MS = 60_000
"""How long after a coordinator is back a rebalance may still be a consequence: clients find it again, or join again."""


class CoordinatorAway(NamedTuple):
    """A time over which a partition of a coordinator's log had no coordinator.

    ``since`` and ``until`` are records of the metadata log; ``until`` is None while it lasts, as far as that log shows.
    ``broker`` is the one that had led the partition. ``is_planned``: whether it announced that it shuts down; None: its
    records do not say so. ``fenced`` is where it was fenced: one that shuts down gives its partitions up before.
    ``led`` is the leader epoch up to which records were written before; None: leader epochs do not tell.
    """

    topic: str
    partition: int
    broker: int
    since: LogPosition
    until: LogPosition | None
    is_planned: bool | None
    fenced: LogPosition | None = None
    led: int | None = None

    @property
    def is_seen(self) -> bool:
        """Whether a watch asked the brokers: the times are then when it did, and there are no records."""
        return self.since.offset < 0

    @property
    def is_taken_over(self) -> bool:
        """Whether another broker took over as soon as this one was fenced, which had failed: ``since`` is then."""
        return self.since == self.until

    @property
    def until_ms(self) -> int | None:
        """When it ended (ms); None while it lasts."""
        return None if self.until is None else self.until.timestamp_ms

    def overlaps(self, first_ms: int, last_ms: int, last_epoch: int | None = None) -> bool:
        """Whether some of it lies between two times, both included; ``last_epoch``: the leader epoch of a record of the
        last time, which tells what the clocks of two brokers may not.
        """
        has_begun = self.since.timestamp_ms <= last_ms
        if self.led is not None and last_epoch is not None and last_epoch >= 0:
            has_begun = self.led < last_epoch
        return has_begun and (self.until is None or self.until.timestamp_ms >= first_ms)

    def was_over(self, time_ms: int, leader_epoch: int | None) -> bool:
        """Whether it had ended when a record of this time and leader epoch was written."""
        if self.led is not None and leader_epoch is not None and leader_epoch >= 0:
            return self.led < leader_epoch
        return self.until is not None and self.until.timestamp_ms < time_ms


AwayByPartition = Mapping[tuple[str, int], tuple[CoordinatorAway, ...]]
"""By the topic and the partition of a coordinator's log, in the order of time."""

NEVER_AWAY: AwayByPartition = MappingProxyType({})


def coordinators_away(brokers: BrokerHistory) -> AwayByPartition:
    """Return when the partitions of the logs of coordinators had no coordinator that had one before."""
    away = {
        (topic, partition): tuple(_away(brokers, topic, partition))
        for topic in sorted(COORDINATED)
        for partition in brokers.partitions(topic)
    }
    return {place: times for place, times in away.items() if times}


def times_away(brokers: BrokerHistory, topic: str, partition: int) -> tuple[CoordinatorAway, ...]:
    """Return when one partition had no coordinator, as far as the history of brokers goes by now."""
    led = brokers.leaders(topic, partition)
    return _times(brokers, topic, partition, led[-1].at, brokers.last_change) if led else ()


@lru_cache(maxsize=1024)
def _times(
    brokers: BrokerHistory, topic: str, partition: int, led: LogPosition, changed: LogPosition | None
) -> tuple[CoordinatorAway, ...]:
    """What ``brokers`` tell changes with who leads and who is there: ``led`` and ``changed`` are the last changes."""
    return tuple(_away(brokers, topic, partition))


class _Change(NamedTuple):
    """A partition gets a leader (``leader``) with its leader epoch, or a broker comes or goes."""

    offset: int
    at: LogPosition
    broker: int
    is_there: bool | None
    epoch: int | None = None


def _away(brokers: BrokerHistory, topic: str, partition: int) -> Iterator[CoordinatorAway]:
    """Walk through what is written about the leader, all records of one batch at once: they take effect together."""
    terms = brokers.leaders(topic, partition)
    led = [_Change(term.at.offset, term.at, term.leader, None, term.epoch) for term in terms]
    there: dict[int, bool] = defaultdict(lambda: True)
    (leader, epoch), (last, served), gone = (NO_LEADER, None), (NO_LEADER, None), None
    changes = sorted([*led, *_presence(brokers)], key=itemgetter(0))
    for _, at_once in groupby(changes, key=lambda change: change.at.timestamp_ms):
        for change in at_once:
            if change.is_there is None:
                leader, epoch = change.broker, change.epoch
            else:
                there[change.broker] = change.is_there
        is_served = leader != NO_LEADER and there[leader]
        written_to: int | None = None if epoch == served else served
        if is_served and gone is not None:
            yield gone._replace(until=change.at, led=written_to)
            gone = None
        elif is_served and last not in (NO_LEADER, leader):
            left = _gone(brokers, topic, partition, last, change.at)
            # One that is shut down gives its partitions up before it is fenced, and tells its clients.
            if not left.is_planned and left.fenced is not None and left.fenced.timestamp_ms == change.at.timestamp_ms:
                yield left._replace(until=change.at, led=written_to)
        if is_served:
            last, served = leader, epoch
        # A partition that never had a leader is not away: nobody was served by it yet.
        elif gone is None and last != NO_LEADER:
            gone = _gone(brokers, topic, partition, last, change.at)
    if gone is not None:
        yield gone._replace(led=None if epoch == served else served)


def _gone(brokers: BrokerHistory, topic: str, partition: int, broker: int, at: LogPosition) -> CoordinatorAway:
    """Return the time that begins as a broker leads a partition no more, with its absence, that begins with the same
    write or soon after.
    """
    absence = next(
        (
            each
            for each in brokers.absences()
            if each.broker == broker and each.since is not None
            if each.since.offset >= at.offset or each.since.timestamp_ms == at.timestamp_ms
        ),
        None,
    )
    gone = CoordinatorAway(topic, partition, broker, at, None, None)
    if absence is None:
        return gone
    return gone._replace(is_planned=absence.is_planned, fenced=absence.since if absence.is_fenced else None)


def _presence(brokers: BrokerHistory) -> Iterator[_Change]:
    for absence in brokers.absences():
        if absence.since is not None:
            yield _Change(absence.since.offset, absence.since, absence.broker, is_there=False)
        if absence.until is not None:
            yield _Change(absence.until.offset, absence.until, absence.broker, is_there=True)
