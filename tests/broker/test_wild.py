"""Random lives of groups on real brokers: what is said of their logs is the truth."""

from collections import Counter
from pathlib import Path

import pytest

from tests.broker.wild import Wild
from tests.broker.wild.check import WRONG, compared

SECONDS = 90


@pytest.mark.long
@pytest.mark.parametrize(
    ("release", "seed", "is_compacted"), [("4.3.1", 11, True), ("4.4.0", 12, False), ("4.1.2", 13, False)]
)
def test_what_is_said_of_a_random_life_is_true(tmp_path: Path, release: str, seed: int, is_compacted: bool) -> None:
    Wild(tmp_path, release, seed, is_compacted=is_compacted).live(SECONDS)
    assert [each for each in compared(tmp_path, Counter()) if each.question in WRONG] == []
