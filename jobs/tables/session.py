"""The Spark session: the one that exists, a Spark Connect one, or a local one with Delta of our own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from pyspark import SparkConf
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from coordinator_core.errors import InputError
from jobs import settings
from jobs.settings import SparkSettings

DELTA_CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}

SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set by ``spark-submit`` in the environment of the application."""

DATABRICKS = "DATABRICKS_RUNTIME_VERSION"
"""Set in the environment of notebooks and jobs there."""

JAVA_VERSION = re.compile(r'version "((\d+)[^"]*)"')
OLDEST_JAVA = 17


def get_or_create(wanted: SparkSettings) -> SparkSession:
    """The active session as it is (Databricks, spark-submit, a test's), else a new one as ``wanted`` says.

    Raises InputError where there is no Java that Spark runs on, or Delta's jars cannot be fetched.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if DATABRICKS in os.environ:  # a task of a job may be the first to ask for the session that waits for it
        return SparkSession.builder.getOrCreate()
    if wanted.remote is not None and not wanted.remote.startswith("local"):
        return SparkSession.builder.remote(wanted.remote).getOrCreate()
    return _submitted(wanted) if SUBMITTED in os.environ else _local(wanted)


def _submitted(wanted: SparkSettings) -> SparkSession:
    """The session of ``spark-submit``: its master, its jars, and what it was told by ``--conf`` before what we say."""
    given = SparkConf()
    builder = SparkSession.builder
    for key, value in {**DELTA_CONF, **wanted.conf}.items():
        if not given.contains(key):
            builder = builder.config(key, value)
    return builder.getOrCreate()


def _local(wanted: SparkSettings) -> SparkSession:
    """A session in a JVM of our own, reached through Spark Connect where ``remote`` says so."""
    # Workers and data source planners start from the JVM: they need this interpreter and these packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH")])
    )
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("coordinator-audit")
    for key, value in {**DELTA_CONF, **wanted.conf}.items():
        builder = builder.config(key, value)
    builder = _with_delta_jars(builder)
    builder = builder.master(wanted.master) if wanted.remote is None else builder.remote(wanted.remote)
    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise InputError(f"Spark did not start: {_why_not()}") from error


def _with_delta_jars(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Delta's own jars (all else they need is in Spark), kept beside the interpreter and fetched from Maven once."""
    jars = _delta_jars()
    if jars:
        return builder.config("spark.jars", ",".join(jars))
    from delta import configure_spark_with_delta_pip  # a session that exists already may come without this package

    if os.access(sys.prefix, os.W_OK):
        builder = builder.config("spark.jars.ivy", str(_store()))
    return configure_spark_with_delta_pip(builder)


def _store() -> Path:
    return Path(sys.prefix) / "ivy"


def _delta_jars() -> list[str]:
    return sorted(str(jar) for jar in (_store() / "jars").glob("io.delta_*.jar"))


def _why_not() -> str:
    """What keeps a JVM from starting, as far as can be found out: Spark itself only says that it did not."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else "java"
    needs = f"it needs Java {OLDEST_JAVA} or later"
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    except OSError:
        return f"{needs}, and {java} is not there: install it, or set JAVA_HOME"
    found = JAVA_VERSION.search(said)
    if found is not None and int(found[2]) < OLDEST_JAVA:
        return f"{needs}, and {java} is {found[1]}: install a later one, or set JAVA_HOME"
    if not _delta_jars():
        return "Delta's jars, which the first run fetches from Maven, are not here; what it tried is above"
    return "what it said is above"


if __name__ == "__main__":  # the last step of `make setup`: fetch the jars, and see Spark start
    get_or_create(settings.load().spark).range(1).count()
