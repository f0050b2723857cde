"""The form of a dump raises no alarm, and what it says nothing of is told."""

import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coordinator_core.records import GROUP_LOG, RecordType
from coordinator_core.wire.kafka_text import FORMATTERS, formatted
from tests.commands import rows_of_command, run_command, text_of_command
from tests.core.builders import GroupLog, classic_member
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.logs import batch, write_segment
from tests.jobs.sources.input_shapes import Fields, rows_in


def dumped(place: Path, made: Callable[[Fields], Fields] = dict) -> Path:
    """The samples as a consumer dumps them, as JSON lines."""
    with place.open("w") as file:
        for segment in sorted(SAMPLE_LOGS.glob(f"{GROUP_LOG}-*/*.log")):
            number = int(segment.parent.name.rpartition("-")[2])
            for row in rows_in(segment):
                if hasattr(row, "key") and not row.batch.is_control:
                    fields = {name: getattr(row, name) for name in ("offset", "timestamp", "key", "value")}
                    line = made(fields | {"topic": GROUP_LOG, "partition": number})
                    file.write(json.dumps(line, default=lambda part: b64encode(part).decode()) + "\n")
    return place


@pytest.mark.parametrize("time", ["in seconds", "rounded", "0", "-1"])
def test_times_that_are_coarse_or_absent_raise_no_alarm(tmp_path: Path, time: str) -> None:
    def changed(fields: Fields) -> Fields:
        seconds = fields["timestamp"] // 1000
        return fields | {"timestamp": {"in seconds": seconds, "rounded": seconds * 1000, "0": 0, "-1": -1}[time]}

    found = rows_of_command("findings", "--log", dumped(tmp_path / "dump.jsonl", changed), "--json")
    assert found
    assert [row for row in found if row["level"] == "alarm"] == []
    told = run_command("findings", "--log", tmp_path / "dump.jsonl").stderr
    assert ("have no times" in told) is (time in ("0", "-1"))


def test_a_dump_of_another_topic_is_refused_by_questions_and_nights(tmp_path: Path) -> None:
    lines = dumped(tmp_path / "dump.jsonl", lambda fields: fields | {"topic": "payments"})
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    tables = {"json": lines, "parquet": tmp_path / "dump.parquet"}
    pq.write_table(pa.table(columns), tables["parquet"])
    (tmp_path / "local.yaml").write_text("engine:\n  runner: local\n")
    for place in tables.values():
        asked = run_command("findings", "--log", place)
        taken = run_command("nightly", place, "--tables", tmp_path / "tables", "--config", tmp_path / "local.yaml")
        for result in (asked, taken):
            assert result.exit_code == 1
            assert f"{place}: its records are of payments, and none of __consumer_offsets" in result.stderr


def test_records_of_other_topics_beside_are_left_out(tmp_path: Path) -> None:
    lines = dumped(tmp_path / "dump.jsonl")
    other = lines.read_text().replace('"topic": "__consumer_offsets"', '"topic": "payments"')
    lines.write_text(other + lines.read_text())
    assert rows_of_command("groups", "--log", lines, "--json")


def test_an_empty_table_is_a_night_without_records_and_no_answer(tmp_path: Path) -> None:
    place = tmp_path / "dump.parquet"
    fields = {"key": pa.binary(), "value": pa.binary(), "partition": pa.int32(), "offset": pa.int64()}
    pq.write_table(pa.schema(list(fields.items())).empty_table(), place)
    (tmp_path / "local.yaml").write_text("engine:\n  runner: local\n")
    asked = run_command("findings", "--log", place)
    assert asked.exit_code == 1
    assert f"{place}: no record is there" in asked.stderr
    assert (
        run_command("ingest", place, "--tables", tmp_path / "tables", "--config", tmp_path / "local.yaml").exit_code
        == 0
    )


def test_no_rule_is_judged_between_lines_that_may_not_be_neighbours(tmp_path: Path) -> None:
    """A group that was upgraded and downgraded: the formatter of classic groups prints nothing in between."""
    log, members = GroupLog("g"), [classic_member("a", b"\x00", b"\x01")]
    seen = [log.classic(1, members), log.tombstone(RecordType.GROUP_METADATA), log.classic(11, members)]
    write_segment(tmp_path / "logs" / f"{GROUP_LOG}-0", [batch(record) for record in seen])
    family, types = FORMATTERS["groupmetadata"]
    lines = (formatted(row, types, family) for row in rows_in(next((tmp_path / "logs").rglob("*.log"))))
    (tmp_path / "groups.jsonl").write_text("".join(f"{line}\n" for line in lines))
    asked = text_of_command("audit", "--log", tmp_path / "groups.jsonl")
    kept = text_of_command("audit", "--log", tmp_path / "groups.jsonl", "--keep", tmp_path / "kept")
    assert "rules broken (0)" in asked
    assert "rules broken (0)" in kept
    assert "type_changed_in_part" in text_of_command("audit", "--log", tmp_path / "logs"), "there nothing is missing"
