"""Metric families about groups, from the answers to questions. What the log does not say has no sample.

The names of this project begin with ``coordinator_audit_``. Committed offsets, lag and members have the names that
kafka-lag-exporter, kminion and Burrow have made usual, so that existing dashboards show them.

Of a bean ``kafka.server:type=group-coordinator-metrics,name=group-count,protocol=streams`` of brokers the name here is
``kafka_server_group_coordinator_metrics_group_count{protocol="streams"}``, as the JMX exporter of Prometheus has it.
Sources: KIP-848, KIP-932 and KIP-1071, section "Broker Metrics"; of classic groups, whose document has none, brokers.
The Connect documents leave metrics for later, and have the type of a group only.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, UnknownMetricFamily
from prometheus_client.registry import Collector, CollectorRegistry

from coordinator_core.audit.finding_rows import FindingRow
from coordinator_core.audit.folds.tallies import RATE_WINDOW_MS, GroupTallies
from coordinator_core.audit.offsets.burrow import GroupStatus, LagPoint, LagStatus, group_status
from coordinator_core.groups.classic.protocols import assigned_partitions
from coordinator_core.groups.classic.state import ClassicGroup, ClassicGroupState
from coordinator_core.groups.connect.state import ConnectGroupState
from coordinator_core.groups.consumer.state import ConsumerGroupState
from coordinator_core.groups.describe import CERTAIN_GROUP, certainty_label, group_state
from coordinator_core.groups.end_offsets import NewestEnds, records_behind
from coordinator_core.groups.group import Group
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.member_clients import count_clients, leader_client
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.groups.proven_state import GroupThen
from coordinator_core.groups.share.state import ShareGroupState
from coordinator_core.groups.streams.state import StreamsGroupState
from coordinator_core.records import Family

PREFIX: Final = "coordinator_audit_"

PARTITION_STATUS: Final[dict[str, int]] = {
    LagStatus.OK: 1,
    LagStatus.WARN: 2,
    LagStatus.STOP: 4,
    LagStatus.STALL: 5,
    LagStatus.REWIND: 6,
}
GROUP_STATUS: Final[dict[str, int]] = {GroupStatus.OK: 1, GroupStatus.WARN: 2, GroupStatus.ERR: 3}
"""Burrow's numbers for statuses (linkedin/Burrow, core/protocol, ``StatusConstant``)."""


COUNTERS: Final = {
    "rebalances": "rebalances",
    "causes": "rebalance_causes",
    "verdicts": "targets",
    "violations": "violations",
}
"""The names of the counters, by the tally that they show."""


class MetricNames(StrEnum):
    """The exporter whose metric names are used; KAFKA: brokers' own counts of groups and of rebalances."""

    LAG_EXPORTER = "kafka-lag-exporter"
    KMINION = "kminion"
    BURROW = "burrow"
    KAFKA = "kafka"


class PartitionOffset(NamedTuple):
    """The committed offset of a group in a partition; ``lag`` is None without an end offset."""

    group_id: str
    partition: TopicPartition
    offset: int
    lag: int | None


