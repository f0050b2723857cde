"""What snapshots of a cluster show of settings and features, at their times.

A snapshot proves what it shows at its own time only. Between two snapshots that show the same, that is taken to have
held; elsewhere a setting is unknown, and of the brokers' releases only bounds are known.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

METADATA_VERSION: Final = "metadata.version"
"""The feature whose highest supported level identifies the release of a broker."""
FIRST_OF_4_0: Final = 22
"""The lowest level of it that brokers of Kafka 4.0 or later support (4.0-IV0)."""
LEVEL_OF_4_4: Final = 33
"""The level of it that brokers of Kafka 4.4.0 support (4.4-IV2)."""

MISSING: Final = "missing"
"""The name under which a snapshot says why it does not have the settings of a resource."""


class ResourceKind:
    """The types of resources whose settings a snapshot has.

    GROUP: configs of a group, broker defaults included. BROKER: its configs about groups. SUPPORTED_FEATURES: the
    highest levels of features that a broker supports. FINALIZED_FEATURES: those of the cluster (KIP-584).
    """

    GROUP: Final = "GROUP"
    BROKER: Final = "BROKER"
    SUPPORTED_FEATURES: Final = "SUPPORTED_FEATURES"
    FINALIZED_FEATURES: Final = "FINALIZED_FEATURES"


class SettingRun(NamedTuple):
    """A value that all snapshots from ``first_ms`` to ``last_ms`` show of a setting."""

    resource_type: str
    resource: str
    name: str
    value: str
    first_ms: int
    last_ms: int


class Levels(NamedTuple):
    """The lowest and the highest ``metadata.version`` that brokers support; None: there is no bound."""

    oldest: int | None
    newest: int | None


class LevelRun(NamedTuple):
    """The levels that all snapshots from ``first_ms`` to ``last_ms`` show."""

    levels: Levels
    first_ms: int
    last_ms: int


def levels_in_snapshot(
    oldest: int | None, newest: int | None, finalized: int | None, *, all_answered: bool
) -> Levels | None:
    """Return the levels that one snapshot shows; None if it shows none.

    ``oldest`` and ``newest`` are the levels of the brokers that answered. ``finalized`` is the level of the cluster: no
    broker that supports only lower ones can be part of it.
    """
    # A broker that did not answer may be of any release that the cluster's own level allows.
    levels = Levels(oldest, newest) if all_answered else Levels(finalized, None)
    return None if levels == (None, None) else levels


def level_runs(snapshots: Iterable[tuple[int, Levels | None]]) -> list[LevelRun]:
    """Return the runs of equal levels in snapshots (time in ms, levels), which come in order of time."""
    known = [(time_ms, levels) for time_ms, levels in snapshots if levels is not None]
    runs = []
    for levels, of_run in groupby(known, key=itemgetter(1)):
        times = [time_ms for time_ms, _ in of_run]
        runs.append(LevelRun(levels, times[0], times[-1]))
    return runs


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    """The settings and levels that snapshots of one cluster show."""

    levels: Sequence[LevelRun] = ()
    runs: Mapping[tuple[str, str], Mapping[str, Sequence[SettingRun]]] = field(default_factory=dict)
    """By type of resource and name of setting, then by resource, in order of time."""

    @classmethod
    def of(cls, levels: Sequence[LevelRun], runs: Iterable[SettingRun]) -> "SnapshotSettings":
        """Return the settings of these runs, which may come in any order."""
        by_name: dict[tuple[str, str], dict[str, list[SettingRun]]] = defaultdict(lambda: defaultdict(list))
        for run in sorted(runs, key=lambda each: each.first_ms):
            by_name[run.resource_type, run.name][run.resource].append(run)
        return cls(levels, {key: dict(resources) for key, resources in by_name.items()})

    def value(self, resource_type: str, resource: str, name: str, time_ms: int | None) -> str | None:
        """Return a setting that snapshots before and after a time show; None if they do not, or do not agree.

        ``time_ms`` None: at the time of the newest snapshot that has it.
        """
        runs = self.runs.get((resource_type, name), {}).get(resource, ())
        if time_ms is None:
            return runs[-1].value if runs else None
        index = bisect_right(runs, time_ms, key=lambda run: run.first_ms) - 1
        # The last run that began by then is the only one that can cover the time.
        return runs[index].value if index >= 0 and time_ms <= runs[index].last_ms else None

    def of_group(self, group_id: str, time_ms: int | None) -> dict[str, str]:
        """Return the settings of a group that snapshots show at a time, the brokers' defaults included, by name."""
        names = sorted(name for kind, name in self.runs if kind == ResourceKind.GROUP)
        values = {name: self.value(ResourceKind.GROUP, group_id, name, time_ms) for name in names}
        return {name: value for name, value in values.items() if value is not None}

    def of_brokers(self, name: str, time_ms: int | None) -> str | None:
        """Return a config of the brokers that is the same for all of them; None if it is not, or is unknown."""
        brokers = self.runs.get((ResourceKind.BROKER, name), {})
        # A broker that did not answer says nothing against the others.
        values = {self.value(ResourceKind.BROKER, broker, name, time_ms) for broker in brokers} - {None}
        return values.pop() if len(values) == 1 else None

    def levels_at(self, time_ms: int | None) -> Levels | None:
        """Return bounds of the levels at a time (None: at that of the newest snapshot); None without snapshots.

        Brokers are upgraded, not downgraded: before the first snapshot they may have been of any older release, after
        the last one they may be of any newer one.
        """
        if not self.levels:
            return None
        if time_ms is None:
            return self.levels[-1].levels
        index = bisect_right(self.levels, time_ms, key=lambda run: run.first_ms) - 1
        if index < 0:
            return Levels(None, self.levels[0].levels.newest)
        before = self.levels[index]
        if time_ms <= before.last_ms:
            return before.levels
        if index + 1 == len(self.levels):
            return Levels(before.levels.oldest, None)
        return joined(before.levels, self.levels[index + 1].levels)


NO_SNAPSHOTS: Final = SnapshotSettings()


def joined(one: Levels, other: Levels) -> Levels:
    """Return the bounds of two levels together."""
    bounds = [
        None if None in pair else choose(level for level in pair if level is not None)
        for choose, pair in ((min, (one.oldest, other.oldest)), (max, (one.newest, other.newest)))
    ]
    return Levels(*bounds)


_NUMBER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)


def int_setting(text: str, bits: int = 32) -> int | None:
    """Return a setting of Kafka's type INT, with 64 bits LONG; None for a text that Kafka does not accept."""
    trimmed = text.strip()
    if _NUMBER.fullmatch(trimmed) is None:
        return None
    number = int(trimmed)
    return number if -(1 << bits - 1) <= number < 1 << bits - 1 else None
