"""The row of ``findings``, and the table of the kinds of findings with their weights."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, NamedTuple

from coordinator_core.records import LogPosition

MOST_OVER = 10
"""A number counts at most this many times its threshold, so that one finding does not hide the others."""
MOST_EVIDENCE = 10
"""A finding names at most this many positions as evidence."""


class FindingKind(StrEnum):
    """The kinds of findings."""

    REBALANCE_STORM = "rebalance_storm"
    NOT_READY = "not_ready"
    NEVER_CONVERGES = "never_converges"
    SLOW_REBALANCE = "slow_rebalance"
    FLAPPING_MEMBER = "flapping_member"
    ROLLING_DEPLOY = "rolling_deploy"
    STATIC_MEMBER_FENCED = "static_member_fenced"
    STATIC_MEMBER_EXPIRED = "static_member_expired"
    IMBALANCE = "imbalance"
    UNASSIGNED_PARTITIONS = "unassigned_partitions"
    UNASSIGNED_WORK = "unassigned_work"
    ASSIGNOR_FAILED = "assignor_failed"
    EMPTY_MEMBERS = "empty_members"
    MOVED_MORE_THAN_NEEDED = "moved_more_than_needed"
    ZOMBIE_GROUP = "zombie_group"
    ZOMBIE_TOPIC = "zombie_topic"
    OFFSETS_REWOUND = "offsets_rewound"
    OFFSETS_RESET = "offsets_reset"
    OFFSETS_EXPIRED = "offsets_expired"
    FLOODS_THE_LOG = "floods_the_log"
    TRANSACTION_LEFT_OPEN = "transaction_left_open"
    RECORD_NEAR_LIMIT = "record_near_limit"
    RULES_BROKEN = "rules_broken"
    TARGETS_WRONG = "targets_wrong"
    WARMUP_STUCK = "warmup_stuck"
    TOPOLOGY_HALF_UPDATED = "topology_half_updated"
    SHARE_ARCHIVED = "share_archived"
    SHARE_REDELIVERED = "share_redelivered"
    SHARE_STALLED = "share_stalled"
    SHARE_INITIALIZING = "share_initializing"
    SHARE_STATE_ORPHANED = "share_state_orphaned"


class FindingEntry(NamedTuple):
    """One line of the table; ``weight`` (1 to 10) says how much a finding hurts whose number equals its threshold."""

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
        "Target assignments differ from what their assignor computes.",
        "targets judged divergent or invalid",
        "any",
    ),
    FindingEntry(
        FindingKind.UNASSIGNED_PARTITIONS,
        9,
        "Partitions or tasks have no owner although the group has members: the group is stable, or was not stable for "
        "slow_rebalance_ms (share groups: in any state for slow_rebalance_ms).",
        "partitions or tasks",
        "unassigned_partitions",
    ),
    FindingEntry(
        FindingKind.SHARE_INITIALIZING,
        9,
        "A share group waits for the state of share partitions, or for its deletion.",
        "milliseconds since it was first asked for",
        "share_initializing_ms",
    ),
    FindingEntry(
        FindingKind.UNASSIGNED_WORK,
        9,
        "Connectors and tasks of a Connect group on KIP-848 do not run: they are in no worker's target, or there is no "
        "worker. While the scheduled rebalance delay runs, the work of a worker that left waits for it.",
        "connectors and tasks",
        "unassigned_partitions",
    ),
    FindingEntry(
        FindingKind.ASSIGNOR_FAILED,
        8,
        "The assignor of a Connect group on KIP-848 reported an error, or no worker could run it (FATAL): its workers "
        "keep what they run, and changes of connectors have no effect.",
        "epochs with an error",
        "any",
    ),
    FindingEntry(
        FindingKind.NOT_READY,
        9,
        "A streams group has members but does not run, because the topics do not fit its topology; the status and the "
        "topics are named. At the end of the log any time is enough, unless only internal topics are missing.",
        "milliseconds not ready",
        "not_ready_ms",
    ),
    FindingEntry(
        FindingKind.WARMUP_STUCK,
        6,
        "Warm-up tasks of a member of a streams group have not become active for long (KIP-1071).",
        "milliseconds since the first of them was assigned",
        "warmup_ms",
    ),
    FindingEntry(
        FindingKind.TOPOLOGY_HALF_UPDATED,
        4,
        "At the end of the log some members of a streams group have an older topology than others (KIP-1071): they get "
        "no new tasks.",
        "members with an older topology",
        "any",
    ),
    FindingEntry(
        FindingKind.NEVER_CONVERGES,
        9,
        "The group keeps rebalancing without reaching a stable assignment.",
        "milliseconds without a stable epoch",
        "never_converges_ms",
    ),
    FindingEntry(
        FindingKind.OFFSETS_REWOUND,
        8,
        "Committed offsets went back after a rebalance moved the partition: records are read twice. Groups of type "
        "STREAMS are not checked, as their log names tasks and not partitions.",
        "offsets rewound",
        "rewound_offsets",
    ),
    FindingEntry(
        FindingKind.OFFSETS_EXPIRED,
        8,
        "Committed offsets were removed while the group or the topic still existed: its consumers restart elsewhere.",
        "partitions",
        "expired_partitions",
    ),
    FindingEntry(
        FindingKind.TRANSACTION_LEFT_OPEN,
        8,
        "An open transaction blocks committed offsets: the stable offset of its partitions does not advance.",
        "milliseconds open",
        "open_transaction_ms",
    ),
    FindingEntry(
        FindingKind.SHARE_ARCHIVED,
        8,
        "A share group gave records up after it had delivered them again: they are poison. An offset that is archived "
        "at its first delivery may be a transaction marker; such offsets count where they are most of a topic.",
        "records",
        "share_archived",
    ),
    FindingEntry(
        FindingKind.SHARE_STALLED,
        8,
        "A share partition does not advance: records given back wait, or only later offsets are settled.",
        "milliseconds",
        "share_stalled_ms",
    ),
    FindingEntry(
        FindingKind.SHARE_STATE_ORPHANED,
        7,
        "A share partition is initialized without state in the share state log, or has state that its group has not.",
        "share partitions",
        "share_state_orphaned",
    ),
    FindingEntry(
        FindingKind.RECORD_NEAR_LIMIT,
        7,
        "A record of the group, or a batch of its records, comes close to the size that a broker takes (1 MiB by "
        "default): beyond it the coordinator cannot write it, and the group cannot rebalance.",
        "bytes",
        "record_bytes",
    ),
    FindingEntry(
        FindingKind.REBALANCE_STORM,
        7,
        "The group rebalances very often; the member that causes most of the rebalances is named.",
        "rebalances in a window of storm_window_ms",
        "storm_rebalances",
    ),
    FindingEntry(
        FindingKind.STATIC_MEMBER_FENCED,
        7,
        "Another client took over the instance id of a member that was still in the group: one of the two was fenced.",
        "times",
        "fenced_times",
    ),
    FindingEntry(
        FindingKind.SLOW_REBALANCE,
        6,
        "A rebalance took long; the member that delayed it is named.",
        "milliseconds",
        "slow_rebalance_ms",
    ),
    FindingEntry(
        FindingKind.FLAPPING_MEMBER,
        6,
        "One client repeatedly joins and leaves after a short stay.",
        "short stays",
        "flapping_stays",
    ),
    FindingEntry(
        FindingKind.STATIC_MEMBER_EXPIRED,
        5,
        "A static member did not return within its session timeout.",
        "times",
        "static_expired_times",
    ),
    FindingEntry(
        FindingKind.MOVED_MORE_THAN_NEEDED,
        5,
        "A sticky assignor moved more between members that stayed than the change in membership required.",
        "partitions or tasks too many",
        "needless_moves",
    ),
    FindingEntry(
        FindingKind.SHARE_REDELIVERED,
        5,
        "A share group delivers many records again: consumers release them, or their locks time out.",
        "deliveries of records that had been delivered before",
        "share_redelivered",
    ),
    FindingEntry(
        FindingKind.ROLLING_DEPLOY,
        4,
        "Clients were restarted one after the other; static membership (KIP-345) would have avoided the rebalances.",
        "rebalances",
        "rolling_deploy_rebalances",
    ),
    FindingEntry(
        FindingKind.OFFSETS_RESET,
        4,
        "Committed offsets went back while the group had no members: an administrator reset them "
        "(kafka-consumer-groups --reset-offsets), or a consumer that does not join the group committed them. Records "
        "are read twice.",
        "offsets in total",
        "reset_offsets",
    ),
    FindingEntry(
        FindingKind.IMBALANCE,
        4,
        "In a stable group some members have far more partitions or tasks than others.",
        "partitions or tasks that the most loaded member has more than the least loaded one",
        "imbalance_units",
    ),
    FindingEntry(
        FindingKind.FLOODS_THE_LOG,
        4,
        "The group commits far more often than necessary.",
        "commits per minute and partition",
        "commits_per_partition_minute",
    ),
    FindingEntry(
        FindingKind.EMPTY_MEMBERS,
        3,
        "Members of a stable group have no partitions or tasks.",
        "members",
        "empty_members",
    ),
    FindingEntry(
        FindingKind.ZOMBIE_GROUP,
        2,
        "A group without members, and without commits for a long time, still keeps offsets.",
        "milliseconds since the last commit, or since the last member left",
        "zombie_ms",
    ),
    FindingEntry(
        FindingKind.ZOMBIE_TOPIC,
        2,
        "An active group keeps offsets of a topic that it no longer reads, or that was deleted.",
        "milliseconds since the last commit",
        "zombie_ms",
    ),
)
"""The table of findings, the heaviest first."""

WEIGHTS = {entry.kind: entry.weight for entry in FINDINGS}


class FindingRow(NamedTuple):
    """One finding about a group."""

    group_id: Annotated[str, "the group"]
    group_type: Annotated[str | None, "CLASSIC, CONSUMER, SHARE, STREAMS or CONNECT; null: only offsets were seen"]
    kind: Annotated[str, "a FindingKind"]
    score: Annotated[float, "how urgent it is: weight of the kind times number over threshold (at most 10 times)"]
    number: Annotated[int, "how much; the table of findings names the unit"]
    threshold: Annotated[int, "the smallest number that is a finding"]
    subject: Annotated[str | None, "the member, client, topic or producer that it is about; null: the group"]
    detail: Annotated[str, "what was found, in a sentence"]
    since_ms: Annotated[int, "when it began"]
    until_ms: Annotated[int, "when it ended, or was last seen"]
    evidence: Annotated[tuple[LogPosition, ...], "records that prove it, the first ten"]
    log_topic: Annotated[str, "topic of the log in which these records lie"]
    history_complete: Annotated[bool, "true if no record that the finding depends on is known to be missing"]


def score(kind: FindingKind, number: int, threshold: int) -> float:
    """Return how urgent a finding is: the weight of its kind times number / threshold (at most MOST_OVER)."""
    return round(float(WEIGHTS[kind] * min(number / max(threshold, 1), MOST_OVER)), 1)


def document_rows() -> list[dict[str, str]]:
    """Return the table as text for the docs: one dict per kind with Finding, Says, Number, Threshold and Weight."""
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
