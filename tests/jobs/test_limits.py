"""The tests that the page of limits names exist, and each is named for a limit that the page has."""

from __future__ import annotations

import re

import pytest

from tests.shared_data import ROOT

PAGE = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
LIMITS, _, TESTED = PAGE.partition("| limit | tests |\n|---|---|\n")
QUESTIONS = {line.split(" | ")[0].removeprefix("| ") for line in LIMITS.splitlines() if line.startswith("| ")}
IN_PROSE = {"clocks of the two logs that are apart", "changes that break no rule"}
ROWS = [line.strip("| ").split(" | ") for line in TESTED.splitlines() if line.startswith("| ")]


def test_each_row_is_about_a_limit_of_the_page() -> None:
    named = [limit for limit, _ in ROWS]
    assert len(named) == len({*named}) > 20
    assert {*named} <= QUESTIONS | IN_PROSE


@pytest.mark.parametrize("test", re.findall(r"`([^`]+)`", "".join(tests for _, tests in ROWS)))
def test_a_test_that_shows_a_limit_exists(test: str) -> None:
    file, _, name = test.partition("::")
    assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8")
