"""Which releases of Kafka a coordinator may have been of, by what the log tells: broker registrations and records."""

from __future__ import annotations

from typing import NamedTuple

from coordinator_core.assignors.profiles import DEFAULT, PROFILES, Release
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.inputs import EpochState
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.consumer.state import ConsumerGroup

METADATA_VERSIONS: tuple[tuple[int, Release], ...] = (
    (31, (4, 4)),
    (30, (4, 3)),
    (28, (4, 2)),
    (26, (4, 1)),
    (22, (4, 0)),
    (0, (3, 9)),
)
"""The first level of the feature ``metadata.version`` of each release; 3.9 stands for all before 4.0."""

REWRITTEN = (4, 2)
"""The release that brought other algorithms for share and streams groups (KIP-932, KIP-1071 general availability)."""

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
    """Return the releases of the registered brokers, by the metadata versions that they support; None: not known."""
    levels = None if history is None else history.broker_levels(at_ms)
    return None if levels is None else Releases(_release(levels[0]), _release(levels[1]))


def _release(level: int) -> Release:
    return next((release for first, release in METADATA_VERSIONS if level >= first), METADATA_VERSIONS[-1][1])


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
    if known is None:
        return [DEFAULT.name]
    possible = [name for name in WITHOUT_RECORDED_TOPICS if _may_be(name, known)]
    if isinstance(state, ConsumerGroup):
        return possible[:1] or [DEFAULT.name]  # its assignors are the same in all of them
    return possible or ["kafka-4.1"]


def _may_be(name: str, known: Releases) -> bool:
    """Whether some broker of these releases behaves as the profile says; that of 4.3.1 stands for 4.2 as well."""
    release = PROFILES[name].release[:2]
    lowest = REWRITTEN if name == DEFAULT.name else release
    return lowest <= known.newest and known.oldest <= release
