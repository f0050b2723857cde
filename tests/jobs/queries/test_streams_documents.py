"""KIP-1071 through the pipeline: its worked examples as logs, with the document's own values.

The coordinator model writes each transcript; the log files are read, replayed, described, judged and explained.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from coordinator_core.audit.explain import explain, find_rebalance
from coordinator_core.audit.finding_rows import FindingKind
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.rows import Basis, Verdict
from coordinator_core.coordinator import describe_api
from coordinator_core.groups.describe import describe
from coordinator_core.history.causes import CauseKind
from coordinator_core.records import Fields
from coordinator_core.simulator.scenario import Scenario
from jobs.api import CoordinatorAudit
from jobs.installation import PREFIX
from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.from_tables.answers import StoredAnswers
from jobs.relations.moment import AsOf
from jobs.settings import load
from jobs.simulate.partition import simulate_here
from jobs.sources.files import find_logs
from jobs.tables.folder_reader import FolderReader
from tests.commands import text_of_command
from tests.core.audit.transcribed import TRANSCRIPTS, RecordedPlay, played
from tests.core.coordinator.transcript import GROUP
from tests.jobs.logs import batch, metadata_batches, write_segment
from tests.jobs.queries import same_answers
from tests.jobs.queries.same_answers import only_topics_missing

NAMES = sorted(path.stem for path in TRANSCRIPTS.glob("streams_*.txt"))
PROFILE = {"AUDIT__PROFILE": "kip-1071"}
ROLES = {"activeTasks": "active", "standbyTasks": "standby", "warmupTasks": "warm-up"}


class Written:
    """A transcript as it was played, and what the product says of its log files."""

    def __init__(self, play: RecordedPlay, folder: Path) -> None:
        self.play, self.folder = play, folder
        groups = groupby(play.log, key=lambda each: (each.batch, each.at.timestamp_ms))
        write_segment(folder / "__consumer_offsets-0", [batch(*records) for _, records in groups])
        write_segment(folder / "__cluster_metadata-0", metadata_batches(play.metadata))
        self.answers = LogAnswers(find_logs([folder]), only_topics_missing, lambda: load(environment=environment()))

    @property
    def history(self) -> GroupHistory:
        history = self.answers.history(GROUP)
        assert history is not None
        return history

    def described(self) -> dict[str, Any]:
        then = self.answers.at(AsOf())
        around = then.surroundings()
        (found,) = [describe(each.group, each.offsets, around, each.certainty) for each in then.groups()]
        return found

    def story(self, epoch: int) -> list[str]:
        return [sentence.text for sentence in explain(self.history, find_rebalance(self.history, epoch))]

    def command(self, *arguments: str) -> str:
        return text_of_command(*arguments, "--log", self.folder, env=environment() | {"COLUMNS": "300"})


def environment() -> dict[str, str]:
    return {f"{PREFIX}{name}": value for name, value in PROFILE.items()}


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Written]:
    """Play a transcript, up to the block whose comment begins so, and write its logs."""

    def write(name: str, until: str | None = None) -> Written:
        return Written(played(name, until), tmp_path)

    return write


def tasks(assignment: Fields | None) -> str:
    """Tasks as the document writes them."""
    given = assignment or {}
    roles = [
        (role, sorted(f"{each['subtopologyId']}_{number}" for each in given[field] for number in each["partitions"]))
        for field, role in ROLES.items()
        if given.get(field)
    ]
    return ", ".join(f"{role}={' '.join(names)}" for role, names in roles) or "nothing"


def members(group: dict[str, Any], field: str) -> dict[str, str]:
    return {each["memberId"]: tasks(each[field]) for each in group["describe_streams"]["members"]}


# --- every transcript ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_no_example_of_the_document_is_called_wrong(name: str, written: Callable[..., Written]) -> None:
    of = written(name)
    assert list(of.answers.violations(None, 0)) == []
    verdicts = list(of.answers.verdicts(None, 0))
    targets = [row for row in verdicts if row.group_type == "STREAMS"]
    written_targets = [each for each in of.play.log if each.type == 20 and each.value is not None]
    assert len(targets) == len(written_targets) > 0
    assert {row.verdict for row in verdicts} <= {Verdict.IDENTICAL, Verdict.UNKNOWN}
    assert all(row.missing for row in verdicts if row.verdict is Verdict.UNKNOWN)


@pytest.mark.parametrize("name", NAMES)
def test_each_epoch_has_a_cause(name: str, written: Callable[..., Written]) -> None:
    history = written(name).history
    kinds = {cause.kind for row in history.rebalances for cause in row.causes}
    assert "unknown" not in kinds


@pytest.mark.parametrize("name", NAMES)
def test_the_group_is_described_as_the_coordinator_describes_it(name: str, written: Callable[..., Written]) -> None:
    """Epochs, topology, processes and tasks of the log are those of StreamsGroupDescribe."""
    of = written(name)
    said = describe_api.DESCRIBE["StreamsGroupDescribe"](of.play.memory, GROUP, of.play.topics)
    if said["errorCode"]:
        assert "describe_streams" not in of.described()
        return
    group = of.described()["describe_streams"]
    assert (group["groupEpoch"], group["targetAssignmentEpoch"]) == (said["groupEpoch"], said["assignmentEpoch"])
    assert group["topologyEpoch"] == said["topology"]["epoch"]
    assert {each["memberId"]: each["processId"] for each in group["members"]} == {
        each["memberId"]: each["processId"] for each in said["members"]
    }
    for field in ("assignment", "targetAssignment"):
        assert members({"describe_streams": group}, field) == members({"describe_streams": said}, field)


# --- topology updates: the rolling bounce of A, B and C --------------------------------------------------------------


def test_a_rolling_bounce_to_a_new_topology(written: Callable[..., Written]) -> None:
    of = written("streams_topology_update", "B is shut down")
    group = of.described()
    sizes = {name: len(held.split()) for name, held in members(group, "assignment").items()}
    assert sizes == {"A": 3, "B": 3, "C": 3}
    epochs = {each["memberId"]: each["topologyEpoch"] for each in group["describe_streams"]["members"]}
    assert epochs == {"A": 0, "B": 0, "C": 1}
    assert group["describe_streams"]["topologyEpoch"] == 1
    assert "Cause: the topology changed (topology epoch 0 to 1)." in of.story(6)


def test_a_stale_member_keeps_its_tasks_and_gets_none(written: Callable[..., Written]) -> None:
    before = members(written("streams_topology_update", "B is shut down").described(), "assignment")
    after = members(written("streams_topology_update", "B comes back").described(), "assignment")
    assert before["A"] == after["A"]
    assert len(after["C"].split()) == 6
    assert "B" not in after


def test_the_verdict_on_targets_with_stale_members(written: Callable[..., Written]) -> None:
    verdicts = written("streams_topology_update").history.targets
    assert {row.verdict for row in verdicts} == {Verdict.IDENTICAL}
    assert [row.epoch for row in verdicts] == [2, 3, 4, 5, 6, 7, 8, 9, 10]


def test_tables_name_process_and_topology_epoch(written: Callable[..., Written]) -> None:
    of = written("streams_topology_update", "B is shut down")
    memberships = [row for row in of.history.memberships if row.left is None]
    assert {row.member_id: (row.process_id, row.topology_epoch) for row in memberships} == {
        "A": ("A", 0),
        "B": ("B", 0),
        "C": ("C", 1),
    }
    shown = of.command("describe", GROUP)
    assert "topology epoch" in shown
    assert "process" in shown


# --- online migration: generation 23, epochs 24 and 25 ---------------------------------------------------------------


def test_the_first_member_of_the_new_protocol(written: Callable[..., Written]) -> None:
    of = written("streams_migration", "A and B are told to join again")
    group = of.described()
    assert group["describe_streams"]["groupEpoch"] == 24
    assert members(group, "targetAssignment") == {
        "A": "active=0_0 0_2 0_3, standby=0_1 0_5",
        "B": "active=0_1 0_4 0_5, standby=0_2 0_3",
        "C": "standby=0_0 0_4, warm-up=0_2 0_5",
    }
    assert members(group, "assignment") == {
        "A": "active=0_0 0_2 0_4, standby=0_1 0_3 0_5",
        "B": "active=0_1 0_3 0_5, standby=0_0 0_2 0_4",
        "C": "standby=0_0 0_4, warm-up=0_2 0_5",
    }


def test_c_has_caught_up_with_its_warm_up_task(written: Callable[..., Written]) -> None:
    of = written("streams_migration", "A reports that it gave")
    group = of.described()
    assert group["describe_streams"]["groupEpoch"] == 25
    assert members(group, "targetAssignment") == {
        "A": "active=0_0 0_3, standby=0_1 0_5",
        "B": "active=0_1 0_4 0_5, standby=0_2 0_3",
        "C": "active=0_2, standby=0_0 0_4, warm-up=0_5",
    }
    epochs = {each["memberId"]: each["memberEpoch"] for each in group["describe_streams"]["members"]}
    assert epochs == {"A": 24, "B": 25, "C": 25}
    assert members(group, "assignment")["A"] == "active=0_0 0_3, standby=0_1 0_5"
    assert members(group, "assignment")["C"] == "standby=0_0 0_4, warm-up=0_5"


def test_the_migration_there_and_back_is_one_story(written: Callable[..., Written]) -> None:
    of = written("streams_migration")
    history = of.history
    assert [(row.group_type, row.epoch, row.ended_by) for row in history.epochs] == [
        ("CLASSIC", 23, "group upgraded"),
        ("STREAMS", 23, "next epoch"),
        ("STREAMS", 24, "next epoch"),
        ("STREAMS", 25, "group downgraded"),
        ("CLASSIC", 25, None),
    ]
    assert [(row.basis, row.epoch, row.verdict) for row in history.targets] == [
        (Basis.LEADER, 23, Verdict.UNKNOWN),
        (Basis.UPGRADE, 23, Verdict.IDENTICAL),
        (Basis.ASSIGNOR, 24, Verdict.UNKNOWN),
        (Basis.ASSIGNOR, 25, Verdict.UNKNOWN),
        (Basis.DOWNGRADE, 25, Verdict.IDENTICAL),
    ]
    assert of.described()["listing"]["type"] == "CLASSIC"


def test_the_migration_is_explained(written: Callable[..., Written]) -> None:
    story = written("streams_migration", "C leaves").story(25)
    assert "Cause: a warm-up task of the process of member C (C at 127.0.0.1) caught up (task 0_2)." in story
    assert "Member A (A at 127.0.0.1) gave up active 0_2." in story


# --- warm-up tasks, configurations, regular expressions, topics ------------------------------------------------------


def test_warm_up_tasks_until_they_are_active(written: Callable[..., Written]) -> None:
    of = written("streams_warmup")
    causes = [(row.to_epoch, [cause.kind for cause in row.causes]) for row in of.history.rebalances]
    assert causes[2:] == [(4, ["warmup_caught_up"]), (5, ["warmup_caught_up"])]
    roles = {(row.member_id, row.role, row.partition) for row in of.history.assignments if row.kind == "current"}
    assert {("B", "warmup", 1), ("B", "active", 1), ("B", "warmup", 3), ("B", "active", 3)} <= roles
    story = of.story(4)
    assert "The assignment was made by highly_available 0 ms after it opened." in story
    assert any("if these tasks have caught up: 0_1 on process B" in line for line in story)
    found = {row.kind for row in of.answers.findings(GROUP)}
    assert FindingKind.EMPTY_MEMBERS not in found
    assert FindingKind.IMBALANCE not in found


@pytest.mark.parametrize("restores", [50_000, 2_500])
def test_many_warm_up_tasks_are_no_storm_and_leave_nobody_without_work(tmp_path: Path, restores: int) -> None:
    """The document makes each one that caught up a rebalance; until then tasks stay where their state is."""
    streams = {"stateful": True, "restores": restores}
    group = {"type": "streams", "topics": ["t"], "members": 2, "streams": streams, "events": [{"at": "5m", "join": 2}]}
    scenario = {"cluster": {"partitions": 1, "profile": "kip-1071"}, "topics": {"t": {"partitions": 48}}}
    list(simulate_here(Scenario(lasts="20m", groups={"g": group}, **scenario), 0, tmp_path / "logs", "segments"))
    answers = LogAnswers(find_logs([tmp_path / "logs"]), only_topics_missing, lambda: load(environment=environment()))
    history = answers.history("g")
    assert history is not None
    warmed = [row for row in history.rebalances if {cause.kind for cause in row.causes} == {CauseKind.WARMUP_CAUGHT_UP}]
    assert (len(warmed) > load(environment={}).findings.storm_rebalances) is (restores == 50_000)
    assert [row.kind for row in answers.findings("g")] == []


def test_configurations_are_causes_and_inputs(written: Callable[..., Written]) -> None:
    of = written("streams_configs")
    details = [cause.detail for row in of.history.rebalances for cause in row.causes if cause.detail]
    assert details == [
        "num.standby.replicas 0 to 1",
        "num.standby.replicas 1 to 0, num.warmup.replicas 2 to 0",
        "assignor.name None to sticky, num.warmup.replicas 0 to 2",
    ]
    assert {row.verdict for row in of.history.targets} == {Verdict.IDENTICAL}


def test_a_regular_expression_takes_in_a_new_topic(written: Callable[..., Written]) -> None:
    of = written("streams_regex")
    causes = {row.to_epoch: [(cause.kind, cause.topics) for cause in row.causes] for row in of.history.rebalances}
    assert causes[3] == [("topic_created", ("orders-eu",)), ("topic_created", ("store",))]
    assert causes[4] == [("topic_created", ("orders-us",))]
    rows = of.command("owners", "orders-us")
    assert rows.count("billing") == 3
    of.command("whatif", GROUP, "--assignor", "sticky")


def test_the_status_of_a_group_that_is_not_ready(written: Callable[..., Written]) -> None:
    of = written("streams_topic_problems")
    assert of.described()["topology_check"]["status"] == "INCORRECTLY_PARTITIONED_TOPICS"
    assert FindingKind.NOT_READY in {row.kind for row in of.answers.findings(GROUP)}
    *_, last = sorted(of.history.rebalances, key=lambda row: row.at.offset)
    assert (last.outcome, last.time_to_converge_ms) == ("not ready", None)
    assert "converged at" in of.command("history", GROUP), "the epoch in which all topics fitted"
    ending = of.command("history", GROUP).rstrip().splitlines()[-1]
    assert f"not ready at {last.to_epoch}" in ending
    assert "INCORRECTLY_PARTITIONED_TOPICS" in ending
    assert "at the end of what is known" in ending


def test_a_log_of_the_document_shows_no_subtopologies_where_sources_are_missing(
    written: Callable[..., Written],
) -> None:
    """KIP-1071 has them null there; releases give what is recorded."""
    of = written("streams_topic_problems")
    assert of.described()["describe_streams"]["subtopologies"] is not None, "the log shows nothing of the document"
    (then,) = of.answers.at(AsOf()).groups()
    around = of.answers.at(AsOf()).surroundings()
    then.group.state.last_assignment_configs["num.warmup.replicas"] = "2"
    found = describe(then.group, then.offsets, around, then.certainty)["describe_streams"]
    assert (found["subtopologies"], found["topologyEpoch"]) == (None, 0)


def test_a_static_member_comes_back_without_an_epoch(written: Callable[..., Written]) -> None:
    of = written("streams_static", "It does not come back in time")
    assert [row.to_epoch for row in of.history.rebalances] == [2, 3]
    (back,) = [row for row in of.history.memberships if row.replaces is not None]
    assert (back.member_id, back.replaces, back.instance_id) == ("a2", "a1", "one")


# --- from tables -----------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("name", ["streams_migration", "streams_regex", "streams_topic_problems"])
def test_the_tables_answer_as_the_logs_do(
    name: str, written: Callable[..., Written], spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    of = written(name)
    audit = CoordinatorAudit(spark, str(tmp_path_factory.mktemp("tables")), "documents", of.answers.load_settings())
    audit.ingest(str(of.folder))
    audit.decode()
    audit.replay()
    audit.audit()
    reader = FolderReader(audit.tables.location)
    tables = StoredAnswers(reader, audit.cluster, of.answers.load_settings().audit, only_topics_missing)
    assert tables.history(GROUP) == replace(of.history, commits=[], transactions=[], sizes=[])
    assert list(tables.verdicts(GROUP, 0)) == list(of.answers.verdicts(GROUP, 0))
    assert tables.findings(GROUP) == of.answers.findings(GROUP)
    assert same_answers.descriptions(tables.at(AsOf())) == same_answers.descriptions(of.answers.at(AsOf()))
