"""``explain``: one rebalance in sentences; ``findings``: what an operator should look at."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import typer

from coordinator_core.audit.explain import OWN_LOG, Sentence, explain_rebalance
from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.errors import InputError
from coordinator_core.records import GROUP_LOG, LogPosition
from coordinator_core.whole_numbers import whole_number
from jobs.cli.answer_source import AnswerSource, refuse_unknown, refuse_unproven
from jobs.cli.option_groups import with_options
from jobs.cli.options import FAILED_GATE, GroupOption, read_kinds
from jobs.cli.output import print_json, print_lines, print_text, utc
from jobs.formatting import plain
from jobs.queries.interface import Answers

ANY = "any"
GOES_ON = "goes on"
FINDING_KINDS = tuple(kind.value for kind in FindingKind)


class RebalanceReference(NamedTuple):
    """Names a rebalance: by group and epoch (None: the last one), or by partition and offset of its first record."""

    group_id: str | None
    epoch: int | None = None
    partition: int | None = None
    offset: int | None = None


@with_options(AnswerSource)
def explain_command(
    source: AnswerSource,
    rebalance: Annotated[
        str,
        typer.Argument(
            metavar="REBALANCE",
            help="GROUP (its last rebalance), GROUP@EPOCH, or PARTITION:OFFSET as rebalances prints it.",
        ),
    ],
) -> None:
    """Explain one rebalance in plain sentences, each with the log positions that prove it."""
    history, asked = _asked(source.answers(), rebalance)
    sentences = explain_rebalance(history, asked.epoch, asked.offset)
    if source.json:
        for sentence in sentences:
            print_json(plain(sentence))
    else:
        for sentence in sentences:
            print_text(_line(sentence))


def _asked(source: Answers, text: str) -> tuple[GroupHistory, RebalanceReference]:
    """Return the history of the group, and the rebalance asked for.

    A group id may contain an @ or look like a position, so the text is first read as a group id.
    """
    for asked in _readings(text):
        group_id = asked.group_id
        if asked.partition is not None and asked.offset is not None:
            group_id = source.group_of(asked.partition, asked.offset)
        history = None if group_id is None else source.history(group_id)
        if history is not None:
            return history, asked
    missing = source.knowledge().about_group(text)
    lacking = f"; they lack something: {'; '.join(missing)}" if missing else ""
    raise InputError(f"these logs have no rebalance {text!r}: use GROUP, GROUP@EPOCH or PARTITION:OFFSET{lacking}")


def _readings(text: str) -> list[RebalanceReference]:
    readings = [RebalanceReference(text)]
    group_id, at, number = text.rpartition("@")
    if at and (epoch := whole_number(number)) is not None:
        readings.append(RebalanceReference(group_id, epoch=epoch))
    partition, offset = map(whole_number, text.partition(":")[::2])
    if partition is not None and offset is not None:
        readings.append(RebalanceReference(None, partition=partition, offset=offset))
    return readings


def _line(sentence: Sentence) -> str:
    if not sentence.evidence:
        return sentence.text
    source = "" if sentence.source == OWN_LOG else f"{sentence.source} "
    return f"{sentence.text}  [{source}{', '.join(map(_position, sentence.evidence))}]"


def _position(at: LogPosition) -> str:
    return f"{at.partition}:{at.offset} {utc(at.timestamp_ms) or 'without a time'}"


def _evidence(row: FindingRow) -> str:
    """Where the first records that prove a finding lie; the log is named where it is not that of groups."""
    log = "" if row.log_topic == GROUP_LOG else f"{row.log_topic} "
    return log + " ".join(f"{at.partition}:{at.offset}" for at in row.evidence[:2])


@with_options(AnswerSource)
def findings_command(
    source: AnswerSource,
    group: GroupOption = None,
    min_score: Annotated[
        float, typer.Option("--min-score", metavar="SCORE", help="Leave out findings with a lower score.")
    ] = 0.0,
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            metavar="KINDS",
            help=f"Exit with code {FAILED_GATE} if a finding of one of these kinds is listed: {ANY}, or kinds "
            "separated by commas (docs/findings.md lists them).",
        ),
    ] = "",
) -> None:
    """List what an operator should look at, the most urgent first. Thresholds: section findings of the settings."""
    failing = read_kinds(fail_on, FINDING_KINDS, every=ANY)
    answers = source.answers()
    findings = answers.findings(group)
    if not findings:
        refuse_unknown(answers, group)
    rows = [row for row in findings if row.score >= min_score]
    if source.json:
        lines = [plain(row) for row in rows]
    else:
        lines = [
            {
                "level": row.level,
                "group": row.group_id,
                "finding": row.kind,
                "value": row.value,
                "threshold": row.threshold,
                "about": row.subject,
                "detail": row.detail,
                "from": utc(row.since_ms),
                "until": GOES_ON if row.is_open else utc(row.until_ms),
                "log": _evidence(row),
                "history": None if row.history_complete else "incomplete",
            }
            for row in rows
        ]
    print_lines(lines, as_json=source.json, title="findings")
    if any(row.kind in failing for row in rows):
        raise typer.Exit(FAILED_GATE)
    if failing:
        refuse_unproven(answers, "no finding that --fail-on names", group)
