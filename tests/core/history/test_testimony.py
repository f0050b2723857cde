"""What rows lack is noted where the past is read for them. Places that still decide by hand only get fewer."""

import ast
from collections.abc import Callable, Collection, Iterator
from functools import cache
from typing import TypeVar

import pytest

from coordinator_core.history import grounds
from coordinator_core.history.grounds import NO_TOMBSTONE, Loss
from coordinator_core.history.open_rows import OpenMembership
from coordinator_core.history.testimony import SeenPast
from coordinator_core.records import LogPosition
from tests.shared_data import ROOT

CORE = ROOT / "coordinator_core"
MODULES = {
    ".".join(path.relative_to(CORE).with_suffix("").parts): path
    for package in ("history", "audit", "groups", "cluster", "clients")
    for path in sorted((CORE / package).rglob("*.py"))
    if path.name not in ("testimony.py", "grounds.py")
}
DOUBTS = {"missing", "doubt", "knows_members", "history_complete", "is_lost", "is_unsettled", "born_behind", "seen"}
"""Fields that say what is not known, or that something is not."""
DOUBT = {"doubt", "lose", "lose_at", "doubt_life"}
"""Calls that make them say so."""
ASKED = {"missing", "doubt", "is_lost", "is_unsettled", "first", "is_first_ever"}
"""What a place asks of the past that decides by itself what follows for a row."""
LOSSES = [loss for loss in vars(grounds).values() if isinstance(loss, Loss)]
T = TypeVar("T")

FROM_OUTSIDE = "whoever reads the log says what it cannot read"
SET_BY_HAND = {
    "audit.findings.of_cluster.about_cluster": "it asks the logs for each finding that counts groups: no row is read",
    "audit.findings.many_groups.short_lived": "about_cluster asks the logs for it",
    "audit.offsets.steps": "why no member had a partition is asked of its assignments, which are final rows",
    "audit.rules.members.on_current": "a group that was forgotten begins again: no record is missing",
    "audit.targets.leader_views.LeaderViews.possible": "nothing is missing of the log: not all that may be is tried",
    "audit.targets.verdict.undecided": "the maker of each verdict that lacks an input",
    "cluster.topic_history.TopicHistory.of_another_cluster": "what another cluster has says nothing of this one",
    "cluster.topic_lists.new_history": "a list says nothing of the time between it and the one before",
    "groups.certainty.LogGaps.with_unreadable": "it is read to tell: the offsets are what the readers compare with",
    "audit.group_audit.GroupAudit.lose": FROM_OUTSIDE,
    "history.history_fold.GroupFold.lose": FROM_OUTSIDE,
    "history.history_writer.HistoryWriter.lose": FROM_OUTSIDE,
    "history.generations._complete": "the record is there, and what it says cannot be read",
    "history.history_fold.GroupFold._note_operation": "records without times do not say what was written together",
    "history.open_history.OpenHistory.doubt_join": "a member that was there before had, then, what it has now",
}
"""Functions that set a field of doubt by hand, each with the reason why no reading tells it."""
OWN_WORDS = {
    "history.generations._read_before": {grounds.COMPACTION, grounds.LOST_EPOCHS},
    "history.generations._unread": {grounds.UNREADABLE_ASSIGNMENT},
    "history.history_writer.HistoryWriter.bump": {grounds.LOST_EPOCHS},
    "history.history_writer.HistoryWriter.read_before": {grounds.COMPACTION, grounds.LOST_EPOCHS, grounds.OTHER_LOG},
    "history.holdings.Tally.missing": {grounds.SHORT_METADATA, grounds.WITHOUT_TIMES},
    "history.holdings.no_times": {grounds.WITHOUT_TIMES},
    "history.lost_records.LostRecords._since": {grounds.MISSING_END, grounds.UNREADABLE_RECORD},
    "history.memberships.left_behind": {grounds.COMPACTION},
    "history.open_history.OpenHistory.doubt_join": {grounds.COMPACTION},
    "history.open_history.OpenHistory.leave_joined_out": {grounds.WITHOUT_TIMES},
    "history.open_history.OpenHistory.leave_uncertain_causes": {grounds.WITHOUT_TIMES},
    "history.open_history.OpenHistory.note_target": {grounds.COMPACTION},
    "history.share_partitions.SharePartitionFold.known_before": {grounds.NO_SHARE_STATE},
    "audit.folds.two_logs._in_doubt": {grounds.OTHER_LOG},
    "audit.folds.two_logs._with_open_ends": {grounds.OTHER_LOG},
}
"""Functions that say by themselves what a row lacks, and what takes that away: no past of one group shows it."""
VALUES = "the row has values that compare two records, and they are left out where others may lie between"
ASKED_BY_HAND = {
    "history.memberships._saw_commits": "commits are records of other keys, which the past of the group leaves out",
    "history.epochs._has_no_tasks": VALUES,
    "history.epochs._tie_causes": VALUES,
    "history.epochs.on_epoch": VALUES,
    "history.generations._read_before": "which of the reasons a generation gives depends on what is not known",
    "history.generations.on_generation": VALUES,
    "history.history_writer.HistoryWriter._end_operation": "how a life ended whose last records may be missing",
    "history.history_writer.HistoryWriter._doubt_joins": "a member is in doubt where the past is, or it opens no epoch",
    "history.history_writer.HistoryWriter._lasting": "the state that lasts is known by the last records of all keys",
    "history.history_writer.HistoryWriter.bump": "what members gave up before is counted in the epoch that follows",
    "history.history_writer.HistoryWriter.live_as": "without a doubt, a group of another type was converted",
    "history.history_writer.HistoryWriter.members_before": VALUES,
    "history.history_writer.HistoryWriter.take_causes": VALUES,
    "history.history_writer.HistoryWriter.take_part": VALUES,
    "history.open_history.OpenHistory.epoch_before": VALUES,
    "history.open_history.OpenHistory.was_converted_elsewhere": "without a doubt, skipped epochs are of another log",
    "history.warmups.explain_by_warmups": VALUES,
}
"""Functions that ask the past without a row in hand."""


