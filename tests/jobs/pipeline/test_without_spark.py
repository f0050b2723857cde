"""A night where Spark and Java are not installed: the same tables, whatever comes."""

import importlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from coordinator_core.errors import GoneError, InputError
from coordinator_core.records import GROUP_LOG
from coordinator_core.wire.batch_writer import NewRecord, encode_batch
from jobs import nightly_run, settings
from jobs.checks import measures, suites, validation
from jobs.pipeline import compared, decode, ingest, replay
from jobs.pipeline.decode_arrow import TYPED
from jobs.queries.from_logs.given import given_logs
from jobs.relations.given_partitions import absent, stored_given
from jobs.sources import segments
from jobs.sources.dump import open_dump
from jobs.sources.files import find_logs
from jobs.tables import tasks
from jobs.tables.delta import Tables
from jobs.tables.folder_reader import FolderReader
from jobs.tables.log import LOG_RECORDS, RUNS
from tests.commands import run_command, text_of_command
from tests.digests import of_tables
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.filled_tables import TOPIC
from tests.jobs.logs import write_segment
from tests.jobs.null_listener import NullListener
from tests.jobs.sources.test_printed import console_lines
from tests.shared_data import ROOT

BLOCKED = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j", "delta", "pandas", "great_expectations"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name in ("pyspark", "great_expectations") else found(name)
from coordinator_audit.__main__ import main
main()
"""


def night(home: Path, dump: Path) -> str:
    """A night by a process that finds no Spark, no Java, no pandas and no Great Expectations."""
    words = ["nightly", str(dump), "--tables", str(home / "tables"), "--report", str(home / "report.html")]
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, *words, "--cluster", "c"],
        env={**{name: value for name, value in os.environ.items() if name != "JAVA_HOME"}, "PATH": ""},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    # 3: decoded records have no bytes that a night could decode, and its checks say so.
    assert done.returncode == (3 if dump.suffix == ".jsonl" else 0), done.stderr
    assert "engine: local" in done.stderr
    return done.stderr


def night_here(home: Path, dump: Path) -> str:
    """A night by this process, without the steps that nobody asks for what is in the tables: checks and report."""
    (home / "night.yaml").write_text("nightly: {steps: [ingest, decode, replay, offsets, findings]}")
    words = ("nightly", dump, "--tables", home / "tables", "--cluster", "c", "--config", home / "night.yaml")
    ran = run_command(*words, env={"COORDINATOR_AUDIT_ENGINE__RUNNER": "local"})
    assert ran.exit_code == 0, ran.output
    return ran.stderr


def as_archive(place: Path) -> Path:
    with tarfile.open(place / "logs.tar.gz", "w:gz") as archive:
        archive.add(SAMPLE_LOGS, "logs")
    return place / "logs.tar.gz"


def as_json_lines(place: Path) -> Path:
    place.mkdir(exist_ok=True)
    (place / "records.jsonl").write_text(text_of_command("--json", "dump", SAMPLE_LOGS))
    return place / "records.jsonl"


@pytest.mark.parametrize(
    "kind", ["segments", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("an archive", "JSON lines"))]
)
def test_a_night_without_spark_fills_the_tables_as_spark_does(kind: str, spark: SparkSession, tmp_path: Path) -> None:
    dump = {"segments": lambda _: SAMPLE_LOGS, "an archive": as_archive, "JSON lines": as_json_lines}[kind](tmp_path)
    night(tmp_path, dump)
    assert (tmp_path / "report.html").stat().st_size > 100_000
    tables = Tables(spark, str(tmp_path / "spark"))
    ingest.run(tables, open_dump(spark, [str(dump)]), "c")
    decode.run(tables)
    mine, by_spark = of_tables(str(tmp_path / "tables"), dump), of_tables(tables.location, dump)
    names = [f"table {name}" for name in (*TYPED, "log_ranges", "commit_summaries")]
    assert {name: mine[name] for name in names} == {name: by_spark[name] for name in names}
    second = night(tmp_path, dump)
    assert "ingest done" in second
    assert "records 0" in second
    assert of_tables(str(tmp_path / "tables"), dump)["table log_records"] == mine["table log_records"]


def test_tables_know_that_offsets_are_numbers_of_lines(tmp_path: Path) -> None:
    """Which partitions there are, and what is missing of them, is no better known than from the lines themselves."""
    (tmp_path / "groups.txt").write_text("\n".join(console_lines("groupmetadata")), encoding="utf-8")
    assert "printed without positions" in night_here(tmp_path, tmp_path / "groups.txt")
    homes = (["--log", str(tmp_path / "groups.txt")], ["--tables", str(tmp_path / "tables"), "--cluster", "c"])
    from_lines, from_tables = (run_command("groups", *home) for home in homes)
    assert from_tables.stderr == from_lines.stderr
    assert from_tables.stdout == from_lines.stdout
    assert "printed without positions" in from_lines.stderr
    assert "were not given" not in from_lines.stderr
    assert absent(FolderReader(str(tmp_path / "tables")), GROUP_LOG, None) == {"c": None}


def test_tables_know_that_a_segment_does_not_tell_its_partition(tmp_path: Path) -> None:
    write_segment(tmp_path / "alone", [batch(0)])
    tables = Tables(None, str(tmp_path / "tables"))
    ingest.run(tables, open_dump(None, [str(tmp_path / "alone")]), "c")
    assert stored_given(tables.engine(), "c") == given_logs(find_logs([tmp_path / "alone"]), {})
    assert absent(tables.engine(), GROUP_LOG, None) == {"c": None}


def batch(first: int, key: bytes = b"\0\1k", time_ms: int = 5) -> bytes:
    return encode_batch([NewRecord(first + number, time_ms, key, None, ()) for number in range(3)])


def taken(tables: Tables, *dumps: Path) -> list[tuple[Any, ...]]:
    """Take dumps in, and return the records of the tables."""
    ingest.run(tables, open_dump(tables.session, [str(dump) for dump in dumps]), "c")
    rows = tables.engine().rows("SELECT log_offset, kind, source, place, key_hash FROM $log_records")
    return sorted((row["log_offset"] is None, row["log_offset"], row["kind"], row["place"]) for row in rows)


def read_again(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note what is compared record by record."""
    found: list[str] = []
    take = compared.take
    monkeypatch.setattr(compared, "take", lambda *given: found.append(given[-1]) or take(*given))
    return found


