"""``offsets --lag-history``: the lag of a group at each snapshot of the end offsets."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from coordinator_core.audit.offsets.burrow import LagPoint
from coordinator_core.errors import InputError
from jobs.cli.answer_source import AnswerSource
from jobs.cli.gaps import find_group
from jobs.cli.output import Line, print_lines, utc
from jobs.formatting import parse_time, plain
from jobs.relations.moment import AsOf
from jobs.sources.end_offsets import all_ends


class LagLimits(NamedTuple):
    """Selects points by topic, partition and time; None: any."""

    topic: str | None
    partition: int | None
    since: str | None
    until: str | None

    def choose(self, points: list[LagPoint]) -> list[LagPoint]:
        """Return the points that are selected."""
        first = None if self.since is None else parse_time(self.since)
        last = None if self.until is None else parse_time(self.until)
        return [
            point
            for point in points
            if self.topic in (None, point.topic)
            and self.partition in (None, point.partition)
            and (first is None or point.timestamp_ms >= first)
            and (last is None or point.timestamp_ms <= last)
        ]


def print_lag_history(source: AnswerSource, group: str, ends: Path | None, limits: LagLimits) -> None:
    """Print the lag at each snapshot; warn of partitions without an end offset.

    Raises:
        InputError: no end offsets are known, the group is not there, or nothing of it has an end offset.
    """
    answers = source.answers()
    points = answers.lag(group, None if ends is None else all_ends(ends))
    _, offsets, _ = find_group(answers.at(AsOf(), group), group)
    seen = {(point.topic, point.partition) for point in points}
    without = sorted(str(partition) for partition in offsets.committed if partition not in seen)
    known = answers.knowledge()
    reasons = [*known.reasons(group), *known.about_offsets()]
    if not points:
        doubt = f", as far as is known: {'; '.join(reasons)}" if reasons else ""
        raise InputError(
            f"at no snapshot of the end offsets had group {group!r} an offset committed for a partition in it{doubt}"
        )
    if without:
        more = f" and {len(without) - 3} more" if len(without) > 3 else ""
        source.console.warn(f"no snapshot has the end offset of {', '.join(without[:3])}{more}: the lag is not known")
    for reason in reasons:
        source.console.warn(reason)
    chosen = limits.choose(points)
    lines = [plain(point) if source.json else _line(point) for point in chosen]
    print_lines(lines, as_json=source.json, title=f"lag of {group} over time")


def _line(point: LagPoint) -> Line:
    return {
        "topic": point.topic,
        "partition": point.partition,
        "time": utc(point.timestamp_ms),
        "lag": point.lag,
        "status": point.status,
        "end": point.end_offset,
        "committed": point.committed_offset,
        "written": point.produced,
        "consumed": point.consumed,
        "log": None if point.committed is None else f"{point.committed.partition}:{point.committed.offset}",
        "missing": point.missing,
    }
