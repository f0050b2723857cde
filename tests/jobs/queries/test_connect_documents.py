"""The documents of Connect on KIP-848 through the pipeline: their examples as logs, with the documents' own values.

The coordinator model writes each transcript; the log files are read, replayed, described, judged and explained.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from coordinator_core.audit.explain import explain, find_rebalance
from coordinator_core.audit.finding_rows import FindingKind
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.folds.two_logs import by_log, log_topic
from coordinator_core.audit.rows import Basis, Verdict
from coordinator_core.groups.describe import Surroundings, describe
from coordinator_core.groups.owners import owners
from coordinator_core.groups.proven_state import GroupThen
from coordinator_core.history.grounds import CONVERTED_ELSEWHERE, MAY_BE_CONVERTED, MAY_HAVE_MOVED
from coordinator_core.records import CONNECT_LOG, CoordinatorRecord, Family
from coordinator_core.wire.batch_writer import NewRecord, encode_batch
from coordinator_core.wire.record_codec import encode_key, encode_value
from jobs.api import CoordinatorAudit
from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.from_tables.answers import StoredAnswers
from jobs.queries.interface import RebalanceFilter
from jobs.relations.moment import AsOf
from jobs.report.build import ReportHeader, build
from jobs.report.stored import stored_report
from jobs.settings import load
from jobs.sources.files import GROUP_TOPICS, find_logs
from jobs.tables.folder_reader import FolderReader
from tests.commands import run_command
from tests.core.audit.histories import all_shown
from tests.core.coordinator.transcript_connect import GROUP, ConnectPlay
from tests.jobs.logs import write_segment
from tests.jobs.queries.same_answers import only_logs_of_others_missing
from tests.jobs.relations.tables_of_logs import CLUSTER, append
from tests.shared_data import ROOT

TRANSCRIPTS = ROOT / "tests" / "data" / "transcripts"
NAMES = sorted(path.stem for path in TRANSCRIPTS.glob("connect_*.txt"))
STATES = {"EMPTY": "Empty", "ASSIGNING": "Assigning", "RECONCILING": "Reconciling", "STABLE": "Stable"}


class Pipeline:
    """A transcript as it is played, and what the product says of its logs so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.play = ConnectPlay()

    def answers(self) -> LogAnswers:
        play = self.play
        logs = (("__worker_offsets", Family.CONNECT, play.log), ("__consumer_offsets", Family.GROUP, play.brokers.log))
        for topic, family, log in logs:
            if log:
                write_segment(self.folder / f"{topic}-0", self._batches(log, family))
        return LogAnswers(find_logs([self.folder]), only_logs_of_others_missing, lambda: load(environment={}))

    def _batches(self, log: list[CoordinatorRecord], family: Family) -> Iterator[bytes]:
        for _, together in groupby(log, key=lambda each: (each.batch, each.at.timestamp_ms)):
            records = list(together)
            new = [_new(each, family) for each in records]
            yield encode_batch(new, leader_epoch=self.play.leader_epoch(records[0].at.offset))

    def history(self) -> GroupHistory:
        history = self.answers().history(GROUP)
        assert history is not None
        return history

    def described(self) -> dict[str, Any]:
        then = self.answers().at(AsOf())
        around = then.surroundings()
        (found,) = descriptions(then.groups(), around)
        return found["describe_connect"]

    def story(self, epoch: int) -> list[str]:
        history = self.history()
        return [sentence.text for sentence in explain(history, find_rebalance(history, epoch))]


def descriptions(groups: Iterable[GroupThen], around: Surroundings) -> list[dict[str, Any]]:
    return [
        describe(each.group, each.offsets, around, each.certainty) for each in groups if each.group.group_id == GROUP
    ]


def _new(record: CoordinatorRecord, family: Family) -> NewRecord:
    version = record.value_version or 0
    value = None if record.value is None else encode_value(record.type, version, record.value, family)
    return NewRecord(record.at.offset, record.at.timestamp_ms, encode_key(record.type, record.key, family), value)


