"""The row of ``findings``, and the table of the kinds of findings with their levels and weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Final, NamedTuple, Self

from coordinator_core.audit.finding_texts import texts_of
from coordinator_core.records import GROUP_LOG, LogPosition

MOST_OVER = 10
"""A value counts at most this many times its threshold, so that one finding does not hide the others."""
MOST_EVIDENCE = 10
"""A finding names at most this many positions as evidence."""


class Level(StrEnum):
    """How soon a person has to look at a finding, the most pressing first; LEVEL_RULES says which finding has which."""

    ALARM = "alarm"
    WARNING = "warning"
    NOTICE = "notice"

    @property
    def rank(self) -> int:
        """0 for the most pressing level, then 1, and so on."""
        return list(Level).index(self)


LEVEL_RULES: Final = {
    Level.ALARM: "Records are lost, read twice or not read; an assignment or the log is wrong; a coordinator is away "
    "or does not load.",
    Level.WARNING: "No record is harmed yet; some will be if it goes on, or if one more thing happens.",
    Level.NOTICE: "Advice: nothing is wrong, but something could be better, or is no longer needed.",
}
"""Which findings have a level. Gates that look for any finding, checks and webhooks mean alarms and warnings."""


class FindingKind(StrEnum):
    """A kind of finding: its name, level and weight, what is counted, the setting that is its threshold, and its text.

    The weight (1 to 10) says how much a finding hurts whose value equals its threshold.
    """

    level: Level
    weight: int
    counted: str
    threshold: str
    says: str

    def __new__(cls, name: str, level: Level, weight: int, counted: str, threshold: str, says: str) -> Self:
        """Return the member whose value is the kind's name."""
        kind = str.__new__(cls, name)
        kind._value_ = name
        kind.level, kind.weight = level, weight
        kind.counted, kind.threshold, kind.says = counted, threshold, says
        return kind

    @property
    def counts_milliseconds(self) -> bool:
        """Whether its value and its threshold are times in milliseconds."""
        return self.counted.startswith("milliseconds")

    # fmt: off
    COORDINATOR_AWAY = ("coordinator_away", Level.ALARM, 10,
        "milliseconds without a coordinator", "coordinator_away_ms",
        "Partitions of the coordinator's log had no leader, by the metadata log. A planned restart is a notice if no "
        "member lost its session by it, and it was over within a minute (default.api.timeout.ms).")
    TWO_OWNERS = ("two_owners", Level.ALARM, 10, "milliseconds for which two had them", "any",
        "Two members had the same partitions, tasks or connectors at the same time.")
    RULES_BROKEN = ("rules_broken", Level.ALARM, 10, "violations", "any",
        "The log breaks rules of the protocol.")
    TARGETS_WRONG = ("targets_wrong", Level.ALARM, 9, "targets judged divergent or invalid", "any",
        "Target assignments differ from what their assignor computes, or break what holds of all of their kind.")
    ASSIGNMENT_NOT_TAKEN = ("assignment_not_taken", Level.ALARM, 9, "times", "any",
        "A member of a classic group did not read all that it was given: its client keeps only the last entry of a "
        "topic that the leader's lists several times.")
    MEMBER_LEFT_OUT = ("member_left_out", Level.WARNING, 7, "milliseconds without an assignment", "any",
        "The leader of a classic group leaves a member out, whose subscription its client cannot read.")
    GENERATIONS_FAILED = ("generations_failed", Level.ALARM, 8, "generations", "failed_generations",
        "A classic group completed no generation although its members joined again and again.")
    CLIENTS_CLASH = ("clients_clash", Level.WARNING, 5, "members", "any",
        "Clients of a classic group do not work together: once a certain one leads, and any member may, others do "
        "not get, or do not read, all of their partitions.")
    UNASSIGNED_PARTITIONS = ("unassigned_partitions", Level.ALARM, 9, "partitions or tasks", "any",
        "Partitions or tasks have no owner although the group has members: it is stable, or was not stable for "
        "slow_rebalance_ms (share groups: in any state for slow_rebalance_ms). Those of a new or grown topic count "
        "after slow_rebalance_ms, in classic groups 5 minutes later (metadata.max.age.ms).")
    SHARE_INITIALIZING = ("share_initializing", Level.ALARM, 9,
        "milliseconds since it was first asked for", "share_initializing_ms",
        "A share group waits for the state of share partitions, or for its deletion.")
    UNASSIGNED_WORK = ("unassigned_work", Level.ALARM, 9, "connectors and tasks", "any",
        "Connectors and tasks of a Connect group on KIP-848 are in no worker's target, or there is no worker.")
    ASSIGNOR_FAILED = ("assignor_failed", Level.WARNING, 8, "epochs with an error", "any",
        "The assignor of a Connect group on KIP-848 reported an error, or no worker could run it (FATAL).")
    NOT_READY = ("not_ready", Level.ALARM, 9, "milliseconds not ready", "not_ready_ms",
        "A streams group has members, but the topics do not fit its topology. At the end of the log any time is "
        "enough, unless only internal topics are missing.")
    WARMUP_STUCK = ("warmup_stuck", Level.WARNING, 6, "milliseconds since the first of them was assigned", "warmup_ms",
        "Warm-up tasks of a member of a streams group have not become active for long (KIP-1071).")
    TOPOLOGY_HALF_UPDATED = ("topology_half_updated", Level.NOTICE, 4,
        "milliseconds since a member brought the newer one", "topology_update_ms",
        "Some members of a streams group have had an older topology than others for long at the end of the log "
        "(KIP-1071).")
    NEVER_CONVERGES = ("never_converges", Level.WARNING, 9, "milliseconds without a stable epoch", "never_converges_ms",
        "The group keeps rebalancing without reaching a stable assignment.")
    OFFSETS_REWOUND = ("offsets_rewound", Level.ALARM, 8, "offsets rewound", "any",
        "Committed offsets went back after a rebalance moved the partition. Streams groups are not checked.")
    COMMITTED_BEYOND_END = ("committed_beyond_end", Level.ALARM, 8, "records beyond the end", "any",
        "A committed offset is beyond the end of its partition: MirrorMaker wrote offsets of the source cluster, or "
        "the partition lost records.")
    OFFSETS_EXPIRED = ("offsets_expired", Level.ALARM, 8, "partitions", "any",
        "Committed offsets were removed while the group or the topic still existed. A notice, if the metadata log does "
        "not show whether the topic was deleted.")
    COMMITS_BY_TURNS = ("commits_by_turns", Level.WARNING, 8, "times that offsets went back", "commit_turns",
        "Two jobs commit for one group id by turns, without joining it.")
    TRANSACTION_LEFT_OPEN = ("transaction_left_open", Level.WARNING, 8, "milliseconds open", "open_transaction_ms",
        "An open transaction blocks committed offsets: the stable offset of its partitions does not advance.")
    SHARE_ARCHIVED = ("share_archived", Level.ALARM, 8, "records", "any",
        "A share group gave records up after it had delivered them again. Offsets that are archived at their first "
        "delivery, as transaction markers are, count only where they are most of a topic.")
    SHARE_UNQUEUED = ("share_unqueued", Level.ALARM, 9, "records", "any",
        "Records that a share group gave up are not in its dead-letter queue: its topic does not exist, or does not "
        "let share groups write there (KIP-1191).")
    FEATURE_OFF = ("feature_off", Level.ALARM, 8, "members", "any",
        "The feature that a group needs is off: group.version, share.version or streams.version is 0. Brokers refuse "
        "heartbeats (UNSUPPORTED_VERSION).")
    SHARE_STALLED = ("share_stalled", Level.ALARM, 8, "milliseconds", "share_stalled_ms",
        "A share partition does not advance: records given back wait, or only later offsets are settled.")
    STOOD_STILL = ("stood_still", Level.WARNING, 8, "members", "stood_still_members",
        "Members of several groups (at least stood_still_groups) lost their sessions in the same second and came "
        "back under the same member ids.")
    SHARE_STATE_ORPHANED = ("share_state_orphaned", Level.WARNING, 7, "share partitions", "any",
        "A share partition is initialized without state in the share state log, or has state that its group has "
        "not.")
    RECORD_NEAR_LIMIT = ("record_near_limit", Level.WARNING, 7, "bytes", "record_bytes",
        "A record of the group, or a batch of its records, comes close to the size that a broker takes (1 MiB by "
        "default).")
    DECISION_NOT_KEPT = ("decision_not_kept", Level.ALARM, 7, "decisions", "any",
        "A broker's application log says that members went, or that the group's epoch went up, and the "
        "coordinator's log has nothing of it.")
    NO_COORDINATOR = ("no_coordinator", Level.ALARM, 10, "loads that failed", "any",
        "A broker's application log says that the coordinator could not load a log partition, and none has since.")
    WILL_NOT_LOAD = ("will_not_load", Level.ALARM, 9, "partitions committed before", "any",
        "Records stand in the log in an order that the release of the brokers cannot load.")
    MAY_NOT_LOAD = ("may_not_load", Level.NOTICE, 9, "partitions committed before", "any",
        "As will_not_load, where the log leaves open whether brokers are of a release with the fault.")
    REBALANCE_STORM = ("rebalance_storm", Level.WARNING, 7,
        "rebalances in a window of storm_window_ms", "storm_rebalances",
        "The group rebalances very often.")
    STATIC_MEMBER_FENCED = ("static_member_fenced", Level.WARNING, 7, "times", "any",
        "Another client took over the instance id of a member that was still in the group, or tried to, as a "
        "broker's application log says.")
    SLOW_REBALANCE = ("slow_rebalance", Level.WARNING, 6, "milliseconds", "slow_rebalance_ms",
        "A rebalance took long.")
    FLAPPING_MEMBER = ("flapping_member", Level.WARNING, 6, "short stays", "flapping_stays",
        "One client repeatedly joins and leaves after a short stay.")
    CONVERSION_REFUSED = ("conversion_refused", Level.WARNING, 5, "times", "any",
        "A broker's application log says that the group was not converted to the other protocol, and why.")
    CONFIGS_DIFFER = ("configs_differ", Level.ALARM, 7, "times", "configs_differ_times",
        "A Connect worker came back again and again with a config offset below that of its assignment, or the "
        "leader could not read what a worker had read: two Connect clusters have one group.id and two config "
        "topics, or a worker cannot read its topic.")
    STATIC_MEMBER_EXPIRED = ("static_member_expired", Level.NOTICE, 5, "times", "any",
        "A static member did not return within its session timeout.")
    MOVED_MORE_THAN_NEEDED = ("moved_more_than_needed", Level.NOTICE, 5,
        "partitions or tasks too many", "any",
        "A sticky assignor moved more between members that stayed than the change in membership required.")
    SHARE_REDELIVERED = ("share_redelivered", Level.WARNING, 5,
        "deliveries of records that had been delivered before", "share_redelivered",
        "A share group delivers many records again: consumers release them, or their locks time out.")
    SETTINGS_OUT_OF_BOUNDS = ("settings_out_of_bounds", Level.NOTICE, 3, "settings", "any",
        "Settings of the group itself lie outside of the brokers' bounds, as a snapshot shows them: brokers use "
        "the bound instead. A warning where the sessions of members end before the next heartbeat.")
    GROUP_FULL = ("group_full", Level.WARNING, 4, "members", "any",
        "The group has as many members as a snapshot says that brokers allow (group.max.size, "
        "group.TYPE.max.size).")
    ROLLING_DEPLOY = ("rolling_deploy", Level.NOTICE, 4, "rebalances", "rolling_deploy_rebalances",
        "Clients were restarted one after the other, each with a new member id; in groups of consumers static "
        "membership (KIP-345) would have avoided the rebalances. Deploys of more than ten groups in the same "
        "minute are one finding of the cluster.")
    OFFSETS_RESET = ("offsets_reset", Level.WARNING, 4, "offsets in total", "any",
        "Committed offsets went back while the group had no members: an administrator reset them "
        "(kafka-consumer-groups --reset-offsets), or a consumer that does not join the group committed them.")
    IMBALANCE = ("imbalance", Level.NOTICE, 4,
        "partitions or tasks that the most loaded member has more than the least loaded one", "imbalance_units",
        "In a stable group some members have far more partitions or tasks than others.")
    FLOODS_THE_LOG = ("floods_the_log", Level.NOTICE, 4,
        "commits per minute and partition", "commits_per_partition_minute",
        "The group commits far more often than necessary.")
    SHORT_LIVED_GROUPS = ("short_lived_groups", Level.NOTICE, 4, "groups", "short_lived_groups",
        "Many groups whose names differ only in a number had members for a short time (at most short_lived_ms), such "
        "as those that a console consumer makes without --group.")
    EMPTY_MEMBERS = ("empty_members", Level.NOTICE, 3, "members", "any",
        "Members of a stable group have no partitions or tasks.")
    ZOMBIE_GROUP = ("zombie_group", Level.NOTICE, 2,
        "milliseconds since the last commit, or since the last member left", "zombie_ms",
        "A group without members, and without commits for a long time, still keeps offsets.")
    INTERNAL_TOPICS_LEFT = ("internal_topics_left", Level.NOTICE, 2, "topics", "any",
        "A deleted group of Kafka Streams has left topics that are named as its internal topics (KIP-1071).")
    ZOMBIE_TOPIC = ("zombie_topic", Level.NOTICE, 2, "milliseconds since the last commit", "zombie_ms",
        "An active group keeps offsets of a topic that it no longer reads, or that was deleted.")
    # fmt: on


