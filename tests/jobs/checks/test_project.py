"""The Great Expectations project: opened by Great Expectations itself, changed in its own way, run by the checks."""

import re
import shutil
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import requests
from pyspark.sql import SparkSession

from coordinator_core.errors import InputError
from jobs import nightly_run, settings
from jobs.api import CoordinatorAudit
from jobs.checks import suites as quality
from jobs.checks.measures import MEASURES
from jobs.checks.project import check_location, write_project
from jobs.checks.validation import CheckRun, Result, write_measures
from jobs.tables.catalog import CATALOG
from jobs.tables.delta import Tables
from jobs.tables.reader import Row
from jobs.tables.results import CHECK_RESULTS
from tests.commands import run_command
from tests.shared_data import ROOT

NOW = datetime(2026, 11, 21, tzinfo=UTC)
SHIPPED = {file.stem for file in (ROOT / "conf" / "gx" / "expectations").glob("*.json")}
REMOTE = re.compile(r"(?:src|<link[^>]*href)=[\"']?(?:https?:)?//|url\([\"']?(?:https?:)?//|@import", re.IGNORECASE)
"""What a browser would load from a server; a link that a reader may follow is none of it."""


@cache
def gx() -> ModuleType:
    """Great Expectations, which only the process that runs these tests imports: it takes seconds."""
    return import_module("great_expectations")


def gxe() -> ModuleType:
    return import_module("great_expectations.expectations")


def slack(**given: str) -> Any:
    return import_module("great_expectations.checkpoint").SlackNotificationAction(**given)


def measures(**changed: float | None) -> list[Row]:
    return [{"cluster": "c", **dict.fromkeys(MEASURES, 0.0), **changed}]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_project(tmp_path / "gx", "/nowhere")
    return tmp_path


def opened(project: Path) -> Any:
    return gx().get_context(mode="file", project_root_dir=project)


def checked(project: Path, location: str = "/nowhere", **changed: float | None) -> list[Result]:
    chosen = settings.load(environment={}, flags={"checks.project": project, "checks.data_docs": project / "docs"})
    return quality.evaluate(CheckRun(None, measures(**changed), "run", NOW), location, chosen.checks)


def test_the_shipped_project_opens_and_its_checkpoint_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "conf" / "gx", tmp_path / "gx")
    monkeypatch.chdir(tmp_path / "gx")
    write_measures(tmp_path / "gx", measures(notices=1, violations=None))
    context = opened(tmp_path)
    severities = {each.severity for each in context.suites.get("protocol").expectations}
    assert severities == {"critical", "warning"}
    outcome = context.checkpoints.get("measures").run()
    assert not outcome.success
    failed = [each for run in outcome.run_results.values() for each in run.results if not each.success]
    assert [each.expectation_config.kwargs["column"] for each in failed] == ["notices"]


def test_every_table_has_an_asset_a_suite_a_definition_and_a_checkpoint(project: Path) -> None:
    context = opened(project)
    assert {asset.name for asset in context.data_sources.get("tables").assets} == set(CATALOG)
    for table in CATALOG:
        (definition,) = context.checkpoints.get(table).validation_definitions
        assert (definition.asset.name, definition.suite.name) == (table, table)
        assert (context.suites.get(table).expectations == []) == (table not in SHIPPED)


def test_an_expectation_that_is_added_fails_by_its_severity(project: Path) -> None:
    suite = opened(project).suites.get("freshness")
    suite.add_expectation(gxe().ExpectColumnMaxToBeBetween(column="notices", max_value=1, severity="critical"))
    suite.add_expectation(
        gxe().ExpectColumnValuesToBeBetween(column="notices", max_value=2, severity="info", notes="n")
    )
    greatest, by_value = [each for each in checked(project, notices=3) if each.suite == "freshness"][-2:]
    assert (greatest.failed, greatest.observed, greatest.bound) == (True, 3.0, "max_value 1")
    assert (by_value.passed, by_value.failed, by_value.severity, by_value.about) == (False, False, "info", "n")
    assert (greatest.cluster, by_value.cluster) == (None, "c")


def test_an_expectation_on_a_measure_that_is_null_is_unknown(project: Path) -> None:
    expectations = [
        gxe().ExpectColumnMaxToBeBetween(column="violations", max_value=1),
        gxe().ExpectColumnValuesToBeBetween(column="violations", max_value=1),
    ]
    opened(project).suites.add(gx().ExpectationSuite(name="measures.mine", expectations=expectations))
    found = [each for each in checked(project, violations=None) if each.suite == "measures.mine"]
    assert [(each.cluster, each.passed) for each in found] == [(None, None), ("c", None)]


