"""Each function that reads a relation returns the same from both engines: of logs that lack much, of two clusters."""

import ast
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.relations import given_partitions, groups
from jobs.tables.folder_reader import FolderReader
from jobs.tables.reader import TableReader
from jobs.tables.spark_reader import SparkReader
from tests.jobs.relations.damaged_tables import fill_stores
from tests.jobs.relations.engines import through_spark
from tests.jobs.relations.readers import ASKED, Ask, as_json, asked_over, name_of
from tests.shared_data import ROOT


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return fill_stores(tmp_path_factory.mktemp("both"))


@pytest.fixture(scope="module")
def here(stores: dict[str, Path]) -> FolderReader:
    return FolderReader(str(stores["both"]))


@pytest.fixture(scope="module")
def alone(stores: dict[str, Path]) -> FolderReader:
    return FolderReader(str(stores["alone"]))


@pytest.fixture(scope="module")
def in_spark(spark: SparkSession, stores: dict[str, Path]) -> SparkReader:
    return through_spark(spark, stores["both"])


THROUGH_OTHERS = {
    "topic_lines.has_new_topic_lines": "topics_of_stored_lines",
    "topic_lines.topics_of_stored_lines": "asked in test_topic_lines",
    "brokers.of_other_clusters": "asked with the files in test_stored_broker_logs",
    "brokers.older_copies": "asked with the files in test_stored_broker_logs",
    "brokers.stored_not_loaded": "asked with the files in test_stored_broker_logs",
    "news.last_end": "test_news",
    "sessions.stored_lost_members": "its text is asked of both engines in test_sessions",
    "sessions.stored_stays": "its text is asked of both engines in test_sessions",
    "sessions.stored_lives": "the findings of nights, in test_findings_parts",
    "commit_sums.rewinds_of_group": "its text is asked of both engines in test_commit_runs",
    "given_partitions.numbered": "stored_given, in test_without_spark",
    "groups.histories": "report_histories",
    "groups.kinds": "one_history",
    "groups.report_kinds": "report_histories",
    "groups.merged": "report_histories",
    "groups.rows_of": "one_history",
    "news.late_records": "its text is asked of both engines in test_late_records",
    "logs.ends_missing": "asked of both engines in test_missing_ends",
    "logs.topics_at_end": "LogFacts.read",
    "missing_ends.missing_ends": "logs.ends_missing",
    "topics.stored_for_groups": "LogFacts.read",
    "knowledge.missing_of_shares": "rests_on_share_state",
    "knowledge.stored_knowledge": "its parts",
}
"""Functions that have no text of their own, and what is asked instead."""


def readers() -> Iterator[str]:
    """The public functions of the relations that read tables."""
    for path in (ROOT / "jobs" / "relations").glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                types = [ast.unparse(arg.annotation) for arg in node.args.args if arg.annotation is not None]
                if "TableReader" in types:
                    yield f"{path.stem}.{node.name}"


def test_each_function_is_asked() -> None:
    assert {*map(name_of, ASKED)} - {"logs.read"} == {*readers()} - THROUGH_OTHERS.keys()


@cache
def answer(reader: Callable[..., Any], tables: FolderReader) -> Any:
    """What two tests ask, once."""
    return ASKED[reader](tables)


@pytest.mark.parametrize("reader", [reader for reader in ASKED if reader is not groups.one_history], ids=name_of)
def test_both_engines_say_the_same(reader: Callable[..., Any], here: FolderReader, in_spark: TableReader) -> None:
    """The texts of ``one_history`` are those of ``report_histories``, of one group."""
    found = answer(reader, here)
    assert found not in (None, False, [], {}, ())
    assert found == ASKED[reader](in_spark)


KEPT = ROOT / "tests" / "data" / "relation_answers.json"
OF_ALL_CLUSTERS = {given_partitions.given, given_partitions.absent}


@pytest.mark.parametrize("reader", [reader for reader in ASKED if reader not in OF_ALL_CLUSTERS], ids=name_of)
def test_rows_of_another_cluster_change_nothing(
    reader: Callable[..., Any], here: FolderReader, alone: FolderReader
) -> None:
    assert answer(reader, here) == ASKED[reader](alone)


@pytest.mark.parametrize(
    ("name", "ask", "store"), [pytest.param(*asked, id=f"{asked[2]}-{asked[0]}") for asked in asked_over()]
)
def test_answers_are_those_that_are_kept(
    name: str, ask: Ask, store: str, stores: dict[str, Path], pytestconfig: pytest.Config
) -> None:
    """A change of a text that changes an answer has to be meant: ``--rewrite`` keeps the new one.

    ``python -m tests.mutations`` says which changes no answer shows.
    """
    kept: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    asked, found = f"{name} {store}", as_json(ask(FolderReader(str(stores[store]))))
    if pytestconfig.getoption("rewrite"):
        kept[asked] = found
        KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    assert found == kept[asked]
