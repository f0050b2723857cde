"""What a watch has read beyond the place that answers: of a group that is asked for, both are one history."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, Final, Protocol

from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.rows import TABLES
from jobs.queries.interface import Answers
from jobs.serve.offsets import NoSuchGroupError, offsets_at
from jobs.serve.served_rows import ServedOffset


class Newer(Protocol):
    """A watch beside the page. Other threads may ask."""

    def read(self) -> Mapping[str, int]:
        """Return how many records were read of each group."""
        return {}

    def history(self, group_id: str) -> GroupHistory | None:
        """Return the history of a group, as far as the watch keeps it; None: it has read nothing of it."""
        return None


class _Rows:
    """One kind of rows of a history: its field, what identifies a row, and the positions at which one begins and ends.

    Rows of an operation that is judged as a whole have no end, and are known by what they say.
    """

    def __init__(self, field: str, key: Sequence[str], begin: str, end: str | None) -> None:
        self.field, self.end = field, end
        self.key: Callable[[Any], Any] = attrgetter(*key)
        self.begin: Callable[[Any], Any] = attrgetter(begin)

    def reach(self, history: GroupHistory) -> int:
        """Return the last offset of these rows; -1: there is none."""
        rows = getattr(history, self.field)
        places = [self.begin(row) for row in rows] + (
            [] if self.end is None else [getattr(row, self.end) for row in rows]
        )
        return max((at.offset for at in places if at is not None), default=-1)


_KEYS: Final = {table.name: table.key for table in TABLES}
_LASTING: Final = (
    _Rows("epochs", _KEYS["group_epochs"], "opened", "ended"),
    _Rows("rebalances", _KEYS["rebalances"], "at", "finished"),
    _Rows("memberships", _KEYS["memberships"], "joined", "left"),
    _Rows("assignments", _KEYS["assignments"], "since", "until"),
    _Rows("initializations", _KEYS["share_initializations"], "since", "until"),
)
_JUDGED: Final = (
    _Rows("violations", _KEYS["violations"], "at", None),
    _Rows("targets", ("group_type", "at.partition", "at.offset"), "at", None),
)


def with_newer(stored: GroupHistory, newer: GroupHistory) -> GroupHistory:
    """Return a history with what a watch has read of the group beyond it.

    Rows that have ended are final. Those that were open, and what began later, are the watch's. If it does not have
    all that was open, it has not kept, or its log no longer has, what was between: then its own rows are the answer.
    """
    if _is_in_two_logs(stored) or _is_in_two_logs(newer):  # their offsets cannot be compared
        return newer
    reach = _reach(stored)
    if _reach(newer) <= reach:
        return stored
    rows: list[Any] = []
    for kind in _LASTING:
        were_open = {kind.key(row) for row in getattr(stored, kind.field) if row.is_open}
        beyond = [
            row for row in getattr(newer, kind.field) if kind.begin(row).offset > reach or kind.key(row) in were_open
        ]
        if not were_open <= {kind.key(row) for row in beyond}:
            return newer
        rows += [*(row for row in getattr(stored, kind.field) if not row.is_open), *beyond]
    # What is stored was judged with all that lies before it; a watch may have begun in the middle. So it comes last.
    for kind in _JUDGED:
        known = {kind.key(row): row for row in getattr(newer, kind.field)}
        known |= {kind.key(row): row for row in getattr(stored, kind.field) if not getattr(row, "is_open", False)}
        rows += known.values()
    rows += [row for row in stored.share_partitions if not row.is_open]
    rows += [each.current for each in newer.deliveries if each.current is not None]
    rows += [*newer.deliveries, *newer.commits, *newer.transactions, *newer.sizes]
    # Each counts from its own beginning, and sums of hours cannot be put together: the one that saw more is taken.
    rows += max(newer.commit_counts, stored.commit_counts, key=lambda counts: sum(each.records for each in counts))
    topics = newer.topics if newer.topics.partitions else stored.topics
    lost = stored.lost.joined(newer.lost)
    made = GroupHistory.gather(newer.group_id, newer.now_ms, rows, topics, newer.share_logs, lost)
    return replace(made, events=stored.events, ends=stored.ends)


def _is_in_two_logs(history: GroupHistory) -> bool:
    return len({row.group_type == GroupType.CONNECT for row in history.epochs}) > 1


def _reach(history: GroupHistory) -> int:
    """Return the last offset of the group's log that its rows show."""
    of_rows = (kind.reach(history) for kind in (*_LASTING, *_JUDGED))
    return max(*of_rows, max((row.last.offset for row in history.commits), default=-1))


def with_newer_offsets(
    stored: Sequence[ServedOffset], newer: GroupHistory | None, at_ms: int | None, known_ms: int | None
) -> tuple[ServedOffset, ...]:
    """Return committed offsets at a moment (None: now) with what a watch has read beyond ``known_ms``.

    It keeps the newest commit of each partition. Of a moment before that one, and after ``known_ms``, nothing is known.
    """
    known = {(row.topic, row.partition): row for row in stored}
    for row in () if newer is None else newer.commits:
        key, last = (row.topic, row.partition), row.last
        stored_at = known[key].log_offset if key in known else None
        if stored_at is not None and stored_at >= last.offset:
            continue
        if at_ms is None or at_ms >= last.timestamp_ms:
            known.pop(key, None)
            if row.offset is not None:
                known[key] = ServedOffset(*key, row.offset, last.timestamp_ms, last.partition, last.offset)
        elif known_ms is not None and at_ms > known_ms:
            known[key] = ServedOffset(*key, None, None, None, None)
    return tuple(known[key] for key in sorted(known))


class Nothing(Newer):
    """No watch."""


NOTHING_NEWER: Final = Nothing()


def history_with_newer(newer: Newer, group_id: str, stored: GroupHistory | None) -> GroupHistory | None:
    """Return the history of a group with what the watch has read beyond it; None: neither knows the group."""
    watched = newer.history(group_id)
    return stored if watched is None else watched if stored is None else with_newer(stored, watched)


def offsets_with_newer(
    answers: Answers, newer: Newer, group_id: str, at_ms: int | None, known_ms: int | None
) -> tuple[ServedOffset, ...]:
    """Return committed offsets at a moment, as ``offsets_at``, with what the watch has read beyond ``known_ms``."""
    watched = newer.history(group_id)
    try:
        stored = offsets_at(answers, group_id, at_ms)
    except NoSuchGroupError:
        if watched is None:
            raise
        stored = ()
    return with_newer_offsets(stored, watched, at_ms, known_ms)