def test_a_night_finds_a_wrong_project_before_it_starts_spark(project: Path) -> None:
    write_project(project / "gx", "/nowhere", spark=True)
    flags = {"checks.project": project, "tables": "/elsewhere", "nightly.steps": ["checks"]}
    with pytest.raises(InputError, match="data source tables"):
        nightly_run.check_settings(settings.load(environment={}, flags=flags))


def test_suites_are_kept_when_the_project_is_written_again(project: Path) -> None:
    opened(project).suites.get("freshness").add_expectation(gxe().ExpectTableRowCountToEqual(value=1))
    write_project(project / "gx", "main.audit", spark=True)
    assert len(opened(project).suites.get("freshness").expectations) == 2
    assert opened(project).data_sources.get("tables").type == "spark"
    assert "# " in (project / "gx" / "great_expectations.yml").read_text(), "comments stay"


def test_a_suite_with_the_name_of_a_table_needs_no_definition_and_another_one_does(project: Path) -> None:
    context = opened(project)
    for name in ("rebalances.mine", "mine"):
        expectations = [gxe().ExpectTableRowCountToBeBetween(max_value=9, severity="warning")]
        context.suites.add(gx().ExpectationSuite(name=name, expectations=expectations))
    with pytest.raises(InputError, match=r"suite mine .*validation definition.*rebalances\.mine"):
        checked(project)
    context.suites.delete("mine")
    (found,) = [each for each in checked(project) if each.suite == "rebalances.mine"]
    assert (found.check, found.passed) == ("rebalances", None), "the tables are not there: unknown"
    assert "does not exist" in found.happened


def test_an_expectation_that_cannot_be_computed_fails_and_says_why(project: Path) -> None:
    opened(project).suites.get("freshness").add_expectation(
        gxe().ExpectColumnValuesToBeInSet(column="lag", value_set=[])
    )
    (found,) = [each for each in checked(project) if each.check == "lag"]
    assert found.failed
    assert "lag" in found.happened
    assert "could not be computed" in found.happened


@pytest.mark.parametrize("location", ["/elsewhere", "main.audit"])
def test_a_project_of_other_tables_is_refused(project: Path, location: str) -> None:
    write_project(project / "gx", "/nowhere", spark=True)
    with pytest.raises(InputError, match=f"data source tables .*coordinator-audit expectations .* --tables {location}"):
        checked(project, location)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- 1", "must be a mapping"),
        ("a: [", "not valid YAML"),
        ("fluent_datasources: [1]", "fluent_datasources must be a mapping of mappings"),
        ("fluent_datasources: {tables: 1}", "fluent_datasources must be a mapping of mappings"),
    ],
)
def test_a_broken_configuration_is_one_clear_error(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "gx").mkdir()
    (tmp_path / "gx" / "great_expectations.yml").write_text(text)
    for reads in (check_location, write_project):
        with pytest.raises(InputError, match=says):
            reads(tmp_path / "gx", "/nowhere")


def test_a_location_that_is_not_a_folder_is_not_in_the_project(tmp_path: Path) -> None:
    """A URL may have credentials, and people commit a project to a repository."""
    for spark in (False, True):
        write_project(tmp_path / "gx", "s3://key:swordfish@bucket/t?sig=swordfish", spark=spark)
    assert [file for file in tmp_path.rglob("*") if file.is_file() and "swordfish" in file.read_text()] == []


def test_a_folder_without_a_project_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not a Great Expectations project: coordinator-audit expectations"):
        checked(tmp_path)


