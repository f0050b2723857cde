"""Serverless compute and standard clusters of Databricks: what they refuse, and what no module of the jobs uses.

No such platform can be had for a test. What can be run is: the jobs' source is read for what these platforms refuse,
and ``tests/clients`` runs nights through Spark Connect with the packages of an environment of Databricks.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import yaml
from packaging.requirements import Requirement
from pyspark.sql import SparkSession

from coordinator_core.errors import InputError
from jobs.pipeline.on_spark.commits import TASKS, _tasks
from jobs.tables import engine, session
from tests.clients.matrix import CLIENTS
from tests.shared_data import ROOT

SOURCES = sorted(file for name in ("jobs", "coordinator_audit", "notebooks") for file in (ROOT / name).rglob("*.py"))
IDS = [str(file.relative_to(ROOT)) for file in SOURCES]

REFUSED = {
    "rdd": "RDDs",
    "sparkContext": "SparkContext",
    "_jvm": "the JVM",
    "_jdf": "the JVM",
    "_jsparkSession": "the JVM",
    "cache": "caching",
    "persist": "caching",
    "unpersist": "caching",
    "checkpoint": "caching",
    "localCheckpoint": "caching",
    "cacheTable": "caching",
    "createGlobalTempView": "global views",
    "createOrReplaceGlobalTempView": "global views",
    "addPyFile": "libraries of the context",
    "parallelize": "RDDs",
    "toPandas": "all rows in the driver",
}
"""Attributes of Spark's objects that serverless compute refuses, and what is refused."""

STATEMENT = re.compile(r"\s*(SET\s+(spark\.|TIME\s+ZONE)|CACHE\s|UNCACHE\s|ADD\s+JAR|CREATE\s+GLOBAL)", re.IGNORECASE)

NO_SESSION = {"jobs/cli/arrow_start.py", "notebooks/audit_notebook.py"}
"""``display`` of the notebook where no Databricks is."""

NOT_REMOTE = "jobs/tables/engine.py"
"""It asks for the master, but not through Spark Connect."""


def refused(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in REFUSED:
            yield f"line {node.lineno}: {node.attr} ({REFUSED[node.attr]})"
        if isinstance(node, ast.Attribute) and node.attr == "set" and _is_conf(node.value):
            yield f"line {node.lineno}: conf.set (configurations of the session)"
        if isinstance(node, ast.Call) and _asks_for_more(node):
            yield f"line {node.lineno}: conf.get (configurations that the session does not have)"
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and STATEMENT.match(node.value):
            yield f"line {node.lineno}: {node.value[:40]}"


def _is_conf(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "conf"


ASKED = {"SHUFFLE_PARTITIONS"}
"""Names of configurations that each session has."""


def _asks_for_more(call: ast.Call) -> bool:
    function = call.func
    if not (isinstance(function, ast.Attribute) and function.attr == "get" and _is_conf(function.value)):
        return False
    return not (isinstance(call.args[0], ast.Name) and call.args[0].id in ASKED)


@pytest.mark.parametrize("file", SOURCES, ids=IDS)
def test_a_module_uses_nothing_that_serverless_compute_refuses(file: Path) -> None:
    found = list(refused(ast.parse(file.read_text(encoding="utf-8"))))
    if str(file.relative_to(ROOT)) in NO_SESSION:
        found = [each for each in found if "toPandas" not in each]
    if str(file.relative_to(ROOT)) == NOT_REMOTE:
        found = [each for each in found if "conf.get" not in each]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        'tables.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")',
        'spark.conf.get("spark.master", None)',
        "rows.rdd.map(f)",
        "rows.persist()",
        'spark.sql("SET spark.sql.ansi.enabled = false")',
        'spark.sql("CACHE TABLE t")',
    ],
)
def test_the_reading_of_the_source_sees(text: str) -> None:
    assert list(refused(ast.parse(text)))


def test_nothing_needs_what_only_a_jvm_beside_it_brings() -> None:
    """The package pyspark-client has no py4j."""
    for file in SOURCES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            assert not any(name.split(".")[0] == "py4j" for name in names), file


def test_a_table_property_is_no_configuration_of_the_session() -> None:
    assert not list(refused(ast.parse('sql("ALTER TABLE t SET TBLPROPERTIES (a = 1)")')))
    assert not list(refused(ast.parse('sql("UPDATE t SET a = 1")')))


@pytest.mark.parametrize(
    ("said", "tasks"), [("auto", TASKS), (None, TASKS), ("", TASKS), ("-1", TASKS), ("0", TASKS), ("7", 7)]
)
def test_the_number_of_shuffle_partitions_may_be_no_number(said: str | None, tasks: int) -> None:
    assert _tasks(said) == tasks


def test_the_master_is_not_asked_for_through_spark_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = cast(SparkSession, SimpleNamespace(conf=SimpleNamespace(get=lambda name, default: "local[3]")))
    assert engine.master(spark) == "local[3]"
    monkeypatch.setattr("pyspark.sql.utils.is_remote", lambda: True)
    assert engine.master(cast(SparkSession, SimpleNamespace())) is None


def test_an_old_client_is_refused_before_anything_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "DataFrame", SimpleNamespace())
    with pytest.raises(InputError, match=r"no DataFrame\.repartitionById.*environment version 5"):
        session.get_or_create(session.SparkSettings(master="local[1]", remote=None, conf={}))


def test_the_bundle_has_the_environment_that_a_client_of_the_matrix_has() -> None:
    job = yaml.safe_load((ROOT / "databricks.yml").read_text(encoding="utf-8"))["resources"]["jobs"]
    (environment,) = job["coordinator_audit"]["environments"]
    version = environment["spec"]["environment_version"]
    (client,) = [each for each in CLIENTS if each.name == f"databricks-{version}"]
    assert client.python == "3.12"
    assert all(next(iter(Requirement(pin).specifier)).operator == "==" for pin in client.pins)


def test_the_matrix_has_each_python_and_both_ends_of_the_versions() -> None:
    assert {client.python for client in CLIENTS} == {"3.11", "3.12", "3.13"}
    assert {client.resolution for client in CLIENTS} == {"lowest-direct", "highest"}
    releases = {"4.0.9", "4.1.9"}
    found = {
        release
        for client in CLIENTS
        for release in releases
        if Requirement(client.spark).name == "pyspark-client" and Requirement(client.spark).specifier.contains(release)
    }
    assert found == releases


def test_each_test_that_the_page_names_exists() -> None:
    page = (ROOT / "docs" / "databricks.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    assert len(named) > 10
    for file, test in named:
        assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), test
