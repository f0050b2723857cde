"""A night through a catalog against one in a folder: ``python -m benchmarks.catalog [--records N] [--groups N]``.

Both in one ``local[2]`` session, over the same generated log: a first night of all but the last hundredth, then one of
the hundredth; the folder's nights come first in each pair, so that they pay for what the session does once. Then the
findings of all groups, by this process and by Spark, and answers from the catalog in one process, each asked twice.
Prints JSON: seconds of the clock, for nights by step, too, and the ratios; then a line for each answer.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from benchmarks.generate import generate
from benchmarks.nightly import LATER, hold_back, night
from jobs import settings
from jobs.cli.app import app
from jobs.pipeline import findings
from jobs.pipeline.on_spark import findings as on_spark
from jobs.tables import session
from jobs.tables.delta import Tables

SCHEMA = "spark_catalog.audit"
QUESTIONS = (("groups",), ("findings",), ("describe", "group-00001-b"), ("offsets", "group-00001-b"), ("rebalances",))


def seconds(work: Callable[[], Any]) -> float:
    """Return the seconds of the clock that a work takes."""
    begin = time.monotonic()
    work()
    return round(time.monotonic() - begin, 2)


def findings_of_all(tables: Tables, chosen: settings.Settings) -> dict[str, float]:
    """Return the seconds of the findings of all groups, by this process and by Spark; their rows go nowhere."""
    changed = {chosen.cluster: None}

    def by_spark() -> None:
        rows = on_spark.of_groups(tables, changed, chosen.findings)
        rows.write.format("noop").mode("overwrite").save()

    return {
        "this process": seconds(lambda: findings._here(tables, changed, chosen.findings, 1)),
        "Spark": seconds(by_spark),
    }


def ask(question: tuple[str, ...], cluster: str) -> None:
    """Ask the catalog a question.

    Raises:
        RuntimeError: there is no answer.
    """
    done = CliRunner().invoke(app, [*question, "--store", SCHEMA, "--cluster", cluster, "--json"])
    if done.exit_code != 0:
        raise RuntimeError(f"{' '.join(question)}: {done.output}") from done.exception


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--groups", type=int, default=500)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="catalog-") as place:
        log, later = Path(place, "log"), Path(place, "later")
        generate(log, wanted.records, wanted.groups, partitions=4)
        hold_back(log, later, LATER)
        flags = {
            **{"input.paths": [str(log)], "spark.master": "local[2]", "nightly.report": Path(place, "report.html")},
            "spark.conf": {"spark.sql.warehouse.dir": str(Path(place, "warehouse"))},
        }
        chosen = settings.load(environment={}, flags=flags)
        spark = session.get_or_create(chosen.spark)
        spark.sql("CREATE SCHEMA audit")
        homes = {
            "folder": Tables(spark, str(Path(place, "tables")), chosen.engine),
            "catalog": Tables(spark, SCHEMA, chosen.engine),
        }
        found: dict[str, Any] = {}
        for name in ("first night", "a hundredth new"):
            if name == "a hundredth new":
                for file in later.rglob("*.log"):
                    shutil.move(file, log / file.parent.name)
            nights = {home: night(tables, chosen) for home, tables in homes.items()}
            found[name] = nights | {"ratio": round(nights["catalog"]["seconds"] / nights["folder"]["seconds"], 2)}
        found["findings"] = findings_of_all(homes["folder"], chosen)
        print(json.dumps(found, indent=1), flush=True)
        for question in QUESTIONS:
            twice = [seconds(partial(ask, question, chosen.cluster)) for _ in range(2)]
            print(json.dumps({"answer": " ".join(question), "seconds": twice}), flush=True)


if __name__ == "__main__":
    main()
