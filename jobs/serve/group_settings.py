"""The settings of a group, and those of the brokers that bound them, at a moment, from either place."""

from __future__ import annotations

from collections.abc import Mapping

from coordinator_core.groups.setting_bounds import BROKER_SETTINGS
from jobs.queries.interface import Answers
from jobs.relations.moment import AsOf
from jobs.serve.served_rows import ServedSetting, ServedSettings


def settings_at(answers: Answers, group_id: str, at_ms: int | None) -> ServedSettings:
    """Return what is set at a moment (None: now): in the metadata log, and what snapshots of the cluster show."""
    around = answers.at(AsOf(time_ms=at_ms), group_id).surroundings()
    own = around.settings_of(group_id)
    of_brokers = ((name, around.of_brokers(name)) for name in sorted(BROKER_SETTINGS))
    return ServedSettings(
        None if own is None else _by_name(own),
        tuple(ServedSetting(name, value) for name, value in of_brokers if value is not None),
        _by_name(around.in_snapshots(group_id)),
    )


def _by_name(settings: Mapping[str, str]) -> tuple[ServedSetting, ...]:
    return tuple(ServedSetting(name, settings[name]) for name in sorted(settings))
