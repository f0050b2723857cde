"""The coordinator's log of a running cluster, followed by a consumer that never joins a group or commits an offset.

A consumer sees neither control records nor batches, so that outcomes of transactions are unknown. It reads uncommitted
records as well, so that no record is left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from coordinator_core.errors import InputError
from coordinator_core.groups import offsets
from coordinator_core.groups.end_offsets import EndOffset
from coordinator_core.wire.batch_format import Kind
from jobs.sources import cluster_snapshot
from jobs.sources.bounded_warnings import Warn
from jobs.sources.cluster_snapshot import SnapshotRow, end_offsets, topic_ids
from jobs.sources.files import FAMILIES, REPLAYED_TOPICS
from jobs.sources.kafka_reports import CONSUMER, PASSING, Reports
from jobs.sources.log_reader import LogRow
from jobs.watch.followed_log import LastRow, Reached, other_log
from jobs.watch.live_topics import Leaders
from jobs.watch.new_rows import LogPlace, NewRows

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

TIMEOUT_S: Final = 30.0
"""How long a broker may take for an answer, as Kafka's clients wait by default (request.timeout.ms)."""
WAIT_S: Final = 0.05
"""How long a poll waits for records; a line is printed at most that long after its record has come."""
MESSAGES_A_CALL: Final = 5_000
"""A call that returns fewer has come to the end of what is there."""
LOOK_S: Final = 5.0
"""How often end offsets and new log partitions are asked for."""


SNAPSHOT_S: Final = 60.0
"""How often a snapshot is taken of topics and settings, besides when topics or their partitions come and go."""
LOOK_TIMEOUT_S: Final = 3.0
"""How long brokers may take to say who leads which partition."""


class Ends(NamedTuple):
    """End offsets of partitions as of a time (ms)."""

    time_ms: int
    offsets: dict[offsets.TopicPartition, EndOffset]


class TakenSnapshot(NamedTuple):
    """Topics and settings of the cluster at a time (ms), as ``cluster_snapshot.take`` gives them."""

    time_ms: int
    rows: Sequence[SnapshotRow]


class Look(NamedTuple):
    """What brokers said when they were asked (ms): leaders of the logs of groups, end offsets, and perhaps a snapshot.

    ``leaders`` and ``ends`` are None if no broker answered.
    """

    time_ms: int
    leaders: Leaders | None = None
    ends: Ends | None = None
    snapshot: TakenSnapshot | None = None


