"""Answers from log files with brokers' application logs beside them."""

import gzip
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.errors import InputError, UsageError
from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.from_logs.brokers import BrokerLogs
from jobs.queries.from_logs.history import group_histories
from jobs.queries.interface import RebalanceFilter
from jobs.settings import load
from jobs.sources.broker_logs import parse_zone
from jobs.sources.files import find_logs
from tests.broker_layouts import layouts
from tests.broker_lines import Told, written
from tests.commands import run_command, text_of_command
from tests.shared_data import ROOT

LOGS = find_logs([ROOT / "data" / "samples" / "logs"], snapshots=True)
HOW = ("member_left", "member_expired", "member_timed_out")


@pytest.fixture(scope="module")
def histories() -> list[GroupHistory]:
    return list(group_histories(LOGS, lambda message: None))


def answers(*paths: Path, zone: str | None = None, warnings: list[str] | None = None) -> LogAnswers:
    brokers = BrokerLogs(paths, None if zone is None else parse_zone(zone))
    return LogAnswers(LOGS, (warnings if warnings is not None else []).append, load, brokers=brokers)


def causes(found: LogAnswers) -> set[Told]:
    rows = found.rebalances(RebalanceFilter())
    return {
        Told(row.group_id, each.member_id or "", each.kind) for row in rows for each in row.causes if each.kind in HOW
    }


@pytest.mark.parametrize("name", ["+25:00", "+24:00", "-99:99", "+02:60", "Europe", "", "../x", "\udc80"])
def test_a_zone_that_no_clock_has_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="invalid zone"):
        parse_zone(name)


def test_the_longest_offsets_are_zones() -> None:
    assert [parse_zone(name)(0) for name in ("+23:59", "-2359")] == [-86_340_000, 86_340_000]


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(hours=5, minutes=45), timedelta(hours=-11)])
def test_causes_are_those_of_the_lines_in_every_zone(
    histories: list[GroupHistory], tmp_path: Path, ahead: timedelta
) -> None:
    text, told = written(histories, ahead)
    (tmp_path / "server.log").write_text(text)
    warnings: list[str] = []
    found = answers(tmp_path, warnings=warnings)
    assert causes(found) == set(told)
    assert not [each for each in warnings if "broker" in each]
    rows = found.rebalances(RebalanceFilter())
    open_causes = Counter(each.kind for row in rows for each in row.causes)
    assert not open_causes["member_left_or_expired"]
    assert all(str(tmp_path) in (each.hint or "") for row in rows for each in row.causes if each.kind in HOW)
    # A downgrade begins with a record of its own.
    began = [row for row in rows if row.group_type == "CLASSIC" and row.from_epoch not in (None, row.to_epoch)]
    began = [row for row in began if all(each.kind != "group_downgraded" for each in row.causes)]
    assert [row.at.timestamp_ms - row.began_before_ms for row in began] == [row.duration_max_ms for row in began]
    assert {row.duration_max_ms for row in began} == {1}


def test_rotated_compressed_and_doubled_files_are_one_log(histories: list[GroupHistory], tmp_path: Path) -> None:
    text, told = written(histories)
    lines = text.splitlines(keepends=True)
    half = len(lines) // 2
    (tmp_path / "server.log.1.gz").write_bytes(gzip.compress("".join(lines[: half + 5]).encode()))
    (tmp_path / "server.log").write_text("".join(lines[half:]))
    assert causes(answers(tmp_path)) == set(told)
    assert causes(answers(Path(f"{tmp_path}/server.log*"))) == set(told)


