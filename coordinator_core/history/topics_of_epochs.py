"""The topics that an epoch was computed from, and how topics changed since the epoch before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS, METADATA_LAG_MS
from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.cluster.topic_changes import TopicChange
from coordinator_core.cluster.topic_history import ImageVersion, TopicHistory
from coordinator_core.groups.consumer.state import ConsumerGroup
from coordinator_core.groups.epoch_records import GroupEpochRecord
from coordinator_core.history.causes import topic_causes
from coordinator_core.history.open_rows import OpenEpoch
from coordinator_core.history.rows import Cause
from coordinator_core.records import LogPosition, RecordType

NO_TOPICS_HASH: Final = 0
"""The metadata hash of subscribed topics of which none is there."""
ProvenTopics = Mapping[str, Topic | None]
"""Topics by name, as a hash proves them; None: there was no such topic."""
NO_TOPICS: Final[ProvenTopics] = MappingProxyType({})


class Used(NamedTuple):
    """The topics that an epoch was computed from.

    ``hash`` is None if the record has none. ``proven``: an image of the topics has that hash; None: there is no hash,
    or not every version of the topics is known. ``at`` and ``version`` are those of that image, or of the image at that
    time if none is proven; None and -1 if nothing is known. ``at`` is None, too, where topics may have changed since.
    """

    hash: int | None
    proven: bool | None
    at: LogPosition | None
    version: int


def hash_of_topics(record: GroupEpochRecord, state: object, before: int | None) -> int | None:
    """Return the metadata hash that group metadata has of the subscribed topics; None: it has none, or does not say.

    The record of a consumer group leaves out the hash 0. Brokers before 4.1 write no hash at all, but what they know of
    the topics in a record of its own: where the epoch ``before`` has a hash and no such record came, it is 0.

    Brokers of 4.1 write 0 when a member of a streams group leaves, whatever the topics are. Only they write a streams
    group with neither its validated topology nor its configurations.
    """
    value = record.value
    if value is None:
        return None
    metadata_hash = value.get("metadataHash")
    if metadata_hash is None and before is not None and isinstance(state, ConsumerGroup):
        return NO_TOPICS_HASH if state.subscription_metadata is None else None
    is_streams = record.type == RecordType.STREAMS_GROUP_METADATA
    is_of_4_1 = is_streams and not {"validatedTopologyEpoch", "lastAssignmentConfigs"} & value.keys()
    return None if is_of_4_1 and metadata_hash == NO_TOPICS_HASH else metadata_hash


def topics_used(topics: TopicHistory | None, metadata_hash: int | None, names: set[str], at: LogPosition) -> Used:
    """Return the image of ``names`` that the coordinator used when it wrote the record at ``at``."""
    if topics is None:
        return Used(metadata_hash, None, None, -1)
    is_of_no_names = metadata_hash == NO_TOPICS_HASH and not names  # every version of the topics has this hash
    if metadata_hash is not None and not is_of_no_names:
        matching = matching_hash(topics, metadata_hash, names, at.timestamp_ms, CLOCK_TOLERANCE_MS)
        if matching is not None:
            return Used(metadata_hash, True, matching.at, matching.version)
    version = topics.version_at(at.timestamp_ms)
    proven = None if metadata_hash is None or version < 0 or not topics.shows_all(at.timestamp_ms) else is_of_no_names
    is_known = version >= 0 and (topics.is_listed or topics.reach.covers(at.timestamp_ms, at.timestamp_ms))
    return Used(metadata_hash, proven, topics.positions[version] if is_known else None, version)


def matching_hash(
    topics: TopicHistory, metadata_hash: int, names: set[str], time_ms: int, tolerance_ms: int
) -> ImageVersion | None:
    """Return the newest version of ``names`` with this hash that a coordinator knew at a time of its clock.

    By the controller's clock it may be later, by up to the tolerance. Such a version counts where all earlier ones are
    older than what a broker may work with: topics may become again what they were.
    """
    newest = topics.newest_matching_hash(metadata_hash, names, time_ms)
    # A broker may lag behind the controller, but not for long: a version that was replaced before that is no
    # candidate.
    if newest is not None and not topics.changes(names, newest.version, topics.version_at(time_ms - METADATA_LAG_MS)):
        return newest
    return topics.newest_matching_hash(metadata_hash, names, time_ms, tolerance_ms)


def image_used(topics: TopicHistory | None, used: Used) -> tuple[TopicImage | None, bool]:
    """Return the image with these topics, and whether a topic that is not in it did not exist.

    The image is None where nothing is known, or topics may have changed since.
    """
    if topics is None or used.version < 0 or used.at is None:
        return None, False
    is_whole = bool(used.proven) or (topics.complete and not topics.gaps)
    return topics.version(used.version).image, is_whole


def proven_topics(topics: TopicHistory | None, used: Used, names: Iterable[str]) -> ProvenTopics:
    """Return what the hash of an epoch proves of the topics with these names; nothing where no image has that hash."""
    if topics is None or not used.proven:
        return NO_TOPICS
    image = topics.version(used.version).image
    return {name: image.by_name.get(name) for name in names}


def changes_between(topics: TopicHistory | None, names: set[str], before: int, now: int) -> list[Cause]:
    """Return the changes of topics between two versions of their history, as causes."""
    if topics is None or before < 0 or now <= before:
        return []
    return topic_causes(topics.changes(names, before, now))


def changes_not_seen(topics: TopicHistory | None, epoch: OpenEpoch | None, at: LogPosition) -> list[TopicChange]:
    """Return the changes of its topics that an epoch has not seen at a position, as far as its hash tells."""
    if topics is None or epoch is None or not epoch.topics_proven:
        return []
    return topics.changes(epoch.topics, epoch.topics_version, topics.version_at(at.timestamp_ms))
