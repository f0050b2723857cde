"""What a pair of removals asks of an answer, which is what its parts ask; and no more is excused."""

import re
from pathlib import Path

import pytest

from tests.matrix.other_removals import all_removals
from tests.matrix.pairs import combined

REMOVALS = all_removals([0, 1], workers=[0])


@pytest.mark.parametrize(
    ("name", "partitions", "others", "forgets"),
    [
        ("0 compacted without tombstones, metadata absent", (0,), True, True),
        ("first segment of 0, unreadable keys in 1", (0, 1), False, False),
        ("log of workers absent, 0 compacted with tombstones", (0,), False, True),
    ],
)
def test_a_pair_touches_what_its_parts_touch(
    name: str, partitions: tuple[int, ...], others: bool, forgets: bool
) -> None:
    found = REMOVALS[name]
    assert (found.partitions, found.others, found.forgets) == (partitions, others, forgets)


def test_a_pair_has_the_reasons_of_its_parts_and_no_other() -> None:
    reason = REMOVALS["first segment of 0, unreadable keys in 1"].reason
    told = [bool(re.search(reason, said)) for said in ("it lacks records", "cannot be decoded", "", "no topics")]
    assert told == [True, True, False, False]
    nothing_lost = combined([REMOVALS["nothing"], REMOVALS["linked folders"]])
    assert not re.search(nothing_lost.reason, "any warning")


@pytest.mark.parametrize(
    ("question", "is_asked"), [("groups", True), ("explain g", False), ("whatif g", False), ("findings", True)]
)
def test_a_pair_is_asked_what_both_parts_are_asked(question: str, is_asked: bool) -> None:
    found = REMOVALS["first segment of 1, clock of metadata +300 ms"]
    assert bool(re.search(found.questions, question)) == is_asked
    assert re.fullmatch(found.changes, "fitted")
    assert not re.fullmatch(found.changes, "epoch")
    assert not re.fullmatch(found.lacks, "")
    assert found.moves_topics_ms == 300


def test_what_ends_earlier_is_a_whole_log_for_the_other_part(tmp_path: Path) -> None:
    found = REMOVALS["last segment of 1, unreadable values in 1"]
    folder = tmp_path / "__consumer_offsets-1"
    folder.mkdir()
    for number in (0, 1):
        (folder / f"{number:020}.log").write_bytes(b"")
    assert found.ends is not None
    found.ends(tmp_path)
    assert [file.name for file in folder.iterdir()] == [f"{0:020}.log"]
    assert (found.is_tail, found.partitions, found.reason) == (False, (1,), "(?:cannot be decoded)")


def test_pairs_of_nights_and_dumps_are_asked_of_tables_only() -> None:
    names = [name for name, each in REMOVALS.items() if ", " in name and each.is_of_tables]
    assert [name.partition(", ")[2] for name in names] == [
        "Parquet of a consumer",
        "JSON lines of a consumer",
        "middle segment of 0 comes a night later",
    ]


def test_logs_that_lack_a_part_have_no_pair_of_it() -> None:
    names = [name for name in all_removals([0], has_share=False) if ", " in name]
    assert not [name for name in names if "share" in name or "workers" in name]
    assert "first segment of 0, clock of metadata +300 ms" in names
