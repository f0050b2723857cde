"""One fetch of a member from a share partition: which records it gets."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from coordinator_core.coordinator.share.delivery_types import Delivery, LogBatch
from coordinator_core.coordinator.share.in_flight import ACQUIRED, AVAILABLE, InFlightBatch, InFlightRun
from coordinator_core.coordinator.share.window import ShareWindow

ALONE_FROM = 2
"""With a higher delivery limit than this, the last delivery of a record is of it alone."""


class _Acquired(NamedTuple):
    deliveries: list[Delivery]
    records: int


@dataclass(eq=False)
class Fetch:
    """One fetch of a member: which records it gets, up to the offset ``last`` and so many as there is ``room`` for."""

    window: ShareWindow
    member_id: str
    fetched: Sequence[LogBatch]
    deadline_ms: int
    last: int
    room: int
    batch_size: int
    is_strict: bool

    def __post_init__(self) -> None:
        self.flight = self.window.flight

    def acquire(self, fetch_offset: int) -> list[Delivery]:
        """Lock records, the fetch of which began at an offset; return those that the member gets."""
        deliveries = self._acquire(fetch_offset).deliveries
        # A fetch that locks nothing gives nothing up, either, not even what others hold of an aborted transaction.
        if not deliveries or not self.window.settings.reads_committed:
            return deliveries
        aborted = [batch for batch in self.fetched if batch.is_aborted]
        for batch in aborted:
            self.window.archive_aborted(batch.first, batch.last)
        return [part for delivery in deliveries for part in _without(delivery, aborted)]

    def _acquire(self, fetch_offset: int) -> _Acquired:
        base = first = self.fetched[0].first
        self.window.archive_compacted(fetch_offset, base)
        # Members fetch whole batches of the log: the first one may begin within a batch in flight, or below the start
        # offset.
        floor = self.flight.floor(first)
        if floor is None:
            first = max(first, self.window.start_offset)
        elif floor.last >= first:
            first = floor.first
        known = self.flight.between(min(base, first), self.last)
        if not known:
            return self._acquire_new(first, self.last, self.room)
        acquired, is_full = self._acquire_known(known, base, first)
        if not is_full and acquired.records < self.room and known[-1].last < self.last:
            new = self._acquire_new(known[-1].last + 1, self.last, self.room - acquired.records)
            acquired = _Acquired(acquired.deliveries + new.deliveries, acquired.records + new.records)
        if acquired.deliveries:
            self.window.narrow_gap(acquired.deliveries[-1].last + 1)
        return acquired

    def _acquire_known(self, known: Iterable[InFlightBatch], base: int, gap: int) -> tuple[_Acquired, bool]:
        """What it gets of records that were in flight before, and whether it must get no more."""
        deliveries: list[Delivery] = []
        records = 0
        for batch in known:
            if records >= self.room:
                break
            if self.window.open_gap is not None:
                if gap < batch.first:
                    new = self._acquire_new(gap, batch.first - 1, self.room - records)
                    deliveries += new.deliveries
                    records += new.records
                gap = batch.last + 1
                if records >= self.room:
                    break
            is_whole = base <= batch.first and batch.last <= self.last
            is_throttled = self._throttles(batch, base)
            # Records that failed often do not share a delivery with others: a member that fails on them would fail on
            # those, too.
            if is_throttled and records:
                return _Acquired(deliveries, records), True
            exceeds = self.is_strict and batch.records > self.room - records
            if not is_whole or exceeds or is_throttled:
                if not batch.is_split and not batch.whole.is_available:
                    continue
                self.window.split(batch)
            if batch.is_split:
                part = self._acquire_part(batch, base, self.room - records)
                deliveries += _joined(part)
                got = sum(delivery.records for delivery in part)
                records += got
                if is_throttled and got:
                    return _Acquired(deliveries, records), True
            elif batch.whole.is_available:
                self._lock(batch.whole, self.window.next_turn())
                deliveries.append(Delivery(batch.first, batch.last, batch.whole.delivery_count))
                records += batch.records
        return _Acquired(deliveries, records), False

    def _throttles(self, batch: InFlightBatch, base: int) -> bool:
        runs = (run for run in batch.runs if run.is_available)
        if batch.is_split:
            runs = (run for run in runs if run.last >= base and run.first <= self.last)
        return max((run.delivery_count for run in runs), default=0) >= self.window.settings.throttled_from

    def _lock(self, run: InFlightRun, turn: int) -> None:
        run.state, run.member_id = ACQUIRED, self.member_id
        run.delivery_count += 1
        run.lock(self.deadline_ms, turn)

    def _acquire_part(self, batch: InFlightBatch, base: int, room: int) -> list[Delivery]:
        """What it gets of a batch whose offsets have their own states."""
        settings = self.window.settings
        limit, alone = settings.delivery_limit, settings.delivery_limit > ALONE_FROM
        deliveries: list[Delivery] = []
        records, most = 0, None
        for run in batch.within(max(base, batch.first), min(self.last, batch.last)):
            if not run.is_available:
                continue
            count = run.delivery_count
            is_last = alone and count == limit - 1
            if is_last and records:
                break
            # Halved with each further delivery: in the end a record that makes members fail is alone, and the others
            # are done.
            if count >= settings.throttled_from and most is None:
                most = max(1, batch.records >> (count - settings.throttled_from + 1))
            allowed = run.records
            if is_last:
                allowed = 1
            if self.is_strict:
                allowed = min(allowed, room - records)
            if most is not None and records < most:
                allowed = min(allowed, most - records)
            if allowed < run.records:
                run = batch.within(run.first, run.first + allowed - 1)[0]
            self._lock(run, self.window.next_turn(run.records))
            records += run.records
            deliveries.append(Delivery(run.first, run.last, run.delivery_count))
            if is_last or (self.is_strict and records == room) or records == most:
                break
        return deliveries

    def _acquire_new(self, first: int, last: int, room: int) -> _Acquired:
        """What it gets of records that are not in flight."""
        window = self.window
        # With nothing in flight all below the end offset is settled, but the log still gives the whole batch that it
        # lies in.
        if not self.flight:
            first = max(first, window.end_offset)
        if room < last - first + 1:
            end = first + room - 1
            end = next((batch.last for batch in self.fetched if batch.first <= end <= batch.last), end)
            # Behind a gap there are records in flight: the batch of the log may reach into them, and they are not new.
            last = end if window.open_gap is None else min(end, last)
        deliveries = self._new_batches(first, last, room)
        if self.flight.batches[0].first == first:
            window.start_offset = first
        window.end_offset = max(window.end_offset, last)
        if self.is_strict:
            last = deliveries[0].last
        window.narrow_gap(last + 1)
        return _Acquired(deliveries, last - first + 1)

    def _new_batches(self, first: int, last: int, room: int) -> list[Delivery]:
        deliveries: list[Delivery] = []
        if not self.is_strict and last - first + 1 > self.batch_size:
            for base, *_ in self.fetched:
                if base > last:
                    break
                if base - first >= self.batch_size:
                    deliveries.append(Delivery(first, base - 1, 1))
                    first = base
        deliveries.append(Delivery(first, last, 1))
        if self.is_strict and last - first + 1 > room:
            batch = InFlightBatch.of(first, last, AVAILABLE, 0)
            batch.is_split = True
            (run,) = batch.within(first, first + room - 1)
            self._lock(run, self.window.next_turn(run.records))
            self.flight.put(batch)
            # The rest of the batch is in flight as well, and available: the next fetch has to begin there, not behind
            # it.
            self.window.must_search = True
            return [Delivery(run.first, run.last, 1)]
        for delivery in deliveries:
            batch = InFlightBatch.of(delivery.first, delivery.last, AVAILABLE, 0)
            self._lock(batch.whole, self.window.next_turn())
            self.flight.put(batch)
        return deliveries


def _without(delivery: Delivery, batches: Iterable[LogBatch]) -> Iterator[Delivery]:
    """The parts of a delivery that none of these batches has; the batches are in the order of the log."""
    first = delivery.first
    for batch in batches:
        if first <= batch.last and batch.first <= delivery.last:
            if first < batch.first:
                yield delivery._replace(first=first, last=batch.first - 1)
            first = batch.last + 1
    if first <= delivery.last:
        yield delivery._replace(first=first)


def _joined(deliveries: Iterable[Delivery]) -> list[Delivery]:
    joined: list[Delivery] = []
    for delivery in deliveries:
        if joined and joined[-1].last + 1 == delivery.first and joined[-1].delivery_count == delivery.delivery_count:
            joined[-1] = joined[-1]._replace(last=delivery.last)
        else:
            joined.append(delivery)
    return joined