def test_actions_run_with_secrets_from_the_environment(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = opened(project)
    checkpoint = context.checkpoints.get("measures")
    for name in ("HOOK", "REFUSED", "NOT_SET"):
        webhook = f"${{{name}}}"
        checkpoint.actions.append(slack(name=name, slack_webhook=webhook, notify_on="critical"))
    checkpoint.save()
    sent: list[str] = []

    def post(self: requests.Session, url: str, **_: Any) -> requests.Response:
        sent.append(url)
        if "refused" in url:
            raise requests.ConnectionError
        answer = requests.Response()
        answer.status_code = 200
        return answer

    monkeypatch.setattr(requests.Session, "post", post)
    monkeypatch.setenv("HOOK", "https://hooks.example/T0/B0")
    monkeypatch.setenv("REFUSED", "https://refused.example")
    assert "hooks.example" not in (project / "gx" / "checkpoints" / "measures.json").read_text()
    checked(project, notices=1)
    assert sent == [], "a warning is not critical"
    found = [each for each in checked(project, violations=1) if each.suite == "measures"]
    assert sent == ["https://hooks.example/T0/B0", "https://refused.example"]
    assert [(each.check, each.passed, each.severity) for each in found] == [
        ("REFUSED", False, "warning"),
        ("NOT_SET", False, "warning"),
    ]
    assert "not delivered" in found[0].happened
    assert found[1].happened == "the environment variable NOT_SET is not set"


def test_what_the_documentation_writes_works(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "quality").mkdir()
    (project / "gx").rename(project / "quality" / "gx")
    write_project(project / "quality" / "gx", "/nowhere")
    monkeypatch.chdir(project)
    text = (ROOT / "docs" / "howto" / "add-an-expectation.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 4
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
    context = opened(project / "quality")
    assert context.suites.get("rebalances").expectations[-1].column == "duration_min_ms"
    assert context.suites.get("trend").expectations[-1].row_condition.parameter == "findings"
    (fresh,) = context.suites.get("freshness").expectations
    assert (fresh.max_value, fresh.severity) == (6, "critical")
    assert [each.type for each in context.checkpoints.get("measures").actions] == ["slack", "email"]


def test_data_docs_load_nothing_from_a_server(project: Path) -> None:
    checked(project, violations=1)
    pages = list((project / "docs").rglob("*.html"))
    assert len(pages) > len(CATALOG)
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not REMOTE.search(text), page
        own = re.findall(r"<(?:script src|link rel=\"stylesheet\" href)=\"([^\"]+)\"", text)
        assert len(own) == 9, page
        assert all((page.parent / name).is_file() for name in own), page
    assert "violations" in (project / "docs" / "expectations" / "protocol.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("by_spark", [False, pytest.param(True, marks=pytest.mark.long)])
def test_an_expectation_of_a_user_on_a_table_fails_the_night(
    sample: CoordinatorAudit, tmp_path: Path, by_spark: bool
) -> None:
    """As docs/howto/add-an-expectation.md says, on a copy of the filled tables: by pandas and by Spark."""

    tables = tmp_path / "tables"
    shutil.copytree(sample.tables.location, tables)
    write_project(tmp_path / "gx", str(tables), spark=by_spark)
    settings_file = f"checks: {{project: {tmp_path}, data_docs: {tmp_path}/docs}}\nnightly: {{steps: [checks]}}\n"
    (tmp_path / "night.yaml").write_text(settings_file)
    night = ["nightly", "--config", str(tmp_path / "night.yaml"), "--tables", str(tables), "--json"]
    assert run_command(*night).exit_code == 0, "the shipped suites find nothing critical"
    suite = opened(tmp_path).suites.get("rebalances")
    shipped = len(suite.expectations)
    suite.add_expectation(gxe().ExpectColumnValuesToNotBeNull(column="group_id", severity="critical"))
    suite.add_expectation(gxe().ExpectTableRowCountToBeBetween(max_value=1, severity="critical"))
    suite.add_expectation(gxe().ExpectColumnValuesToNotBeInSet(column="outcome", value_set=["not ready"]))
    assert run_command(*night).exit_code == 3
    assert not opened(tmp_path).checkpoints.get("rebalances").run().success, "Great Expectations alone finds the same"
    last = (
        "SELECT * FROM $check_results WHERE run_id = (SELECT max(run_id) FROM $check_results) AND suite = 'rebalances'"
    )
    rows = list(Tables(None, str(tables)).engine().rows(last))
    found = {row["check"]: row for row in rows}
    assert [row["passed"] for row in rows].count(False) == 2
    assert len(rows) == shipped + 3
    assert found["rebalances"]["observed"] == sample.rebalances.count()
    assert found["rebalances.group_id"]["passed"]
    failing = sample.rebalances.where("outcome = 'not ready'").first()
    assert failing is not None
    (told,) = [row["happened"] for row in rows if row["expectation"].endswith("not_be_in_set")]
    assert failing.group_id in told, "the row that fails is named"
    pages = [page.read_text("utf-8") for page in (tmp_path / "docs" / "validations" / "rebalances").rglob("*.html")]
    assert any("not ready" in page and failing.group_id in page for page in pages), "and Data Docs show it"


@pytest.mark.long
def test_tables_of_a_catalog_are_given_as_data_frames(
    spark: SparkSession, only_spark_opens: None, tmp_path: Path
) -> None:
    spark.sql("CREATE SCHEMA IF NOT EXISTS checked_in_catalog")
    tables = Tables(spark, "spark_catalog.checked_in_catalog")
    tables.create(CHECK_RESULTS)
    write_project(tmp_path / "gx", tables.location, spark=True)
    for name in (CHECK_RESULTS.name, "memberships"):
        suite = opened(tmp_path).suites.get(name)
        suite.add_expectation(gxe().ExpectTableRowCountToBeBetween(min_value=1, severity="critical"))
    chosen = settings.load(environment={}, flags={"checks.project": tmp_path / "gx"}).checks
    found = quality.evaluate(CheckRun(tables, measures(), "run", NOW), tables.location, chosen)
    of_tables = {each.check: (each.passed, each.observed) for each in found if each.suite not in SHIPPED}
    assert of_tables == {CHECK_RESULTS.name: (False, 0.0), "memberships": (None, None)}
