"""The history of topics, from the records of the metadata log in the tables; ``sources.topics`` reads log files.

It is small. Where the beginning of the metadata log is not there, it begins with the KRaft snapshot that took its
place.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

from coordinator_core.cluster.broker_history import COORDINATED, NO_LEADER
from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS
from coordinator_core.cluster.given_topics import GivenTopics
from coordinator_core.cluster.metadata_log import QUIET_MS, Snapshot, fold_metadata_log
from coordinator_core.cluster.topic_changes import HistoryGap, hole_before
from coordinator_core.cluster.topic_history import GROUP_RESOURCE, TopicHistory
from coordinator_core.errors import DecodeError, UnknownTypeError
from coordinator_core.history.strange_topics import NAMING_TYPES, kinship, named_topics
from coordinator_core.records import (
    GROUP_LOG,
    AnyRecord,
    CoordinatorRecord,
    Family,
    LogPosition,
    MetadataRecordType,
    RecordType,
)
from coordinator_core.wire.control import SNAPSHOT_FOOTER, SNAPSHOT_HEADER, control_name, snapshot_time_ms
from coordinator_core.wire.record_decoder import NO_BATCH, RecordDecoder
from jobs.relations.positions import stored_position
from jobs.relations.settings import read_settings, settings_news_ms, snapshot_news
from jobs.relations.topic_lines import has_new_topic_lines, topics_of_stored_lines
from jobs.sources.files import METADATA_TOPIC, SNAPSHOT_SUFFIX
from jobs.sources.snapshot_files import topics_of
from jobs.tables.reader import Row, TableReader, found_once, known_rows

IN_LOG: Final = "stray IS NULL"
"""Rows with an offset in the log; those of snapshots have none."""
IN_SNAPSHOT: Final = f"stray LIKE '%{SNAPSHOT_SUFFIX}#%'"
NAME: Final = "split_part(stray, '#', 1)"
"""The name of the snapshot that a row comes from."""
SAYS_SOMETHING: Final = (
    f"NOT coalesce(record_type = {MetadataRecordType.NO_OP.value} AND log_offset = batch_base, FALSE)"
)
"""Controllers write a no-op twice a second, mostly as a batch of its own, which then says nothing."""
OF_BROKERS: Final = ", ".join(
    str(each.value)
    for each in (
        MetadataRecordType.REGISTER_BROKER,
        MetadataRecordType.REGISTER_CONTROLLER,
        MetadataRecordType.UNREGISTER_BROKER,
        MetadataRecordType.FENCE_BROKER,
        MetadataRecordType.UNFENCE_BROKER,
        MetadataRecordType.BROKER_REGISTRATION_CHANGE,
        MetadataRecordType.FEATURE_LEVEL,
        MetadataRecordType.BEGIN_TRANSACTION,
        MetadataRecordType.END_TRANSACTION,
        MetadataRecordType.ABORT_TRANSACTION,
    )
)
COORDINATED_TOPICS: Final = f"topic_record.value.name IN ({', '.join(repr(name) for name in sorted(COORDINATED))})"
COORDINATED_IDS: Final = (
    f"SELECT topic_record.value.topicId FROM $cluster_records WHERE cluster = :cluster AND {COORDINATED_TOPICS}"
)
LEADERLESS_IDS: Final = (
    "SELECT coalesce(partition_change_record.value.topicId, partition_record.value.topicId) FROM $cluster_records "
    f"WHERE cluster = :cluster AND (partition_change_record.value.leader = {NO_LEADER} "
    f"OR partition_record.value.leader = {NO_LEADER})"
)
"""The topics of which a partition had no leader at some time."""
OF_IDS: Final = " OR ".join(
    f"{record}.value.topicId IN ({ids})"
    for record, ids in (
        ("partition_record", COORDINATED_IDS),
        ("partition_change_record", COORDINATED_IDS),
        ("topic_record", LEADERLESS_IDS),
        ("partition_record", LEADERLESS_IDS),
        ("partition_change_record", LEADERLESS_IDS),
    )
)
OF_COORDINATORS: Final = f"(record_type IN ({OF_BROKERS}) OR {COORDINATED_TOPICS} OR {OF_IDS})"
"""The records that say who coordinates groups: of brokers, and of the partitions of the logs of coordinators; and of
the topics that were without a leader.
"""
OF_GROUPS: Final = (
    f"({OF_COORDINATORS} OR (record_type = {MetadataRecordType.CONFIG.value} "
    f"AND config_record.value.resourceType = {GROUP_RESOURCE}))"
)
"""The same, and what is set for groups."""
BEFORE_QUIET: Final = (
    "log_offset IN (SELECT log_offset FROM (SELECT log_offset, timestamp_ms, lead(timestamp_ms) OVER (ORDER BY "
    "log_offset) AS next_ms FROM $cluster_records WHERE cluster = :cluster AND stray IS NULL) AS places "
    f"WHERE next_ms - timestamp_ms > {QUIET_MS})"
)
"""The no-op after which nothing was written for long: it tells when a broker had gone that nobody fenced."""
WITH_QUIET: Final = {which: f"({which} OR {BEFORE_QUIET})" for which in (SAYS_SOMETHING, OF_GROUPS)}
RECORD: Final = "log_partition, log_offset, timestamp_ms, batch_base, value"
LISTED: Final = (
    "SELECT topic, topic_id, partition, timestamp_ms, replica_racks FROM $end_offsets WHERE cluster = :cluster"
)
A_FEW: Final = "LIMIT 200"
FIRST: Final = "ORDER BY log_partition, log_offset LIMIT 2000"
"""The records of groups that are looked at to see whether the metadata log is of their cluster: any few, which mostly
name a topic that it has, otherwise the first ones.
"""
OFFSETS_EXAMINED: Final = 10_000
"""So many offsets of a log partition are looked at, from the first that names a topic on."""
OF_CLUSTER: Final = "FROM $cluster_records WHERE cluster = :cluster"


class KeptSnapshot(NamedTuple):
    """A snapshot that is in the tables: its file's name, the last position that it sums up, the run that took it in."""

    name: str
    at: LogPosition
    run_id: str