class LiveBroker:
    """The partitions of the logs of groups. ``poll`` gives what was written since the last one."""

    def __init__(self, servers: str, config: Mapping[str, str], warn: Warn) -> None:
        """Connect.

        Raises:
            InputError: the broker refuses the login or does not answer.
        """
        self._servers, self._warn = servers, warn
        self._config = {**config, "bootstrap.servers": servers}
        self._is_away = False
        reports = self._reports = Reports({**CONSUMER, **self._config})
        try:
            self._consumer: Any = Consumer(reports.settings)
        except KafkaException as error:
            raise reports.failure(error) from error
        self.cluster = ""
        self.is_settled = True
        self._former: Mapping[LogPlace, Reached] = {}
        self._places: dict[tuple[str, int], LogPlace] = {}
        self._from_start: dict[LogPlace, bool] = {}
        self._ends: dict[LogPlace, int] = {}
        self._read: dict[LogPlace, LastRow] = {}
        self._known: dict[LogPlace, LastRow] = {}
        self._lost: set[LogPlace] = set()
        self._unread: set[tuple[str, int]] = set()
        self._looker = ThreadPoolExecutor(1)
        self._looked_s = 0.0
        self._asked: Future[Look] | None = None
        self._admin: AdminClient | None = None
        self._snapshot_s = 0.0
        self._counts: dict[str, int] = {}
        self._takes_snapshots = self._lacks_snapshot = False

    def begin(self, reached: Mapping[LogPlace, Reached]) -> None:
        """Begin at the first offset of each partition, or where a former watch stopped.

        A cluster makes the logs of groups when its first consumer comes: ``look`` finds them then.

        Raises:
            InputError: a partition ends before what the former watch read, or none is there any more.
        """
        self._former = reached
        try:
            self._follow(self._listed(), TIMEOUT_S)
        except KafkaException as error:
            raise self._reports.failure(error) from error
        if not self._places:
            missing = f"{self._servers}: there is no topic {' or '.join(REPLAYED_TOPICS)}"
            if reached:
                raise InputError(missing)
            self._warn(f"{missing} yet, as no consumer has come to a new cluster: waiting")

    def identify(self) -> str:
        """Return the id of the cluster. Raise InputError if it does not answer."""
        self._listed()
        return self.cluster

    def _listed(self) -> set[tuple[str, int]]:
        listed = self._reports.listed(self._consumer, TIMEOUT_S)
        self.cluster = listed.cluster_id or ""
        described = {topic: listed.topics[topic] for topic in REPLAYED_TOPICS if topic in listed.topics}
        return {
            (topic, number) for topic, each in described.items() if each.error is None for number in each.partitions
        }

    def _follow(self, listed: Collection[tuple[str, int]], timeout_s: float) -> None:
        new = sorted(set(listed) - self._places.keys())
        begins = []
        for topic, partition in new:
            place = LogPlace(topic, FAMILIES[topic], partition)
            low, high = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=timeout_s)
            # Also of a partition that was not listed when the watch began: its groups have what was read before.
            known = self._former.get(place)
            if known is not None and known.last.offset >= high:
                raise InputError(other_log(place, known.last.offset, f"the log ends at {high}"))
            if known is not None:
                self._known[place] = known.last
                if low > known.last.offset + 1:
                    self._lost.add(place)
            # The last record that was read comes again: it tells whether this is still the same log.
            first = OFFSET_BEGINNING if known is None else max(low, known.last.offset)
            begins.append(TopicPartition(topic, partition, first))
            self._from_start[place] = low == 0 if known is None else known.from_start
            self._ends[place] = -1 if known is None else known.last.offset
            self._places[topic, partition] = place
            self._unread.add((topic, partition))
        if begins:
            self._consumer.incremental_assign(begins)

    def places(self) -> list[LogPlace]:
        """Return the log partitions that are followed, empty ones included."""
        return [*self._from_start]

    @property
    def has_all(self) -> bool:
        """Whether these are all partitions of their topics: the broker lists them."""
        return True

    @property
    def is_caught_up(self) -> bool:
        """Whether all partitions were read to the end that they had."""
        return not (self._unread or self._is_away)

    def poll(self) -> Iterator[NewRows]:
        """Yield new rows by partition; wait for some for a moment. A broker that is away is waited for.

        Raises:
            InputError: the broker reports an error that does not pass, or the log is another one than before.
        """
        rows: dict[tuple[str, int], list[LogRow]] = {}
        out_of_range: list[tuple[str, int]] = []
        messages = self._consumer.consume(MESSAGES_A_CALL, timeout=WAIT_S)
        # A full call may end between two records that a coordinator wrote at once; a short one came to the end.
        self.is_settled = len(messages) < MESSAGES_A_CALL
        for message in messages:
            error = message.error()
            if error is None:
                self._take(message, rows)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._answers()
                self._unread.discard((message.topic(), message.partition()))
            elif error.code() in PASSING or error.retriable():
                self._stays_away(error.str())
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                out_of_range.append((message.topic(), message.partition()))
            else:
                raise InputError(f"{self._servers}: {error.str()}")
        # The client does not give a message when a broker is away: it reports that apart, while it is polled.
        reported = [*self._reports.errors]
        self._reports.errors.clear()
        if reported and not rows:
            self._stays_away(reported[-1].str())
        for where, some in sorted(rows.items()):
            place = self._places[where]
            self._read[place] = LastRow.of(some[-1])
            yield NewRows(place, some, self._from_start[place], place in self._lost, hides_control=True)
            self._lost.discard(place)
        for where in out_of_range:
            # What came next was deleted, or all that was read: the next look begins again, and finds out which.
            place = self._places.pop(where)
            self._consumer.incremental_unassign([TopicPartition(*where)])
            if place in self._read:
                self._former = {**self._former, place: Reached(self._read[place], self._from_start[place])}

    def _take(self, message: Any, rows: dict[tuple[str, int], list[LogRow]]) -> None:
        """Take a record once: after a fail-over, a broker may give some again."""
        self._answers()
        where = message.topic(), message.partition()
        place, row = self._places[where], _row(message)
        known = self._known.get(place)
        if known is not None:
            if row.offset == known.offset and LastRow.of(row) != known:
                raise InputError(other_log(place, row.offset, "another record is there"))
            # The same record, or a later one where compaction has removed it: nothing more can be compared.
            del self._known[place]
        if row.offset > self._ends[place]:
            self._ends[place] = row.offset
            rows.setdefault(where, []).append(row)

    def snapshot(self) -> TakenSnapshot | None:
        """Return topics and settings as they are now; None, with a warning, if the cluster does not give them: then the
        looks ask for them again.
        """
        self._takes_snapshots = True
        time_ms = time.time_ns() // 1_000_000
        try:
            rows = cluster_snapshot.take(self._config, time_ms, self._warn)
        except InputError as error:
            self._lacks_snapshot = True
            self._warn(f"the topics of the cluster are not known, and targets are not judged: {error}")
            return None
        self._snapshot_s = time.monotonic()
        return TakenSnapshot(time_ms, rows)

    def look(self, partitions: Callable[[], Collection[offsets.TopicPartition]]) -> Look | None:
        """Return what brokers say of the cluster if something new is there; None: later. ``partitions`` are those of
        data topics whose end offsets are wanted.

        They are asked beside the watch, every few seconds. Partitions of the logs that are new are followed from then
        on.
        """
        if self._asked is None:
            if time.monotonic() - self._looked_s >= LOOK_S:
                self._asked = self._looker.submit(self._look, partitions())
            return None
        if not self._asked.done():
            return None
        asked, self._asked, self._looked_s = self._asked, None, time.monotonic()
        look = asked.result()
        if self._lacks_snapshot and look.snapshot is not None:
            self._lacks_snapshot = False
            self._warn("the topics of the cluster are known now, and targets are judged")
        if look.leaders is None:
            # Brokers that do not answer are asked again at once: when they were away is known by these questions
            # alone.
            self._looked_s -= LOOK_S
        else:
            self._follow_led(look.leaders)
        return look

    def _follow_led(self, leaders: Leaders) -> None:
        """Follow new partitions: without a leader the watermarks of one could not be asked for."""
        try:
            for place in sorted(place for place, leader in leaders.items() if leader >= 0):
                self._follow([place], LOOK_TIMEOUT_S)
        except KafkaException as error:
            # The leader went away since it was named: this one and those behind it are asked for with the next look.
            self._stays_away(error.args[0].str())

    def _look(self, partitions: Collection[offsets.TopicPartition]) -> Look:
        from confluent_kafka.admin import AdminClient

        asked_ms = time.time_ns() // 1_000_000
        try:
            if self._admin is None:
                self._admin = AdminClient(Reports(self._config).settings)
            topics = self._admin.list_topics(timeout=LOOK_TIMEOUT_S).topics
            there = [
                partition
                for partition in partitions
                if partition.topic in topics and partition.partition in topics[partition.topic].partitions
            ]
            # Before the ends: what a topic that was made again meanwhile has is not said to be of the one before it.
            ids = topic_ids(self._admin, {partition.topic for partition in there})
            ends = end_offsets(self._admin, there)
        except KafkaException:
            return Look(asked_ms)
        now_ms = time.time_ns() // 1_000_000
        leaders = {
            (topic, number): partition.leader
            for topic in REPLAYED_TOPICS
            if topic in topics
            for number, partition in topics[topic].partitions.items()
        }
        known = Ends(
            now_ms, {offsets.TopicPartition(*key): EndOffset(now_ms, end, ids.get(key[0])) for key, end in ends.items()}
        )
        return Look(asked_ms, leaders, known, self._new_snapshot(topics))

    def _new_snapshot(self, topics: Mapping[str, Any]) -> TakenSnapshot | None:
        """Return a snapshot if topics or their partitions came or went, or the last one is old."""
        if not self._takes_snapshots:
            return None
        counts = {name: len(topic.partitions) for name, topic in topics.items()}
        if counts == self._counts and time.monotonic() - self._snapshot_s < SNAPSHOT_S:
            return None
        self._counts, self._snapshot_s = counts, time.monotonic()
        time_ms = time.time_ns() // 1_000_000
        try:  # what the cluster does not give was said with the first one
            return TakenSnapshot(time_ms, cluster_snapshot.take(self._config, time_ms, lambda _: None))
        except InputError:
            return None

    def close(self) -> None:
        """Leave the cluster."""
        self._looker.shutdown(wait=False, cancel_futures=True)
        self._consumer.close()

    def _stays_away(self, cause: str) -> None:
        if not self._is_away:
            self._is_away = True
            self._warn(f"{self._servers} does not answer ({cause}): waiting")

    def _answers(self) -> None:
        if self._is_away:
            self._is_away = False
            self._warn(f"{self._servers} answers again")


def _row(message: Any) -> LogRow:
    _, timestamp = message.timestamp()
    leader_epoch = message.leader_epoch()
    return LogRow(
        Kind.RECORD.value,
        message.offset(),
        timestamp,
        message.key() or b"",
        message.value(),
        None,
        False,
        -1,
        -1 if leader_epoch is None else leader_epoch,
        -1,
    )
