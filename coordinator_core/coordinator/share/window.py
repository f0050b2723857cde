"""The records in flight of a share partition: batches, start and end, and the gap of which the state says nothing."""

from collections.abc import Iterable, Sequence

from coordinator_core.coordinator.share.delivery_types import DeliverySettings
from coordinator_core.coordinator.share.in_flight import ACQUIRED, AVAILABLE, NOBODY, InFlight, InFlightBatch
from coordinator_core.groups.share.delivery import TERMINAL, DeliveryState, StateBatch

ARCHIVED = int(DeliveryState.ARCHIVED)


class ShareWindow:
    """Which offsets of a share partition are in flight, from the first one that may be delivered to the last."""

    def __init__(self, settings: DeliverySettings, start_offset: int, batches: Sequence[StateBatch]) -> None:
        self.settings = settings
        self.start_offset = self.end_offset = start_offset
        self.delivery_complete_count = 0
        self.flight = InFlight()
        self.must_search = bool(batches)
        """Whether a record that is in flight may be available."""
        self.gap: tuple[int, int] | None = None
        """While the end offset is the first one: the second is the first offset that the state does not cover."""
        self.turn = 0
        gap = None
        before = start_offset - 1
        for batch in batches:
            if gap is None and batch.first > before + 1:
                gap = before + 1
            before = batch.last
            self.flight.put(InFlightBatch.of(batch.first, batch.last, batch.state, batch.delivery_count))
            if batch.state in TERMINAL:
                self.delivery_complete_count += batch.records
        if batches:
            self.end_offset = before
            if gap is not None:
                self.gap = before, gap
            self.move_start()

    @property
    def records_in_flight(self) -> int:
        """The number of offsets in flight."""
        return self.end_offset - self.start_offset + 1 if self.flight else 0

    @property
    def open_gap(self) -> int | None:
        """Where the records begin of which the state said nothing when it was read; None where there are none."""
        return None if self.gap is None or self.gap[0] != self.end_offset else self.gap[1]

    @property
    def next_fetch_offset(self) -> int:
        """The offset at which the next fetch begins."""
        if not self.flight or self.start_offset > self.flight.last:
            self.must_search = False
            return self.end_offset
        if not self.must_search:
            return self.end_offset + 1
        gap = None if self.open_gap is None else self.open_gap
        for batch in self.flight:
            if gap is not None:
                if batch.first > gap:
                    return gap
                gap = max(batch.last + 1, gap)
            for run in batch.runs:
                if run.is_available:
                    return run.first
        self.must_search = False
        return self.end_offset + 1

    @property
    def may_acquire(self) -> bool:
        """Whether a fetch can get records: some in flight are available again, or there is room for more."""
        return self.next_fetch_offset != self.end_offset + 1 or self.records_in_flight < self.settings.most_locks

    def next_turn(self, records: int = 1) -> int:
        """Return the turn of the next lock: of locks that end at the same time the first one ends first."""
        turn = self.turn
        self.turn += records
        return turn

    def split(self, batch: InFlightBatch) -> None:
        """From now on every offset of the batch has its own state, and its own lock."""
        if not batch.is_split:
            batch.is_split = True
            if batch.whole.deadline_ms is not None:
                # The one lock becomes one for each offset, set now: they end after all others that end at the same
                # time.
                batch.whole.turn = self.next_turn(batch.records)

    def narrow_gap(self, offset: int) -> None:
        """Take in that records up to an offset were delivered."""
        if self.gap is not None:
            end = self.gap[0]
            self.gap = (end, offset) if end == self.end_offset and offset <= end else None

    def archive(self, first: int, last: int, batches: Iterable[InFlightBatch], state: int = AVAILABLE) -> int:
        """Give up what is in a state between two offsets; the number of records. Nothing of it is written."""
        archived = 0
        for batch in batches:
            if batch.first > last:
                break
            if not batch.is_split and not (first <= batch.first and batch.last <= last):
                if batch.whole.state != state:
                    continue
                self.split(batch)
            for run in batch.within(first, last) if batch.is_split else batch.runs:
                if run.state == state:
                    run.state, run.member_id, run.deadline_ms = ARCHIVED, NOBODY, None
                    archived += run.records
        # What a member held was not available: the search for what is finds nothing new.
        self.must_search |= archived > 0 and state == AVAILABLE
        return archived

    def archive_aborted(self, first: int, last: int) -> None:
        """Give up what members hold of a batch whose transaction was aborted, and count it as settled."""
        floor = self.flight.floor(first)
        begin = first if floor is None else floor.first
        self.delivery_complete_count += self.archive(first, last, self.flight.between(begin, last), ACQUIRED)

    def archive_compacted(self, fetch_offset: int, base: int) -> None:
        """Give up what is available from a fetch on and is not in the log any more."""
        if not self.flight or fetch_offset >= base:
            return
        floor = self.flight.floor(fetch_offset)
        first = floor.first if floor is not None and floor.last >= fetch_offset else fetch_offset
        self.delivery_complete_count += self.archive(fetch_offset, base - 1, self.flight.between(first, base - 1))

    def move_start(self) -> None:
        """Move the start offset behind what is settled."""
        floor = self.flight.floor(self.start_offset)
        at_start = None if floor is None else floor.at(self.start_offset)
        if at_start is None or not at_start.is_settled:
            return
        last, settled = self.settled_from_start()
        if last is None:
            return
        if last == self.flight.last:
            self.start_offset = self.end_offset = last + 1
            self.flight = InFlight()
            self.delivery_complete_count = 0
            return
        batch = self.flight.floor(last)
        assert batch is not None
        if last == batch.last:
            # Between two batches in flight are no records, so the start jumps to the next one, but never over a gap.
            self.start_offset = max(self.start_offset, self.flight.above(last).first)
            if self.open_gap is not None:
                self.start_offset = min(self.open_gap, self.start_offset)
            self.flight.drop_below(last + 1)
        else:
            self.start_offset = max(self.start_offset, last + 1)
            # The batch is settled in part only: it stays whole, and its first offsets lie below the start.
            self.flight.drop_below(batch.first)
        self.delivery_complete_count -= settled

    def settled_from_start(self) -> tuple[int | None, int]:
        """The last offset up to which all records in flight are settled, and their number from the start offset on."""
        last, settled = None, 0
        gap = self.open_gap
        for batch in self.flight:
            if gap is not None and batch.last >= gap:
                break
            for run in batch.runs:
                if not run.is_settled:
                    return last, settled
                last = run.last
                settled += max(run.last - max(self.start_offset, run.first) + 1, 0)
        return last, settled
