"""The row of ``target_audits``: one recorded target assignment, recomputed and judged."""

from enum import StrEnum
from typing import Annotated, NamedTuple

from coordinator_core.records import LogPosition


class Verdict(StrEnum):
    """How a recorded target compares with the recomputed one."""

    IDENTICAL = "identical"
    """The assignor gives exactly what was recorded, in the same order where Kafka's order is known."""
    EQUIVALENT = "equivalent"
    """It differs but breaks no invariant, and balance, stickiness and rack figures are the same."""
    SOUND = "sound"
    """An assignor made it that cannot be recomputed: of another client, or of a name that is not known here. It breaks
    no invariant, and that of a client is as even and sticky as such an assignor has to be."""
    DIVERGENT = "divergent"
    """It differs in balance, stickiness or rack figures."""
    INVALID = "invalid"
    """It breaks an invariant of its assignor; where ``fitted`` is set, that is what the leader's client computes."""
    UNKNOWN = "unknown"
    """The log does not contain all input that the coordinator had."""


WRONG = frozenset((Verdict.DIVERGENT, Verdict.INVALID))
"""Verdicts on targets that the assignor did not give, or that it should not have given."""
RIGHT = frozenset((Verdict.IDENTICAL, Verdict.SOUND))
"""Verdicts on targets at which nobody has to look."""


class Basis(StrEnum):
    """What a recorded target is compared with."""

    ASSIGNOR = "assignor"
    """The result of the coordinator's assignor."""
    LEADER = "leader"
    """The result of the assignor of the group's leader."""
    INVARIANTS = "invariants"
    """What holds of every assignment of its kind: the assignor cannot be recomputed."""
    KEPT = "kept"
    """The assignment that the same generation had before; in a Connect group on KIP-848 what the workers ran when the
    assignor of one of them failed."""
    UPGRADE = "upgrade"
    """What the members had in the classic group that was converted to a consumer group."""
    DOWNGRADE = "downgrade"
    """The last target of the consumer group that became a classic one."""


class TargetFigures(NamedTuple):
    """Figures of one assignment; ``assignors.assignment_metrics`` defines them."""

    imbalance: Annotated[int, "largest load of a member minus the smallest"]
    moved: Annotated[int, "partitions or tasks that another member held before"]
    kept: Annotated[int, "partitions or tasks that stay with their member"]
    rack_misses: Annotated[int, "partitions without a replica in the rack of their member"]


class TargetAuditRow(NamedTuple):
    """The verdict on one recorded target assignment (classic: the assignment of one generation)."""

    group_id: Annotated[str, "the group"]
    group_type: Annotated[str, "CLASSIC, CONSUMER, SHARE, STREAMS or CONNECT"]
    epoch: Annotated[int, "assignment epoch, or generation"]
    at: Annotated[LogPosition, "the record that completes the target"]
    opened: Annotated[LogPosition, "the first record of the operation that made it"]
    verdict: Annotated[str, "identical, equivalent, sound, divergent, invalid or unknown"]
    basis: Annotated[str, "assignor, leader, invariants, or a copy of what the group had: kept, upgrade or downgrade"]
    assignor: Annotated[str | None, "the assignor that was recomputed"] = None
    fitted: Annotated[str | None, "the order, topics, leader's view or memory, or client that gives this result"] = None
    missing: Annotated[str | None, "of verdict unknown: the missing input, and what to supply"] = None
    differences: Annotated[tuple[str, ...], "the first differences"] = ()
    difference_count: Annotated[int | None, "how many there are"] = None
    members: Annotated[int | None, "members that it is made for"] = None
    expected: Annotated[TargetFigures | None, "figures of the recomputed target"] = None
    recorded: Annotated[TargetFigures | None, "figures of the recorded target"] = None
    topics_at: Annotated[LogPosition | None, "the version of the topics that was used"] = None
    topics_proven: Annotated[bool | None, "true if the group's metadata hash proves them"] = None
    client: Annotated[str | None, "classic groups: the client library that led; `a or b`; unknown"] = None
    client_certainty: Annotated[str | None, "how sure that is: certain, likely, one of several or unknown"] = None

    @property
    def more_differences(self) -> int:
        """Return how many differences exist beyond those that ``differences`` names."""
        return (self.difference_count or 0) - len(self.differences)
