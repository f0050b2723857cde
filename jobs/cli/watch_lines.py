"""The lines of ``watch``: one for an event, or one JSON object."""

from collections.abc import Callable, Iterator, Mapping

from coordinator_core.audit.explain import explain
from coordinator_core.audit.folds.group_history import counted
from coordinator_core.records import LogPosition
from jobs.cli.lines import WatchedBeginning, WatchedEnd, WatchedFinding, WatchedLag, WatchedLine
from jobs.cli.output import cell, utc
from jobs.cli.rebalance_text import causes_text, effects, epochs
from jobs.formatting import json_text, plain
from jobs.watch.events import FindingEvent, LagChanged, LagStatusRow, RebalanceBegan, RebalanceEnded, WatchEvent
from jobs.watch.followed_groups import FollowedGroups

REPEATED = "(perhaps told before)"
Members = Callable[[RebalanceBegan | RebalanceEnded], Mapping[str, str]]
"""The names of the clients behind the members of an event's group, with their ids; by member id."""


def lines(
    event: WatchEvent, groups: FollowedGroups, *, as_json: bool, explained: bool, is_repeated: bool
) -> Iterator[str]:
    """Yield one line for an event; ``explained``: with what ``explain`` says of a rebalance that ended.

    ``is_repeated``: a watch that was killed may have told it.
    """
    if as_json:
        yield json_text({**_added(event), **plain(event.row), **({"repeated": True} if is_repeated else {})})
        return
    words = [*_words(event, groups.members), *([REPEATED] if is_repeated else [])]
    yield " ".join(cell(part) for part in words)
    if explained and isinstance(event, RebalanceEnded):
        for sentence in explain(groups.history(event.key), event.row):
            yield f"    {cell(sentence.text)}"


def _added(event: WatchEvent) -> WatchedLine:
    """Return what a line has besides the row of its event."""
    if isinstance(event, RebalanceBegan):
        return WatchedBeginning(event="rebalance_began")
    if isinstance(event, RebalanceEnded):
        verdict = None if event.verdict is None else event.verdict.verdict
        return WatchedEnd(event="rebalance_ended", verdict=verdict)
    if isinstance(event, LagChanged):
        return WatchedLag(event="lag")
    return WatchedFinding(event="finding", change=event.change)


def _words(event: WatchEvent, members: Members) -> Iterator[str]:
    """Yield the parts of an event's line: when, which group, what, and the record that proves it."""
    if isinstance(event, LagChanged):
        yield from (utc(event.row.timestamp_ms) or "-", event.row.group_id, _lag_text(event.row))
        return
    at, sentence = _proof_and_sentence(event, members)
    ended_ms = event.row.until_ms if isinstance(event, FindingEvent) else None
    is_over = isinstance(event, FindingEvent) and event.change == "ended"
    yield utc(ended_ms if at is None or is_over else at.timestamp_ms) or "-"
    yield event.row.group_id or "the cluster"
    yield sentence
    if at is not None:
        yield f"[{at.partition}:{at.offset}]"


def _proof_and_sentence(event: WatchEvent, members: Members) -> tuple[LogPosition | None, str]:
    if isinstance(event, RebalanceBegan):
        return (
            event.row.at,
            f"rebalance {epochs(event.row)} began: {causes_text(event.row, members(event)) or 'unknown'}",
        )
    if isinstance(event, RebalanceEnded):
        did = effects(event.row, members(event)) or "no effect"
        sentence = f"rebalance {epochs(event.row)} {event.row.outcome}: {did}; {_target(event)}"
        return event.row.finished or event.row.at, sentence
    assert not isinstance(event, LagChanged)
    row, change = event.row, event.change
    about = f" {row.subject}" if row.subject else ""
    newest = max(row.evidence, default=None, key=lambda position: position.offset)
    return newest, f"{row.level} {row.kind}{about} {change}: {row.detail}"


def _target(event: RebalanceEnded) -> str:
    """Return what is known of the target; why, if it is not known whether it is right."""
    if event.verdict is None:
        return "no target" if event.row.target is None else "target not judged"
    why = f" ({event.verdict.missing})" if event.verdict.missing else ""
    return f"target {event.verdict.verdict}{why}"


def _lag_text(row: LagStatusRow) -> str:
    """Return the status of a group's lag in words, with the partitions that are furthest behind."""
    behind = ", ".join(f"{point.topic}-{point.partition} {point.status} {point.lag} behind" for point in row.worst)
    after = f" after {row.before}" if row.before else ""
    return f"lag {row.status}{after}: {counted(row.lag, 'record')} behind{': ' if behind else ''}{behind}"
