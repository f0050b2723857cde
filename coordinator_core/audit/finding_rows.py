"""The row of ``findings``, and the table of the kinds of findings with their levels and weights."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Final, NamedTuple, Self

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


PROVEN: Final = "Proven: the records of the log say it."
COUNTED: Final = "Proven: counted in the log. Whether it hurts depends on the application."


class FindingKind(StrEnum):
    """A kind of finding: its name, level and weight, what is counted, the setting that is its threshold, and its texts:
    what it says, what that means for the records, what to do about it, and how sure it is.

    The weight (1 to 10) says how much a finding hurts whose value equals its threshold.
    """

    level: Level
    weight: int
    counted: str
    threshold: str
    says: str
    meaning: str
    advice: str
    certainty: str

    def __new__(cls, name: str, level: Level, weight: int, *texts: str) -> Self:
        """Return the member whose value is the kind's name; ``texts`` are all the other attributes, in their order."""
        kind = str.__new__(cls, name)
        kind._value_ = name
        kind.level, kind.weight = level, weight
        kind.counted, kind.threshold, kind.says, kind.meaning, kind.advice, kind.certainty = texts
        return kind

    @property
    def counts_milliseconds(self) -> bool:
        """Whether its value and its threshold are times in milliseconds."""
        return self.counted.startswith("milliseconds")

    # fmt: off
    COORDINATOR_AWAY = ("coordinator_away", Level.ALARM, 10,
        "milliseconds without a coordinator", "coordinator_away_ms",
        "Partitions of the coordinator's log had no leader, by the metadata log. A controlled shutdown is a notice if "
            "no member lost its session by it, and it was over within a minute (default.api.timeout.ms).",
        "Members could not commit, join or rebalance meanwhile; those that lost their sessions read some records "
            "again.",
        "Look at the brokers that are named; shut brokers down one at a time, and replicate __consumer_offsets.",
        "Proven by the metadata log, to the millisecond.")
    TWO_OWNERS = ("two_owners", Level.ALARM, 10, "milliseconds for which two had them", "any",
        "Two members had the same partitions, tasks or connectors at the same time.",
        "Both members had the partitions: records may have been processed twice.",
        "Make processing idempotent; look whether a member stood still (GC, suspended host) or a client ignores "
            "revocation.",
        "Proven that both had them; what each of them read is not in the log.")
    RULES_BROKEN = ("rules_broken", Level.ALARM, 10, "violations", "any",
        "The log breaks rules of the protocol.",
        "What the coordinator did is not what the protocol allows: assignments or offsets may be wrong.",
        "Run `audit --group GROUP` for each rule with its record; compare the brokers' releases; report it to "
            "Apache Kafka.",
        "Proven, where the history is complete.")
    TARGETS_WRONG = ("targets_wrong", Level.ALARM, 9, "targets judged divergent or invalid", "any",
        "Target assignments differ from what their assignor computes, or break a rule that holds for every assignor.",
        "Members got other partitions than their assignor computes; invalid ones leave partitions unread or read "
            "twice.",
        "Run `audit --group GROUP`; set `audit.profile` if the brokers are of another release than the log shows.",
        "Proven for the rules of the named release; another release or a plugin of your own may compute otherwise.")
    ASSIGNMENT_NOT_TAKEN = ("assignment_not_taken", Level.ALARM, 9, "times", "any",
        "A member of a classic group does not read all that it was assigned: the leader's assignment lists a topic "
            "several times, and the member's client keeps only the last entry.",
        "No member reads these partitions: their records wait.",
        "Update the client that is named, or give the group one client library.",
        "Proven: the member itself says what it owned when it joined again.")
    MEMBER_LEFT_OUT = ("member_left_out", Level.WARNING, 7, "milliseconds without an assignment", "any",
        "The leader of a classic group assigns nothing to a member, because the leader's client cannot read the "
            "member's subscription.",
        "The member reads nothing; others have to read its share.",
        "Give all members of the group one assignor that all of their clients know.",
        PROVEN)
    GENERATIONS_FAILED = ("generations_failed", Level.ALARM, 8, "generations", "failed_generations",
        "A classic group completed no generation although its members joined again and again.",
        "While no generation completes, no member reads: records wait.",
        "Give the group one client library, or one assignor that all of them can read.",
        "Proven that none completed; the cause is known where members are named.")
    CLIENTS_CLASH = ("clients_clash", Level.WARNING, 5, "members", "any",
        "Clients of a classic group are not compatible: if a member with one client library becomes the leader, and "
            "any member may, other members get or read only some of their partitions, or none.",
        "If such a member becomes the leader, some partitions are not read.",
        "Give the group one client library, or an assignor that all of them have.",
        "Proven for the leaders that were seen; another leader may do better.")
    UNASSIGNED_PARTITIONS = ("unassigned_partitions", Level.ALARM, 9, "partitions or tasks", "any",
        "Partitions or tasks have no owner although the group has members. In a stable group they count at once, else "
            "after slow_rebalance_ms (share groups: always after slow_rebalance_ms). Those of a new or grown topic "
            "count after slow_rebalance_ms; in classic groups audit.metadata_age_ms is added (10 minutes if sarama "
            "may lead).",
        "Nobody reads these partitions: their records wait, and may be deleted by retention unread.",
        "Run `describe GROUP`; let a member subscribe to the topic, or start the member that should have them.",
        "Proven as of the end of the log.")
    SHARE_INITIALIZING = ("share_initializing", Level.ALARM, 9,
        "milliseconds since it was first asked for", "share_initializing_ms",
        "A share group waits for the state of share partitions, or for its deletion.",
        "The share group gets no records of these partitions.",
        "Look at the broker that leads __share_group_state, and whether that topic is healthy.",
        "Proven that the state was asked for; a newer answer may not be in the log yet.")
    UNASSIGNED_WORK = ("unassigned_work", Level.ALARM, 9, "connectors and tasks", "any",
        "Connectors and tasks of a Connect group on KIP-848 are in no worker's target. A notice, while they wait for a "
            "worker to return.",
        "The connectors and tasks do not run: their records wait.",
        "Start the worker that left, or look at the errors of the workers.",
        "Proven as of the end of the log.")
    ASSIGNOR_FAILED = ("assignor_failed", Level.WARNING, 8, "epochs with an error", "any",
        "The assignor of a Connect group on KIP-848 reported an error, or no worker could run it (FATAL).",
        "Workers keep what they run; changes of connectors have no effect.",
        "Look at the log of the worker that computes assignments; give all workers one release.",
        PROVEN)
    NOT_READY = ("not_ready", Level.ALARM, 9, "milliseconds not ready", "not_ready_ms",
        "A streams group has members, but the topics do not fit its topology. If that still holds at the end of the "
            "log, it counts at once, unless only internal topics are missing.",
        "The application runs no task: its records wait.",
        "Create the topics that are named, or give them the partition counts that the topology needs.",
        PROVEN)
    WARMUP_STUCK = ("warmup_stuck", Level.WARNING, 6, "milliseconds since the first of them was assigned", "warmup_ms",
        "Warm-up tasks of a streams group have waited for warmup_ms or longer and did not become active (KIP-1071).",
        "Work stays where it is; if that process fails, state is restored from the start of the changelog.",
        "Compare restore rate and acceptable.recovery.lag; add max.warmup.replicas or disk throughput.",
        "Proven that they are not active; why is not in the log.")
    TOPOLOGY_HALF_UPDATED = ("topology_half_updated", Level.NOTICE, 4,
        "milliseconds since a member brought the newer one", "topology_update_ms",
        "At the end of the log some members of a streams group still have an older topology, although another member "
            "brought a newer one (KIP-1071).",
        "Members with the older topology get no new tasks; tasks that move go to the other members.",
        "Finish the deploy: restart the members that are named.",
        "Proven as of the end of the log; a deploy may still be under way.")
    NEVER_CONVERGES = ("never_converges", Level.WARNING, 9, "milliseconds without a stable epoch", "never_converges_ms",
        "The group keeps rebalancing without reaching a stable assignment.",
        "Members give partitions back and wait: throughput falls, lag grows.",
        "Look at the member that is named; raise max.poll.interval.ms, or give it less work in one poll "
            "(max.poll.records).",
        "Proven, deploys and moves of the coordinator apart; the named member is the likely cause.")
    OFFSETS_REWOUND = ("offsets_rewound", Level.ALARM, 8, "offsets rewound", "any",
        "Committed offsets went back after a rebalance moved the partition. Streams groups are not checked.",
        "Records from the lower offset on are read twice.",
        "Commit before partitions are given up (onPartitionsRevoked); make processing idempotent.",
        "Proven: both commits are in the log. An application may have gone back on purpose (seek).")
    COMMITTED_BEYOND_END = ("committed_beyond_end", Level.ALARM, 8, "records beyond the end", "any",
        "A committed offset is beyond the end of its partition: MirrorMaker wrote offsets of the source cluster, or "
            "the partition lost records.",
        "Consumers that start there go to the earliest or latest offset: records are read twice or never.",
        "Reset the offsets (kafka-consumer-groups --reset-offsets), and look at what wrote them: a mirror, a restore.",
        "Proven by end offsets that were read later than the commit.")
    OFFSETS_EXPIRED = ("offsets_expired", Level.ALARM, 8, "partitions", "any",
        "Committed offsets were removed while the group or the topic still existed. Those of a topic that no member "
            "reads do not count. A notice, if nobody has read the topic since, or if the metadata log does not show "
            "whether it was deleted.",
        "Consumers restart at auto.offset.reset: records are lost (latest) or read again (earliest).",
        "Raise offsets.retention.minutes on the brokers; keep a member in the group, or commit again.",
        "Proven that the offsets were removed; that it was by retention is likely.")
    COMMITS_BY_TURNS = ("commits_by_turns", Level.WARNING, 8, "times that offsets went back", "commit_turns",
        "Two jobs commit in turn for one group id, without joining the group.",
        "Each job, when it restarts, continues from the other's offset: records are read twice, or not at all.",
        "Give each job its own group id.",
        "Proven that offsets go back and forth; that two jobs do it is likely.")
    TRANSACTION_LEFT_OPEN = ("transaction_left_open", Level.WARNING, 8, "milliseconds open", "open_transaction_ms",
        "An open transaction blocks committed offsets: the stable offset of its partitions does not advance.",
        "The next owner of the partitions cannot begin before it ends; readers of committed records wait.",
        "Find the producer; abort with `kafka-transactions.sh abort`; lower its transaction.timeout.ms.",
        "Proven as far as the log goes; a dump by a consumer does not show how transactions end.")
    SHARE_ARCHIVED = ("share_archived", Level.ALARM, 8, "records", "any",
        "A share group archived records that it had delivered more than once. A notice, if offsets were archived only "
            "at their first delivery (rejected, or without a record, as after compaction), and more than were "
            "acknowledged.",
        "These records were never acknowledged as processed: for the application they are lost.",
        "Look at the consumers' errors; raise group.share.delivery.count.limit; set up a dead-letter queue (KIP-1191).",
        "Proven for records that were delivered more than once; offsets of a first delivery may have no record.")
    SHARE_UNQUEUED = ("share_unqueued", Level.ALARM, 9, "records", "any",
        "Records that a share group archived are not in its dead-letter queue: the queue's topic does not exist, or "
            "does not let share groups write (KIP-1191).",
        "These records are lost for the application: no queue has them.",
        "Create the topic of the dead-letter queue, or let share groups write there.",
        "Proven by the metadata log.")
    FEATURE_OFF = ("feature_off", Level.ALARM, 8, "members", "any",
        "The feature that a group needs is off: group.version, share.version or streams.version is 0. Brokers refuse "
            "heartbeats (UNSUPPORTED_VERSION).",
        "The members cannot join, and lose what they have once their sessions end: their records wait.",
        "Turn the feature on (kafka-features upgrade --feature NAME=LEVEL), or let the clients use the classic "
            "protocol.",
        "Proven by the metadata log.")
    SHARE_STALLED = ("share_stalled", Level.ALARM, 8, "milliseconds", "share_stalled_ms",
        "A share partition does not advance, although a member has had it: released records wait, or only later "
            "offsets are settled. A notice, if no record is known to wait: an offset without a delivery state may be "
            "in flight, or have no record.",
        "Records of the partition wait.",
        "Look at the member that holds the offset; lower group.share.record.lock.duration.ms.",
        "Proven as of the end of the log.")
    STOOD_STILL = ("stood_still", Level.WARNING, 8, "members", "stood_still_members",
        "Members of several groups (at least stood_still_groups) were removed in the same second and came back under "
            "the same member ids, and nothing shows that they left by themselves.",
        "While they stood still, their records waited; other members may have taken over and read some twice.",
        "Look at the host, the network and the brokers at that time: GC, suspension, saturated disks.",
        "Proven that they went together, and that no process was started again. That sessions were lost is likely: "
            "consumers that unsubscribe, or poll too late, leave the same records.")
    SHARE_STATE_ORPHANED = ("share_state_orphaned", Level.WARNING, 7, "share partitions", "any",
        "A share partition is initialized in its group but has no state in the share state log, or it has state "
            "there but its group does not list it.",
        "Nothing is read twice or lost yet; if the group takes the partition again, it may begin at another offset.",
        "Delete the share group's offsets of that topic, or describe it and report it to Apache Kafka.",
        "Proven for a whole share state log.")
    RECORD_NEAR_LIMIT = ("record_near_limit", Level.WARNING, 7, "bytes", "record_bytes",
        "A record of the group, or a batch of its records, comes close to the size that a broker takes (1 MiB by "
            "default).",
        "Once the record is too large, the group can no longer rebalance: it stops when a member changes.",
        "Raise message.max.bytes of the brokers and max.message.bytes of __consumer_offsets; divide the group.",
        "Proven: the size of the batch in the log.")
    DECISION_NOT_KEPT = ("decision_not_kept", Level.ALARM, 7, "decisions", "any",
        "A broker's application log says that members left, or that the group's epoch or generation went up, but the "
            "coordinator's log has no record of it.",
        "After a fail-over the group has the members and offsets of before: the log does not have the decision.",
        "Look at the errors of the broker that are quoted: disk, replication (min.insync.replicas), record size.",
        "Proven by the broker's log, if both logs are whole; not told if the coordinator may have moved soon after.")
    NO_COORDINATOR = ("no_coordinator", Level.ALARM, 10, "loads that failed", "any",
        "A broker's application log says that the coordinator could not load a log partition, and it has not since.",
        "Groups of that partition cannot commit, join or rebalance.",
        "Look at the errors of the broker that are quoted: it could not load the partition, or was not its leader.",
        "Proven by the broker's log.")
    WILL_NOT_LOAD = ("will_not_load", Level.ALARM, 9, "partitions committed before, or groups", "any",
        "The log has records in an order that brokers of this release cannot load.",
        "Once the coordinator restarts or moves, groups of that partition cannot commit, join or rebalance.",
        "Before you restart a broker: upgrade to a release with the fix. If there is none, delete the group that is "
            "named, and let __consumer_offsets be compacted until the tombstones are gone (segment.ms, "
            "delete.retention.ms). Deleting alone does not help.",
        "Proven by the order of the records and what brokers registered.")
    MAY_NOT_LOAD = ("may_not_load", Level.NOTICE, 9, "partitions committed before, or groups", "any",
        "As will_not_load, but the log does not say whether the brokers' release has the fault.",
        "None, if the brokers' release has the fix; otherwise as will_not_load.",
        "Look at the brokers' release, in the first lines of their logs; upgrade if it has the fault.",
        "The order of the records is proven; which release the brokers are of is not in the log.")
    REBALANCE_STORM = ("rebalance_storm", Level.WARNING, 7,
        "rebalances in a window of storm_window_ms", "storm_rebalances",
        "The group rebalances very often.",
        "In each rebalance members wait or move partitions: lag grows.",
        "Look at the member that is named; for deploys use static members (group.instance.id) or a longer session "
            "timeout.",
        COUNTED)
    STATIC_MEMBER_FENCED = ("static_member_fenced", Level.WARNING, 7, "times", "any",
        "Another client took over the instance id of a member that was still in the group, or tried to (if a "
            "broker's application log says so).",
        "The member that was fenced stops reading; what it had not committed is read again.",
        "Give each client its own group.instance.id; look for two deployments with one configuration.",
        PROVEN)
    SLOW_REBALANCE = ("slow_rebalance", Level.WARNING, 6, "milliseconds", "slow_rebalance_ms",
        "A rebalance took slow_rebalance_ms or longer.",
        "Until it was over, partitions that move were read by no member.",
        "Look at the member that delayed it: does it poll rarely? Lower max.poll.records or max.poll.interval.ms.",
        "Proven how long it took; the member that is named was the last one to answer.")
    FLAPPING_MEMBER = ("flapping_member", Level.WARNING, 6, "short stays in windows of flapping_window_ms",
        "flapping_stays", "One client repeatedly joins and leaves after a short stay.",
        "Each stay costs two rebalances: lag grows, uncommitted records are read again.",
        "Look at why the client ends: crash loop, failing health check, memory.",
        "Proven that it left; whether it crashed or was stopped is not in the log.")
    CONVERSION_REFUSED = ("conversion_refused", Level.WARNING, 5, "times", "any",
        "A broker's application log says that the group was not converted to the other protocol, and why.",
        "The member could not join: it reads nothing.",
        "Set group.consumer.migration.policy on the brokers, or update all members to the same protocol first.",
        "Proven by the broker's log.")
    CONFIGS_DIFFER = ("configs_differ", Level.ALARM, 7, "times", "configs_differ_times",
        "A Connect worker came back again and again with a config offset below that of its assignment, or the "
            "leader could not read what a worker had read: two Connect clusters share one group.id but have two "
            "config topics, or a worker cannot read its topic.",
        "The worker runs nothing, and the group rebalances again and again: records of its connectors wait.",
        "Give each Connect cluster its own group.id, and all workers of one the same config.storage.topic.",
        "Proven that the worker is behind; whether it is another cluster or cannot read its topic is not in the log.")
    STATIC_MEMBER_EXPIRED = ("static_member_expired", Level.NOTICE, 5, "times", "any",
        "A static member did not return within its session timeout.",
        "Until the session timeout its partitions were read by no member.",
        "Nothing, if it was stopped for good. Else restart it faster, or raise session.timeout.ms. A KIP-848 consumer "
            "that ended without close() is refused until its old session expires: lower "
            "group.consumer.session.timeout.ms.",
        "Proven if a broker's log says so. Without one, a request of an administrator, or of a client that left, may "
            "have removed the member.")
    MOVED_MORE_THAN_NEEDED = ("moved_more_than_needed", Level.NOTICE, 5,
        "partitions or tasks too many", "any",
        "A sticky assignor moved more partitions or tasks between the remaining members than it had to.",
        "Members gave up partitions that they could have kept: caches and state are built again.",
        "Give all members the same subscription; use the cooperative-sticky or the uniform assignor.",
        "Proven for the members and moves of the log.")
    SHARE_REDELIVERED = ("share_redelivered", Level.WARNING, 5,
        "deliveries of records that had been delivered before", "share_redelivered",
        "A share group delivers many records again: consumers release them, or their locks time out.",
        "Records are processed again, or late.",
        "Raise group.share.record.lock.duration.ms above the time that a record takes; look at why clients "
            "release them.",
        COUNTED)
    SETTINGS_OUT_OF_BOUNDS = ("settings_out_of_bounds", Level.NOTICE, 3, "settings", "any",
        "Settings of the group lie outside of the brokers' bounds, as a snapshot shows them: brokers use the bound "
            "instead. A warning if sessions of members end before the next heartbeat.",
        "None, if only the bound is used instead; if sessions end between heartbeats, members lose their partitions "
            "again and again.",
        "Set a value within the bounds (kafka-configs --entity-type groups), or move the bounds of the brokers.",
        "Proven by the metadata log and a snapshot; where a bound is said to be a default, brokers may have another.")
    GROUP_FULL = ("group_full", Level.WARNING, 4, "members", "any",
        "The group has as many members as a snapshot says that brokers allow (group.max.size, "
            "group.TYPE.max.size).",
        "None: the members that are there read on. One that starts, or that is started again, cannot join.",
        "Stop members that are not needed, or raise the size on the brokers.",
        "Proven by the group's members and a snapshot of the brokers; whether a member was refused is not in the log.")
    ROLLING_DEPLOY = ("rolling_deploy", Level.NOTICE, 4, "rebalances", "rolling_deploy_rebalances",
        "Clients were restarted one after the other, each with a new member id; in groups of consumers static "
            "membership (KIP-345) would have avoided the rebalances. Deploys of more than ten groups in the same "
            "minute are one finding of the cluster.",
        "Partitions moved at each restart; records not committed by then are read again.",
        "Use static members (group.instance.id, KIP-345), or a protocol without stop-the-world "
            "(group.protocol=consumer).",
        "Likely a deploy: the same clients left and came back one after the other.")
    OFFSETS_RESET = ("offsets_reset", Level.WARNING, 4, "offsets in total", "any",
        "Committed offsets went back while the group had no members: an administrator reset them "
            "(kafka-consumer-groups --reset-offsets), or a consumer that does not join the group committed them.",
        "Records from the lower offset on are read twice.",
        "Nothing, if it was meant; else find who ran kafka-consumer-groups --reset-offsets at that time.",
        "Proven that the offsets went back without a member; who did it is not in the log.")
    IMBALANCE = ("imbalance", Level.NOTICE, 4,
        "partitions or tasks that the most loaded member has more than the least loaded one", "imbalance_units",
        "In a stable group some members have far more partitions or tasks than others.",
        "The most loaded member is the first that lags.",
        "Use another assignor (uniform, cooperative-sticky), or partition counts that divide well.",
        PROVEN)
    FLOODS_THE_LOG = ("floods_the_log", Level.NOTICE, 4,
        "commits per minute and partition", "commits_per_partition_minute",
        "The group commits far more often than necessary.",
        "None for records; the coordinator's log grows, and loading it after a fail-over takes longer.",
        "Commit less often: auto.commit.interval.ms, or once a batch instead of once a record.",
        COUNTED)
    SHORT_LIVED_GROUPS = ("short_lived_groups", Level.NOTICE, 4, "groups", "short_lived_groups",
        "Many groups whose names differ only in a number had members for a short time (at most short_lived_ms), such "
            "as those that a console consumer makes without --group.",
        "None; each of them leaves records in the coordinator's log, and offsets if it commits, until they expire.",
        "Give the client one name (--group of a console consumer, group.id), or let it assign partitions itself.",
        "Proven that no member came back; that one client made them follows from the names.")
    EMPTY_MEMBERS = ("empty_members", Level.NOTICE, 3, "members", "any",
        "Members of a stable group have no partitions or tasks.",
        "None: these members are spare.",
        "Stop them, or add partitions, if they are not meant as a reserve.",
        "Proven for stable states.")
    ZOMBIE_GROUP = ("zombie_group", Level.NOTICE, 2,
        "milliseconds since the last commit, or since the last member left", "zombie_ms",
        "A group without members, and without commits for a long time, still keeps offsets.",
        "None: nobody reads with these offsets.",
        "Delete the group if it is no longer used: kafka-consumer-groups --delete --group GROUP.",
        "Proven that nothing was committed; the group may be meant to come back.")
    INTERNAL_TOPICS_LEFT = ("internal_topics_left", Level.NOTICE, 2, "topics", "any",
        "A deleted group of Kafka Streams has left topics that are named as its internal topics (KIP-1071).",
        "None: they only take space.",
        "Delete the topics that are named with kafka-topics --delete.",
        "Likely: topics are recognized by their names.")
    ZOMBIE_TOPIC = ("zombie_topic", Level.NOTICE, 2, "milliseconds since the last commit", "zombie_ms",
        "An active group keeps offsets of a topic that it no longer reads, or that was deleted.",
        "None: nobody reads with these offsets.",
        "Delete them: kafka-consumer-groups --delete-offsets --group GROUP --topic TOPIC.",
        "Proven that no member has the topic.")
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
        kind.meaning,
        kind.advice,
        kind.certainty,
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
    # A threshold of "any" is 1; where it is what was measured, as of states that still last, it may be 0.
    return round(float(kind.weight * min(value / max(threshold, 1), MOST_OVER)), 1)
