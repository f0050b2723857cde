"""The entries of a timeline, and those that tell how committed offsets changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from coordinator_core.audit.folds.group_history import counted
from coordinator_core.audit.offsets.steps import CommitStep, StepKind
from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.records import LogPosition
from jobs.cli.output import Line, ranges, utc
from jobs.queries.group_rows import FORWARD, SAID_BY_NO_RECORD

WORDS: Final = {
    StepKind.FIRST: "first commits",
    StepKind.RESET: "offsets set",
    StepKind.REWOUND: "offsets rewound",
    StepKind.REMOVED: "offsets removed",
}


class TimelineEntry(NamedTuple):
    """One line of a timeline, with the record that proves it; ``log`` names its log where it is not the group's own."""

    at: LogPosition
    what: str
    detail: str
    log: str = ""


def commit_moments(steps: Iterable[CommitStep]) -> Iterator[TimelineEntry]:
    """Yield an entry for the steps of one kind, cause and owner at one time.

    Offsets that were set back while the group had no members are left out: they are entries of their own.
    """
    together: dict[tuple[int, str, str | None, str | None], list[CommitStep]] = defaultdict(list)
    for step in steps:
        is_back = (step.offset_after or 0) < (step.offset_before or 0)
        if step.kind not in FORWARD and not (step.kind == StepKind.RESET and is_back):
            together[step.since.timestamp_ms, step.kind, step.cause, step.owner].append(step)
    for (_, kind, cause, owner), rows in together.items():
        first = min(rows, key=lambda row: row.since.offset)
        moved = f", {first.topic}-{first.partition} from {first.offset_before} to {first.offset_after}"
        parts = (
            f"{counted(len(rows), 'partition')}: {ranges(f'{row.topic}-{row.partition}' for row in rows)}"
            + (moved if kind in (StepKind.RESET, StepKind.REWOUND) else ""),
            None if owner is None else f"owner {first.client_id or owner}",
            cause and f"cause {cause}",
        )
        yield TimelineEntry(first.since, WORDS[StepKind(kind)], "; ".join(part for part in parts if part))


IN_ITS_REASON: Final = frozenset(
    (EventKind.REBALANCE_BEGAN, EventKind.CONVERSION_REFUSED, EventKind.WRITE_FAILED, EventKind.REQUEST_DENIED)
)
"""Lines whose reason says all that their entry does not."""


def with_lines(entries: Iterable[Line], events: Iterable[BrokerEvent]) -> list[Line]:
    """Return the entries of a timeline, and lines of brokers' application logs in between, by their time."""
    lines = [
        {
            "time": utc(line.timestamp_ms or 0),
            "what": SAID_BY_NO_RECORD[EventKind(line.kind)],
            "detail": line.reason if line.kind in IN_ITS_REASON and line.reason else line.text,
            "log": line.place,
        }
        for line in events
        if line.timestamp_ms is not None
    ]
    return sorted([*lines, *entries], key=lambda entry: str(entry["time"])) if lines else list(entries)
