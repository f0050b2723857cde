"""Each limit of the page of limits has a test that shows it, and these tests exist."""

import re

import pytest

from jobs.docs.documents import limits
from tests.shared_data import ROOT

PAGE = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
QUESTIONS = re.findall(r"^### (.*)\n\n\*", PAGE, re.MULTILINE)
TABLES = ("Clocks", "Changes that break no rule")


def test_each_limit_has_its_tests() -> None:
    anchors = [re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in (*QUESTIONS, *TABLES)]
    assert len(QUESTIONS) == PAGE.count("\n### ") > 20
    assert sorted(limits()) == sorted(anchors)


@pytest.mark.parametrize("test", [test for tests in limits().values() for test in tests])
def test_a_test_that_shows_a_limit_exists(test: str) -> None:
    file, _, name = test.partition("::")
    assert f"\ndef {name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8")
