"""The metadata log by a clock that is ahead or behind: no verdict, violation or finding changes."""

import shutil
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import crc32c
import pytest

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.groups.violations import Violation
from coordinator_core.wire.batch_format import CRC_FROM_V2
from jobs.queries.from_logs.answers import LogAnswers
from jobs.settings import load
from jobs.sources.files import find_logs
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.logs import batches
from tests.shared_data import CORPUS

METADATA = "__cluster_metadata-0"
CORPORA = ("scenarios", "misc", "upgrade", "wild", "churn/full")
SHIFTS = [each * sign for each in (20, 300, 2_000, 10_000) for sign in (1, -1)]
AFTER_ABSENCES = (FindingKind.REBALANCE_STORM, FindingKind.FLAPPING_MEMBER, FindingKind.STOOD_STILL)
"""Kinds that leave out what a coordinator that was away may explain: only the times of both logs tell that."""
CRC_AT, TIMES_AT = 17, (27, 35)
"""Where a batch of format 2 has its checksum, and its first and its highest timestamp."""


class Said(NamedTuple):
    """What is said of the logs, but for times of topics.

    The causes of rebalances are in no record of a classic group, which has no hash: the sentences of findings that
    count them are left out. Which version of the topics its leader saw is in no record either. Nor is what came before
    a coordinator was away, and what after: in logs with one, findings that tell by that are left out.
    """

    verdicts: set[TargetAuditRow]
    violations: set[Violation]
    findings: set[FindingRow]


def said(folder: Path) -> Said:
    settings = load()
    found = LogAnswers(find_logs([folder]), lambda _: None, lambda: settings).histories()
    verdicts = {row._replace(topics_at=None, fitted=None) for row in found.verdicts}
    away = any(row.kind == FindingKind.COORDINATOR_AWAY for row in found.findings)
    findings = {_without_times(row) for row in found.findings if not (away and row.kind in AFTER_ABSENCES)}
    return Said(verdicts, set(found.violations), findings)


def _without_times(row: FindingRow) -> FindingRow:
    """A finding whose evidence is the metadata log has the times of that clock."""
    if row.log_topic == METADATA.rpartition("-")[0]:
        places = tuple(at._replace(timestamp_ms=0) for at in row.evidence)
        row = row._replace(since_ms=0, until_ms=0, evidence=places)
    if row.kind == FindingKind.COORDINATOR_AWAY:
        # Whether it harmed members is told by the times of both logs.
        row = row._replace(level="")
    return row._replace(detail="")


said_unshifted = cache(said)


def shifted(logs: Path, to: Path, shift_ms: int) -> Path:
    """A copy of the logs whose metadata log has the times of another clock."""
    shutil.copytree(logs, to)
    for file in (to / METADATA).glob("*.log"):
        file.write_bytes(b"".join(_shifted(bytearray(data), shift_ms) for _, data in batches(file.read_bytes())))
    return to


def _shifted(batch: bytearray, shift_ms: int) -> bytes:
    for at in TIMES_AT:
        time_ms = int.from_bytes(batch[at : at + 8], "big", signed=True)
        batch[at : at + 8] = (time_ms + shift_ms).to_bytes(8, "big", signed=True)
    batch[CRC_AT : CRC_AT + 4] = crc32c.crc32c(bytes(batch[CRC_FROM_V2:])).to_bytes(4, "big")
    return bytes(batch)


def changed(logs: Path, shift_ms: int, to: Path) -> list[object]:
    """What is said of only one of the two."""
    return [
        each
        for ours, theirs in zip(said_unshifted(logs), said(shifted(logs, to, shift_ms)), strict=True)
        for each in ours ^ theirs
    ]


@pytest.mark.parametrize("shift_ms", [10_000, -10_000])
def test_the_samples_say_the_same_by_another_clock(shift_ms: int, tmp_path: Path) -> None:
    assert changed(SAMPLE_LOGS, shift_ms, tmp_path / "logs") == []


@pytest.mark.long
@pytest.mark.parametrize(("corpus", "shift_ms"), [*product(CORPORA, SHIFTS)])
def test_the_recorded_logs_say_the_same_by_another_clock(corpus: str, shift_ms: int, tmp_path: Path) -> None:
    logs = CORPUS / corpus / "logs"
    if not logs.exists():
        pytest.skip(f"{logs} is not there")
    assert changed(logs, shift_ms, tmp_path / "logs") == []


def placed(folder: Path) -> tuple[set[tuple[object, ...]], ...]:
    """Verdicts, violations and findings without times: by the log positions that they are about."""
    found = said(folder)
    return (
        {(row.group_id, row.at.partition, row.at.offset, row.verdict, row.difference_count) for row in found.verdicts},
        {(row.group_id, row.at.partition, row.at.offset, row.rule) for row in found.violations},
        {(row.group_id, row.kind, row.subject) for row in found.findings},
    )


placed_unshifted = cache(placed)


@pytest.mark.parametrize("shift_ms", [20, -20, 300, -300, 2_000, -2_000, 9_000, -9_000])
def test_the_samples_say_the_same_where_a_broker_with_another_clock_takes_over(shift_ms: int, tmp_path: Path) -> None:
    """From the middle of each partition on its records have the times of another broker, within one group, too."""
    logs = tmp_path / "logs"
    shutil.copytree(SAMPLE_LOGS, logs)
    for file in logs.glob("__consumer_offsets-*/*.log"):
        found = [data for _, data in batches(file.read_bytes())]
        middle = len(found) // 2
        later = [_shifted(bytearray(data), shift_ms) for data in found[middle:]]
        file.write_bytes(b"".join([*found[:middle], *later]))
    assert placed(logs) == placed_unshifted(SAMPLE_LOGS)