@dataclass(frozen=True, slots=True, eq=False)
class GroupFacts(Collector):
    """The facts about the groups of one cluster; ``collect`` yields them as metric families.

    ``ends`` are end offsets by topic and partition, from which lag is computed; empty: lag is not known. ``lag`` is the
    newest point of each group and partition, whose status Burrow's metrics have. ``is_whole``: the logs lack nothing.
    ``moment_ms`` is the time at which all of it holds; None: no record has a time.
    """

    cluster: str
    names: Sequence[MetricNames]
    groups: Sequence[GroupThen]
    ends: NewestEnds = field(default_factory=dict)
    tallies: Mapping[str, GroupTallies] = field(default_factory=dict)
    findings: Sequence[FindingRow] = ()
    lag: Sequence[LagPoint] = ()
    is_whole: bool = True
    moment_ms: int | None = None

    def registry(self) -> CollectorRegistry:
        """Return a registry that has these facts alone."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return registry

    def collect(self) -> Iterator[Metric]:
        """Yield each metric family."""
        about = (
            "1 if the logs lack nothing that these metrics rest on, 0 if there may be more groups, or records of them."
        )
        whole = GaugeMetricFamily(f"{PREFIX}logs_complete", about, labels=["cluster_name"])
        whole.add_metric([self.cluster], self.is_whole)
        yield whole
        if self.moment_ms is not None:
            about = "The time at which all these metrics hold: the last record of the logs, or the moment asked for."
            moment = GaugeMetricFamily(f"{PREFIX}moment_timestamp_seconds", about, labels=["cluster_name"])
            moment.add_metric([self.cluster], self.moment_ms / 1000)
            yield moment
        yield from self._states()
        yield from self._history()
        offsets = list(self._offsets())
        for names in self.names:
            yield from OFFSETS[names](self, offsets)

    def _states(self) -> Iterator[Metric]:
        cluster = self.cluster
        info = _gauge("group_info", "Type and state of a group; the value is 1.", "type", "state")
        members = _gauge("group_members", "Members of a group.", "type")
        epoch = _gauge("group_epoch", "Group epoch, or generation of a classic group.", "type")
        about = "1 if the log proves the whole state of the group, 0 if parts are unknown."
        certain = _gauge("group_certain", about, "type")
        about = "Members of a group of consumers by client library; one may be one of several, or unknown."
        clients = _gauge("group_clients", about, "type", "client")
        about = "1 for the client library that leads a classic group; it may be one of several, or unknown."
        leads = _gauge("group_leader_client", about, "type", "client")
        for then in _one_for_each_series(self.groups):
            group, _, certainty = then
            labels = [cluster, group.group_id, _type_of(group)]
            state = group.state
            info.add_metric([*labels, _text(group_state(group, certainty))], 1)
            certain.add_metric(labels, certainty_label(group, certainty) == CERTAIN_GROUP)
            if state is not None and certainty.members_are_known:
                members.add_metric(labels, len(state.members))
                for name, count in count_clients(state).items():
                    clients.add_metric([*labels, name], count)
                if (leader := leader_client(state)) is not None:
                    leads.add_metric([*labels, leader], 1)
            if group.epoch is not None:
                epoch.add_metric(labels, group.epoch)
        yield from (info, members, clients, leads, epoch, certain)
        about = "Number of groups by type and state, also 0; unknown: the log does not show the state."
        number_of = GaugeMetricFamily(f"{PREFIX}groups", about, labels=["cluster_name", "type", "state"])
        for group_type, of_state, count in counted_states(self.types_and_states()):
            number_of.add_metric([cluster, group_type, of_state], count)
        yield number_of

    def types_and_states(self) -> list[tuple[str, str | None]]:
        """Return the type and the state of each group; None: the log does not show the state."""
        return [(_type_of(group), group_state(group, certainty)) for group, _, certainty in self.groups]

    def _history(self) -> Iterator[Metric]:
        about = "Rebalances in the log, by type of the group and outcome."
        yield self._counter("rebalances", about, "type", "outcome")
        about = "Rebalances that have this cause; a rebalance can have several."
        yield self._counter("causes", about, "type", "cause")
        longest = _gauge("rebalance_longest_seconds", "The longest rebalance in the log, at least.", "type")
        for group_id, tallies in sorted(self.tallies.items()):
            for group_type, longest_ms in sorted(tallies.longest_ms.items()):
                longest.add_metric([self.cluster, group_id, group_type], longest_ms / 1000)
        yield longest
        yield self._counter("verdicts", "Target assignments in the log, by verdict.", "verdict")
        yield self._counter("violations", "Broken rules of the protocol.", "rule")
        scores = _gauge("finding_score", "The highest score of the findings of one kind about a group.", "kind")
        highest: dict[tuple[str, str], float] = {}
        for finding in self.findings:
            key = finding.group_id or "", finding.kind
            highest[key] = max(highest.get(key, 0.0), finding.score)
        for (group_id, kind), score in sorted(highest.items()):
            scores.add_metric([self.cluster, group_id, kind], score)
        yield scores
        about = "Findings of one kind about a group that go on at the moment; 0: they are over."
        going_on = _gauge("findings_open", about, "kind", "level")
        counts: dict[tuple[str, str, str], int] = {}
        for finding in self.findings:
            name = finding.group_id or "", finding.kind, finding.level
            # What is over is a 0: an alert ends by a sample, and not because its series is gone.
            counts[name] = counts.get(name, 0) + finding.is_open
        for labels, count in sorted(counts.items()):
            going_on.add_metric([self.cluster, *labels], count)
        yield going_on

    def _counter(self, tally: str, about: str, *labels: str) -> CounterMetricFamily:
        """Return the counter of one of the tallies."""
        family = CounterMetricFamily(PREFIX + COUNTERS[tally], about, labels=["cluster_name", "group", *labels])
        for group_id, tallies in sorted(self.tallies.items()):
            for values, count in sorted(getattr(tallies, tally)()):
                family.add_metric([self.cluster, group_id, *values], count)
        return family

    def _offsets(self) -> Iterator[PartitionOffset]:
        by_partition: dict[tuple[str, TopicPartition], PartitionOffset] = {}
        for group, offsets, certainty in self.groups:
            for partition, commit in sorted(offsets.committed.items()):
                if partition not in certainty.unknown_offsets and commit.offset >= 0:
                    end = self.ends.get(partition)
                    at_ms = commit.at.timestamp_ms
                    lag = None if end is None else records_behind(end, commit.offset, at_ms, commit.topic_id)
                    one = PartitionOffset(group.group_id, partition, commit.offset, lag)
                    by_partition[group.group_id, partition] = one  # as of states: the last one
        yield from by_partition.values()


def _type_of(group: Group) -> str:
    """Return the type of a group, which tells Connect workers from the group of the same id in the other log."""
    return str(GroupType.CONNECT) if group.family is Family.CONNECT else _text(group.type)


def _one_for_each_series(groups: Iterable[GroupThen]) -> Iterable[GroupThen]:
    """Return the groups; of one that is in two partitions of a log, as after their number was raised, the last one.

    Prometheus refuses a page that has a series twice. The replay into the tables ends with the last one, too.
    """
    return {(then.group.group_id, _type_of(then.group)): then for then in groups}.values()


def _text(value: object) -> str:
    return "unknown" if value is None else str(value)


def _gauge(name: str, about: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(PREFIX + name, about, labels=["cluster_name", "group", *labels])


def _sums(offsets: Iterable[PartitionOffset]) -> dict[tuple[str, str], list[PartitionOffset]]:
    by_topic: dict[tuple[str, str], list[PartitionOffset]] = {}
    for offset in offsets:
        by_topic.setdefault((offset.group_id, offset.partition.topic), []).append(offset)
    return by_topic


def _whole(lags: Sequence[int | None]) -> list[int] | None:
    """Return the lags, None if one is not known: a sum without it would be too small."""
    known = [lag for lag in lags if lag is not None]
    return known if len(known) == len(lags) else None


def _partition_families(
    facts: GroupFacts,
    offsets: Sequence[PartitionOffset],
    current: GaugeMetricFamily,
    lag: GaugeMetricFamily,
    of_group: Sequence[tuple[GaugeMetricFamily, Callable[[list[int]], int]]],
) -> Iterator[Metric]:
    """Fill and yield a family of committed offsets, one of lag, and families of a whole group's lag.

    ``of_group`` has each of the last families with the function of the lags of all partitions that it shows.
    """
    by_group: dict[str, list[int | None]] = {}
    for offset in offsets:
        where = [facts.cluster, offset.group_id, offset.partition.topic, str(offset.partition.partition)]
        current.add_metric(where, offset.offset)
        if offset.lag is not None:
            lag.add_metric(where, offset.lag)
        by_group.setdefault(offset.group_id, []).append(offset.lag)
    for group_id, lags in by_group.items():
        known = _whole(lags)
        if known:
            for family, figure in of_group:
                family.add_metric([facts.cluster, group_id], figure(known))
    yield from (current, lag, *(family for family, _ in of_group))


def _like_lag_exporter(facts: GroupFacts, offsets: Sequence[PartitionOffset]) -> Iterator[Metric]:
    prefix, labels = "kafka_consumergroup_group_", ["cluster_name", "group", "topic", "partition"]
    current = GaugeMetricFamily(f"{prefix}offset", "Committed offset of a group in a partition.", labels=labels)
    lag = GaugeMetricFamily(f"{prefix}lag", "Lag of a group in a partition, in records.", labels=labels)
    highest = GaugeMetricFamily(f"{prefix}max_lag", "The highest lag of a group in a partition.", labels=labels[:2])
    total = GaugeMetricFamily(f"{prefix}sum_lag", "Lag of a group, summed over partitions.", labels=labels[:2])
    yield from _partition_families(facts, offsets, current, lag, [(highest, max), (total, sum)])
    yield _end_offsets(facts, "kafka_partition_latest_offset", labels[0])


def _like_kminion(facts: GroupFacts, offsets: Sequence[PartitionOffset]) -> Iterator[Metric]:
    prefix = "kminion_kafka_consumer_group_"
    info = GaugeMetricFamily(f"{prefix}info", "State of a group; the value is 1.", labels=["group_id", "group_state"])
    members = GaugeMetricFamily(f"{prefix}members", "Members of a group.", labels=["group_id"])
    empty = GaugeMetricFamily(
        f"{prefix}empty_members", "Members of a classic group without a partition.", labels=["group_id"]
    )
    for group, _, certainty in _one_for_each_id(facts.groups):
        info.add_metric([group.group_id, _text(group_state(group, certainty))], 1)
        if group.state is None or not certainty.members_are_known:
            continue
        members.add_metric([group.group_id], len(group.state.members))
        if isinstance(group.state, ClassicGroup):
            held = [assigned_partitions(member.assignment) for member in group.state.members.values()]
            empty.add_metric([group.group_id], held.count([]))
    yield from (info, members, empty)
    labels = ["group_id", "topic_name"]
    per_partition = GaugeMetricFamily(
        f"{prefix}topic_partition_lag", "Lag of a group in a partition, in records.", labels=[*labels, "partition_id"]
    )
    lag = GaugeMetricFamily(f"{prefix}topic_lag", "Lag of a group in a topic, in records.", labels=labels)
    # Prometheus reserves this name for histograms and summaries: it may have it without a type.
    sums = UnknownMetricFamily(
        f"{prefix}topic_offset_sum", "Committed offsets of a group in a topic, summed.", labels=labels
    )
    for (group_id, topic), rows in _sums(offsets).items():
        sums.add_metric([group_id, topic], sum(row.offset for row in rows))
        for row in rows:
            if row.lag is not None:
                per_partition.add_metric([group_id, topic, str(row.partition.partition)], row.lag)
        known = _whole([row.lag for row in rows])
        if known:
            lag.add_metric([group_id, topic], sum(known))
    yield from (per_partition, lag, sums)


def _one_for_each_id(groups: Iterable[GroupThen]) -> Iterable[GroupThen]:
    """Return the groups; of two with one id only that of ``__consumer_offsets``, the log that kminion reads."""
    by_group: dict[str, GroupThen] = {}
    for then in groups:
        if then.group.group_id not in by_group or then.group.family is Family.GROUP:
            by_group[then.group.group_id] = then
    return by_group.values()


def _like_burrow(facts: GroupFacts, offsets: Sequence[PartitionOffset]) -> Iterator[Metric]:
    prefix, labels = "burrow_kafka_consumer_", ["cluster", "consumer_group", "topic", "partition"]
    current = GaugeMetricFamily(f"{prefix}current_offset", "Committed offset of a group in a partition.", labels=labels)
    lag = GaugeMetricFamily(f"{prefix}partition_lag", "Lag of a group in a partition, in records.", labels=labels)
    total = GaugeMetricFamily(f"{prefix}lag_total", "Lag of a group, summed over partitions.", labels=labels[:2])
    yield from _partition_families(facts, offsets, current, lag, [(total, sum)])
    yield _end_offsets(facts, "burrow_kafka_topic_partition_offset", labels[0])
    of_partition = GaugeMetricFamily(
        "burrow_kafka_topic_partition_status", f"Status of a partition: {_numbers(PARTITION_STATUS)}.", labels=labels
    )
    of_group = GaugeMetricFamily(
        f"{prefix}status",
        f"Status of a group: {_numbers(GROUP_STATUS)}, if a partition has another status.",
        labels=labels[:2],
    )
    by_group: dict[str, list[LagStatus]] = {}
    for point in facts.lag:
        status = LagStatus(point.status)
        by_group.setdefault(point.group_id, []).append(status)
        if status in PARTITION_STATUS:
            where = [facts.cluster, point.group_id, point.topic, str(point.partition)]
            of_partition.add_metric(where, PARTITION_STATUS[status])
    for group_id, statuses in by_group.items():
        worst = group_status(statuses)
        if worst is not None:
            of_group.add_metric([facts.cluster, group_id], GROUP_STATUS[worst])
    yield from (of_partition, of_group)


def _numbers(statuses: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in statuses.items())


def _end_offsets(facts: GroupFacts, name: str, cluster_label: str) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, "End offset of a partition.", labels=[cluster_label, "topic", "partition"])
    for partition, end in sorted(facts.ends.items()):
        family.add_metric([facts.cluster, partition.topic, str(partition.partition)], end.offset)
    return family


def _like_kafka(facts: GroupFacts, offsets: Sequence[PartitionOffset]) -> Iterator[Metric]:
    yield from broker_metrics(facts.cluster, facts.types_and_states(), facts.tallies.values(), facts.moment_ms)


OFFSETS: Final = {
    MetricNames.LAG_EXPORTER: _like_lag_exporter,
    MetricNames.KMINION: _like_kminion,
    MetricNames.BURROW: _like_burrow,
    MetricNames.KAFKA: _like_kafka,
}


KAFKA_PREFIX: Final = "kafka_server_group_coordinator_metrics_"

STATES: Final[dict[GroupType, tuple[str, ...]]] = {
    # A log has no generation that is still being prepared or completed: whether one is, no sample may say.
    GroupType.CLASSIC: (ClassicGroupState.EMPTY, ClassicGroupState.STABLE),
    GroupType.CONSUMER: tuple(ConsumerGroupState),
    GroupType.SHARE: tuple(ShareGroupState),
    GroupType.STREAMS: tuple(StreamsGroupState),
    GroupType.CONNECT: tuple(ConnectGroupState),
}
"""The states of each type of group that a log shows."""

UNKNOWN: Final = "unknown"
_REBALANCES: Final = {
    GroupType.CLASSIC: "group_completed_rebalance",
    GroupType.CONSUMER: "consumer_group_rebalance",
    GroupType.SHARE: "share_group_rebalance",
    GroupType.STREAMS: "streams_group_rebalance",
}


def counted_states(groups: Iterable[tuple[str, str | None]]) -> Iterator[tuple[str, str, int]]:
    """Yield how many groups of each type are in each state, 0 where none is, from their types and states.

    ``unknown`` is the state, or the type, of those of which the log does not show it.
    """
    counts = Counter((group_type, state or UNKNOWN) for group_type, state in groups)
    for group_type, states in STATES.items():
        for state in (*states, UNKNOWN):
            yield group_type, state, counts[group_type, state]
    yield UNKNOWN, UNKNOWN, counts[UNKNOWN, UNKNOWN]


def broker_metrics(
    cluster: str, groups: Sequence[tuple[str, str | None]], tallies: Collection[GroupTallies], moment_ms: int | None
) -> Iterator[Metric]:
    """Yield the metrics of brokers, summed over a cluster: groups by type and by state, rebalances, and their rate.

    ``groups`` are their types and states. Without a moment there is no rate. A broker counts since it started, the log
    since it begins.
    """
    by_type = _family("group_count", "Groups, by protocol.", "protocol")
    for group_type in (*STATES, UNKNOWN):
        by_type.add_metric([cluster, group_type.lower()], sum(1 for kind, _ in groups if kind == group_type))
    yield by_type
    families: dict[str, UnknownMetricFamily] = {
        kind: _family(f"{kind.lower()}_group_count", f"Groups of the type {kind.lower()}, by state.", "state")
        for kind in STATES
        if kind is not GroupType.CONNECT
    }
    for of_type, state, count in counted_states(groups):
        if of_type in families:
            families[of_type].add_metric([cluster, _spelling(of_type, state)], count)
    for of_type, family in families.items():
        if of_type != GroupType.CLASSIC:
            family.add_metric([cluster, "dead"], 0)  # a group is dead when its tombstone is written, and is gone then
        yield family
    for group_type, name in _REBALANCES.items():
        total = _family(f"{name}_count", f"Rebalances of groups of the type {group_type.lower()} in the log.")
        total.add_metric([cluster], sum(tally.rebalances_of(group_type) for tally in tallies))
        yield total
        if moment_ms is not None:
            rate = _family(f"{name}_rate", "The same in the last 60 s before the moment, per second.")
            recent = sum(tally.begun_after(group_type, moment_ms - RATE_WINDOW_MS) for tally in tallies)
            rate.add_metric([cluster], recent * 1000 / RATE_WINDOW_MS)
            yield rate


def _spelling(group_type: str, state: str) -> str:
    """Return a state as brokers spell it: classic ones as ``Stable``, the others as ``not_ready``."""
    return state.capitalize() if group_type == GroupType.CLASSIC and state != UNKNOWN else state.lower()


def _family(name: str, about: str, *labels: str) -> UnknownMetricFamily:
    """Return a family without a type, as those of JMX: gauges may not have names that end with ``_count``."""
    return UnknownMetricFamily(KAFKA_PREFIX + name, about, labels=["cluster_name", *labels])
