"""The histories of all groups, as rows that Spark brings together; in this process: ``relations.stored_histories``."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from pyspark.sql import DataFrame

from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.folds.share_deliveries import ShareDelivery
from coordinator_core.broker_log.events import BrokerEvent
from coordinator_core.history.share_rows import SharePartitionRow
from coordinator_core.records import LogPosition
from jobs.pipeline.share_delivery import share_deliveries
from jobs.relations.commit_sums import END_TYPES, GROUP_ENDS_TEXT, SUMMARIES, Summary, sums_of_group
from jobs.relations.record_sizes import SIZES, record_size
from jobs.relations.stored_histories import OWN_TIMES
from jobs.relations.stored_logs import LogFacts
from jobs.sources.files import GROUP_TOPICS
from jobs.tables.broker_events import BROKER_EVENTS
from jobs.tables.delta import Tables
from jobs.tables.history import FOLDED
from jobs.tables.row_reader import reader
from jobs.tables.spark_reader import SparkReader

ROW_TYPES: Final[dict[str, Any]] = {
    **{name: row for row, name in FOLDED.items() if row is not SharePartitionRow},
    "deliveries": ShareDelivery,
    "events": BrokerEvent,
}
"""Row types that make up a history, by the name of their kind."""

IN_LOG: Final = ("log_topic", "log_partition", "log_offset", "timestamp_ms")
SIZE: Final = (*IN_LOG, "record_type", "size", "records")

LEFT_OUT: Final = "map('ignoreNullFields', 'true')"
"""Fields that are null are not in the text: for a reader of a row type they are None then."""
KEPT: Final = "map('ignoreNullFields', 'false')"
"""Fields that are null are in the text: functions of the relations read the row, and they expect all columns."""

Given = dict[str, Any]
Place = tuple[str, int]
"""Log topic and log partition."""


def history_rows(tables: Tables, cluster: str) -> DataFrame:
    """Return the rows of the history of each group: ``group_id``, ``own_ms``, ``kind``, ``row``.

    ``row`` is one of the row type in ``ROW_TYPES`` that ``kind`` names, a row of ``Summary`` (kind ``summaries``), the
    tombstone of a group (``group_ends``) or a row of ``SIZES`` (``sizes``), as JSON: with a column for each kind, every
    row would carry the null structs of all others through the shuffle and into Python. One more row for each group has
    only ``own_ms``: the latest time of its log partition. Sums replace the rows of share partitions.
    """
    read = SparkReader(tables.spark, tables.location)

    def query(text: str, **values: Any) -> DataFrame:
        return read.query(text, cluster=cluster, **values)

    of_cluster = "SELECT * FROM ${} WHERE cluster = :cluster".format
    rows = {name: query(of_cluster(name)) for name in FOLDED.values() if name in ROW_TYPES}
    rows["deliveries"] = share_deliveries(query(of_cluster(FOLDED[SharePartitionRow])))
    if tables.exists(BROKER_EVENTS):
        rows["events"] = query(of_cluster(BROKER_EVENTS.name) + " AND group_id IS NOT NULL")
    kinds = [
        *(_of_kind(frame, name, ROW_TYPES[name]._fields, LEFT_OUT) for name, frame in rows.items()),
        _of_kind(query(SUMMARIES), "summaries", Summary._fields, KEPT),
        _of_kind(query(GROUP_ENDS_TEXT, types=END_TYPES), "group_ends", IN_LOG, KEPT),
        _of_kind(query(SIZES.format(among="TRUE"), topics=GROUP_TOPICS), "sizes", SIZE, KEPT),
    ]
    known = query(OWN_TIMES.format(among="TRUE"), topics=GROUP_TOPICS)
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), kinds, known)


def _of_kind(rows: DataFrame, kind: str, columns: Sequence[str], nulls: str) -> DataFrame:
    """Return these columns as the JSON of rows of a kind; ``nulls``: what becomes of null fields."""
    row = f"to_json(struct({', '.join(f'`{column}`' for column in columns)}), {nulls})"
    return rows.selectExpr("group_id", f"'{kind}' AS kind", f"{row} AS row")


def by_group(rows: DataFrame) -> DataFrame:
    """Bring the rows of each group together. Sorting by range would read all rows twice."""
    return rows.repartition("group_id").sortWithinPartitions("group_id")


def gathered(rows: Iterable[Given], logs: LogFacts, topic_ends: Mapping[str, Sequence[int]]) -> Iterator[GroupHistory]:
    """Yield the history of each group from rows of ``history_rows``, in which the rows of a group are adjacent.

    ``topic_ends``: when topics were deleted (ms), by name.
    """
    readers = {kind: reader(row) for kind, row in ROW_TYPES.items()}
    for group_id, of_group in groupby(rows, itemgetter("group_id")):
        own_ms, found = 0, list[Any]()
        summaries, ends = defaultdict[Place, list[Summary]](list), defaultdict[Place, list[LogPosition]](list)
        for row in of_group:
            own_ms = max(own_ms, row["own_ms"] or 0)
            if (kind := row["kind"]) is None:
                continue
            given = json.loads(row["row"])
            if kind == "group_ends":
                at = LogPosition(given["log_partition"], given["log_offset"], given["timestamp_ms"])
                ends[given["log_topic"], given["log_partition"]].append(at)
            elif kind == "summaries":
                summaries[given["log_topic"], given["log_partition"]].append(Summary(**given))
            else:
                found.append(record_size(given) if kind == "sizes" else readers[kind](given))
        for place, of_log in summaries.items():
            found += sums_of_group(of_log, ends[place], topic_ends)
        if all(isinstance(each, BrokerEvent) for each in found) and not own_ms:
            continue  # these logs have no record of the group
        yield GroupHistory.gather(group_id, own_ms, found, *logs)
