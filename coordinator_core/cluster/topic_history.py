"""Topics through time: images of the topics, each with the position that proves it.

``metadata_log`` fills a history from the cluster's own log, ``topic_lists`` from lists of topics. A version is what one
metadata batch or one list made; between two versions nothing changed, as far as the source shows.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice, product
from typing import Final, NamedTuple

from coordinator_core.cluster.broker_history import BrokerHistory
from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS
from coordinator_core.cluster.given_topics import GivenTopics, TopicReach
from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.cluster.metadata_hash import group_hash, topic_hash
from coordinator_core.cluster.snapshot_settings import NO_SNAPSHOTS, Levels, ResourceKind, joined
from coordinator_core.cluster.topic_changes import HistoryGap, TopicChange, TopicInterval, change_kind, topic_interval
from coordinator_core.cluster.versioned_map import VersionedMap
from coordinator_core.records import LogPosition

CACHED_MATCHES = 4096
"""How many answers about hashes are kept."""
MOST_RACK_COMBINATIONS = 4096
"""How many combinations of old racks are tried against one hash at one version."""


class ImageVersion(NamedTuple):
    """The topics from ``at`` until the next version; ``version`` numbers the versions of one history from 0."""

    version: int
    at: LogPosition
    image: TopicImage


class GroupSettings(NamedTuple):
    """The configs of one group by name, and the last record of the batch that changed them last."""

    values: Mapping[str, str]
    at: LogPosition


TOPIC_RESOURCE: Final = 2
GROUP_RESOURCE: Final = 32
"""Types of resources in records of configurations, as in Kafka's ConfigResource."""


DEFAULT_ASSIGNOR: Final = "uniform"
"""The first of Kafka's own ``group.consumer.assignors``."""

ASSIGNORS_BY_CLASS: Final = {
    f"org.apache.kafka.coordinator.group.assignor.{name.capitalize()}Assignor": name for name in ("uniform", "range")
}
"""The names of Kafka's assignors of consumer groups by their classes, which settings may name instead."""


