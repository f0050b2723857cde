"""Which partitions of the coordinator logs the dumps had, empty ones included, and how many are absent; from tables."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Final

from coordinator_core.groups.log_partition import counted, share_partition, shown
from coordinator_core.history.knowledge import GivenLogs
from coordinator_core.records import GROUP_LOG, Family
from jobs.relations.topics import stored_topics
from jobs.sources.files import FAMILIES, GROUP_TOPICS, METADATA_TOPIC, UNKNOWN_PARTITION, log_name
from jobs.sources.printed.logs import OF_LINES
from jobs.tables.reader import TableReader, Value, found_once, known_rows, known_tuples

IN_FOLDER: Final = re.compile(r"(?:^|/)([a-zA-Z0-9._-]+)-(\d+)/[^/]+$")
"""Matches a file in the folder of a log partition, as brokers name it."""

MOST_PLACED: Final = 1000
"""So many keys prove how many partitions a log has, if keys can: some ten are mostly enough."""

PLACED_GROUPS: Final = """
SELECT group_id, log_partition FROM (
  SELECT group_id, log_partition FROM $group_states WHERE cluster = :cluster AND log_topic = :topic
  UNION SELECT group_id, log_partition FROM $commit_summaries WHERE cluster = :cluster AND log_topic = :topic
) AS placed WHERE group_id IS NOT NULL AND log_partition IS NOT NULL LIMIT :most
"""
PLACED_SHARES: Final = """
SELECT DISTINCT group_id, topic_id, partition, p.since.partition AS log_partition FROM $share_partitions AS p
WHERE cluster = :cluster LIMIT :most
"""

Place = tuple[str, int]
"""Topic and partition of a log."""

WITHOUT_EPOCHS: Final = (
    "SELECT DISTINCT log_topic, log_partition FROM $log_ranges WHERE cluster = :cluster AND leader_epoch IS NULL "
    "AND log_partition IS NOT NULL"
)
OF_TEXT: Final = (
    "SELECT DISTINCT log_topic, log_partition FROM $log_records WHERE cluster = :cluster AND source LIKE :text"
)


def numbered(tables: TableReader, cluster: str) -> set[Place]:
    """Return the log partitions that were printed without positions: their offsets are numbers of lines.

    Lines without positions name no leader epoch: the log is only asked where there are ranges without one.
    """
    if next(known_rows(tables, WITHOUT_EPOCHS, cluster=cluster), None) is None:
        return set()
    rows = tables.rows(OF_TEXT, cluster=cluster, text=f"%/{OF_LINES}")
    return {(row["log_topic"], row["log_partition"]) for row in rows}


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
    # An empty segment has no row anywhere: only its path tells that the partition was given.
    for row in known_rows(tables, "SELECT cluster, path FROM $dumped_files"):
        named = IN_FOLDER.search(row["path"])
        if named is not None and named[1] in logs:
            places[row["cluster"]].add((named[1], int(named[2])))
    return dict(places)


@found_once
def stored_given(tables: TableReader, cluster: str) -> GivenLogs:
    """Return which partitions of the logs of groups were given, and how many there are."""
    places, of_lines = given(tables).get(cluster, set()), numbered(tables, cluster)
    partitions: dict[str, frozenset[int] | None] = {}
    for topic, partition in places:
        if topic in GROUP_TOPICS:
            partitions[topic] = frozenset([*(partitions.get(topic) or ()), partition])
    unknown = {topic for topic, number in places if number == UNKNOWN_PARTITION or (topic, number) in of_lines}
    counts = log_counts(tables, cluster, places, of_lines)
    return GivenLogs(
        partitions | dict.fromkeys(unknown & partitions.keys()),
        {topic: counts[topic] for topic in GROUP_TOPICS if topic in counts},
        tuple(log_name(*place) for place in sorted(of_lines)),
    )


def log_counts(
    tables: TableReader, cluster: str, places: Collection[Place], of_lines: Collection[Place]
) -> dict[str, int]:
    """Return how many partitions each log of a cluster's coordinators has, by topic; ``places`` of them were given,
    ``of_lines`` are those that ``numbered`` returns.

    The metadata log tells it as of its end; of the others, the ids of what lies in them, if they prove it.
    """
    topics = (
        "SELECT topic, partitions FROM $topic_history WHERE cluster = :cluster AND until IS NULL AND topic IN :logs"
    )
    counts = dict(known_tuples(tables, topics, cluster=cluster, logs=[*FAMILIES]))
    at_least = shown(place for place in places if place not in of_lines and place[1] != UNKNOWN_PARTITION)
    placed = {topic: _placed(tables, cluster, topic) for topic in at_least}
    return counted(counts, placed, at_least, partial(_names_all, tables, cluster))


def _names_all(tables: TableReader, cluster: str) -> bool:
    """Whether the metadata log is whole."""
    topics = stored_topics(tables, cluster)
    image = None if topics is None else topics.image_at(None)
    return image is not None and image.is_whole


def _placed(tables: TableReader, cluster: str, topic: str) -> Iterator[tuple[str, int]]:
    """Yield what lies in a log, as ``log_partition_of`` takes it, with its log partition."""
    asked: dict[str, Value] = {"cluster": cluster, "topic": topic, "most": MOST_PLACED}
    if FAMILIES[topic] is Family.SHARE:
        for row in known_rows(tables, PLACED_SHARES, **asked):
            yield share_partition(row["group_id"], row["topic_id"], row["partition"]), row["log_partition"]
    else:
        yield from known_tuples(tables, PLACED_GROUPS, **asked)


def absent(tables: TableReader, offsets_topic: str, offsets_partitions: int | None) -> dict[str, int | None]:
    """Return by cluster how many partitions of its given log topics, and of all logs of groups, were not given.

    ``offsets_partitions`` is the partition count of ``offsets_topic``; None: as in ``log_counts``. Partitions below the
    highest one given exist, even if no count is known. The number is None if none is known to be absent, and the
    count of a topic is not known; and where a log does not tell its partition.
    """
    asked = {} if offsets_partitions is None else {offsets_topic: offsets_partitions}
    found = dict[str, int | None]()
    for cluster, places in given(tables).items():
        of_lines = numbered(tables, cluster)
        is_untold = of_lines or any(number == UNKNOWN_PARTITION for _, number in places)
        found[cluster] = None if is_untold else _absent(places, log_counts(tables, cluster, places, of_lines) | asked)
    return found


def _absent(places: set[Place], counts: Mapping[str, int]) -> int | None:
    # Each cluster with groups has their log; that of Connect groups is only counted where something names it.
    exist = [topic for topic in GROUP_TOPICS if topic == GROUP_LOG or topic in counts]
    by_topic = {topic: list[int]() for topic in exist}
    for topic, partition in places:
        by_topic.setdefault(topic, []).append(partition)
    total = sum(
        max(0, max([counts.get(topic, 0), *(number + 1 for number in there)]) - len(there))
        for topic, there in by_topic.items()
    )
    is_known = all(topic in counts for topic in by_topic)
    return total if total or is_known else None
