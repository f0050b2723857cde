"""A rebalance in a few words: its epochs, why it happened, how long it took, and what it moved."""

from collections import Counter
from collections.abc import Iterable, Mapping

from coordinator_core.durations import duration, durations
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.rows import Cause, RebalanceRow


def epochs(row: RebalanceRow) -> str:
    """Return the epochs or generations that it leads from and to: ``5 to 6``."""
    return f"{'?' if row.from_epoch is None else row.from_epoch} to {row.to_epoch}"


def took_text(row: RebalanceRow) -> str | None:
    """Return how long it lasted, exactly or as bounds; None: unknown."""
    least, most = row.duration_min_ms, row.duration_max_ms
    if least is None:
        return None
    if least == most:
        return duration(least)
    return f"{duration(least)} or more" if most is None else durations(least, most)


def idle_text(row: RebalanceRow) -> str | None:
    """Return the time without an owner; that of a classic group is a bound, as no record says when its rebalance
    began. None: unknown.
    """
    if row.idle_ms is None:
        return None
    idle = duration(row.idle_ms)
    return f"{idle} or more" if row.idle_ms and row.group_type == GroupType.CLASSIC else idle


def cause_kinds(causes: Iterable[Cause]) -> str:
    """Return the kinds of causes with their topics or details; causes by members are counted."""
    members = Counter(cause.kind for cause in causes if cause.member_id is not None and not cause.topics)
    counts = [kind if count == 1 else f"{kind} ({count})" for kind, count in members.items()]
    for cause in causes:
        if cause.member_id is None or cause.topics:
            about = " ".join(cause.topics) or cause.detail or ""
            counts.append(f"{cause.kind} {about}".strip())
    return ", ".join(counts)


def causes_text(row: RebalanceRow, names: Mapping[str, str]) -> str:
    """Return the causes, each with the member, as ``names`` has it, and the topics that it is about."""
    return "; ".join(
        " ".join(
            part
            for part in (cause.kind, _named(cause.member_id, names), *cause.topics, cause.detail, cause.hint)
            if part
        )
        for cause in row.causes
    )


def delaying(row: RebalanceRow, names: Mapping[str, str]) -> str | None:
    """Return the member that delayed it, or those that it waits for."""
    waits_for = None if row.broker_away else ", ".join(names.get(member_id, member_id) for member_id in row.behind)
    return _named(row.delayed_by, names) or waits_for or None


def _named(member_id: str | None, names: Mapping[str, str]) -> str | None:
    return None if member_id is None else names.get(member_id, member_id)


def rebalance_detail(row: RebalanceRow, names: Mapping[str, str]) -> str:
    """Return the causes, each with what it is about; then the effects if it was over at once, and what is missing."""
    at_once = effects(row, names) if row.finished == row.at else ""
    return "; ".join(part for part in (causes_text(row, names), at_once, row.missing) if part)


def effects(row: RebalanceRow, names: Mapping[str, str]) -> str:
    """Return how long it took, what moved, and whom it waited for."""
    took = took_text(row)
    parts = (
        took and f"took {took}",
        row.units_moved and f"{row.units_moved} moved",
        row.units_lost and f"{row.units_lost} lost",
        row.idle_ms and f"idle {idle_text(row)}",
        row.delayed_by and f"delayed by {_named(row.delayed_by, names)}",
    )
    return ", ".join(part for part in parts if part)
