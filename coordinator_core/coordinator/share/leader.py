"""The leader of a share partition: it delivers records, locks them, and takes in what became of them (KIP-932).

It does what ``SharePartition`` of Kafka 4.3.1 does, with one difference: a write of state is over at once. Not here:
share sessions, and transactions in the log of the records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from coordinator_core.coordinator.config import GroupConfig
from coordinator_core.coordinator.protocol import ApiError, ErrorCode
from coordinator_core.coordinator.share.in_flight import (
    ACQUIRED,
    AVAILABLE,
    NOBODY,
    InFlight,
    InFlightBatch,
    InFlightRun,
)
from coordinator_core.groups.share.delivery import TERMINAL, DeliveryState, StateBatch

ARCHIVED = int(DeliveryState.ARCHIVED)
FEWEST_BEFORE_THROTTLING = 2
ALONE_FROM = 2
"""With a higher delivery limit than this, the last delivery of a record is of it alone."""


class Acknowledge(IntEnum):
    """What a member says about a record. ``GAP``: there is no record at that offset."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


_STATES = {
    Acknowledge.GAP: ARCHIVED,
    Acknowledge.ACCEPT: int(DeliveryState.ACKNOWLEDGED),
    Acknowledge.RELEASE: AVAILABLE,
    Acknowledge.REJECT: ARCHIVED,
}


