"""The leader of a share partition: it delivers records, locks them, and takes in what became of them (KIP-932).

It does what ``SharePartition`` of Kafka 4.3.1 does, with one difference: a write of state is over at once. Not here:
share sessions.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from coordinator_core.coordinator.protocol import ApiError, ErrorCode
from coordinator_core.coordinator.share.delivery_types import (
    Acknowledge,
    Acknowledgement,
    Delivery,
    DeliverySettings,
    LogBatch,
    StateWrite,
)
from coordinator_core.coordinator.share.fetch import Fetch
from coordinator_core.coordinator.share.in_flight import ACQUIRED, AVAILABLE, NOBODY, InFlightBatch, InFlightRun
from coordinator_core.coordinator.share.window import ARCHIVED, ShareWindow
from coordinator_core.groups.share.delivery import TERMINAL, DeliveryState, StateBatch

_STATES = {
    Acknowledge.GAP: ARCHIVED,
    Acknowledge.ACCEPT: int(DeliveryState.ACKNOWLEDGED),
    Acknowledge.RELEASE: AVAILABLE,
    Acknowledge.REJECT: ARCHIVED,
}


class SharePartitionLeader(ShareWindow):
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
        super().__init__(settings, start_offset, batches)
        self._write = write

    # --- what members fetch ------------------------------------------------------------------------------------------

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
        ``batch_size`` records. With ``share.isolation.level`` ``read_committed`` batches of aborted transactions are
        given up at once: they count as settled, and no state of them is written.
        """
        if most_records <= 0 or not fetched or fetched[-1].last < self.start_offset:
            return []
        last, room = self._room(fetch_offset, most_records, fetched[-1].last)
        if room <= 0:
            return []
        deadline_ms = now + self.settings.lock_ms
        fetch = Fetch(self, member_id, fetched, deadline_ms, last, room, batch_size, is_strict)
        return fetch.acquire(fetch_offset)

    def _room(self, fetch_offset: int, most_records: int, last: int) -> tuple[int, int]:
        """The last offset that can be locked, and how many records."""
        room = min(most_records, self.settings.most_locks - self.records_in_flight)
        # All locks are taken, but what members gave back is in flight already and can be delivered again.
        if room <= 0 and fetch_offset <= self.end_offset:
            return min(last, self.end_offset), min(most_records, self.end_offset - fetch_offset + 1)
        return last, room

    # --- what members say --------------------------------------------------------------------------------------------

    def acknowledge(self, member_id: str, acknowledgements: Iterable[Acknowledgement], now: int) -> None:
        """Take in what a member says of records that it has. All of it holds, or (renewals apart) nothing does.

        Raises:
            ApiError: INVALID_RECORD_STATE if the member does not have one of the records any more, INVALID_REQUEST if
                they were not delivered, NOT_LEADER_OR_FOLLOWER if there is a newer leader or a newer state.
        """
        changed = _Changes(self, self._write)
        try:
            for acknowledgement in acknowledgements:
                _check_types(acknowledgement)
                if acknowledgement.last >= self.start_offset:
                    self._acknowledge(member_id, acknowledgement, now, changed)
        except ApiError:
            changed.undo()
            raise
        changed.write()

    def _acknowledge(self, member_id: str, acknowledged: Acknowledgement, now: int, changed: "_Changes") -> None:
        for batch in self._batches_of(acknowledged):
            if batch.last < self.start_offset:
                continue
            if not batch.is_split:
                _check_owner(batch.whole, member_id)
            is_whole = acknowledged.first <= batch.first and batch.last <= acknowledged.last
            if not is_whole or len(acknowledged.types) > 1 or batch.first < self.start_offset:
                if not batch.is_split and batch.whole.state != ACQUIRED:
                    raise ApiError(ErrorCode.INVALID_RECORD_STATE, NOT_ACQUIRED)
                self.split(batch)
            if not batch.is_split:
                self._settle(batch, batch.whole, acknowledged.types[0], now, changed)
                continue
            for first, last, kind in _runs_of_types(acknowledged, max(batch.first, self.start_offset), batch.last):
                for run in batch.within(first, last):
                    _check_owner(run, member_id)
                    self._settle(batch, run, kind, now, changed)

    def _batches_of(self, acknowledged: Acknowledgement) -> list[InFlightBatch]:
        floor = self.flight.floor(acknowledged.first)
        if floor is None and acknowledged.first < self.start_offset <= acknowledged.last:
            floor = self.flight.floor(self.start_offset)
        if floor is None:
            raise ApiError(ErrorCode.INVALID_RECORD_STATE, "Batch record not found.")
        batches = self.flight.between(floor.first, acknowledged.last)
        if batches[-1].last < acknowledged.last:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Batch record not found. Offsets are past acquired records.")
        return batches

    def _settle(self, batch: InFlightBatch, run: InFlightRun, kind: int, now: int, changed: "_Changes") -> None:
        if kind == Acknowledge.RENEW:
            if not self.settings.may_renew:
                raise ApiError(ErrorCode.INVALID_RECORD_STATE, "Renewing locks is not enabled for the group.")
            run.lock(now + self.settings.lock_ms, self.next_turn(run.records if batch.is_split else 1))
            return
        changed.note(batch, run, _STATES[Acknowledge(kind)])

    def release(self, member_id: str) -> None:
        """Take back what a member has, because its share session ended."""
        changed = _Changes(self, self._write)
        for batch in self.flight:
            run = batch.whole
            if not batch.is_split and run.state == ACQUIRED and run.member_id == member_id:
                if batch.first < self.start_offset <= batch.last:
                    self.split(batch)
                else:
                    changed.note(batch, run, self._given_back(batch.last))
            if batch.is_split:
                batch.within(self.start_offset, batch.last)
                for part in batch.runs:
                    if part.state == ACQUIRED and part.member_id == member_id:
                        changed.note(batch, part, self._given_back(part.last))
        changed.write()

    def _given_back(self, last: int) -> int:
        """The state of records up to an offset, none of which a member holds any more."""
        return ARCHIVED if last < self.start_offset else AVAILABLE

    # --- time --------------------------------------------------------------------------------------------------------

    @property
    def next_deadline_ms(self) -> int | None:
        """When the next lock ends; None if there is none."""
        return min((run.deadline_ms for _, run in self._locks()), default=None)

    def _locks(self) -> "Iterator[tuple[InFlightBatch, _Lock]]":
        for batch in self.flight:
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
            # Kafka has one timer for each offset of a split batch, and each of them writes state of its own.
            if batch.is_split:
                lock = lock._replace(last=lock.first)
            elif batch.first < self.start_offset <= batch.last:
                self.split(batch)
            self._time_out(batch, lock)

    def _time_out(self, batch: InFlightBatch, lock: "_Lock") -> None:
        changed = _Changes(self, self._write)
        batch.within(self.start_offset, batch.last)
        for run in batch.within(lock.first, lock.last):
            changed.note(batch, run, self._given_back(run.last))
        changed.write(come_what_may=True)


