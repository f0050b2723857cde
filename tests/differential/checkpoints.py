"""Replays a recorded log up to each checkpoint and compares every group with what the broker's Admin client said."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from coordinator_core.groups.describe import Surroundings, describe
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.groups.share.state_log import ShareStateLog
from tests.differential.decoded import Line, LogEntry, data_end, log_entries, read_lines, topic_image
from tests.differential.metadata import topic_history


class Difference(NamedTuple):
    """One part of one group at one checkpoint that is not what Admin said."""

    label: str
    group_id: str
    part: str
    admin: Any
    log: Any


@dataclass
class Tally:
    """Parts of groups compared, how many were equal, and the others."""

    compared: int = 0
    differences: list[Difference] = field(default_factory=list)

    @property
    def equal(self) -> int:
        return self.compared - len(self.differences)


class Replayer:
    """Folds a decoded log forward, one checkpoint after the other."""

    def __init__(self, folder: Path) -> None:
        self.shards: dict[int, CoordinatorShard] = {}
        self.share_state = ShareStateLog()
        self.topics = topic_history(folder / "logs")
        self._entries: dict[int, Iterator[LogEntry]] = {}
        self._next: dict[int, LogEntry | None] = {}
        by_partition: dict[int, list[LogEntry]] = {}
        for entry in log_entries(folder / "decoded.jsonl.gz"):
            by_partition.setdefault(entry.at.partition, []).append(entry)
        for partition, entries in by_partition.items():
            self.shards[partition] = CoordinatorShard()
            self._entries[partition] = iter(entries)
            self._next[partition] = next(self._entries[partition], None)
        share_log = folder / "decoded_share_state.jsonl.gz"
        self.has_share_log = share_log.exists()
        self._share_entries = sorted(log_entries(share_log), key=_by_time) if self.has_share_log else []

    def forward(self, checkpoint: Line) -> None:
        """Applies the records below ``co_end``, and those of the share state log, which has no end there, by time."""
        for partition, end in checkpoint["co_end"].items():
            self._forward_partition(int(partition), end)
        while self._share_entries and self._share_entries[0].at.timestamp_ms <= checkpoint["ts_before"]:
            entry = self._share_entries.pop(0)
            if entry.record is not None:
                self.share_state.apply(entry.record)

    def _forward_partition(self, partition: int, end: int) -> None:
        entry = self._next.get(partition)
        while entry is not None and entry.at.offset < end:
            shard = self.shards[partition]
            if entry.record is not None:
                shard.apply(entry.record, entry.producer_id, entry.leader_epoch)
            elif entry.producer_id is not None:
                shard.end_transaction(entry.producer_id, committed=entry.committed)
            entry = self._next[partition] = next(self._entries[partition], None)

    def describe_all(self, checkpoint: Line) -> dict[str, Line]:
        share_state = self.share_state if self.has_share_log else None
        oldest_broker = self.topics.oldest_broker(checkpoint["ts_before"])
        around = Surroundings(topic_image(checkpoint), share_state, data_end(checkpoint), "uniform", oldest_broker)
        return {
            group_id: describe(group, shard.offsets_of(group_id), around)
            for shard in self.shards.values()
            for group_id, group in shard.groups.items()
            if group.state is not None
        }


def _by_time(entry: LogEntry) -> int:
    return entry.at.timestamp_ms


def compare(folder: Path) -> Tally:
    """Every part that Admin gave of every group, at every checkpoint during which nothing was written."""
    tally = Tally()
    replayer = Replayer(folder)
    for checkpoint in read_lines(folder / "checkpoints.jsonl.gz"):
        if not checkpoint["stable"]:
            continue
        replayer.forward(checkpoint)
        compare_groups(checkpoint, replayer.describe_all(checkpoint), tally)
    return tally


def compare_groups(checkpoint: Line, described: dict[str, Line], tally: Tally) -> None:
    """Every part that Admin gave of every group with what the log tells of it."""
    admin_groups = checkpoint["groups"]
    for group_id in sorted(admin_groups.keys() | described.keys()):
        admin, log = admin_groups.get(group_id), described.get(group_id)
        for part in ["existence"] if admin is None or log is None else admin:
            tally.compared += 1
            theirs = normal(admin if part == "existence" else admin[part])
            ours = normal(log if part == "existence" else log.get(part))
            if theirs != ours:
                tally.differences.append(Difference(checkpoint["label"], group_id, part, theirs, ours))


def normal(value: Any) -> Any:
    """Lists in one order, as Admin's come from hash maps; without the coordinator's node, which no log names."""
    if isinstance(value, dict):
        return {name: normal(each) for name, each in value.items() if name != "coordinator"}
    if isinstance(value, list):
        return sorted((normal(each) for each in value), key=lambda each: json.dumps(each, sort_keys=True))
    return value
