"""The history of topics in lines of brokers' application logs, where the tables have no metadata log."""

from collections import defaultdict
from typing import Final

from coordinator_core.audit.folds.topic_lines import KINDS, topics_of_lines
from coordinator_core.broker_log.all_files import Epoch, with_zones
from coordinator_core.broker_log.events import BrokerEvent
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.records import GROUP_LOG, Family, RecordType
from coordinator_core.wire.record_decoder import RecordDecoder
from jobs.relations.brokers import TABLE, USED
from jobs.relations.positions import stored_position
from jobs.tables.reader import TableReader, known_rows
from jobs.tables.row_reader import reader

ABOUT_TOPICS: Final = f"FROM ${TABLE} WHERE cluster = :cluster AND {USED} AND kind IN :kinds"
NAMES: Final = sorted(map(str, KINDS))


def topics_of_stored_lines(tables: TableReader, cluster: str) -> TopicHistory | None:
    """Return the history of topics in lines of brokers' logs; None: no line is about a topic.

    Replay needs it before it has found the zones of lines: they are found from the generations of the log.
    """
    if not has_new_topic_lines(tables, cluster, ""):
        return None
    rows = tables.rows(f"SELECT * FROM ${TABLE} WHERE cluster = :cluster AND {USED}", cluster=cluster)
    events = list(map(reader(BrokerEvent), rows))
    if any(event.timestamp_ms is None for event in events):
        events = with_zones(events, _generations(tables, cluster))
    return topics_of_lines(event for event in events if event.group_id is None)


def has_new_topic_lines(tables: TableReader, cluster: str, after: str) -> bool:
    """Return whether runs after ``after`` took in lines about topics."""
    sql = f"SELECT line {ABOUT_TOPICS} AND run_id > :after LIMIT 1"
    return next(known_rows(tables, sql, cluster=cluster, kinds=NAMES, after=after), None) is not None


def _generations(tables: TableReader, cluster: str) -> dict[Epoch, list[int]]:
    """Return when each generation of a classic group was written (ms), by group and generation."""
    written: defaultdict[Epoch, list[int]] = defaultdict(list)
    decoder = RecordDecoder(Family.GROUP)
    for row in known_rows(
        tables,
        "SELECT log_partition, log_offset, timestamp_ms, batch_base, key, value FROM $group_records "
        "WHERE cluster = :cluster AND log_topic = :topic AND record_type = :type AND value IS NOT NULL "
        "AND log_offset IS NOT NULL AND log_partition IS NOT NULL ORDER BY log_partition, log_offset",
        cluster=cluster,
        topic=GROUP_LOG,
        type=RecordType.GROUP_METADATA.value,
    ):
        at = stored_position(row["log_partition"], row["log_offset"], row["timestamp_ms"])
        record = decoder.record(at, bytes(row["key"]), bytes(row["value"]), row["batch_base"])
        times = written[record.group_id or "", (record.value or {}).get("generation", -1)]
        # Only the first time: the record may be written again in one generation, as for a static member that returns.
        if not times:
            times.append(at.timestamp_ms)
    return written
