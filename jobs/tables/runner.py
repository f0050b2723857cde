"""Who runs the steps of a night and the questions to tables: this process, or Spark. The only choice between them.

This process runs them where the tables are in a folder of this machine or in an object store, and divides large dumps
among processes. Spark runs them where it runs already (``spark-submit``, Databricks, a notebook), where it is
elsewhere (a cluster, Spark Connect), and where only it can open the tables (DBFS, and a catalog whose tables have no
path that this process can open: see ``registered``). Where this process runs them and Spark is installed, Spark starts
once something comes that is for it: a dump in Delta or in an object store, a table with a feature that delta-rs does
not know, or more than the limits of the section ``engine`` of the settings.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from shutil import which
from typing import TYPE_CHECKING, NamedTuple

from jobs.settings import Settings
from jobs.tables.engine import DATABRICKS, Session, runs_steps
from jobs.tables.reader import can_open, is_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.tables.delta import Tables

LOCAL, SPARK = "local", "spark"

STARTED_BY = {"PYSPARK_GATEWAY_PORT": "spark-submit", DATABRICKS: "Databricks"}
"""Environment variables of processes in which Spark runs already."""


class Runner(NamedTuple):
    """Who runs the steps, ``LOCAL`` or ``SPARK``, and why."""

    name: str
    why: str

    @property
    def spares_spark(self) -> bool:
        """Whether Spark has little to do: this process runs the steps, and Spark may only tell where tables are."""
        return self.name == LOCAL or self.why == ONLY_SPARK

    def session(self, start: Callable[[], SparkSession]) -> Session:
        """Return Spark as the steps are given it; ``start`` starts it."""
        if self.why == ONLY_SPARK:
            return start  # the tables ask Spark where they are, and may find that this process can open them
        if self.name == SPARK:
            return start()
        is_there = find_spec("pyspark") is not None and ("JAVA_HOME" in os.environ or which("java") is not None)
        return start if is_there and self.why != NAMED else None


NAMED = "the setting engine.runner names it"
ONLY_SPARK = "only Spark opens the tables"


def choose(chosen: Settings) -> Runner:
    """Return who runs the steps with these settings."""
    if chosen.engine.runner != "auto":
        return Runner(chosen.engine.runner, NAMED)
    if (place := next((name for variable, name in STARTED_BY.items() if variable in os.environ), None)) is not None:
        return Runner(SPARK, f"{place} has started it")
    if _is_active():
        return Runner(SPARK, "this process has a session")
    if chosen.spark.remote is not None:
        return Runner(SPARK, "the setting spark.remote names it")
    if not chosen.spark.master.startswith("local"):
        return Runner(SPARK, f"the setting spark.master is {chosen.spark.master}")
    if not can_open(chosen.tables):
        return Runner(SPARK, ONLY_SPARK)
    return Runner(LOCAL, f"the tables are in {kind_of_place(chosen.tables)}")


def found(tables: Tables, chosen: Runner) -> Runner:
    """Return who runs the steps once the tables are open: a catalog may name tables that this process can open."""
    if tables.registered is None or runs_steps(tables.session):
        return chosen
    return Runner(LOCAL, f"{tables.registered.schema} names tables in {kind_of_place(tables.location)}")


def kind_of_place(location: str) -> str:
    """Return in words where tables are that this process can open."""
    return "a folder of this machine" if is_folder(location) else "an object store"


def _is_active() -> bool:
    """Return whether this process has a session of Spark."""
    if "pyspark" not in sys.modules:
        return False
    from pyspark.sql import SparkSession  # not at the top: it may not be installed

    return SparkSession.getActiveSession() is not None
