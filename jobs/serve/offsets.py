"""The committed offsets and the settings of a group at a moment, from either place."""

from collections.abc import Mapping

from coordinator_core.errors import InputError
from coordinator_core.groups.setting_bounds import BROKER_SETTINGS
from jobs.queries.interface import Answers
from jobs.relations.moment import AsOf
from jobs.serve.served_rows import ServedOffset, ServedSetting, ServedSettings


class NoSuchGroupError(InputError):
    """The logs have no such group, or had none at the moment."""


def offsets_at(answers: Answers, group_id: str, at_ms: int | None) -> tuple[ServedOffset, ...]:
    """Return the committed offsets of a group at a moment (None: now), as the command ``offsets`` has them.

    Raises:
        NoSuchGroupError: the logs have no such group at that moment.
    """
    moment = AsOf(time_ms=at_ms)
    for group, offsets, certainty in answers.at(moment, group_id).groups():
        if group.group_id != group_id:
            continue
        known = [
            ServedOffset(
                partition.topic,
                partition.partition,
                commit.offset if certainty.commits_hold else None,
                commit.at.timestamp_ms,
                commit.at.partition,
                commit.at.offset,
            )
            for partition, commit in sorted(offsets.committed.items())
        ]
        unknown = [
            ServedOffset(each.topic, each.partition, None, None, None, None) for each in certainty.unknown_offsets
        ]
        return tuple(sorted([*known, *unknown], key=lambda row: row[:2]))
    raise NoSuchGroupError(f"there is no group {group_id!r} {moment.in_words}")


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
