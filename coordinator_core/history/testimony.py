"""The testimony of a log on one group: how much of its past was seen, and what rows lack that rest on more than that.

What a row says of the past is read here, with the row in hand: what is not known of it, the row lacks from then on.

Compaction keeps the last record of each key among those that it cleaned. So behind a hole that it made the state is
not certain while the cleaned part goes on, as the last record of a key may lie ahead; it is from the first record on
that replaces one behind the hole, for the cleaner would have removed the one replaced. A tombstone may have been
removed too, which nothing shows: a key without a record is taken to be absent. Where records were lost, and not
replaced, nothing makes up for them.
"""

import json
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

from coordinator_core.history.coverage import Coverage
from coordinator_core.history.grounds import CONVERTED_ELSEWHERE, MAY_GO_ON, NO_TOMBSTONE, lost_offsets
from coordinator_core.records import CoordinatorRecord, LogPosition, RecordType

AnyRow = TypeVar("AnyRow")


class Resting(Protocol):
    """A row that is not final, and in words the first thing that is not known of what it rests on."""

    missing: str | None


class Opening(Resting, Protocol):
    """A row about the members of an epoch; ``knows_members``: those that it has are all there were."""

    knows_members: bool


def lack(row: Resting, missing: str | None) -> None:
    """Note that a row lacks something, in words; None: it does not. Of several things it names the first."""
    row.missing = row.missing or missing


def lack_members(row: Opening, missing: str) -> None:
    """Note that a row lacks something, and that there may have been members that it does not have."""
    lack(row, missing)
    row.knows_members = False


def told_missing(missing: str | None) -> dict[str, Any]:
    """Return what a final row says of what it lacks; None: nothing."""
    return {"missing": missing, "history_complete": missing is None}


def lacking(row: AnyRow, missing: str | None) -> AnyRow:
    """Return a final row without a part of what it rests on; None: it lacks nothing more."""
    if missing is None:
        return row
    known: Any = row
    told = {"missing": known.missing or missing} if "missing" in known._fields else {}
    return cast("AnyRow", known._replace(history_complete=False, **told))


