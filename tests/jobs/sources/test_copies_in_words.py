"""Which of several copies of a log partition counts, in words."""

import gzip
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


def test_segments_that_are_packed_one_by_one_are_one_copy(tmp_path: Path) -> None:
    for offset in (0, 1):
        folder = tmp_path / "__consumer_offsets-0"
        folder.mkdir(exist_ok=True)
        (folder / f"{offset:020}.log.gz").write_bytes(gzip.compress(batch(offset)))
    logs = find_logs([tmp_path])
    assert len(logs) == 2
    assert copies_in_words(logs) == []
