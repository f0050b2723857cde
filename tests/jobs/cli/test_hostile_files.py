"""Files of every kind that somebody made to do harm, or that are simply not what they should be: one clear error."""

import gzip
import json
import re
import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from jobs.cli.output import Line, print_lines
from jobs.sources import archives, bounded_text, end_offsets, snapshot_files
from tests.commands import run_command
from tests.jobs.conftest import ROOT, SAMPLE_LOGS

LOG = SAMPLE_LOGS / "__consumer_offsets-0"
CASE = json.loads((ROOT / "data" / "samples" / "assignor_cases.jsonl").read_text().splitlines()[0])
PARTITION = {"topic": "t", "partition": 0, "timestamp_ms": 1, "topic_id": None, "end_offset": 5, "replica_racks": []}
CONFIG = {"resource": "g", "resource_type": "GROUP", "timestamp_ms": 1, "configs": {"a": "b"}}


def refused(*command: str, codes: tuple[int, ...] = (1, 2)) -> str:
    """Run a command that gives one line of error and no traceback; return the line."""
    done = run_command(*command)
    assert done.exit_code in codes, (command, done.output, done.exception)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.stderr


def texts() -> Iterator[tuple[str, bytes]]:
    """What is not JSON that any file has."""
    yield "nested", b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    yield "number", b'{"partition": ' + b"9" * 5000 + b"}"
    yield "surrogate", b'{"topic": "\\ud800", "partition": 0, "timestamp_ms": 1}'
    yield "bytes", b"\xff\xfe{}"
    yield "list", b"[1, 2]"
    yield "text", b'"x"'
    yield "cut", b'{"a": '


