"""``explain``: the story of one rebalance; ``findings``: what of all groups an operator should look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from coordinator_core.audit.explain import GROUP_LOG, Sentence, explain, find_rebalance
from coordinator_core.audit.findings.find import findings
from coordinator_core.audit.findings.material import GroupHistory
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.errors import InputError
from coordinator_core.records import LogPosition
from jobs.cli.console import Console, JsonOption
from jobs.cli.options import LogOption
from jobs.cli.tables import print_json, print_lines, utc
from jobs.local_audit import group_histories
from jobs.plain import plain
from jobs.settings import load
from jobs.sources.files import find_logs

ConfigOption = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Settings (YAML).")]


class Asked(NamedTuple):
    """Which rebalance: of which group (None: whichever), to which epoch, or at which position."""

    group_id: str | None
    epoch: int | None = None
    partition: int | None = None
    offset: int | None = None


def explain_command(
    context: typer.Context,
    rebalance: Annotated[
        str,
        typer.Argument(
            metavar="REBALANCE",
            help="GROUP (its last rebalance), GROUP@EPOCH, or PARTITION:OFFSET as ``rebalances`` prints it.",
        ),
    ],
    log: LogOption,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """The story of one rebalance in plain sentences, each with the log positions that prove it."""
    history, asked = _asked(context, log, rebalance, load(config).audit)
    sentences = explain(history, find_rebalance(history, asked.epoch, asked.offset))
    if as_json:
        for sentence in sentences:
            print_json(plain(sentence))
    else:
        for sentence in sentences:
            typer.echo(_line(sentence))


def _asked(context: typer.Context, log: list[Path], text: str, audit: AuditSettings) -> tuple[GroupHistory, Asked]:
    """The history that the rebalance is of. A group id may look like a position, or have an @ in it: it goes first."""
    warn = Console.of(context).warn
    logs = find_logs(log)
    for asked in _readings(text):
        for history in group_histories(logs, warn, asked.group_id, load().audit):
            if asked.offset is None:
                return history, asked
            for row in history.rebalances:
                if (row.at.partition, row.at.offset) == (asked.partition, asked.offset):
                    return history, asked
    raise InputError(f"no rebalance {text!r} in these logs: give GROUP, GROUP@EPOCH or PARTITION:OFFSET")


def _readings(text: str) -> list[Asked]:
    readings = [Asked(text)]
    group_id, at, epoch = text.rpartition("@")
    if at and epoch.isdigit():
        readings.append(Asked(group_id, epoch=int(epoch)))
    partition, colon, offset = text.partition(":")
    if colon and partition.isdigit() and offset.isdigit():
        readings.append(Asked(None, partition=int(partition), offset=int(offset)))
    return readings


def _line(sentence: Sentence) -> str:
    if not sentence.evidence:
        return sentence.text
    source = "" if sentence.source == GROUP_LOG else f"{sentence.source} "
    return f"{sentence.text}  [{source}{', '.join(map(_position, sentence.evidence))}]"


def _position(at: LogPosition) -> str:
    return f"{at.partition}:{at.offset} {utc(at.timestamp_ms)}"


def findings_command(
    context: typer.Context,
    log: LogOption,
    group: Annotated[str | None, typer.Option("--group", metavar="GROUP", help="Of one group only.")] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """What an operator should look at, the most urgent first; thresholds are in the settings (section findings)."""
    settings = load(config)
    limits = settings.findings
    histories = group_histories(find_logs(log), Console.of(context).warn, group, settings.audit)
    rows = sorted((row for history in histories for row in findings(history, limits)), key=lambda row: -row.score)
    if as_json:
        lines = [plain(row) for row in rows]
    else:
        lines = [
            {
                "score": row.score,
                "group": row.group_id,
                "finding": row.kind,
                "number": row.number,
                "from": row.threshold,
                "about": row.subject,
                "detail": row.detail,
                "since": utc(row.since_ms),
                "log": " ".join(f"{at.partition}:{at.offset}" for at in row.evidence[:2]),
            }
            for row in rows
        ]
    print_lines(lines, as_json=as_json, title="findings")
