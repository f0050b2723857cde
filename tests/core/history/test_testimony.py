"""What rows lack is noted where the past is read for them. Places that still decide by hand only get fewer."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from coordinator_core.history.grounds import NO_TOMBSTONE
from coordinator_core.history.open_rows import OpenMembership
from coordinator_core.history.testimony import SeenPast
from coordinator_core.records import LogPosition
from tests.shared_data import ROOT

MODULES = [path for path in (ROOT / "coordinator_core" / "history").glob("*.py") if path.name != "testimony.py"]
DOUBTS = {"missing", "doubt", "knows_members", "history_complete", "is_lost", "is_unsettled", "born_behind", "seen"}
"""Fields that say what is not known, or that something is not."""
DOUBT = {"doubt", "lose", "lose_at", "doubt_life"}
"""Calls that make them say so."""
ASKED = {"missing", "doubt", "is_lost", "is_unsettled", "first", "is_first_ever"}
"""What a place asks of the past that decides by itself what follows for a row."""
SET_BY_HAND, ASKED_BY_HAND = 27, 33
"""Lower them with each place that goes. They were 51 and 43."""


def set_by_hand(tree: ast.AST) -> Iterator[int]:
    """Yield the lines in which a field of doubt is set, each once."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = [part for target in targets for part in getattr(target, "elts", [target])]
            yield from (node.lineno for part in parts if getattr(part, "attr", None) in DOUBTS)
        elif isinstance(node, ast.keyword) and node.arg in DOUBTS:
            yield node.value.lineno
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", None) in DOUBT:
            yield node.lineno


def asked_by_hand(tree: ast.AST) -> Iterator[int]:
    """Yield the lines in which the past is asked without a row in hand."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ASKED and isinstance(node.ctx, ast.Load):
            of = node.value
            yield from [node.lineno] if getattr(of, "attr", getattr(of, "id", None)) == "past" else []


def trees() -> list[ast.Module]:
    return [ast.parse(path.read_text(encoding="utf-8")) for path in MODULES]


def test_the_places_that_decide_by_hand_get_fewer() -> None:
    counts = sum(len([*set_by_hand(tree)]) for tree in trees()), sum(len([*asked_by_hand(tree)]) for tree in trees())
    assert counts == (SET_BY_HAND, ASKED_BY_HAND)


@pytest.mark.parametrize("code", ["row.missing = x", "a.doubt, b = 1, 2", "Row(missing=None)", "past.lose(x)"])
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
