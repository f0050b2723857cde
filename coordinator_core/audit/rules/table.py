"""The table of rules: what each says, for which groups, its source, and how bad a violation is.

Sources are the KIPs; where no KIP states a rule, Kafka's own code ("4.3.1", from the coordinator and its traces); for
Connect groups the proposal of Connect on KIP-848.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from coordinator_core.groups.group import GroupType
from coordinator_core.groups.violations import Rule


class Severity(StrEnum):
    """How bad the violation of a rule is."""

    SAFETY = "safety"
    """Two members may work on the same partition, or commits may be lost: data is at stake."""
    PROTOCOL = "protocol"
    """The coordinator, or the log, does what the protocol does not allow."""
    NOTICE = "notice"
    """Unusual: the broker allows it, or a newer broker wrote it."""


class RuleEntry(NamedTuple):
    """One line of the table."""

    rule: Rule
    types: tuple[GroupType, ...]
    says: str
    source: str
    severity: Severity


_CLASSIC, _CONSUMER, _SHARE = GroupType.CLASSIC, GroupType.CONSUMER, GroupType.SHARE
_STREAMS, _CONNECT = GroupType.STREAMS, GroupType.CONNECT
_RECONCILED = (_CONSUMER, _STREAMS)
_EPOCHS = (_CONSUMER, _SHARE, _STREAMS)
_EPOCHS_AND_CONNECT = (*_EPOCHS, _CONNECT)
_ALL = (_CLASSIC, *_EPOCHS_AND_CONNECT)
_SAFETY, _PROTOCOL, _NOTICE = Severity.SAFETY, Severity.PROTOCOL, Severity.NOTICE

_KIP848 = "KIP-848"
_KIP932 = "KIP-932"
_KIP1071 = "KIP-1071"
_KIP345 = "KIP-345"
_CODE = "4.3.1"
_CONNECT_KIP848 = "Connect on KIP-848"

RULES: tuple[RuleEntry, ...] = (
    # Epochs.
    RuleEntry(
        Rule.EPOCH_WENT_BACK,
        _EPOCHS_AND_CONNECT,
        "The group epoch never goes back while the group lives.",
        _KIP848,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.EPOCH_SKIPPED,
        _EPOCHS_AND_CONNECT,
        "Each group epoch is the one before plus one.",
        _KIP848,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.EPOCH_REPEATED,
        _EPOCHS_AND_CONNECT,
        "Group metadata is written only for a new epoch.",
        _KIP848,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.ASSIGNMENT_EPOCH_WENT_BACK,
        _EPOCHS_AND_CONNECT,
        "The assignment epoch never goes back.",
        _KIP848,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.ASSIGNMENT_EPOCH_AHEAD,
        _EPOCHS_AND_CONNECT,
        "The assignment epoch is not above the group epoch.",
        _KIP848,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.ASSIGNMENT_EPOCH_NOT_THE_GROUPS,
        _EPOCHS,
        "A target is computed for the group epoch at that time; between targets the assignment epoch may be lower.",
        f"{_KIP848}, {_CODE}",
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.ASSIGNMENT_OVERDUE,
        (_CONSUMER, _SHARE),
        "Once a member moves, the assignment epoch is lower than the group epoch for at most the highest assignment "
        "interval: 15 s, unless the broker's bound (such as group.consumer.max.assignment.interval.ms) was raised.",
        "KIP-1263",
        _NOTICE,
    ),
    RuleEntry(
        Rule.MEMBER_EPOCH_WENT_BACK,
        _EPOCHS_AND_CONNECT,
        "A member's epoch never goes back, unless it leaves (-1, -2) or joins again (0).",
        _KIP848,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.MEMBER_EPOCH_AHEAD,
        _EPOCHS_AND_CONNECT,
        "A member's epoch is not above the group epoch.",
        _KIP848,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.MEMBER_EPOCH_AHEAD_OF_TARGET,
        _EPOCHS_AND_CONNECT,
        "A member's epoch is not above the assignment epoch.",
        _KIP848,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.MEMBER_EPOCH_NOT_THE_TARGETS,
        _EPOCHS,
        "A member's epoch stays as it was, or becomes the assignment epoch (streams groups: or the next one).",
        f"{_KIP848}, {_CODE}",
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.MEMBER_EPOCH_NOT_POSITIVE,
        _EPOCHS,
        "A member's epoch is positive. Only a static member has other ones: -2 while it is away, 0 for the moment in "
        "which it takes the place of the one before.",
        f"{_KIP848}, {_CODE}",
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.PREVIOUS_EPOCH_WRONG,
        _EPOCHS,
        "The previous member epoch is the epoch that the member had before.",
        _KIP848,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.METADATA_HASH_WRONG,
        _EPOCHS,
        "The metadata hash of an epoch is that of a version of the subscribed topics, at most half a minute out of "
        "date. It is judged only where the metadata log is whole.",
        _CODE,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.PARTITION_EPOCH_WRONG,
        _RECONCILED,
        "A partition's assignment epoch is not above the epoch of its member.",
        "KIP-1251",
        _PROTOCOL,
    ),
    # Members and what they have.
    RuleEntry(
        Rule.UNKNOWN_MEMBER_STATE,
        _EPOCHS,
        "A member is in one of the states of its protocol.",
        _KIP848,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.STATE_AGAINST_ASSIGNMENT,
        _RECONCILED,
        "A member has partitions or tasks to revoke if, and only if, its state says so; it waits for others only if it "
        "lacks something of its target.",
        _KIP848,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.ASSIGNED_OUTSIDE_TARGET,
        _EPOCHS_AND_CONNECT,
        "A member is assigned only what is in its target, apart from what it already had.",
        _KIP848,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.ASSIGNED_NOT_THE_TARGET,
        _EPOCHS,
        "A stable member at the epoch of its target has its whole target and nothing else; one that waits for others "
        "lacks only what they have. Topics that it does not subscribe to are left out.",
        _KIP848,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.ASSIGNED_WHILE_REVOKING,
        _RECONCILED,
        "Nothing is assigned to a member and pending revocation from it at the same time.",
        _KIP848,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.REVOKING_NOT_OWNED,
        _RECONCILED,
        "A member is asked to revoke only partitions or tasks that it has.",
        _KIP848,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.DROPPED_WITHOUT_REVOCATION,
        _RECONCILED,
        "A member keeps what it has and its target holds; what else it has to give up it is asked to revoke at once.",
        f"{_KIP848}, {_CODE}",
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.UNIT_TWICE_IN_RECORD,
        (_CLASSIC, *_EPOCHS_AND_CONNECT),
        "No record, and no assignment of a member of a classic group, lists a partition, connector or task twice.",
        _KIP848,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.ASSIGNED_TO_TWO,
        (_CLASSIC, _CONSUMER, _STREAMS, _CONNECT),
        "A partition, active task or connector is assigned to only one member (share groups: to any number; classic "
        "groups: checked for the protocols that are known).",
        f"{_KIP848}, {_KIP1071}",
        _SAFETY,
    ),
    RuleEntry(
        Rule.ASSIGNED_BEFORE_REVOKED,
        (*_RECONCILED, _CONNECT),
        "What a member is asked to revoke is assigned to another member only after it acknowledged the revocation.",
        _KIP848,
        _SAFETY,
    ),
    RuleEntry(
        Rule.TARGET_INCOMPLETE,
        _EPOCHS,
        "When a target is installed, each member has a target record, were it empty.",
        _CODE,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.REPLACEMENT_NOT_A_COPY,
        _RECONCILED,
        "A static member that takes the place of another begins with a copy of its target.",
        f"{_KIP345}, {_CODE}",
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.TARGET_OF_TWO,
        (_CONSUMER, _STREAMS, _CONNECT),
        "A complete target assigns each partition, active task or connector to only one member.",
        _KIP848,
        _SAFETY,
    ),
    RuleEntry(
        Rule.TASK_TWICE_IN_PROCESS,
        (_STREAMS,),
        "No process is assigned a task that it already has, whether as active, standby or warm-up task.",
        _KIP1071,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.TASK_OUTSIDE_TOPOLOGY,
        (_STREAMS,),
        "Each task belongs to a subtopology of the group's topology.",
        _KIP1071,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.TOPOLOGY_EPOCH_WRONG,
        (_STREAMS,),
        "The topology epoch goes up by one with each new topology; one epoch has one topology. A group with members "
        "has one, which is that of a member at first; no later one was validated.",
        _KIP1071,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.INTERNAL_TOPIC_CONFIG_DIFFERS,
        (_STREAMS,),
        "An internal topic has the configuration that the topology gives it. The broker goes on if it has another one; "
        "it is looked at when the topology or the topics of the group change.",
        _KIP1071,
        _NOTICE,
    ),
    RuleEntry(
        Rule.SHARE_STATE_MISSING,
        (_SHARE,),
        "A target contains only partitions whose share state is initialised.",
        _KIP932,
        _PROTOCOL,
    ),
    # The share state log: the detail names its partition, the position is an offset there.
    RuleEntry(
        Rule.SHARE_UPDATE_WITHOUT_SNAPSHOT,
        (_SHARE,),
        "An update of a share partition follows a snapshot.",
        _KIP932,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.SHARE_SNAPSHOT_EPOCH_WRONG,
        (_SHARE,),
        "The first snapshot of a share partition has epoch 0, each one after it the next; an update has that of the "
        "snapshot before it.",
        f"{_KIP932}, {_CODE}",
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.SHARE_STATE_EPOCH_WENT_BACK,
        (_SHARE,),
        "The state epoch of a share partition never goes back: a write with an older one is fenced.",
        _KIP932,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.SHARE_LEADER_EPOCH_WENT_BACK,
        (_SHARE,),
        "The leader epoch of a share partition goes back to 0 only where its state is initialised again or altered: a "
        "write of an older leader is fenced.",
        f"{_KIP932}, {_CODE}",
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.SHARE_SETTLED_AGAIN,
        (_SHARE,),
        "A record that is acknowledged or archived is not delivered again.",
        _KIP932,
        _SAFETY,
    ),
    RuleEntry(
        Rule.SHARE_BATCH_WRONG,
        (_SHARE,),
        "State batches have offsets from the start offset on, a delivery state (available, acknowledged, archived) and "
        "a delivery count; those of one record do not overlap.",
        f"{_KIP932}, {_CODE}",
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.SHARE_START_OFFSET_WENT_BACK,
        (_SHARE,),
        "An update does not move the start offset back; two writes that overtake each other do (pull request 23074).",
        _CODE,
        _NOTICE,
    ),
    RuleEntry(
        Rule.SHARE_TOMBSTONE_WITHOUT_STATE,
        (_SHARE,),
        "Only the state of a share partition that has some is deleted.",
        _CODE,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.SHARE_STATE_LOST,
        (_SHARE,),
        "A partition keeps its share state as long as its topic exists and is not being deleted.",
        _KIP932,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.REGEX_TOPICS_WRONG,
        (_CONSUMER,),
        "A regular expression is resolved to topics that match it and exist, in the version of the topics that the "
        "record names.",
        _KIP848,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.REGEX_TOPIC_LOST,
        (_CONSUMER,),
        "A regular expression is resolved to the topics of before, as far as they exist. A broker leaves out topics "
        "that the member may no longer describe (ACLs).",
        _KIP848,
        _NOTICE,
    ),
    RuleEntry(
        Rule.WORK_OUTSIDE_GROUP,
        (_CONNECT,),
        "A target contains only connectors and tasks that the group had in the target's epoch.",
        _CONNECT_KIP848,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.WORK_UNASSIGNED,
        (_CONNECT,),
        "A target assigns every connector and task. Only the work of workers that left may wait, and only until the "
        "scheduled rebalance delay is over.",
        _CONNECT_KIP848,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.INSTANCE_ID_OF_TWO,
        (_CLASSIC, _CONSUMER, _STREAMS),
        "An instance id belongs to only one member.",
        _KIP345,
        _SAFETY,
    ),
    # What is written together.
    RuleEntry(
        Rule.MEMBER_REMOVED_IN_PART,
        _EPOCHS,
        "The tombstones of a member, of its current assignment and of its target assignment are written together.",
        _CODE,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.MEMBER_REMOVED_WITH_ASSIGNMENT,
        _EPOCHS_AND_CONNECT,
        "A member's assignments are removed before the member.",
        _CODE,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.DEPARTURE_WITHOUT_EPOCH,
        _EPOCHS_AND_CONNECT,
        "A member that leaves opens a new group epoch, unless a static member takes its place.",
        f"{_KIP848}, {_KIP345}",
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.JOIN_WITHOUT_EPOCH,
        _EPOCHS_AND_CONNECT,
        "A member that joins with topics opens a new group epoch, unless it takes the place of a static member.",
        f"{_KIP848}, {_KIP345}",
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.JOIN_WITHOUT_ASSIGNMENT,
        _EPOCHS_AND_CONNECT,
        "A member that joins gets a current assignment in the same operation.",
        _CODE,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.TARGET_WITHOUT_EPOCH,
        _EPOCHS,
        "Target assignments are followed by the target assignment metadata (the copy for a static member is not).",
        _CODE,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.ASSIGNMENT_WITHOUT_MEMBER,
        _EPOCHS_AND_CONNECT,
        "A current assignment belongs to a member of the group.",
        _CODE,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.TARGET_WITHOUT_MEMBER,
        _EPOCHS_AND_CONNECT,
        "A target assignment belongs to a member of the group.",
        _CODE,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.TOMBSTONE_WITHOUT_VALUE,
        _EPOCHS_AND_CONNECT,
        "A tombstone removes something that exists.",
        _CODE,
        _NOTICE,
    ),
    RuleEntry(
        Rule.GROUP_REMOVED_WITH_MEMBERS,
        _EPOCHS_AND_CONNECT,
        "A group is removed only when it has no members.",
        _KIP848,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.GROUP_REMOVED_IN_PART,
        _EPOCHS,
        "The target assignment metadata is removed just before the group, and only with it.",
        _CODE,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.TYPE_CHANGED_WITHOUT_TOMBSTONE,
        _ALL,
        "A group with members changes its type only after the group of the old type was removed.",
        _KIP848,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.TYPE_CHANGED_IN_PART,
        (_CLASSIC, _CONSUMER),
        "A group that is removed while it has members continues as another type in the same batch: a consumer group "
        "with all its members that use the classic protocol (classic Connect groups: in another log, which is not "
        "compared).",
        _KIP848,
        _SAFETY,
    ),
    RuleEntry(
        Rule.CONVERSION_EPOCH_WRONG,
        (_CLASSIC, _CONSUMER),
        "A group with members that changes its type continues at its generation or assignment epoch, or above it.",
        _KIP848,
        _PROTOCOL,
    ),
    # Classic groups.
    RuleEntry(
        Rule.GENERATION_WENT_BACK,
        (_CLASSIC,),
        "The generation never goes back while the group lives.",
        "KIP-62",
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.GENERATION_CHANGED_IN_PLACE,
        (_CLASSIC,),
        "A generation that is written again differs only in a static member's new id; all keep their assignments.",
        _KIP345,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.MEMBER_LISTED_TWICE,
        (_CLASSIC,),
        "A generation lists each member once.",
        "KIP-62",
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.OWNED_NOT_ASSIGNED,
        (_CLASSIC,),
        "What a member says it has when it joins, of the last generation, was assigned to it then, or is what it said "
        "before, if it never saw that assignment (consumers that name the generation, Connect workers).",
        "KIP-792, KIP-415",
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.LEADER_WITHOUT_MEMBER,
        (_CLASSIC,),
        "The leader is a member.",
        "KIP-62",
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.PROTOCOL_AGAINST_MEMBERS,
        (_CLASSIC,),
        "A generation with members has a protocol and a leader; an empty one has neither.",
        "KIP-62",
        _PROTOCOL,
    ),
    # Counts.
    RuleEntry(
        Rule.COUNT_IMPLAUSIBLE,
        (_CLASSIC, _CONSUMER, _STREAMS),
        "A record claims no more partitions of a topic, and no more tasks of a connector, than clusters have (settings "
        "audit.most_partitions_of_topic and audit.most_tasks_of_connector).",
        "this software",
        _NOTICE,
    ),
    # Offsets.
    RuleEntry(
        Rule.COMMIT_IN_SHARE_GROUP,
        (_SHARE,),
        "A share group with members has no offset commits.",
        _KIP932,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.COMMIT_BY_NO_OWNER,
        (_CLASSIC, _CONSUMER),
        "Offsets are committed only for partitions that a member has. The broker checks the member and its epoch, not "
        "the partition; the record contains neither member nor epoch.",
        "KIP-1251",
        _NOTICE,
    ),
    # Records.
    RuleEntry(
        Rule.GROUP_OF_TWO_LOGS,
        _ALL,
        "A group's records are in one partition, each at its own offset; otherwise logs of several clusters are mixed.",
        _CODE,
        _PROTOCOL,
    ),
    RuleEntry(
        Rule.UNKNOWN_RECORD_TYPE,
        _ALL,
        "Each record type is known. A type written by a newer broker is left out of the state.",
        "KIP-915",
        _NOTICE,
    ),
)

RULE: dict[Rule, RuleEntry] = {entry.rule: entry for entry in RULES}
"""The table by rule."""


def document_rows() -> list[dict[str, str]]:
    """Return the table as text for the docs: one dict per rule with Rule, Groups, Says, Source and Severity."""
    return [
        {
            "Rule": entry.rule.value,
            "Groups": ", ".join(each.lower() for each in entry.types),
            "Says": entry.says,
            "Source": entry.source,
            "Severity": entry.severity.value,
        }
        for entry in RULES
    ]
