"""The committed offsets of a group at a moment, from either place."""

from __future__ import annotations

from coordinator_core.errors import InputError
from jobs.queries.interface import Answers
from jobs.relations.moment import AsOf
from jobs.serve.served_rows import ServedOffset


class NoSuchGroupError(InputError):
    """The logs have no such group, or had none at the moment."""


def offsets_at(answers: Answers, group_id: str, at_ms: int | None) -> tuple[ServedOffset, ...]:
    """Return the committed offsets of a group at a moment (None: now), as the command ``offsets`` has them.

    Raises:
        NoSuchGroupError: the logs have no such group at that moment.
    """
    for group, offsets, certainty in answers.at(AsOf(time_ms=at_ms), group_id).groups():
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
    raise NoSuchGroupError(f"there is no group {group_id!r} at that moment")
