"""Which of several copies of a log partition counts, in words."""

from __future__ import annotations

from pathlib import Path

from jobs.sources.copies import copies_in_words
from jobs.sources.files import find_logs
from tests.jobs.cli.test_dump import SEGMENT, batch


def test_the_first_copy_counts_and_is_named(tmp_path: Path) -> None:
    for broker, partitions in (("b1", (0, 1)), ("b2", (1, 2, 0))):
        for partition in partitions:
            folder = tmp_path / broker / f"__consumer_offsets-{partition}"
            folder.mkdir(parents=True)
            (folder / SEGMENT).write_bytes(batch(0))
    assert copies_in_words(find_logs([tmp_path / "b1", tmp_path / "b2"])) == [
        f"2 partitions of __consumer_offsets in several copies: those in {tmp_path}/b1 are used, and of the others "
        "what these lack"
    ]
    assert copies_in_words(find_logs([tmp_path / "b2"])) == []
