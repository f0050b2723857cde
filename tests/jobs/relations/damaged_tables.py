"""Tables of logs that lack much, of two clusters, in which each part of a relation's text should matter to some row."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from coordinator_core.broker_log.events import EventKind
from coordinator_core.cluster.snapshot_settings import METADATA_VERSION, MISSING, ResourceKind
from coordinator_core.records import LOG_TOPICS, Family
from coordinator_core.wire.control import SNAPSHOT_FOOTER, SNAPSHOT_HEADER, control_name
from jobs.relations import settings
from jobs.sources.files import METADATA_TOPIC, REPLAYED_TOPICS, SNAPSHOT_SUFFIX
from jobs.tables.history import HISTORY
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.relations.tables_of_logs import CLUSTER, append, fill
from tests.jobs.relations.topic_tables import fill_topic_stores
from tests.matrix.removals import both, cut_key, damaged, metadata_hole, newer_value, share_hole, share_unreadable
from tests.matrix.removals import unreadable as made_unreadable

GROUP_LOG, SHARE_LOG = LOG_TOPICS[Family.GROUP], LOG_TOPICS[Family.SHARE]
GROUP = "A-coop-a2d7"
ORDER = ("log_topic", "log_partition", "log_offset", "group_id", "topic", "partition", "hour_ms", "timestamp_ms")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
"""When the lease of a night is over."""


def fill_stores(folder: Path) -> dict[str, Path]:
    """Fill tables below a folder, and return where they are.

    ``both``: of the samples with holes, damage and records that cannot be decoded, and some rows of another cluster.
    ``alone``: without the other cluster. ``later``: as ``both``, where a second run is not over. Those of
    ``fill_topic_stores``: for topics.
    """
    shutil.copytree(SAMPLE_LOGS, folder / "logs")
    both(
        damaged(0, 4, -2, cut_off=True),
        made_unreadable(1, newer_value, 13),
        made_unreadable(1, cut_key, 40),
        metadata_hole,
        share_hole(1),
        share_unreadable(0),
    )(folder / "logs")
    tables = folder / "both"
    fill(tables, folder / "logs", topics=(*REPLAYED_TOPICS, METADATA_TOPIC))
    append(tables, "log_ranges", [{"cluster": "timeless", "log_topic": GROUP_LOG, "log_partition": 0}])
    for name, rows in rows_beside().items():
        append(tables, name, [{"cluster": CLUSTER, **row} for row in rows])
    shutil.copytree(tables, folder / "alone")
    for place in sorted(tables.iterdir()):
        rows = pa.table(DeltaTable(place).to_pyarrow_table())
        if "cluster" in rows.column_names and rows.num_rows:
            placed = [(name, "ascending") for name in ORDER if name in rows.column_names]
            some = rows.sort_by(placed) if placed else rows  # files of a table come in no order
            append(tables, place.name, of_another_cluster(some[:40].to_pylist()))
    shutil.copytree(tables, folder / "later")
    begin_second_run(folder / "later")
    return {name: folder / name for name in ("both", "alone", "later")} | fill_topic_stores(folder)


def begin_second_run(tables: Path) -> None:
    """Let a second run have brought a part of the rows, a snapshot of the metadata log, and news of earlier records.

    The metadata log begins behind offset 50, where the snapshot ends.
    """
    mine = f"cluster = '{CLUSTER}'"
    for name in ("log_records", "group_records", "offset_commits", "cluster_records", "quarantine"):
        of_second = f"{mine} AND log_offset % 3 = 0 AND log_offset > 60"
        DeltaTable(tables / name).update(updates={"run_id": "'run 2'"}, predicate=of_second)
    DeltaTable(tables / "log_records").update(
        updates={"revised_by": "'run 2'"}, predicate=f"{mine} AND log_offset BETWEEN 30 AND 35"
    )
    rows = DeltaTable(tables / "cluster_records").to_pyarrow_table().to_pylist()
    first = [
        row for row in rows if row["cluster"] == CLUSTER and row["log_offset"] is not None and row["log_offset"] <= 50
    ]
    for name in ("cluster_records", "log_records"):
        of_begin = f"{mine} AND log_topic = '{METADATA_TOPIC}' AND log_offset <= 50"
        DeltaTable(tables / name).delete(of_begin if name == "log_records" else f"{mine} AND log_offset <= 50")
    for end in (51, 90):
        file = f"{end:020}-0000000001{SNAPSHOT_SUFFIX}"
        inside = [{**row, "stray": f"{file}#{number}", "log_offset": None} for number, row in enumerate(first)]
        append(tables, "cluster_records", inside)
        of_log = {
            "cluster": CLUSTER,
            "run_id": "run 2",
            "log_topic": METADATA_TOPIC,
            "log_partition": 0,
            "kind": "control",
        }
        ends = [control_name(kind) for kind in (SNAPSHOT_HEADER, SNAPSHOT_FOOTER)]
        append(
            tables,
            "log_records",
            [{**of_log, "kind": "control", "stray": f"{file}#{-1}", "control_type": name} for name in ends],
        )
    append(tables, "replayed", [{"cluster": CLUSTER}])
    append(tables, "runs", [{"cluster": CLUSTER, "run_id": "run 2", "job": "ingest", "log_topic": SHARE_LOG}])


def of_another_cluster(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same rows at other places and times, earlier and later ones, of a later run of another cluster."""
    for number, row in enumerate(rows):
        shift = (1_000_000, -1_000_000)[number % 2]
        names = [name for name, value in row.items() if isinstance(value, int) and name.endswith(("offset", "_ms"))]
        runs = {name: "run 9" for name in ("run_id", "revised_by") if name in row}
        yield {**row, **{name: row[name] + shift for name in names}, **runs, "cluster": "other"}


