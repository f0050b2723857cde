"""A group's own configurations, held against the bounds of brokers, the protocol and the type of the group.

Brokers move a value into their bounds without a word (KIP-848, KIP-932, KIP-1071: ``group.<type>.min...`` and
``max...``), so that what an administrator set, perhaps before the bounds changed, is not what holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from coordinator_core.cluster.setting_values import int_setting
from coordinator_core.groups.described import DescribedSetting
from coordinator_core.groups.group_type import GroupType

PROTOCOLS = "group.coordinator.rebalance.protocols"
WITH_SETTINGS = (GroupType.CONSUMER, GroupType.SHARE, GroupType.STREAMS)
"""The types of groups that Kafka has settings for."""

OfBrokers = Callable[[str], str | None]
"""Returns the value of a broker setting; None: no snapshot shows it."""


class SettingBounds(NamedTuple):
    """The lowest and highest value of a setting of groups: a number, or the broker setting that has it."""

    lowest: int | str
    highest: str | None


DEFAULTS: dict[str, int] = {
    **{
        f"group.{kind.lower()}.{bound}.{setting}.ms": default
        for kind in WITH_SETTINGS
        for setting, bounds in (
            ("session.timeout", (45_000, 60_000)),
            ("heartbeat.interval", (5_000, 15_000)),
            ("assignment.interval", (0, 15_000)),
        )
        for bound, default in zip(("min", "max"), bounds, strict=True)
    },
    "group.share.min.record.lock.duration.ms": 15_000,
    "group.share.max.record.lock.duration.ms": 60_000,
    "group.share.min.delivery.count.limit": 2,
    "group.share.max.delivery.count.limit": 10,
    "group.share.min.partition.max.record.locks": 100,
    "group.share.max.partition.max.record.locks": 4_000,
    "group.streams.max.standby.replicas": 2,
    "group.streams.max.warmup.replicas": 20,
    "group.streams.min.task.offset.interval.ms": 15_000,
}
"""The bounds of a broker on which they are not set (4.4, KIP-1071)."""


def _of_brokers(short: str) -> SettingBounds:
    kind, _, setting = short.partition(".")
    lowest, highest = (f"group.{kind}.{bound}.{setting}" for bound in ("min", "max"))
    return SettingBounds(lowest, highest)


_BETWEEN = {name.replace(".min.", ".").removeprefix("group.") for name in DEFAULTS if ".min." in name}

BOUNDS: dict[str, SettingBounds] = {short: _of_brokers(short) for short in _BETWEEN} | {
    "streams.num.standby.replicas": SettingBounds(0, "group.streams.max.standby.replicas"),
    "streams.num.warmup.replicas": SettingBounds(0, "group.streams.max.warmup.replicas"),
    "streams.acceptable.recovery.lag": SettingBounds(0, None),
    "streams.task.offset.interval.ms": SettingBounds("group.streams.min.task.offset.interval.ms", None),
}
"""Settings of groups with bounds, by the name without ``group.``, which KIP-1071 puts before it."""


def describe_settings(
    group_type: GroupType | None, settings: Mapping[str, str], of_brokers: OfBrokers
) -> list[DescribedSetting]:
    """Return the group's own settings by name, each with what is wrong with it; null: nothing that is known."""
    return [
        {
            "name": name,
            "value": value,
            "problem": "; ".join(
                [*_problems(group_type, name, value, of_brokers), *_outlasted(name, settings, of_brokers)]
            )
            or None,
        }
        for name, value in sorted(settings.items())
    ]


def _problems(group_type: GroupType | None, name: str, value: str, of_brokers: OfBrokers) -> Iterator[str]:
    short = name.removeprefix("group.")
    kind = short.split(".")[0].upper()
    if kind in set(GroupType):
        if group_type is not None and kind != group_type:
            yield f"a setting of groups of the type {kind}: it has no effect on this group of the type {group_type}"
        enabled = of_brokers(PROTOCOLS)
        if enabled is not None and kind.lower() not in {word.strip() for word in enabled.split(",")}:
            yield f"the brokers have not enabled the protocol {kind.lower()!r} ({PROTOCOLS}={enabled})"
    bounds, number = BOUNDS.get(short), int_setting(value, 64)
    if bounds is None or number is None:
        return
    lowest, highest = (_bound(bound, of_brokers) for bound in bounds)
    if lowest is not None and number < lowest.value:
        yield f"below {lowest}"
    if highest is not None and number > highest.value:
        yield f"above {highest}"


class _Bound(NamedTuple):
    """A bound, the broker setting that has it (None: the protocol does), and whether a snapshot shows it."""

    value: int
    name: str | None = None
    is_shown: bool = True

    def __str__(self) -> str:
        if self.name is None:
            return f"the lowest value, {self.value}, which holds instead"
        if self.is_shown:
            return f"{self.name}={self.value}, which holds instead"
        return f"{self.value}, the default of {self.name}; a snapshot would show what the brokers have"


def _bound(bound: int | str | None, of_brokers: OfBrokers) -> _Bound | None:
    """Return a bound: that of the brokers as a snapshot shows it, otherwise its default."""
    if not isinstance(bound, str):
        return None if bound is None else _Bound(bound)
    shown = int_setting(of_brokers(bound) or "", 64)
    return _Bound(DEFAULTS[bound], bound, is_shown=False) if shown is None else _Bound(shown, bound)


def _outlasted(name: str, settings: Mapping[str, str], of_brokers: OfBrokers) -> Iterator[str]:
    """Yield a problem if a session of the group ends before its members have to send the next heartbeat."""
    begin, found, end = name.partition("session.timeout.ms")
    heartbeat = f"{begin}heartbeat.interval.ms"
    session_ms = int_setting(settings[name], 64)
    if not found or end or session_ms is None:
        return
    own = settings.get(heartbeat)
    broker = f"group.{begin.removeprefix('group.')}heartbeat.interval.ms"
    heartbeat_ms = int_setting(own if own is not None else of_brokers(broker) or "", 64)
    if heartbeat_ms is not None and session_ms <= heartbeat_ms:
        of = heartbeat if own is not None else broker
        yield f"not above {of}={heartbeat_ms}: sessions end between two heartbeats"
