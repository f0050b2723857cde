"""The row of ``findings``, and the kinds of findings with their weights."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, NamedTuple

from coordinator_core.records import LogPosition

MOST_OVER = 10
"""How many times its threshold a number counts at most, so that no single finding drowns the others."""
MOST_EVIDENCE = 10
"""How many positions a finding names as evidence."""


class FindingKind(StrEnum):
    """What can be found."""

    REBALANCE_STORM = "rebalance_storm"
    NEVER_CONVERGES = "never_converges"
    SLOW_REBALANCE = "slow_rebalance"
    FLAPPING_MEMBER = "flapping_member"
    ROLLING_DEPLOY = "rolling_deploy"
    STATIC_MEMBER_FENCED = "static_member_fenced"
    STATIC_MEMBER_EXPIRED = "static_member_expired"
    IMBALANCE = "imbalance"
    UNASSIGNED_PARTITIONS = "unassigned_partitions"
    EMPTY_MEMBERS = "empty_members"
    MOVED_MORE_THAN_NEEDED = "moved_more_than_needed"
    ZOMBIE_GROUP = "zombie_group"
    ZOMBIE_TOPIC = "zombie_topic"
    OFFSETS_REWOUND = "offsets_rewound"
    OFFSETS_EXPIRED = "offsets_expired"
    FLOODS_THE_LOG = "floods_the_log"
    TRANSACTION_LEFT_OPEN = "transaction_left_open"
    RULES_BROKEN = "rules_broken"
    TARGETS_WRONG = "targets_wrong"


class FindingEntry(NamedTuple):
    """One line of the table of findings; the weight says how much a finding at its threshold hurts, from 1 to 10."""

    kind: FindingKind
    weight: int
    says: str
    number: str
    threshold: str


FINDINGS: tuple[FindingEntry, ...] = (
    FindingEntry(
        FindingKind.RULES_BROKEN,
        10,
        "The log breaks rules of the protocol.",
        "violations",
        "any",
    ),
    FindingEntry(
        FindingKind.TARGETS_WRONG,
        9,
        "Target assignments are not what their assignor gives.",
        "targets judged divergent or invalid",
        "any",
    ),
    FindingEntry(
        FindingKind.UNASSIGNED_PARTITIONS,
        9,
        "A stable group of consumers leaves partitions of its topics without an owner.",
        "partitions",
        "unassigned_partitions",
    ),
    FindingEntry(
        FindingKind.NEVER_CONVERGES,
        9,
        "Rebalance follows rebalance, and none settles, for long.",
        "milliseconds without a settled epoch",
        "never_converges_ms",
    ),
    FindingEntry(
        FindingKind.OFFSETS_REWOUND,
        8,
        "Committed offsets went back after a rebalance moved the partition: records are read twice.",
        "offsets gone back",
        "rewound_offsets",
    ),
    FindingEntry(
        FindingKind.OFFSETS_EXPIRED,
        8,
        "Committed offsets were removed while the group, or the topic, was still there: its readers jump.",
        "partitions",
        "expired_partitions",
    ),
    FindingEntry(
        FindingKind.TRANSACTION_LEFT_OPEN,
        8,
        "A transaction holds committed offsets back: the stable offset of its partitions stands still.",
        "milliseconds open",
        "open_transaction_ms",
    ),
    FindingEntry(
        FindingKind.REBALANCE_STORM,
        7,
        "Rebalances come thick and fast; the member that drives most of them is named.",
        "rebalances in a window of storm_window_ms",
        "storm_rebalances",
    ),
    FindingEntry(
        FindingKind.STATIC_MEMBER_FENCED,
        7,
        "Another client took over the instance id of a member that was there: one of the two was fenced.",
        "times",
        "fenced_times",
    ),
    FindingEntry(
        FindingKind.SLOW_REBALANCE,
        6,
        "A rebalance took long; the member that held it up is named.",
        "milliseconds",
        "slow_rebalance_ms",
    ),
    FindingEntry(
        FindingKind.FLAPPING_MEMBER,
        6,
        "One client comes and goes again and again, staying short.",
        "short stays",
        "flapping_stays",
    ),
    FindingEntry(
        FindingKind.STATIC_MEMBER_EXPIRED,
        5,
        "A static member did not come back within its session timeout.",
        "times",
        "static_expired_times",
    ),
    FindingEntry(
        FindingKind.MOVED_MORE_THAN_NEEDED,
        5,
        "A sticky assignor moved more between members that stayed than the change of members needs.",
        "partitions or tasks too many",
        "needless_moves",
    ),
    FindingEntry(
        FindingKind.ROLLING_DEPLOY,
        4,
        "Clients were restarted one after the other; with static membership (KIP-345) this would have cost nothing.",
        "rebalances",
        "rolling_deploy_rebalances",
    ),
    FindingEntry(
        FindingKind.IMBALANCE,
        4,
        "A settled group has members with far more to do than others.",
        "partitions or tasks between the most and the least loaded",
        "imbalance_units",
    ),
    FindingEntry(
        FindingKind.FLOODS_THE_LOG,
        4,
        "The group commits far more often than it needs to.",
        "commits a minute and partition",
        "commits_per_partition_minute",
    ),
    FindingEntry(
        FindingKind.EMPTY_MEMBERS,
        3,
        "Members of a settled group have nothing to do.",
        "members",
        "empty_members",
    ),
    FindingEntry(
        FindingKind.ZOMBIE_GROUP,
        2,
        "A group without members, and without commits for long, keeps its offsets.",
        "milliseconds since anything happened",
        "zombie_ms",
    ),
    FindingEntry(
        FindingKind.ZOMBIE_TOPIC,
        2,
        "An active group keeps offsets of a topic that it left long ago, or that is gone.",
        "milliseconds since the last commit",
        "zombie_ms",
    ),
)
"""The table of findings, the heaviest first."""

WEIGHTS = {entry.kind: entry.weight for entry in FINDINGS}


class FindingRow(NamedTuple):
    """One thing found in a group's history."""

    group_id: Annotated[str, "the group"]
    group_type: Annotated[str | None, "CLASSIC, CONSUMER, SHARE, STREAMS or CONNECT; null: only offsets were seen"]
    kind: Annotated[str, "a FindingKind"]
    score: Annotated[float, "weight of the kind times number over threshold (at most 10): how urgent it is"]
    number: Annotated[int, "how much; the table of findings says of what"]
    threshold: Annotated[int, "from which number on it is a finding"]
    subject: Annotated[str | None, "the member, client, topic or producer that it is about; null: the group"]
    detail: Annotated[str, "what was found, in a sentence"]
    since_ms: Annotated[int, "when it began"]
    until_ms: Annotated[int, "when it ended, or was last seen"]
    evidence: Annotated[tuple[LogPosition, ...], "records that prove it, the first ten"]
    history_complete: Annotated[bool, "nothing that it rests on is known to be missing"]


def score(kind: FindingKind, number: int, threshold: int) -> float:
    """How urgent: the weight of the kind, times how often the number holds the threshold (at most MOST_OVER times)."""
    return round(WEIGHTS[kind] * min(number / max(threshold, 1), MOST_OVER), 1)


def document_rows() -> list[dict[str, str]]:
    """The table as text, one dict a kind with the columns Finding, Says, Number, Threshold, Weight: for the docs."""
    return [
        {
            "Finding": entry.kind.value,
            "Says": entry.says,
            "Number": entry.number,
            "Threshold": entry.threshold,
            "Weight": str(entry.weight),
        }
        for entry in FINDINGS
    ]
