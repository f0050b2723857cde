"""Which releases of Kafka a coordinator may have been of, by registrations, snapshots and records."""

from typing import NamedTuple

from coordinator_core.assignors.profiles import DEFAULT, KIP_1071, PROFILES, Profile, Release
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.inputs import EpochState
from coordinator_core.audit.targets.operation import TargetOperation
from coordinator_core.cluster.snapshot_settings import LEVEL_OF_4_4
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.consumer.state import ConsumerGroup
from coordinator_core.groups.streams.configs import shows_kip_1071
from coordinator_core.groups.streams.state import StreamsGroup

METADATA_VERSIONS: tuple[tuple[int, Release, Release], ...] = (
    (32, (4, 4), (4, 4)),
    (31, (4, 3), (4, 3)),
    (30, (4, 2), (4, 3)),
    (28, (4, 1), (4, 2)),
    (27, (4, 1), (4, 1)),
    (24, (4, 0), (4, 0)),
    (0, (3, 9), (3, 9)),
)
"""The lowest of the levels of the feature ``metadata.version`` that stand for the same releases, and the oldest and the
newest of these releases. A broker registers the highest level that it supports: that of its release, or a later one
where ``unstable.feature.versions.enable`` is set (29 with 4.1, 30 with 4.2). 3.9 stands for all before 4.0.
"""

OLDEST, NEWEST = METADATA_VERSIONS[-1][1], METADATA_VERSIONS[0][2]

NEWER = (
    "what the assignors of a release after Kafka 4.4 give: a broker registers a metadata.version that no release known "
    "here has"
)

LAST_PREVIEW = 20
"""The level of ``metadata.version`` of 3.8 (3.8-IV0), the last release with the preview of KIP-848; 19: 3.7-IV4."""

PREVIEW = (
    "what the assignors of the preview of KIP-848 in Kafka 3.7 and 3.8 give: they keep what members had, and are not "
    "reproduced"
)

REWRITTEN = (4, 2)
"""The release that brought other algorithms for share and streams groups (KIP-932, KIP-1071 general availability)."""

TIMES_TARGETS = (4, 3)
"""The release since which the metadata of a target has the time of the assignment."""

RECORDS_CONFIGS = (4, 2)
"""The release since which the metadata of a streams group has the configurations and the validated topology."""

WARMS_UP = (4, 4)
"""The release that brought settings of warm-up tasks."""

WITHOUT_RECORDED_TOPICS = ("kafka-4.4", DEFAULT.name, "kafka-4.1")
WITH_RECORDED_TOPICS = ("kafka-4.0.1", "kafka-4.0", "kafka-3.9")
"""Profiles of the releases that recorded topics with a consumer group, the newest first. 4.0.0 and 4.0.1 support the
same levels of all features, so that only their assignments tell them apart.
"""


class Releases(NamedTuple):
    """The oldest and the newest release of the brokers of a time (major, minor)."""

    oldest: Release
    newest: Release


def releases(history: TopicHistory | None, at_ms: int) -> Releases | None:
    """Return the releases of the brokers, by the metadata versions that they support; None: not known."""
    levels = None if history is None else history.broker_levels(at_ms)
    if levels is None:
        return None
    oldest = OLDEST if levels.oldest is None else _releases(levels.oldest).oldest
    newest = NEWEST if levels.newest is None else _releases(levels.newest).newest
    return Releases(oldest, newest)


def _releases(level: int) -> Releases:
    return next(Releases(oldest, newest) for first, oldest, newest in METADATA_VERSIONS if level >= first)


def may_be_preview(state: EpochState, history: TopicHistory | None, at_ms: int) -> bool:
    """Whether brokers of 3.7 or 3.8 may have made the target of a group, whose assignors were others.

    Such brokers recorded topics with a consumer group, as did those up to 4.0. The level of ``metadata.version`` that
    the cluster works with tells them from 3.9, and what brokers register from 4.0.
    """
    if not isinstance(state, ConsumerGroup) or state.subscription_metadata is None:
        return False
    known = releases(history, at_ms)
    level = None if history is None else history.brokers.level_at(at_ms)
    return not (known is not None and known.oldest >= (4, 0)) and (level is None or level <= LAST_PREVIEW)


