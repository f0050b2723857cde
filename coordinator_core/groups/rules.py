"""The rules that the records of a group obey: for which types of groups, from which source, how bad a violation is.

Sources are the KIPs; where no KIP states a rule, Kafka's own code ("4.3.1", from the coordinator and its traces); for
Connect groups the proposal of Connect on KIP-848.
"""

from enum import StrEnum
from typing import Final, Self

from coordinator_core.groups.group_type import GroupType

EPOCH = "epoch"
ASSIGNMENT_EPOCH = "assignment epoch"
TOPOLOGY = "topology"
SHARE_STATE = "share state"
WHOLE = "all that there is"
"""The fact that nothing is missing; no record states it."""
MEMBER, TARGET, CURRENT = "member", "target", "current"
"""The facts about one member: its metadata, its target, its current assignment."""


class Severity(StrEnum):
    """How bad the violation of a rule is."""

    SAFETY = "safety"
    """Two members may work on the same partition, or commits may be lost: data is at stake."""
    PROTOCOL = "protocol"
    """The coordinator, or the log, does what the protocol does not allow."""
    NOTICE = "notice"
    """Unusual: the broker allows it, or a newer broker wrote it."""


_CLASSIC, _CONSUMER, _SHARE = GroupType.CLASSIC, GroupType.CONSUMER, GroupType.SHARE
_STREAMS, _CONNECT = GroupType.STREAMS, GroupType.CONNECT
_RECONCILED = (_CONSUMER, _STREAMS)
_EPOCHS = (_CONSUMER, _SHARE, _STREAMS)
_EPOCHS_AND_CONNECT = (*_EPOCHS, _CONNECT)
_ALL = (_CLASSIC, *_EPOCHS_AND_CONNECT)
_NAMED = {_EPOCHS_AND_CONNECT: "with epochs", _ALL: "all"}
_SAFETY, _PROTOCOL, _NOTICE = Severity.SAFETY, Severity.PROTOCOL, Severity.NOTICE

_KIP848 = "KIP-848"
_KIP932 = "KIP-932"
_KIP1071 = "KIP-1071"
_KIP345 = "KIP-345"
_CODE = "4.3.1"
_CONNECT_KIP848 = "Connect on KIP-848"