class _SeenLog(NamedTuple):
    """What there is of a metadata log: its first offset (None: only snapshots), its last time (ms), and the snapshot
    that it begins with.
    """

    first: int | None
    last_ms: int | None
    begin: KeptSnapshot | None


@found_once
def stored_topics(tables: TableReader, cluster: str) -> TopicHistory | None:
    """Return the history of a cluster's topics: of its metadata log, otherwise of its snapshots, otherwise of lines of
    brokers' logs; None without all of these.

    It has the settings that snapshots show in each case.
    """
    history = _of_log(tables, cluster)
    of = kinship(history, {"": _naming_records(tables, cluster, A_FEW)})
    if not of.is_proven:
        of = kinship(history, {"": _naming_records(tables, cluster, FIRST)})
    if of.strange is not None:
        history = TopicHistory.of_another_cluster(of.strange)
    elif history is not None:
        history.is_of_groups = of.is_proven
    if history is None:
        history = _of_snapshots(tables, cluster) or topics_of_stored_lines(tables, cluster)
    if history is not None:
        history.snapshots = read_settings(tables, cluster)
    return history


def stored_for_groups(tables: TableReader, cluster: str) -> TopicHistory | None:
    """Return who coordinates groups, and what is set for them; only the records of both are read."""
    history = _of_log(tables, cluster, OF_GROUPS)
    if history is not None:
        history.snapshots = read_settings(tables, cluster)
    return history


