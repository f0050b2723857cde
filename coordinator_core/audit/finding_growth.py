"""A finding that was seen before: whether another row is the same one, and whether it has grown since."""

from typing import Annotated, NamedTuple

from coordinator_core.audit.finding_rows import FindingRow, Level


class KnownFinding(NamedTuple):
    """What is kept of a finding that was seen."""

    group_id: Annotated[str | None, "the group; null: it is about the cluster"]
    kind: Annotated[str, "the kind of finding, such as rebalance_storm"]
    subject: Annotated[str | None, "the member, client, topic or producer; null: the group"]
    level: Annotated[str, "alarm, warning or notice"]
    value: Annotated[int, "how much"]
    since_ms: Annotated[int, "when it began"]
    until_ms: Annotated[int, "when it ended, or was last seen"]
    is_open: Annotated[bool, "true if it goes on"]

    @classmethod
    def of(cls, row: FindingRow) -> "KnownFinding":
        """Return what is kept of a finding."""
        return cls(row.group_id, row.kind, row.subject, row.level, row.value, row.since_ms, row.until_ms, row.is_open)

    def is_same(self, other: "KnownFinding") -> bool:
        """Whether both are one finding at two times: of the same kind and subject, in times that overlap."""
        alike = self[:3] == other[:3]
        return alike and self.since_ms <= other.until_ms and other.since_ms <= self.until_ms

    def has_grown(self, before: "KnownFinding") -> bool:
        """Whether there is more of it than before: a higher value or level, or more time."""
        more = self.value > before.value or self.until_ms > before.until_ms or self.since_ms < before.since_ms
        return more or Level(self.level).rank < Level(before.level).rank