def store(location: Path, history: GroupHistory, logs_of_groups: Iterable[str]) -> None:
    """Write the tables that a night would write of this history, when it was given these logs."""
    for table, rows in (
        ("group_epochs", history.epochs),
        ("rebalances", history.rebalances),
        ("memberships", history.memberships),
        ("assignments", history.assignments),
        ("target_audits", history.targets),
        ("violations", history.violations),
        ("share_initializations", ()),
        ("share_partitions", ()),
    ):
        append(location, table, [{**row._asdict(), "cluster": CLUSTER} for row in rows])
    for table in ("topic_history", "end_offsets", "log_records", "offset_commits", "group_records"):
        append(location, table, [])
    logs = [{"cluster": CLUSTER, "log_topic": topic, "log_partition": 0} for topic in logs_of_groups]
    append(location, "group_states", [{**log, "group_id": GROUP} for log in logs])
    append(location, "runs", [{**log, "run_id": "run", "job": "ingest", "records": 100} for log in logs])
    ends = {"run_id": "run", "first_offset": 0, "last_offset": 99, "records": 100, "last_ms": history.now_ms}
    append(location, "log_ranges", [{**log, **ends} for log in logs])


@pytest.fixture
def played(tmp_path: Path) -> Callable[..., Pipeline]:
    """Play a transcript, up to the block whose comment begins so."""

    def play(name: str, until: str | None = None) -> Pipeline:
        pipeline = Pipeline(tmp_path)
        for block in (TRANSCRIPTS / f"{name}.txt").read_text().split("\n\n"):
            if until is not None and block.startswith(f"# {until}"):
                return pipeline
            for line in block.split("----")[0].splitlines():
                if line and not line.startswith("#"):
                    list(pipeline.play.command(line))
        assert until is None
        return pipeline

    return play


# --- every transcript ------------------------------------------------------------------------------------------------


def as_in_the_document(group: dict[str, Any], name_of: Callable[[str], str]) -> list[str]:
    """The group as the case studies write it: epochs, then each worker with what it runs and what it is to run."""
    epochs = f"group epoch {group['groupEpoch'] or 0}, target of epoch {group['targetAssignmentEpoch'] or 0}"
    lines = [f"{STATES[group['groupState']]}: {epochs}"]
    if group["unassigned"] and any(group["unassigned"].values()):
        lines.append(f"unassigned: {units(group['unassigned'])}")
    for member in group["members"]:
        wanted = units(member["targetAssignment"] or {"connectors": [], "tasks": []})
        runs = units(member["assignment"] or {"connectors": [], "tasks": []})
        lines.append(f"{name_of(member['memberId'])}: epoch {member['memberEpoch'] or 0}, runs {runs} of {wanted}")
    return lines


def units(work: dict[str, list[str]]) -> str:
    connectors = [f"{name}C0" for name in work["connectors"]]
    return " ".join(sorted([*connectors, *(name.replace("-", "T") for name in work["tasks"])])) or "nothing"


@pytest.mark.parametrize("name", NAMES)
def test_each_state_of_the_document_is_described_from_the_log(name: str, tmp_path: Path) -> None:
    pipeline, states = Pipeline(tmp_path), 0
    for block in (TRANSCRIPTS / f"{name}.txt").read_text().split("\n\n"):
        for line in block.split("----")[0].splitlines():
            if line and not line.startswith("#"):
                said = list(pipeline.play.command(line))
                if line == "describe" and pipeline.play.memory.group(GROUP) is not None:
                    found = as_in_the_document(pipeline.described(), pipeline.play._named)
                    assert found[0] == said[0]
                    assert sorted(found) == sorted(said), "the document has workers in the order in which they joined"
                    states += 1
    assert states or name == "connect_worker_selection"


@pytest.mark.parametrize("name", NAMES)
def test_no_example_of_the_document_breaks_a_rule(name: str, played: Callable[..., Pipeline]) -> None:
    answers = played(name).answers()
    assert list(answers.violations(None, 0)) == []
    verdicts = list(answers.verdicts(None, 0))
    targets = {row.at for row in verdicts if row.group_type == "CONNECT"}
    assert len(targets) == sum(1 for each in played(name).play.log if each.type == 6 and each.value is not None)
    assert Verdict.INVALID not in {row.verdict for row in verdicts}


