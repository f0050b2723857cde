"""What a compacted or damaged log proves about a moment, key by key.

Compaction keeps the newest record of each key, and the offsets of what it removed stay empty. A moment is an end offset
of a log partition. Of a key, let the last record be the last one below the moment that is still there, and a later
record one at or above the moment:

=============  ========================================================  ===============================================
later record   offsets missing between the last record and the moment    what the key was at the moment
=============  ========================================================  ===============================================
none           any                                                       the last record; without one: not there
there          none                                                      the last record; without one: not there
there          some                                                      unknown: a record between them may have been
                                                                         removed because the later one came
=============  ========================================================  ===============================================

Offsets that were lost (a missing file, damaged bytes) differ in one thing: the last record may be outdated even where
no later record follows, as what is missing was not replaced by something newer. A key without any record left may have
been there all the same, if its tombstone was removed since: so a list of what was there at a moment is whole only where
no offset below the moment is missing, or no record follows.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.records import Fields

NO_OFFSET = -1
AFTER_END = 1 << 62
"""Stands for the offsets of what may have been written after the end of the log, and before a later moment."""
UNTIMED = AFTER_END - 1
"""Stands for those of records that were perhaps before the moment, which is an offset of another log."""


@dataclass(frozen=True, slots=True)
class LogGaps:
    """What is missing of a log partition, as seen from a moment.

    ``missing`` is the highest offset below the moment that has no record, ``lost`` the highest one that is gone by
    something else than compaction; -1: there is none. ``lost_later``: offsets from the moment on are lost. ``at_end``:
    no record follows the moment.
    """

    missing: int = NO_OFFSET
    lost: int = NO_OFFSET
    lost_later: bool = False
    at_end: bool = True

    def proves(self, last: int, *, is_followed: bool) -> bool:
        """Whether a key was at the moment what its last record, at offset ``last`` (-1: there is none), says.

        ``is_followed``: a later record of the key is there.
        """
        if last >= self.missing:  # equal only for -1: a missing offset is never that of a record
            return True
        return last >= self.lost and not is_followed and not self.lost_later

    def is_short_of(self, end: int | None) -> bool:
        """Whether the log, as far as it is there, does not reach this end offset of the moment (None: it has none)."""
        return end is not None and end > 0 and self.at_end and self.lost == end - 1

    @property
    def lists_all(self) -> bool:
        """Whether a list of what was there at the moment is whole: nothing can have left no trace."""
        return self.missing < 0 or (self.lost < 0 and self.at_end and not self.lost_later)

    def after_end(self) -> "LogGaps":
        """Return the gaps as seen from a moment after the last record of the logs: anything may have been since."""
        return LogGaps(AFTER_END, AFTER_END)

    @property
    def is_after_end(self) -> bool:
        """Whether the moment is after the last record of the logs."""
        return self.lost == AFTER_END

    def untimed(self) -> "LogGaps":
        """Return the gaps where it is not known which of the last records were written before the moment."""
        return LogGaps(UNTIMED, UNTIMED)

    @property
    def is_untimed(self) -> bool:
        """Whether it is not known which of the last records were written before the moment."""
        return self.lost == UNTIMED

    def with_unreadable(self, offset: int) -> "LogGaps":
        """Return the gaps with a record at ``offset`` (-1: none) of which nothing is known, not even its key."""
        return replace(self, missing=max(self.missing, offset), lost=max(self.lost, offset))

    @property
    def whole_from(self) -> int:
        """The first offset from which no offset is missing up to the moment."""
        return self.missing + 1


class RecordKey(NamedTuple):
    """The key of a record of a group: its type, and the member or regular expression that it is about, if any."""

    type: int
    about: str = ""


def record_key(record_type: int, key: Fields) -> RecordKey:
    """The key of a record about a group, from its decoded key."""
    return RecordKey(record_type, key.get("memberId") or key.get("regularExpression") or "")


@dataclass(frozen=True, slots=True)
class Certainty:
    """What is known of a group at a moment.

    ``exists``: the group was there for certain; otherwise it may have been. ``unknown`` are the keys of its records
    that may have had another value, or a value at all, ``unknown_members`` the members that may have been there.
    ``all_members``: no other member can have been there.

    ``unknown_offsets`` are partitions whose committed offset may have been another, ``all_offsets`` says that no other
    partition had one, and ``transactions_are_known`` that no other offsets were pending in open transactions.
    ``commits_hold`` is False where a dump does not show in which transactions the committed offsets are: these may have
    been aborted, or be open. ``may_have_moved``: another log shows the group, too.
    """

    exists: bool = True
    unknown: frozenset[RecordKey] = frozenset()
    unknown_members: tuple[str, ...] = ()
    all_members: bool = True
    unknown_offsets: frozenset[TopicPartition] = frozenset()
    all_offsets: bool = True
    transactions_are_known: bool = True
    commits_hold: bool = True
    may_have_moved: bool = False

    def knows(self, record_type: int, about: str = "") -> bool:
        """Whether the group's state has what this key was at the moment, or that it was not there."""
        return RecordKey(record_type, about) not in self.unknown

    @property
    def members_are_known(self) -> bool:
        """Whether the members that are there are all that there were."""
        return self.all_members and not self.unknown_members


CERTAIN = Certainty()


class CommitRecords(NamedTuple):
    """The offsets of the records about one partition of a group, as seen from a moment; -1: there is none.

    ``last`` is the commit or tombstone that counts, ``pending`` the last commit of a transaction that was open.
    ``is_followed``: a later record about the partition is there. ``is_decided_later``: the transaction was not aborted
    after the moment, so that its commit may have been the reason to remove older ones.
    """

    last: int = NO_OFFSET
    pending: int = NO_OFFSET
    is_followed: bool = False
    is_decided_later: bool = False

    def is_known(self, gaps: LogGaps) -> bool:
        """Whether the offset that was committed, and the one that was pending, are known."""
        is_followed = self.is_followed or (self.pending >= 0 and self.is_decided_later)
        return gaps.proves(self.last, is_followed=is_followed) and (
            self.pending < 0 or gaps.proves(self.pending, is_followed=self.is_followed)
        )
