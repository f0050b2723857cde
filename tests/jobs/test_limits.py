"""Each limit of the page of limits names a test that shows it, and these tests exist."""

from __future__ import annotations

import re

import pytest

from tests.shared_data import ROOT

PAGE = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
LIMITS, _, TESTED = PAGE.partition("| limit | tests |\n|---|---|\n")
OPEN, _, _ = LIMITS.partition("\n|---|---|---|---|\n")[2].partition("\n\n")
QUESTIONS = {line.split(" | ")[0].removeprefix("| ") for line in OPEN.splitlines()}
IN_PROSE = {"clocks of the two logs that are apart", "changes that break no rule"}
ROWS = [line.strip("| ").split(" | ") for line in TESTED.splitlines() if line.startswith("| ")]


def test_each_limit_has_a_row_with_its_tests() -> None:
    named = [limit for limit, _ in ROWS]
    assert len(named) == len({*named}) > 20
    assert {*named} == QUESTIONS | IN_PROSE


@pytest.mark.parametrize("test", re.findall(r"`([^`]+)`", "".join(tests for _, tests in ROWS)))
def test_a_test_that_shows_a_limit_exists(test: str) -> None:
    file, _, name = test.partition("::")
    assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8")
