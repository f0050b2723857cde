"""What each command prints with ``--json``: the kinds of its lines, and the JSON Schema made from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from coordinator_core.assignors.case_files.case_types import Row
from coordinator_core.audit.finding_rows import FindingRow
from coordinator_core.audit.findings.resets import OffsetReset
from coordinator_core.audit.offsets.burrow import LagPoint
from coordinator_core.audit.offsets.steps import CommitStep
from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.audit.sentences import Sentence
from coordinator_core.audit.whatif.replay import WhatIfOutcome
from coordinator_core.audit.whatif.share import GivenUpRecords
from coordinator_core.broker_log.events import BrokerEvent
from coordinator_core.errors import InputError
from coordinator_core.groups.described import DescribedSharePartition
from coordinator_core.groups.owners import Owner
from coordinator_core.groups.violations import Violation
from coordinator_core.history.rows import SHARE_PARTITIONS, TABLES, RebalanceRow
from jobs.cli import lines
from jobs.cli.json_schema import DIALECT, Schema, SchemaMaker
from jobs.nightly_run import StepRun
from jobs.pipeline.replay import ReplaySummary
from jobs.queries.group_rows import TABLE_OF
from jobs.serve.site import ANSWERS
from jobs.simulate.partition import WrittenPartition
from jobs.tables.night_rows import NightRow


class LineShape(NamedTuple):
    """One kind of line: the types whose fields it has, when it is printed, and the value of its field ``table``."""

    parts: Sequence[Any]
    when: str = ""
    table: str | None = None


_HISTORY = [LineShape([table.row], table=table.name) for table in (*TABLES, SHARE_PARTITIONS)]

SHAPES: Final[Mapping[str, Sequence[LineShape]]] = {
    "findings": [LineShape([FindingRow])],
    "groups": [LineShape([lines.ListedGroup])],
    "describe": [LineShape([lines.DescriptionLine])],
    "rebalances": [LineShape([RebalanceRow])],
    "explain": [LineShape([Sentence])],
    "history": [
        *_HISTORY,
        LineShape([lines.OfGroup, OffsetReset], table=TABLE_OF[OffsetReset]),
        LineShape([CommitStep], table=TABLE_OF[CommitStep]),
        LineShape([BrokerEvent], table=TABLE_OF[BrokerEvent], when="with lines of brokers' application logs"),
    ],
    "commits": [LineShape([CommitStep])],
    "owners": [
        LineShape([Owner, lines.OwnershipTime, lines.ListFlag]),
        LineShape([lines.OwnerIntervalLine], when="with --history"),
    ],
    "offsets": [
        LineShape([lines.OffsetLine]),
        LineShape([DescribedSharePartition], when="of a share group"),
        LineShape([LagPoint], when="with --lag-history"),
    ],
    "audit": [LineShape([TargetAuditRow], table="target_audits"), LineShape([Violation], table="violations")],
    "whatif": [
        LineShape([lines.FollowedPath, WhatIfOutcome]),
        LineShape([lines.FollowedPath, GivenUpRecords], when="with --delivery-limit"),
    ],
    "watch": [
        LineShape([lines.WatchedBeginning, RebalanceRow], when="when a rebalance begins"),
        LineShape([lines.WatchedEnd, RebalanceRow], when="when a rebalance ends"),
        LineShape([lines.WatchedFinding, FindingRow], when="when a finding arises"),
    ],
    "report": [LineShape([lines.WrittenReport])],
    "nightly": [LineShape([StepRun]), LineShape([lines.WrittenReport], when="with --report")],
    "snapshot": [LineShape([lines.SnapshotLine])],
    "ingest": [LineShape([lines.IngestedLine])],
    "decode": [LineShape([lines.DecodedLine])],
    "replay": [LineShape([ReplaySummary])],
    "checks": [LineShape([lines.CheckLine])],
    "rebuild": [LineShape([lines.RebuiltLine])],
    "expectations": [LineShape([lines.WrittenProject])],
    "trend": [LineShape([NightRow])],
    "tables": [LineShape([lines.TableLine])],
    "config": [LineShape([lines.SettingLine])],
    "dump": [LineShape([lines.DumpedLine])],
    "assign": [LineShape([lines.AssignedCase])],
    "compare": [LineShape([lines.CaseId, Row])],
    "simulate": [LineShape([WrittenPartition])],
    "trace": [
        LineShape([lines.DifferingStep], when="for each step that differs"),
        LineShape([lines.TraceSummary], when="at the end"),
    ],
}
"""The kinds of lines of each command. ``metrics`` is not here: its formats are those of Prometheus."""


def output_schema(name: str) -> Schema:
    """Return the JSON Schema (draft 2020-12) of one line that a command prints with ``--json``, or of what ``serve``
    answers at an address such as ``/api/groups``.

    Raises InputError for a command that does not print lines of JSON.
    """
    maker = SchemaMaker()
    if name in ANSWERS:
        title, body = f"The answer of coordinator-audit serve at {name}", maker.of(ANSWERS[name])
    elif name in SHAPES:
        kinds = [_kind(maker, shape) for shape in SHAPES[name]]
        title, body = f"A line of coordinator-audit {name} --json", kinds[0] if len(kinds) == 1 else {"oneOf": kinds}
    else:
        raise InputError(f"the command {name!r} prints no JSON lines: use {', '.join([*SHAPES, *ANSWERS])}")
    definitions = {"$defs": maker.definitions} if maker.definitions else {}
    return {"$schema": DIALECT, "title": title, **body, **definitions}


def _kind(maker: SchemaMaker, shape: LineShape) -> Schema:
    constants = {} if shape.table is None else {"table": shape.table}
    made = maker.object(shape.parts, constants)
    if shape.when:
        made["description"] = f"Printed {shape.when}. {made['description']}".strip()
    return made
