"""The three ways of Spark to fold groups with a state: ``python -m benchmarks.grouped_state [--groups N] [--large N]``.

- a sort with ``mapInArrow``: rows, and the states of the night before as rows before them, in order; states in Delta;
- ``applyInArrow``: the same rows, each group as one table, which the function puts in order; states in Delta;
- ``transformWithState``: a streaming query that ends when nothing is left (``availableNow``); states in RocksDB.

Two nights are folded: groups of 50 records and one of many, half of the records each. The fold is the cheapest that
needs an order (a count and a rolling sum), so that what is measured is the way and not the fold. All three have to give
the same states. Prints JSON: for each the seconds of both nights and the most memory of a Python worker, MB.
"""

import argparse
import json
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from jobs import settings
from jobs.tables import session

RECORDS = 50
MODULUS = 1_000_003
STATE = "group_id long, log_offset long, count long, total long, worker_mb long"
EMPTY = (0, 0)
Fold = tuple[int, int]


def folded(state: Fold, offsets: Iterable[int]) -> Fold:
    count, total = state
    for offset in offsets:
        count, total = count + 1, (total * 31 + offset) % MODULUS
    return count, total


def worker_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def row(group: int, state: Fold) -> tuple[int, int, int, int, int]:
    return group, -1, *state, worker_mb()


def batch(rows: Sequence[tuple[int, ...]]) -> pa.RecordBatch:
    names = ("group_id", "log_offset", "count", "total", "worker_mb")
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return pa.RecordBatch.from_arrays([pa.array(column, pa.int64()) for column in columns], names)


def in_order(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Fold rows that are in the order of group and offset; a state is a row with the offset -1."""
    group, state = None, EMPTY
    for rows in batches:
        done = []
        columns = (rows.column(name).to_pylist() for name in ("group_id", "log_offset", "count", "total"))
        for key, offset, count, total in zip(*columns, strict=True):
            if key != group:
                if group is not None:
                    done.append(row(group, state))
                group, state = key, EMPTY
            state = (count, total) if offset < 0 else folded(state, (offset,))
        yield batch(done)
    if group is not None:
        yield batch([row(group, state)])


def one_table(table: pa.Table) -> pa.Table:
    """Fold a group that is there as one table, in any order."""
    ordered = table.sort_by("log_offset")
    offsets = ordered["log_offset"].to_pylist()
    first = ordered.slice(0, 1).to_pylist()[0]
    state = (first["count"], first["total"]) if offsets[0] < 0 else EMPTY
    return pa.Table.from_batches([batch([row(first["group_id"], folded(state, offsets[offsets[0] < 0 :]))])])


class Processor(StatefulProcessor):
    """The same fold with a state of Spark's."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Take the state."""
        self.state = handle.getValueState("state", "count long, total long")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        """Fold the rows of a group that one batch has."""
        state = (self.state.get() if self.state.exists() else None) or EMPTY
        offsets = sorted(offset for frame in rows for offset in frame["log_offset"].tolist())
        state = folded((state[0], state[1]), offsets)
        self.state.update(state)
        names = ["group_id", "log_offset", "count", "total", "worker_mb"]
        yield pd.DataFrame([row(int(key[0]), state)], columns=names)

    def close(self) -> None:
        """Nothing is open."""


def with_states(rows: DataFrame, place: Path) -> DataFrame:
    """The rows of a night, and the states of the night before as rows before them."""
    rows = rows.selectExpr("*", "0L AS count", "0L AS total")
    if not place.exists():
        return rows
    states = rows.sparkSession.read.format("delta").load(str(place))
    return rows.unionByName(states.drop("worker_mb"))


def by_sort(rows: DataFrame, place: Path) -> None:
    """A sort with mapInArrow."""
    given = with_states(rows, place).repartition("group_id").sortWithinPartitions("group_id", "log_offset")
    given.mapInArrow(in_order, STATE).write.format("delta").mode("overwrite").save(str(place))


def by_group(rows: DataFrame, place: Path) -> None:
    """applyInArrow."""
    given = with_states(rows, place).groupBy("group_id").applyInArrow(one_table, STATE)
    given.write.format("delta").mode("overwrite").save(str(place))


def by_stream(rows: DataFrame, place: Path) -> None:
    """transformWithState: the rows of a night are the files that have come since."""
    spark = rows.sparkSession
    arrived = place.parent / "arrived"
    rows.write.mode("append").parquet(str(arrived))
    given = spark.readStream.schema(rows.schema).parquet(str(arrived)).groupBy("group_id")
    made = given.transformWithStateInPandas(
        statefulProcessor=Processor(), outputStructType=STATE, outputMode="Update", timeMode="None"
    )

    def write(states: DataFrame, number: int) -> None:
        states.write.format("delta").mode("overwrite").save(str(place))

    stream = made.writeStream.outputMode("update").foreachBatch(write).trigger(availableNow=True)
    stream.option("checkpointLocation", str(place.parent / "checkpoint")).start().awaitTermination()


WAYS: tuple[Callable[[DataFrame, Path], None], ...] = (by_sort, by_group, by_stream)


def nights(spark: SparkSession, groups: int, large: int) -> list[DataFrame]:
    """The rows of both nights; the last group has ``large`` records, half of them each night."""
    made = []
    for night in (0, 1):
        each, most = RECORDS // 2, large // 2
        small = spark.range(groups * each).selectExpr(
            f"id % {groups} AS group_id", f"id DIV {groups} + {night * each} AS log_offset"
        )
        one = spark.range(most).selectExpr(f"{groups}L AS group_id", f"id + {night * most} AS log_offset")
        made.append(small.unionByName(one))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grouped_state")
    parser.add_argument("--groups", type=int, default=5_000)
    parser.add_argument("--large", type=int, default=200_000)
    given = parser.parse_args()
    chosen = settings.load(flags={"spark.master": "local[2]"})
    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    spark = session.get_or_create(chosen.spark)
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
    spark.conf.set("spark.sql.shuffle.partitions", 4)
    found, states = {}, []
    in_no_time = nights(spark, 10, 10)[0]
    with tempfile.TemporaryDirectory() as folder:
        by_sort(in_no_time, Path(folder, "begun"))  # Spark starts its workers
        for way in WAYS:
            place = Path(folder, way.__name__, "states")
            place.parent.mkdir()
            seconds = []
            for rows in nights(spark, given.groups, given.large):
                begin = time.perf_counter()
                way(rows, place)
                seconds.append(round(time.perf_counter() - begin, 2))
            made = spark.read.format("delta").load(str(place))
            states.append(sorted((each.group_id, each["count"], each.total) for each in made.collect()))
            most = made.agg({"worker_mb": "max"}).first()
            found[way.__name__] = {"seconds": seconds, "worker_mb": None if most is None else most[0]}
            shutil.rmtree(place.parent)
    assert states[0] == states[1] == states[2], "the three ways give the same states"
    assert len(states[0]) == given.groups + 1
    print(json.dumps({"groups": given.groups, "large": given.large, **found}, indent=2))


if __name__ == "__main__":
    main()
