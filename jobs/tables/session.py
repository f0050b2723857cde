"""The Spark session: an existing one, one through Spark Connect, or a new local one with Delta."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile

import pyspark
from pyspark import SparkConf
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import DataFrame, SparkSession

from coordinator_core.errors import InputError
from jobs import settings
from jobs.settings import SparkSettings
from jobs.tables.engine import DATABRICKS
from jobs.tables.jvm_output import jvm_output, kept_apart

PACKAGES: Final = ("coordinator_core", "jobs")
"""The packages that Python workers import."""

DATA: Final = {"coordinator_core/schemas": "schemas", "jobs/conf": "conf"}
"""The folders of data within the packages of a wheel, and where a checkout has them."""


def code_zip(folder: Path) -> Path:
    """Write the packages with their data to a zip file in this folder, and return it."""
    out = folder / "coordinator_audit.zip"
    with ZipFile(out, "w", ZIP_DEFLATED) as target:
        for package in PACKAGES:
            for name, file in _below(files(package), package):
                target.writestr(name, file.read_bytes())
        for place, beside in DATA.items():
            if not any(name.startswith(f"{place}/") for name in target.namelist()):
                for name, file in _below(Path(__file__).parents[2] / beside, place):
                    target.writestr(name, file.read_bytes())
    return out


def ship(spark: SparkSession) -> None:
    """Give the code to the Python workers of a session through Spark Connect, for as long as the session lasts."""
    with tempfile.TemporaryDirectory(prefix="coordinator-audit-") as folder:
        spark.addArtifacts(str(code_zip(Path(folder))), pyfile=True)


def _below(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        name = f"{prefix}/{entry.name}"
        if entry.is_file():
            yield name, entry
        elif entry.name != "__pycache__":
            yield from _below(entry, name)


DELTA_CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}

SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Environment variable that ``spark-submit`` sets."""

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Of a JVM that has little to do: its second compiler (C2) takes half of the processor time of a start, and what it
makes is hardly run.

Without C2 a JVM has room for 48 MiB of compiled code, which the tables of one night fill: from then on it compiles
nothing, and then it fails. With C2 it has 240 MiB, of address space alone.
"""

JAVA_VERSION = re.compile(r'version "((\d+)[^"]*)"')
OLDEST_JAVA = 17


def get_or_create(wanted: SparkSettings, *, has_little_to_do: bool = False) -> SparkSession:
    """Return the active session unchanged (Databricks, spark-submit, tests); otherwise a new one with these settings.

    ``has_little_to_do``: another process runs the steps, and a new JVM is one that starts quickly.

    Raises:
        InputError: the client of Spark is too old, there is no Java on which Spark runs, or Delta's jars cannot be
            downloaded.
    """
    _check_client()
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if DATABRICKS in os.environ:  # the session exists, but is active only once a task has asked for it
        return SparkSession.builder.getOrCreate()
    if wanted.remote is not None and not wanted.remote.startswith("local"):
        remote = SparkSession.builder.remote(wanted.remote).getOrCreate()
        ship(remote)
        return remote
    return _submitted(wanted) if SUBMITTED in os.environ else _local(wanted, has_little_to_do=has_little_to_do)


def _check_client() -> None:
    """Raise InputError for a client that cannot give a row to a task of its choice: a night would fail halfway.

    The client of Databricks Runtime 17.3 calls itself 4.0.0 and can, so that the version does not decide.
    """
    if not hasattr(DataFrame, "repartitionById"):
        raise InputError(
            f"this client of Spark, pyspark {pyspark.__version__}, has no DataFrame.repartitionById: use pyspark 4.1; "
            "on Databricks environment version 5, or Databricks Runtime 17.3 or later"
        )


def _submitted(wanted: SparkSettings) -> SparkSession:
    """Return the session of ``spark-submit``. Its master, its jars and its ``--conf`` override these settings."""
    submitted = SparkConf()
    builder = SparkSession.builder
    for key, value in {**DELTA_CONF, **wanted.conf}.items():
        # Who submits knows the cluster: what is given there counts more than our defaults.
        if not submitted.contains(key):
            builder = builder.config(key, value)
    return builder.getOrCreate()


def _local(wanted: SparkSettings, *, has_little_to_do: bool) -> SparkSession:
    """Return a session in a new JVM, through Spark Connect if ``remote`` is set."""
    # The JVM starts the Python workers and data source planners: they need this interpreter and these packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH")])
    )
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("coordinator-audit")
    conf = {**DELTA_CONF, **wanted.conf}
    if has_little_to_do:
        conf[JAVA_OPTIONS] = f"{QUICK_START} {conf.get(JAVA_OPTIONS, '')}".strip()
    for key, value in conf.items():
        builder = builder.config(key, value)
    builder = _with_delta_jars(builder)
    builder = builder.master(wanted.master) if wanted.remote is None else builder.remote(wanted.remote)
    try:
        with kept_apart():
            return builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise InputError(f"Spark did not start: {_start_problem()}") from error


def _with_delta_jars(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Add Delta's jars. They are downloaded from Maven once and kept next to the interpreter; Spark has the rest."""
    jars = _delta_jars()
    if jars:
        return builder.config("spark.jars", ",".join(jars))
    from delta import configure_spark_with_delta_pip  # not installed where a session already exists

    if os.access(sys.prefix, os.W_OK):
        builder = builder.config("spark.jars.ivy", str(_ivy_folder()))
    return configure_spark_with_delta_pip(builder)


def _ivy_folder() -> Path:
    return Path(sys.prefix) / "ivy"


def _delta_jars() -> list[str]:
    return sorted(str(jar) for jar in (_ivy_folder() / "jars").glob("io.delta_*.jar"))


def _start_problem() -> str:
    """Return why the JVM did not start, as far as it can be found out; Spark's own error does not say it."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else "java"
    needs = f"Spark needs Java {OLDEST_JAVA} or later"
    try:
        version_text = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    except OSError:
        return f"{needs}, but {java} does not exist: install it, or set JAVA_HOME"
    version = JAVA_VERSION.search(version_text)
    if version is not None and int(version[2]) < OLDEST_JAVA:
        return f"{needs}, but {java} is version {version[1]}: install a later one, or set JAVA_HOME"
    if not _delta_jars():
        return f"Delta's jars could not be downloaded from Maven; the attempts are in {jvm_output()}"
    return f"the output of the JVM is in {jvm_output()}"


if __name__ == "__main__":  # the last step of `make setup`: download the jars, and start Spark once
    get_or_create(settings.load().spark).range(1).count()
