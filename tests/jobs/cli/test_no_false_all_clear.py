"""Exit code 0 and an empty answer mean that something was looked for and could have been found."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from coordinator_core.errors import InputError
from coordinator_core.groups.log_partition import log_partition_of
from coordinator_core.records import Family
from tests.commands import rows_of_command, run_command
from tests.core.builders import GroupLog, classic_member
from tests.core.share_log import ShareLog
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.logs import batch, write_segment
from tests.matrix.removals import compacted
from tests.matrix.removals import cut as cut_in_segments
from tests.matrix.sources import CLUSTER, StoredTables, ThisProcess

if TYPE_CHECKING:
    from jobs.api import CoordinatorAudit


@pytest.fixture
def schema_registry(tmp_path: Path) -> Path:
    """A classic group of a protocol type for which no assignor is known."""
    log = GroupLog("registry")
    members = [classic_member("a", b"\x00", b"\x01")]
    write_segment(tmp_path / "__consumer_offsets-0", [batch(log.classic(1, members, protocolType="sr", protocol="v0"))])
    return tmp_path


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """The samples without one partition of the log of groups."""
    shutil.copytree(SAMPLE_LOGS, tmp_path / "logs")
    shutil.rmtree(tmp_path / "logs" / "__consumer_offsets-1")
    return tmp_path / "logs"


@pytest.fixture(scope="module")
def without_shares(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The samples without one partition of the share state log, and the tables that a night makes of them."""
    place = tmp_path_factory.mktemp("without_shares")
    shutil.copytree(SAMPLE_LOGS, place / "logs")
    shutil.rmtree(place / "logs" / "__share_group_state-0")
    StoredTables(ThisProcess(), place / "tables", [[place / "logs"]])
    return place


@pytest.mark.parametrize("question", ["groups", "describe --all", "rebalances", "findings", "audit", "metrics"])
def test_an_absent_partition_is_told(cut: Path, question: str) -> None:
    result = run_command(*question.split(), "--log", cut)
    assert result.exit_code == 0
    assert "1 of 4 partitions of __consumer_offsets were not given (1)" in result.stderr


@pytest.mark.parametrize("question", ["describe", "offsets", "history", "commits", "explain"])
def test_a_group_in_an_absent_partition_is_not_said_to_be_absent(cut: Path, question: str) -> None:
    result = run_command(question, "N-cls-3", "--log", cut)
    assert result.exit_code == 1
    assert "'N-cls-3' lies in __consumer_offsets-1, which was not given" in result.stderr
    assert "was not given" not in run_command(question, "none", "--log", cut).stderr, "it would lie in another one"


