"""One operation of the coordinator: its input, and what it collects to be written, answered and armed."""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from coordinator_core.cluster.image import TopicImage
from coordinator_core.coordinator.memory import CoordinatorState, LiveGroup
from coordinator_core.coordinator.protocol import AnyRequest, Completed, RequestOutcome, Task, Timer
from coordinator_core.errors import InputError
from coordinator_core.records import ConnectRecordType, CoordinatorRecord, Fields, LogPosition, RecordType

AnyUnwritten = tuple[RecordType | ConnectRecordType, Mapping[str, object], Mapping[str, object] | None]
"""Record type, key and value (None: a tombstone) of a record in either log."""


@dataclass(slots=True)
class Operation:
    """An operation at ``now`` (ms), with the topics of this moment and a source of random UUIDs.

    Records are applied when the operation ends without an error, so that everything in it sees the state before it.
    ``replays`` is False if Kafka changes its memory itself: then the records change only the log's state.
    ``afterwards`` changes soft state of groups that the records make.
    """

    memory: CoordinatorState
    topics: TopicImage
    now: int
    ids: Iterator[UUID]
    outcome: RequestOutcome = field(default_factory=RequestOutcome)
    replays: bool = True
    afterwards: list[Callable[[], None]] = field(default_factory=list)

    def next_id(self) -> UUID:
        """Return the next random UUID; raises InputError when the caller gave too few."""
        try:
            return next(self.ids)
        except StopIteration:
            raise InputError("the operation needs another random id than were given") from None

    def next_text_id(self) -> str:
        """Return the next id in Kafka's form; an id that begins with a dash looks like a command line option and
        is skipped.
        """
        while True:
            text = urlsafe_b64encode(self.next_id().bytes).decode().rstrip("=")
            if not text.startswith("-"):
                return text

    def write(
        self,
        type_: RecordType | ConnectRecordType,
        key: Mapping[str, object],
        value: Mapping[str, object] | None,
        version: int = 0,
    ) -> None:
        """Write a record, a tombstone if ``value`` is None."""
        self.outcome.records.append(self.unwritten(type_, key, value, version))

    def write_all(self, records: Iterable[AnyUnwritten]) -> None:
        """Write records one after the other."""
        for record in records:
            self.write(*record)

    def unwritten(
        self,
        type_: RecordType | ConnectRecordType,
        key: Mapping[str, object],
        value: Mapping[str, object] | None,
        version: int = 0,
    ) -> CoordinatorRecord:
        """Return the record as it would be written next."""
        # All records of an operation have its time: that is how a log shows which of them belong together.
        at = LogPosition(self.memory.partition, self.memory.end_offset + len(self.outcome.records), self.now)
        return CoordinatorRecord(at, type_, key, value, None if value is None else version)

    def erase(self, group: LiveGroup) -> None:
        """Write the tombstones of the whole group, and cancel the timers that end with it."""
        self.write_all(group.tombstones())
        for key in group.timer_keys:
            self.cancel(key)

    def arm(self, key: str, delay_ms: int, action: str, group_id: str, *args: object) -> None:
        """Arm a timer, or arm it again."""
        timer = Timer(key, self.now + delay_ms, action, group_id, args)
        self.memory.timers[key] = self.outcome.timers[key] = timer

    def cancel(self, key: str) -> None:
        """Cancel a timer if it is armed."""
        if self.memory.timers.pop(key, None) is not None:
            self.outcome.timers[key] = None

    def schedule(self, key: str, action: str, group_id: str, *args: object) -> None:
        """Schedule background work. The caller checks whether that key is already scheduled."""
        task = Task(key, action, group_id, args)
        self.memory.tasks[key] = task
        self.outcome.tasks.append(task)

    def complete(self, request: AnyRequest, response: Fields) -> None:
        """Answer a request that was left pending."""
        self.outcome.completed.append(Completed(request, response))

    def commit(self) -> None:
        """Apply the records, which are now at the end of the log."""
        self.memory.end_offset += len(self.outcome.records)
        for record in self.outcome.records:
            if self.replays:
                self.memory.follow(record, self.outcome.producer_id)
            else:
                self.memory.log.apply(record)
        for change in self.afterwards:
            change()