def test_a_segment_that_has_grown_is_read_from_where_the_tables_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, log, tables = read_again(monkeypatch), tmp_path / f"{TOPIC}-0", Tables(None, str(tmp_path / "tables"))
    write_segment(log, [batch(0), batch(3)])
    assert len(taken(tables, tmp_path)) == 6
    write_segment(log, [batch(0), batch(3), batch(6), batch(9)])
    ranges = []
    behind = ingest._behind
    monkeypatch.setattr(ingest, "_behind", lambda *of: ranges.append(behind(*of)) or ranges[-1])
    assert [row[1] for row in taken(tables, tmp_path)] == list(range(12))
    assert ranges == [2 * len(batch(0))]
    assert slow == []
    assert len(taken(tables, tmp_path)) == 12, "nothing is new"
    assert slow == []


def test_a_night_says_once_what_it_leaves_out(tmp_path: Path) -> None:
    """As a question to the same folder does."""
    write_segment(tmp_path / "logs" / f"{TOPIC}-0", [batch(0)])
    write_segment(tmp_path / "logs" / f"{TOPIC}-1.0123456789abcdef-delete", [batch(0)])
    with tarfile.open(tmp_path / "logs" / "more.tar", "w") as archive:
        archive.add(tmp_path / "logs" / f"{TOPIC}-0", f"{TOPIC}-2")
    said = night_here(tmp_path, tmp_path / "logs")
    assert said.count("more.tar: left out, as there are segments beside it") == 1
    assert said.count("a partition that the broker is deleting") == 1