@found_once
def topics_given(tables: TableReader, cluster: str) -> GivenTopics:
    """Return what the tables tell of the topics: over which times, and what is missing; without their history."""
    seen = _seen_log(tables, cluster)
    if seen is None:
        if _of_snapshots(tables, cluster) is not None:
            return GivenTopics(is_listed=True)
        lines = topics_of_stored_lines(tables, cluster)
        return GivenTopics() if lines is None else lines.given
    if not _names_known_topics(tables, cluster) and (known := stored_topics(tables, cluster)) is not None:
        return known.given
    # Whether the history is whole, and from when on, shows at its beginning: the rest need not be decoded for it.
    begin = None if seen.begin is None else Snapshot([], seen.begin.at)
    rows = tables.rows(f"SELECT {RECORD} {OF_CLUSTER} AND {IN_LOG} ORDER BY log_offset LIMIT 100", cluster=cluster)
    topics = fold_metadata_log(_records(rows), begin).given
    until_ms = topics.until_ms if seen.last_ms is None else max(topics.until_ms, seen.last_ms)
    hole = first_hole(tables, cluster)
    if hole is None or topics.gap is not None:
        return topics._replace(until_ms=until_ms)
    return topics._replace(until_ms=until_ms, gap=hole.cause, whole_ms=hole.whole_ms)


def require_one_cluster(tables: TableReader, cluster: str, topics: TopicHistory | None) -> None:
    """Raise InputError where the log partitions of groups are of two clusters; ``topics`` are those that were read."""
    if topics is None or topics.strange is not None or not tables.exists("group_records"):
        return
    rows = tables.rows(
        "SELECT log_partition, min(log_offset) AS log_offset FROM $group_records WHERE cluster = :cluster "
        "AND log_topic = :topic AND record_type IN :types AND value IS NOT NULL AND log_offset IS NOT NULL "
        "AND log_partition IS NOT NULL GROUP BY log_partition",
        cluster=cluster,
        topic=GROUP_LOG,
        types=[kind.value for kind in NAMING_TYPES if kind is not RecordType.GROUP_METADATA],
    )
    firsts = {row["log_partition"]: row["log_offset"] for row in rows}
    offsets = ", ".join(str(offset) for offset in sorted(set(firsts.values())))
    records = _naming_records(tables, cluster, f"AND log_offset IN ({offsets})") if firsts else ()
    # One query asked for all partitions, so that it found these offsets in others, too.
    first_of = {first.at.partition: first for first in records if firsts.get(first.at.partition) == first.at.offset}
    logs = {}
    for partition, first in sorted(first_of.items()):
        behind = f"AND log_partition = {partition} AND log_offset < {first.at.offset + OFFSETS_EXAMINED} {FIRST}"
        logs[f"{GROUP_LOG}-{partition}"] = chain([first], _naming_records(tables, cluster, behind))
    kinship(topics, logs)


def _names_known_topics(tables: TableReader, cluster: str) -> bool:
    """Return whether records of groups name topics of the history that was stored; or none at all."""
    ids, assigned = set[str](), dict[tuple[str, int], int]()
    for record in _naming_records(tables, cluster, A_FEW):
        its_ids, partitions = named_topics(record)
        ids |= its_ids
        assigned = dict.fromkeys(partitions, record.at.timestamp_ms) | assigned
    if not ids and not assigned:
        return True
    # Topics of two clusters can have one name and size, but not one id: ids decide where records have them.
    column, values = ("topic_id", ids) if ids else ("topic", {name for name, _ in assigned})
    known = tables.rows(
        "SELECT t.topic AS topic, t.partitions AS partitions, t.since.timestamp_ms AS since_ms "
        f"FROM $topic_history AS t WHERE cluster = :cluster AND {column} IN :named",
        cluster=cluster,
        named=sorted(values),
    )
    if ids:
        return next(known, None) is not None
    lives = [(row["topic"], row["partitions"], row["since_ms"] - CLOCK_TOLERANCE_MS) for row in known]
    return all(
        any(name == topic and number < partitions and since_ms <= time_ms for topic, partitions, since_ms in lives)
        for (name, number), time_ms in assigned.items()
    )


