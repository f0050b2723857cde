"""Settings that the audit needs and no log contains."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from coordinator_core.assignors.plausible_counts import PlausibleCounts
from coordinator_core.assignors.profiles import DEFAULT, KIP_1071, PROFILES, Profile, profile
from coordinator_core.cluster.client_view import METADATA_AGE_MS
from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS
from coordinator_core.cluster.topic_history import DEFAULT_ASSIGNOR, TopicHistory


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """Settings of the cluster whose log is audited.

    ``default_assignor`` is the first of the broker's ``group.consumer.assignors``; None: as snapshots of the cluster
    show, else ``uniform``. ``profile`` names the release of the brokers, ``older`` the release of brokers before 4.1,
    which recorded topics with the group; None: as the log and the snapshots tell. ``jdk`` is the feature version of the
    brokers' Java runtime; None: try both rules of its collections. Clients: ``metadata_age_ms`` is their largest
    ``metadata.max.age.ms``, ``connect_max_delay_ms`` the workers' ``scheduled.rebalance.max.delay.ms``.
    ``clock_slack_ms`` is the largest difference between the clocks of brokers. ``most_...`` are the largest counts that
    the log is believed.
    """

    default_assignor: str | None = None
    profile: str | None = None
    older: str | None = None
    jdk: int | None = None
    metadata_age_ms: int = METADATA_AGE_MS
    connect_max_delay_ms: int = 300_000
    clock_slack_ms: int = CLOCK_TOLERANCE_MS
    most_partitions_of_topic: int = PlausibleCounts().partitions_of_topic
    most_tasks_of_connector: int = PlausibleCounts().tasks_of_connector
    most_units_of_group: int = PlausibleCounts().units_of_group

    def __post_init__(self) -> None:
        """Raises UsageError for a release that no profile describes."""
        for name in (self.profile, self.older):
            if name is not None:
                profile(name)

    def default_at(self, history: TopicHistory | None, time_ms: int | None) -> str:
        """Return the assignor of consumer groups in which no member asks for one, at a time (None: at the end)."""
        shown = None if history is None else history.default_assignor(time_ms)
        return self.default_assignor or shown or DEFAULT_ASSIGNOR

    @property
    def plausible(self) -> PlausibleCounts:
        """The largest counts that the log is believed."""
        return PlausibleCounts(self.most_partitions_of_topic, self.most_tasks_of_connector, self.most_units_of_group)

    @property
    def chosen(self) -> Profile:
        """The profile of the setting, else that of the newest release that is reproduced whole."""
        return PROFILES[self.profile or DEFAULT.name]

    def on_java(self, names: Sequence[str], *, names_usual: bool = False) -> list[tuple[Profile, str]]:
        """Return the profiles of these names on each possible Java version, each with a text that names it in a
        verdict; the usual one needs no text (``names_usual``: it does, as the log has brokers of several releases).
        """
        profiles = []
        for name in names:
            for jdk in (17, 21) if self.jdk is None else (self.jdk,):
                # KIP-1071 goes without saying only where the setting names it, and not where the log shows it.
                is_usual = name in (DEFAULT.name, KIP_1071 if self.profile == KIP_1071 else "") and jdk == DEFAULT.jdk
                named = "" if is_usual and not names_usual else f", {name} on Java {jdk}"
                profiles.append((replace(PROFILES[name], jdk=jdk), named))
        return profiles
