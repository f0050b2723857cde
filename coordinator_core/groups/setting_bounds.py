"""A group's own configurations, held against the bounds of brokers, the protocol and the type of the group.

Brokers move a value into their bounds without a word (KIP-848, KIP-932, KIP-1071: ``group.<type>.min...`` and
``max...``), so that what an administrator set is not what holds.
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
    """The lowest and highest value of a setting of groups: by default, and the broker settings that change them."""

    lowest: int
    highest: int | None
    lowest_from: str | None = None
    highest_from: str | None = None


def _of_brokers(kind: str, setting: str, lowest: int, highest: int) -> SettingBounds:
    return SettingBounds(lowest, highest, f"group.{kind}.min.{setting}", f"group.{kind}.max.{setting}")


BOUNDS: dict[str, SettingBounds] = {
    f"{kind}.{setting}": _of_brokers(kind, setting, lowest, highest)
    for kind in map(str.lower, WITH_SETTINGS)
    for setting, lowest, highest in (("session.timeout.ms", 45_000, 60_000), ("heartbeat.interval.ms", 5_000, 15_000))
} | {
    "share.record.lock.duration.ms": _of_brokers("share", "record.lock.duration.ms", 15_000, 60_000),
    "share.delivery.count.limit": _of_brokers("share", "delivery.count.limit", 2, 10),
    "share.partition.max.record.locks": _of_brokers("share", "partition.max.record.locks", 100, 4_000),
    "streams.num.standby.replicas": SettingBounds(0, 2, None, "group.streams.max.standby.replicas"),
    "streams.num.warmup.replicas": SettingBounds(0, 20, None, "group.streams.max.warmup.replicas"),
    "streams.acceptable.recovery.lag": SettingBounds(0, None),
    "streams.task.offset.interval.ms": SettingBounds(15_000, None, "group.streams.min.task.offset.interval.ms"),
}
"""Settings of groups with bounds, by the name without ``group.``, which KIP-1071 puts before it."""


def describe_settings(
    group_type: GroupType | None, settings: Mapping[str, str], of_brokers: OfBrokers
) -> list[DescribedSetting]:
    """Return the group's own settings by name, each with what is wrong with it; null: nothing that is known."""
    return [
        {"name": name, "value": value, "problem": "; ".join(_problems(group_type, name, value, of_brokers)) or None}
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
    bounds = BOUNDS.get(short)
    number = int_setting(value, 64)
    if bounds is None or number is None:
        return
    lowest = _bound(bounds.lowest, bounds.lowest_from, of_brokers)
    highest = _bound(bounds.highest, bounds.highest_from, of_brokers)
    if lowest is not None and number < lowest:
        yield f"below {bounds.lowest_from or 'the lowest value'}={lowest}, which holds instead"
    if highest is not None and number > highest:
        yield f"above {bounds.highest_from or 'the highest value'}={highest}, which holds instead"


def _bound(default: int | None, name: str | None, of_brokers: OfBrokers) -> int | None:
    """Return the bound that brokers have, as far as a snapshot shows it; else their default."""
    shown = None if name is None else of_brokers(name)
    return default if shown is None else int_setting(shown, 64)
