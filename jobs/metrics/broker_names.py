"""The metrics of brokers about groups, by the names that the protocol documents give them, counted from the log.

Of a bean ``kafka.server:type=group-coordinator-metrics,name=group-count,protocol=streams`` the name here is
``kafka_server_group_coordinator_metrics_group_count{protocol="streams"}``, as the JMX exporter of Prometheus has it.
Sources: KIP-848, KIP-932 and KIP-1071, section "Broker Metrics"; of classic groups, whose document has none, brokers.
The Connect documents leave metrics for later, and have the type of a group only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from prometheus_client.core import Metric, UnknownMetricFamily

from coordinator_core.audit.folds.tallies import RATE_WINDOW_MS, GroupTallies
from coordinator_core.groups.classic.state import ClassicGroupState
from coordinator_core.groups.connect.state import ConnectGroupState
from coordinator_core.groups.consumer.state import ConsumerGroupState
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.share.state import ShareGroupState
from coordinator_core.groups.streams.state import StreamsGroupState

PREFIX: Final = "kafka_server_group_coordinator_metrics_"

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
    return UnknownMetricFamily(PREFIX + name, about, labels=["cluster_name", *labels])
