"""Which partitions of the coordinator logs the dumps had, empty ones included, and how many are absent; from tables."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from coordinator_core.history.knowledge import GivenLogs
from coordinator_core.records import GROUP_LOG
from jobs.sources.files import FAMILIES, GROUP_TOPICS, METADATA_TOPIC
from jobs.tables.reader import TableReader

IN_FOLDER: Final = re.compile(r"(?:^|/)([a-zA-Z0-9._-]+)-(\d+)/[^/]+$")
"""Matches a file in the folder of a log partition, as brokers name it."""

Place = tuple[str, int]
"""Topic and partition of a log."""


def given(tables: TableReader) -> dict[str, set[Place]]:
    """Return by cluster each partition that a dump had, empty ones included; of the metadata log none.

    A partition counts as given if a run names it, or if its folder had a segment file, even an empty one.
    """
    logs, places = FAMILIES.keys() - {METADATA_TOPIC}, defaultdict[str, set[Place]](set)
    runs = tables.rows(
        "SELECT DISTINCT cluster, log_topic, log_partition FROM $runs "
        "WHERE job = 'ingest' AND cluster IS NOT NULL AND log_partition IS NOT NULL"
    )
    for row in runs:
        if row["log_topic"] in logs:
            places[row["cluster"]].add((row["log_topic"], row["log_partition"]))
    if tables.exists("dumped_files"):
        for row in tables.rows("SELECT cluster, path FROM $dumped_files"):
            named = IN_FOLDER.search(row["path"])
            if named is not None and named[1] in logs:
                places[row["cluster"]].add((named[1], int(named[2])))
    return dict(places)


def stored_given(tables: TableReader, cluster: str) -> GivenLogs:
    """Return which partitions of the logs of groups were given, and how many there are as the metadata log says."""
    partitions = defaultdict[str, frozenset[int]](frozenset)
    for topic, partition in given(tables).get(cluster, ()):
        if topic in GROUP_TOPICS:
            partitions[topic] |= {partition}
    counts = {
        topic: count
        for (of, topic), count in partition_counts(tables).items()
        if of == cluster and topic in GROUP_TOPICS
    }
    return GivenLogs(dict(partitions), counts)


def partition_counts(tables: TableReader) -> dict[tuple[str, str], int]:
    """Return the partition counts of the coordinator logs at the end of the metadata log, by cluster and topic."""
    if not tables.exists("topic_history"):
        return {}
    topics = "SELECT cluster, topic, partitions FROM $topic_history WHERE until IS NULL AND topic IN :topics"
    return {(row["cluster"], row["topic"]): row["partitions"] for row in tables.rows(topics, topics=[*FAMILIES])}


def absent(tables: TableReader, offsets_topic: str, offsets_partitions: int | None) -> dict[str, int | None]:
    """Return by cluster how many partitions of its given log topics, and of all logs of groups, were not given.

    ``offsets_partitions`` is the partition count of ``offsets_topic``; None: as the metadata log says. Partitions below
    the highest one given exist, even if no count is known. The number is None if none is known to be absent, and the
    count of a topic is not known.
    """
    counts = partition_counts(tables)
    by_cluster = given(tables)
    if offsets_partitions is not None:
        counts |= {(cluster, offsets_topic): offsets_partitions for cluster in by_cluster}
    return {cluster: _absent(cluster, places, counts) for cluster, places in by_cluster.items()}


def _absent(cluster: str, places: set[Place], counts: Mapping[tuple[str, str], int]) -> int | None:
    exist = [topic for topic in GROUP_TOPICS if topic == GROUP_LOG or (cluster, topic) in counts]
    by_topic = {topic: list[int]() for topic in exist}
    for topic, partition in places:
        by_topic.setdefault(topic, []).append(partition)
    total = sum(
        max(0, max([counts.get((cluster, topic), 0), *(number + 1 for number in there)]) - len(there))
        for topic, there in by_topic.items()
    )
    is_known = all((cluster, topic) in counts for topic in by_topic)
    return total if total or is_known else None
