"""Contradictions between a log and its protocol, as data: nothing here is an exception."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

from coordinator_core.groups.rules import Rule
from coordinator_core.records import CoordinatorRecord, LogPosition


class Violation(NamedTuple):
    """One broken rule: which, where in the log, in which group, for which member (None: the group), and the figures.

    ``is_open``: the operation that breaks it is the last one seen; later records may complete it.
    """

    rule: Annotated[Rule, "the rule"]
    at: Annotated[LogPosition, "the record that breaks it"]
    group_id: Annotated[str, "the group"]
    member_id: Annotated[str | None, "the member; null: the group"]
    detail: Annotated[str, "the figures"]
    is_open: Annotated[bool, "the operation under way breaks it; a later run may take it back"] = False


Violations = Sequence[Violation]

NO_VIOLATIONS: Violations = ()
"""The usual result of ``apply``; shared, so that the usual record allocates nothing."""


def violation(rule: Rule, record: CoordinatorRecord, detail: str) -> tuple[Violation]:
    """Return a sequence of one: the violation of ``rule`` by this record."""
    return (Violation(rule, record.at, record.group_id, record.member_id, detail),)


def tombstone(record: CoordinatorRecord, what: str, *, existed: bool) -> Violations:
    """Return the violation of a tombstone unless there was what it ends."""
    return NO_VIOLATIONS if existed else violation(Rule.TOMBSTONE_WITHOUT_VALUE, record, what)
