"""One share partition of a simulation: members fetch and acknowledge records, and its leader has the state written."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

from coordinator_core.coordinator.config import GroupConfig, duration_ms
from coordinator_core.coordinator.protocol import ApiError
from coordinator_core.coordinator.share.delivery_types import (
    Acknowledge,
    Acknowledgement,
    Delivery,
    DeliverySettings,
    LogBatch,
    StateWrite,
)
from coordinator_core.coordinator.share.leader import SharePartitionLeader
from coordinator_core.coordinator.share.share_coordinator import ShareCoordinator
from coordinator_core.groups.share.delivery import DeliveryState, StateBatch
from coordinator_core.groups.share.state_log import UNSET, ShareStateRecord
from coordinator_core.simulator.brokers import NO_BROKER, Leader
from coordinator_core.simulator.scenario import ScenarioDelivery
from coordinator_core.simulator.seeded_random import SeededRandom
from coordinator_core.simulator.share_activity import Hold, HoldEnd, ShareActivity, ShareLifetime

MOST_RECORDS = 500
"""``max.poll.records`` of a share consumer, and as many records to a delivery."""
NEVER = 1 << 62
RELEASED, TIMED_OUT, SESSION_ENDED = "released", "timed_out", "session_ended"


class Records(NamedTuple):
    """The records of a topic partition: ``speed`` of them in 1,000 s, since ``since_ms``."""

    name: str
    speed: int
    since_ms: int

    def end_offset(self, now: int) -> int:
        """Return the end offset at a time."""
        return max(now - self.since_ms, 0) * self.speed // 1_000_000


class ShareHabits(NamedTuple):
    """How the members of a group work: they acknowledge at the interval ``every_ms``, or fetch nothing if that is
    ``NEVER``.
    """

    every_ms: int
    when_leaving: bool
    delivery: ScenarioDelivery
    config: GroupConfig


@dataclass(slots=True)
class _Member:
    """A member that has the share partition, with the records in its hands and the leader that gave them."""

    hold: Hold
    deliveries: list[Delivery] = field(default_factory=list)
    leader_epoch: int = UNSET


class ShareClock(Protocol):
    """What share partitions of one log partition have in common: time, share coordinator, and the log."""

    now: int
    coordinator: ShareCoordinator

    def at(self, time_ms: int, action: Callable[[], None]) -> None:
        """Call the action at this time."""

    def append(self, record: ShareStateRecord) -> None:
        """Add a record to the log."""

    def tell(self, row: dict[str, object]) -> None:
        """Add a row of truth."""


class SimulatedSharePartition:
    """A share partition, from its initialisation to its removal or the end."""

    def __init__(
        self,
        clock: ShareClock,
        lifetime: ShareLifetime,
        activity: ShareActivity,
        habits: ShareHabits,
        records: Records,
        leaders: Sequence[Leader],
        chance: SeededRandom,
    ) -> None:
        self._clock = clock
        self._lifetime = lifetime
        self._which = lifetime.which
        self._activity = activity
        self._habits = habits
        self._settings = DeliverySettings.of(habits.config)
        self._records = records
        self._leaders = leaders
        self._leader: SharePartitionLeader | None = None
        self._leader_epoch = UNSET
        self._first_offset = 0
        self._expiry_ms = NEVER
        self._cause = RELEASED
        self._rejected: frozenset[int] = frozenset()
        self._counts = Counter[str]()
        delivery = habits.delivery
        self._odd = delivery.releases + delivery.rejects + delivery.forgets
        self._chance = chance.fork("deliveries")
        self._until_odd = self._skip(self._odd)
        self._poison = _Marked(chance.fork("poison"), delivery.poison)
        self._aborted = _Marked(chance.fork("aborted"), delivery.aborted)

    def schedule(self) -> None:
        """Put the whole life of the share partition into the queue."""
        since, until = self._lifetime.since_ms, self._lifetime.until_ms
        self._clock.at(since, self._begin)
        if until is not None:
            self._clock.at(until, self._end)
        for hold in self._activity.holds.get(self._which, ()) if self._habits.every_ms < NEVER else ():
            over = hold.until_ms is not None and hold.until_ms <= since
            if not over and (until is None or hold.since_ms < until):
                member = _Member(hold)
                self._clock.at(max(hold.since_ms, since), partial(self._poll, member))
                if hold.until_ms is not None:
                    self._clock.at(hold.until_ms, partial(self._lose, member))

    def _begin(self) -> None:
        coordinator = self._clock.coordinator
        self._clock.append(coordinator.initialize(self._which, self._lifetime.state_epoch, UNSET, self._clock.now))

    def _end(self) -> None:
        record = self._clock.coordinator.delete(self._which, self._clock.now)
        if record is not None:
            self._clock.append(record)

    @property
    def _is_over(self) -> bool:
        until = self._lifetime.until_ms
        return until is not None and until <= self._clock.now

    # --- members -----------------------------------------------------------------------------------------------------

    def _poll(self, member: _Member) -> None:
        """A member asks for records, which it works through until it acknowledges them."""
        hold, now = member.hold, self._clock.now
        if (
            self._is_over
            or (hold.until_ms is not None and hold.until_ms <= now)
            or self._hangs(hold, self._poll, member)
        ):
            return
        member.deliveries = self._fetch(hold.member_id)
        member.leader_epoch = self._leader_epoch
        self._clock.at(now + self._habits.every_ms, partial(self._acknowledge, member))
        self._watch_locks()

    def _hangs(self, hold: Hold, action: Callable[[_Member], None], member: _Member) -> bool:
        """Whether the member's process hangs; it does what it wanted as soon as it goes on."""
        until = self._activity.hangs_until(self._which.group_id, hold.member_id, self._clock.now)
        if until is not None:
            self._clock.at(until, partial(action, member))
        return until is not None

    def _fetch(self, member_id: str) -> list[Delivery]:
        leader = self._lead()
        if leader is None or not leader.may_acquire:
            return []
        offset, end = leader.next_fetch_offset, self._records.end_offset(self._clock.now)
        # What is in flight takes no more room if it is delivered again: only what comes behind its end does.
        room = self._settings.most_locks - leader.records_in_flight
        last = min(end, max(offset, leader.end_offset + 1 if leader.flight else offset) + max(room, 0)) - 1
        last = min(last, offset + MOST_RECORDS - 1)
        if last < offset:
            return []
        deliveries = leader.acquire(
            member_id,
            offset,
            [*self._batches(offset, last)],
            self._clock.now,
            most_records=MOST_RECORDS,
            batch_size=MOST_RECORDS,
        )
        for delivery in deliveries:
            self._counts["redelivered"] += delivery.records if delivery.delivery_count > 1 else 0
        return deliveries

    def _batches(self, first: int, last: int) -> Iterator[LogBatch]:
        """The record batches of a fetch: a record whose transaction was aborted has one of its own."""
        for offset in self._aborted.between(first, last):
            if first < offset:
                yield LogBatch(first, offset - 1)
            yield LogBatch(offset, offset, is_aborted=True)
            first = offset + 1
        if first <= last:
            yield LogBatch(first, last)

    def _acknowledge(self, member: _Member) -> None:
        """A member says what became of its records, and asks for more."""
        hold = member.hold
        is_gone = hold.end in _GONE and hold.until_ms is not None and hold.until_ms <= self._clock.now
        if not self._is_over and not is_gone and not self._hangs(hold, self._acknowledge, member):
            self._say(member)
            self._poll(member)

    def _say(self, member: _Member) -> None:
        leader = self._current_leader()
        # Locks are in the leader's memory (KIP-932): another leader knows nothing of them.
        if leader is None or member.leader_epoch != self._leader_epoch or not member.deliveries:
            return
        said = [opinion for delivery in member.deliveries for opinion in self._opinions(delivery)]
        member.deliveries = []
        self._rejected = frozenset(opinion.first for opinion in said if opinion.types[0] == Acknowledge.REJECT)
        self._cause = RELEASED
        try:
            leader.acknowledge(member.hold.member_id, said, self._clock.now)
        except ApiError:
            self._counts["refused"] += sum(opinion.last - opinion.first + 1 for opinion in said)

    def _lose(self, member: _Member) -> None:
        """A member does not have the share partition any more; if its process ended, its session did, too."""
        if self._is_over or member.hold.end not in _GONE:
            return
        if member.hold.end is HoldEnd.LEFT and self._habits.when_leaving:
            self._say(member)
        leader = self._current_leader()
        if leader is not None:
            self._cause = SESSION_ENDED
            leader.release(member.hold.member_id)

    # --- what members say --------------------------------------------------------------------------------------------

    def _opinions(self, delivery: Delivery) -> Iterator[Acknowledgement]:
        """What a member says of the records of a delivery; of some it says nothing."""
        position = delivery.first
        for offset, kind in self._odd_ones(delivery.first, delivery.last):
            if position < offset:
                yield Acknowledgement(position, offset - 1, (Acknowledge.ACCEPT,))
            if kind is not None:
                yield Acknowledgement(offset, offset, (kind,))
            position = offset + 1
        if position <= delivery.last:
            yield Acknowledgement(position, delivery.last, (Acknowledge.ACCEPT,))

    def _odd_ones(self, first: int, last: int) -> Iterator[tuple[int, Acknowledge | None]]:
        """The records that are not accepted, by offset; None: nothing is said of them."""
        poison = set(self._poison.between(first, last))
        odd: dict[int, Acknowledge | None] = dict.fromkeys(poison, Acknowledge.RELEASE)
        offset = first
        while self._until_odd <= last - offset:
            offset += self._until_odd
            if offset not in poison:
                odd[offset] = self._odd_kind()
            offset += 1
            self._until_odd = self._skip(self._odd)
        self._until_odd -= last - offset + 1
        yield from sorted(odd.items())

    def _odd_kind(self) -> Acknowledge | None:
        delivery = self._habits.delivery
        drawn = self._chance.fraction() * self._odd
        if drawn < delivery.releases:
            return Acknowledge.RELEASE
        return Acknowledge.REJECT if drawn < delivery.releases + delivery.rejects else None

    def _skip(self, share: float) -> int:
        """How many records come before the next one of which something else is said."""
        return _waiting(self._chance, share)

    # --- the leader --------------------------------------------------------------------------------------------------

    def _at_lead(self) -> Leader | None:
        now = self._clock.now
        leader = next((lead for lead in reversed(self._leaders) if lead.time_ms <= now), None)
        return None if leader is None or leader.broker == NO_BROKER else leader

    def _current_leader(self) -> SharePartitionLeader | None:
        """The leader that has the records in flight; None after another broker took over."""
        leader = self._at_lead()
        return self._leader if leader is not None and leader.epoch == self._leader_epoch else None

    def _lead(self) -> SharePartitionLeader | None:
        """The leader, which reads the state first if it is new; None if no broker leads the partition."""
        at_lead = self._at_lead()
        if at_lead is None or at_lead.epoch == self._leader_epoch:
            return None if at_lead is None else self._leader
        coordinator, now = self._clock.coordinator, self._clock.now
        state, record = coordinator.read(self._which, at_lead.epoch, now)
        if record is not None:
            self._clock.append(record)
        start = self._reset_offset() if state.start_offset == UNSET else state.start_offset
        self._first_offset = start if self._leader is None else self._first_offset
        self._leader_epoch = at_lead.epoch
        self._leader = SharePartitionLeader(self._settings, self._write, start, state.batches)
        self._expiry_ms = NEVER
        return self._leader

    def _reset_offset(self) -> int:
        now, reset = self._clock.now, self._habits.config.share_auto_offset_reset
        if reset == "earliest":
            return 0
        return self._records.end_offset(now - (duration_ms(reset) or 0))

    def _write(self, write: StateWrite) -> None:
        coordinator, epoch = self._clock.coordinator, self._lifetime.state_epoch
        self._clock.append(coordinator.write(self._which, epoch, self._leader_epoch, write, self._clock.now))
        for batch in write.batches:
            if batch.state == DeliveryState.ACKNOWLEDGED:
                self._counts["accepted"] += batch.records
            elif batch.state == DeliveryState.AVAILABLE:
                self._counts[self._cause] += batch.records
            else:
                self._archived(batch)

    def _archived(self, batch: StateBatch) -> None:
        is_rejected = self._cause == RELEASED and batch.first in self._rejected
        why = "rejected" if is_rejected else "limit"
        self._counts[why] += batch.records
        self._clock.tell(
            {
                "kind": "share-archived",
                "time_ms": self._clock.now,
                **self._name,
                "first_offset": batch.first,
                "last_offset": batch.last,
                "delivery_count": batch.delivery_count,
                "why": why,
            }
        )

    def _watch_locks(self) -> None:
        due = None if self._leader is None else self._leader.next_deadline_ms
        if due is not None and due < self._expiry_ms:
            self._expiry_ms = due
            self._clock.at(due, partial(self._expire, due))

    def _expire(self, due: int) -> None:
        if due != self._expiry_ms or self._is_over:
            return
        self._expiry_ms = NEVER
        leader = self._current_leader()
        if leader is not None:
            self._cause = TIMED_OUT
            leader.expire(self._clock.now)
            self._watch_locks()

    # --- truth -------------------------------------------------------------------------------------------------------

    @property
    def _name(self) -> dict[str, str]:
        return {"group_id": self._which.group_id, "partition": f"{self._records.name}-{self._which.partition}"}

    def truth(self) -> dict[str, object] | None:
        """Return the final state, and what happened to its records; None if it was removed."""
        state = self._clock.coordinator.partitions.get(self._which)
        if self._is_over or state is None:
            return None
        next_offset = None if self._leader is None else self._leader.start_offset
        aborted = list[int]()
        if self._settings.reads_committed and next_offset is not None:
            aborted = self._aborted.between(self._first_offset, next_offset - 1)
        names = ("accepted", "rejected", "limit", RELEASED, TIMED_OUT, SESSION_ENDED, "redelivered", "refused")
        return {
            "kind": "share-offset",
            **self._name,
            "start_offset": None if state.start_offset == UNSET else state.start_offset,
            "leader_epoch": state.leader_epoch,
            "next_offset": next_offset,
            "aborted": len(aborted),
            **{name: self._counts[name] for name in names},
        }


class _Marked:
    """A share of a topic's records, chosen one by one in the order of their offsets."""

    def __init__(self, chance: SeededRandom, share: float) -> None:
        self._chance = chance
        self._share = share
        # Kept, as a record that is delivered again is the same one.
        self._offsets: list[int] = []
        self._next = _waiting(chance, share)

    def between(self, first: int, last: int) -> list[int]:
        """Return those with these offsets."""
        while self._next <= last:
            self._offsets.append(self._next)
            self._next += 1 + _waiting(self._chance, self._share)
        return self._offsets[bisect_left(self._offsets, first) : bisect_left(self._offsets, last + 1)]


_GONE = (HoldEnd.LEFT, HoldEnd.CRASHED)
"""The member's process ended."""


def _waiting(chance: SeededRandom, share: float) -> int:
    """How many things come before one of which there is this share."""
    return NEVER if share <= 0 else chance.trials_before(share)