def cleaned(first: Path, *gone: Path) -> None:
    """Let the cleaner of a broker put segments together in the first of them."""
    swap = first.with_name(f"{first.name}.swap")
    swap.write_bytes(b"".join(file.read_bytes() for file in (first, *gone)))
    for file in gone:
        file.unlink()
    swap.rename(first)


@pytest.mark.parametrize("is_planned", [False, True], ids=["before tasks are planned", "after"])
def test_a_night_on_a_broker_that_cleans_its_log_has_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_planned: bool
) -> None:
    """A segment goes into the one before it between its listing and its reading; the next night finds nothing new."""
    folder = tmp_path / "logs" / f"{TOPIC}-0"
    for first in (0, 6, 12):
        write_segment(folder, [batch(first), batch(first + 3)], first)
    partitions, cleanings = segments.SegmentsReader.partitions, [f"{6:020}.log", f"{12:020}.log"]

    def clean_meanwhile(source: segments.SegmentsReader) -> Any:
        planned = partitions(source) if is_planned else None
        if cleanings:
            cleaned(folder / f"{0:020}.log", folder / cleanings.pop(0))
        return planned or partitions(source)

    monkeypatch.setattr(segments.SegmentsReader, "partitions", clean_meanwhile)
    for _ in range(2):
        night_here(tmp_path, tmp_path / "logs")
    assert cleanings == []
    engine = Tables(None, str(tmp_path / "tables")).engine()
    assert [*engine.tuples("SELECT log_offset, kind FROM $log_records ORDER BY log_offset")] == [
        (offset, "record") for offset in range(18)
    ]
    counts = "SELECT job, sum(records) AS n, sum(missing_offsets) AS lost FROM $runs GROUP BY job ORDER BY job"
    assert [*engine.tuples(counts)] == [("decode", 18, None), ("ingest", 18, None)]


@pytest.mark.parametrize("left", [[3], [3, 6, 9]], ids=["fewer", "as many"])
def test_what_was_cleaned_while_it_was_compared_is_not_taken_for_what_was_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: list[int]
) -> None:
    tables, judged = Tables(None, str(tmp_path / "tables")), compared._judged
    folders = [tmp_path / "logs" / name / f"{TOPIC}-0" for name in "ab"]
    for folder in folders:
        write_segment(folder, [batch(0), batch(3), batch(6)])

    def clean_meanwhile(*given: Any, **how: Any) -> Any:
        write_segment(folders[0], map(batch, left))
        return judged(*given, **how)

    monkeypatch.setattr(compared, "_judged", clean_meanwhile)
    with pytest.raises(GoneError):
        taken(tables, tmp_path / "logs")
    monkeypatch.undo()
    assert {row[1] for row in taken(tables, tmp_path / "logs")} >= set(range(9))
    assert len(taken(tables, tmp_path / "logs")) == len({row[1] for row in taken(tables, tmp_path / "logs")})


def test_a_range_of_a_segment_that_was_cleaned_since_it_was_listed_is_not_read(tmp_path: Path) -> None:
    """Where other batches are in its bytes, they would look like damage."""
    folder = tmp_path / f"{TOPIC}-0"
    file = write_segment(folder, [batch(0), batch(3)])
    (log,) = find_logs([folder])
    (tmp_path / "cleaned").write_bytes(batch(3))
    (tmp_path / "cleaned").rename(file)
    assert [len(part) for part in log.parts_within(0, log.size) if isinstance(part, pa.RecordBatch)] == [3]
    with pytest.raises(GoneError):
        next(log.parts_within(len(batch(0)), log.size))