@pytest.fixture(scope="module")
def cleaned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The samples, of which one partition was compacted, and has no tombstones any more."""
    place = tmp_path_factory.mktemp("cleaned") / "logs"
    shutil.copytree(SAMPLE_LOGS, place)
    cut_in_segments(place)
    compacted(3, keep_tombstones=False)(place)
    return place


@pytest.mark.parametrize("question", ["commits", "history", "explain"])
def test_a_group_that_compaction_may_have_removed_is_not_said_to_be_absent(cleaned: Path, question: str) -> None:
    """A group that was deleted is gone with its tombstones; a log from its first offset on would show it."""
    names = {log_partition_of(name, 4): name for name in map("gone-{}".format, range(40))}
    removed, never = (run_command(question, names[number], "--log", cleaned) for number in (3, 0))
    assert (removed.exit_code, never.exit_code) == (1, 1)
    assert "the log lacks records before these offsets: __consumer_offsets-3" in removed.stderr
    assert "lacks" not in never.stderr


def test_rebalances_that_compaction_removed_are_not_said_to_be_none(cleaned: Path) -> None:
    """The share state log still tells of the group."""
    said = run_command("explain", "D-share3", "--log", cleaned).stderr
    assert "no rebalance in this log; the log lacks records before these offsets: __consumer_offsets-3" in said


def test_a_gate_does_not_pass_for_what_was_not_looked_at(cut: Path) -> None:
    assert run_command("findings", "--fail-on", "transaction_left_open", "--log", SAMPLE_LOGS).exit_code == 0
    result = run_command("findings", "--fail-on", "transaction_left_open", "--log", cut)
    assert result.exit_code == 1
    assert "does not prove that there is nothing" in result.stderr
    assert "or name a group whose partition is there (--group)" in result.stderr
    assert run_command("audit", "--fail-on", "violation", "--log", cut).exit_code == 1
    assert run_command("audit", "--fail-on", "violation", "--log", cut, "--group", "B-range-5175").exit_code == 0
    assert run_command("findings", "--fail-on", "any", "--log", cut).exit_code == 3


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        ("audit --fail-on violation", 1),
        ("audit --fail-on divergent", 0),
        ("audit --fail-on violation --group B-range-5175", 0),
        ("findings --fail-on share_archived", 1),
        ("findings --fail-on transaction_left_open", 0),
    ],
)
def test_a_gate_that_rests_on_share_state_does_not_pass_without_a_part_of_it(
    without_shares: Path, gate: str, code: int
) -> None:
    assert run_command(*gate.split(), "--log", SAMPLE_LOGS).exit_code == 0
    for source in (("--log", without_shares / "logs"), ("--tables", without_shares / "tables")):
        result = run_command(*gate.split(), *source)
        assert result.exit_code == code
        assert ("1 of 2 partitions of __share_group_state were not given (0)" in result.stderr) or not code


def test_a_check_of_what_rests_on_share_state_is_unknown_without_a_part_of_it(without_shares: Path) -> None:
    from jobs.checks.measures import missing
    from jobs.tables.folder_reader import FolderReader

    reader = FolderReader(str(without_shares / "tables"))
    lacks = missing(reader, CLUSTER, ["rebalance_storm"])
    assert [name for name, why in lacks.items() if why] == ["violations", "notices", "unexpected_findings"]
    assert missing(reader, CLUSTER, ["share_archived"])["failing_findings"] == lacks["violations"]


@pytest.mark.parametrize(
    "question", ["groups", "describe --all", "rebalances", "findings", "audit", "metrics", "owners t", "report"]
)
def test_without_a_log_of_groups_every_question_is_an_error(tmp_path: Path, question: str) -> None:
    for name in ("__cluster_metadata-0", "__share_group_state-0"):
        shutil.copytree(SAMPLE_LOGS / name, tmp_path / name)
    result = run_command(*question.split(), "--log", tmp_path)
    assert result.exit_code == 1
    assert "there is no log of groups here" in result.stderr


def test_a_protocol_type_without_an_assignor_has_the_verdict_unknown(schema_registry: Path) -> None:
    (row,) = map(json.loads, run_command("audit", "--log", schema_registry, "--json").stdout.splitlines())
    assert (row["verdict"], row["group_type"], row["expected"]) == ("unknown", "CLASSIC", None)
    assert "protocol type 'sr'" in row["missing"]
    assert run_command("audit", "--log", schema_registry, "--fail-on", "unknown").exit_code == 3


def test_a_notice_is_listed_and_is_no_violation_for_a_gate(tmp_path: Path) -> None:
    """A delivery state of a newer broker accuses nobody; a generation that goes back does."""
    shares = ShareLog("shares")
    records = [shares.snapshot(), shares.update(0, [(0, 4, 5, 1)])]
    segment = (batch(record, family=Family.SHARE) for record in records)
    write_segment(tmp_path / "new" / "__share_group_state-0", segment)
    members = [classic_member("a")]
    write_segment(tmp_path / "new" / "__consumer_offsets-0", [batch(GroupLog("other").classic(1, members))])
    result = run_command("audit", "--fail-on", "violation", "--log", tmp_path / "new")
    assert "share_state_new" in result.stdout
    assert result.exit_code == 1, "not all partitions are known"
    log = GroupLog("back")
    records = [log.classic(2, members), log.classic(1, members)]
    write_segment(tmp_path / "broken" / "__consumer_offsets-0", [batch(record) for record in records])
    assert run_command("audit", "--fail-on", "violation", "--log", tmp_path / "broken").exit_code == 3


def test_an_audit_that_judged_nothing_says_so(tmp_path: Path) -> None:
    log = GroupLog("simple")
    write_segment(tmp_path / "__consumer_offsets-0", [batch(log.commit("orders", 0, 5))])
    result = run_command("audit", "--group", "simple", "--log", tmp_path)
    assert result.exit_code == 0
    assert "none was judged" in result.stderr


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--fail-on", "any"], 3),
        (["--fail-on", "any", "--min-score", "1000"], 0),
        (["--fail-on", "offsets_expired"], 3),
        (["--fail-on", "transaction_left_open"], 0),
        (["--fail-on", "empty_member"], 2),
    ],
)
def test_findings_gate(options: list[str], code: int) -> None:
    result = run_command("findings", "--log", SAMPLE_LOGS, *options)
    assert result.exit_code == code
    if code == 2:
        assert "did you mean 'empty_members'" in result.stderr


def test_a_score_below_which_findings_are_left_out() -> None:
    rows = rows_of_command("findings", "--log", SAMPLE_LOGS)
    least = sorted(row["score"] for row in rows)[len(rows) // 2]
    kept = run_command("findings", "--log", SAMPLE_LOGS, "--json", "--min-score", least).stdout.splitlines()
    assert [json.loads(line) for line in kept] == [row for row in rows if row["score"] >= least]
    assert 0 < len(kept) < len(rows)


def test_a_file_without_steps_compares_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    result = run_command("trace", tmp_path / "empty.jsonl")
    assert result.exit_code == 1
    assert "nothing was compared" in result.stderr


def test_a_partition_that_the_topic_does_not_have() -> None:
    result = run_command("owners", "__consumer_offsets", 99, "--log", SAMPLE_LOGS)
    assert result.exit_code == 1
    assert "partitions 0 to" in result.stderr


def test_the_only_cluster_of_the_tables_is_taken_and_another_one_refused(sample: CoordinatorAudit) -> None:
    from jobs.cli.stored_source import choose_cluster
    from jobs.tables.spark_reader import SparkReader

    reader = SparkReader(sample.tables.spark, sample.tables.location)
    assert choose_cluster(reader, None) == choose_cluster(reader, "sample") == "sample"
    with pytest.raises(InputError, match=r"'default'.*sample"):
        choose_cluster(reader, "default")


def test_several_clusters_are_listed(spark, tmp_path: Path) -> None:
    from jobs.cli.stored_source import choose_cluster
    from jobs.tables.delta import Tables
    from jobs.tables.folder_reader import FolderReader
    from jobs.tables.log import RUNS
    from jobs.tables.table import few

    tables = Tables(spark, str(tmp_path))
    tables.create(RUNS)
    with pytest.raises(InputError, match="no cluster"):
        choose_cluster(FolderReader(tables.location), None)
    tables.append(RUNS, few(RUNS, [{"cluster": name} for name in ("east", "west")]), "two")
    with pytest.raises(InputError, match=r"east, west"):
        choose_cluster(FolderReader(tables.location), None)


def test_absent_partitions_are_counted_and_empty_ones_are_not(spark, tmp_path: Path) -> None:
    from jobs.api import CoordinatorAudit
    from jobs.checks.measures import measure
    from jobs.settings import load

    log = GroupLog("g")
    write_segment(tmp_path / "logs" / "__consumer_offsets-0", [batch(log.commit("orders", 0, 5))])
    (empty := tmp_path / "logs" / "__consumer_offsets-2").mkdir()
    (empty / "00000000000000000000.log").write_bytes(b"")
    audit = CoordinatorAudit(spark, str(tmp_path / "tables"), "c")
    audit.ingest(str(tmp_path / "logs"))
    audit.decode()
    now = datetime(2026, 1, 1, tzinfo=UTC)
    absent = {
        partitions: measure(audit.tables, now, load(flags={"checks.offsets_partitions": partitions}), "").rows[0][
            "absent_partitions"
        ]
        for partitions in (5, 3, None)
    }
    assert absent == {5: 3, 3: 1, None: 1}


def test_the_headline_of_the_report_names_absent_partitions(tmp_path: Path) -> None:
    quarter = tmp_path / "logs"
    shutil.copytree(SAMPLE_LOGS, quarter)
    shutil.rmtree(quarter / "__consumer_offsets-1")
    page = tmp_path / "report.html"
    assert run_command("report", "--log", quarter, "--out", page).exit_code == 0
    told = json.loads(page.with_suffix(".json").read_text())
    assert [(each["topic"], each["partitions"]) for each in told["absent"]] == [("__consumer_offsets", [1])]
    assert "1 of 4 partitions of __consumer_offsets were not given" in page.read_text()
    (quarter / "__consumer_offsets-1").mkdir()
    (quarter / "__consumer_offsets-1" / "00000000000000000000.log").write_bytes(b"")
    assert run_command("report", "--log", quarter, "--out", page).exit_code == 0
    assert "were not given" not in page.read_text()


def test_a_folder_that_is_not_there_is_not_said_to_be_undamaged(tmp_path: Path) -> None:
    """Nor is it made: ``rebuild`` says that there are no tables, before it starts Spark."""
    done = run_command("rebuild", "--tables", tmp_path / "none")
    assert done.exit_code == 1
    assert "the folder does not exist" in done.stderr
    assert not (tmp_path / "none").exists()