def _naming_records(tables: TableReader, cluster: str, which: str) -> Iterator[AnyRecord]:
    """Yield records of groups that say which topics a group has, then offset commits with the id of a topic."""
    rows = known_rows(
        tables,
        "SELECT log_partition, log_offset, timestamp_ms, batch_base, key, value "
        "FROM $group_records WHERE cluster = :cluster AND log_topic = :topic AND record_type IN :types "
        f"AND value IS NOT NULL AND log_offset IS NOT NULL AND log_partition IS NOT NULL {which}",
        cluster=cluster,
        topic=GROUP_LOG,
        types=[record_type.value for record_type in NAMING_TYPES],
    )
    decoder = RecordDecoder(Family.GROUP)
    for row in rows:
        at = stored_position(row["log_partition"], row["log_offset"], row["timestamp_ms"])
        yield decoder.record(at, bytes(row["key"]), bytes(row["value"]), row["batch_base"])
    commits = known_rows(
        tables,
        "SELECT log_partition, log_offset, timestamp_ms, topic_id FROM $offset_commits WHERE cluster = :cluster "
        f"AND topic_id IS NOT NULL AND log_offset IS NOT NULL AND log_partition IS NOT NULL {which}",
        cluster=cluster,
    )
    for row in commits:
        at = stored_position(row["log_partition"], row["log_offset"], row["timestamp_ms"])
        yield CoordinatorRecord(at, RecordType.OFFSET_COMMIT, {}, {"topicId": row["topic_id"]}, None, NO_BATCH)


def _of_snapshots(tables: TableReader, cluster: str) -> TopicHistory | None:
    """Return the history in the snapshots of the cluster (command ``snapshot``) that were taken in."""
    history = topics_of(known_rows(tables, LISTED, cluster=cluster))
    return history if len(history) else None


def _of_log(tables: TableReader, cluster: str, which: str = SAYS_SOMETHING) -> TopicHistory | None:
    """Return the history in the metadata log, by the records ``which``; None where nothing of it was taken in."""
    seen = _seen_log(tables, cluster)
    if seen is None:
        return None
    begin = None
    if seen.begin is not None:
        content = tables.rows(
            f"SELECT {RECORD} {OF_CLUSTER} AND {NAME} = :name ORDER BY place", cluster=cluster, name=seen.begin.name
        )
        begin = Snapshot(list(_records(content)), seen.begin.at)
    log = tables.rows(
        f"SELECT {RECORD} {OF_CLUSTER} AND {IN_LOG} AND ({which} OR log_offset = :first) ORDER BY log_offset",
        cluster=cluster,
        first=seen.first,
    )
    history = fold_metadata_log(_records(log), begin)
    # Only a broker that nobody fenced asks for the no-ops before quiet times: to find them takes the whole log.
    if history.brokers.has_unseen_ends and which not in WITH_QUIET.values():
        return _of_log(tables, cluster, WITH_QUIET[which])
    if seen.last_ms is not None:
        history.last_seen_ms = max(history.last_seen_ms, seen.last_ms)
    hole = first_hole(tables, cluster)
    if hole is not None:
        history.gaps.append(hole)
    return history


def _seen_log(tables: TableReader, cluster: str) -> _SeenLog | None:
    """Return what there is of the metadata log; None: nothing, so that topics do not come from it."""
    if not tables.exists("cluster_records"):
        return None
    (seen,) = tables.rows(
        f"SELECT min(log_offset) FILTER (WHERE {IN_LOG}) AS first, "
        f"max(timestamp_ms) FILTER (WHERE {IN_LOG}) AS last_ms, {_has_snapshots()} {OF_CLUSTER}",
        cluster=cluster,
    )
    begin = snapshot(tables, cluster) if seen["has_snapshots"] else None
    return None if seen["first"] is None and begin is None else _SeenLog(seen["first"], seen["last_ms"], begin)