class Rule(StrEnum):
    """A rule: its name, the types of groups that it holds for, its source, its severity and its text.

    Replay (``groups/<type>/replay.py``) checks the rules that one record and the state before it can break; the audit
    (``coordinator_core.audit.rules``) checks the others. A compacted or truncated log breaks some of replay's rules
    without any fault, so the audit drops a violation unless the log proves the fact that the record is compared with:
    that fact is last, and only for rules of replay that look at more than the record.
    """

    types: tuple[GroupType, ...]
    source: str
    severity: Severity
    says: str
    compared_with: str | None

    def __new__(
        cls,
        name: str,
        types: tuple[GroupType, ...],
        source: str,
        severity: Severity,
        says: str,
        compared_with: str | None = None,
    ) -> Self:
        """Return the member whose value is the rule's name."""
        rule = str.__new__(cls, name)
        rule._value_ = name
        rule.types, rule.source, rule.severity, rule.says = types, source, severity, says
        rule.compared_with = compared_with
        return rule

    # fmt: off
    # Epochs.
    EPOCH_WENT_BACK = ("epoch_went_back", _EPOCHS_AND_CONNECT, _KIP848, _PROTOCOL,
        "The group epoch never goes back while the group lives.", EPOCH)
    EPOCH_SKIPPED = ("epoch_skipped", _EPOCHS_AND_CONNECT, _KIP848, _PROTOCOL,
        "Each group epoch is the one before plus one.")
    EPOCH_REPEATED = ("epoch_repeated", _EPOCHS_AND_CONNECT, _KIP848, _PROTOCOL,
        "Group metadata is written only for a new epoch.")
    ASSIGNMENT_EPOCH_WENT_BACK = ("assignment_epoch_went_back", _EPOCHS_AND_CONNECT, _KIP848, _PROTOCOL,
        "The assignment epoch never goes back.", ASSIGNMENT_EPOCH)
    ASSIGNMENT_EPOCH_AHEAD = ("assignment_epoch_ahead", _EPOCHS_AND_CONNECT, _KIP848, _PROTOCOL,
        "The assignment epoch is not above the group epoch.", EPOCH)
    ASSIGNMENT_EPOCH_NOT_THE_GROUPS = ("assignment_epoch_not_the_groups", _EPOCHS, f"{_KIP848}, {_CODE}", _PROTOCOL,
        "A target is computed for the group epoch at that time; between targets the assignment epoch may be "
        "lower. Judged up to Kafka 4.4: later brokers compute targets beside the heartbeats (KIP-1263).")
    ASSIGNMENT_OVERDUE = ("assignment_overdue", (_CONSUMER, _SHARE), "KIP-1263", _NOTICE,
        "Once a member moves, the assignment epoch is lower than the group epoch for at most the highest "
        "assignment interval: 15 s, unless the broker's bound was raised. Judged up to Kafka 4.4.")
    MEMBER_EPOCH_WENT_BACK = ("member_epoch_went_back", _EPOCHS_AND_CONNECT, _KIP848, _PROTOCOL,
        "A member's epoch never goes back, unless it leaves (-1, -2) or joins again (0).", CURRENT)
    MEMBER_EPOCH_AHEAD = ("member_epoch_ahead", _EPOCHS_AND_CONNECT, _KIP848, _PROTOCOL,
        "A member's epoch is not above the group epoch.", EPOCH)
    MEMBER_EPOCH_AHEAD_OF_TARGET = ("member_epoch_ahead_of_target", _EPOCHS_AND_CONNECT, _KIP848, _PROTOCOL,
        "A member's epoch is not above the assignment epoch.")
    MEMBER_EPOCH_NOT_THE_TARGETS = ("member_epoch_not_the_targets", _EPOCHS, f"{_KIP848}, {_CODE}", _PROTOCOL,
        "A member's epoch stays as it was, or becomes the assignment epoch (streams groups, and consumer groups "
        "of brokers before 4.0: or the next one).")
    MEMBER_EPOCH_NOT_POSITIVE = ("member_epoch_not_positive", _EPOCHS, f"{_KIP848}, {_CODE}", _PROTOCOL,
        "A member's epoch is positive. Only a static member has others: -2 while it is away, 0 when it replaces "
        "the one before.")
    PREVIOUS_EPOCH_WRONG = ("previous_epoch_wrong", _EPOCHS, _KIP848, _PROTOCOL,
        "The previous member epoch is the epoch that the member had before.")
    METADATA_HASH_WRONG = ("metadata_hash_wrong", _EPOCHS, _CODE, _PROTOCOL,
        "The metadata hash of an epoch is that of a version of the subscribed topics, at most half a minute out "
        "of date (clocks: 10 s). Judged only where the metadata log is whole and of this cluster.")
    PARTITION_EPOCH_WRONG = ("partition_epoch_wrong", _RECONCILED, "KIP-1251", _PROTOCOL,
        "A partition's assignment epoch is not above the epoch of its member.")

    # Members and what they have.
    UNKNOWN_MEMBER_STATE = ("unknown_member_state", _EPOCHS, _KIP848, _NOTICE,
        "A member is in one of the states of its protocol that are known; a newer broker may write others.")
    STATE_AGAINST_ASSIGNMENT = ("state_against_assignment", _RECONCILED, _KIP848, _PROTOCOL,
        "A member has something to revoke if, and only if, its state says so; it waits for others only if it "
        "lacks something of its target.")
    ASSIGNED_OUTSIDE_TARGET = ("assigned_outside_target", _EPOCHS_AND_CONNECT, _KIP848, _PROTOCOL,
        "A member is assigned only what is in its target, apart from what it already had.")
    ASSIGNED_NOT_THE_TARGET = ("assigned_not_the_target", _EPOCHS, _KIP848, _PROTOCOL,
        "A stable member at the epoch of its target has its whole target and nothing else; one that waits for "
        "others lacks only what they have.")
    ASSIGNED_WHILE_REVOKING = ("assigned_while_revoking", _RECONCILED, _KIP848, _PROTOCOL,
        "Nothing is assigned to a member and pending revocation from it at the same time.")
    REVOKING_NOT_OWNED = ("revoking_not_owned", _RECONCILED, _KIP848, _PROTOCOL,
        "A member is asked to revoke only partitions or tasks that it has.")
    DROPPED_WITHOUT_REVOCATION = ("dropped_without_revocation", _RECONCILED, f"{_KIP848}, {_CODE}", _PROTOCOL,
        "A member keeps what its target holds; the rest it is asked to revoke at once.")
    UNIT_TWICE_IN_RECORD = ("unit_twice_in_record", _ALL, _KIP848, _PROTOCOL,
        "No record, and no assignment of a member of a classic group, lists a partition, connector or task "
        "twice.")
    ASSIGNED_TO_TWO = ("assigned_to_two", (_CLASSIC, _CONSUMER, _STREAMS, _CONNECT), f"{_KIP848}, {_KIP1071}", _SAFETY,
        "A partition, active task or connector is assigned to only one member (share groups: to any number; "
        "classic groups: checked for the protocols that are known).")
    ASSIGNED_BEFORE_REVOKED = ("assigned_before_revoked", (_CONSUMER, _STREAMS, _CONNECT), _KIP848, _SAFETY,
        "What a member is asked to revoke is assigned to another member only after it acknowledged the "
        "revocation.")
    TARGET_INCOMPLETE = ("target_incomplete", _EPOCHS, _CODE, _PROTOCOL,
        "When a target is installed, each member has a target record, even if it is empty.")
    REPLACEMENT_NOT_A_COPY = ("replacement_not_a_copy", _RECONCILED, f"{_KIP345}, {_CODE}", _PROTOCOL,
        "A static member that takes the place of another begins with a copy of its target.")
    TARGET_OF_TWO = ("target_of_two", (_CONSUMER, _STREAMS, _CONNECT), _KIP848, _SAFETY,
        "A complete target assigns each partition, active task or connector to only one member.")
    TASK_TWICE_IN_PROCESS = ("task_twice_in_process", (_STREAMS,), _KIP1071, _PROTOCOL,
        "No process is assigned a task that it already has, whether as active, standby or warm-up task.")
    TASK_OUTSIDE_TOPOLOGY = ("task_outside_topology", (_STREAMS,), _KIP1071, _PROTOCOL,
        "Each task belongs to a subtopology of the group's topology.")
    TOPOLOGY_EPOCH_WRONG = ("topology_epoch_wrong", (_STREAMS,), _KIP1071, _PROTOCOL,
        "The topology epoch goes up by one with each new topology; one epoch has one topology. A group with "
        "members has one.")
    INTERNAL_TOPIC_CONFIG_DIFFERS = ("internal_topic_config_differs", (_STREAMS,), _KIP1071, _NOTICE,
        "An internal topic has the configuration that the topology gives it. Looked at when the topology or the "
        "topics of the group change.")
    SHARE_STATE_MISSING = ("share_state_missing", (_SHARE,), _KIP932, _PROTOCOL,
        "A target contains only partitions whose share state is initialised.")

    # The share state log: the detail names its partition, the position is an offset there.
    SHARE_UPDATE_WITHOUT_SNAPSHOT = ("share_update_without_snapshot", (_SHARE,), _KIP932, _PROTOCOL,
        "An update of a share partition follows a snapshot.")
    SHARE_SNAPSHOT_EPOCH_WRONG = ("share_snapshot_epoch_wrong", (_SHARE,), f"{_KIP932}, {_CODE}", _PROTOCOL,
        "The first snapshot of a share partition has epoch 0, each one after it the next; an update has that of "
        "the snapshot before it.")
    SHARE_STATE_EPOCH_WENT_BACK = ("share_state_epoch_went_back", (_SHARE,), _KIP932, _PROTOCOL,
        "The state epoch of a share partition never goes back: a write with an older one is fenced.")
    SHARE_LEADER_EPOCH_WENT_BACK = ("share_leader_epoch_went_back", (_SHARE,), f"{_KIP932}, {_CODE}", _PROTOCOL,
        "The leader epoch of a share partition goes back, to 0, only where its state is initialised again or altered.")
    SHARE_SETTLED_AGAIN = ("share_settled_again", (_SHARE,), _KIP932, _SAFETY,
        "A record that is acknowledged or archived is not delivered again.")
    SHARE_BATCH_WRONG = ("share_batch_wrong", (_SHARE,), f"{_KIP932}, {_CODE}", _PROTOCOL,
        "State batches have offsets from the start offset on, a delivery state and a delivery count; those of one "
        "record do not overlap.")
    SHARE_STATE_NEW = ("share_state_new", (_SHARE,), _CODE, _NOTICE,
        "Each delivery state is known. One of a newer broker counts as not settled.")
    SHARE_START_OFFSET_WENT_BACK = ("share_start_offset_went_back", (_SHARE,), _CODE, _NOTICE,
        "An update does not move the start offset back; two writes that overtake each other do (pull request "
        "23074).")
    SHARE_TOMBSTONE_WITHOUT_STATE = ("share_tombstone_without_state", (_SHARE,), _CODE, _PROTOCOL,
        "Only the state of a share partition that has some is deleted.")
    SHARE_STATE_LOST = ("share_state_lost", (_SHARE,), _KIP932, _PROTOCOL,
        "A partition keeps its share state as long as its topic exists and is not being deleted.")
    REGEX_TOPICS_WRONG = ("regex_topics_wrong", (_CONSUMER,), _KIP848, _PROTOCOL,
        "A regular expression is resolved to topics that match it and exist, in the version of the topics that "
        "the record names.")
    REGEX_TOPIC_LOST = ("regex_topic_lost", (_CONSUMER,), _KIP848, _NOTICE,
        "A regular expression that is resolved again keeps its topics that still exist. A broker leaves out topics "
        "that the member may no longer describe (ACLs).")
    WORK_OUTSIDE_GROUP = ("work_outside_group", (_CONNECT,), _CONNECT_KIP848, _PROTOCOL,
        "A target contains only connectors and tasks that the group had in the target's epoch.")
    WORK_UNASSIGNED = ("work_unassigned", (_CONNECT,), _CONNECT_KIP848, _PROTOCOL,
        "A target assigns every connector and task. Only the work of workers that left may wait, until the "
        "scheduled rebalance delay is over.")
    INSTANCE_ID_OF_TWO = ("instance_id_of_two", (_CLASSIC, _CONSUMER, _STREAMS), _KIP345, _SAFETY,
        "An instance id belongs to only one member.")

    # What is written together.
    MEMBER_REMOVED_IN_PART = ("member_removed_in_part", _EPOCHS, _CODE, _PROTOCOL,
        "The tombstones of a member, of its current assignment and of its target assignment are written "
        "together.")
    MEMBER_REMOVED_WITH_ASSIGNMENT = ("member_removed_with_assignment", _EPOCHS_AND_CONNECT, _CODE, _PROTOCOL,
        "A member's assignments are removed before the member.", CURRENT)
    DEPARTURE_WITHOUT_EPOCH = ("departure_without_epoch", _EPOCHS_AND_CONNECT, f"{_KIP848}, {_KIP345}", _PROTOCOL,
        "A member that leaves opens a new group epoch, unless a static member takes its place.")
    JOIN_WITHOUT_EPOCH = ("join_without_epoch", _EPOCHS_AND_CONNECT, f"{_KIP848}, {_KIP345}", _PROTOCOL,
        "A member that joins with topics opens a new group epoch, unless it takes the place of a static member.")
    JOIN_WITHOUT_ASSIGNMENT = ("join_without_assignment", _EPOCHS_AND_CONNECT, _CODE, _PROTOCOL,
        "A member that joins gets a current assignment in the same operation.")
    TARGET_WITHOUT_EPOCH = ("target_without_epoch", _EPOCHS, _CODE, _PROTOCOL,
        "Target assignments are followed by the target assignment metadata (the copy for a static member is "
        "not).")
    ASSIGNMENT_WITHOUT_MEMBER = ("assignment_without_member", _EPOCHS_AND_CONNECT, _CODE, _PROTOCOL,
        "A current assignment belongs to a member of the group.", MEMBER)
    TARGET_WITHOUT_MEMBER = ("target_without_member", _EPOCHS_AND_CONNECT, _CODE, _PROTOCOL,
        "A target assignment belongs to a member of the group.", MEMBER)
    TOMBSTONE_WITHOUT_VALUE = ("tombstone_without_value", _EPOCHS_AND_CONNECT, _CODE, _NOTICE,
        "A tombstone removes something that exists.", WHOLE)
    GROUP_REMOVED_WITH_MEMBERS = ("group_removed_with_members", _EPOCHS_AND_CONNECT, _KIP848, _PROTOCOL,
        "A group is removed only when it has no members.", WHOLE)
    GROUP_REMOVED_IN_PART = ("group_removed_in_part", _EPOCHS, _CODE, _PROTOCOL,
        "The target assignment metadata is removed just before the group, and only with it.")
    TYPE_CHANGED_WITHOUT_TOMBSTONE = ("type_changed_without_tombstone", _ALL, _KIP848, _PROTOCOL,
        "A group with members changes its type only after the group of the old type was removed.", EPOCH)
    TYPE_CHANGED_IN_PART = ("type_changed_in_part", (_CLASSIC, _CONSUMER), _KIP848, _SAFETY,
        "A group that is removed while it has members continues as another type in the same batch; from a consumer "
        "group all members with the classic protocol continue. Not judged for classic Connect groups, which "
        "continue in another log.")
    CONVERSION_EPOCH_WRONG = ("conversion_epoch_wrong", (_CLASSIC, _CONSUMER), _KIP848, _PROTOCOL,
        "A group with members that changes its type continues at its generation or assignment epoch, or above "
        "it.")

    # Classic groups.
    GENERATION_WENT_BACK = ("generation_went_back", (_CLASSIC,), "KIP-62", _PROTOCOL,
        "The generation never goes back while the group lives.", EPOCH)
    GENERATION_CHANGED_IN_PLACE = ("generation_changed_in_place", (_CLASSIC,), _KIP345, _PROTOCOL,
        "A generation that is written again differs only in a static member's new id.")
    MEMBER_LISTED_TWICE = ("member_listed_twice", (_CLASSIC,), "KIP-62", _PROTOCOL,
        "A generation lists each member once.")
    OWNED_NOT_ASSIGNED = ("owned_not_assigned", (_CLASSIC,), "KIP-792, KIP-415", _PROTOCOL,
        "What a joining member says that it owns was assigned to it in the last generation, or it said the same "
        "before (consumers that name the generation, Connect workers).")
    LEADER_WITHOUT_MEMBER = ("leader_without_member", (_CLASSIC,), "KIP-62", _PROTOCOL,
        "The leader is a member.")
    PROTOCOL_AGAINST_MEMBERS = ("protocol_against_members", (_CLASSIC,), "KIP-62", _PROTOCOL,
        "A generation with members has a protocol and a leader; an empty one has neither.")

    GENERATION_REPEATED = ("generation_repeated", (_CLASSIC,), f"{_KIP345}, {_CODE}", _PROTOCOL,
        "A generation with members is written again only if something in it changed.")

    # Counts.
    COUNT_IMPLAUSIBLE = ("count_implausible", (_CLASSIC, _CONSUMER, _STREAMS), "this software", _NOTICE,
        "A record claims no more partitions of a topic, or tasks of a connector, than "
        "audit.most_partitions_of_topic and audit.most_tasks_of_connector.")

    # Offsets.
    COMMIT_IN_SHARE_GROUP = ("commit_in_share_group", (_SHARE,), _KIP932, _PROTOCOL,
        "A share group with members has no offset commits.")
    COMMIT_BY_NO_OWNER = ("commit_by_no_owner", (_CLASSIC, _CONSUMER), "KIP-1251", _NOTICE,
        "Offsets are committed only for partitions that a member has. The broker checks the member and its epoch, "
        "not the partition.")

    COMMIT_BY_NO_SUBSCRIBER = ("commit_by_no_subscriber", (_CLASSIC, _CONSUMER, _STREAMS), _CODE, _NOTICE,
        "While a group has members, offsets are committed only for topics that a member subscribes to or has, in "
        "a streams group for topics that its topology reads.")

    # Records.
    GROUP_OF_TWO_LOGS = ("group_of_two_logs", _ALL, _CODE, _PROTOCOL,
        "A group's records are in one partition, each at its own offset; otherwise logs of several clusters are "
        "mixed.")
    GROUP_IN_WRONG_PARTITION = ("group_in_wrong_partition", (_CLASSIC, *_EPOCHS), _CODE, _PROTOCOL,
        "A group is in the partition of __consumer_offsets that the hash of its id gives. Judged where the "
        "metadata log is whole.")
    LOG_LEADER_EPOCH_WENT_BACK = ("log_leader_epoch_went_back", _ALL, "KIP-101", _PROTOCOL,
        "The leader epoch of the batches of a log partition never goes back.")
    TIME_WENT_BACK = ("time_went_back", _ALL, _CODE, _NOTICE,
        "Timestamps of a group's records go back by at most 10 s, which clocks of two brokers may differ.")
    UNKNOWN_RECORD_TYPE = ("unknown_record_type", _ALL, "KIP-915", _NOTICE,
        "Each record type is known. A type written by a newer broker is left out of the state.")
    # fmt: on

    @property
    def in_share_state(self) -> bool:
        """Whether the records that break it lie in the share state log."""
        return self in _OF_SHARE_STATE


