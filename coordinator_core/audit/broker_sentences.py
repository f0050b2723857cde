"""What brokers' application logs, by file and line, and the metadata log say of one rebalance, in plain sentences."""

from collections.abc import Iterable, Iterator

from coordinator_core.audit.folds.absences import absences_within
from coordinator_core.audit.folds.witness import (
    NO_FILE,
    BrokerLines,
    beginning,
    computed_target,
    leaders_time,
    unfinished,
    within,
)
from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.cluster.clocks import utc
from coordinator_core.cluster.coordinators_away import FOUND_AGAIN_MS, CoordinatorAway
from coordinator_core.durations import duration, durations
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.causes import DEPARTED
from coordinator_core.history.rows import RebalanceRow
from coordinator_core.records import LogPosition


def about_beginning(row: RebalanceRow, lines: BrokerLines) -> Iterator[str]:
    """Yield when and why a rebalance of a classic group began, and which generations in between did not complete."""
    began = beginning(row, lines)
    if began is not None:
        least, most = row.duration_min_ms, row.duration_max_ms
        when = "" if least is None or most is None else f" {durations(least, most)} before it completed"
        yield f"It began{when}: {began.reason} ({began.place})."
    for generation, line in unfinished(row, lines):
        yield f"All members joined generation {generation}, which never completed ({line.place})."


def about_assignor(row: RebalanceRow, lines: BrokerLines) -> Iterator[str]:
    """Yield how long the assignor took; of a classic group, how long its leader did."""
    if row.group_type == GroupType.CLASSIC:
        joined, assigned = leaders_time(row, lines)
        if joined is not None and assigned is not None:
            least = max((assigned.timestamp_ms or 0) - (joined.latest_ms or 0), 0)
            took = durations(least, (assigned.latest_ms or 0) - (joined.timestamp_ms or 0))
            places = f"{joined.place}, {assigned.place}"
            yield f"The leader's assignment came {took} after all members had joined ({places})."
        return
    line = computed_target(row.to_epoch, row.at, lines)
    if line is not None and line.duration_ms is not None:
        yield f"The assignor {line.reason} took {duration(line.duration_ms)} ({line.place})."


def about_coordinator(row: RebalanceRow, lines: BrokerLines) -> Iterator[str]:
    """Yield the times in which the coordinator was away."""
    for away in absences_within(row, lines.away):
        since = "" if away.since is None else f"from {_time(away.since)} "
        places = ", ".join(event.place for event in (away.since, away.until) if event is not None)
        until = _time(away.until)
        yield f"The coordinator of the group was away {since}until {until}: no member delayed it then ({places})."


def about_refusals(row: RebalanceRow, lines: BrokerLines) -> Iterator[str]:
    """Yield what the coordinator refused, or could not write, while the rebalance lasted."""
    for line in within(row, lines):
        match line.kind:
            case EventKind.CONVERSION_REFUSED:
                yield f"The group was not converted: {line.reason} ({line.place})."
            case EventKind.STATIC_MEMBER_FENCED:
                who = f"Member {line.member_id}" if line.member_id else "A client"
                owner = f"member {line.reason} has" if line.reason else "another member has"
                yield f"{who} was turned away: {owner} the instance id {line.instance_id} ({line.place})."
            case EventKind.LEADER_LATE:
                yield f"The leader {line.member_id} did not join within the rebalance timeout ({line.place})."
            case EventKind.WRITE_FAILED:
                of = f"log partition {line.log_partition}" if line.group_id is None else "the group"
                yield f"A decision about {of} could not be written at {_time(line)}: {line.reason} ({line.place})."


def about_silence(row: RebalanceRow, lines: BrokerLines) -> Iterator[str]:
    """Yield which times broker logs are given of, where it is still open how a member went and none is of that time."""
    is_open = any(cause.kind in DEPARTED and (cause.hint or "").endswith(NO_FILE) for cause in row.causes)
    if is_open:
        given = ", ".join(f"{span.file} {utc(span.first_ms)} to {utc(span.last_ms)}" for span in lines.spans[:3])
        more = len(lines.spans) - 3
        yield f"The given broker logs cover: {given}{f', and {more} more' if more > 0 else ''}."


def _time(line: BrokerEvent) -> str:
    if line.timestamp_ms is None:
        return line.written
    exact = "" if line.resolution_ms == 1 else f" (to {duration(line.resolution_ms)})"
    return f"{utc(line.timestamp_ms)}{exact}"


def about_absence(row: RebalanceRow, times: Iterable[CoordinatorAway]) -> Iterator[tuple[str, tuple[LogPosition, ...]]]:
    """Yield a sentence for each time over which the group had no coordinator, and the records that prove it: within
    the rebalance, or shortly before it began.
    """
    if row.at.timestamp_ms < 0:
        return
    began_ms = row.at.timestamp_ms if row.began_before_ms < 0 else min(row.began_before_ms, row.at.timestamp_ms)
    end_ms = (row.finished or row.at).timestamp_ms
    for time in times:
        proof = (time.since,) if time.until is None else (time.since, time.until)
        plan = " (controlled shutdown)" if time.is_planned else ""
        gone = f"broker {time.broker} was gone{plan} from {utc(time.since.timestamp_ms)}"
        until = "" if time.until is None else f" until {utc(time.until.timestamp_ms)}"
        if time.is_taken_over:
            gone = f"broker {time.broker} had failed, and another one took over"
            until, proof = f" at {utc(time.since.timestamp_ms)}", (time.since,)
        if time.overlaps(began_ms, end_ms):
            yield f"The coordinator of the group was away meanwhile: {gone}{until}. No member delayed it then.", proof
        elif time.until_ms is not None and 0 <= began_ms - time.until_ms <= FOUND_AGAIN_MS:
            before = began_ms - time.until_ms
            yield (
                f"The coordinator of the group had been away until {duration(before)} before: {gone}{until}. Members "
                f"may have left or joined because of that.",
                proof,
            )