def may_be_newer(history: TopicHistory | None, at_ms: int) -> bool:
    """Whether a broker may have been of a release that is not known here: it supports a level that none has."""
    levels = None if history is None else history.broker_levels(at_ms)
    return levels is not None and (levels.newest or 0) > LEVEL_OF_4_4


def has_several_releases(history: TopicHistory | None) -> bool:
    """Whether there were brokers of more than one release."""
    return history is not None and len({_releases(level) for level in history.metadata_versions()}) > 1


def releases_by_records(state: EpochState, operation: TargetOperation) -> Releases:
    """Return the releases that write such records as those of the operation; 3.9 stands for all before 4.0."""
    oldest, newest = OLDEST, NEWEST
    if operation.end.value is not None and "assignmentTimestamp" in operation.end.value:
        oldest = TIMES_TARGETS
    else:
        newest = RECORDS_CONFIGS
    if isinstance(state, StreamsGroup):
        if state.validated_topology_epoch is not None:
            oldest = max(oldest, RECORDS_CONFIGS)
        else:  # a later release validates the topology, and records that, before it assigns anything
            newest = (4, 1)
    return Releases(oldest, newest)


def narrowed(known: Releases | None, state: EpochState, operation: TargetOperation) -> Releases | None:
    """Return the releases that a target may be of, by brokers and records; None: nothing but the newest are excluded.

    What the records show counts more: brokers that the log does not show as registered may have written them.
    """
    shown = releases_by_records(state, operation)
    if known is None:
        return shown if shown.newest < TIMES_TARGETS else None
    both = Releases(max(known.oldest, shown.oldest), min(known.newest, shown.newest))
    return both if both.oldest <= both.newest else shown


def streams_profile(state: object, known: Releases | None, settings: AuditSettings) -> Profile:
    """Return whether the setting's release or KIP-1071 made a streams group; without a setting the group's log decides.

    What KIP-1071 defines is in no release up to 4.3. Later ones have parts of it, so that nothing follows where the
    brokers may be of 4.4.
    """
    may_follow = settings.profile is None and (known is None or known.newest < WARMS_UP)
    if may_follow and isinstance(state, StreamsGroup) and shows_kip_1071(state):
        return PROFILES[KIP_1071]
    return settings.chosen


def profile_names(state: EpochState, known: Releases | None, settings: AuditSettings) -> list[str]:
    """Return the names of the profiles that may have made a target, the likeliest first.

    A setting overrides the log.
    """
    if isinstance(state, ConsumerGroup) and state.subscription_metadata is not None:
        if settings.older is not None:
            return [settings.older]
        if known is not None and known.newest < (4, 0):
            return list(reversed(WITH_RECORDED_TOPICS))
        return list(WITH_RECORDED_TOPICS)
    if settings.profile is not None:
        return [settings.profile]
    if streams_profile(state, known, settings).is_kip_1071:
        return [KIP_1071]
    if known is None:
        return [DEFAULT.name]
    possible = [name for name in WITHOUT_RECORDED_TOPICS if _may_be(name, known)]
    if isinstance(state, ConsumerGroup):
        return possible[:1] or [DEFAULT.name]  # the assignors are the same in all of them
    return possible or ["kafka-4.1"]


def _may_be(name: str, known: Releases) -> bool:
    """Whether some broker of these releases behaves as the profile says; that of 4.3.1 stands for 4.2 as well."""
    release = PROFILES[name].release[:2]
    lowest = REWRITTEN if name == DEFAULT.name else release
    return lowest <= known.newest and known.oldest <= release
