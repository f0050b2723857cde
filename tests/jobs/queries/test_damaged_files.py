"""Damaged and compacted logs, read from files: what is stated about a moment or about history is true."""

import re
from dataclasses import dataclass
from functools import cached_property

import pytest

from coordinator_core.audit.rows import Verdict
from coordinator_core.groups.rules import Rule
from coordinator_core.groups.violations import Violation
from coordinator_core.records import LogPosition
from tests.core.certainties import Described, wrong_certainties
from tests.jobs.queries.damaged_logs import (
    DAMAGES,
    NOTHING_GONE,
    Damage,
    FromFiles,
    absent_partition,
    compacted,
    hole_in_metadata,
    moments,
    whole_logs,
)
from tests.jobs.queries.same_answers import described


@dataclass
class Told:
    """What the files say of what groups went through, read once, and the warnings that it came with."""

    files: FromFiles

    def __post_init__(self) -> None:
        self.histories = self.files.answers().histories()
        self.warnings = [*self.files.warnings]

    @cached_property
    def at_moments(self) -> list[Described]:
        return [described(self.files.answers().at(moment)) for moment in moments()]


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Told:
    return Told(FromFiles(whole_logs(tmp_path_factory.mktemp("whole") / "logs")))


@pytest.fixture(scope="module", params=DAMAGES.values(), ids=DAMAGES)
def damage(request: pytest.FixtureRequest) -> Damage:
    found: Damage = request.param
    return found


@pytest.fixture(scope="module")
def damaged(damage: Damage, tmp_path_factory: pytest.TempPathFactory) -> Told:
    folder = whole_logs(tmp_path_factory.mktemp("damaged") / "logs")
    damage(folder)
    return Told(FromFiles(folder))


def test_groups_at_moments(damage: Damage, damaged: Told, truth: Told) -> None:
    for moment, true in zip(moments(), truth.at_moments, strict=True):
        said = damaged.files.answers().at(moment)
        # Groups of an absent log partition are not listed: the report and the checks say that it is absent.
        lists_all = damage is not absent_partition and all(gaps.lists_all for gaps in said.gaps().values())
        wrong = [*wrong_certainties(described(said), true, lists_all=lists_all)]
        if damage is hole_in_metadata:  # topics that were created in the hole have no names
            wrong = [each for each in wrong if not re.search("assign|topology_check|unnamed", each[0].lower())]
        assert wrong == []


def test_history(damage: Damage, damaged: Told, truth: Told) -> None:
    true = {(row.group_id, row.at): row for row in truth.histories.rebalances}
    about_commits = {"hint", "causes"}
    about_topics = {"units_lost", "idle_ms", "idle_max_ms"}  # null where a topic may have been deleted
    for row in damaged.histories.rebalances:
        if row.history_complete:
            known = true[row.group_id, row.at]
            assert [
                (name, getattr(row, name), getattr(known, name))
                for name in row._fields
                if name not in about_commits
                and getattr(row, name) != getattr(known, name)
                and not (name in about_topics and getattr(row, name) is None and damage is hole_in_metadata)
                and not (name == "missing" and row.units_lost is None and known.units_lost is not None)
            ] == []


def test_verdicts_and_violations(damaged: Told, truth: Told) -> None:
    verdicts = {(row.group_id, row.at): row.verdict for row in truth.histories.verdicts}
    for row in damaged.histories.verdicts:
        assert row.verdict in (Verdict.UNKNOWN, verdicts.get((row.group_id, row.at))), row
    broken = {broken_where(row) for row in truth.histories.violations}
    for each in damaged.histories.violations:
        assert broken_where(each) in broken, each


def broken_where(row: Violation) -> tuple[str, Rule, LogPosition | None]:
    """The group, the rule and the record; that a group is in the wrong partition is told of its first record, which
    compaction may remove.
    """
    return row.group_id, row.rule, None if row.rule is Rule.GROUP_IN_WRONG_PARTITION else row.at


def test_findings(damaged: Told, truth: Told) -> None:
    true = {(row.group_id, row.kind, row.subject) for row in truth.histories.findings}
    for row in damaged.histories.findings:
        assert (row.group_id, row.kind, row.subject) in true or not row.history_complete, row


def test_what_is_lost_is_warned_of(damage: Damage, damaged: Told) -> None:
    topics = [each for each in damaged.warnings if "metadata log has a hole" in each]
    records = [each for each in damaged.warnings if "the log lacks records" in each]
    assert len(topics) == (damage is hole_in_metadata)
    assert len(records) == (damage not in (hole_in_metadata, absent_partition, compacted, *NOTHING_GONE))
