"""``life.py REMOTE TABLES LOG QUESTION ...``: one client's night on a catalog, its questions, decoding as a function.

Runs in the environment of the client, which has the package and nothing of its tests. Prints the versions, and what
each question printed, with a zero byte between them.
"""

import faulthandler
import io
import os
import platform
import sys
import time
from contextlib import redirect_stdout
from importlib.metadata import version
from pathlib import Path

import pyspark

from coordinator_audit import load_settings, spark_session
from jobs.cli.app import app

# Great Expectations is a package of the server's side. Maintenance takes place each time.
SETTINGS = """
nightly: {steps: [ingest, decode, replay, offsets, findings, report, maintenance], report: report.html}
maintenance: {every_days: 0, vacuum_hours: 1, keep_values_days: 0}
"""


def said(*command: str) -> str:
    """Return what a command printed. How long it took goes to standard error, for a life that is cut off.

    Not typer's runner: that of its lowest version mixes the notes, which go to standard error, with the answer.
    """
    began = time.monotonic()
    with redirect_stdout(io.StringIO()) as printed:
        code = app(list(command), standalone_mode=False)
    assert code in (None, 0, 3), (command, code, printed.getvalue())
    print(f"{' '.join(command)}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return printed.getvalue()


def main(remote: str, tables: str, log: str, *questions: str) -> None:
    """Take in the log, a night twice, ask, maintain, rebuild, decode."""
    spark = spark_session(load_settings(flags={"spark.remote": remote}).spark)
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {tables}")
    packages = ("pyarrow", "pandas", "numpy", "grpcio", "deltalake")
    print(
        platform.python_version(), f"pyspark {pyspark.__version__}", *(f"{name} {version(name)}" for name in packages)
    )
    os.environ["COORDINATOR_AUDIT_SPARK__REMOTE"] = remote
    Path("settings.yaml").write_text(SETTINGS, encoding="utf-8")
    place = ["--tables", tables, "--cluster", "c", "--config", "settings.yaml"]
    said("nightly", log, *place)
    before = spark.table(f"{tables}.log_records").count()
    said("nightly", log, *place)
    assert before == spark.table(f"{tables}.log_records").count() > 0
    for question in questions:
        print("\0" + said(*question.split(","), "--tables", tables, "--cluster", "c", "--json"), end="")
    from coordinator_audit import decode_key  # not at the top: an old client has no Arrow functions

    keys = spark.sql("SELECT X'000100016700017400000003' AS key")
    (row,) = keys.select(decode_key()("key").alias("k")).collect()
    assert (row.k.offset_commit.group, row.k.offset_commit.partition) == ("g", 3)


if __name__ == "__main__":
    # Where it stands, if it hangs.
    faulthandler.dump_traceback_later(float(os.environ["LIFE_S"]) * 0.9)
    main(*sys.argv[1:])
