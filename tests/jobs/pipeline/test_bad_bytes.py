"""Bad input of every kind, for dump and for ingest: one line, or one row set aside, that names file, place and cause.

Ingest is looked at where it decides: what the segment source yields, what decoding sets aside, what a dump is.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from coordinator_core.errors import InputError
from coordinator_core.wire.batch_writer import NewRecord, encode_batch
from coordinator_core.wire.record_codec import encode_key, encode_value
from jobs.pipeline import decode_arrow
from jobs.sources.dump import open_dump
from jobs.sources.segments import SegmentsReader
from jobs.tables.log import QUARANTINE
from tests.commands import run_command

TOPIC = "__consumer_offsets"
SEGMENT = f"{TOPIC}-3/{0:020}.log"

GOOD_KEY = encode_key(1, {"group": "g", "topic": "t", "partition": 0})
COMMIT = {"offset": 5, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 1}
GOOD_VALUE = encode_value(1, 3, COMMIT)
GROUP_KEY = encode_key(3, {"groupId": "g"})
MEMBERS_KEY = encode_key(2, {"group": "g"})


def record(offset: int, key: bytes, value: bytes) -> bytes:
    return encode_batch([NewRecord(offset, 1, key, value)])


def good(offset: int) -> bytes:
    return record(offset, GOOD_KEY, GOOD_VALUE)


SIZE = len(good(0))


@dataclass(frozen=True, slots=True)
class Bytes:
    """A segment with damaged bytes: where they begin, the cause, the offsets that are left, dump's exit code."""

    data: bytes
    place: int
    cause: str
    offsets: tuple[int, ...]
    exit_code: int = 1


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


DAMAGED = {
    "truncated": Bytes(
        good(0) + good(1)[:-9], SIZE, f"the file ends within a batch of {SIZE} bytes: {SIZE - 9} bytes are there",
        (0,), exit_code=0,
    ),
    "flipped byte": Bytes(
        good(0) + flipped(good(1), 70) + good(2), SIZE, "the CRC is not that of the batch's bytes", (0, 2)
    ),
    "wrong magic": Bytes(
        good(0) + good(1)[:16] + b"\x07" + good(1)[17:] + good(2), SIZE, "magic 7 is none of 0, 1, 2", (0, 2)
    ),
    "no log": Bytes(b"\x11\x22\x33" * 60, 0, "no record batch begins here: the file is not a log segment", ()),
}  # fmt: skip

UNDECODABLE = {
    "no coordinator key": (b"\x04\xd2key", GOOD_VALUE, "type", 0, "type at byte 0: no record type 1234"),
    "varint of ten 0xFF": (
        GROUP_KEY, b"\x00\x00\x00\x00\x00\x07" + b"\xff" * 10, "value", 6,
        "ConsumerGroupMetadataValue at byte 6: a varint exceeds 32 bits",
    ),
    "giant array": (
        MEMBERS_KEY, encode_value(2, 3, {"protocolType": "consumer", "generation": 1, "protocol": None, "leader": None,
        "currentStateTimestamp": 1, "members": []})[:-4] + b"\x7f\xff\xff\xff", "value", 28,
        "GroupMetadataValue.members at byte 28: an array of 2147483647 elements in 0 bytes",
    ),
    "no UTF-8": (
        GOOD_KEY[:4] + b"\xff" + GOOD_KEY[5:], GOOD_VALUE, "key", 4,
        "OffsetCommitKey.group at byte 4: no utf-8: invalid start byte",
    ),
    "newer version": (GOOD_KEY, b"\x00\x63" + GOOD_VALUE[2:], "value", 0, "version 99"),
}  # fmt: skip


def dump(*arguments: object) -> Any:
    return run_command("--json", "dump", *arguments)


def write(folder: Path, data: bytes) -> Path:
    path = folder / SEGMENT
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return path


def ingested(path: Path) -> list[dict[str, Any]]:
    reader = SegmentsReader([str(path)], frozenset({TOPIC, ""}), TOPIC, 1 << 30)
    return [row for part in reader.partitions() for rows in reader.read(part) for row in rows.to_pylist()]


