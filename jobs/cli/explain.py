"""``explain``: one rebalance in sentences."""

from typing import Annotated, NamedTuple

import typer

from coordinator_core.audit.explain import explain_moment, explain_rebalance
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.sentences import OWN_LOG, Sentence
from coordinator_core.errors import InputError
from coordinator_core.records import LogPosition
from coordinator_core.whole_numbers import whole_number
from jobs.cli.answer_source import AnswerSource
from jobs.cli.options import with_options
from jobs.cli.output import print_json, print_text, utc
from jobs.formatting import parse_time, plain
from jobs.queries.interface import Answers, lacking, told_what_is_missing


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
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="Of a GROUP, the last rebalance that began up to this time."),
    ] = None,
) -> None:
    """Explain one rebalance in plain sentences, each with the log positions that prove it."""
    answers = source.answers()
    history, asked = _asked(answers, rebalance)
    with told_what_is_missing(answers, history):
        if at is None:
            sentences = explain_rebalance(history, asked.epoch, asked.offset)
        else:
            sentences = explain_moment(history, parse_time(at))
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
    missing = lacking(source, text)
    doubt = f"; they lack something: {'; '.join(missing)}" if missing else ""
    raise InputError(f"these logs have no rebalance {text!r}: use GROUP, GROUP@EPOCH or PARTITION:OFFSET{doubt}")


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