class FindingRow(NamedTuple):
    """One finding about a group, or about the cluster."""

    group_id: Annotated[str | None, "the group; null: it is about the cluster"]
    group_type: Annotated[str | None, "CLASSIC, CONSUMER, SHARE, STREAMS or CONNECT; null: only offsets were seen"]
    kind: Annotated[str, "the kind of finding, such as rebalance_storm"]
    level: Annotated[str, "alarm, warning or notice"]
    score: Annotated[float, "how urgent it is: weight times value over threshold (at most 10 times)"]
    value: Annotated[int, "how much"]
    threshold: Annotated[int, "the smallest value that is a finding"]
    subject: Annotated[str | None, "the member, client, topic or producer; null: the group"]
    detail: Annotated[str, "what was found, in a sentence"]
    since_ms: Annotated[int, "when it began"]
    until_ms: Annotated[int, "when it ended, or was last seen"]
    is_open: Annotated[bool, "true if it goes on"]
    meaning: Annotated[str, "what it means for the records"]
    advice: Annotated[str, "what to do: the setting, or the command"]
    certainty: Annotated[str, "how sure it is, and what else it may be"]
    evidence: Annotated[tuple[LogPosition, ...], "records that prove it, the first ten"]
    log_topic: Annotated[str, "topic of the log in which these records lie"]
    history_complete: Annotated[bool, "true if no record that it depends on is known to be missing"]
    covered: Annotated[bool, "true if a finding about the cluster says it of many groups; lists leave it out"] = False


