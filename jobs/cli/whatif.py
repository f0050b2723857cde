"""``whatif``: a group's history again under another assignor or setting, beside what happened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from coordinator_core.audit.whatif.replay import WhatIf, what_if
from coordinator_core.errors import InputError, UsageError
from coordinator_core.groups.group import GroupType
from coordinator_core.history.rows import RebalanceRow
from jobs.cli.answer_source import AnswerSource
from jobs.cli.option_groups import with_options
from jobs.cli.output import print_lines
from jobs.queries.interface import RebalanceFilter


@with_options(AnswerSource)
def whatif_command(
    source: AnswerSource,
    group: Annotated[str, typer.Argument(metavar="GROUP", help="Group id.")],
    assignor: Annotated[str | None, typer.Option("--assignor", metavar="NAME", help="Another assignor.")] = None,
    static: Annotated[
        int | None,
        typer.Option("--static", metavar="MS", min=1, help="Static members, with this session timeout."),
    ] = None,
    cooperative: Annotated[
        bool | None, typer.Option("--cooperative/--eager", help="What does not move goes on, or all stops.")
    ] = None,
    standbys: Annotated[
        int | None, typer.Option("--standbys", metavar="N", min=0, help="Standby tasks of each task (streams).")
    ] = None,
    partitions: Annotated[
        list[str] | None, typer.Option("--partitions", metavar="TOPIC=N", help="More partitions; repeatable.")
    ] = None,
    delay: Annotated[
        int | None, typer.Option("--delay", metavar="MS", min=0, help="Scheduled rebalance delay (Connect).")
    ] = None,
) -> None:
    """What would have been: rebalances, partitions moved and stopped, imbalance and idle time, beside what was."""
    change = WhatIf(assignor, static, cooperative, standbys, _counts(partitions or []), delay)
    known = source.answers()
    happened = known.rounds(group)
    if not happened:
        raise InputError(f"no assignment of a group {group!r} in these logs whose topics are known")
    found = what_if(happened, change, _idle_ms(known.rebalances(RebalanceFilter(group))))
    print_lines(
        [{"": name, **outcome._asdict()} for name, outcome in found._asdict().items()], as_json=source.json, title=group
    )


def _idle_ms(rows: Sequence[RebalanceRow]) -> int | None:
    """How long partitions were idle in all; None where the log does not tell: classic members do not log it."""
    if any(row.group_type == GroupType.CLASSIC for row in rows):
        return None
    known = [row.idle_ms for row in rows if row.idle_ms is not None]
    return sum(known) if known else None


def _counts(given: list[str]) -> dict[str, int]:
    counts = {}
    for text in given:
        topic, equals, count = text.rpartition("=")
        if not equals or not count.isdigit():
            raise UsageError(f"{text!r} is no TOPIC=N")
        counts[topic] = int(count)
    return counts
