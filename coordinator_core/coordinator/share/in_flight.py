"""What the leader of a share partition keeps of records in flight: batches of offsets with their delivery state.

A batch has one state until something happens to some of its offsets only; from then on every offset has its own
(``is_split``), and its own lock. Here both are runs of offsets; offsets of one run are in the same state.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from operator import attrgetter

from coordinator_core.groups.share.delivery import TERMINAL, DeliveryState

AVAILABLE = int(DeliveryState.AVAILABLE)
ACQUIRED = 1
"""Delivered to a member, and locked for it. The log never has this state."""
NOBODY = ""


@dataclass(slots=True)
class InFlightRun:
    """Offsets ``first`` to ``last`` in one delivery state.

    A lock ends at ``deadline_ms``; ``turn`` is that of the first offset's lock among those that end at one time.
    ``before`` has state and member of a run that a request has changed and that is not written yet.
    """

    first: int
    last: int
    state: int
    delivery_count: int
    member_id: str = NOBODY
    deadline_ms: int | None = None
    turn: int = 0
    before: tuple[int, str] | None = None

    @property
    def records(self) -> int:
        """The number of its offsets."""
        return self.last - self.first + 1

    @property
    def is_available(self) -> bool:
        """Whether its records can be delivered."""
        return self.state == AVAILABLE and self.before is None

    @property
    def is_settled(self) -> bool:
        """Whether its records need no delivery any more."""
        return self.state in TERMINAL and self.before is None

    def lock(self, deadline_ms: int, turn: int) -> None:
        """Let a lock begin that ends then."""
        self.deadline_ms, self.turn = deadline_ms, turn

    def _is_followed_by(self, other: "InFlightRun") -> bool:
        """Whether the two can be one run."""
        if (self.state, self.delivery_count, self.member_id) != (other.state, other.delivery_count, other.member_id):
            return False
        if self.before is not None or other.before is not None or self.deadline_ms != other.deadline_ms:
            return False
        # Of locks that end at one time the turn decides which ends first: one run must have its turns in a row.
        return self.deadline_ms is None or self.turn + self.records == other.turn


@dataclass(slots=True)
class InFlightBatch:
    """Offsets that were delivered together, or that the state log had as one batch."""

    first: int
    last: int
    runs: list[InFlightRun]
    is_split: bool = False

    @classmethod
    def of(cls, first: int, last: int, state: int, delivery_count: int, member_id: str = NOBODY) -> "InFlightBatch":
        """Return a batch whose offsets are all in one state."""
        return cls(first, last, [InFlightRun(first, last, state, delivery_count, member_id)])

    @property
    def records(self) -> int:
        """The number of its offsets."""
        return self.last - self.first + 1

    @property
    def whole(self) -> InFlightRun:
        """The one run of a batch that is not split."""
        return self.runs[0]

    def within(self, first: int, last: int) -> list[InFlightRun]:
        """Return the runs that make up these offsets of the batch exactly; runs that reach beyond are cut."""
        self._cut(first)
        self._cut(last + 1)
        return [run for run in self.runs if first <= run.first <= last]

    def at(self, offset: int) -> InFlightRun | None:
        """Return the run with an offset; None if the batch does not have it. Without own states all have the same."""
        if not self.is_split:
            return self.whole
        index = bisect_right(self.runs, offset, key=_first) - 1
        return self.runs[index] if index >= 0 and offset <= self.runs[index].last else None

    def _cut(self, offset: int) -> None:
        if not self.first < offset <= self.last:
            return
        index = bisect_right(self.runs, offset, key=_first) - 1
        run = self.runs[index]
        if run.first < offset:
            turn = run.turn + offset - run.first if run.deadline_ms is not None else 0
            self.runs.insert(index + 1, replace(run, first=offset, turn=turn))
            run.last = offset - 1

    def join(self) -> None:
        """Make one run of neighbours in the same state."""
        joined = self.runs[:1]
        for run in self.runs[1:]:
            if joined[-1]._is_followed_by(run):
                joined[-1].last = run.last
            else:
                joined.append(run)
        self.runs = joined


@dataclass(slots=True)
class InFlight:
    """All batches in flight, by their first offset."""

    batches: list[InFlightBatch] = field(default_factory=list)

    def __iter__(self) -> Iterator[InFlightBatch]:
        return iter(self.batches)

    def __bool__(self) -> bool:
        return bool(self.batches)

    @property
    def last(self) -> int:
        """The last offset of all."""
        return self.batches[-1].last

    def put(self, batch: InFlightBatch) -> None:
        """Add a batch; it replaces one that begins at the same offset."""
        index = bisect_left(self.batches, batch.first, key=_first)
        known = index < len(self.batches) and self.batches[index].first == batch.first
        self.batches[index : index + known] = [batch]

    def floor(self, offset: int) -> InFlightBatch | None:
        """Return the last batch that begins at or before an offset; None if there is none."""
        index = bisect_right(self.batches, offset, key=_first)
        return self.batches[index - 1] if index else None

    def above(self, offset: int) -> InFlightBatch:
        """Return the first batch that begins above an offset."""
        return self.batches[bisect_right(self.batches, offset, key=_first)]

    def between(self, first: int, last: int) -> list[InFlightBatch]:
        """Return the batches that begin between two offsets, both included."""
        return self.batches[bisect_left(self.batches, first, key=_first) : bisect_right(self.batches, last, key=_first)]

    def drop_below(self, offset: int) -> None:
        """Remove the batches that begin below an offset."""
        del self.batches[: bisect_left(self.batches, offset, key=_first)]


_first = attrgetter("first")
