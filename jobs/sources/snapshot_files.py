"""Files of snapshots of a cluster (command ``snapshot``): JSON lines, of one time or many.

They give the lag of groups (``--end-offsets``), and the topics where the metadata log cannot be had (``--topics``).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from coordinator_core.cluster.setting_values import int_setting
from coordinator_core.cluster.snapshot_settings import (
    METADATA_VERSION,
    MISSING,
    Levels,
    ResourceKind,
    SettingRun,
    SnapshotSettings,
    level_runs,
    levels_in_snapshot,
)
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.cluster.topic_lists import fold_snapshots
from coordinator_core.errors import InputError
from jobs.sources.end_offsets import JSON_SUFFIXES

SINGLE_SETTING: Final = ("timestamp_ms", "resource_type", "resource", "name", "value")


def is_snapshot(path: str) -> bool:
    """Return whether a path is a local file of snapshots, by its first line."""
    if not (path.endswith(JSON_SUFFIXES) and Path(path).is_file()):
        return False
    opened = gzip.open if path.endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8") as file:
            row = json.loads(file.readline())
    except (OSError, ValueError):
        return False
    return isinstance(row, dict) and "timestamp_ms" in row and ("end_offset" in row or "resource_type" in row)


def append(path: Path, found: Iterable[Mapping[str, Any]]) -> None:
    """Add rows to a file of JSON lines; the file is created if it is not there."""
    with path.open("a", encoding="utf-8") as file:
        for row in found:
            file.write(json.dumps(row) + "\n")


def read_topics(path: Path) -> TopicHistory:
    """Return the history of topics that a file of snapshots tells, and the settings that it shows.

    Raises:
        InputError: the file cannot be read, or a line of it is not a row of a snapshot.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    partitions: list[dict[str, Any]] = []
    settings: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            if "resource" in row:
                settings.append({**row, "timestamp_ms": int(row["timestamp_ms"])})
            else:
                numbers = {name: int(row[name]) for name in ("timestamp_ms", "partition")}
                partitions.append({**row, "topic": row["topic"], **numbers})
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path}: line {number} is not a row of a snapshot: {error!r}") from error
    if not partitions and not settings:
        raise InputError(f"{path}: contains no snapshot")
    history = topics_of(partitions)
    history.snapshots = settings_of(settings)
    return history


def topics_of(rows: Iterable[Mapping[str, Any]]) -> TopicHistory:
    """Return the history of topics in rows of snapshots: ``cluster_snapshot.ROW``, without the end offset."""
    listed: dict[tuple[int, str], dict[str, Any]] = {}
    for row in rows:
        name, time_ms = row["topic"], row["timestamp_ms"]
        topic = listed.setdefault(
            (time_ms, name), {"name": name, "id": row.get("topic_id"), "time": time_ms, "racks": {}}
        )
        topic["racks"][row["partition"]] = list(row.get("replica_racks") or ())
    return fold_snapshots(map(_listed, listed.values()))


def _listed(topic: Mapping[str, Any]) -> dict[str, Any]:
    """Return a topic with its partitions counted; a topic of which a partition is missing has unknown racks."""
    racks: dict[int, list[str | None]] = topic["racks"]
    count = max(racks) + 1
    known = [racks[number] for number in range(count)] if len(racks) == count else []
    has_racks = any(rack is not None for each in known for rack in each)
    return {**topic, "partitions": count, "racks": known if has_racks else []}


def settings_of(rows: Iterable[Mapping[str, Any]]) -> SnapshotSettings:
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
    return SnapshotSettings.of(levels, (run for found in runs.values() for run in found))


def single_settings(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, str, str, str, str]]:
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
