"""What the audit has to be told, as no log says it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from coordinator_core.assignors.profiles import DEFAULT, PROFILES, Profile


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """Settings of the cluster whose log is audited.

    ``default_assignor`` is the first of the broker's ``group.consumer.assignors``. ``profile`` names the release of the
    brokers, ``older`` the one of the brokers that recorded topics with the group (before 4.1); None: try each.
    ``jdk`` is the feature version of the brokers' Java runtime; None: try both rules of its collections.
    """

    default_assignor: str = "uniform"
    profile: str = DEFAULT.name
    older: str | None = None
    jdk: int | None = None

    def profiles_for(self, *, recorded_topics: bool) -> list[tuple[Profile, str]]:
        """Profiles to try, the likeliest first, each with what to say of it."""
        names = [self.profile] if not recorded_topics else [self.older] if self.older else ["kafka-4.0", "kafka-3.9"]
        found = []
        for name in names:
            for jdk in (17, 21) if self.jdk is None else (self.jdk,):
                said = "" if (name, jdk) == (DEFAULT.name, DEFAULT.jdk) else f", {name} on Java {jdk}"
                found.append((replace(PROFILES[name], jdk=jdk), said))
        return found
