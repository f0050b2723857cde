"""A group's own configurations, held against the bounds of brokers, the protocol and the type of the group.

Brokers move a value into their bounds without a word (KIP-848, KIP-932, KIP-1071: ``group.<type>.min...`` and
``max...``), so that what an administrator set, perhaps before the bounds changed, is not what holds.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from coordinator_core.cluster.snapshot_settings import int_setting
from coordinator_core.groups.described import DescribedSetting
from coordinator_core.groups.group_type import GroupType

PROTOCOLS = "group.coordinator.rebalance.protocols"
MIGRATION_POLICY = "group.consumer.migration.policy"
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


MAX_SIZES: dict[str, str] = {
    GroupType.CLASSIC: "group.max.size",
    **{kind: f"group.{kind.lower()}.max.size" for kind in WITH_SETTINGS},
}
"""The broker settings that say how many members a group may have, by its type."""

BROKER_SETTINGS = frozenset(
    {
        PROTOCOLS,
        MIGRATION_POLICY,
        *MAX_SIZES.values(),
        *(bound for bounds in BOUNDS.values() for bound in bounds if isinstance(bound, str)),
        *(f"group.{kind.lower()}.heartbeat.interval.ms" for kind in WITH_SETTINGS),
    }
)
"""The settings of brokers that say whether those of groups hold, how many members groups may have, and which move."""


NOT_SHOWN = "a snapshot would show what the brokers have"
"""Follows what is said of a bound that is taken as its default."""


class Problem(NamedTuple):
    """What is wrong with a setting. ``of_bounds``: it lies outside of a bound. ``is_of_session``: a session ends before
    the next heartbeat; ``ends_sessions``: it does once both were moved into their bounds. ``is_shown``: the bound is
    none that is a default.
    """

    text: str
    of_bounds: bool = False
    is_of_session: bool = False
    ends_sessions: bool = False
    is_shown: bool = True


def setting_problems(
    group_type: GroupType | None, settings: Mapping[str, str], of_brokers: OfBrokers
) -> dict[str, list[Problem]]:
    """Return what is known to be wrong with each of the group's own settings, by name."""
    return {name: list(_problems(group_type, name, settings, of_brokers)) for name in sorted(settings)}


def describe_settings(
    group_type: GroupType | None, settings: Mapping[str, str], of_brokers: OfBrokers
) -> list[DescribedSetting]:
    """Return the group's own settings by name, each with what is wrong with it; null: nothing that is known."""
    return [
        {"name": name, "value": settings[name], "problem": told(problems) or None}
        for name, problems in setting_problems(group_type, settings, of_brokers).items()
    ]


def told(problems: Sequence[Problem]) -> str:
    """Return the problems in one text."""
    doubt = () if all(problem.is_shown for problem in problems) else (NOT_SHOWN,)
    return "; ".join([*(problem.text for problem in problems), *doubt])


def _problems(
    group_type: GroupType | None, name: str, settings: Mapping[str, str], of_brokers: OfBrokers
) -> Iterator[Problem]:
    short = name.removeprefix("group.")
    kind = short.split(".")[0].upper()
    if kind in set(GroupType):
        if group_type is not None and kind != group_type:
            yield Problem(f"a setting of groups of type {kind}: it has no effect on this group of type {group_type}")
            return
        enabled = of_brokers(PROTOCOLS)
        if enabled is not None and kind.lower() not in {word.strip() for word in enabled.split(",")}:
            yield Problem(f"the brokers have not enabled the protocol {kind.lower()!r} ({PROTOCOLS}={enabled})")
    value = int_setting(settings[name], 64)
    if value is not None:
        for bound, is_outside, where in _bounds(name, value, of_brokers):
            if is_outside:
                yield Problem(f"{where} {bound}", of_bounds=True, is_shown=bound.is_shown)
        yield from _outlasted(name, settings, of_brokers)


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
        return f"{self.value}, the default of {self.name}"


def _bounds(name: str, value: int, of_brokers: OfBrokers) -> Iterator[tuple[_Bound, bool, str]]:
    """Yield the bounds of a setting: each with whether the value lies outside, and on which side."""
    lowest, highest = (_bound(bound, of_brokers) for bound in BOUNDS.get(name.removeprefix("group."), (None, None)))
    if lowest is not None:
        yield lowest, value < lowest.value, "below"
    if highest is not None:
        yield highest, value > highest.value, "above"


def _bound(bound: int | str | None, of_brokers: OfBrokers) -> _Bound | None:
    """Return a bound: that of the brokers as a snapshot shows it, otherwise its default."""
    if not isinstance(bound, str):
        return None if bound is None else _Bound(bound)
    shown = int_setting(of_brokers(bound) or "", 64)
    return _Bound(DEFAULTS[bound], bound, is_shown=False) if shown is None else _Bound(shown, bound)


def _outlasted(name: str, settings: Mapping[str, str], of_brokers: OfBrokers) -> Iterator[Problem]:
    """Yield a problem if a session of the group ends before its members have to send the next heartbeat.

    Bounds that a snapshot shows have moved both by then; those that are defaults may not be those of the brokers.
    """
    begin, found, end = name.partition("session.timeout.ms")
    heartbeat = f"{begin}heartbeat.interval.ms"
    of_broker = f"group.{heartbeat.removeprefix('group.')}"
    if not found or end:
        return
    of, given = (heartbeat, settings[heartbeat]) if heartbeat in settings else (of_broker, of_brokers(of_broker) or "")

    def ends(*, by_defaults: bool) -> bool:
        session_ms, heartbeat_ms = (
            _held(setting, text, of_brokers, by_defaults) for setting, text in ((name, settings[name]), (of, given))
        )
        return session_ms is not None and heartbeat_ms is not None and session_ms <= heartbeat_ms

    if ends(by_defaults=True):
        yield Problem(
            f"not above {of}={given}: sessions end between two heartbeats", is_of_session=True, ends_sessions=True
        )
    elif ends(by_defaults=False):
        doubt = "unless bounds move them, sessions end between two heartbeats"
        yield Problem(f"not above {of}={given}: {doubt}", is_of_session=True, is_shown=False)


def _held(name: str, text: str, of_brokers: OfBrokers, by_defaults: bool) -> int | None:
    """Return the value that holds, which brokers moved into its bounds."""
    value = int_setting(text, 64)
    if value is not None:
        for bound, is_outside, _ in _bounds(name, value, of_brokers):
            if is_outside and (by_defaults or bound.is_shown):
                value = bound.value
    return value
