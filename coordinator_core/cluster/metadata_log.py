"""Fold of ``__cluster_metadata`` (KRaft, KIP-500) to a history of topics, racks and dynamic configs.

The records of one batch become visible together, as brokers see them. The records of a metadata transaction (KIP-868)
become visible when it ends, or not at all if it is aborted.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple

from coordinator_core.cluster.image import Topic
from coordinator_core.cluster.snapshot_settings import METADATA_VERSION
from coordinator_core.cluster.topic_changes import HistoryGap
from coordinator_core.cluster.topic_history import TOPIC_RESOURCE, TopicHistory
from coordinator_core.record_fields.cluster_metadata import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from coordinator_core.records import AnyRecord, Fields, LogPosition, MetadataRecordType

NO_CHANGE: Final = -2
"""The leader in a change of a partition that leaves the leader as it was."""
NOT_CHANGED: Final = 0
"""In the change of a registration: whether the broker is fenced is as it was; 1: it is fenced now, -1: it is not."""


QUIET_MS: Final = 5_000
"""The controller writes a no-op where it has written nothing for half a second (``metadata.max.idle.interval.ms``,
KIP-835): after so long without a record, there was none.
"""
RESTART_MS: Final = 60_000
"""A broker that went down with the controller is seen to be gone, or is back, so soon after its next record."""


class Snapshot(NamedTuple):
    """The records of a KRaft snapshot (KIP-630), and the last position of the log that the snapshot covers."""

    records: list[AnyRecord]
    at: LogPosition


def fold_metadata_log(records: Iterable[AnyRecord], snapshot: Snapshot | None = None) -> TopicHistory:
    """Return the history of topics in a metadata log; ``records`` are of ``Family.METADATA``, in offset order.

    With a snapshot the history begins there, and earlier records are ignored.
    """
    log = MetadataLog()
    if snapshot is not None:
        log.begin(snapshot)
    for record in records:
        log.apply(record)
    return log.finish()


def _begins_cluster(record: AnyRecord) -> bool:
    """Whether nothing but the controllers' elections (control records) can lie before this record.

    A new cluster's log begins with its bootstrap records: a feature level, or a transaction of that name.
    """
    if record.at.offset <= 1:
        return True
    name = (record.value or {}).get("name")
    return (record.type, name) in (
        (MetadataRecordType.BEGIN_TRANSACTION, "Bootstrap records"),
        (MetadataRecordType.FEATURE_LEVEL, METADATA_VERSION),
    )


@dataclass(slots=True)
class _TopicState:
    name: str
    replicas: dict[int, tuple[int, ...]] = field(default_factory=dict)


class MetadataLog:
    """Builds a history of topics: feed records in offset order with ``apply``, then call ``finish``.

    A record at or before the last offset seen is ignored, so that dumps may overlap. Records that contradict earlier
    ones are listed in ``history.gaps``; nothing is guessed for them.
    """

    def __init__(self) -> None:
        self.history = TopicHistory()
        self._topics: dict[str, _TopicState] = {}
        self._ids: dict[str, str] = {}
        self._brokers: dict[int, str | None] = {}
        self._last = LogPosition(0, -1, -1)
        self._is_idle = False
        self._quiet: tuple[LogPosition, int] | None = None
        self._controllers: set[int] = set()
        self._batch: tuple[int, int] | None = None
        self._transaction: list[AnyRecord] | None = None
        self._touched: set[str] = set()
        self._removed: set[str] = set()
        self._moved: set[int] = set()
        self._configs: list[Callable[[], None]] = []
        self._handlers: dict[int, Callable[[Any], None]] = {
            MetadataRecordType.TOPIC: self._topic,
            MetadataRecordType.REMOVE_TOPIC: self._remove_topic,
            MetadataRecordType.PARTITION: lambda value: self._partition(value, value.get("leaderEpoch")),
            MetadataRecordType.PARTITION_CHANGE: self._partition,
            MetadataRecordType.REGISTER_BROKER: self._register_broker,
            MetadataRecordType.REGISTER_CONTROLLER: self._register_controller,
            MetadataRecordType.UNREGISTER_BROKER: self._unregister_broker,
            MetadataRecordType.BROKER_REGISTRATION_CHANGE: self._change_registration,
            MetadataRecordType.FENCE_BROKER: partial(self._fence, fenced=True),
            MetadataRecordType.UNFENCE_BROKER: partial(self._fence, fenced=False),
            MetadataRecordType.CONFIG: self._config,
            MetadataRecordType.FEATURE_LEVEL: self._feature_level,
        }

    def begin(self, snapshot: Snapshot) -> None:
        """Take a whole state before any record, as one version of the history."""
        self._last = snapshot.at
        self.history.first_seen_ms = snapshot.at.timestamp_ms
        for record in snapshot.records:
            self._change(record)
        self._publish()

    def apply(self, record: AnyRecord) -> None:
        """Apply the next record; record types that are not about topics, racks or configs only advance the time."""
        at = record.at
        # Dumps may overlap: what was read before comes again.
        if at.offset <= self._last.offset:
            return
        if self._last.offset < 0 and _begins_cluster(record):
            self.history.from_start = True
            self.history.first_seen_ms = max(at.timestamp_ms, 0)
        elif self._last.offset < 0:
            self.history.complete = False
            self.history.first_seen_ms = at.timestamp_ms
            self._gap(at, f"the log begins at offset {at.offset}: topics created before it are unknown")
        # Where a dump shows no batches, records of one time pass for one: a controller writes a batch with one time.
        batch = (record.batch, at.timestamp_ms if record.batch < 0 else -1)
        if batch != self._batch:
            self._publish()
            self._batch = batch
        if self._is_idle and at.timestamp_ms - self._last.timestamp_ms > QUIET_MS:
            self._quiet = self._last, at.timestamp_ms
            # From here on: controllers that register have started since the log was quiet.
            self._controllers.clear()
        self._is_idle = record.type == MetadataRecordType.NO_OP
        self._last = at
        if record.type == MetadataRecordType.BEGIN_TRANSACTION:
            self._transaction = []
        elif record.type == MetadataRecordType.END_TRANSACTION:
            for held in self._take_transaction(at):
                self._change(held)
        elif record.type == MetadataRecordType.ABORT_TRANSACTION:
            self._take_transaction(at)
        elif self._transaction is not None:
            self._transaction.append(record)
        else:
            self._change(record)

    def finish(self) -> TopicHistory:
        """Publish the last batch and return the history; more records may follow."""
        self._publish()
        self._batch = None
        self.history.last_seen_ms = max(self.history.last_seen_ms, self._last.timestamp_ms)
        return self.history

    def _take_transaction(self, at: LogPosition) -> list[AnyRecord]:
        held, self._transaction = self._transaction, None
        if held is None:
            self._gap(at, "the end of a metadata transaction whose beginning was not seen")
        return held or []

    def _gap(self, at: LogPosition, cause: str) -> None:
        self.history.gaps.append(HistoryGap(at, cause))

    def _change(self, record: AnyRecord) -> None:
        handler = self._handlers.get(record.type)
        if handler is not None and record.value is not None:
            handler(record.value)

    # --- one handler a record type -----------------------------------------------------------------------------------

    def _topic(self, value: TopicRecord) -> None:
        name, topic_id = value["name"], value["topicId"]
        replaced = self._ids.get(name)
        if replaced is not None and replaced != topic_id:
            self._gap(self._last, f"topic {name} appears under a new id; the deletion of {replaced} was not seen")
            # Its former id needs no removal: the new topic takes its place under the name when the batch is published.
            del self._topics[replaced]
            self._forget_configs(name)
        earlier = self._topics.get(topic_id)
        if earlier is not None and earlier.name != name:
            self._gap(self._last, f"topic id {topic_id} appears under a new name; it was {earlier.name}")
            del self._ids[earlier.name]
            self._removed.add(earlier.name)
        self._ids[name] = topic_id
        self._topics[topic_id] = _TopicState(name)
        self._touched.add(topic_id)

    def _remove_topic(self, value: RemoveTopicRecord) -> None:
        state = self._topics.pop(value["topicId"], None)
        if state is None:
            self._gap(self._last, f"deletion of topic id {value['topicId']}, which no record created")
            return
        del self._ids[state.name]
        self._removed.add(state.name)
        self._forget_configs(state.name)

    def _forget_configs(self, topic: str) -> None:
        """A topic that goes takes its configs with it: no record unsets them."""
        self._configs.append(partial(self.history.forget_configs, TOPIC_RESOURCE, topic))

    def _config(self, value: ConfigRecord) -> None:
        resource = value["resourceType"], value["resourceName"]
        self._configs.append(partial(self.history.put_config, *resource, value["name"], value["value"]))

    def _partition(self, value: PartitionRecord | PartitionChangeRecord, epoch: int | None = None) -> None:
        topic_id, partition = value["topicId"], value["partitionId"]
        state = self._topics.get(topic_id)
        if state is None:
            self._gap(self._last, f"partition {partition} of topic id {topic_id}, which no record created")
            return
        replicas, leader = value.get("replicas"), value.get("leader", NO_CHANGE)
        if replicas is not None:
            state.replicas[partition] = tuple(replicas)
        self._touched.add(topic_id)
        if leader != NO_CHANGE:
            self.history.brokers.note_leader(state.name, partition, leader, epoch, self._last)

    def _register_broker(self, value: RegisterBrokerRecord) -> None:
        broker, brokers = value["brokerId"], self.history.brokers
        supported = {feature["name"]: feature["maxSupportedVersion"] for feature in value.get("features") or ()}
        brokers.note_support((name for name, level in supported.items() if level > 0), self._last)
        self._note_lost(broker)
        brokers.note_registration(
            broker,
            self._last,
            supported.get(METADATA_VERSION),
            fenced=value.get("fenced", False),
            tells_shutdown="inControlledShutdown" in value,
        )
        if value.get("inControlledShutdown"):  # in a snapshot
            brokers.note_shutdown(broker, self._last)
        self._set_rack(broker, value.get("rack"))

    def _register_controller(self, value: Fields) -> None:
        self._controllers.add(value["controllerId"])
        self.history.brokers.note_controller(value["controllerId"])

    def _note_lost(self, broker: int) -> None:
        """A broker registers again, or a controller that started in its process fences it: if it was there when the
        log grew quiet, it was killed, and no controller was there to fence it.
        """
        if self._quiet is not None and self._last.timestamp_ms - self._quiet[1] <= RESTART_MS:
            self.history.brokers.note_lost(broker, self._quiet[0])

    def _unregister_broker(self, value: UnregisterBrokerRecord) -> None:
        self.history.brokers.note_unregistration(value["brokerId"], self._last)
        self._set_rack(value["brokerId"], None)

    def _change_registration(self, value: BrokerRegistrationChangeRecord) -> None:
        if value.get("inControlledShutdown"):
            self.history.brokers.note_shutdown(value["brokerId"], self._last)
        fenced = value.get("fenced", NOT_CHANGED)
        if fenced > 0 and value["brokerId"] in self._controllers:
            self._note_lost(value["brokerId"])
        if fenced != NOT_CHANGED:
            self.history.brokers.note_fenced(value["brokerId"], self._last, fenced=fenced > 0)

    def _fence(self, value: FenceBrokerRecord | UnfenceBrokerRecord, *, fenced: bool) -> None:
        self.history.brokers.note_fenced(value["id"], self._last, fenced=fenced)

    def _feature_level(self, value: FeatureLevelRecord) -> None:
        self.history.brokers.note_level(value["name"], value["featureLevel"], self._last)

    def _set_rack(self, broker: int, rack: str | None) -> None:
        is_first_seen = self._lacks_brokers and broker not in self._brokers
        if is_first_seen or self._brokers.get(broker) != rack:
            self._brokers[broker] = rack
            self._moved.add(broker)

    @property
    def _lacks_brokers(self) -> bool:
        """Whether records are missing, which may have registered brokers."""
        return not self.history.complete or bool(self.history.gaps)

    # --- versions ----------------------------------------------------------------------------------------------------

    def _publish(self) -> None:
        """Make what the last batch changed one version of the history."""
        if not (self._touched or self._removed or self._moved or self._configs):
            return
        history = self.history
        history.open_version(self._last)
        # Sorted: sets of ids have another order in each process, and the order of changes is what tables have.
        for broker in sorted(self._moved):
            history.put_broker(broker, self._brokers[broker])
        # Removals first: in one batch a topic may be deleted, and created again under its name.
        for name in sorted(self._removed):
            history.remove_topic(name)
        for topic_id in sorted(self._touched & self._topics.keys()):
            state = self._topics[topic_id]
            # A topic with a hole in its partitions would have a wrong hash, and wrong counts: none is better.
            if set(state.replicas) != set(range(len(state.replicas))):
                self._gap(self._last, f"topic {state.name} lacks partitions below its highest one")
                continue
            replicas = tuple(state.replicas[partition] for partition in range(len(state.replicas)))
            history.put_topic(Topic(state.name, topic_id, len(replicas), self._racks(state), replicas))
        # Topics after brokers: a broker that got another rack changes all topics of which it has replicas.
        for state in self._topics.values() if self._moved else ():
            if not self._moved.isdisjoint(chain.from_iterable(state.replicas.values())):
                history.put_racks(state.name, self._racks(state))
        for change in self._configs:
            change()
        self._touched.clear()
        self._removed.clear()
        self._moved.clear()
        self._configs.clear()

    def _racks(self, state: _TopicState) -> tuple[tuple[str, ...], ...]:
        """The racks of each partition's replicas, in replica order, brokers without a rack left out.

        None is known where a replica is on a broker of which no record is left: it may have a rack.
        """
        racks = self._brokers
        if self._lacks_brokers and not racks.keys() >= set(chain.from_iterable(state.replicas.values())):
            return ()
        return tuple(
            tuple(rack for broker in state.replicas[partition] if (rack := racks.get(broker)) is not None)
            for partition in sorted(state.replicas)
        )