_OF_SHARE_STATE = frozenset(
    (
        Rule.SHARE_UPDATE_WITHOUT_SNAPSHOT,
        Rule.SHARE_SNAPSHOT_EPOCH_WRONG,
        Rule.SHARE_STATE_EPOCH_WENT_BACK,
        Rule.SHARE_LEADER_EPOCH_WENT_BACK,
        Rule.SHARE_SETTLED_AGAIN,
        Rule.SHARE_BATCH_WRONG,
        Rule.SHARE_STATE_NEW,
        Rule.SHARE_START_OFFSET_WENT_BACK,
        Rule.SHARE_TOMBSTONE_WITHOUT_STATE,
    )
)


NOTICES: Final = frozenset(rule for rule in Rule if rule.severity is Severity.NOTICE)
"""Rules that clients of a healthy broker may violate, or that newer brokers do not have."""


def document_rows() -> list[dict[str, str]]:
    """Return the rules as text for the docs: one dict per rule with Rule, Groups, Says, Source and Severity."""
    return [
        {
            "Rule": rule.value,
            "Groups": _NAMED.get(rule.types) or ", ".join(group_type.lower() for group_type in rule.types),
            "Says": rule.says,
            "Source": rule.source,
            "Severity": rule.severity.value,
        }
        for rule in Rule
    ]
