"""The worked examples of the protocol documents, computed: ``tests/data/transcripts/worked-examples.md``.

Each example is a transcript of the coordinator model, written as log files and read back. What the product computes by
itself is asserted with the numbers of the document; where a transcript is given the document's target, the verdict of
the audit says so. ``pytest ... --rewrite`` writes the blocks of the page again.
"""

import re
from collections.abc import Iterator
from dataclasses import fields
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from coordinator_core.audit.rows import TargetAuditRow, Verdict
from coordinator_core.coordinator.config import BrokerConfig
from coordinator_core.coordinator.streams.heartbeat import Status
from tests.core.audit.transcribed import played
from tests.core.coordinator.transcript import GROUP
from tests.jobs.queries.test_connect_documents import TRANSCRIPTS, Pipeline, as_in_the_document
from tests.jobs.queries.test_streams_documents import Written, members
from tests.shared_data import ROOT

Places = Iterator[Path]
PAGE = ROOT / "tests" / "data" / "transcripts" / "worked-examples.md"
BLOCK = re.compile(r"<!-- (?P<name>[a-z-]+) -->\n(?P<text>.*?)<!-- end -->\n", re.DOTALL)

BOUNCE: tuple[tuple[str, str, dict[str, int]], ...] = (
    ("three clients, topology #0", "C is shut down", {"A": 3, "B": 3, "C": 3}),
    ("C is shut down", "C comes back", {"A": 4, "B": 5}),
    ("C comes back with #1", "B is shut down", {"A": 3, "B": 3, "C": 3}),
    ("B is shut down", "B comes back", {"A": 3, "C": 6}),
    ("B comes back with #1", "At last A", {"A": 3, "B": 3, "C": 3}),
)
"""KIP-1071, "Topology updates", example: step, where the transcript goes on, and the document's number of tasks."""

DEFAULTS: dict[str, Any] = {
    "group.streams.session.timeout.ms": 45_000,
    "group.streams.min.session.timeout.ms": 45_000,
    "group.streams.max.session.timeout.ms": 60_000,
    "group.streams.heartbeat.interval.ms": 5_000,
    "group.streams.min.heartbeat.interval.ms": 5_000,
    "group.streams.max.heartbeat.interval.ms": 15_000,
    "group.streams.max.size": 2**31 - 1,
    "group.streams.acceptable.recovery.lag": 10_000,
    "group.streams.num.warmup.replicas": 2,
    "group.streams.max.warmup.replicas": 20,
    "group.streams.num.standby.replicas": 0,
    "group.streams.max.standby.replicas": 2,
    "group.streams.task.offset.interval.ms": 60_000,
    "group.streams.min.task.offset.interval.ms": 15_000,
    "group.streams.assignor.name": None,
}
"""KIP-1071, "Broker Configurations", new properties, with the document's defaults."""