class TopicHistory:
    """All images of the topics that a source shows, and the dynamic configs.

    ``complete``: the first version is the beginning of the cluster or a whole snapshot, so that a topic that is not
    in it did not exist. Otherwise that is unknown. ``first_seen_ms`` is the time from which on the source shows
    changes (``from_start``: from the beginning of the cluster), ``last_seen_ms`` the time up to which it does; for
    later times the last known image is returned. ``gaps`` lists what the source does not contain. ``is_listed``:
    the source has lists of topics at some times. Since when a list holds is unknown: a hash may prove it for a time
    before. ``is_of_lines``: they are made of lines of brokers' logs. ``snapshots`` is what snapshots of the cluster
    show of settings and features. ``strange`` says why the source is of another cluster than the groups; its topics
    are then left out. ``is_of_groups``: it is of their cluster; False: it may be of one with topics of the same
    names.
    """

    def __init__(self, *, complete: bool = True, is_listed: bool = False) -> None:
        self.complete = complete
        self.is_listed = is_listed
        self.is_of_lines = False
        self.from_start = False
        self.first_seen_ms = 0
        self.last_seen_ms = -1
        self.snapshots = NO_SNAPSHOTS
        self.gaps: list[HistoryGap] = []
        self.strange: str | None = None
        self.is_of_groups = True
        self.positions: list[LogPosition] = []
        self._times: list[int] = []
        self._topics: VersionedMap[str, Topic] = VersionedMap()
        self._by_id: VersionedMap[str, Topic] = VersionedMap()
        self._names: dict[str, str] = {}
        self._racks: VersionedMap[int, str] = VersionedMap()
        self.brokers = BrokerHistory()
        self._configs: VersionedMap[tuple[int, str], Mapping[str, str]] = VersionedMap()
        self._only_racks: set[tuple[str, int]] = set()
        self._hashes: dict[tuple[str, int], int] = {}
        self._matches: dict[tuple[int, int, frozenset[str]], ImageVersion | None] = {}
        self._matching: dict[str, tuple[int, frozenset[str]]] = {}

    @classmethod
    def of_another_cluster(cls, said: str) -> "TopicHistory":
        """Return the history in place of one that is of another cluster: it knows nothing, and why."""
        history = cls(complete=False)
        history.strange = said
        return history

    # --- filling -----------------------------------------------------------------------------------------------------

    @property
    def _newest(self) -> int:
        return len(self.positions) - 1

    def open_version(self, at: LogPosition) -> int:
        """Begin a version proven by ``at``; everything put from now on holds from there."""
        self.positions.append(at)
        # Another controller's clock may be behind: times never fall, so that a binary search finds the version of a
        # time.
        self._times.append(max(at.timestamp_ms, self._times[-1]) if self._times else at.timestamp_ms)
        return self._newest

    def put_topic(self, topic: Topic) -> None:
        """Set a topic in the newest version, because a record about the topic said so."""
        known = self._topics.latest(topic.name)
        if known == topic:
            since = next(self._topics.past(topic.name, self._newest))[0]
            if (topic.name, since) not in self._only_racks:
                return
        if known is not None and known.id != topic.id:
            self._by_id.put(known.id, None, self._newest)
        self._put(topic)
        self._only_racks.discard((topic.name, self._newest))

    def put_racks(self, name: str, racks: tuple[tuple[str, ...], ...]) -> None:
        """Set a topic's racks in the newest version, because a broker's rack changed; no record was about the topic."""
        known = self._topics.latest(name)
        if known is not None and known.racks != racks:
            touched_now = next(self._topics.past(name, self._newest))[0] == self._newest
            self._put(replace(known, racks=racks))
            if not touched_now:
                self._only_racks.add((name, self._newest))

    def _put(self, topic: Topic) -> None:
        self._topics.put(topic.name, topic, self._newest)
        self._by_id.put(topic.id, topic, self._newest)
        self._names[topic.id] = topic.name

    def remove_topic(self, name: str) -> None:
        """Remove a topic from the newest version."""
        known = self._topics.latest(name)
        if known is not None:
            self._topics.put(name, None, self._newest)
            self._by_id.put(known.id, None, self._newest)

    def put_broker(self, broker: int, rack: str | None) -> None:
        """Set a broker's rack in the newest version; None for a broker that has no rack or was removed."""
        self._racks.put(broker, rack, self._newest)

    def put_config(self, resource_type: int, resource: str, name: str, value: str | None) -> None:
        """Set or, with None, unset a dynamic config in the newest version."""
        key = (resource_type, resource)
        configs = dict(self._configs.latest(key) or {})
        configs.pop(name, None)
        if value is not None:
            configs[name] = value
        self._configs.put(key, configs, self._newest)

    def forget_configs(self, resource_type: int, resource: str) -> None:
        """Unset all dynamic configs of a resource in the newest version."""
        if self._configs.latest((resource_type, resource)):
            self._configs.put((resource_type, resource), {}, self._newest)

    # --- images ------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.positions)

    def version(self, version: int) -> ImageVersion:
        """Return the image of a version by its number."""
        image = TopicImage(self._topics.view(version), self._by_id.view(version), self._racks.view(version))
        return ImageVersion(version, self.positions[version], image)

    def version_at(self, time_ms: int) -> int:
        """Return the number of the version that held at a time; -1 before the first."""
        return bisect_right(self._times, time_ms) - 1

    def at(self, time_ms: int) -> ImageVersion | None:
        """Return the topics at a time; None (unknown) before the first version."""
        version = self.version_at(time_ms)
        return self.version(version) if version >= 0 else None

    def image_at(self, time_ms: int | None, asked_ms: int = 0, upto_ms: int | None = None) -> TopicImage | None:
        """Return the topics at a time, or with None the last known ones; None if no version covers that time.

        The last known ones stand for the topics at ``asked_ms``: if the source ends before, they may have changed.
        ``upto_ms``: the time may be as late as this. If topics change until then, those returned may not be all.
        """
        number = self._newest if time_ms is None else self.version_at(time_ms)
        if number < 0:
            return None
        if time_ms is None:
            is_whole = self.complete and self.reach.covers_end(max(asked_ms, self.first_seen_ms, 1))
        else:
            is_whole = self.shows_all(time_ms) and (upto_ms is None or not self._change(time_ms, upto_ms))
        return replace(self.version(number).image, is_whole=is_whole)

    def _change(self, from_ms: int, to_ms: int) -> bool:
        """Whether a topic is created, deleted or grows between two times."""
        images = (version.image.by_id for version in self.window(from_ms, to_ms))
        first, *others = ({topic_id: topic.partitions for topic_id, topic in image.items()} for image in images)
        return any(other != first for other in others)

    def at_offset(self, offset: int) -> ImageVersion | None:
        """Return the topics once the record at ``offset`` of the metadata log was applied; None before the first
        version.
        """
        version = bisect_right(self.positions, offset, key=lambda position: position.offset) - 1
        return self.version(version) if version >= 0 else None

    def window(self, from_ms: int, to_ms: int, names: Iterable[str] | None = None) -> list[ImageVersion]:
        """Return the images that held at some time of ``[from_ms, to_ms]``, oldest first.

        With ``names`` only those in which one of these topics differs from the image before.
        """
        first, last = max(self.version_at(from_ms), 0), self.version_at(to_ms)
        if last < first:
            return []
        if names is None:
            return [self.version(version) for version in range(first, last + 1)]
        return [self.version(version) for version in (first, *self._topics.versions(set(names), first, last))]

    def newest_matching_hash(
        self, wanted: int, names: Iterable[str], before_ms: int, slack_ms: int = 0
    ) -> ImageVersion | None:
        """Return the newest image, not after ``before_ms + slack_ms``, whose metadata hash over ``names`` is
        ``wanted``.

        A coordinator may work with an old image. Since it caches the hash of a topic until a record about that topic
        arrives, it may also work with old racks: these are tried too, newest first, and the returned image has the
        racks that match. None if no known image matches.
        """
        # Lists show a topic later than it was: any of them may prove it for a time before.
        newest = self._newest if self.is_listed else self.version_at(before_ms + slack_ms)
        if newest < 0:
            return None
        asked = (wanted, newest, frozenset(names))
        if asked not in self._matches:
            if len(self._matches) >= CACHED_MATCHES:
                self._matches.clear()
            self._matches[asked] = self._newest_match(*asked)
        return self._matches[asked]

    def _newest_match(self, wanted: int, newest: int, names: frozenset[str]) -> ImageVersion | None:
        topics = sorted(names)
        # Only versions in which one of these topics changed can have another hash; 0 is what was there from the
        # beginning.
        for version in (*reversed(self._topics.versions(topics, upto=newest)), 0):
            choices = [cached for cached in (self._cached(name, version) for name in topics) if cached]
            for combination in islice(product(*choices), MOST_RACK_COMBINATIONS):
                if group_hash([(name, value) for name, value, _ in combination]) == wanted:
                    return self._with_racks_of(version, [topic for _, _, topic in combination])
        return None

    def _cached(self, name: str, version: int) -> list[tuple[str, int, Topic]]:
        """(name, hash, topic) as a coordinator may hold it: newest first, back to the last record about the topic."""
        cached = []
        for since, topic in self._topics.past(name, version):
            if topic is None:
                break
            key = (name, since)
            if key not in self._hashes:
                self._hashes[key] = topic_hash(topic)
            cached.append((name, self._hashes[key], topic))
            # An older version is of before the last record about the topic, at which a coordinator forgets the hash.
            if key not in self._only_racks:
                break
        return cached

    def _with_racks_of(self, version: int, used: list[Topic]) -> ImageVersion:
        now = self.version(version)
        stale = [topic for topic in used if now.image.by_name[topic.name] is not topic]
        if not stale:
            return now
        topics = {**now.image.by_name, **{topic.name: topic for topic in stale}}
        return now._replace(image=TopicImage.of(topics.values(), now.image.broker_racks))

    def doubt(self, time_ms: int) -> str | None:
        """Return why the topics at a time may differ from this history; None if there is no reason to doubt it."""
        if self.strange is not None or self.gaps:
            return self.strange or self.gaps[0].cause
        if time_ms < 0:
            return "the record has no time"
        if self.last_seen_ms < time_ms:
            return "the history of topics ends before"
        if time_ms < self.reach.since_ms:
            return "the history of topics begins later"
        return None

    @property
    def reach(self) -> TopicReach:
        """Over which times each change of topics is here."""
        return self.given.reach

    @property
    def given(self) -> GivenTopics:
        """What the source tells of the topics."""
        if self.strange is not None:
            return GivenTopics(is_log=True, gap=self.strange, is_strange=True)
        gap = min(self.gaps, key=lambda each: each.at.offset, default=None)
        given = GivenTopics(
            not self.is_listed,
            self.is_listed,
            self.first_seen_ms,
            self.last_seen_ms,
            is_of_lines=self.is_of_lines,
            from_start=self.from_start,
        )
        return given if gap is None else given._replace(gap=gap.cause, whole_ms=gap.whole_ms)

    def shows_all(self, time_ms: int) -> bool:
        """Whether the topics at a time are all here: one that is not did not exist then."""
        return self.complete and self.reach.covers(time_ms, time_ms)

    def partitions_at(self, topic: str, time_ms: int) -> int | None:
        """Return how many partitions a topic (its name or its id) had at a time, 0 where it did not exist.

        None: unknown. A count that lists before and after a time show held then; what a later one lacks was deleted.
        """
        known = self.topic_at(self._names.get(topic, topic), time_ms)
        known = known if known is not None and topic in (known.id, known.name) else None
        if self.reach.covers(time_ms, time_ms) and (known is not None or self._denies(topic, time_ms)):
            return 0 if known is None else known.partitions
        if self.is_listed and known is None and any(self._topics.past(self._names.get(topic, topic), self._newest)):
            return 0
        if self.is_listed and known is not None and self.was_there(known.name, known.id, time_ms, 0):
            later = self._topics.at(known.name, self.version_at(time_ms) + 1)
            return known.partitions if later is not None and later.partitions == known.partitions else None
        return None

    def _denies(self, topic: str, time_ms: int) -> bool:
        """Whether a topic that is not here at a time was not there: one may be created just behind the end."""
        ever = self._topics.past(self._names.get(topic, topic), self._newest)
        was_here = any(version is not None for _, version in ever)
        return self.complete and (was_here or time_ms <= self.reach.until_ms - CLOCK_TOLERANCE_MS)

    def is_whole(self, time_ms: int) -> bool:
        """Whether every version of the topics up to a time is here, so that none can have another metadata hash.

        Racks that changed without a record about the topic give more combinations than are tried.
        """
        return self.complete and self.doubt(time_ms) is None and not self._only_racks

    # --- questions ---------------------------------------------------------------------------------------------------

    def topic_name(self, topic_id: str) -> str | None:
        """Return the last known name of a topic id; None if it is unknown."""
        return self._names.get(topic_id)

    def had_partition(self, name: str, partition: int, time_ms: int) -> bool:
        """Return whether a topic of this name had such a partition at a time or before, as far as clocks tell."""
        versions = self._topics.past(name, self.version_at(time_ms + CLOCK_TOLERANCE_MS))
        return any(topic is not None and partition < topic.partitions for _, topic in versions)

    def names_matching(self, regex: str, matching: Callable[[str, Collection[str]], list[str]]) -> frozenset[str]:
        """Return the names of all topics that ever existed and that ``matching`` selects by a regular expression."""
        count, names = self._matching.get(regex, (-1, frozenset()))
        known = list(self._topics)
        if count != len(known):
            names = frozenset(matching(regex, known))
            self._matching[regex] = len(known), names
        return names

    def topic_at(self, name: str, time_ms: int) -> Topic | None:
        """Return a topic at a time; None if it did not exist then, or nothing is known about that time."""
        return self._topics.at(name, self.version_at(time_ms))

    def was_there(self, name: str, topic_id: str, time_ms: int, slack_ms: int) -> bool:
        """Return whether a topic with this id, of which records speak, certainly was still there at a time.

        The clock of the source may be ahead by ``slack_ms``. Lists show topics only at their times: what the next list
        still has was there all the time, and a topic that it lacks was deleted at an unknown time between the two.
        Behind the end of the metadata log any topic may have been deleted.
        """
        if not self.is_listed and not self.reach.covers(time_ms, time_ms):
            return False
        version = self.version_at(time_ms) + 1 if self.is_listed else self.version_at(time_ms + slack_ms)
        topic = self._topics.at(name, version) if version <= self._newest else None
        return topic is not None and topic.id == topic_id

    def is_deleted_about(self, topic: str, time_ms: int) -> bool:
        """Whether a topic (its name or its id) is deleted at a time, as far as clocks tell.

        Lists do not show when a topic was deleted.
        """
        if self.is_listed:
            return False
        after, upto = self.version_at(time_ms - CLOCK_TOLERANCE_MS), self.version_at(time_ms + CLOCK_TOLERANCE_MS)
        return any(
            change.before is not None
            and topic in (change.before.id, change.name)
            and (change.after is None or change.after.id != change.before.id)
            for change in self.changes([self._names.get(topic, topic)], after, upto)
        )

    def changes(self, names: Iterable[str], after: int, upto: int) -> list[TopicChange]:
        """Return the changes of these topics in the versions ``(after, upto]``, oldest first."""
        changes = []
        for name in sorted(set(names)):
            before = self._topics.at(name, after)
            for version, topic in self._topics.changes(name, after, upto):
                kind = change_kind(before, topic)
                if kind:
                    changes.append(TopicChange(kind, name, self.positions[version], before, topic))
                before = topic
        return sorted(changes, key=lambda change: (change.at.offset, change.at.timestamp_ms))

    def oldest_broker(self, time_ms: int | None) -> int | None:
        """Return the lowest ``metadata_version`` among the brokers registered at a time (None: at the end).

        None if it is not known for any broker.
        """
        levels = self.broker_levels(time_ms)
        return None if levels is None else levels.oldest

    def broker_levels(self, time_ms: int | None) -> Levels | None:
        """Return the bounds of ``metadata_version`` among the brokers at a time (None: at the end); None: not known.

        Registrations prove it up to the end of the metadata log; beside that, snapshots of the cluster show it.
        """
        registered = self.brokers.levels_at(time_ms)
        if registered is not None and (time_ms is None or time_ms <= self.last_seen_ms):
            return registered
        shown = self.snapshots.levels_at(time_ms)
        if registered is None or shown is None:
            return registered or shown
        # Brokers that are upgraded later are not older than those of the log.
        return joined(registered, shown._replace(oldest=registered.oldest if shown.oldest is None else shown.oldest))

    def metadata_versions(self) -> set[int]:
        """Return every ``metadata_version`` that a registration or a snapshot shows of a broker."""
        shown = {level for run in self.snapshots.levels for level in run.levels if level is not None}
        return self.brokers.metadata_versions() | shown

    def config(self, resource_type: int, resource: str, version: int) -> Mapping[str, str]:
        """Return the dynamic configs of a resource at a version, empty when none are known."""
        return self._configs.at((resource_type, resource), version) or {}

    def changes_config(self, resource_type: int, resource: str, after: int, upto: int) -> bool:
        """Whether the dynamic configs of a resource change in the versions ``(after, upto]``."""
        return any(True for _ in self._configs.changes((resource_type, resource), after, upto))

    def group_config(self, group_id: str, name: str, time_ms: int) -> str | None:
        """Return a config of a group at a time; None if it is unknown.

        The metadata log has what was set for the group, and no defaults: snapshots count where it never has the config.
        """
        version = self.version_at(time_ms)
        value = self.config(GROUP_RESOURCE, group_id, version).get(name) if version >= 0 else None
        ever = self._configs.past((GROUP_RESOURCE, group_id), self._newest)
        if value is not None or any(name in configs for _, configs in ever if configs):
            return value
        return self.snapshots.value(ResourceKind.GROUP, group_id, name, time_ms)

    def settings_of_groups(self) -> dict[str, GroupSettings]:
        """Return what is set for each group itself at the end of the metadata log, without groups that have none."""
        return {
            resource: GroupSettings(configs, self.positions[version])
            for kind, resource in self._configs
            if kind == GROUP_RESOURCE
            for version, configs in islice(self._configs.past((kind, resource), self._newest), 1)
            if configs
        }

    def default_assignor(self, time_ms: int | None) -> str | None:
        """Return the first of the brokers' ``group.consumer.assignors`` at a time, as snapshots show it, or None."""
        text = self.snapshots.of_brokers("group.consumer.assignors", time_ms)
        if not text:
            return None
        first = text.split(",")[0].strip()
        return ASSIGNORS_BY_CLASS.get(first, first)

    def intervals(self, names: Iterable[str] | None = None) -> Iterator[TopicInterval]:
        """Yield the rows of ``topic_history``: each topic (of ``names``) over each interval in which it stayed the
        same.
        """
        for name in self._topics if names is None else names:
            open_at: tuple[Topic, LogPosition] | None = None
            for version, new in self._topics.changes(name):
                if open_at and change_kind(open_at[0], new, replicas=True):
                    yield topic_interval(*open_at, until=self.positions[version], following=new)
                    open_at = None
                if new and not open_at:
                    open_at = (new, self.positions[version])
            if open_at:
                yield topic_interval(*open_at, until=None, following=None)

    def deletions(self, names: Iterable[str] | None = None) -> list[tuple[str, int]]:
        """Return the topics (of ``names``) that were deleted or replaced, with the times (ms) at which they were."""
        return [
            (interval.topic, interval.until.timestamp_ms)
            for interval in self.intervals(names)
            if interval.until is not None and interval.ended_by in ("deleted", "replaced")
        ]
