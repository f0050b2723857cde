"""The behaviour that an assignor reproduces: that of a Kafka release on a Java version, or of a KIP."""

from dataclasses import dataclass, replace

from coordinator_core.errors import InputError, UsageError

Release = tuple[int, ...]
"""A Kafka release: major, minor, and the patch where it matters."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A named behaviour.

    ``release`` is the first Kafka release whose classes are reproduced; ``jdk`` the feature version of the
    Java runtime, which decides the capacity of copied hash sets (changed in JDK 19).
    """

    name: str
    release: Release
    jdk: int = 17

    @property
    def is_kip_1071(self) -> bool:
        """Whether streams groups do what KIP-1071 defines and the release does not have."""
        return self.name == KIP_1071


KIP_1071 = "kip-1071"
"""The profile of what KIP-1071 defines and a release does not have."""

PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("kafka-3.9", (3, 9)),
        Profile("kafka-4.0", (4, 0, 0)),
        Profile("kafka-4.0.1", (4, 0, 1)),
        Profile("kafka-4.1", (4, 1, 0)),
        Profile("kafka-4.3.1", (4, 3, 1)),
        Profile("kafka-4.4", (4, 4, 0)),
        Profile(KIP_1071, (4, 3, 1)),
    )
}

OTHER_BEFORE = (4, 2)
"""The release that replaced the algorithms of the share and the streams assignor: former ones are not reproduced."""


def require_reproduced(profile: Profile, assignor: str) -> None:
    """Raise InputError for an assignor that is another algorithm in this release."""
    if profile.release < OTHER_BEFORE:
        raise InputError(
            f"the assignor {assignor!r} of {profile.name} is another algorithm than that of 4.2, and is not reproduced"
        )


DEFAULT = PROFILES["kafka-4.3.1"]


def profile(name: str = DEFAULT.name, jdk: int = DEFAULT.jdk) -> Profile:
    """Return the profile of that name on that Java version; raises UsageError if there is none."""
    if name not in PROFILES:
        raise UsageError(f"no profile {name!r}; there are {', '.join(sorted(PROFILES))}")
    if jdk < 8:
        raise UsageError(f"no Java version {jdk}")
    return replace(PROFILES[name], jdk=jdk)
