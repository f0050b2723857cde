"""What is known of groups, what each kind of knowledge rests on, and what takes it away: the table of knowledge.

``docs/limits.md`` has the table. Rows say in ``missing`` what they lack: all of these words are here, each with what
takes the knowledge away, and a test compares the code with that. What reads the past notes them; places that give one
by themselves are few, and a test names each with its reason. Log files and tables are asked by the same rules:

- ``groups.certainty.LogGaps`` decides what a key was at a moment, and which keys were there at all.
- ``history.testimony.SeenPast`` decides what a state of a group is compared with, and what lies between two records.
- ``history.lost_records.LostRecords`` decides what still lasts.
- ``history.missing_ends`` decides whether a partition goes on behind what there is of it.
- ``history.knowledge.Knowledge`` says it in the words of a warning.
"""

from typing import Final, NamedTuple

UNREADABLE: Final = "cannot be decoded"
"""What is said of records that no schema describes: of a newer broker, of an early access, or damaged."""

LOST: Final = "records between offsets {} and {}"
LOST_END: Final = "records from offset {} on"
UNREAD: Final = f"the record at offset {{}}, which {UNREADABLE}"
UNREAD_SINCE: Final = f"records up to offset {{}}, which {UNREADABLE}"
LOST_OF_LOG: Final = "records of {} after offset {}, up to offset {}"
LOST_SINCE_BEGINNING: Final = "records of {} from the beginning of the log, up to offset {}"
NO_SNAPSHOT_BEFORE: Final = "the snapshot that this update follows"
NOT_SEEN_TO_JOIN: Final = "the log does not show when it joined"
NOT_SHOWN_BEFORE: Final = "the log does not show the group before epoch {}"
NOT_SHOWN_BEFORE_GENERATION: Final = "the log does not show the group before generation {}"
NOT_IN_THE_LOG: Final = "{} not in the log"
NEVER_COMPLETED: Final = "{} never completed, or not recorded"
TAKEN_AWAY: Final = "what generation {} took away"
UNREAD_ASSIGNMENT: Final = f"what each member has: an assignment {UNREADABLE}"
UNREAD_ASSIGNMENT_BEFORE: Final = f"what each member had in the generation before: an assignment {UNREADABLE}"
GIVEN_UP: Final = "what members gave up before epoch {}"
NOT_SEEN_TO_GO_ON: Final = "whether the member went on in the consumer group"
NO_TOMBSTONE: Final = "how the group ended: the log has no tombstone of it"
CAUSES_NOT_TOLD: Final = "which changes of members came with the epoch: records without times do not say"
JOINS_NOT_TOLD: Final = "who joined with the next epoch, and in whose place: records without times do not say"
MAY_GO_ON: Final = "whether the group was converted, or deleted and created again: records without times do not say"
NO_TIMES: Final = "when it began, how long anything took, and what changed about then: its records have no times"
TOPICS_IN_DOUBT: Final = "whether partitions that were given up still had their topics: the metadata log does not say"
CONVERTED_ELSEWHERE: Final = (
    "epochs are skipped where no records are missing: the group was moved from the classic protocol, which the other "
    "log has to show"
)
"""What is missing of a Connect group by its own log; with the log of classic groups nothing may be missing."""
MAY_BE_CONVERTED: Final = (
    "whether the group was deleted or moved to the other protocol: what was read of the other log does not show a "
    "group that continues it"
)
MAY_HAVE_MOVED: Final = (
    "when it ended: the other log shows a later epoch of the group, and this log ends before the record of the move"
)


class Loss(NamedTuple):
    """Something that takes knowledge away. ``words``: how rows say it, with ``{}`` for what each row fills in; of none
    only warnings say it.
    """

    what: str
    words: tuple[str, ...] = ()


