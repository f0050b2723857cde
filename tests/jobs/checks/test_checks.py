"""Checks: what is measured, what is expected of it, and which verdict that gives."""

import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from coordinator_core.errors import InputError, UsageError
from coordinator_core.groups.log_partition import log_partition_of
from jobs import settings
from jobs.api import CoordinatorAudit
from jobs.checks import gated
from jobs.checks import suites as quality
from jobs.checks.measures import MEASURES, Part, _gates, _of, measure, missing
from jobs.checks.validation import CheckRun, Result
from jobs.pipeline.group_pages import changed_groups
from jobs.relations.replay import LATE, MOVED
from jobs.sources.files import GROUP_TOPICS
from jobs.tables.delta import Tables
from jobs.tables.folder_reader import FolderReader
from jobs.tables.reader import Row
from jobs.tables.results import FINDINGS
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.relations.tables_of_logs import CLUSTER, GROUP_LOG, append, fill

NOW = datetime(2026, 11, 21, tzinfo=UTC)
GOOD = dict.fromkeys(MEASURES, 0.0)
HAPPENED = {"d": {"violations": "2 rules broken in g"}}


def results(measured: list[Row]) -> list[Result]:
    """Of the shipped suites on measures."""
    return list(quality.of_measures(CheckRun(None, measured, "run", NOW, HAPPENED)))


def of_one_cluster(cluster: str = "c", **measured: float | None) -> list[Row]:
    return [{"cluster": cluster, **GOOD, **measured}]


def verdicts(**measured: float | None) -> dict[str, bool | None]:
    return {result.check: result.passed for result in results(of_one_cluster(**measured))}


def test_every_measure_is_expected_something_of() -> None:
    assert verdicts() == dict.fromkeys(MEASURES, True)


def test_a_bound_that_is_passed_fails_and_a_measure_that_is_missing_is_unknown() -> None:
    found = verdicts(misplaced_groups=1, quarantine_rate=0.0005, violations=None, hours_since_last_record=40)
    assert {check for check, passed in found.items() if passed is False} == {
        "misplaced_groups",
        "hours_since_last_record",
    }
    assert [check for check, passed in found.items() if passed is None] == ["violations"]


def test_only_a_critical_failure_fails_the_run() -> None:
    found = results(of_one_cluster(hours_since_last_record=40.0, violations=2.0))
    assert [result.check for result in found if result.passed is False] == ["hours_since_last_record", "violations"]
    assert [result.check for result in found if result.failed] == ["violations"]


def test_each_cluster_has_its_own_verdict() -> None:
    good, bad = of_one_cluster(), of_one_cluster(cluster="d", violations=2.0, notices=None)
    found = results([*good, *bad])
    assert len(found) == 2 * len(MEASURES)
    passed = {(result.check, result.cluster): result.passed for result in found}
    assert (passed["violations", "c"], passed["violations", "d"]) == (True, False)
    assert (passed["notices", "c"], passed["notices", "d"]) == (True, None)
    (row,) = [result for result in found if (result.check, result.cluster) == ("violations", "d")]
    assert (row.observed, row.bound, row.severity) == (2.0, "max_value 0", "critical")


def test_great_expectations_says_the_same_of_the_measures() -> None:
    happened = {"c": {"hours_since_last_record": "old"}, **HAPPENED}
    measured = of_one_cluster(hours_since_last_record=36.5, notices=None, quarantine_rate=0.001)
    measured += of_one_cluster(cluster="d", violations=2.0)
    checked = CheckRun(None, measured, "run", NOW, happened)
    judged = quality.evaluate(checked, "/nowhere", settings.load(environment={}).checks)
    assert [row for row in judged if row.check in MEASURES] == list(quality.of_measures(checked))
    assert {row.happened for row in judged if row.check not in MEASURES} >= {"table rebalances does not exist"}


def java_hash(text: str) -> int:
    """``String.hashCode``: over UTF-16 units, as a signed int."""
    units = text.encode("utf-16-be")
    total = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        total = (total * 31 + high * 256 + low) & 0xFFFFFFFF
    return total - (1 << 32) if total >= 1 << 31 else total


def test_the_partition_of_a_group_is_that_of_java() -> None:
    """``polygenelubricants`` hashes to -2^31, of which Java's ``abs`` makes itself and Kafka 0."""
    names = ["", "a", "payments", "gruppe-é", "群組", "😀-emoji", "polygenelubricants", "x" * 249]
    assert java_hash("polygenelubricants") == -(1 << 31)
    for partitions in (1, 4, 50):
        expected = {name: 0 if (h := java_hash(name)) == -(1 << 31) else abs(h) % partitions for name in names}
        assert {name: log_partition_of(name, partitions) for name in names} == expected


def failing_and_unexpected(
    sample: CoordinatorAudit, accepted: Sequence[Mapping[str, object]] = (), level: str = "notice", **findings: object
) -> tuple[float | None, float]:
    flags: dict[str, Any] = {f"checks.findings.{name}": value for name, value in findings.items()}
    flags |= {"gates.min_level": level, "gates.accepted": [{"until": NOW.date(), "reason": "x"} | e for e in accepted]}
    chosen = settings.load(flags=flags)
    reader = FolderReader(sample.tables.location)
    counts = gated.count(reader, _gates(reader, chosen, NOW.date(), ""), chosen.checks.findings)
    failing, unexpected = (counts.get(name) for name in ("failing_findings", "unexpected_findings"))
    assert unexpected is not None
    return None if failing is None else failing["sample"].total(), unexpected["sample"].total()