def first_hole(tables: TableReader, cluster: str) -> HistoryGap | None:
    """Return the first place at which the metadata log of a cluster lacks records, None if there is none."""
    log = (
        f"FROM $log_records WHERE cluster = :cluster AND log_topic = :topic AND {IN_LOG} "
        "AND kind IN ('record', 'control')"
    )
    given = {"cluster": cluster, "topic": METADATA_TOPIC}
    counts = tables.rows(
        f"SELECT max(log_offset) - min(log_offset) + 1 AS offsets, count(*) AS records {log} GROUP BY log_partition",
        **given,
    )
    # Counting needs no order; only a log that has a hole is put in order to find where.
    if all(row["offsets"] <= row["records"] for row in counts):
        return None
    order = "OVER (PARTITION BY log_partition ORDER BY log_offset)"
    before = f"lag(log_offset) {order} AS before, lag(timestamp_ms) {order} AS whole_ms"
    places = tables.rows(
        "SELECT log_partition, log_offset, timestamp_ms, whole_ms FROM "
        f"(SELECT log_partition, log_offset, timestamp_ms, {before} {log}) AS places "
        "WHERE before < log_offset - 1 ORDER BY log_offset LIMIT 1",
        **given,
    )
    holes = (tuple(row.values()) for row in places)
    return next((hole_before(LogPosition(*place), whole_ms) for *place, whole_ms in holes), None)


def topic_news_ms(tables: TableReader, cluster: str, after: str, upto: str) -> int | None:
    """Return the time from which runs after ``after`` brought news of topics or settings; None for nothing.

    ``upto`` is the last run of the metadata log that counts. A snapshot of the cluster whose topics differ from those
    of the one before it counts for all times: a hash may prove its topics for a time before.
    """
    if _has_new_listing(tables, cluster, after):
        return -1
    times = [settings_news_ms(tables, cluster, after), _log_news_ms(tables, cluster, after, upto)]
    return min((time_ms for time_ms in times if time_ms is not None), default=None)


def shown_ms(tables: TableReader, cluster: str, after: str, upto: str) -> int | None:
    """Return the time from which runs after ``after`` show the topics, and those before did not; None: of no time.

    Mostly they go on where the log ended. By the clock of the brokers of groups, a change of topics may be earlier.
    """
    if not tables.exists("cluster_records"):
        return None
    (seen,) = tables.rows(
        "SELECT max(timestamp_ms) FILTER (WHERE run_id <= :after) AS known, "
        "min(timestamp_ms) FILTER (WHERE run_id > :after AND run_id <= :upto) AS new, "
        f"min(timestamp_ms) FILTER (WHERE run_id > :after AND run_id <= :upto AND {SAYS_SOMETHING}) AS news "
        f"{OF_CLUSTER} AND {IN_LOG}",
        cluster=cluster,
        after=after,
        upto=upto,
    )
    known, new, news = seen.values()
    if new is None:
        return None
    goes_on = known is not None and new > known
    since_ms: int = known + 1 if goes_on else new - CLOCK_TOLERANCE_MS
    return since_ms if news is None else min(since_ms, news - CLOCK_TOLERANCE_MS)


def _log_news_ms(tables: TableReader, cluster: str, after: str, upto: str) -> int | None:
    """Return the time of the earliest record of the metadata log that these runs brought."""
    if not tables.exists("cluster_records"):
        return None
    (seen,) = tables.rows(
        f"SELECT min(timestamp_ms) FILTER (WHERE {IN_LOG} AND {SAYS_SOMETHING}) AS ms, {_has_snapshots()} "
        f"{OF_CLUSTER} AND run_id > :after AND run_id <= :upto",
        cluster=cluster,
        after=after,
        upto=upto,
    )
    kept = snapshot(tables, cluster) if seen["has_snapshots"] else None
    is_new = kept is not None and after < kept.run_id <= upto
    times = [seen["ms"], kept.at.timestamp_ms if kept is not None and is_new else None]
    return min((time_ms for time_ms in times if time_ms is not None), default=None)


