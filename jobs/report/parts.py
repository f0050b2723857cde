"""One group's part of a report, made of its history; kept from one night to the next as texts."""

import json
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from coordinator_core.audit.finding_rows import FindingRow
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.commit_times import CommitCount
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.folds.two_logs import by_log
from coordinator_core.groups.end_offsets import NewestEnds
from jobs.pipeline.group_pages import Page
from jobs.report.causes import family
from jobs.report.data import GroupDetail, GroupLine, Offsets, Worst
from jobs.report.group_page import detail
from jobs.report.packing import PageTexts, texts_of
from jobs.report.worst import badness, because
from jobs.tables.reader import Row
from jobs.tables.row_reader import list_reader


class Opened(NamedTuple):
    """A rebalance as charts count it. ``ended_ms``: of one that goes on, when it began."""

    time_ms: int
    outcome: str
    family: str
    ended_ms: int


class WorstOfGroup(NamedTuple):
    """The worst rebalance of a group, and how bad it is."""

    badness: tuple[int, ...]
    ended_ms: int
    rebalance: Worst


class GroupPart(NamedTuple):
    """What a report is made of."""

    group: GroupDetail
    opened: tuple[Opened, ...]
    worst: WorstOfGroup | None


class GroupSummary(NamedTuple):
    """What the whole report needs of a group: the rest of its page are texts."""

    line: GroupLine
    findings: tuple[FindingRow, ...]
    commits: tuple[CommitCount, ...]
    offsets: tuple[Offsets, ...]
    offsets_seen: int
    opened: tuple[Opened, ...]
    worst: WorstOfGroup | None


READ_SUMMARY: Final = list_reader(GroupSummary)


def part_of(history: GroupHistory, limits: Thresholds, ends: NewestEnds) -> GroupPart:
    """Return the part of one group; see ``detail``."""
    group = detail(history, limits, ends)
    opened, worst = list[Opened](), None
    first = None if group.worst is None else group.rebalances[group.worst]
    for part in by_log(history):
        for row in part.rebalances:
            ended_ms = (row.finished or row.at).timestamp_ms
            opened.append(Opened(row.at.timestamp_ms, row.outcome, str(family(row)), ended_ms))
            # A converted Connect group is in two logs, in which the same partition and offset may occur.
            if worst is None and first is not None and (row.at, row.group_type) == (first.at, first.group_type):
                shown = Worst(group.line.group_id, first._replace(story=()), because(row))
                worst = WorstOfGroup(badness(row), ended_ms, shown)
    return GroupPart(group, tuple(opened), worst)


def page_of(history: GroupHistory, limits: Thresholds) -> Page:
    """Return the part of one group as texts, with its findings."""
    group, opened, worst = part_of(history, limits, history.ends)
    summary = GroupSummary(group.line, group.findings, group.commits, group.offsets, group.offsets_seen, opened, worst)
    return Page([*group.findings], json.dumps(summary, ensure_ascii=False, separators=(",", ":")), texts_of(group))


def kept_parts(rows: Iterable[Row]) -> Iterator[GroupPart]:
    """Yield the parts of groups from the rows of ``group_pages``; what their texts have is left out."""
    for row in rows:
        of = READ_SUMMARY(json.loads(row["summary"]))
        group = GroupDetail(of.line, of.findings, commits=of.commits, offsets=of.offsets, offsets_seen=of.offsets_seen)
        yield GroupPart(group, of.opened, of.worst)


def kept_texts(rows: Iterable[Row]) -> dict[str, PageTexts]:
    """Return the texts of pages by group id."""
    return {row["group_id"]: PageTexts(*row["texts"]) for row in rows}
