"""What was given of the topics, beside the logs of groups: over which times they are known, and what is missing."""

from typing import Final, NamedTuple

from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS, utc
from coordinator_core.durations import duration

COPIED_MS: Final = 1_000
"""A metadata log that was copied with the logs of groups ends so long before them at most: twice the time after which
a controller writes a record although nothing changed (``metadata.max.idle.interval.ms``).
"""


class TopicReach(NamedTuple):
    """Over which times a source of topics shows each change of them, by the controller's clock, both included.

    ``from_start``: it begins with the cluster. Nothing was before, unless it is of another cluster than the groups, or
    of one that came from ZooKeeper.
    """

    since_ms: int
    until_ms: int
    from_start: bool = False

    def covers(self, first_ms: int, last_ms: int) -> bool:
        """Whether each change of topics between two times is shown.

        A log that ends before the later time was copied before, or lacks its end, or nothing changed: no record tells.
        """
        return self.since_ms <= first_ms and last_ms <= self.until_ms

    def may_cover(self, time_ms: int) -> bool:
        """Whether this source does not show a time yet that it may show once it goes on."""
        return self != NO_REACH and time_ms > self.until_ms

    def covers_end(self, now_ms: int) -> bool:
        """Whether the topics at the end of the logs of groups are shown; 0: these have no times.

        Logs that were copied together do not end at the same time.
        """
        return self.since_ms <= now_ms <= self.until_ms + COPIED_MS and now_ms > 0


NO_REACH: Final = TopicReach(0, -1 - COPIED_MS)
"""That of no source, and of one that lacks records."""

UNKNOWN_BEFORE: Final = "which topics there were before, and when they changed, is not known"
UNKNOWN_CHANGES: Final = "which topics there were, and when they changed, is not known"


class GivenTopics(NamedTuple):
    """What the metadata log, or lists of topics, tell of the topics.

    ``gap`` names records that are missing, ``whole_ms`` is the time up to which none is (None: not known). With
    ``is_strange`` it says why the metadata log is of another cluster, and nothing of it counts. ``is_of_lines``: lines
    of brokers' logs tell them.
    """

    is_log: bool = False
    is_listed: bool = False
    since_ms: int = 0
    until_ms: int = -1
    gap: str | None = None
    whole_ms: int | None = None
    is_strange: bool = False
    is_of_lines: bool = False
    from_start: bool = False

    @property
    def reach(self) -> TopicReach:
        """Over which times each change of topics is known; lists show topics at their times only."""
        if not self.is_log or (self.gap is not None and self.whole_ms is None):
            return NO_REACH
        # Nothing was before a cluster, but the clock of its controller may be ahead of those of coordinators.
        since_ms = max(self.since_ms - CLOCK_TOLERANCE_MS, 0) if self.from_start else self.since_ms
        if self.whole_ms is None:
            return TopicReach(since_ms, self.until_ms, self.from_start)
        return TopicReach(since_ms, self.whole_ms - CLOCK_TOLERANCE_MS, self.from_start)

    def missing(self, first_ms: int | None, last_ms: int | None) -> str | None:
        """Return what is missing for answers about groups whose logs have these times, in words; None: nothing.

        Lists of topics are given where there is no metadata log: whoever gives them knows what they are.
        """
        if self.is_of_lines:
            return (
                "the metadata log (__cluster_metadata) was not given: topics are those of which lines of brokers' logs "
                "say that they were created, grew or were deleted"
            )
        if self.is_listed:
            return None
        if not self.is_log:
            return f"the metadata log (__cluster_metadata) was not given: {UNKNOWN_CHANGES}"
        if self.is_strange:
            return f"{self.gap}: {UNKNOWN_CHANGES}"
        if self.gap is not None:
            return f"{self.gap}: topics that were created, changed or deleted in it are not known"
        if last_ms is not None and last_ms > self.until_ms + COPIED_MS:
            return (
                f"the metadata log ends at {utc(self.until_ms)}, {duration(last_ms - self.until_ms)} before the "
                f"logs of groups: from then on {UNKNOWN_CHANGES}"
            )
        if first_ms is not None and first_ms < self.reach.since_ms:
            return f"the metadata log begins at {utc(self.since_ms)}, after the logs of groups: {UNKNOWN_BEFORE}"
        return None


NO_TOPICS_GIVEN: Final = GivenTopics()