def functions(tree: ast.AST, name: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield the functions of a module, and what is outside of them, each with its name."""
    for node in ast.iter_child_nodes(tree):
        own = getattr(node, "name", "")
        if isinstance(node, ast.ClassDef):
            yield from functions(node, f"{name}.{own}")
        elif not isinstance(node, ast.ImportFrom):
            yield f"{name}.{own}" if own else name, node


def is_read(value: ast.expr) -> bool:
    """Whether a value is the answer of the past, or what another row lacks."""
    of = value.func.value if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else None
    return getattr(of, "attr", getattr(of, "id", None)) == "past" or getattr(value, "attr", None) in DOUBTS


def set_by_hand(tree: ast.AST) -> Iterator[int]:
    """Yield the lines in which a field of doubt is set, and the past does not say to what."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = [part for target in targets for part in getattr(target, "elts", [target])]
            yield from (node.lineno for part in parts if getattr(part, "attr", None) in DOUBTS - {"seen"})
        elif isinstance(node, ast.keyword):
            is_claim = node.arg == "complete" and isinstance(node.value, ast.Constant)
            yield from [node.value.lineno] if is_claim or (node.arg in DOUBTS and not is_read(node.value)) else []
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield from [node.lineno] if getattr(node.value.func, "attr", None) in DOUBT else []


def asked_by_hand(tree: ast.AST) -> Iterator[int]:
    """Yield the lines in which the past is asked without a row in hand."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ASKED and isinstance(node.ctx, ast.Load):
            of = node.value
            yield from [node.lineno] if getattr(of, "attr", getattr(of, "id", None)) == "past" else []


@cache
def trees() -> dict[str, ast.Module]:
    return {module: ast.parse(path.read_text("utf-8")) for module, path in MODULES.items()}


@cache
def of_table(whole: ast.Module) -> set[str]:
    """Return the names that a module has of the table of knowledge."""
    imports = (node for node in whole.body if isinstance(node, ast.ImportFrom))
    return {name.name for node in imports if (node.module or "").endswith("grounds") for name in node.names}


def own_words(whole: ast.Module, part: ast.AST) -> set[Loss]:
    """Return what takes away the knowledge that a part of a module says to be missing, in words of the table."""
    compared = {id(node) for each in ast.walk(part) if isinstance(each, ast.Compare) for node in ast.walk(each)}
    nodes = [node for node in ast.walk(part) if id(node) not in compared]
    said = {node.id for node in nodes if isinstance(node, ast.Name) and node.id in of_table(whole)}
    said |= {node.attr for node in nodes if getattr(getattr(node, "value", None), "id", "") == "grounds"}
    return {loss for loss in LOSSES for name in said if getattr(grounds, name) in loss.words}


def places(found: Callable[[ast.Module, ast.AST], Collection[T]]) -> dict[str, Collection[T]]:
    of_functions = (
        (name, found(whole, part)) for module, whole in trees().items() for name, part in functions(whole, module)
    )
    return {name: told for name, told in of_functions if told}


@pytest.mark.parametrize(("found", "named"), [(set_by_hand, SET_BY_HAND), (asked_by_hand, ASKED_BY_HAND)])
def test_no_other_place_decides_by_hand(found: Callable[[ast.AST], Iterator[int]], named: dict[str, str]) -> None:
    there = places(lambda _, part: [*found(part)])
    new = {name: lines for name, lines in there.items() if name not in named}
    assert not new, f"read through SeenPast with the row in hand, or say in this test why not: {new}"
    assert named.keys() == there.keys(), "some no longer decide by hand: strike them off"


def test_no_other_place_says_by_itself_what_is_missing() -> None:
    there = places(own_words)
    new = {name: losses for name, losses in there.items() if losses != OWN_WORDS.get(name)}
    assert not new, f"read through SeenPast with the row in hand, or name here what takes the knowledge away: {new}"
    assert OWN_WORDS.keys() == there.keys(), "some no longer say it: strike them off"


@pytest.mark.parametrize(
    "code", ["row.missing = x", "a.doubt, b = 1, 2", "Row(missing=None)", "past.lose(x)", "find(complete=True)"]
)
def test_a_place_that_sets_a_doubt_is_found(code: str) -> None:
    assert [*set_by_hand(ast.parse(code))] == [1]


def test_a_place_that_asks_by_itself_is_found() -> None:
    assert [*asked_by_hand(ast.parse("if writer.open_history.past.doubt or row.missing: ..."))] == [1]


def member() -> OpenMembership:
    return OpenMembership("m", LogPosition(0, 5, 1), "join")


def test_a_row_lacks_the_first_of_what_was_read_for_it_and_is_not_known() -> None:
    row, past = member(), SeenPast()
    assert (past.read_epoch(row, 3), row.missing) == (3, None)
    past.lose(NO_TOMBSTONE)
    assert (past.read_epoch(row, 4), row.missing) == (None, NO_TOMBSTONE)
    past.lose("other records")
    past.rest(row)
    assert row.missing == NO_TOMBSTONE


def test_what_compaction_took_away_may_lack_no_epoch() -> None:
    row, past = member(), SeenPast()
    past.lose(NO_TOMBSTONE, is_lost=False)
    assert (past.read_epoch(row, 4), row.missing) == (4, None)


@pytest.mark.parametrize(("offset", "lasts", "is_seen"), [(8, False, False), (8, True, True), (9, False, True)])
def test_what_lasts_is_known_by_its_last_record(offset: int, lasts: bool, is_seen: bool) -> None:
    past = SeenPast(first=LogPosition(0, 9, 1), is_first_ever=False)
    assert past.saw_since(LogPosition(0, offset, 1), lasts=lasts) is is_seen
    past.is_lost = True
    assert past.saw_since(LogPosition(0, offset, 1), lasts=lasts) is (offset >= 9)
