"""The table of knowledge: each reason that a row gives is one of its words, and no other place has its own."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from coordinator_core.history import grounds
from coordinator_core.history.grounds import KNOWLEDGE, Loss, lost_offsets, unreadable_record
from coordinator_core.history.rows import MembershipRow, RebalanceRow
from tests.core.history.logs import GroupLog, current, epoch, generation, member, target_epoch
from tests.shared_data import ROOT

LOSSES = {name: loss for name, loss in vars(grounds).items() if isinstance(loss, Loss)}
TEXTS = {name: text for name, text in vars(grounds).items() if name.isupper() and isinstance(text, str)}
WORDS = [word for loss in LOSSES.values() for word in loss.words]
TELL = {"lose": 0, "Hole": 1, "lose_at": 1, "rest": 1}
"""Calls that say what is missing, and which argument does."""
MODULES = sorted((ROOT / "coordinator_core" / "history").glob("*.py"))
MODULES += sorted((ROOT / "coordinator_core" / "audit" / "folds").glob("*.py"))
TOLD_BY_WARNINGS = ("grounds.py", "knowledge.py", "missing_ends.py")
"""The table itself, and what says in whole sentences what the logs lack."""


def is_own_text(node: ast.expr | None) -> bool:
    """Whether an expression may be a text that is written there, or has a name there that is none of the table."""
    parts = [node, *(getattr(node, "elts", ())), *(getattr(node, "values", ()))]
    return any(
        isinstance(part, ast.JoinedStr)
        or (isinstance(part, ast.Constant) and isinstance(part.value, str))
        or (isinstance(part, ast.Name) and part.id.isupper() and part.id not in TEXTS)
        for part in parts
    )


def own_reasons(tree: ast.Module) -> Iterator[int]:
    """Yield the lines in which something is said to be missing in words that are written there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "missing" and is_own_text(node.value):
            yield node.value.lineno
        elif isinstance(node, ast.Assign) and is_own_text(node.value):
            if any(getattr(target, "attr", None) in ("missing", "doubt") for target in node.targets):
                yield node.lineno
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in TELL and len(node.args) > TELL[name] and is_own_text(node.args[TELL[name]]):
                yield node.lineno
        elif isinstance(node, ast.FunctionDef) and re.search("missing|_since$|_times$|lost_offsets|unread", node.name):
            returns = (each for each in ast.walk(node) if isinstance(each, ast.Return))
            yield from (each.lineno for each in returns if is_own_text(each.value))


def test_no_place_has_a_reason_of_its_own() -> None:
    own = {module.name: [*own_reasons(ast.parse(module.read_text(encoding="utf-8")))] for module in MODULES}
    assert {name: lines for name, lines in own.items() if lines and name not in TOLD_BY_WARNINGS} == {}


@pytest.mark.parametrize(
    "code",
    [
        "row._replace(missing='gone')",
        "row.missing = f'{n} are gone'",
        "past.lose('gone')",
        "Hole(at, f'{n}')",
        "def missing_before(self):\n    return 'gone'",
        "def _missing(self):\n    return 0, f'{n}'",
        "row.missing = row.missing or GONE",
        "past.rest(row, GONE)",
    ],
)
def test_a_reason_that_a_place_invents_is_found(code: str) -> None:
    assert [*own_reasons(ast.parse(code))] != []


def test_each_word_is_one_of_the_table() -> None:
    assert {*WORDS} == {*TEXTS.values()} - {grounds.UNREADABLE}
    assert max(Counter(WORDS).values()) == 1
    assert {loss for ground in KNOWLEDGE for loss in ground.losses} == {*LOSSES.values()}
    assert {lost_offsets(3, 5), unreadable_record(7)} == {grounds.LOST.format(3, 5), grounds.UNREAD.format(7)}


def test_rows_say_what_they_lack_in_words_of_the_table() -> None:
    log = GroupLog(offset=4).write(member("a", "t"), epoch(5), target_epoch(5), current("a", 5, 0))
    log.skip(3).write(epoch(9), target_epoch(9)).skip(2).write(generation(12, {}))
    said = {row.missing for row in log.rows() if isinstance(row, RebalanceRow | MembershipRow)} - {None}
    patterns = [re.escape(word).replace(r"\{\}", ".+") for word in WORDS]
    assert len(said) > 1
    assert [each for each in said if each and not any(re.fullmatch(pattern, each) for pattern in patterns)] == []