def test_half_a_file_decides_half_of_the_causes(histories: list[GroupHistory], tmp_path: Path) -> None:
    text, told = written(histories)
    lines = text.splitlines(keepends=True)
    (tmp_path / "server.log").write_text("".join(lines[: len(lines) // 2]))
    found = causes(answers(tmp_path))
    assert found < set(told)
    assert found


def test_lines_that_contradict_each_other_decide_nothing(histories: list[GroupHistory], tmp_path: Path) -> None:
    text, told = written(histories)
    other = text.replace("has failed, removing it from the group.", "x")
    for each in told:
        if each.how == "member_left":
            other += other.splitlines()[0].split("] [")[0].split("INFO")[0]
            context = "INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=0] "
            other += (
                f"{context}Member {each.member_id} in group {each.group_id} has failed, removing it from the group.\n"
            )
    (tmp_path / "server.log").write_text(other)
    found = answers(tmp_path).rebalances(RebalanceFilter())
    doubted = [each for row in found for each in row.causes if "contradict each other" in (each.hint or "")]
    assert doubted
    assert {each.kind for each in doubted} == {"member_left_or_expired"}


def test_a_file_about_other_groups_changes_nothing_and_is_told(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("[2026-11-23 14:25:07,123] INFO Kafka startTimeMs: 1 (x.y.Z)\n")
    warnings: list[str] = []
    rows = answers(tmp_path, warnings=warnings).rebalances(RebalanceFilter())
    assert rows == answers().rebalances(RebalanceFilter())
    assert any("no line of the group coordinator" in each for each in warnings)


def test_a_path_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        answers(tmp_path / "server.log").rebalances(RebalanceFilter())


NOT_LOADED = (
    "[2030-01-01 00:00:0{second},000] ERROR [GroupCoordinator id=1] Failed to load metadata from __consumer_offsets-0 "
    "with epoch 9 due to java.lang.RuntimeException: Replaying record CoordinatorRecord(key=StreamsGroupMetadataKey("
    "groupId='g')) from __consumer_offsets-0 at offset 7 failed. ({logger})\n"
)
LOADED = (
    "[2030-01-01 00:00:09,000] INFO [GroupCoordinator id=1] Finished loading of metadata from __consumer_offsets-0 "
    "with epoch 10 in 3ms where 1ms was spent in the scheduler. Loaded 7 records which total to 90 bytes. ({logger})\n"
)
RUNTIME = "org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime"


def test_groups_whose_log_partition_could_not_be_loaded_have_no_coordinator(
    histories: list[GroupHistory], tmp_path: Path
) -> None:
    text, _ = written(histories)
    failures = "".join(NOT_LOADED.format(second=second, logger=RUNTIME) for second in range(2))
    (tmp_path / "server.log").write_text(text + failures)
    warnings: list[str] = []
    rows = [row for row in answers(tmp_path, warnings=warnings).findings(None) if row.kind == "no_coordinator"]
    own = {each.group_id for each in histories if each.present is not None and each.present.opened.partition == 0}
    assert own
    own |= {
        each.group_id
        for each in histories
        if each.present is None and any(row.offset is not None and row.last.partition == 0 for row in each.commits)
    }
    assert [(row.group_id, row.subject) for row in rows] == [(None, "__consumer_offsets-0")]
    assert f"{len(own)} groups (" in rows[0].detail
    assert {(row.value, row.level, row.is_open) for row in rows} == {(2, "alarm", True)}
    assert "__consumer_offsets-0 has no coordinator since 2030-01-01T00:00:00.000Z" in rows[0].detail
    assert "KAFKA-20254" in rows[0].detail
    of_one = [row for row in answers(tmp_path).findings(min(own)) if row.kind == "no_coordinator"]
    assert [(row.group_id, row.value) for row in of_one] == [(min(own), 2)]
    assert any("__consumer_offsets-0 has no coordinator" in each for each in warnings)
    (tmp_path / "server.log").write_text(text + failures + LOADED.format(logger=RUNTIME))
    assert not [row for row in answers(tmp_path).findings(None) if row.kind == "no_coordinator"]


def test_the_log_of_another_cluster_with_the_same_groups_is_refused(
    histories: list[GroupHistory], tmp_path: Path
) -> None:
    text, told = written(histories)
    other = text
    for number, each in enumerate(told):
        other = other.replace(each.member_id, f"other-{number}")
    (tmp_path / "server.log").write_text(other)
    warnings: list[str] = []
    rows = answers(tmp_path, warnings=warnings).rebalances(RebalanceFilter())
    assert rows == answers().rebalances(RebalanceFilter())
    assert any("is not used" in each or "are not used" in each for each in warnings)


def test_lines_in_two_layouts_are_one(histories: list[GroupHistory], tmp_path: Path) -> None:
    text, _ = written(histories)
    (tmp_path / "server.log").write_text(text)
    expected = answers(tmp_path / "server.log").rebalances(RebalanceFilter())
    (tmp_path / "strimzi.log").write_text(dict(layouts(text))["strimzi"])
    found = answers(tmp_path).rebalances(RebalanceFilter())
    assert [row.duration_min_ms for row in found] == [row.duration_min_ms for row in expected]
    assert [[each.kind for each in row.causes] for row in found] == [
        [each.kind for each in row.causes] for row in expected
    ]


HOSTILE = "\x1b[31m<script>alert(1)</script>\u202e\x9b2J\x00\r\x07<img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def hostile(histories: list[GroupHistory], tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str]]:
    """A group, and the options of a broker's log in whose lines and name are control characters, ANSI and markup."""
    text, told = written(histories)
    folder = tmp_path_factory.mktemp("brokers") / "<b>\x1b[2J"
    folder.mkdir()
    for words in ("the consumer is being closed", "the online downgrade is disabled", "Adding new member x"):
        text = text.replace(words, HOSTILE)
    (folder / "server.log").write_text(text, newline="")
    group = next(each.group_id for each in told if each.how == "member_left")
    return group, ["--log", str(ROOT / "data" / "samples" / "logs"), "--broker-log", str(folder)]


@pytest.mark.parametrize("command", ["rebalances", "explain", "history", "findings", "commits"])
@pytest.mark.parametrize("more", [[], ["--json"]], ids=["text", "json"])
def test_hostile_words_stay_text_in_the_terminal(hostile: tuple[str, list[str]], command: str, more: list[str]) -> None:
    group, given = hostile
    of_group = ["--group", group] if command in ("rebalances", "findings") else [group]
    shown = run_command(command, *of_group, *given, *more)
    assert shown.exit_code == 0, shown.stderr
    assert not {"\x1b", "\u202e", "\x9b", "\x00", "\x07", "\r"} & set(shown.stdout + shown.stderr)
    if command in ("rebalances", "history") and more:
        assert "alert(1)" in shown.stdout


@pytest.mark.long
def test_hostile_words_stay_text_in_report_and_metrics(hostile: tuple[str, list[str]], tmp_path: Path) -> None:
    _, given = hostile
    page = tmp_path / "report.html"
    assert run_command("report", *given, "--out", page).exit_code == 0
    html = page.read_text()
    assert "alert(1)" in html
    assert not [
        each for each in ("<script>alert(1)", "<img src=x", "<b>\x1b", "\x1b", "\x00", "\u202e") if each in html
    ]
    metrics = text_of_command("metrics", *given)
    assert "alert" not in metrics
    families = {family.name: family for family in text_string_to_metric_families(metrics)}
    causes = {sample.labels["cause"] for sample in families["coordinator_audit_rebalance_causes"].samples}
    assert {"member_left", "member_expired", "member_timed_out"} <= causes
    assert "member_left_or_expired" not in causes
