"""Files of snapshots of a cluster (command ``snapshot``): JSON lines, of one time or many.

They give the lag of groups (``--end-offsets``), and the topics where the metadata log cannot be had (``--topics``).
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final

from coordinator_core.cluster.image import MOST_PARTITIONS
from coordinator_core.cluster.snapshot_settings import (
    METADATA_VERSION,
    MISSING,
    Levels,
    ResourceKind,
    SettingRun,
    SnapshotSettings,
    int_setting,
    level_runs,
    levels_in_snapshot,
)
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.cluster.topic_lists import fold_snapshots
from coordinator_core.errors import InputError
from jobs.sources.bounded_text import json_value, lines_of
from jobs.sources.end_offsets import JSON_SUFFIXES
from jobs.tables.reader import Row

MOST_BYTES: Final = 256 << 20
"""The largest file of snapshots that gives topics, unpacked: what they list is kept in memory."""

SINGLE_SETTING: Final = ("timestamp_ms", "resource_type", "resource", "name", "value")


def is_snapshot(path: str) -> bool:
    """Return whether a path is a local file of snapshots, by its first line."""
    if not (path.endswith(JSON_SUFFIXES) and Path(path).is_file()):
        return False
    try:
        row = json_value(next(lines_of(Path(path)), b""))
    except InputError:
        return False
    return isinstance(row, dict) and "timestamp_ms" in row and ("end_offset" in row or "resource_type" in row)


def append(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    """Add rows to a file of JSON lines; the file is created if it is not there."""
    with path.open("a", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")


def read_topics(path: Path) -> TopicHistory:
    """Return the history of topics that a file of snapshots tells, and the settings that it shows.

    Raises:
        InputError: the file cannot be read, or a line of it is not a row of a snapshot.
    """
    settings: list[Mapping[str, object]] = []
    history = topics_of(_partitions(path, settings))
    if not history.gaps and not settings:
        raise InputError(f"{path}: contains no snapshot")
    history.snapshots = settings_of(settings)
    return history


def read_rows(path: Path) -> Iterator[Mapping[str, object]]:
    """Yield the rows of a file of snapshots: partitions with their end offsets, and settings.

    Raises:
        InputError: the file cannot be read, or a line of it is not a row of a snapshot.
    """
    settings: list[Mapping[str, object]] = []
    yield from _partitions(path, settings)
    yield from settings


def _partitions(path: Path, settings: list[Mapping[str, object]]) -> Iterator[Mapping[str, object]]:
    """Yield the rows of partitions, and add those of settings to a list."""
    for number, line in enumerate(lines_of(path, MOST_BYTES), 1):
        try:
            row = json_value(line)
            if not isinstance(row, dict):
                raise InputError("not a JSON object")
            if "resource" in row:
                settings.append(_checked_settings(row))
                continue
            partition = _checked_partition(row)
        except InputError as error:
            raise InputError(f"{path}: line {number} is not a row of a snapshot: {error}") from None
        yield partition


def _checked_partition(row: Mapping[str, object]) -> Mapping[str, object]:
    """Return a row of a partition. Raise InputError for a field that is missing or of another type."""
    racks = row.get("replica_racks")
    if racks is not None and not (isinstance(racks, list) and all(isinstance(rack, str | None) for rack in racks)):
        raise InputError("replica_racks is not a list of texts")
    partition = _number(row, "partition")
    if not 0 <= partition < MOST_PARTITIONS:
        raise InputError(f"partition {partition} is not one of the {MOST_PARTITIONS} that a topic may have")
    topic_id = None if row.get("topic_id") is None else _text(row, "topic_id")
    place = {"timestamp_ms": _number(row, "timestamp_ms"), "topic": _text(row, "topic"), "partition": partition}
    end_offset = None if row.get("end_offset") is None else _number(row, "end_offset")
    cluster_id = None if row.get("cluster_id") is None else _text(row, "cluster_id")
    return {**place, "topic_id": topic_id, "replica_racks": racks, "end_offset": end_offset, "cluster_id": cluster_id}


def _checked_settings(row: Mapping[str, object]) -> Mapping[str, object]:
    """Return a row of settings. Raise InputError for a field that is missing or of another type."""
    configs = row.get("configs") or {}
    if not isinstance(configs, dict):
        raise InputError("configs is not an object")
    missing = None if row.get(MISSING) is None else _text(row, MISSING)
    named = {name: _text(row, name) for name in ("resource_type", "resource")}
    return {**named, "timestamp_ms": _number(row, "timestamp_ms"), "configs": configs, MISSING: missing}


def _number(row: Mapping[str, object], name: str) -> int:
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 63) <= value < 1 << 63:
        raise InputError(f"{name} is not a whole number of 64 bits")
    return value


def _text(row: Mapping[str, object], name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise InputError(f"{name} is not a text")
    return value


def topics_of(rows: Iterable[Row]) -> TopicHistory:
    """Return the history of topics in rows of snapshots: ``cluster_snapshot.ROW``, without the end offset."""
    listed: dict[tuple[int, str], Row] = {}
    same: dict[tuple[str | None, ...], tuple[str | None, ...]] = {}  # each snapshot repeats the racks
    for row in rows:
        name, time_ms = row["topic"], row["timestamp_ms"]
        topic = listed.setdefault(
            (time_ms, name), {"name": name, "id": row.get("topic_id"), "time": time_ms, "racks": {}}
        )
        racks = tuple(row.get("replica_racks") or ())
        topic["racks"][row["partition"]] = same.setdefault(racks, racks)
    return fold_snapshots(map(_listed, listed.values()))


def _listed(topic: Row) -> dict[str, object]:
    """Return a topic with its partitions counted; a topic of which a partition is missing has unknown racks."""
    racks: dict[int, tuple[str | None, ...]] = topic["racks"]
    # Partitions of a topic have no gaps: the highest one tells how many there are, even if a row is missing.
    count = max(racks) + 1
    known = [racks[number] for number in range(count)] if len(racks) == count else []
    has_racks = any(rack is not None for each in known for rack in each)
    return {**topic, "partitions": count, "racks": known if has_racks else []}


def settings_of(rows: Iterable[Mapping[str, object]]) -> SnapshotSettings:
    """Return what rows of settings (``cluster_snapshot.SETTINGS_ROW``) show, at their times."""
    ordered = sorted(single_settings(rows))
    of_time = groupby(ordered, key=itemgetter(0))
    levels = level_runs((time_ms, _levels(found)) for time_ms, found in of_time)
    runs: dict[tuple[str, str, str], list[SettingRun]] = {}
    for time_ms, kind, resource, name, value in ordered:
        if name == MISSING:
            continue
        known = runs.setdefault((kind, resource, name), [])
        if known and known[-1].value == value:
            known[-1] = known[-1]._replace(last_ms=time_ms)
        else:
            known.append(SettingRun(kind, resource, name, value, time_ms, time_ms))
    return SnapshotSettings.of(levels, (run for of_resource in runs.values() for run in of_resource))


def single_settings(rows: Iterable[Row]) -> Iterator[tuple[int, str, str, str, str]]:
    """Yield ``SINGLE_SETTING`` of each setting in rows of settings, as the table ``snapshot_settings`` has them."""
    for row in rows:
        named = dict(row.get("configs") or {})
        if row.get(MISSING) is not None:
            named[MISSING] = row[MISSING]
        for name, value in named.items():
            yield row["timestamp_ms"], row["resource_type"], row["resource"], name, str(value)


def _levels(settings: Iterable[tuple[int, str, str, str, str]]) -> Levels | None:
    """Return the levels that the settings of one snapshot show."""
    supported, finalized, all_answered = [], None, True
    for _, kind, _, name, value in settings:
        level = int_setting(value) if name == METADATA_VERSION else None
        if kind == ResourceKind.SUPPORTED_FEATURES:
            supported += [] if level is None else [level]
            all_answered = all_answered and name != MISSING
        elif kind == ResourceKind.FINALIZED_FEATURES and level is not None:
            finalized = level
    return levels_in_snapshot(
        min(supported, default=None), max(supported, default=None), finalized, all_answered=all_answered
    )
