"""The same jobs through Spark Connect, in a process of its own: one process has one kind of session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from jobs.tables import Tables
from tests.jobs.conftest import SAMPLE_LOGS, SMALL
from tests.jobs.lake import TOPIC, decoded, expected, kafka_rows, sample_rows, write_json, write_parquet

SCRIPT = """
import json, sys
from jobs import session, settings, udf
from jobs.tables import Tables
from tests.jobs.lake import take

home, conf, *dumps = sys.argv[1:]
wanted = settings.load(flags={"spark.remote": "local[2]", "spark.conf": json.loads(conf)}).spark
spark = session.get_or_create(wanted)
assert "connect" in type(spark).__module__
for cluster, path in enumerate(dumps):
    take(Tables(spark, home), str(cluster), path)
udf.register(spark)
print(spark.sql(f"SELECT count(decode_key(key).offset_commit) AS n FROM delta.`{home}/log_records`").first().n)
"""


def test_segments_tables_and_lines_through_spark_connect(spark: SparkSession, tmp_path: Path) -> None:
    rows = [row for row in sample_rows() if row["log_partition"] == 0]
    dumps = [
        SAMPLE_LOGS / f"{TOPIC}-0",
        write_parquet(tmp_path / "parquet", kafka_rows(rows)),
        write_json(tmp_path / "dump.jsonl.gz", kafka_rows(rows)),
    ]
    home = tmp_path / "tables"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(home), json.dumps(SMALL), *map(str, dumps)],
        env=os.environ | {"SPARK_TESTING": "1"},  # the server takes any free port
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    tables = Tables(spark, str(home))
    wanted = sorted(expected(rows), key=lambda row: tuple(str(part) for part in row))
    assert [decoded(tables, str(cluster)) for cluster in range(3)] == [wanted] * 3
    commits = sum(row["key"][:2] in (b"\x00\x00", b"\x00\x01") for row in rows)
    assert int(done.stdout.split()[-1]) == 3 * commits
