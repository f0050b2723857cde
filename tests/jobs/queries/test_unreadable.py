"""Records that no schema describes: what they may have said is unknown, and nothing else."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from coordinator_core.records import RecordType
from tests.commands import run_command
from tests.core.builders import GroupLog, classic_member
from tests.jobs.logs import batch, write_segment
from tests.jobs.queries.unreadable_logs import cut_key, newer_value, rewritten, with_new_types
from tests.matrix.answers import questions
from tests.matrix.sources import Files, StoredTables, ThisProcess
from tests.shared_data import ROOT

LOGS = ROOT / "tests" / "data" / "unreadable"
NEWER = "cannot be decoded"


def ask(command: str, log: str, *options: str) -> tuple[list[dict[str, Any]], str]:
    """The rows of an answer, and its warnings."""
    result = run_command(*command.split(), "--log", LOGS / log, *options, "--json")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()], result.stderr


@pytest.mark.parametrize("log", ["unk3", "unk3one", "unk8"])
def test_no_rule_is_broken_by_what_cannot_be_read(log: str) -> None:
    rows, warnings = ask("audit", log)
    assert [row for row in rows if row["table"] == "violations"] == []
    assert {row["verdict"] for row in rows} <= {"identical", "unknown"}
    assert NEWER in warnings
    result = run_command("findings", "--fail-on", "any", "--log", LOGS / log)
    assert result.exit_code == 1, "that nothing was found proves nothing"
    assert NEWER in result.stderr


def test_a_group_whose_epoch_cannot_be_read_is_there_with_an_unknown_epoch() -> None:
    (row,), warnings = ask("groups", "unk3", "--at-offset", "0:20")
    assert (row["type"], row["epoch"], row["state"], row["members"]) == ("CONSUMER", None, None, 1)
    assert row["certainty"] == "known in part"
    assert NEWER in warnings


def test_what_replaces_an_unreadable_record_is_certain() -> None:
    (before,), _ = ask("groups", "unk3one", "--at-offset", "0:10")
    (after,), _ = ask("groups", "unk3one", "--at-offset", "0:21")
    assert (before["epoch"], before["certainty"]) == (None, "known in part")
    assert (after["epoch"], after["certainty"]) == (4, "certain")


def test_a_member_whose_assignment_cannot_be_read_has_an_unknown_one() -> None:
    (row,), _ = ask("describe --all", "unk8", "--at-offset", "0:12")
    members = row["describe_consumer"]["members"]
    assert [(each["consumerId"], each["assignment"], each["memberEpoch"]) for each in members] == [
        ("a", None, None),
        ("b", None, None),
    ]
    assert {"a.assignment", "b.assignment", "groupState"} <= {*row["unknownFields"]}


@pytest.fixture
def cut_keys(tmp_path: Path) -> str:
    """A log in which some records have keys that end too early."""
    shutil.copytree(LOGS / "unk3one" / "__consumer_offsets-0", tmp_path / "logs" / "__consumer_offsets-0")
    rewritten(next((tmp_path / "logs" / "__consumer_offsets-0").glob("*.log")), cut_key, 100, 5)
    return str(tmp_path / "logs")


def test_a_record_whose_key_cannot_be_read_may_be_about_any_group(cut_keys: str) -> None:
    (row,), warnings = ask("describe --all", cut_keys, "--at-offset", "0:20")
    assert row["certainty"] == "known in part"
    assert NEWER in warnings


def test_what_lasts_is_incomplete_behind_an_unreadable_record(cut_keys: str) -> None:
    """The log is cut before its last batch, which deletes the group."""
    (segment,) = Path(cut_keys).rglob("*.log")
    data, place, ends = segment.read_bytes(), 0, []
    while place < len(data):
        ends.append(place)
        place += 12 + int.from_bytes(data[place + 8 : place + 12])
    segment.write_bytes(data[: ends[-1]])
    rows, _ = ask("history billing", cut_keys)
    lasting = [row for row in rows if row.get("is_open")]
    assert lasting
    assert {row["history_complete"] for row in lasting} == {False}


def _without_positions(rows: object) -> object:
    """Rows without what rises with the offsets before it."""
    if isinstance(rows, dict):
        moving = {"offset", "log_offset", "logOffset", "source"}
        return {name: _without_positions(value) for name, value in rows.items() if name not in moving}
    return [_without_positions(value) for value in rows] if isinstance(rows, list) else rows


def test_records_of_types_that_are_not_known_change_no_state(tmp_path: Path) -> None:
    """A broker ignores them when it loads a partition (KIP-915)."""
    known, newer = tmp_path / "known", tmp_path / "newer"
    for folder in (known, newer):
        for name in ("__consumer_offsets-1", "__cluster_metadata-0"):
            shutil.copytree(ROOT / "data" / "samples" / "shop" / name, folder / name)
    (segment,) = (newer / "__consumer_offsets-1").glob("*.log")
    offsets = with_new_types(segment, 7)
    assert len(offsets) > 2
    said = f"__consumer_offsets-1 has {len(offsets)} records of type 77, the first at offset {offsets[0]}: "
    tables = StoredTables(ThisProcess(), tmp_path / "tables", [[newer]])
    groups = [row["group"] for row in Files([known]).ask(questions([], "orders", [])["groups"]).rows]
    asked = questions(groups[:2], "orders", [])
    for name in ("groups", "describe", *(f"offsets {group}" for group in groups[:2]), "audit", "findings"):
        expected = _without_positions(Files([known]).ask(asked[name]).rows)
        for source in (Files([newer]), tables):
            answer = source.ask(asked[name])
            assert _without_positions(answer.rows) == expected, name
            assert answer.said.count(said) == 1, (name, answer.said)


def test_no_offset_is_known_behind_an_unreadable_commit_of_a_converted_group(tmp_path: Path) -> None:
    """The end of the classic group keeps its offsets: no tombstone says that the unreadable one no longer counts."""
    log = GroupLog("moves")
    records = [log.classic(1, [classic_member("m")]), log.commit("orders", 0, 5), log.commit("orders", 0, 9)]
    converted = [log.tombstone(RecordType.GROUP_METADATA), *log.join("m", 2, {})]
    folder = tmp_path / "logs"
    write_segment(folder / "__consumer_offsets-0", [batch(each) for each in records] + [batch(*converted)])
    tables = StoredTables(ThisProcess(), tmp_path / "readable", [[folder]])
    question = questions(["moves"], "orders", [])["offsets moves"]
    known = [source.ask(question) for source in (Files([folder]), tables)]
    assert [[(row["offset"], row["status"]) for row in answer.rows] for answer in known] == [[(9, "committed")]] * 2
    rewritten(next((folder / "__consumer_offsets-0").glob("*.log")), newer_value, 100, 2)
    tables = StoredTables(ThisProcess(), tmp_path / "unreadable", [[folder]])
    for answer in (Files([folder]).ask(question), tables.ask(question)):
        assert [row["status"] for row in answer.rows] == ["unknown"]
        assert NEWER in answer.said


@pytest.mark.parametrize("producer_id", [None, 7], ids=["plain", "transaction"])
def test_an_unreadable_commit_may_be_of_a_transaction_that_is_open(tmp_path: Path, producer_id: int | None) -> None:
    """Only the newest record is readable: whether a fetch that requires stable offsets gets it is not known."""
    log = GroupLog("eos")
    folder = tmp_path / "logs"
    written = [batch(log.commit("t", 0, 8), producer_id=producer_id), batch(log.commit("t", 0, 9))]
    write_segment(folder / "__consumer_offsets-0", written)
    rewritten(next((folder / "__consumer_offsets-0").glob("*.log")), newer_value, 100)
    tables = StoredTables(ThisProcess(), tmp_path / "tables", [[folder]])
    for source in (Files([folder]), tables):
        (row,) = source.ask(questions(["eos"], "t", [])["describe"]).rows
        assert {place: offset["offset"] for place, offset in row["offsets"].items()} == {"t-0": 9}
        assert (row["offsets_stable"] is None) == (producer_id is not None)