def _has_new_listing(tables: TableReader, cluster: str, after: str) -> bool:
    """Return whether topics come from snapshots of the cluster, and later runs than ``after`` brought others."""
    if after and _seen_log(tables, cluster) is None and has_new_topic_lines(tables, cluster, after):
        return True
    if not after or not tables.exists("end_offsets"):
        return False
    news = snapshot_news(tables, "end_offsets", cluster, after)
    if news is None or _seen_log(tables, cluster) is not None:
        return False
    known = news.known_before
    if known is None:
        return True
    rows = tables.rows(f"{LISTED} AND timestamp_ms >= :known", cluster=cluster, known=known)
    # The first interval of each topic that was there before begins with the known snapshot, and none may end.
    intervals = topics_of(rows).intervals()
    return any(life.until is not None or life.since.timestamp_ms > known for life in intervals)


def _has_snapshots() -> str:
    return f"coalesce(bool_or({IN_SNAPSHOT}), FALSE) AS has_snapshots"


def snapshot(tables: TableReader, cluster: str) -> KeptSnapshot | None:
    """Return the oldest whole snapshot from which the log goes on, the newest where there is no log.

    None where the log has its beginning. A snapshot is whole that has its footer, and of which nothing was set aside.
    """
    of_metadata = "FROM $log_records WHERE cluster = :cluster AND log_topic = :topic"
    given = {"cluster": cluster, "topic": METADATA_TOPIC}
    (log,) = tables.rows(f"SELECT min(log_offset) AS first {of_metadata} AND {IN_LOG}", **given)
    whole = tables.rows(
        f"SELECT {NAME} AS name, log_partition, min(run_id) AS run_id, "
        "max(CASE WHEN control_type = :header THEN value END) AS header "
        f"{of_metadata} AND {IN_SNAPSHOT} GROUP BY {NAME}, log_partition "
        "HAVING bool_or(coalesce(control_type = :footer, FALSE))",
        **given,
        header=control_name(SNAPSHOT_HEADER),
        footer=control_name(SNAPSHOT_FOOTER),
    )
    names = f"SELECT DISTINCT {NAME} AS name FROM {{}} WHERE cluster = :cluster AND {IN_SNAPSHOT}".format
    faulty = {row["name"] for row in tables.rows(names("$quarantine"), cluster=cluster)}
    decoded = {row["name"] for row in tables.rows(names("$cluster_records"), cluster=cluster)}
    # The names begin with the end offset, 20 digits long.
    ends = sorted(
        (int(row["name"][:20]), row["name"], row["log_partition"], row["header"], row["run_id"])
        for row in whole
        if row["name"] in decoded - faulty
    )
    if log["first"] is not None:
        # A snapshot that ends before the log begins leaves a hole; of the others the oldest replaces least of the log.
        ends = [snapshot_end for snapshot_end in ends if snapshot_end[0] >= log["first"] > 0]
    elif ends:
        ends = [snapshot_end for snapshot_end in ends if snapshot_end[0] == ends[-1][0]]
    if not ends:
        return None
    end, name, partition, header, run_id = ends[0]
    try:
        time_ms = snapshot_time_ms(header)
    except DecodeError:
        # What a snapshot says of topics holds without the time in its header.
        time_ms = -1
    return KeptSnapshot(name, LogPosition(partition, end - 1, time_ms), run_id)


def _records(rows: Iterable[Row]) -> Iterator[AnyRecord]:
    decoder = RecordDecoder(Family.METADATA)
    for row in rows:
        offset = -1 if row["log_offset"] is None else row["log_offset"]
        at = LogPosition(row["log_partition"], offset, row["timestamp_ms"])
        try:
            record = decoder.record(at, b"", bytes(row["value"]), row["batch_base"])
        except UnknownTypeError:  # most record types of the metadata log say nothing about topics
            continue
        yield record