NOT_ACQUIRED = "The batch cannot be acknowledged. The batch is not in the acquired state."


class _Lock(NamedTuple):
    deadline_ms: int
    turn: int
    first: int
    last: int


class _Changes:
    """What one request or one lock changes. Until it is written, it can be undone."""

    def __init__(self, window: ShareWindow, write: Callable[[StateWrite], None]) -> None:
        self._window = window
        self._write = write
        self._changed: list[tuple[InFlightBatch, InFlightRun]] = []

    def note(self, batch: InFlightBatch, run: InFlightRun, state: int) -> None:
        """Change the state of a run. What would be available after its last delivery is given up."""
        run.before = run.state, run.member_id
        at_limit = run.delivery_count >= self._window.settings.delivery_limit
        run.state, run.member_id = ARCHIVED if state == AVAILABLE and at_limit else state, NOBODY
        self._window.delivery_complete_count += self._settled(run)
        self._changed.append((batch, run))

    def _settled(self, run: InFlightRun) -> int:
        return max(run.last - max(run.first, self._window.start_offset) + 1, 0) if run.state in TERMINAL else 0

    def undo(self) -> None:
        """Let everything be as before, locks included."""
        for _, run in self._changed:
            assert run.before is not None
            # Counted while the run still has its new state: that is what ``note`` has added.
            self._window.delivery_complete_count -= self._settled(run)
            (run.state, run.member_id), run.before = run.before, None

    def write(self, *, come_what_may: bool = False) -> None:
        """Have it written, and end the locks; ``come_what_may`` even if it cannot be written."""
        window = self._window
        if not self._changed:
            return
        batches = [StateBatch(run.first, run.last, run.state, run.delivery_count) for _, run in self._changed]
        try:
            is_split = [batch.is_split for batch, _ in self._changed]
            # The start offset moves only after the write: what is written now still has the old one.
            self._write(StateWrite(window.start_offset, window.delivery_complete_count, batches, is_split))
        except ApiError as error:
            if not come_what_may:
                self.undo()
                raise as_told_by_leader(error) from error
        for _, run in self._changed:
            run.before = run.deadline_ms = None
            window.must_search |= run.state == AVAILABLE
        for batch in {id(batch): batch for batch, _ in self._changed}.values():
            batch.join()
        window.move_start()


def as_told_by_leader(error: ApiError) -> ApiError:
    """Return what a leader answers when the share coordinator refuses to read or write."""
    if error.code in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH):
        return ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return error if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)


def _check_types(acknowledged: Acknowledgement) -> None:
    fits = len(acknowledged.types) in (1, acknowledged.last - acknowledged.first + 1)
    if not fits or acknowledged.first > acknowledged.last or not set(acknowledged.types) <= set(Acknowledge):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Invalid acknowledge type: {list(acknowledged.types)}")


def _check_owner(run: InFlightRun, member_id: str) -> None:
    if run.state != ACQUIRED or run.before is not None:
        raise ApiError(ErrorCode.INVALID_RECORD_STATE, NOT_ACQUIRED)
    if run.member_id != member_id:
        raise ApiError(ErrorCode.INVALID_RECORD_STATE, "Member is not the owner of batch record")


def _runs_of_types(acknowledged: Acknowledgement, first: int, last: int) -> Iterator[tuple[int, int, int]]:
    """What is acknowledged of offsets of a batch, as runs of one type."""
    first, last = max(first, acknowledged.first), min(last, acknowledged.last)
    if len(acknowledged.types) == 1:
        if first <= last:
            yield first, last, acknowledged.types[0]
        return
    while first <= last:
        kind, end = acknowledged.types[first - acknowledged.first], first
        while end < last and acknowledged.types[end + 1 - acknowledged.first] == kind:
            end += 1
        yield first, end, kind
        first = end + 1