def unreadable_ones() -> list[dict[str, Any]]:
    """Records without a readable key in a row, at the offset up to which readers ask, and of another cluster."""
    of = {"run_id": "run 1", "log_topic": GROUP_LOG, "log_partition": 0, "part": "key"}
    own = [{**of, "log_offset": offset} for offset in (397, 398, 400, 401)]
    others = [{**of, "log_offset": offset} for offset in (1, 399, 402)]
    others += [{**of, "log_topic": SHARE_LOG, "log_partition": number, "log_offset": 0} for number in range(3)]
    return [*own, *({**row, "cluster": "other"} for row in others)]


def of_silent_brokers() -> Iterator[dict[str, Any]]:
    """Levels in a snapshot in which a broker did not answer, and names that only look as if one had not."""
    supported, finalized = ResourceKind.SUPPORTED_FEATURES, ResourceKind.FINALIZED_FEATURES
    levels = (
        (supported, METADATA_VERSION, "3"),
        (finalized, METADATA_VERSION, "6"),
        (finalized, METADATA_VERSION, "5"),
    )
    others = ((supported, MISSING, "no answer"), (finalized, "other.version", "20"), (supported, "other.version", "30"))
    for kind, name, value in (*levels, *others):
        yield {"resource_type": kind, "name": name, "value": value, "timestamp_ms": 3_000}
    for kind, name, value in (*levels, (finalized, MISSING, "no answer")):
        yield {"resource_type": kind, "name": name, "value": value, "timestamp_ms": 4_000}


def rows_beside() -> dict[str, list[dict[str, Any]]]:
    """Rows of the tables that no log fills by itself."""
    feature = {"resource_type": ResourceKind.SUPPORTED_FEATURES, "name": METADATA_VERSION, "timestamp_ms": 1_000}
    finalized = feature | {"resource_type": ResourceKind.FINALIZED_FEATURES}
    setting = {"resource_type": "group", "resource": GROUP, "name": settings.USED_SETTINGS[0]}
    line = {"file": "server.log", "line": 1, "group_id": GROUP, "kind": EventKind.GROUP_DELETED, "timestamp_ms": 9}
    ends = [
        {"run_id": run, "topic": "t", "partition": number, "timestamp_ms": time_ms, "end_offset": time_ms + number}
        for run, time_ms in (("run 1", 5), ("run 1", 7), ("run 2", 9), ("run 2", 11))
        for number in range(2)
    ]
    counts = ((GROUP_LOG, 6), (SHARE_LOG, 3), ("gone", 1))
    at = {"partition": 0, "offset": 7, "timestamp_ms": 7}
    stays = [
        {"group_id": GROUP, "member_id": f"m{number}", "joined": {**at, "offset": offset, "timestamp_ms": offset}}
        | {"left": left, "went_by": "leave or expiry" if left else None, "history_complete": True}
        for number in range(3)
        for offset, left in ((1, at), (8 + number, None))
    ]
    new_types = [
        {"run_id": "run 1", "log_topic": GROUP_LOG, "log_partition": number, "log_offset": offset, "part": "type"}
        | {"record_type": 77 + offset % 2, "stray": "a file" if offset == 9_003 else None}
        for number in range(2)
        for offset in (9_003, 9_004, 9_006, 9_007)
    ]
    return {
        "memberships": stays,
        "group_states": [
            {"group_id": name, "log_topic": topic, "log_partition": 0, "run_id": "run 1"}
            for name, topic in ((GROUP, GROUP_LOG), ("orphan", SHARE_LOG))
        ],
        "share_initializations": [{"group_id": "shared", "phase": "initialized", "since": at, "topic": "t"}],
        "topic_history": [
            {"topic": topic, "topic_id": f"id {topic}", "partitions": number, "until": at if topic == "gone" else None}
            | {"ended_by": "deleted" if topic == "gone" else None}
            for topic, number in counts
        ],
        "dumped_files": [{"path": f"/dump/{GROUP_LOG}-5/00000000000000000000.log"}],
        "end_offsets": ends,
        "snapshot_settings": [
            {**feature, "run_id": "run 1", "value": "7"},
            {**feature, "run_id": "run 1", "name": MISSING, "timestamp_ms": 900, "value": "no answer"},
            *({**feature, "run_id": "run 2", "timestamp_ms": 2_000, "value": value} for value in ("9", "4")),
            *({**finalized, "run_id": "run 2", "timestamp_ms": 2_000, "value": value} for value in ("6", "5")),
            *(
                {**of_feature, "run_id": "run 2", "timestamp_ms": 2_000, "name": "other.version", "value": value}
                for of_feature in (feature, finalized)
                for value in ("1", "20")
            ),
            *({**row, "run_id": "run 2"} for row in of_silent_brokers()),
            *({**feature, "run_id": "run 3", "timestamp_ms": ms, "value": "8"} for ms in (1_500, 9_000)),
            *(
                {**setting, "run_id": "run 2", "timestamp_ms": ms, "value": str(ms // 2)}
                for ms in (2_001, 2_002, 2_003)
            ),
        ],
        "quarantine": [*unreadable_ones(), *new_types],
        "broker_events": [line, {**line, "line": 2, "group_id": None, "timestamp_ms": None}],
        "leases": [{"owner": "a night", "acquired_at": NOW, "expires_at": NOW}],
        "replayed": [],
        "lag_history": [
            {"group_id": GROUP, "topic": "t", "partition": 0, "timestamp_ms": ms, "status": "OK", "log_partition": 0}
            for ms in (5, 9)
        ],
        **{name: [] for name in HISTORY if name not in ("memberships", "share_initializations", "topic_history")},
    }