def make_finding(
    kind: FindingKind,
    value: int,
    threshold: int,
    detail: str,
    evidence: Sequence[LogPosition],
    *,
    since_ms: int,
    until_ms: int,
    group_id: str | None = None,
    group_type: str | None = None,
    level: Level | None = None,
    subject: str | None = None,
    is_open: bool = False,
    complete: bool,
    log_topic: str = GROUP_LOG,
) -> FindingRow:
    """Return a finding with its level (None: that of the kind), its score, and the first positions of its evidence.

    ``complete``: nothing is missing of the rows that it is made from. What the logs lack takes that away, for a group
    in ``GroupHistory.finding``, and for the cluster in ``about_cluster``.
    """
    return FindingRow(
        group_id,
        group_type,
        str(kind),
        str(kind.level if level is None else level),
        score(kind, value, threshold),
        value,
        threshold,
        subject,
        detail,
        since_ms,
        until_ms,
        is_open,
        *texts_of(kind),
        tuple(evidence[:MOST_EVIDENCE]),
        log_topic,
        complete,
    )


def urgency(row: FindingRow) -> tuple[bool, bool, int, float, str, str, str, int]:
    """Return the key by which findings are sorted: notices last; those about the cluster before the others, as they
    explain them; then the most pressing level, then the highest score.
    """
    about = row.kind, row.subject or "", row.since_ms
    level = Level(row.level)
    return level is Level.NOTICE, row.group_id is not None, level.rank, -row.score, row.group_id or "", *about