def test_bytes_that_end_a_copy_again_are_taken_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy is often made in the middle of a batch: the next one has it whole, or ends in it, too."""
    slow, log, tables = read_again(monkeypatch), tmp_path / f"{TOPIC}-0", Tables(None, str(tmp_path / "tables"))
    write_segment(log, [batch(0), batch(3)[:40]])
    assert [row[2] for row in taken(tables, tmp_path)] == ["record"] * 3 + ["damaged"]
    write_segment(log, [batch(0), batch(3)[:50]])
    assert [row[2] for row in taken(tables, tmp_path)] == ["record"] * 3 + ["damaged"]
    write_segment(log, [batch(0), batch(3)])
    assert [row[2] for row in taken(tables, tmp_path)] == ["record"] * 6 + ["damaged"]
    assert slow == []


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_copy_that_ends_within_a_batch_has_lost_nothing_unless_the_log_goes_on(tmp_path: Path, goes_on: bool) -> None:
    log, tables = tmp_path / f"{TOPIC}-0", Tables(None, str(tmp_path / "tables"))
    write_segment(log, [batch(0), batch(3)[:40]])
    if goes_on:
        write_segment(log, [batch(6)], 6)
    taken(tables, tmp_path)
    decode.run(tables)
    (row,) = measures.measure(tables, datetime.now(UTC), settings.load(environment={}), "").rows
    # The records themselves do not decode; the end of the file is none.
    assert (row["quarantine_rate"], row["damaged_offsets"]) == ((6 / 7, 3) if goes_on else (3 / 4, 0))


@pytest.mark.parametrize("changed", ["first", "border", "place"])
def test_a_file_that_is_not_the_one_that_was_taken_in_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    slow, log, tables = read_again(monkeypatch), tmp_path / f"{TOPIC}-0", Tables(None, str(tmp_path / "tables"))
    write_segment(log, [batch(0), batch(3), batch(6)])
    taken(tables, tmp_path)
    other = {
        "first": [batch(0, b"\0\1other"), batch(3), batch(6), batch(9)],
        "border": [batch(0), batch(3), batch(6, time_ms=7), batch(9)],
        "place": [batch(3), batch(6), batch(9)],
    }[changed]
    write_segment(log, other)
    if changed == "place":  # compaction has removed the first batch
        assert [row[1] for row in taken(tables, tmp_path)] == list(range(12))
    else:
        with pytest.raises(InputError, match="has a different record than"):
            taken(tables, tmp_path)
        assert len(list(tables.engine().rows("SELECT log_offset FROM $log_records"))) == 9
    assert len(slow) == 1


def test_copies_and_dumps_of_a_consumer_make_one_log(tmp_path: Path) -> None:
    """Each record once; what only the segments tell is added to rows of the dump of a consumer."""
    tables, consumed = Tables(None, str(tmp_path / "tables")), tmp_path / "consumed.jsonl"
    rows = [
        {"topic": TOPIC, "partition": 0, "offset": at, "timestamp": 5, "key": "AAFr", "value": None} for at in range(4)
    ]
    consumed.write_text("\n".join(map(json.dumps, rows)))
    assert [row[1] for row in taken(tables, consumed)] == [0, 1, 2, 3]
    for name in ("a", "b"):
        write_segment(tmp_path / name / f"{TOPIC}-0", [batch(0), batch(3)])
    assert [row[1] for row in taken(tables, tmp_path / "a", tmp_path / "b")] == [0, 1, 2, 3, 4, 5]
    bases = "SELECT log_offset, batch_base FROM $log_records ORDER BY log_offset"
    assert list(tables.engine().tuples(bases)) == [(0, 0), (1, 0), (2, 0), (3, 3), (4, 3), (5, 3)]


def test_two_copies_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    for name, key in (("a", b"\0\1k"), ("b", b"\0\1other")):
        write_segment(tmp_path / name / f"{TOPIC}-0", [batch(0, key)])
    with pytest.raises(InputError, match=r"offset 0: .*/b/.* has a different record than .*/a/"):
        taken(Tables(None, str(tmp_path / "tables")), tmp_path / "a", tmp_path / "b")


def test_processes_of_this_machine_read_large_dumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for name, size in (("one", 1 << 40), ("many", 0)):
        monkeypatch.setattr(tasks, "ALONE_BYTES", size)
        monkeypatch.setattr(segments, "TASK_BYTES", 10_000)
        monkeypatch.setattr(os, "cpu_count", lambda: 2)
        tables = Tables(None, str(tmp_path / name))
        ingest.run(tables, open_dump(None, [str(SAMPLE_LOGS)]), "c")
        found.append(of_tables(tables.location, SAMPLE_LOGS))
        found[-1].pop("table runs")
    assert found[0] == found[1]
    assert len(DeltaTable(str(tmp_path / "many" / LOG_RECORDS.name)).file_uris()) == 2


def test_a_run_that_was_killed_before_its_records_counted_is_taken_back(tmp_path: Path) -> None:
    killed, whole = Tables(None, str(tmp_path / "killed")), Tables(None, str(tmp_path / "whole"))
    for tables in (killed, whole):
        ingest.run(tables, open_dump(None, [str(SAMPLE_LOGS)]), "c")
        decode.run(tables)
    for table in (LOG_RECORDS, RUNS):
        DeltaTable(str(tmp_path / "killed" / table.name)).delete()
    for tables in (killed, whole):
        ingest.run(tables, open_dump(None, [str(SAMPLE_LOGS)]), "c")
    names = [f"table {name}" for name in TYPED]
    after, expected = (of_tables(tables.location, SAMPLE_LOGS) for tables in (killed, whole))
    assert {name: after[name] for name in names} == {name: expected[name] for name in names}


def test_processes_of_this_machine_replay_many_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, asked = [], list[int]()
    begin = tasks.processes
    monkeypatch.setattr(tasks, "processes", lambda count: asked.append(count) or begin(count))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    decoded = Tables(None, str(tmp_path / "one"))
    ingest.run(decoded, open_dump(None, [str(SAMPLE_LOGS)]), "c")
    decode.run(decoded)
    shutil.copytree(tmp_path / "one", tmp_path / "many")
    for name, rows in (("one", 1 << 40), ("many", 1_000)):
        tables = Tables(None, str(tmp_path / name))
        tables.limits = replace(tables.limits, replayed_rows=rows)
        replay.run(tables)
        found.append(of_tables(tables.location, SAMPLE_LOGS))
        found[-1].pop("table runs")
    assert asked == [2]
    assert found[0] == found[1]


def test_the_import_for_the_checks_begins_before_new_records_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not where nothing is new, or only a snapshot: then what was judged is judged so again."""
    write_segment(tmp_path / f"{TOPIC}-0", [batch(0)])
    snapshot = tmp_path / "snapshot.jsonl"
    begun, read = list[str](), ingest.run
    monkeypatch.setattr(suites, "prepare", lambda tables: begun.append("import"))
    monkeypatch.setattr(suites, "run", lambda *given: [])
    monkeypatch.setattr(ingest, "run", lambda *given: (begun.append("read"), read(*given))[1])

    def began(*paths: Path) -> list[str]:
        begun.clear()
        flags = {"input.paths": list(map(str, paths)), "cluster": "c", "nightly.steps": ["ingest", "checks"]}
        outcome = nightly_run.run(
            Tables(None, str(tmp_path / "tables")), settings.load(environment={}, flags=flags), NullListener()
        )
        assert [step.error for step in outcome.steps] == [None, None]
        return begun

    log = tmp_path / f"{TOPIC}-0"
    assert began(log)[:2] == ["import", "read"]
    row = {"resource_type": "BROKER", "resource": "1", "timestamp_ms": 60_000, "configs": {"group.max.size": "1"}}
    snapshot.write_text(json.dumps(row) + "\n")
    assert began(log, snapshot) == ["read"]
    assert began(log, snapshot) == ["read"]
    write_segment(log, [batch(3)], 3)
    assert began(log, snapshot)[:2] == ["import", "read"]


def test_what_judges_with_pandas_does_not_import_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []

    def load() -> None:
        with pytest.raises(ImportError):
            importlib.import_module("pyspark")
        loaded.append("great_expectations")

    monkeypatch.delitem(sys.modules, "pyspark")
    monkeypatch.setattr(validation, "load", load)
    validation.load_without_spark()
    assert loaded == ["great_expectations"]
    assert "pyspark" not in sys.modules, "an expectation of a user may import it"
