"""The recorded logs and traces as what a fold takes: the records of one group, and which offsets there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from coordinator_core.history.coverage import Coverage
from coordinator_core.records import CoordinatorRecord, LogPosition
from coordinator_core.wire.row import decode_record
from tests.differential.decoded import Line, log_entries, read_lines
from tests.shared_data import CORPUS, TRACES

LOGS = (
    "scenarios",
    "scenarios/compacted_keep",
    "scenarios/compacted_drop",
    "churn/full",
    "churn/after_compaction",
    "upgrade",
    "misc",
)
TRACE_FILES = ("consumer", "share", "streams", "classic", "migration")
EVERYTHING = Coverage({0: [(0, 2**40)]})


class Log(NamedTuple):
    """One recorded log: its groups by partition and id, and its coverage."""

    groups: dict[tuple[int, str], list[CoordinatorRecord]]
    coverage: Coverage


def corpus_log(name: str) -> Log:
    return recorded_log(CORPUS / name / "decoded.jsonl.gz")


def recorded_log(decoded: Path) -> Log:
    """Control records fill offsets too; a batch that compaction emptied stands for none."""
    groups, offsets = defaultdict(list), defaultdict(list)
    for entry in log_entries(decoded):
        if entry.record is not None:
            groups[(entry.at.partition, entry.record.group_id)].append(entry.record)
    for line in read_lines(decoded):
        if not line.get("emptyBatch"):
            offsets[line["partition"]].append((line["offset"], line["offset"]))
    return Log(dict(groups), Coverage(offsets))


def traces(name: str) -> Iterator[tuple[int, list[CoordinatorRecord]]]:
    """Seed and records of each trace of a file; the records of one operation are one batch."""
    seed, records = -1, list[CoordinatorRecord]()
    for step in read_lines(TRACES / f"{name}.jsonl.gz"):
        if step["kind"] == "header":
            if records:
                yield seed, records
            seed, records = step["seed"], []
        elif step["kind"] == "step":
            for operation in _operations(step):
                batch = len(records)
                for raw in operation:
                    records.append(_record(raw, LogPosition(0, len(records), step["t_ms"]), batch))
    if records:
        yield seed, records


def _operations(step: Line) -> Iterator[list[Line]]:
    yield step.get("records") or []
    for source in ("timers", "tasks"):
        for each in step.get(source) or []:
            yield each.get("records") or []


def _record(raw: Line, at: LogPosition, batch: int) -> CoordinatorRecord:
    value = None if raw["value_hex"] is None else bytes.fromhex(raw["value_hex"])
    decoded = decode_record(bytes.fromhex(raw["key_hex"]), value)
    return CoordinatorRecord(at, decoded.type, decoded.key, decoded.value, decoded.value_version, batch)
