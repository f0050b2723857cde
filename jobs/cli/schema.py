"""``schema``: what each command prints with ``--json``, and its JSON Schema, made from the types of the lines."""

import dataclasses
import json
import types
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from inspect import getdoc
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import typer

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
from jobs.cli.console import JsonOption, QuietOption
from jobs.nightly_run import StepRun
from jobs.pipeline.replay import ReplaySummary
from jobs.queries.group_rows import TABLE_OF
from jobs.serve.site import ANSWERS
from jobs.simulate.partition import WrittenPartition
from jobs.tables.night_rows import NightRow
from jobs.watch.events import LagStatusRow

Schema = dict[str, object]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_PLAIN: Final[Mapping[object, Schema]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    type(None): {"type": "null"},
    None: {"type": "null"},
    datetime: {"type": "string", "format": "date-time"},
    object: {},
    Any: {},
}


class SchemaMaker:
    """Makes the schemas of types. Objects get a definition each, which others refer to."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}

    def of(self, kind: Any) -> Schema:
        """Return the schema of a type: of a named tuple, typed dictionary or dataclass, a reference to its definition.

        Raises TypeError for a type that JSON does not have.
        """
        if kind in _PLAIN:
            return dict(_PLAIN[kind])
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            about = [argument for argument in arguments[1:] if isinstance(argument, str)]
            return self.of(arguments[0]) | ({"description": about[0]} if about else {})
        if origin in (Union, types.UnionType):
            return self._union(arguments)
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin is NotRequired:
            return self.of(arguments[0])
        if origin in (tuple, list, Sequence):
            return {"type": "array", "items": self.of(arguments[0])}
        if origin in (dict, Mapping):
            return {"type": "object", "additionalProperties": self.of(arguments[1])}
        if isinstance(kind, type) and issubclass(kind, Enum):
            return {"enum": [each.value for each in kind]}
        if is_typeddict(kind) or dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"):
            name = kind.__name__
            if name not in self.definitions:
                self.definitions[name] = {}  # a type may refer to itself
                self.definitions[name] = self.object([kind])
            return {"$ref": f"#/$defs/{name}"}
        raise TypeError(f"JSON has no {kind!r}")

    def object(self, parts: Sequence[object], constants: Mapping[str, str] | None = None) -> Schema:
        """Return the schema of an object with the fields of all these types, and with constant fields before them."""
        properties: dict[str, Schema] = {name: {"const": value} for name, value in (constants or {}).items()}
        optional: set[str] = set()
        for part in parts:
            for name, kind in get_type_hints(part, include_extras=True).items():
                properties[name] = self.of(kind)
                if get_origin(kind) is NotRequired:
                    optional.add(name)
        return {
            "description": " ".join(
                about for part in parts if (about := " ".join((getdoc(part) or "").replace("``", "").split()))
            ),
            "type": "object",
            "properties": properties,
            "required": [name for name in properties if name not in optional],
            "additionalProperties": False,
        }

    def _union(self, kinds: Sequence[Any]) -> Schema:
        parts = [self.of(kind) for kind in kinds]
        if all(part.keys() == {"type"} for part in parts):
            return {"type": [part["type"] for part in parts]}
        return {"anyOf": parts}


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
        LineShape([lines.WatchedFinding, FindingRow], when="when a finding arises, grows or ends"),
        LineShape([lines.WatchedLag, LagStatusRow], when="when the status of a group's lag changes"),
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


def schema_command(
    command: Annotated[
        str,
        typer.Argument(metavar="COMMAND", help="The command, or an address that serve answers, such as /api/groups."),
    ],
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Print the JSON Schema (draft 2020-12) of one line that a command prints with --json, or of an answer of serve.

    With --json the schema is on one line.
    """
    print(json.dumps(output_schema(command), indent=None if as_json else 2))
