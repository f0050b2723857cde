"""One Spark session for all tests that ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.api import CoordinatorAudit

ROOT = Path(__file__).resolve().parents[2]
SAMPLE_LOGS = ROOT / "data" / "samples" / "logs"
CHEAP = {
    "spark.sql.ui.explainMode": "simple",  # each statement would print its plan for a page that nobody opens
    "spark.databricks.delta.writeChecksumFile.enabled": "false",
}
"""Settings of the session that take a seventh of the processor time off each commit, and change no row."""
SMALL: dict[str, str] = yaml.safe_load((ROOT / "conf" / "small.yaml").read_text())["spark"]["conf"]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session that the jobs would make, in ``local[2]``."""
    from jobs import settings
    from jobs.tables import session

    warehouse = tmp_path_factory.mktemp("warehouse")
    wanted = settings.load(
        flags={"spark.master": "local[2]", "spark.conf": SMALL | CHEAP | {"spark.sql.warehouse.dir": str(warehouse)}}
    )
    made = session.get_or_create(wanted.spark)
    yield made
    made.stop()


@pytest.fixture
def only_spark_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let catalogs keep the paths of their tables to themselves, as Unity does with managed ones."""
    from jobs.tables import registered

    monkeypatch.setattr(registered, "registered", lambda *given, **options: None)


@pytest.fixture(scope="session")
def sample(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> CoordinatorAudit:
    """The samples as cluster ``sample``, through all jobs in one run; not to be written to."""
    from jobs.api import CoordinatorAudit

    made = CoordinatorAudit(spark, str(tmp_path_factory.mktemp("sample")), "sample")
    made.ingest(str(SAMPLE_LOGS))
    made.decode()
    made.replay()
    made.keep_offsets()
    made.audit()
    return made
