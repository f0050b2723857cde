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


def _of_brokers(name: str) -> SettingBounds:
    kind, _, setting = name.partition(".")
    return SettingBounds(f"group.{kind}.min.{setting}", f"group.{kind}.max.{setting}")


BOUNDS: dict[str, SettingBounds] = {
    name: _of_brokers(name)
    for name in (
        *(
            f"{kind.lower()}.{setting}.ms"
            for kind in WITH_SETTINGS
            for setting in ("session.timeout", "heartbeat.interval")
        ),
        "share.record.lock.duration.ms",
        "share.delivery.count.limit",
        "share.partition.max.record.locks",
    )
} | {
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
    lowest, highest = (_known(bound, of_brokers) for bound in bounds)
    if lowest is not None and number < lowest:
        named = f"{bounds.lowest}=" if isinstance(bounds.lowest, str) else "the lowest value, "
        yield f"below {named}{lowest}, which holds instead"
    if highest is not None and number > highest:
        yield f"above {bounds.highest}={highest}, which holds instead"


def _known(bound: int | str | None, of_brokers: OfBrokers) -> int | None:
    """Return the number of a bound. That of brokers is known from snapshots only: as releases take no value outside of
    their bounds, one that is outside of the defaults shows that brokers have others.
    """
    return int_setting(of_brokers(bound) or "", 64) if isinstance(bound, str) else bound
