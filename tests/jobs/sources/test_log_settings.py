"""The settings of a log, in a file beside it: what they do, and what a file of somebody else must not do."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from coordinator_core.errors import UsageError
from jobs.api import CoordinatorAudit
from jobs.settings import load
from jobs.sources.log_settings import files_beside, layers_beside
from tests.commands import run_command
from tests.shared_data import ROOT

ASKED = ["explain", "B-range-5175@6"]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ROOT / "data/samples/incident", tmp_path / "incident"))


def settings_of(log: Path, text: str) -> Path:
    file = log / "coordinator-audit.yaml"
    file.write_text(text)
    return file


def test_a_question_takes_what_options_do_not_say_from_the_file_beside_the_log(log: Path) -> None:
    """It says that it does, and an option wins."""
    file = settings_of(
        log, "input: {broker_logs: ['server*.log'], broker_log_zone: UTC}\naudit: {profile: kafka-4.0}\n"
    )
    told = run_command(*ASKED, "--log", log)
    assert told.exit_code == 0, told.output
    assert told.stderr.count(f"settings of the log: {file}") == 1
    assert f"left ({log}/server.log:23)" in told.stdout
    assert "kafka-4.0" in told.stdout

    other = log.parent / "other.log"
    other.write_text("")
    won = run_command(*ASKED, "--log", log, "--broker-log", other, "--profile", "kafka-4.1")
    assert "left, or its session expired" in won.stdout
    assert "kafka-4.0" not in won.stdout


@pytest.mark.parametrize("own", [{}, {"cluster": "mine", "settings": load(flags={"audit.profile": "kafka-4.1"})}])
def test_the_python_api_takes_the_same_from_it(log: Path, tmp_path: Path, own: dict[str, Any]) -> None:
    """What is not left at its default goes before it, as an option does."""
    settings_of(
        log, "cluster: shop\ninput: {broker_logs: ['server*.log'], broker_log_zone: UTC}\naudit: {profile: kafka-4.0}\n"
    )
    without_spark: Any = None
    audit = CoordinatorAudit(without_spark, str(tmp_path / "tables"), **own)
    audit.ingest(str(log))
    audit.decode()
    audit.replay()
    assert audit.cluster == own.get("cluster", "shop")
    options = ["--profile", "kafka-4.1"] if own else []
    told = run_command(*ASKED, "--log", log, *options).stdout
    sentences = [sentence.text for sentence in audit.explain("B-range-5175", 6)]
    assert sentences
    assert all(sentence in told for sentence in sentences)
    assert any(f"left ({log}/server.log:23)" in sentence for sentence in sentences)
    assert any("kafka-4.0" in sentence for sentence in sentences) is not bool(own)


def test_a_night_takes_cluster_and_broker_logs_from_it(log: Path, tmp_path: Path) -> None:
    settings_of(log, "cluster: shop\ninput: {broker_logs: [server.log]}\n")
    own = tmp_path / "night.yaml"
    own.write_text("nightly: {steps: [ingest]}\n")
    tables = tmp_path / "tables"
    ran = run_command("nightly", log, "--tables", tables, "--config", own)
    assert ran.exit_code == 0, ran.output
    rows = DeltaTable(tables / "broker_events").to_pyarrow_table(columns=["cluster", "file"])
    assert set(rows["cluster"].to_pylist()) == {"shop"}
    assert set(rows["file"].to_pylist()) == {str(log / "server.log")}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "cluster: a\naudit:\n  profil: kafka-4.0\n",
            ":3: audit.profil is not a setting of a log: did you mean audit.pr",
        ),
        ("tables: elsewhere\n", ":1: tables is not a setting of a log"),
        ("kafka: {sasl.password: x}\n", ":1: kafka.sasl.password is not a setting of a log"),
        ("nightly: {report: /tmp/report.html}\n", ":1: nightly.report is not a setting of a log"),
        ("audit: {most_units_of_group: 1000000000}\n", ":1: audit.most_units_of_group is not a setting of a log"),
        ("audit.profile: kafka-4.0\n", ":1: audit.profile is not a setting of a log"),
        ("input: {broker_logs: [/etc/passwd]}\n", ":1: '/etc/passwd' is not in the folder of this file"),
        ("input:\n  topics: ../topics.jsonl\n", ":2: '../topics.jsonl' is not in the folder of this file"),
        ("input: {broker_logs: [li*]}\n", ":1: 'li*' is not in the folder of this file"),
        ('input: {broker_logs: ["a\\0b"]}\n', r":1: 'a\x00b' is not a path"),
        ("cluster: [a]\n", ":1: cluster: Input should be a valid string"),
        (f"cluster: {'x' * 70_000}\n", ": has 70010 bytes"),
    ],
)
def test_the_file_can_set_nothing_but_what_describes_the_log(log: Path, text: str, complaint: str) -> None:
    """Whoever gave the log may have written it: nothing is written, sent or read elsewhere."""
    (log / "link").symlink_to("/etc/passwd")
    file = settings_of(log, text)
    told = run_command(*ASKED, "--log", log)
    assert told.exit_code == 2
    assert f"error: {file}{complaint}" in told.stderr


def test_two_logs_are_of_one_cluster_and_have_their_own_broker_logs(log: Path, tmp_path: Path) -> None:
    (other := tmp_path / "b").mkdir()
    first = settings_of(log, "cluster: a\ninput: {broker_logs: [server.log]}\n")
    second = settings_of(other, "cluster: b\n")
    with pytest.raises(UsageError, match=f"^{second}:1: {first} has another cluster"):
        list(layers_beside([first, second]))
    second.write_text("cluster: a\ninput: {broker_logs: [server.log]}\n")
    told = load(environment={}, beside=layers_beside([first, second]))
    assert told.input.broker_logs == [str(log / "server.log"), str(other / "server.log")]


def test_the_file_is_beside_a_segment_and_beside_the_folder_of_a_partition(log: Path) -> None:
    file = settings_of(log, "")
    partition = log / "__consumer_offsets-3"
    assert files_beside([log, partition, log / "server.log", "kafka://h:1/t"]) == [file]
    assert files_beside([log.parent]) == []