def rests_on_share_state(kind: str) -> bool:
    """Return whether the share state log may hold what findings of a kind are about; of ``any`` kind it may."""
    return kind in ("any", FindingKind.RULES_BROKEN) or kind.startswith("share_")


def listed(rows: Iterable[FindingRow], group_id: str | None = None) -> list[FindingRow]:
    """Return the findings as they are listed, the most urgent first: of all groups without what is covered, of one
    group as if it was the only one.
    """
    if group_id is None:
        return sorted((row for row in rows if not row.covered), key=urgency)
    return sorted((row._replace(covered=False) for row in rows if row.group_id == group_id), key=urgency)


def score(kind: FindingKind, value: int, threshold: int) -> float:
    """Return how urgent a finding is: the weight of its kind times value / threshold (at most MOST_OVER)."""
    return round(float(kind.weight * min(value / max(threshold, 1), MOST_OVER)), 1)


def document_rows() -> list[dict[str, str]]:
    """Return the table as text for the docs: a dict for each kind, by the heads of its columns."""
    return [
        {
            "Finding": kind.value,
            "Level": kind.level.value,
            "Says": kind.says,
            "Value": kind.counted,
            "Threshold": kind.threshold,
            "Weight": str(kind.weight),
        }
        for kind in FindingKind
    ]