# --- the case studies ------------------------------------------------------------------------------------------------


def test_workers_join(played: Callable[..., Pipeline]) -> None:
    pipeline = played("connect_workers_join")
    history, answers = pipeline.history(), pipeline.answers()
    assert [(row.epoch, row.state, row.assignor) for row in history.epochs] == [
        (0, "EMPTY", None),
        (1, "STABLE", "sessioned"),
        (2, "STABLE", "sessioned"),
    ]
    assert [(row.epoch, row.verdict) for row in history.targets] == [(1, Verdict.IDENTICAL), (2, Verdict.EQUIVALENT)]
    groups = [each.group for each in answers.at(AsOf()).groups()]
    assert [(row.member_id, row.partition) for row in owners(groups, None, "B")] == [("W2", None), ("W2", 1)]
    story = pipeline.story(2)
    assert "Cause: member W2 (W2 at 127.0.0.1) joined." in story
    assert any(
        line.startswith("Member W1 (W1 at 127.0.0.1) was asked to give up 2 connectors and tasks") for line in story
    )
    assert any(line.startswith("2 connectors and tasks moved from one member to another") for line in story)
    assert "Member W2 (W2 at 127.0.0.1) got connector B; task B-1." in story


def test_w2_waits_for_what_w1_runs(played: Callable[..., Pipeline]) -> None:
    """Between "W2 can be transitioned to epoch 1" and W1's acknowledgement nobody else runs B."""
    pipeline = played("connect_workers_join", "W2 cannot have B before")
    groups = [each.group for each in pipeline.answers().at(AsOf()).groups()]
    assert [(row.member_id, row.role) for row in owners(groups, None, "B")] == [
        ("W1", "revoking connector"),
        ("W1", "revoking task"),
    ]


def test_a_worker_leaves(played: Callable[..., Pipeline]) -> None:
    waiting = played("connect_worker_leaves", "The delay is over")
    (row,) = [row for row in waiting.answers().findings(GROUP) if row.kind == FindingKind.UNASSIGNED_WORK]
    assert (row.value, row.level) == (2, "notice")
    assert row.detail.endswith(": 2 connectors and tasks; a worker that left has 5 min to return")
    assert "2 connectors and tasks are in no worker's target." in waiting.story(36)
    delay = "stay unassigned for 5 min, in case it returns (scheduled.rebalance.max.delay.ms)"
    assert f"Connectors and tasks of a worker that left {delay}." in waiting.story(36)
    over = played("connect_worker_leaves")
    assert FindingKind.UNASSIGNED_WORK not in {row.kind for row in over.answers().findings(GROUP)}
    history = over.history()
    assert [(row.epoch, row.unassigned) for row in history.epochs] == [(35, 0), (36, 2), (37, 0)]
    assert [cause.kind for cause in history.rebalances[-1].causes] == ["delay_elapsed"]
    assert "Cause: the group's rebalance delay elapsed (work waited 5 min for a worker)." in over.story(37)
    assert "Member W1 (W1 at 127.0.0.1) got connector B." in over.story(37)
    # Who computed epoch 37 is not in the log, nor what it remembered from before epoch 35, with which the log begins.
    assert [row.verdict for row in history.targets] == [Verdict.UNKNOWN, Verdict.IDENTICAL, Verdict.UNKNOWN]


def test_a_worker_bounces(played: Callable[..., Pipeline]) -> None:
    pipeline = played("connect_worker_bounces")
    history = pipeline.history()
    assert [(row.epoch, row.verdict) for row in history.targets[1:]] == [
        (36, Verdict.IDENTICAL),
        (37, Verdict.IDENTICAL),
    ]
    assert "Cause: member W2 (W2 at 127.0.0.1) joined." in pipeline.story(37)
    assert "Member W2 (W2 at 127.0.0.1) got connector B; task B-1." in pipeline.story(37)
    assert history.rebalances[-1].units_moved_back == 0
    assert history.rebalances[-1].units_lost == 0


