"""The Spark session: the one that exists, a Spark Connect one, or a local one with Delta of our own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from delta import configure_spark_with_delta_pip
from pyspark import SparkConf
from pyspark.sql import SparkSession

from jobs import settings
from jobs.settings import SparkSettings

DELTA_CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}

SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set by ``spark-submit`` in the environment of the application."""


def get_or_create(wanted: SparkSettings) -> SparkSession:
    """The active session as it is (Databricks, spark-submit, a test's), else a new one as ``wanted`` says."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
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
        filter(None, [str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH")])
    )
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("coordinator-audit")
    for key, value in {**DELTA_CONF, **wanted.conf}.items():
        builder = builder.config(key, value)
    builder = _with_delta_jars(builder)
    return (builder.master(wanted.master) if wanted.remote is None else builder.remote(wanted.remote)).getOrCreate()


def _with_delta_jars(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Delta's own jars (all else they need is in Spark), kept beside the interpreter and fetched from Maven once."""
    if not os.access(sys.prefix, os.W_OK):
        return configure_spark_with_delta_pip(builder)
    store = Path(sys.prefix) / "ivy"
    jars = sorted(str(jar) for jar in (store / "jars").glob("io.delta_*.jar"))
    if jars:
        return builder.config("spark.jars", ",".join(jars))
    return configure_spark_with_delta_pip(builder.config("spark.jars.ivy", str(store)))


if __name__ == "__main__":  # the last step of `make setup`: fetch the jars, and see Spark start
    get_or_create(settings.load().spark).range(1).count()