@dataclass(slots=True)
class SeenPast:
    """What was seen of one group's records up to the last one.

    ``missing`` names the records that may be missing, as long as the group's state may lack something of them; None:
    the state is certain. ``doubt`` is the same, until an epoch has opened since. ``is_unsettled``: what members gave up
    before is not known, so that it cannot be told what becomes of it. ``is_lost``: records are missing that compaction
    did not remove, or may not have.

    ``first`` is the group's first record since the last hole, ``last`` the offset of its last one; ``is_first_ever``
    says that no record of the group, or its end, came before ``first``, nor shows it that one did: a tombstone, or how
    the regex of a member is resolved. ``written`` are the keys of its records since then, as long as none was written
    twice. ``is_dirty``: the log holds a record that a later one replaced, and so no compaction came there.
    ``born_behind`` are the missing records behind which the group seems to have begun.
    """

    first: LogPosition | None = None
    last: int | None = None
    is_first_ever: bool = True
    missing: str | None = None
    doubt: str | None = None
    is_unsettled: bool = False
    is_lost: bool = False
    is_dirty: bool = False
    born_behind: str | None = None
    written: dict[str, bool] = field(default_factory=dict)

    def rest(self, row: Resting, otherwise: str | None = None) -> None:
        """Note that a row says what was between the last epoch and now; ``otherwise``: what it lacks if nothing is
        known to be missing of that.
        """
        known = None if row.missing == CONVERTED_ELSEWHERE else row.missing  # the other log may take that away
        row.missing = known or self.doubt or otherwise or row.missing

    def open(self, row: Opening, between: str | None) -> None:
        """Note that a row says what was between the last epoch and one that opens, and who is in the group then;
        ``between``: what is known to be missing between the two.
        """
        lack(row, between or self.doubt)
        row.knows_members = self.missing is None

    def read_epoch(self, row: Resting, epoch: int | None) -> int | None:
        """Return the last epoch for a row that says that it was open now: others may have opened in lost records."""
        if self.doubt is None or not self.is_lost:
            return epoch
        self.rest(row)
        return None

    def stay(self, member: Resting, missing: str | None) -> None:
        """Note that a member of a classic group is there before and behind records, which ``missing`` names.

        Lost ones, not those that compaction removed, may be of a conversion to a group with epochs and of one back,
        over which a member keeps its id. It takes a generation of its own: the one behind is not the next one then.
        """
        lack(member, missing if self.is_lost else None)

    def saw_since(self, at: LogPosition, *, lasts: bool = False) -> bool:
        """Whether no record can be missing behind the one with which something began.

        What ``lasts`` is known by the last record of its key, which compaction leaves.
        """
        is_whole = self.first is None or self.is_first_ever or at.offset >= self.first.offset
        return is_whole or (lasts and not self.is_lost)

    def saw_take(self, member: Resting | None, *, has_more: bool) -> bool:
        """Whether what a member takes now begins with that; ``member`` is None where no record shows it.

        It is the first thing that the member is seen to have, unless it ``has_more``.
        """
        return self.missing is None and (has_more or (member is not None and member.missing is None))

    def saw_before(self, at: LogPosition) -> bool:
        """Whether the last record before the one with which something began is there."""
        return self.first is not None and self.first.offset < at.offset

    def saw_members(self, *, known: bool) -> bool:
        """Whether somebody is in a group whose open epoch has members, who were ``known`` when it opened or not.

        Whom it lost may have left in lost records, all of them. Compaction leaves the last record of each.
        """
        return known or not self.is_lost

    def follow(self, record: CoordinatorRecord, coverage: Coverage, *, from_start: bool, has_ended: bool) -> bool:
        """Take in the group's next record; return whether records may be missing before it.

        ``from_start``: the log was read from its start, compacted or not. ``has_ended``: the group had ended before.
        """
        partition, offset = record.at.partition, record.at.offset
        begin = 0 if self.last is None else self.last
        is_hole = not coverage.unbroken(partition, begin, offset)
        if is_hole:
            known = coverage.cause_of_hole(partition, begin, offset)
            is_lost = self.is_dirty or not from_start or known is not None
            self.lose(known or lost_offsets(begin, offset), is_lost=is_lost)
        if is_hole or self.last is None:
            is_new = (self.last is None or has_ended) and record.type != RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION
            # One operation writes a batch: what is missing of it came before this record, and was of this group.
            begins_batch = record.batch < 0 or coverage.unbroken(partition, record.batch, offset)
            self.is_first_ever, self.first = is_new and begins_batch and record.value is not None, record.at
        self.last = offset
        if not self.is_dirty or self.missing is not None:
            self._note_key(record)
        return is_hole

    def lose_at(self, at: LogPosition, missing: str) -> None:
        """Take in a record of the group that says something unknown; ``missing`` names it."""
        self.lose(missing)
        self.first, self.is_first_ever = at, False

    def lose(self, missing: str, *, is_lost: bool = True) -> None:
        """Take in that records may be missing here, which ``missing`` names."""
        self.is_lost = self.is_lost or is_lost
        self.missing = self.doubt = missing
        self.is_unsettled = True
        self.born_behind = None
        self.written.clear()

    def _note_key(self, record: CoordinatorRecord) -> None:
        # As text, which can be stored, with the fields in one order, whatever order a record has them in.
        key = json.dumps([record.type, record.key], sort_keys=True)
        if key not in self.written:
            self.written[key] = True
            return
        self.is_dirty = True
        if not self.is_lost:
            self.missing = None
        if self.missing is None:
            self.written.clear()

    def end_unseen(self) -> None:
        """Take in that the group ended, and that no record shows how."""
        if self.missing is None:
            self.lose(self.doubt or NO_TOMBSTONE)

    def begin_unseen(self) -> bool:
        """Take in that the group was there before it seemed to begin; return whether records are missing there."""
        missing = self.born_behind
        if missing is not None:
            self.lose(missing)
        return missing is not None

    def begins(self, at: LogPosition, batch: int, coverage: Coverage | None, *, is_first: bool) -> bool:
        """Whether nothing of the group was before the operation under way; ``is_first``: its epoch is a group's first.

        Then, too, the whole operation has to be there, which has this ``batch`` (negative: not known).
        """
        if self.doubt is not None and self.missing is None:
            return is_first and self.doubt != MAY_GO_ON  # then it may be the next one of the life before
        if coverage is None:
            return is_first
        if self.missing is not None:
            if self.first is None or not (is_first and self.is_first_ever):
                return False
            if not coverage.unbroken(at.partition, batch if batch >= 0 else self.first.offset, at.offset):
                return False
            self.begin_life(at)
        return True

    def begin_life(self, at: LogPosition) -> None:
        """The group's whole past was seen: it begins at a record, or ended. What is missing behind that, still is."""
        if self.first is not None and self.first.offset > at.offset:
            return
        self.born_behind = self.missing
        self.missing, self.doubt, self.is_unsettled, self.is_lost = None, None, False, False
        self.written.clear()

    def doubt_life(self) -> None:
        """Take in that the group's life may go on from another one; its records are there, and do not say so."""
        self.doubt, self.is_unsettled = MAY_GO_ON, True

    def open_epoch(self) -> None:
        """An epoch has opened: what came before it has been told."""
        self.doubt = self.missing

    def settle(self) -> None:
        """Everything has an owner: nothing of what was given up before is left to count."""
        if self.missing is None:
            self.is_unsettled = False

    def know_state(self, *, gives_all: bool = False, reads_all: bool = True) -> None:
        """A record that holds the whole state of the group (classic groups): the next one can be compared with it.

        ``gives_all``: all that was taken away before has an owner again. The same generation may be written again, and
        what it took away is no better known by that. ``reads_all``: what members have by it can be read.
        """
        self.is_unsettled = self.doubt is not None or (self.is_unsettled and not gives_all) or not reads_all
        self.missing, self.doubt, self.is_lost = None, None, False