def test_an_assignor_fails(played: Callable[..., Pipeline]) -> None:
    pipeline = played("connect_assignment_rules")
    (row,) = [row for row in pipeline.answers().findings(GROUP) if row.kind == FindingKind.ASSIGNOR_FAILED]
    assert row.detail == "epochs 2 (error 1)"
    (kept,) = [row for row in pipeline.history().targets if row.basis == Basis.KEPT]
    assert (kept.epoch, kept.verdict) == (2, Verdict.IDENTICAL)
    assert "The assignor reported error 1: the workers keep what they run." in pipeline.story(2)
    told = run_command("history", GROUP, "--log", pipeline.folder).stdout
    assert "assignor failed" in told
    assert "error 1 at epoch 2" in told


def test_a_target_of_work_that_was_removed_meanwhile_is_right(played: Callable[..., Pipeline]) -> None:
    """The document: the validation is made with regard to what the assignment was computed from."""
    history = played("connect_assignment_rules").history()
    assert [(row.epoch, row.verdict) for row in history.targets if row.epoch >= 3] == [
        (3, Verdict.IDENTICAL),
        (4, Verdict.IDENTICAL),
    ]


def test_the_worker_that_covers_all_versions_is_described(played: Callable[..., Pipeline]) -> None:
    group = played("connect_worker_selection").described()
    ranges = {
        each["memberId"]: (each["assignors"][0]["minimumVersion"], each["assignors"][0]["maximumVersion"])
        for each in group["members"]
    }
    assert {name: ranges[name] for name in "ABC"} == {"A": (1, 5), "B": (3, 4), "C": (2, 4)}


def test_a_static_worker_leaves_for_a_while(played: Callable[..., Pipeline]) -> None:
    away = played("connect_static", "The instance id is in use")
    assert [(row.member_id, row.instance_id, row.away_since, row.left) for row in away.history().memberships] == [
        ("W1", "one", None, None),
        ("W2", "two", None, None),
    ]
    history = played("connect_static").history()
    gone = {row.member_id: row for row in history.memberships}
    assert gone["W3"].away_since is not None
    assert gone["W3"].left is not None
    assert [(row.epoch, row.members) for row in history.epochs][-2:] == [(3, ("W1", "W3")), (4, ("W1",))]
    found = {row.kind for row in played("connect_static").answers().findings(GROUP)}
    assert {FindingKind.STATIC_MEMBER_EXPIRED, FindingKind.UNASSIGNED_WORK} <= found


# --- migration -------------------------------------------------------------------------------------------------------


def test_a_group_in_two_logs_has_one_story(played: Callable[..., Pipeline]) -> None:
    """Group epochs start at the generation; what one log ends the other continues."""
    history = played("connect_migration").history()
    parts = by_log(history)
    assert [log_topic(part) for part in parts] == ["__consumer_offsets", "__worker_offsets"]
    classic, connect = parts
    assert [(row.epoch, row.ended_by) for row in classic.epochs if row.members] == [
        (1, "next epoch"),
        (2, "group upgraded"),
        (4, "next epoch"),
        (5, None),
    ]
    assert [(row.epoch, row.ended_by) for row in connect.epochs] == [
        (0, "next epoch"),
        (2, "next epoch"),
        (3, "next epoch"),
        (4, "next epoch"),
        (5, "group downgraded"),
    ]
    skipped = [row.epoch for row in history.epochs if row.missing == CONVERTED_ELSEWHERE]
    assert skipped == [2]
    assert {row.missing for row in (*connect.epochs, *connect.rebalances)} == {None}, "the other log shows the rest"
    causes = {row.to_epoch: [(each.kind, each.source) for each in row.causes] for row in connect.rebalances}
    assert causes[2] == [("group_upgraded", "__consumer_offsets")]
    numbers = [[(row.from_epoch, row.to_epoch) for row in part.rebalances] for part in parts]
    assert numbers == [[(0, 1), (1, 2), (5, 4), (4, 5)], [(2, 2), (2, 3), (3, 4), (4, 5)]]
    assert causes[3] == [("member_joined", "group log")]
    back = {row.to_epoch: [(each.kind, each.source) for each in row.causes] for row in classic.rebalances}
    assert back[4] == back[5] == [("group_downgraded", "__worker_offsets")]
    assert back[2] == [("member_joined", "group log")]
    assert {row.went_by for row in classic.memberships if row.left is not None} == {"upgrade"}


