"""Small tables that expectations are judged on: files of the project that Great Expectations reads without Spark.

A table is there with its key and the columns that its suites name, its newest rows at most. Beside the tables are
answers to questions about several of them, as rows: what refers to a row that is not there, and how the last night
compares with those before it.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.checks import project
from jobs.tables.catalog import CATALOG
from jobs.tables.delta import Tables
from jobs.tables.engine import Engine
from jobs.tables.reader import Row
from jobs.tables.table import Table

MOST_ROWS: Final = 500_000
"""Rows of a table that are judged; the newest of it, where it has times."""

MOST_MISSING: Final = 100
"""Rows named for each kind of reference."""

TIMES: Final = ("at_timestamp_ms", "timestamp_ms", "ended_ms")
GROUP: Final = ("cluster", "group_id")


class Reference(NamedTuple):
    """Columns of a table of which each value is in columns of another one."""

    table: str
    columns: tuple[str, ...]
    other: str
    others: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.table}.{self.columns[-1]} in {self.other}.{self.others[-1]}"


REFERENCES: Final = (
    Reference("log_records", ("cluster", "run_id"), "runs", ("cluster", "run_id")),
    Reference("group_epochs", GROUP, "group_records", GROUP),
    Reference("memberships", GROUP, "group_epochs", GROUP),
    Reference("assignments", (*GROUP, "member_id"), "memberships", (*GROUP, "member_id")),
    Reference("rebalances", (*GROUP, "to_epoch"), "group_epochs", (*GROUP, "epoch")),
    Reference("target_audits", (*GROUP, "epoch"), "group_epochs", (*GROUP, "epoch")),
)

BEFORE: Final = 14
"""Nights that say what is usual."""
FEWEST: Final = 5
"""With fewer of them, nothing is usual."""
SMALL: Final = 10
"""Numbers below this vary by chance: nothing is compared with them."""

VIEWS: Final = {
    project.REFERENCES: pa.schema(
        {"reference": pa.string(), "cluster": pa.string(), "row": pa.string(), "found": pa.bool_()}
    ),
    project.TREND: pa.schema(
        {
            **dict.fromkeys(("cluster", "night", "what"), pa.string()),
            **dict.fromkeys(("value", "usual", "times_usual"), pa.float64()),
        }
    ),
}


def write(folder: Path, tables: Tables) -> None:
    """Write what the suites of a project look at, as files of its data sources; those of a former run are replaced."""
    texts = _texts(folder)
    engine = tables.engine()
    for name, view in ((project.REFERENCES, _references), (project.TREND, _trend)):
        if name in texts:
            rows = pa.Table.from_pylist(list(view(engine)), VIEWS[name])
            _write(folder / project.FOLDERS[project.MEASURES], name, rows)
    for name, table in CATALOG.items() if project.is_by_pandas(folder) else ():
        file = folder / project.FOLDERS[project.TABLES] / f"{name}.parquet"
        # A table is taken to exist if its file does: that of a former run would be judged in its place.
        file.unlink(missing_ok=True)
        if name in texts and tables.exists(table):
            # Conditions name columns within a text, so every word of the suites counts: a column too many does no harm.
            sql, schema = _newest(table, set(re.findall(r"\w+", texts[name])))
            rows = engine.made(sql, schema)
            _write(file.parent, name, rows if isinstance(rows, pa.Table) else rows.toArrow())


def _write(folder: Path, name: str, rows: pa.Table) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, folder / f"{name}.parquet")


def _texts(folder: Path) -> dict[str, str]:
    """Return the text of the expectations on each asset, by its name."""
    assets, texts = {}, defaultdict[str, str](str)
    for file in (folder / "validation_definitions").rglob("*.json"):
        definition = json.loads(file.read_bytes())
        assets[definition["suite"]["name"]] = definition["data"]["asset"]["name"]
    for file in (folder / "expectations").rglob("*.json"):
        suite = json.loads(file.read_bytes())
        if suite["expectations"]:
            asset = assets.get(suite["name"], suite["name"].partition(".")[0])
            texts[asset] += json.dumps(suite["expectations"])
    return texts


def _newest(table: Table, words: set[str]) -> tuple[str, pa.Schema]:
    """Return the query for the key of a table and the columns that are named, and its columns."""
    flat = project.flat_columns(table)
    keys = project.key_of(table)
    chosen = {name: pair for name, pair in flat.items() if name in words or name in keys}
    order = "".join([f" ORDER BY t.{flat[name][0]} DESC" for name in TIMES if name in flat][:1])
    listed = ", ".join(f"t.{path} AS {name}" for name, (path, _) in chosen.items())
    sql = f"SELECT {listed} FROM ${table.name} AS t{order} LIMIT {MOST_ROWS}"
    return sql, pa.schema([(name, column) for name, (_, column) in chosen.items()])


def _references(engine: Engine) -> Iterator[Mapping[str, object]]:
    """Yield a row for each row that refers to one that is not there; one that is found where all are."""
    for reference in REFERENCES:
        if not (engine.exists(reference.table) and engine.exists(reference.other)):
            continue
        pairs = zip(reference.columns, reference.others, strict=True)
        same = " AND ".join(f"c.{column} = p.{other}" for column, other in pairs)
        # Both sides are made distinct before the join: it is one of keys, not of all records with all records.
        keys = f"SELECT DISTINCT {', '.join(reference.columns)} FROM ${reference.table}"
        sql = (
            f"SELECT c.* FROM ({keys} WHERE {reference.columns[-1]} IS NOT NULL) AS c "
            f"LEFT JOIN (SELECT DISTINCT {', '.join(reference.others)} FROM ${reference.other}) AS p ON {same} "
            f"WHERE p.cluster IS NULL LIMIT {MOST_MISSING}"
        )
        # Keys are what is in memory, however many rows have them: all rows of a night have the key of its run.
        most = engine.limits.rows
        reader = engine.up_to(most, f"SELECT count(*) AS number FROM ({keys} LIMIT {max(most, 0) + 1}) AS keys")
        found = True
        for row in reader.rows(sql):
            found = False
            which = ", ".join(f"{name} {row[name]}" for name in reference.columns[1:])
            yield {"reference": str(reference), "cluster": row["cluster"], "row": which, "found": False}
        if found:
            yield {"reference": str(reference), "cluster": None, "row": None, "found": True}


def _trend(engine: Engine) -> Iterator[Mapping[str, object]]:
    """Yield what the last night of each cluster took in and found, and how often the usual that is."""
    records = "SELECT cluster, run_id AS night, sum(records) AS value FROM $runs WHERE job = 'ingest' AND records > 0 "
    if engine.exists("runs"):
        yield from _compared("records", engine.rows(f"{records}GROUP BY cluster, run_id"))
    if engine.exists("nights"):
        rows = sorted(engine.rows("SELECT * FROM $nights"), key=lambda row: (row["cluster"], row["night"]))
        yield from _compared("findings", ({**row, "value": row["findings"]} for row in rows))
        # A night has the number of all rebalances so far: its own are those that the night before had not.
        new = (
            {**row, "value": row["rebalances"] - before["rebalances"]}
            for before, row in pairwise(rows)
            if before["cluster"] == row["cluster"]
        )
        yield from _compared("rebalances", new)


def _compared(what: str, rows: Iterator[Row]) -> Iterator[Mapping[str, object]]:
    by_cluster: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for row in rows:
        if row["value"] is not None:
            by_cluster[row["cluster"]].append((row["night"], float(row["value"])))
    for cluster, values in sorted(by_cluster.items()):
        # Ids of runs and nights begin with their time: in order of ids the last one is the newest.
        *before, (night, value) = sorted(values)
        usual = _usual([number for _, number in before[-BEFORE:]])
        times = None if usual is None else value / usual
        yield {"cluster": cluster, "night": night, "what": what, "value": value, "usual": usual, "times_usual": times}


def _usual(values: Sequence[float]) -> float | None:
    usual = median(values) if len(values) >= FEWEST else 0
    return usual if usual >= SMALL else None