class DeliverySettings(NamedTuple):
    """The settings of a group that its share partitions go by."""

    lock_ms: int = 30_000
    delivery_limit: int = 5
    most_locks: int = 2_000
    may_renew: bool = True

    @classmethod
    def of(cls, config: GroupConfig) -> DeliverySettings:
        """Return them from the settings of a group."""
        return cls(
            config.share_record_lock_duration_ms,
            config.share_delivery_count_limit,
            config.share_partition_max_record_locks,
            config.share_renew_acknowledge_enable,
        )

    @property
    def throttled_from(self) -> int:
        """The delivery count from which on fewer records are delivered at a time."""
        return max(FEWEST_BEFORE_THROTTLING, -(-self.delivery_limit // 2))


class Delivery(NamedTuple):
    """Offsets that a member gets, for the ``delivery_count``th time."""

    first: int
    last: int
    delivery_count: int

    @property
    def records(self) -> int:
        """The number of its offsets."""
        return self.last - self.first + 1


class Acknowledgement(NamedTuple):
    """What a member says of offsets ``first`` to ``last``: one type for all of them, or one for each."""

    first: int
    last: int
    types: tuple[int, ...]


class StateWrite(NamedTuple):
    """What the leader has the share coordinator write: start offset, settled records from there on, and batches.

    Kafka has one batch for each offset where offsets have their own states; ``is_split`` says where that is so.
    """

    start_offset: int
    delivery_complete_count: int
    batches: list[StateBatch]
    is_split: list[bool]

    @property
    def pieces(self) -> list[StateBatch]:
        """The batches as Kafka has them."""
        return [
            piece
            for batch, is_split in zip(self.batches, self.is_split, strict=True)
            for piece in (_single_offsets(batch) if is_split else (batch,))
        ]


def _single_offsets(batch: StateBatch) -> Iterator[StateBatch]:
    return (batch._replace(first=offset, last=offset) for offset in range(batch.first, batch.last + 1))


class LogBatch(NamedTuple):
    """A record batch of the data partition."""

    first: int
    last: int


class _Acquired(NamedTuple):
    deliveries: list[Delivery]
    records: int


class SharePartitionLeader:
    """One share partition, from the moment on when its leader has read the state of it.

    ``write`` hands state to the share coordinator; an ApiError means that it is not written. ``start_offset`` is the
    first offset that may be delivered, ``end_offset`` the last one that is in flight.
    """

    def __init__(
        self,
        settings: DeliverySettings,
        write: Callable[[StateWrite], None],
        start_offset: int,
        batches: Sequence[StateBatch] = (),
    ) -> None:
        """``start_offset``, ``batches``: the state as it was read; without a start offset there, that of the reset."""
        self.settings = settings
        self._write = write
        self.start_offset = self.end_offset = start_offset
        self.delivery_complete_count = 0
        self._flight = InFlight()
        self._must_search = bool(batches)
        """Whether a record that is in flight may be available."""
        self._gap: tuple[int, int] | None = None
        """While the end offset is the first one: the second is the first offset that the state does not cover."""
        self._turn = 0
        gap = None
        before = start_offset - 1
        for batch in batches:
            if gap is None and batch.first > before + 1:
                gap = before + 1
            before = batch.last
            self._flight.put(InFlightBatch.of(batch.first, batch.last, batch.state, batch.delivery_count))
            if batch.state in TERMINAL:
                self.delivery_complete_count += batch.records
        if batches:
            self.end_offset = before
            if gap is not None:
                self._gap = before, gap
            self._move_start()

    @property
    def in_flight(self) -> Sequence[InFlightBatch]:
        """The batches in flight, by their first offset."""
        return self._flight.batches

    # --- what members fetch ------------------------------------------------------------------------------------------

    @property
    def next_fetch_offset(self) -> int:
        """The offset at which the next fetch begins."""
        if not self._flight or self.start_offset > self._flight.last:
            self._must_search = False
            return self.end_offset
        if not self._must_search:
            return self.end_offset + 1
        gap = None if self._open_gap is None else self._open_gap
        for batch in self._flight:
            if gap is not None:
                if batch.first > gap:
                    return gap
                gap = max(batch.last + 1, gap)
            for run in batch.runs:
                if run.is_available:
                    return run.first
        self._must_search = False
        return self.end_offset + 1

    @property
    def may_acquire(self) -> bool:
        """Whether a fetch can get records: some in flight are available again, or there is room for more."""
        return self.next_fetch_offset != self.end_offset + 1 or self._records_in_flight < self.settings.most_locks

    @property
    def _records_in_flight(self) -> int:
        return self.end_offset - self.start_offset + 1 if self._flight else 0

    @property
    def _open_gap(self) -> int | None:
        """Where the records begin of which the state said nothing when it was read; None where there are none."""
        return None if self._gap is None or self._gap[0] != self.end_offset else self._gap[1]

    def acquire(
        self,
        member_id: str,
        fetch_offset: int,
        fetched: Sequence[LogBatch],
        now: int,
        *,
        most_records: int,
        batch_size: int,
        is_strict: bool = False,
    ) -> list[Delivery]:
        """Lock records for a member, and return them.

        ``fetched`` are the batches that were read from ``fetch_offset`` on. Whole batches of the log are locked, even
        if they go beyond ``most_records``, unless that is strict (``share.acquire.mode``); a delivery has about
        ``batch_size`` records.
        """
        if most_records <= 0 or not fetched or fetched[-1].last < self.start_offset:
            return []
        last, room = self._room(fetch_offset, most_records, fetched[-1].last)
        if room <= 0:
            return []
        return _Fetch(self, member_id, fetched, now, last, room, batch_size, is_strict).acquire(fetch_offset).deliveries

    def _room(self, fetch_offset: int, most_records: int, last: int) -> tuple[int, int]:
        """The last offset that can be locked, and how many records."""
        room = min(most_records, self.settings.most_locks - self._records_in_flight)
        if room <= 0 and fetch_offset <= self.end_offset:
            return min(last, self.end_offset), min(most_records, self.end_offset - fetch_offset + 1)
        return last, room

    def _next_turn(self, records: int = 1) -> int:
        turn = self._turn
        self._turn += records
        return turn

    def _split(self, batch: InFlightBatch) -> None:
        """From now on every offset of the batch has its own state, and its own lock."""
        if not batch.is_split:
            batch.is_split = True
            if batch.whole.deadline_ms is not None:
                batch.whole.turn = self._next_turn(batch.records)

    def _narrow_gap(self, offset: int) -> None:
        if self._gap is not None:
            end = self._gap[0]
            self._gap = (end, offset) if end == self.end_offset and offset <= end else None

    # --- what members say --------------------------------------------------------------------------------------------

    def acknowledge(self, member_id: str, acknowledgements: Iterable[Acknowledgement], now: int) -> None:
        """Take in what a member says of records that it has. All of it holds, or (renewals apart) nothing does.

        Raises:
            ApiError: INVALID_RECORD_STATE if the member does not have one of the records any more, INVALID_REQUEST if
                they were not delivered, NOT_LEADER_OR_FOLLOWER if there is a newer leader or a newer state.
        """
        changed = _Changes(self)
        try:
            for each in acknowledgements:
                _check_types(each)
                if each.last >= self.start_offset:
                    self._acknowledge(member_id, each, now, changed)
        except ApiError:
            changed.undo()
            raise
        changed.write()

    def _acknowledge(self, member_id: str, said: Acknowledgement, now: int, changed: _Changes) -> None:
        for batch in self._batches_of(said):
            if batch.last < self.start_offset:
                continue
            if not batch.is_split:
                _check_owner(batch.whole, member_id)
            is_whole = said.first <= batch.first and batch.last <= said.last
            if not is_whole or len(said.types) > 1 or batch.first < self.start_offset:
                if not batch.is_split and batch.whole.state != ACQUIRED:
                    raise ApiError(ErrorCode.INVALID_RECORD_STATE, NOT_ACQUIRED)
                self._split(batch)
            if not batch.is_split:
                self._settle(batch, batch.whole, said.types[0], now, changed)
                continue
            for first, last, kind in _runs_of_types(said, max(batch.first, self.start_offset), batch.last):
                for run in batch.within(first, last):
                    _check_owner(run, member_id)
                    self._settle(batch, run, kind, now, changed)

    def _batches_of(self, said: Acknowledgement) -> list[InFlightBatch]:
        floor = self._flight.floor(said.first)
        if floor is None and said.first < self.start_offset <= said.last:
            floor = self._flight.floor(self.start_offset)
        if floor is None:
            raise ApiError(ErrorCode.INVALID_RECORD_STATE, "Batch record not found.")
        batches = self._flight.between(floor.first, said.last)
        if batches[-1].last < said.last:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Batch record not found. Offsets are past acquired records.")
        return batches

    def _settle(self, batch: InFlightBatch, run: InFlightRun, kind: int, now: int, changed: _Changes) -> None:
        if kind == Acknowledge.RENEW:
            if not self.settings.may_renew:
                raise ApiError(ErrorCode.INVALID_RECORD_STATE, "Renewing locks is not enabled for the group.")
            run.lock(now + self.settings.lock_ms, self._next_turn(run.records if batch.is_split else 1))
            return
        changed.note(batch, run, _STATES[Acknowledge(kind)])

    def release(self, member_id: str) -> None:
        """Take back what a member has, because its share session ended."""
        changed = _Changes(self)
        for batch in self._flight:
            run = batch.whole
            if not batch.is_split and run.state == ACQUIRED and run.member_id == member_id:
                if batch.first < self.start_offset <= batch.last:
                    self._split(batch)
                else:
                    changed.note(batch, run, self._given_back(batch.last))
            if batch.is_split:
                batch.within(self.start_offset, batch.last)
                for each in batch.runs:
                    if each.state == ACQUIRED and each.member_id == member_id:
                        changed.note(batch, each, self._given_back(each.last))
        changed.write()

    def _given_back(self, last: int) -> int:
        """The state of records up to an offset, none of which a member holds any more."""
        return ARCHIVED if last < self.start_offset else AVAILABLE

    # --- time --------------------------------------------------------------------------------------------------------

    @property
    def next_deadline_ms(self) -> int | None:
        """When the next lock ends; None if there is none."""
        return min((run.deadline_ms for _, run in self._locks()), default=None)

    def _locks(self) -> Iterator[tuple[InFlightBatch, _Lock]]:
        for batch in self._flight:
            for run in batch.runs:
                if run.deadline_ms is not None:
                    yield batch, _Lock(run.deadline_ms, run.turn, run.first, run.last)

    def expire(self, now: int) -> None:
        """Take back the records whose locks have ended, one lock after the other."""
        while True:
            due = [(lock, batch) for batch, lock in self._locks() if lock.deadline_ms <= now]
            if not due:
                return
            lock, batch = min(due, key=lambda each: each[0])
            if batch.is_split:
                lock = lock._replace(last=lock.first)
            elif batch.first < self.start_offset <= batch.last:
                self._split(batch)
            self._time_out(batch, lock)

    def _time_out(self, batch: InFlightBatch, lock: _Lock) -> None:
        changed = _Changes(self)
        batch.within(self.start_offset, batch.last)
        for run in batch.within(lock.first, lock.last):
            changed.note(batch, run, self._given_back(run.last))
        changed.write(come_what_may=True)

    # --- the start of the partition ----------------------------------------------------------------------------------

    def move_log_start(self, offset: int) -> None:
        """Take in that the records below an offset were deleted. What is written of it follows with the next write."""
        if offset <= self.start_offset:
            return
        if not self._flight:
            self.start_offset = self.end_offset = offset
            self.delivery_complete_count = 0
            return
        gone = sum(
            min(run.last, offset - 1) - max(run.first, self.start_offset) + 1
            for batch in self._flight
            for run in batch.runs
            if run.state in TERMINAL and run.first < offset and run.last >= self.start_offset
        )
        self._archive(self.start_offset, offset - 1, self._flight.batches)
        self.start_offset = offset
        self.delivery_complete_count -= gone
        self.end_offset = max(self.end_offset, offset)

    def _archive(self, first: int, last: int, batches: Iterable[InFlightBatch]) -> int:
        """Give up what is available between two offsets; the number of records."""
        archived = 0
        for batch in batches:
            if batch.first > last:
                break
            if not batch.is_split and not (first <= batch.first and batch.last <= last):
                if batch.whole.state != AVAILABLE:
                    continue
                self._split(batch)
            for run in batch.within(first, last) if batch.is_split else batch.runs:
                if run.state == AVAILABLE:
                    run.state, run.member_id, run.deadline_ms = ARCHIVED, NOBODY, None
                    archived += run.records
        self._must_search |= archived > 0
        return archived

    def archive_compacted(self, fetch_offset: int, base: int) -> None:
        """Give up what is available from a fetch on and is not in the log any more."""
        if not self._flight or fetch_offset >= base:
            return
        floor = self._flight.floor(fetch_offset)
        first = floor.first if floor is not None and floor.last >= fetch_offset else fetch_offset
        self.delivery_complete_count += self._archive(fetch_offset, base - 1, self._flight.between(first, base - 1))

    def _move_start(self) -> None:
        """Move the start offset behind what is settled."""
        floor = self._flight.floor(self.start_offset)
        at_start = None if floor is None else floor.at(self.start_offset)
        if at_start is None or not at_start.is_settled:
            return
        last, settled = self._settled_from_start()
        if last is None:
            return
        if last == self._flight.last:
            self.start_offset = self.end_offset = last + 1
            self._flight = InFlight()
            self.delivery_complete_count = 0
            return
        batch = self._flight.floor(last)
        assert batch is not None
        if last == batch.last:
            self.start_offset = max(self.start_offset, self._flight.above(last).first)
            if self._open_gap is not None:
                self.start_offset = min(self._open_gap, self.start_offset)
            self._flight.drop_below(last + 1)
        else:
            self.start_offset = max(self.start_offset, last + 1)
            self._flight.drop_below(batch.first)
        self.delivery_complete_count -= settled

    def _settled_from_start(self) -> tuple[int | None, int]:
        """The last offset up to which all records in flight are settled, and their number from the start offset on."""
        last, settled = None, 0
        gap = self._open_gap
        for batch in self._flight:
            if gap is not None and batch.last >= gap:
                break
            for run in batch.runs:
                if not run.is_settled:
                    return last, settled
                last = run.last
                settled += max(run.last - max(self.start_offset, run.first) + 1, 0)
        return last, settled


NOT_ACQUIRED = "The batch cannot be acknowledged. The batch is not in the acquired state."


class _Lock(NamedTuple):
    deadline_ms: int
    turn: int
    first: int
    last: int


class _Changes:
    """What one request or one lock changes. Until it is written, it can be undone."""

    def __init__(self, leader: SharePartitionLeader) -> None:
        self._leader = leader
        self._changed: list[tuple[InFlightBatch, InFlightRun]] = []

    def note(self, batch: InFlightBatch, run: InFlightRun, state: int) -> None:
        """Change the state of a run. What would be available after its last delivery is given up."""
        run.before = run.state, run.member_id
        at_limit = run.delivery_count >= self._leader.settings.delivery_limit
        run.state, run.member_id = ARCHIVED if state == AVAILABLE and at_limit else state, NOBODY
        self._leader.delivery_complete_count += self._settled(run)
        self._changed.append((batch, run))

    def _settled(self, run: InFlightRun) -> int:
        return max(run.last - max(run.first, self._leader.start_offset) + 1, 0) if run.state in TERMINAL else 0

    def undo(self) -> None:
        """Let everything be as before, locks included."""
        for _, run in self._changed:
            assert run.before is not None
            self._leader.delivery_complete_count -= self._settled(run)
            (run.state, run.member_id), run.before = run.before, None

    def write(self, *, come_what_may: bool = False) -> None:
        """Have it written, and end the locks; ``come_what_may`` even if it cannot be written."""
        leader = self._leader
        if not self._changed:
            return
        batches = [StateBatch(run.first, run.last, run.state, run.delivery_count) for _, run in self._changed]
        try:
            is_split = [batch.is_split for batch, _ in self._changed]
            leader._write(StateWrite(leader.start_offset, leader.delivery_complete_count, batches, is_split))
        except ApiError as error:
            if not come_what_may:
                self.undo()
                raise as_told_by_leader(error) from error
        for _, run in self._changed:
            run.before = run.deadline_ms = None
            leader._must_search |= run.state == AVAILABLE
        for batch in {id(batch): batch for batch, _ in self._changed}.values():
            batch.join()
        leader._move_start()


class _Fetch:
    """One fetch of a member: which records it gets."""

    def __init__(
        self,
        leader: SharePartitionLeader,
        member_id: str,
        fetched: Sequence[LogBatch],
        now: int,
        last: int,
        room: int,
        batch_size: int,
        is_strict: bool,
    ) -> None:
        self._leader = leader
        self._flight = leader._flight
        self._member_id = member_id
        self._fetched = fetched
        self._deadline_ms = now + leader.settings.lock_ms
        self._last = last
        self._room = room
        self._batch_size = batch_size
        self._is_strict = is_strict

    def acquire(self, fetch_offset: int) -> _Acquired:
        base = first = self._fetched[0].first
        self._leader.archive_compacted(fetch_offset, base)
        floor = self._flight.floor(first)
        if floor is None:
            first = max(first, self._leader.start_offset)
        elif floor.last >= first:
            first = floor.first
        known = self._flight.between(min(base, first), self._last)
        if not known:
            return self._acquire_new(first, self._last, self._room)
        found, is_full = self._acquire_known(known, base, first)
        if not is_full and found.records < self._room and known[-1].last < self._last:
            new = self._acquire_new(known[-1].last + 1, self._last, self._room - found.records)
            found = _Acquired(found.deliveries + new.deliveries, found.records + new.records)
        if found.deliveries:
            self._leader._narrow_gap(found.deliveries[-1].last + 1)
        return found

    def _acquire_known(self, known: Iterable[InFlightBatch], base: int, gap: int) -> tuple[_Acquired, bool]:
        """What it gets of records that were in flight before, and whether it must get no more."""
        deliveries: list[Delivery] = []
        records = 0
        for batch in known:
            if records >= self._room:
                break
            if self._leader._open_gap is not None:
                if gap < batch.first:
                    new = self._acquire_new(gap, batch.first - 1, self._room - records)
                    deliveries += new.deliveries
                    records += new.records
                gap = batch.last + 1
                if records >= self._room:
                    break
            is_whole = base <= batch.first and batch.last <= self._last
            is_throttled = self._throttles(batch, base)
            if is_throttled and records:
                return _Acquired(deliveries, records), True
            exceeds = self._is_strict and batch.records > self._room - records
            if not is_whole or exceeds or is_throttled:
                if not batch.is_split and not batch.whole.is_available:
                    continue
                self._leader._split(batch)
            if batch.is_split:
                part = self._acquire_part(batch, base, self._room - records)
                deliveries += _joined(part)
                got = sum(each.records for each in part)
                records += got
                if is_throttled and got:
                    return _Acquired(deliveries, records), True
            elif batch.whole.is_available:
                self._lock(batch.whole, self._leader._next_turn())
                deliveries.append(Delivery(batch.first, batch.last, batch.whole.delivery_count))
                records += batch.records
        return _Acquired(deliveries, records), False

    def _throttles(self, batch: InFlightBatch, base: int) -> bool:
        runs = (run for run in batch.runs if run.is_available)
        if batch.is_split:
            runs = (run for run in runs if run.last >= base and run.first <= self._last)
        return max((run.delivery_count for run in runs), default=0) >= self._leader.settings.throttled_from

    def _lock(self, run: InFlightRun, turn: int) -> None:
        run.state, run.member_id = ACQUIRED, self._member_id
        run.delivery_count += 1
        run.lock(self._deadline_ms, turn)

    def _acquire_part(self, batch: InFlightBatch, base: int, room: int) -> list[Delivery]:
        """What it gets of a batch whose offsets have their own states."""
        settings = self._leader.settings
        limit, alone = settings.delivery_limit, settings.delivery_limit > ALONE_FROM
        found: list[Delivery] = []
        records, most = 0, None
        for run in batch.within(max(base, batch.first), min(self._last, batch.last)):
            if not run.is_available:
                continue
            count = run.delivery_count
            is_last = alone and count == limit - 1
            if is_last and records:
                break
            if count >= settings.throttled_from and most is None:
                most = max(1, batch.records >> (count - settings.throttled_from + 1))
            allowed = run.records
            if is_last:
                allowed = 1
            if self._is_strict:
                allowed = min(allowed, room - records)
            if most is not None and records < most:
                allowed = min(allowed, most - records)
            if allowed < run.records:
                run = batch.within(run.first, run.first + allowed - 1)[0]
            self._lock(run, self._leader._next_turn(run.records))
            records += run.records
            found.append(Delivery(run.first, run.last, run.delivery_count))
            if is_last or (self._is_strict and records == room) or records == most:
                break
        return found

    def _acquire_new(self, first: int, last: int, room: int) -> _Acquired:
        """What it gets of records that are not in flight."""
        leader = self._leader
        if not self._flight:
            first = max(first, leader.end_offset)
        if room < last - first + 1:
            end = _batch_end(self._fetched, first + room - 1)
            last = end if leader._open_gap is None else min(end, last)
        deliveries = self._new_batches(first, last, room)
        if self._flight.batches[0].first == first:
            leader.start_offset = first
        leader.end_offset = max(leader.end_offset, last)
        if self._is_strict:
            last = deliveries[0].last
        leader._narrow_gap(last + 1)
        return _Acquired(deliveries, last - first + 1)

    def _new_batches(self, first: int, last: int, room: int) -> list[Delivery]:
        found: list[Delivery] = []
        if not self._is_strict and last - first + 1 > self._batch_size:
            for base, _ in self._fetched:
                if base > last:
                    break
                if base - first >= self._batch_size:
                    found.append(Delivery(first, base - 1, 1))
                    first = base
        found.append(Delivery(first, last, 1))
        if self._is_strict and last - first + 1 > room:
            batch = InFlightBatch.of(first, last, AVAILABLE, 0)
            batch.is_split = True
            (run,) = batch.within(first, first + room - 1)
            self._lock(run, self._leader._next_turn(run.records))
            self._flight.put(batch)
            self._leader._must_search = True
            return [Delivery(run.first, run.last, 1)]
        for each in found:
            batch = InFlightBatch.of(each.first, each.last, AVAILABLE, 0)
            self._lock(batch.whole, self._leader._next_turn())
            self._flight.put(batch)
        return found


def as_told_by_leader(error: ApiError) -> ApiError:
    """Return what a leader answers when the share coordinator refuses to read or write."""
    if error.code in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH):
        return ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return error if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)