def test_explain_and_history_name_the_log(played: Callable[..., Pipeline]) -> None:
    pipeline = played("connect_migration")
    pipeline.answers()
    logs = ["--log", str(pipeline.folder)]
    told = run_command("explain", f"{GROUP}@2", *logs).stdout
    several, first = told.splitlines()[:2]
    assert several.startswith("The group has 2 rebalances to 2: this is the last one; ask for another one by its ")
    assert first.startswith(
        "The connect group connect rebalanced from generation 2 to epoch 2. It had 2 members before"
    )
    assert (
        "Cause: the group moved to the new protocol (generation 2 became group epoch 2).  [__consumer_offsets 0:3"
        in told
    )
    assert "The recomputed assignment is identical to the recorded one.  [__worker_offsets 0:5" in told
    last = run_command("explain", GROUP, *logs).stdout
    assert last.startswith("The classic group connect rebalanced from generation 4 to generation 5.")
    lines = run_command("history", GROUP, *logs).stdout
    assert "__consumer_offsets 0:3" in lines
    assert "__worker_offsets 0:35" in lines
    assert "group upgraded" in lines
    assert "group downgraded" in lines


def test_the_api_explains_as_the_command_does(
    played: Callable[..., Pipeline], spark: SparkSession, tmp_path: Path
) -> None:
    """From tables that hold the same history: a group in two logs is explained by the log of the rebalance."""
    pipeline = played("connect_migration")
    history = pipeline.history()
    store(tmp_path, history, GROUP_TOPICS)
    api = CoordinatorAudit(spark, str(tmp_path), CLUSTER)
    for epoch in (None, 2, 5):
        asked = GROUP if epoch is None else f"{GROUP}@{epoch}"
        told = run_command("explain", asked, "--json", "--log", pipeline.folder).stdout
        lines = [json.loads(line) for line in told.splitlines()]
        sentences = api.explain(GROUP, epoch)
        assert [(each.text, each.source) for each in sentences] == [(line["text"], line["source"]) for line in lines]
        assert "__consumer_offsets" in {each.source for each in sentences} or epoch == 5


def test_rebalances_name_conversions(played: Callable[..., Pipeline]) -> None:
    answers = played("connect_migration").answers()
    (upgraded,) = answers.rebalances(RebalanceFilter(cause="group_upgraded"))
    assert (upgraded.group_type, upgraded.to_epoch) == ("CONNECT", 2)
    outcomes = [row.outcome for row in answers.rebalances(RebalanceFilter())]
    assert "group downgraded" in outcomes
    assert "group deleted" not in outcomes


def test_a_log_that_ends_workers_does_not_prove_from_tables_that_the_group_was_deleted(
    played: Callable[..., Pipeline], tmp_path: Path
) -> None:
    """The log of classic groups was not given, so a conversion and a deletion look the same."""
    history = played("connect_migration").history()
    names = ("epochs", "rebalances", "memberships", "assignments", "targets")
    connect = {name: [row for row in getattr(history, name) if row.group_type == "CONNECT"] for name in names}
    alone = replace(history, violations=(), events=(), **connect)
    store(tmp_path, alone, [CONNECT_LOG])
    answers = StoredAnswers(FolderReader(str(tmp_path)), CLUSTER, load(environment={}).audit)
    *_, last = answers.rebalances(RebalanceFilter())
    assert (last.outcome, last.history_complete, last.missing) == ("unknown", False, MAY_BE_CONVERTED)


def test_a_conversion_is_judged_by_what_the_workers_ran(played: Callable[..., Pipeline]) -> None:
    (row,) = [row for row in played("connect_migration").history().targets if row.basis == Basis.UPGRADE]
    assert (row.epoch, row.verdict, row.members) == (2, Verdict.IDENTICAL, 2)


