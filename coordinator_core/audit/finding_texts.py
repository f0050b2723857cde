"""What each kind of finding means for the records, what to do about it, and how sure it is."""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple


class FindingTexts(NamedTuple):
    """What a kind of finding tells an operator."""

    meaning: Annotated[str, "what it means for the records"]
    advice: Annotated[str, "what to do: the setting, or the command"]
    certainty: Annotated[str, "how sure it is, and what else it may be"]


PROVEN: Final = "Proven: the records of the log say it."
COUNTED: Final = "Proven: counted in the log. Whether it hurts depends on the application."

FINDING_TEXTS: Final = {
    "coordinator_away": FindingTexts(
        "Members could not commit, join or rebalance meanwhile; those that lost their sessions read some records "
        "again.",
        "Look at the brokers that are named; shut brokers down one at a time, and replicate __consumer_offsets.",
        "Proven by the metadata log, to the millisecond.",
    ),
    "no_coordinator": FindingTexts(
        "Groups of that partition cannot commit, join or rebalance.",
        "Look at the errors of the broker that are quoted: it could not load the partition, or was not its leader.",
        "Proven by the broker's log.",
    ),
    "will_not_load": FindingTexts(
        "From the next start or move of a coordinator on, groups of that partition cannot commit, join or rebalance.",
        "Upgrade the brokers before they are restarted, or delete the group that is named if it is not needed.",
        "Proven by the order of the records and what brokers registered.",
    ),
    "may_not_load": FindingTexts(
        "None, if the brokers are of a release that has the fault no more.",
        "Look at the brokers' release, in the first lines of their logs; upgrade if it has the fault.",
        "The order of the records is proven; which release the brokers are of is not in the log.",
    ),
    "commits_by_turns": FindingTexts(
        "Each job goes on where the other one was: records are read twice, or not at all.",
        "Give each job its own group id.",
        "Proven that offsets go back and forth; that two jobs do it is likely.",
    ),
    "configs_differ": FindingTexts(
        "The worker runs nothing, and the group rebalances again and again: records of its connectors wait.",
        "Give each Connect cluster its own group.id, and all workers of one the same config.storage.topic.",
        "Proven that the worker is behind; whether it is another cluster or cannot read its topic is not in the log.",
    ),
    "two_owners": FindingTexts(
        "Both members had the partitions: records may have been processed twice.",
        "Make processing idempotent; look whether a member stood still (GC, suspended host) or a client ignores "
        "revocation.",
        "Proven that both had them; what each of them read is not in the log.",
    ),
    "rules_broken": FindingTexts(
        "What the coordinator did is not what the protocol allows: assignments or offsets may be wrong.",
        "Run `audit --group GROUP` for each rule with its record; compare the brokers' releases; report it to "
        "Apache Kafka.",
        "Proven, where the history is complete.",
    ),
    "targets_wrong": FindingTexts(
        "Members got other partitions than their assignor computes; invalid ones leave partitions unread or read "
        "twice.",
        "Run `audit --group GROUP`; set `audit.profile` if the brokers are of another release than the log shows.",
        "Proven for the rules of the named release; another release or a plugin of your own may compute otherwise.",
    ),
    "assignment_not_taken": FindingTexts(
        "No member reads these partitions: their records wait.",
        "Update the client that is named, or give the group one client library.",
        "Proven: the member itself says what it owned when it joined again.",
    ),
    "member_left_out": FindingTexts(
        "The member reads nothing; others have to read its share.",
        "Give all members of the group one assignor that all of their clients know.",
        PROVEN,
    ),
    "generations_failed": FindingTexts(
        "While no generation completes, no member reads: records wait.",
        "Give the group one client library, or one assignor that all of them can read.",
        "Proven that none completed; the cause is known where members are named.",
    ),
    "clients_clash": FindingTexts(
        "Once a certain client leads, some members read nothing or not all.",
        "Give the group one client library, or an assignor that all of them have.",
        "Proven for the leaders that were seen; another leader may do better.",
    ),
    "unassigned_partitions": FindingTexts(
        "Nobody reads these partitions: their records wait, and may be deleted by retention unread.",
        "Run `describe GROUP`; let a member subscribe to the topic, or start the member that should have them.",
        "Proven as of the end of the log.",
    ),
    "share_initializing": FindingTexts(
        "The share group gets no records of these partitions.",
        "Look at the broker that leads __share_group_state, and whether that topic is healthy.",
        "Proven that the state was asked for; a newer answer may not be in the log yet.",
    ),
    "unassigned_work": FindingTexts(
        "The connectors and tasks do not run: their records wait.",
        "Start a worker, or look at the errors of the workers; wait for scheduled.rebalance.max.delay.ms.",
        "Proven as of the end of the log.",
    ),
    "assignor_failed": FindingTexts(
        "Workers keep what they run; changes of connectors have no effect.",
        "Look at the log of the worker that computes assignments; give all workers one release.",
        PROVEN,
    ),
    "not_ready": FindingTexts(
        "The application runs no task: its records wait.",
        "Create the topics that are named, or give them the partition counts that the topology needs.",
        PROVEN,
    ),
    "warmup_stuck": FindingTexts(
        "Work stays where it is; if that process fails, state is restored from the start of the changelog.",
        "Compare restore rate and acceptable.recovery.lag; add max.warmup.replicas or disk throughput.",
        "Proven that they are not active; why is not in the log.",
    ),
    "topology_half_updated": FindingTexts(
        "Members with the older topology get no new tasks; the others run all that moves.",
        "Finish the deploy: restart the members that are named.",
        "Proven as of the end of the log; a deploy may still be under way.",
    ),
    "never_converges": FindingTexts(
        "Members give partitions back and wait: throughput falls, lag grows.",
        "Look at the member that is named; raise max.poll.interval.ms, or give it less work in one poll "
        "(max.poll.records).",
        "Proven that no stable assignment was reached; the named member is the likely cause.",
    ),
    "offsets_rewound": FindingTexts(
        "Records from the lower offset on are read twice.",
        "Commit before partitions are given up (onPartitionsRevoked); make processing idempotent.",
        "Proven: both commits are in the log. An application may have gone back on purpose (seek).",
    ),
    "committed_beyond_end": FindingTexts(
        "Consumers that start there go to the earliest or latest offset: records are read twice or never.",
        "Reset the offsets (kafka-consumer-groups --reset-offsets), and look at what wrote them: a mirror, a restore.",
        "Proven by end offsets that were read later than the commit.",
    ),
    "offsets_expired": FindingTexts(
        "Consumers restart at auto.offset.reset: records are lost (latest) or read again (earliest).",
        "Raise offsets.retention.minutes on the brokers; keep a member in the group, or commit again.",
        "Proven that the offsets were removed; that it was by retention is likely.",
    ),
    "transaction_left_open": FindingTexts(
        "The next owner of the partitions cannot begin before it ends; readers of committed records wait.",
        "Find the producer; abort with `kafka-transactions.sh abort`; lower its transaction.timeout.ms.",
        "Proven as far as the log goes; a dump by a consumer does not show how transactions end.",
    ),
    "share_archived": FindingTexts(
        "These records were never acknowledged as processed: for the application they are lost.",
        "Look at the consumers' errors; raise group.share.delivery.count.limit; set up a dead-letter queue (KIP-1191).",
        "Proven where they were delivered again before; else likely.",
    ),
    "share_unqueued": FindingTexts(
        "These records are lost for the application: no queue has them.",
        "Create the topic of the dead-letter queue, or let share groups write there.",
        "Proven by the metadata log.",
    ),
    "feature_off": FindingTexts(
        "The members cannot join, and lose what they have once their sessions end: their records wait.",
        "Turn the feature on (kafka-features upgrade --feature NAME=LEVEL), or let the clients use the classic "
        "protocol.",
        "Proven by the metadata log.",
    ),
    "group_full": FindingTexts(
        "None: the members that are there read on. One that starts, or that is started again, cannot join.",
        "Stop members that are not needed, or raise the size on the brokers.",
        "Proven by the group's members and a snapshot of the brokers; whether a member was refused is not in the log.",
    ),
    "settings_out_of_bounds": FindingTexts(
        "A value that is moved harms none; members whose sessions end between heartbeats lose their partitions again "
        "and again.",
        "Set a value within the bounds (kafka-configs --entity-type groups), or move the bounds of the brokers.",
        "Proven by the metadata log and a snapshot; where a bound is said to be a default, brokers may have another.",
    ),
    "share_stalled": FindingTexts(
        "Records of the partition wait.",
        "Look at the member that holds the offset; lower group.share.record.lock.duration.ms.",
        "Proven as of the end of the log.",
    ),
    "stood_still": FindingTexts(
        "While they stood still, their records waited; other members may have taken over and read some twice.",
        "Look at the host, the network and the brokers at that time: GC, suspension, saturated disks.",
        "Proven that the sessions were lost together; which of the three stood still is likely.",
    ),
    "share_state_orphaned": FindingTexts(
        "Nothing is read twice or lost yet; a group that takes the partition again may begin elsewhere.",
        "Delete the share group's offsets of that topic, or describe it and report it to Apache Kafka.",
        "Proven for a whole share state log.",
    ),
    "record_near_limit": FindingTexts(
        "Once the record is too large, the group can no longer rebalance: it stops when a member changes.",
        "Raise message.max.bytes of the brokers and max.message.bytes of __consumer_offsets; divide the group.",
        "Proven: the size of the batch in the log.",
    ),
    "decision_not_kept": FindingTexts(
        "The log has not what the broker decided: after a fail-over, members and offsets are as before.",
        "Look at the errors of the broker that are quoted: disk, replication (min.insync.replicas), record size.",
        "Proven by the broker's log, if that log and this one are whole.",
    ),
    "rebalance_storm": FindingTexts(
        "In each rebalance members wait or move partitions: lag grows.",
        "Look at the member that is named; for deploys use static members (group.instance.id) or a longer session "
        "timeout.",
        COUNTED,
    ),
    "static_member_fenced": FindingTexts(
        "The member that was fenced stops reading; what it had not committed is read again.",
        "Give each client its own group.instance.id; look for two deployments with one configuration.",
        PROVEN,
    ),
    "slow_rebalance": FindingTexts(
        "Until it was over, partitions that move were read by no member.",
        "Look at the member that delayed it: it polls rarely. Lower max.poll.records or max.poll.interval.ms.",
        "Proven how long it took; the member that is named was the last one to answer.",
    ),
    "flapping_member": FindingTexts(
        "Each stay costs two rebalances: lag grows, uncommitted records are read again.",
        "Look at why the client ends: crash loop, failing health check, memory.",
        "Proven that it left; whether it crashed or was stopped is not in the log.",
    ),
    "conversion_refused": FindingTexts(
        "The member could not join: it reads nothing.",
        "Set group.consumer.migration.policy on the brokers, or update all members to the same protocol first.",
        "Proven by the broker's log.",
    ),
    "static_member_expired": FindingTexts(
        "Until the session timeout its partitions were read by no member.",
        "If it was stopped for good, nothing; else raise session.timeout.ms, or restart it faster.",
        "Proven that it did not come back in time.",
    ),
    "moved_more_than_needed": FindingTexts(
        "Members gave up partitions that they could have kept: caches and state are built again.",
        "Give all members the same subscription; use the cooperative-sticky or the uniform assignor.",
        "Proven for the members and moves of the log.",
    ),
    "share_redelivered": FindingTexts(
        "Records are processed again, or late.",
        "Raise group.share.record.lock.duration.ms above the time that a record takes; look at why clients "
        "release them.",
        COUNTED,
    ),
    "rolling_deploy": FindingTexts(
        "Partitions moved at each restart; no record was lost.",
        "Use static members (group.instance.id, KIP-345), or a protocol without stop-the-world "
        "(group.protocol=consumer).",
        "Likely a deploy: the same clients left and came back one after the other.",
    ),
    "offsets_reset": FindingTexts(
        "Records from the lower offset on are read twice.",
        "Nothing, if it was meant; else find who ran kafka-consumer-groups --reset-offsets at that time.",
        "Proven that the offsets went back without a member; who did it is not in the log.",
    ),
    "imbalance": FindingTexts(
        "The most loaded member is the first that lags.",
        "Use another assignor (uniform, cooperative-sticky), or partition counts that divide well.",
        PROVEN,
    ),
    "floods_the_log": FindingTexts(
        "None for records; the coordinator's log grows, and loading it after a fail-over takes longer.",
        "Commit less often: auto.commit.interval.ms, or once a batch instead of once a record.",
        COUNTED,
    ),
    "empty_members": FindingTexts(
        "None: these members are spare.",
        "Stop them, or add partitions, if they are not meant as a reserve.",
        "Proven for stable states.",
    ),
    "short_lived_groups": FindingTexts(
        "None; each of them leaves records in the coordinator's log, and offsets if it commits, until they expire.",
        "Give the client one name (--group of a console consumer, group.id), or let it assign partitions itself.",
        "Proven that no member came back; that one client made them follows from the names.",
    ),
    "zombie_group": FindingTexts(
        "None: nobody reads with these offsets.",
        "Delete the group if it is no longer used: kafka-consumer-groups --delete --group GROUP.",
        "Proven that nothing was committed; the group may be meant to come back.",
    ),
    "internal_topics_left": FindingTexts(
        "None: they only take space.",
        "Delete the topics that are named with kafka-topics --delete.",
        "Likely: topics are recognized by their names.",
    ),
    "zombie_topic": FindingTexts(
        "None: nobody reads with these offsets.",
        "Delete them: kafka-consumer-groups --delete-offsets --group GROUP --topic TOPIC.",
        "Proven that no member has the topic.",
    ),
}
"""By the name of the kind."""

UNTOLD: Final = FindingTexts(
    "See what the finding says.", "Look at the records that prove it.", "As sure as its records."
)
"""What is said of a kind that has no texts."""


def texts_of(kind: str) -> FindingTexts:
    """Return what a kind of finding tells an operator."""
    return FINDING_TEXTS.get(kind, UNTOLD)