def set_aside(path: Path) -> list[dict[str, Any]]:
    reader = SegmentsReader([str(path)], frozenset({TOPIC, ""}), TOPIC, 1 << 30)
    batches = (batch for part in reader.partitions() for batch in reader.read(part))
    tables = (typed for batch in batches for typed in decode_arrow.typed_rows(batch))
    faulty = [row for table, rows in tables if table is QUARANTINE for row in rows.to_pylist()]
    return [row for row in faulty if row["part"] != "damaged"]


@pytest.mark.parametrize("case", DAMAGED.values(), ids=list(DAMAGED))
def test_damaged_bytes(tmp_path: Path, case: Bytes) -> None:
    path = write(tmp_path, case.data)
    result = dump(path)
    assert result.exit_code == case.exit_code
    assert [json.loads(line)["offset"] for line in result.stdout.splitlines()] == list(case.offsets)
    (told,) = map(json.loads, result.stderr.splitlines())
    assert (told["file"], told["position"], told["cause"]) == (str(path), case.place, case.cause)
    rows = ingested(path)
    assert [row["log_offset"] for row in rows if row["kind"] == "record"] == list(case.offsets)
    (damaged,) = (row for row in rows if row["kind"] == "damaged")
    assert (damaged["source"], damaged["place"]) == (str(path), case.place)
    assert re.fullmatch(rf"\d+ bytes: {re.escape(case.cause)}", damaged["error"])
    assert damaged["value"] == case.data[case.place :][: len(damaged["value"])] != b""


@pytest.mark.parametrize("case", UNDECODABLE.values(), ids=list(UNDECODABLE))
def test_records_that_do_not_decode(tmp_path: Path, case: tuple[bytes, bytes, str, int, str]) -> None:
    """They are printed with their bytes and set aside with them; that is no failure."""
    key, value, part, position, cause = case
    path = write(tmp_path, good(0) + record(1, key, value) + good(2))
    result = dump(path)
    assert result.exit_code == 0
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["offset"] for line in lines] == [0, 1, 2]
    (told,) = map(json.loads, result.stderr.splitlines())
    assert (told["file"], told["records"]) == (str(path), 1)
    assert told["cause"] == f"offset 1: {lines[1]['error']}"
    (row,) = set_aside(path)
    assert (row["source"], row["log_offset"], row["part"]) == (str(path), 1, part)
    assert (row["key"], row["value"], row["byte_position"]) == (key, value, position)
    assert row["reason"] == lines[1]["error"]
    assert cause in row["reason"]


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("missing", "no such file or directory"),
        ("nothing", "no segments"),
        ("empty.log", "the file is empty"),
        ("empty.jsonl", "the file is empty"),
        ("empty.parquet", "the file is empty"),
    ],
)
def test_what_holds_no_dump(tmp_path: Path, name: str, cause: str) -> None:
    """Ingest says so before it asks anything of Spark."""
    (tmp_path / "nothing").mkdir()
    for empty in ("empty.log", "empty.jsonl", "empty.parquet"):
        (tmp_path / empty).touch()
    path = tmp_path / name
    with pytest.raises(InputError) as caught:
        open_dump(cast("Any", None), [str(path)])
    assert str(caught.value).startswith(f"{path}: ")
    assert cause in str(caught.value)
    if name.endswith(("log", "missing", "nothing")):
        result = dump(path)
        assert (result.exit_code, result.stdout) == (1, "")
        (told,) = map(json.loads, result.stderr.splitlines())
        assert told["error"].startswith(f"{path}: ")
        assert cause in told["error"].lower()


def test_ingest_of_a_path_that_is_not_there_says_each_step_once(tmp_path: Path) -> None:
    result = run_command("ingest", str(tmp_path / "missing"), "--tables", str(tmp_path / "tables"))
    *steps, error = result.stderr.splitlines()
    assert len({*steps}) == len(steps)
    assert (result.exit_code, "no such file or directory" in error) == (1, True)
