"""``commits``: the steps of the committed offsets of a group: forward, set back, reset, removed; by whom and why."""

from typing import Annotated

import typer

from coordinator_core.audit.offsets.steps import CommitStep
from coordinator_core.errors import InputError
from jobs.cli.answer_source import AnswerSource, warn_of_window
from jobs.cli.options import GroupArgument, SinceOption, UntilOption, with_options
from jobs.cli.output import Line, print_lines, utc
from jobs.formatting import parse_time, plain
from jobs.queries.group_rows import group_steps
from jobs.queries.interface import no_history


@with_options(AnswerSource)
def commits_command(
    source: AnswerSource,
    group: GroupArgument,
    topic: Annotated[str | None, typer.Option("--topic", metavar="TOPIC", help="Limit to this topic.")] = None,
    partition: Annotated[int | None, typer.Option("--partition", metavar="N", help="Limit to this partition.")] = None,
    since: SinceOption = None,
    until: UntilOption = None,
) -> None:
    """Show how the committed offset of each partition moved: forward, set back, reset, removed; by whom and why.

    Commits that go forward one after the other are one line, with their number and their rate. The log names the
    member that committed only where its client writes that as metadata, as franz-go does (committer); owner is the
    member that owned the partition then.
    """
    answers = source.answers()
    history = answers.history(group)
    if history is None:
        raise no_history(answers, group)
    warn_of_window(source.console, answers, since, until)
    steps, left_out, _ = group_steps(answers, history)
    if left_out:
        source.console.warn(
            f"{left_out} commits are left out: their transactions are open, or the end of the transaction is lost"
        )
    first = None if since is None else parse_time(since)
    last = None if until is None else parse_time(until)
    for reason in answers.knowledge().about_offsets():
        source.console.warn(reason)
    chosen = [
        row
        for row in steps
        if topic in (None, row.topic)
        and partition in (None, row.partition)
        and (first is None or row.until.timestamp_ms >= first)
        and (last is None or row.since.timestamp_ms <= last)
    ]
    if not steps:
        source.console.warn(f"group {group!r} has committed no offset in these logs")
    elif not chosen and not any(topic in (None, row.topic) and partition in (None, row.partition) for row in steps):
        raise InputError(f"group {group!r} has committed no offset for what --topic and --partition name")
    lines = [plain(row) if source.json else _line(row) for row in chosen]
    print_lines(lines, as_json=source.json, title=f"commits of {group}")


def _line(row: CommitStep) -> Line:
    since, until = row.since, row.until
    return {
        "topic": row.topic,
        "partition": row.partition,
        "step": row.kind,
        "since": utc(since.timestamp_ms),
        "until": utc(until.timestamp_ms) if until != since else None,
        "commits": row.commits or None,
        "from": row.offset_before,
        "to": row.offset_after,
        "per second": row.offsets_per_second,
        "owner": " and ".join([row.client_id or row.owner or "", *row.others]) or None,
        "committer": None if row.committer == row.owner else row.committer,
        "cause": ": ".join(part for part in (row.cause, row.detail) if part) or None,
        "log": f"{since.partition}:{since.offset}",
        "missing": row.missing,
    }
