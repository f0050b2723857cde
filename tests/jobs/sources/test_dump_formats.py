"""What a dump is, by the names of its files; the mistakes are one line each."""

import os
import shutil
import tarfile
from pathlib import Path
from typing import Any, cast

import pytest

from coordinator_core.errors import InputError
from jobs.sources.dump import DumpFormat, format_of, open_dump
from tests.jobs.conftest import SAMPLE_LOGS

RECORD = b'{"key": "AAE=", "partition": 1, "offset": 2}'


@pytest.mark.parametrize(
    ("files", "dump_format"),
    [
        (["__consumer_offsets-0/00000000000000000000.log", "decoded.jsonl.gz"], DumpFormat.SEGMENTS),
        (["__consumer_offsets-3/part-0.parquet", "_SUCCESS"], DumpFormat.PARQUET),
        (["_delta_log/00000000000000000000.json", "part-0.parquet"], DumpFormat.DELTA),
        (["_hidden/a.jsonl", "MANIFEST.json"], DumpFormat.JSON_LINES),
    ],
)
def test_a_directory_has_the_format_of_its_files(tmp_path: Path, files: list[str], dump_format: DumpFormat) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(RECORD if ".jsonl" in name else b"")
    assert format_of(str(tmp_path)) is dump_format


def test_a_file_has_the_format_of_its_name(tmp_path: Path) -> None:
    for name, dump_format in {
        "a.log": DumpFormat.SEGMENTS,
        "b.json": DumpFormat.JSON_LINES,
        "c.parquet": DumpFormat.PARQUET,
    }.items():
        (tmp_path / name).write_bytes(RECORD)
        assert format_of(str(tmp_path / name)) is dump_format
    archive = tmp_path / "logs.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(SAMPLE_LOGS, "logs")
    assert format_of(str(archive)) is DumpFormat.SEGMENTS


@pytest.mark.parametrize(
    ("name", "complaint"),
    [("missing", "no such file"), ("empty", "no segments"), ("notes.txt", "text that is not output of Kafka's tools")],
)
def test_what_holds_no_dump_is_refused_in_one_line(tmp_path: Path, name: str, complaint: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("hello")
    no_session = cast("Any", None)
    with pytest.raises(InputError, match=complaint) as caught:
        open_dump(no_session, [str(tmp_path / name)])
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


def test_a_name_that_is_no_text_is_refused_where_tables_would_have_it(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/gr\xf6\xdfe"))
    (folder / "json").mkdir(parents=True)
    (folder / "json" / "a.jsonl").write_bytes(RECORD)
    shutil.copytree(SAMPLE_LOGS / "__consumer_offsets-3", folder / "__consumer_offsets-3")
    for place in (folder / "__consumer_offsets-3", folder / "json"):
        with pytest.raises(InputError, match=r"not in UTF-8: rename it") as caught:
            open_dump(cast("Any", None), [str(place)])
        assert str(caught.value).isascii()