HOLE: Final = Loss("lost or damaged offsets", (LOST,))
UNREADABLE_RECORD: Final = Loss("a record that cannot be decoded", (UNREAD, UNREAD_SINCE))
UNREADABLE_ASSIGNMENT: Final = Loss(
    "an assignment that cannot be decoded", (UNREAD_ASSIGNMENT, UNREAD_ASSIGNMENT_BEFORE)
)
COMPACTION: Final = Loss(
    "compaction, or a log that begins later",
    (NOT_SEEN_TO_JOIN, NOT_SEEN_TO_GO_ON, NOT_SHOWN_BEFORE, NOT_SHOWN_BEFORE_GENERATION, NO_TOMBSTONE),
)
LOST_EPOCHS: Final = Loss("epochs that the log does not show", (NOT_IN_THE_LOG, NEVER_COMPLETED, TAKEN_AWAY, GIVEN_UP))
NO_SHARE_STATE: Final = Loss(
    "share state before, of which the log has no snapshot", (LOST_OF_LOG, LOST_SINCE_BEGINNING, NO_SNAPSHOT_BEFORE)
)
MISSING_END: Final = Loss("a missing end", (LOST_END,))
END_OF_LOG: Final = Loss("the end of the log")
NOT_GIVEN: Final = Loss("a partition that was not given")
UNCOUNTED: Final = Loss("an unknown number of partitions")
WITHOUT_TIMES: Final = Loss("records without times", (CAUSES_NOT_TOLD, JOINS_NOT_TOLD, MAY_GO_ON, NO_TIMES))
SHORT_METADATA: Final = Loss("a metadata log that is not whole", (TOPICS_IN_DOUBT,))
OTHER_CLUSTER: Final = Loss("a metadata log of another cluster")
APART: Final = Loss("clocks that are apart")
OTHER_LOG: Final = Loss(
    "the other log of groups is not there, or ends before", (CONVERTED_ELSEWHERE, MAY_BE_CONVERTED, MAY_HAVE_MOVED)
)
NO_SNAPSHOT: Final = Loss("no snapshot before and after")
OTHER_FILES: Final = Loss("lines that the given files do not have")


class Ground(NamedTuple):
    """A kind of knowledge: what is known, what that rests on, and what takes it away."""

    known: str
    rests_on: str
    losses: tuple[Loss, ...]


KNOWLEDGE: Final = (
    Ground("what a group, a member or an offset is now", "the last record of its key",
        (HOLE, UNREADABLE_RECORD, UNREADABLE_ASSIGNMENT, MISSING_END, NOT_GIVEN)),
    Ground("what it was at a moment", "the last record of its key before, and that none was removed between",
        (HOLE, UNREADABLE_RECORD, COMPACTION, END_OF_LOG, MISSING_END, NOT_GIVEN)),
    Ground("that something is not there", "each offset of the partition, or the tombstone",
        (HOLE, UNREADABLE_RECORD, MISSING_END, NOT_GIVEN, UNCOUNTED)),
    Ground("that nothing happened between two records: causes, durations, who was there before",
        "each offset between them, and their times",
        (HOLE, UNREADABLE_RECORD, COMPACTION, LOST_EPOCHS, WITHOUT_TIMES)),
    Ground("that something goes on", "each offset up to the last record of the partition",
        (HOLE, UNREADABLE_RECORD, MISSING_END, END_OF_LOG)),
    Ground("that a partition goes on behind its last record",
        "what its groups had to write within a known time, and the metadata log, by which the coordinator stayed; "
        "files beside the segments; end offsets of snapshots",
        (SHORT_METADATA,)),
    Ground("the topics of an epoch, by its metadata hash", "the version of the topics that has the hash",
        (SHORT_METADATA, OTHER_CLUSTER)),
    Ground("the topics of a time", "the metadata log of that time",
        (SHORT_METADATA, OTHER_CLUSTER, APART, WITHOUT_TIMES)),
    Ground("whether a group of workers ended or moved", "both logs of groups", (OTHER_LOG, NOT_GIVEN)),
    Ground("offsets and deliveries of share groups", "the share state log, from the last snapshot of a partition on",
        (HOLE, UNREADABLE_RECORD, NO_SHARE_STATE, NOT_GIVEN)),
    Ground("settings of brokers", "snapshots before and after that show the same", (NO_SNAPSHOT,)),
    Ground("what a broker's line says", "the files of the broker that coordinated the group then", (OTHER_FILES,)),
)  # fmt: skip


def lost_offsets(first: int, last: int) -> str:
    """Return how lost offsets are named where something depends on them."""
    return LOST.format(first, last)


def unreadable_record(offset: int) -> str:
    """Return how a record that cannot be decoded is named where something depends on it."""
    return UNREAD.format(offset)
