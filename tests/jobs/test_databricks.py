"""Databricks: the bundle is whole, the job's parameters are those of ``nightly``, and the notebook's cells run."""

import re
import sys
import tomllib
from typing import Any

import pytest
import yaml
from databricks.bundles.jobs import Job

from jobs import nightly, settings
from jobs.cli import app as application
from tests.shared_data import ROOT

TEXT = (ROOT / "databricks.yml").read_text(encoding="utf-8")
BUNDLE: dict[str, Any] = yaml.safe_load(TEXT)
JOB: dict[str, Any] = BUNDLE["resources"]["jobs"]["coordinator_audit"]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

KINDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "bundle": {"name": str},
    "variable": {"description": str, "default": (str, int, list), "type": str},
    "artifact": {"type": str, "build": str, "path": str},
    "target": {"mode": str, "default": bool},
}
"""The keys of the bundle around its resources, and their types, as the reference of bundles names them."""

VARIABLE = re.compile(r"\$\{var\.(\w+)\}")


def filled(value: Any) -> Any:
    """Return a value with the defaults of its variables, as the bundle's command fills them in."""
    given = {name: each.get("default", "kafka://broker:9092/x") for name, each in BUNDLE["variables"].items()}
    if isinstance(value, dict):
        return {key: filled(each) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each) for each in value]
    if not isinstance(value, str):
        return value
    if whole := VARIABLE.fullmatch(value):
        return given[whole[1]]
    return VARIABLE.sub(lambda found: str(given[found[1]]), value).replace("${workspace.file_path}", str(ROOT))


def checked(kind: str, value: dict[str, Any]) -> None:
    for key, each in value.items():
        assert key in KINDS[kind], f"{kind} has no {key}"
        assert isinstance(each, KINDS[kind][key]), f"{kind}.{key}"
        if key in KINDS:
            checked(key, each)


def test_the_bundle_has_the_keys_and_types_of_databricks() -> None:
    assert set(BUNDLE) == {"bundle", "variables", "artifacts", "resources", "targets"}
    parts = {"variable": BUNDLE["variables"], "artifact": BUNDLE["artifacts"], "target": BUNDLE["targets"]}
    for kind, named in parts.items():
        for each in named.values():
            checked(kind, each)


def test_the_job_is_one_that_databricks_knows() -> None:
    """Databricks' own classes know every field of a job and its type; a value of another type would be converted."""
    job = filled(JOB)
    # Empty lists are left out of what the classes write.
    job["email_notifications"]["on_failure"] = ["team@example.com"]
    job["webhook_notifications"]["on_failure"] = [{"id": "1234-abcd"}]
    assert Job.from_dict(job).as_dict() == job
    task = {**job["tasks"][0], "max_retry": 1}
    with pytest.raises(ValueError, match="Unexpected field 'max_retry' for class Task"):
        Job.from_dict({**job, "tasks": [task]})
    keys = {each["environment_key"] for each in job["environments"]}
    assert {task["environment_key"] for task in job["tasks"]} <= keys
    assert len(job["schedule"]["quartz_cron_expression"].split()) == 6


def test_every_variable_is_declared_and_used() -> None:
    assert set(VARIABLE.findall(TEXT)) == set(BUNDLE["variables"])
    assert [name for name, each in BUNDLE["variables"].items() if "default" not in each] == ["dumps"]


def test_the_parameters_are_those_of_nightly() -> None:
    task = filled(JOB)["tasks"][0]["python_wheel_task"]
    assert task["package_name"] == PROJECT["name"].replace("-", "_")
    assert PROJECT["scripts"][task["entry_point"]] == "jobs.nightly:main"
    context = application.load("nightly").make_context("nightly", task["parameters"])
    given = context.params
    assert (given["paths"], given["cluster"]) == (["kafka://broker:9092/x"], "default")
    assert given["tables"] == "main.coordinator_audit"
    assert given["report"].suffix == ".html"
    assert settings.load(given["config"], environment={}).checks.project is None


def test_the_environment_has_the_dependencies_of_the_extras() -> None:
    wanted = JOB["environments"][0]["spec"]["dependencies"]
    extras = [
        each.replace("[spark]", "") for name in ("checks", "live") for each in PROJECT["optional-dependencies"][name]
    ]
    assert wanted == ["./dist/*.whl", *extras]


def test_the_entry_point_returns_after_success(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel task that ends with an exit, even with code 0, counts as failed on Databricks."""
    monkeypatch.setattr(sys, "argv", ["nightly", "--help"])
    nightly.main()
    monkeypatch.setattr(sys, "argv", ["nightly", "--no-such-option"])
    with pytest.raises(SystemExit) as ended:
        nightly.main()
    assert ended.value.code == 2


def cells() -> list[str]:
    source = (ROOT / "notebooks" / "audit_notebook.py").read_text(encoding="utf-8")
    first, *rest = source.split("# COMMAND ----------\n")
    assert first.startswith("# Databricks notebook source\n")
    return rest


def test_pip_is_a_cell_of_its_own_before_any_import() -> None:
    (at,) = [number for number, cell in enumerate(cells()) if "# MAGIC %pip" in cell]
    assert all(line.startswith("# MAGIC") for line in cells()[at].split("\n") if line)
    assert not any("import" in cell for cell in cells()[:at])


class Widgets:
    """Stand-in for ``dbutils.widgets``."""

    def __init__(self, **given: str) -> None:
        self.given = given
        self.labels: dict[str, str] = {}

    def text(self, name: str, default: str, label: str) -> None:
        self.given.setdefault(name, default)
        self.labels[name] = label

    def get(self, name: str) -> str:
        return self.given[name]


class Utilities:
    """Stand-in for ``dbutils``."""

    def __init__(self, widgets: Widgets) -> None:
        self.widgets = widgets


@pytest.mark.long
def test_every_cell_of_the_notebook_runs_and_shows_something(sample: Any) -> None:
    """With the filled tables of the samples, as a night leaves them."""
    from plotly.graph_objects import Figure

    widgets = Widgets(dumps="", tables=sample.tables.location, cluster="sample")
    shown: list[Any] = []
    names: dict[str, Any] = {"dbutils": Utilities(widgets), "display": shown.append}
    for cell in cells():
        exec(compile(cell, cell[:60], "exec"), names)
    assert set(widgets.labels) == {"wheel", "dumps", "tables", "cluster", "at"}
    figures = [each for each in shown if isinstance(each, Figure)]
    assert [len(each.data) for each in figures] == [1, 1]
    assert all(len(each.data[0].x) > 1 for each in figures)
    counts = [each.count() for each in shown if not isinstance(each, Figure)]
    findings, slowest, verdicts, wrong, clients, owners, offsets, activity, *_ = counts
    assert min(findings, slowest, verdicts, clients, owners, offsets, activity) > 0
    assert wrong == sample.target_audits.where("verdict IN ('divergent', 'invalid')").count()
    assert findings == sample.findings.count()
