"""Files of end offsets: what lacks its partition or its time is named."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coordinator_core.errors import InputError
from coordinator_core.groups.end_offsets import EndOffset
from coordinator_core.groups.offsets import TopicPartition
from jobs.sources.end_offsets import all_ends, newest_ends

END = {"topic": "orders", "partition": 0, "timestamp_ms": 5, "end_offset": 7}


def written(path: Path, *rows: dict[str, object]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_rows_without_a_topic_or_an_end_offset_are_no_end_offsets(tmp_path: Path) -> None:
    file = written(tmp_path / "ends.jsonl", END, {**END, "partition": 1, "end_offset": None}, {**END, "topic": None})
    assert newest_ends(file) == {TopicPartition("orders", 0): EndOffset(5, 7)}


@pytest.mark.parametrize("name", ["partition", "timestamp_ms"])
def test_an_end_offset_that_lacks_its_place_or_time_is_named(tmp_path: Path, name: str) -> None:
    file = written(tmp_path / "ends.jsonl", END, {**END, name: None})
    for read in (newest_ends, all_ends):
        with pytest.raises(InputError, match=f"1 of 2 end offsets lack the column {name}"):
            read(file)


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    ends = tmp_path / "ends.jsonl"
    ends.write_bytes(b'{"topic": "ord\xb5ers", "partition": 0, "end_offset": 1, "timestamp_ms": 2}\n')
    for read in (newest_ends, all_ends):
        with pytest.raises(InputError, match="UTF8"):
            read(ends)


def test_a_name_of_a_column_that_is_no_text_is_refused(tmp_path: Path) -> None:
    ends = tmp_path / "ends.parquet"
    pq.write_table(pa.table({name: [value] for name, value in (*END.items(), ("topic_xx", 1))}), ends)
    ends.write_bytes(ends.read_bytes().replace(b"topic_xx", b"topic_\xb5x"))
    for read in (newest_ends, all_ends):
        with pytest.raises(InputError, match=r"not UTF-8: b'topic_.xb5x'"):
            read(ends)


def test_text_without_end_offsets_is_refused_with_what_to_give(tmp_path: Path) -> None:
    (tmp_path / "ends.txt").write_text("Error: Executing consumer group command failed due to a timeout\n")
    with pytest.raises(InputError, match="no end offsets: give what kafka-get-offsets or"):
        all_ends(tmp_path / "ends.txt")