def test_findings_that_are_accepted_or_have_a_low_score_do_not_count(sample: CoordinatorAudit) -> None:
    rows = [(row.group_id, row.kind, row.score, row.level) for row in sample.tables.read(FINDINGS).collect()]
    assert failing_and_unexpected(sample) == (None, len(rows)), "no kind fails the run unless the setting names it"
    of_groups = [row for row in rows if row[0] is not None]
    group_id, kind, score, _ = max(of_groups, key=lambda row: row[2])
    others = [row for row in rows if row[:2] != (group_id, kind)]
    pattern = f"*{group_id[1:]}"
    alike = [row for row in of_groups if row[1] == kind and row[0].endswith(group_id[1:])]
    assert failing_and_unexpected(sample, fail_on=[kind]) == (sum(row[1] == kind for row in rows), len(rows))
    assert failing_and_unexpected(sample, fail_on=["any"], min_score=score) == (
        sum(row[2] >= score for row in rows),
        sum(row[2] >= score for row in rows),
    )
    left = len(rows) - len(alike)
    assert 0 < left <= len(others)
    known = {"groups": pattern, "names": [kind]}
    assert failing_and_unexpected(sample, [known], fail_on=["any"]) == (left, left)
    assert failing_and_unexpected(sample, [{"max_score": score - 1}]) == (None, sum(row[2] > score - 1 for row in rows))
    assert failing_and_unexpected(sample, [{}], fail_on=["any"]) == (0, 0)
    expired = {"until": NOW.date() - timedelta(days=1)}
    assert failing_and_unexpected(sample, [expired], fail_on=["any"]) == (len(rows), len(rows))
    pressing = [row for row in rows if row[3] != "notice"]
    assert failing_and_unexpected(sample, level="warning", fail_on=["any"]) == (len(pressing), len(pressing))
    named = sum(row[1] == kind for row in rows)
    assert failing_and_unexpected(sample, level="alarm", fail_on=[kind])[0] == named, "a kind that is named counts"


def test_zero_is_unknown_where_logs_lack_something(tmp_path: Path) -> None:
    """What is missing of a log may have held violations. Those that are there are counted."""
    for name, partitions in (("whole", (0, 1)), ("cut", (1,))):
        for log in (f"{GROUP_LOG}-{partition}" for partition in partitions):
            shutil.copytree(SAMPLE_LOGS / log, tmp_path / name / log)
    parts: Part = {"violations": {}, "invalid_targets": {CLUSTER: 2.0}, "missing_offsets": {}}
    found = {}
    for name in ("whole", "cut"):
        fill(tmp_path / f"{name} tables", tmp_path / name, topics=(GROUP_LOG,))
        topic = {"cluster": CLUSTER, "topic": GROUP_LOG, "partitions": 2}
        append(tmp_path / f"{name} tables", "topic_history", [topic])
        lacks = missing(FolderReader(str(tmp_path / f"{name} tables")), CLUSTER)
        found[name] = any(lacks.values()), *(_of(CLUSTER, parts, lacks)[measure] for measure in parts)
    assert found == {"whole": (False, 0.0, 2.0, 0.0), "cut": (True, None, 2.0, 0.0)}


def test_an_accepted_finding_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(UsageError, match="names"):
        settings.load(flags={"gates.accepted": [{"names": ["zombie"], "until": NOW.date(), "reason": "x"}]})


def test_tables_without_a_run_are_nothing_to_check(spark: SparkSession, tmp_path: Path) -> None:
    """The message names the place."""
    with pytest.raises(InputError, match="there are no tables at"):
        quality.run(Tables(spark, str(tmp_path)), settings.load(), NOW)


@pytest.mark.long
def test_questions_between_the_steps_have_the_same_answers_through_spark(
    sample: CoordinatorAudit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables of a catalog are read through Spark: the groups that changed, and the late records."""
    given = {"cluster": "sample", "done": "", "upto": "~", "topics": GROUP_TOPICS, "groups": GROUP_TOPICS}

    def answers() -> tuple[object, ...]:
        engine = sample.tables.engine()
        (moved,) = engine.rows(MOVED, **given)
        return (
            changed_groups(engine, "sample", ""),
            changed_groups(engine, "sample", "~"),
            moved["groups"],
            list(engine.rows(LATE, **given)),
        )

    here = answers()
    assert len(here[0]) > len(here[1])
    monkeypatch.setattr(Tables, "is_here", lambda self: False)
    assert repr(answers()) == repr(here)


@pytest.mark.long
def test_spark_measures_the_same(sample: CoordinatorAudit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each measure is a query that Spark plans again."""
    chosen = settings.load(flags={"checks.findings.fail_on": ["any"]})
    here = measure(sample.tables, NOW, chosen, "").rows
    monkeypatch.setattr(Tables, "is_here", lambda self: False)
    assert repr(measure(sample.tables, NOW, chosen, "").rows) == repr(here)