STATUSES = {
    0: "STALE_TOPOLOGY",
    1: "MISSING_SOURCE_TOPICS",
    2: "INCORRECTLY_PARTITIONED_TOPICS",
    3: "MISSING_INTERNAL_TOPICS",
    4: "SHUTDOWN_APPLICATION",
}
"""KIP-1071, StreamsGroupHeartbeatResponse, status codes."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Places:
    """Empty folders, one after the other."""
    return (tmp_path_factory.mktemp("example") for _ in count())


def table(head: str, rows: Iterator[tuple[object, ...]]) -> str:
    lines = [f"| {head} |", "|" + " --- |" * (head.count("|") + 1)]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


# --- KIP-1071 --------------------------------------------------------------------------------------------------------


def bounce(place: Places) -> str:
    rows = []
    for step, until, document in BOUNCE:
        of = Written(played("streams_topology_update", until), next(place))
        group = of.described()
        epochs = {each["memberId"]: each["topologyEpoch"] for each in group["describe_streams"]["members"]}
        held = members(group, "assignment")
        said = "; ".join(f"{name}: {count}" for name, count in document.items())
        found = "; ".join(f"{name}(#{epochs[name]}): {held[name].removeprefix('active=')}" for name in sorted(held))
        rows.append((step, said, found, group["describe_streams"]["groupEpoch"]))
        assert sorted(len(each.split()) for each in held.values()) == sorted(document.values()), step
    verdicts = Written(played("streams_topology_update", None), next(place)).history.targets
    assert {(row.verdict, row.assignor) for row in verdicts} == {(Verdict.IDENTICAL, "sticky")}
    return table("step | the document: tasks | here: tasks | group epoch", iter(rows))


def test_a_member_with_the_older_topology_keeps_some_and_gets_none(place: Places) -> None:
    def held(until: str) -> dict[str, set[str]]:
        of = Written(played("streams_topology_update", until), next(place))
        return {name: set(tasks.split()) for name, tasks in members(of.described(), "assignment").items()}

    before, after = held("C comes back"), held("B is shut down")
    assert after["A"] < before["A"]
    assert after["B"] < before["B"]
    assert held("B comes back")["A"] == held("At last A")["A"] == after["A"]


def verdict(rows: list[TargetAuditRow], epoch: int, basis: str | None = None) -> str:
    (row,) = [each for each in rows if each.epoch == epoch and basis in (None, each.basis)]
    by = f" by `{row.assignor}`" if row.verdict != Verdict.UNKNOWN and row.assignor else ""
    missing = f": {row.missing}" if row.missing else ""
    return f"{row.verdict}{by}{missing}"


def generation_23(place: Places) -> str:
    steps = ((24, "A and B are told to join again", "C joins"), (25, "C leaves", "C has caught up with 0_2"))
    rows = []
    for epoch, until, step in steps:
        of = Written(played("streams_migration", until), next(place))
        group = of.described()
        assert group["describe_streams"]["groupEpoch"] == epoch
        wanted = "; ".join(f"{name}: {held}" for name, held in sorted(members(group, "targetAssignment").items()))
        rows.append((step, epoch, wanted, verdict(list(of.history.targets), epoch)))
        generations = {row.from_epoch for row in of.history.rebalances if row.to_epoch == 24}
        assert generations == {23}, "the generation becomes the group epoch"
    assert rows[0][2] == (
        "A: active=0_0 0_2 0_3, standby=0_1 0_5; B: active=0_1 0_4 0_5, standby=0_2 0_3; "
        "C: standby=0_0 0_4, warm-up=0_2 0_5"
    )
    assert all(row[3].startswith("unknown: task offsets") for row in rows)
    return table("step | group epoch | target, given by the document | verdict", iter(rows))


def test_the_defaults_of_brokers_are_those_of_the_document() -> None:
    here = {f"{each.name.replace('_', '.')}": each.default for each in fields(BrokerConfig)}
    assert {name: here[name] for name in DEFAULTS} == DEFAULTS


def test_the_status_codes_are_those_of_the_document() -> None:
    here = {int(each): each.name for each in Status}
    assert {number: here[number] for number in STATUSES} == STATUSES
    text = "".join(path.read_text(encoding="utf-8") for path in TRANSCRIPTS.glob("streams_*.txt"))
    shown = [name for name in STATUSES.values() if name in text]
    assert shown == list(STATUSES.values())[:4], "of a shutdown the simulator has an application"


def test_what_the_tools_of_the_document_list_is_listed(place: Places) -> None:
    of = Written(played("streams_topology_update", "B is shut down"), next(place))
    shown = of.command("groups", "--type", "streams") + of.command("describe", GROUP)
    assert all(part in shown for part in ("topology epoch", "STABLE", "STREAMS"))


# --- Connect on KIP-848 ----------------------------------------------------------------------------------------------


def case_study(name: str, place: Places) -> tuple[list[tuple[str, str]], Pipeline]:
    """Play a case study; return each of its states with the sentence before it, as the log describes it."""
    pipeline, states = Pipeline(next(place)), []
    for block in (TRANSCRIPTS / f"{name}.txt").read_text(encoding="utf-8").split("\n\n"):
        lines = block.split("----")[0].splitlines()
        title = " ".join(line.removeprefix("# ") for line in lines if line.startswith("#"))
        for line in lines:
            if line and not line.startswith("#"):
                list(pipeline.play.command(line))
                if line == "describe":
                    said = as_in_the_document(pipeline.described(), pipeline.play._named)
                    states.append((title, "<br>".join(said)))
    return states, pipeline


def connect(place: Places) -> str:
    parts, shown = [], set[tuple[str, str]]()
    for name, states_of_document, expected in (
        ("connect_workers_join", 8, {1: Verdict.IDENTICAL, 2: Verdict.EQUIVALENT}),
        ("connect_worker_leaves", 7, {36: Verdict.IDENTICAL, 37: Verdict.UNKNOWN}),
        ("connect_worker_bounces", 6, {36: Verdict.IDENTICAL, 37: Verdict.IDENTICAL}),
    ):
        states, pipeline = case_study(name, place)
        assert len(states) == states_of_document
        found = list(pipeline.history().targets)
        assert {epoch: next(row.verdict for row in found if row.epoch == epoch) for epoch in expected} == expected
        rows = [(at_target(state), verdicts_of(state, found)) for _, state in states]
        new = [row for row in rows if row not in shown]
        begins = "" if new == rows else f", after the first {len(rows) - len(new)} states above"
        assert rows[len(rows) - len(new) :] == new
        shown |= {*rows}
        parts.append(f"`{name}`{begins}:\n\n{table('state, from the log | verdict on its target', iter(new))}")
    return "\n\n".join(parts)


def at_target(state: str) -> str:
    """Say once what a worker runs that has its target."""
    return re.sub(r"runs (.*?) of \1(?=<br>|$)", r"runs \1", state)


def verdicts_of(state: str, found: list[TargetAuditRow]) -> str:
    epoch = int(re.findall(r"target of epoch (\d+)", state)[0])
    return verdict(found, epoch) if any(row.epoch == epoch for row in found) else "no target"


def selection(place: Places) -> str:
    pipeline = Pipeline(next(place))
    text = (TRANSCRIPTS / "connect_worker_selection.txt").read_text(encoding="utf-8")
    answers = []
    for block in text.split("\n\n"):
        for line in block.split("----")[0].splitlines():
            if line and not line.startswith("#"):
                said = [each for each in pipeline.play.command(line) if "<-" in each]
                answers += [(f"`{line}`", each) for each in said if "COMPUTE" in each or "FATAL" in each]
    assert [who.split(" <-")[0] for _, who in answers] == ["A", "A", "E"]
    assert "FATAL: no worker supports all versions in use, 1 to 6" in answers[-1][1]
    return table("request | answer", iter(answers))


# --- client-side assignment ------------------------------------------------------------------------------------------


def upgrade(place: Places) -> str:
    of = Written(played("classic_rolling_upgrade", None), next(place))
    rows = [(row.epoch, row.assignor) for row in of.history.epochs if row.assignor is not None]
    protocols = [protocol for _, protocol in rows]
    changed = protocols.index("round-robin-1")
    assert set(protocols[:changed]) == {"round-robin-0"}
    assert set(protocols[changed:]) == {"round-robin-1"}, "once all support it, it is never given up again"
    return table("generation | protocol that all members support", iter(rows))


BLOCKS = {"bounce": bounce, "generation": generation_23, "connect": connect, "selection": selection, "upgrade": upgrade}


@pytest.mark.parametrize("name", BLOCKS)
def test_the_page_shows_what_the_logs_say(name: str, place: Places, request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text(encoding="utf-8")
    made = BLOCKS[name](place)
    if request.config.getoption("--rewrite"):
        text = BLOCK.sub(lambda block: _again(block, name, made), text)
        PAGE.write_text(text, encoding="utf-8")
    shown = {block["name"]: block["text"].strip("\n") for block in BLOCK.finditer(text)}
    assert shown[name] == made


def _again(block: re.Match[str], name: str, made: str) -> str:
    return f"<!-- {name} -->\n\n{made}\n\n<!-- end -->\n" if block["name"] == name else block[0]


def test_the_page_has_every_block_once() -> None:
    assert sorted(block["name"] for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))) == sorted(BLOCKS)