TEXTS = dict(texts())
READERS = {
    "topics": ("groups", "--log", str(LOG), "--topics"),
    "assign": ("assign",),
    "compare": ("compare",),
    "trace": ("trace",),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("text", TEXTS)
def test_text_that_is_not_a_json_object(reader: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "given.jsonl"
    file.write_bytes(TEXTS[text] + b"\n")
    assert "line 1" in refused(*READERS[reader], str(file))


@pytest.mark.parametrize(
    "row",
    [
        *(
            {**PARTITION, name: value}
            for name in ("topic", "partition", "timestamp_ms")
            for value in (None, [], {}, 1.5)
        ),
        *({**PARTITION, "partition": number} for number in (-1, 2**31, 2**70)),
        {**PARTITION, "timestamp_ms": 2**70},
        *({**PARTITION, "replica_racks": racks} for racks in (1, "ab", [1], [[]], {"a": 1})),
        *({**CONFIG, name: value} for name in CONFIG for value in (1.5, ["x"])),
    ],
    ids=repr,
)
def test_rows_of_snapshots_with_values_of_other_types(row: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "topics.jsonl"
    file.write_text(json.dumps(PARTITION) + "\n" + json.dumps(row) + "\n")
    assert "line 2" in refused("audit", "--log", str(LOG), "--topics", str(file))


@pytest.mark.parametrize("value", [None, 1, -1, "x", [], {}, [[]], [{}], {"a": {}}, True, 2**62], ids=repr)
def test_cases_with_values_of_other_types(value: Any, tmp_path: Path) -> None:
    """Each field of a case in turn, as deep as it goes: an error, or a result if the value is one."""
    file = tmp_path / "cases.jsonl"
    file.write_text("\n".join(json.dumps(each) for each in changed(CASE, value)))
    for command in ("assign", "compare"):
        refused(command, str(file), codes=(0, 1))


def changed(given: Any, value: Any) -> Iterator[Any]:
    """Yield a value with each part of it replaced."""
    parts = given.items() if isinstance(given, dict) else list(enumerate(given))[:2]
    for name, inner in parts:
        copy = dict(given) if isinstance(given, dict) else list(given)
        copy[name] = value
        yield copy
        if isinstance(inner, dict | list):
            for each in changed(inner, value):
                copy = dict(given) if isinstance(given, dict) else list(given)
                copy[name] = each
                yield copy


def test_yaml_that_is_nested_too_deeply(tmp_path: Path) -> None:
    file = tmp_path / "given.yaml"
    for text in (
        "[" * 5000,
        "a: " + "{a: " * 5000,
        "- " * 5000 + "a",
        "a: !!int ''",
        "a: !!timestamp x",
        "a: 2001-99-99",
        'a: "\\ud800"',
        "checks: {findings: {fail_on: [&a [*a, *a]]}}",
        "&a {a: {b: *a}}",
        "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)),
    ):
        file.write_text(text)
        assert "not valid YAML" in refused("config", "--config", str(file)) + refused(
            "simulate", str(file), "--out", "x"
        )


@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_unpacks_to_very_much(reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One endless line, and endless lines."""
    file = tmp_path / "given.jsonl.gz"
    monkeypatch.setattr(bounded_text, "MOST_LINE_BYTES", 1 << 20)
    file.write_bytes(gzip.compress(b" " * (3 << 20)))
    assert "bytes or more" in refused(*READERS[reader], str(file))


def test_snapshots_that_unpack_to_very_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "given.jsonl.gz"
    file.write_bytes(gzip.compress((json.dumps(PARTITION) + "\n").encode() * 1000))
    monkeypatch.setattr(snapshot_files, "MOST_BYTES", 10_000)
    monkeypatch.setattr(end_offsets, "MOST_BYTES", 10_000)
    assert "unpacked" in refused("groups", "--log", str(LOG), "--topics", str(file))
    assert "unpacked" in refused("metrics", "--log", str(LOG), "--end-offsets", str(file))


def test_a_packed_archive_is_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 2,000 members the last one took as long as all before it."""
    archive = tmp_path / "logs.tar.gz"
    content = next(LOG.glob("*.log")).read_bytes()[:300]
    with tarfile.open(archive, "w:gz") as out:
        for number in range(500):
            member = tarfile.TarInfo(f"logs/__consumer_offsets-0/{number * 10:020d}.log")
            member.size = len(content)
            out.addfile(member, BytesIO(content))
    unpacked: list[str] = []
    unpack = archives.opened
    monkeypatch.setattr(archives, "opened", lambda path: unpacked.append(path) or unpack(path))
    done = run_command("groups", "--log", archive, "--json")
    assert done.exit_code == 0, done.output
    assert unpacked == [str(archive)]
    monkeypatch.setattr(archives, "MOST_BYTES", 1000)
    archives._opened.cache_clear()
    assert "unpacks to more" in refused("groups", "--log", str(archive))


def test_a_folder_that_is_named_like_a_partition_that_cannot_be(tmp_path: Path) -> None:
    """The report listed the two billion partitions before it."""
    folder = tmp_path / "__consumer_offsets-2147483648"
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(next(LOG.glob("*.log")).read_bytes())
    assert "2147483648" in refused("report", "--log", str(tmp_path), "--out", str(tmp_path / "r.html"))


QUESTIONS = (
    *(
        ("findings",),
        ("groups",),
        ("describe", "g"),
        ("rebalances",),
        ("explain", "g"),
        ("history", "g"),
        ("owners", "t"),
    ),
    *(
        ("offsets", "g"),
        ("commits", "g"),
        ("audit",),
        ("whatif", "g", "--assignor", "range"),
        ("report",),
        ("metrics",),
    ),
    *(("trend",), ("tables",)),
)


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_a_place_without_tables_is_one_clear_error(question: tuple[str, ...], tmp_path: Path) -> None:
    """A folder that is not there, one without tables, a file: no error of a library."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    for place in ("nosuch", "empty", "file"):
        said = refused(*question, "--tables", str(tmp_path / place))
        assert len(said.splitlines()) == 1
        assert re.search("there are no tables at|has no tables of coordinator-audit", said), said


def test_findings_of_nothing_are_an_error(tmp_path: Path) -> None:
    """An empty file, and a metadata log alone: no finding can be found there."""
    empty = tmp_path / "00000000000000000000.log"
    empty.touch()
    for question in ("findings", "groups", "audit", "report", "metrics"):
        assert "empty" in refused(question, "--log", str(empty))
        assert "only the metadata log" in refused(question, "--log", str(SAMPLE_LOGS / "__cluster_metadata-0"))


def test_a_very_long_id_does_not_widen_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    """All of it is printed; a row of another group is not as wide."""
    lines: list[Line] = [{"group": "g" * 30_000, "epoch": 1}, *({"group": "x", "epoch": at} for at in range(100))]
    print_lines(lines, as_json=False, title="groups")
    printed = capsys.readouterr().out
    assert printed.count("g") >= 30_000
    assert sorted(map(len, printed.splitlines()))[-2] < 20
