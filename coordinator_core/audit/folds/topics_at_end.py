"""What is known of the topics at the end of the logs, and how many partitions they had before."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from coordinator_core.cluster.broker_history import FeatureLevel
from coordinator_core.cluster.coordinators_away import NEVER_AWAY, AwayByPartition, coordinators_away
from coordinator_core.cluster.given_topics import NO_REACH, TopicReach
from coordinator_core.cluster.snapshot_settings import NO_SNAPSHOTS, Levels, SnapshotSettings
from coordinator_core.cluster.topic_history import GroupSettings, TopicHistory

EarlierCounts = Mapping[str, tuple[tuple[int, int], ...]]
"""By topic the times (ms) at which its number of partitions changed, the first one first, each with the number before;
0: there was no such topic.
"""


class CountedLife(NamedTuple):
    """A topic over a time (ms) in which it had so many partitions; ``until_ms`` is None while it lasts."""

    topic: str
    since_ms: int
    until_ms: int | None
    partitions: int


def earlier_counts(lives: Iterable[CountedLife]) -> EarlierCounts:
    """Return what the lives show of earlier counts; those of one topic follow each other in their order.

    Topics that are there at the first time of all count as older: a snapshot does not tell when they began.
    """
    counts: dict[str, dict[int, int]] = defaultdict(dict)
    for topic, since_ms, until_ms, partitions in lives:
        counts[topic][since_ms] = partitions
        if until_ms is not None:
            # Where another life begins at that time, it takes the place of the 0.
            counts[topic][until_ms] = 0
    first_ms = min((time_ms for of_topic in counts.values() for time_ms in of_topic), default=0)
    earlier = {}
    for topic, of_topic in counts.items():
        steps = pairwise([(first_ms, 0), *of_topic.items()])
        changes = [(at_ms, before) for (_, before), (at_ms, now) in steps if before != now and at_ms > first_ms]
        if changes:
            earlier[topic] = tuple(changes)
    return earlier


class TopicsAtEnd(NamedTuple):
    """What is known of the topics at the end of the logs: the number of partitions by topic name, empty where no topics
    are known. ``reach``: over which times each change of them is known. ``away``: when log partitions had no
    coordinator. ``features``: the levels of features that the cluster works with, by name.
    ``seen_ms``: when a watch asked last who leads these partitions; -1: the metadata log tells it.
    ``settings``: what is set for each group itself; ``snapshots``: what snapshots show of the brokers' settings.
    ``earlier``: the numbers of partitions before.
    ``levels``: the bounds of ``metadata.version`` among the brokers; None: not known.
    ``led_again``: that of ``BrokerHistory``.
    """

    partitions: Mapping[str, int] = MappingProxyType({})
    reach: TopicReach = NO_REACH
    away: AwayByPartition = NEVER_AWAY
    features: Mapping[str, FeatureLevel] = MappingProxyType({})
    seen_ms: int = -1
    settings: Mapping[str, GroupSettings] = MappingProxyType({})
    snapshots: SnapshotSettings = NO_SNAPSHOTS
    earlier: EarlierCounts = MappingProxyType({})
    levels: Levels | None = None
    led_again: Mapping[tuple[str, int], int | None] = MappingProxyType({})

    @classmethod
    def of(cls, topics: TopicHistory | None, reach: TopicReach | None = None) -> "TopicsAtEnd":
        """Return what a history of topics shows; ``reach``: over which times, where it has only some of the records."""
        if topics is None:
            return cls()
        brokers, known = topics.brokers, topics.reach if reach is None else reach
        at_end = cls(
            reach=known,
            away=coordinators_away(brokers),
            features=brokers.features(from_start=known.from_start),
            settings=topics.settings_of_groups(),
            snapshots=topics.snapshots,
            levels=topics.broker_levels(None),
            led_again=brokers.led_again,
        )
        return at_end.counted(
            CountedLife(
                row.topic, row.since.timestamp_ms, None if row.until is None else row.until.timestamp_ms, row.partitions
            )
            for row in topics.intervals()
        )

    def counted(self, lives: Iterable[CountedLife]) -> "TopicsAtEnd":
        """Return the same with the numbers of partitions that these lives show, in the order of ``earlier_counts``."""
        lives = list(lives)
        partitions = {life.topic: life.partitions for life in lives if life.until_ms is None}
        return self._replace(partitions=partitions, earlier=earlier_counts(lives))

    def began_within(self, topic: str, first_ms: int, last_ms: int, *, again: bool) -> bool:
        """Return whether a topic was created, or made again, between two times, as far as that is known.

        ``again``: without the one before which the topic was never there.
        """
        changes = self.earlier.get(topic, ())
        begins = (at_ms for number, (at_ms, before) in enumerate(changes) if before == 0 and (number or not again))
        return any(first_ms <= at_ms <= last_ms for at_ms in begins)

    def fewest_partitions(self, topic: str, has_lasted: Callable[[int, int], bool], within_ms: int) -> int:
        """Return the lowest number of partitions that a topic had in so much time before the end of the logs.

        ``has_lasted``: whether so much time has passed since a time until then. 0: it was not there at some time.
        """
        # The last count has no end; each count begins where the one before ended.
        counts = [*self.earlier.get(topic, ()), (None, self.partitions.get(topic, 0))]
        begins = [None, *(until_ms for until_ms, _ in counts)]
        return min(
            (
                count
                for since_ms, (until_ms, count) in zip(begins, counts, strict=False)
                if (since_ms is None or has_lasted(since_ms, 0))
                and (until_ms is None or not has_lasted(until_ms, within_ms))
            ),
            default=0,
        )


NO_TOPICS = TopicsAtEnd()