def _check_types(said: Acknowledgement) -> None:
    fits = len(said.types) in (1, said.last - said.first + 1)
    if not fits or said.first > said.last or not set(said.types) <= set(Acknowledge):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Invalid acknowledge type: {list(said.types)}")


def _check_owner(run: InFlightRun, member_id: str) -> None:
    if run.state != ACQUIRED or run.before is not None:
        raise ApiError(ErrorCode.INVALID_RECORD_STATE, NOT_ACQUIRED)
    if run.member_id != member_id:
        raise ApiError(ErrorCode.INVALID_RECORD_STATE, "Member is not the owner of batch record")


def _runs_of_types(said: Acknowledgement, first: int, last: int) -> Iterator[tuple[int, int, int]]:
    """What is said of offsets of a batch, as runs of one type."""
    first, last = max(first, said.first), min(last, said.last)
    if len(said.types) == 1:
        if first <= last:
            yield first, last, said.types[0]
        return
    while first <= last:
        kind, end = said.types[first - said.first], first
        while end < last and said.types[end + 1 - said.first] == kind:
            end += 1
        yield first, end, kind
        first = end + 1


def _batch_end(fetched: Sequence[LogBatch], offset: int) -> int:
    """The last offset of the batch with an offset; the offset itself if no batch has it."""
    return next((batch.last for batch in fetched if batch.first <= offset <= batch.last), offset)


def _joined(deliveries: Iterable[Delivery]) -> list[Delivery]:
    joined: list[Delivery] = []
    for each in deliveries:
        if joined and joined[-1].last + 1 == each.first and joined[-1].delivery_count == each.delivery_count:
            joined[-1] = joined[-1]._replace(last=each.last)
        else:
            joined.append(each)
    return joined