def test_a_classic_log_that_ends_before_the_move_claims_nothing_of_the_group(played: Callable[..., Pipeline]) -> None:
    """``__worker_offsets`` shows a later epoch of the workers: they are in one log only."""
    pipeline = played("connect_migration", until="Another worker of the old protocol")
    written = pipeline.play.brokers.log
    del written[next(number for number, record in enumerate(written) if record.value is None) :]
    history = pipeline.history()
    told = run_command("groups", "--json", "--log", pipeline.folder)
    lines = [json.loads(line) for line in told.stdout.splitlines()]
    assert [(line["type"], line["state"], line["certainty"]) for line in lines] == [
        ("CONNECT", "STABLE", "certain"),
        (None, None, "possibly there"),
    ]
    assert told.stderr.count(f"group '{GROUP}' is in __consumer_offsets and in __worker_offsets") == 1
    described = run_command("describe", GROUP, "--json", "--log", pipeline.folder)
    assert json.loads(described.stdout)["certainty"] == "certain"
    classic, connect = by_log(history)
    assert [(row.epoch, row.missing) for row in classic.epochs if row.is_open] == [(2, MAY_HAVE_MOVED)]
    assert {row.missing for row in connect.epochs if row.is_open} == {None}


def test_the_report_has_one_story_of_a_group_in_two_logs(played: Callable[..., Pipeline], tmp_path: Path) -> None:
    pipeline = played("connect_migration")
    pipeline.answers()
    page = tmp_path / "report.html"
    assert run_command("report", "--log", pipeline.folder, "--out", page).exit_code == 0
    (group,) = json.loads(page.with_suffix(".json").read_text())["groups"]
    assert (group["line"]["group_type"], group["line"]["epoch"]) == ("CLASSIC", 5)
    told = [(row["group_type"], row["to_epoch"], row["log_topic"]) for row in group["rebalances"]]
    classic, connect = "__consumer_offsets", "__worker_offsets"
    assert told == [
        ("CLASSIC", 1, classic),
        ("CLASSIC", 2, classic),
        *(("CONNECT", epoch, connect) for epoch in (2, 3, 4, 5)),
        ("CLASSIC", 4, classic),
        ("CLASSIC", 5, classic),
    ]
    assert "group downgraded" in {row["outcome"] for row in group["rebalances"]}
    sources = {sentence["source"] for row in group["rebalances"] for sentence in row["story"]}
    assert sources == {classic, connect}
    held = {row["member_id"]: [spell["held"] for spell in row["spells"]] for row in group["members"]}
    assert all(held.values())


# --- from tables -----------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("name", ["connect_migration", "connect_worker_leaves"])
def test_the_tables_answer_as_the_logs_do(
    name: str, played: Callable[..., Pipeline], spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pipeline = played(name)
    logs = pipeline.answers()
    audit = CoordinatorAudit(spark, str(tmp_path_factory.mktemp("tables")), "documents")
    audit.ingest(str(pipeline.folder))
    audit.decode()
    audit.replay()
    audit.audit()
    tables = StoredAnswers(
        FolderReader(audit.tables.location), audit.cluster, audit.settings.audit, only_logs_of_others_missing
    )
    expected = logs.history(GROUP)
    assert expected is not None
    assert tables.history(GROUP) == replace(expected, commits=[], transactions=[], sizes=[])
    assert list(tables.verdicts(GROUP, 0)) == list(logs.verdicts(GROUP, 0))
    assert [row.at for row in tables.rounds(GROUP)] == [row.at for row in logs.rounds(GROUP)] != []
    assert tables.findings(GROUP) == logs.findings(GROUP)
    assert tables.rebalances(RebalanceFilter()) == logs.rebalances(RebalanceFilter())
    source = ReportHeader(audit.cluster, "", 0, (), False, [])
    (from_logs,) = build([expected], audit.settings.findings, source, all_shown).groups
    settings = load(environment={}, flags={"cluster": audit.cluster})
    (from_tables,) = stored_report(FolderReader(audit.tables.location), settings).groups
    assert from_tables == from_logs._replace(offsets=(), offsets_seen=0)
    then, read = tables.at(AsOf(), GROUP), logs.at(AsOf())
    assert descriptions(then.groups(), then.surroundings()) == descriptions(read.groups(), read.surroundings())
