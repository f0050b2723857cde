"""``whatif``: a group's history replayed with another assignor or setting, and compared with what happened."""

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Final

import typer

from coordinator_core.audit.whatif.replay import Comparison, WhatIf, WhatIfOutcome, what_if
from coordinator_core.audit.whatif.share import LOWEST_LIMIT, DeliveryComparison, with_delivery_limit
from coordinator_core.durations import duration
from coordinator_core.errors import InputError, UsageError
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.rows import RebalanceRow
from coordinator_core.records import SHARE_LOG
from coordinator_core.whole_numbers import whole_number
from jobs.cli.answer_source import AnswerSource
from jobs.cli.options import GroupArgument, with_options
from jobs.cli.output import Line, print_lines, print_text
from jobs.queries.interface import Answers, RebalanceFilter, lacking

ENDS = ("emptied", "group deleted")
"""How a rebalance ends that leaves no member."""
OF_DELAY = (
    "idle_ms under another delay is an estimate: the log does not show how soon workers would have answered; it tells "
    "more from less, and may be wrong by two thirds in an hour full of crashes and deploys"
)
SAME: Final = "The change makes no difference to these rebalances."
MEASURES: Final[dict[str, tuple[str, Callable[[int], str]]]] = {
    "rebalances": ("{} rebalances instead of {}", str),
    "moved": ("{} partitions or tasks moved instead of {}", str),
    "stopped": ("{} stopped instead of {}", str),
    "imbalance": ("a mean imbalance of {} instead of {}", str),
    "worst_imbalance": ("a worst imbalance of {} instead of {}", str),
    "idle_ms": ("{} without an owner instead of {}", duration),
}
"""By field of an outcome: its words, and how a value is written."""


@with_options(AnswerSource)
def whatif_command(
    source: AnswerSource,
    group: GroupArgument,
    assignor: Annotated[str | None, typer.Option("--assignor", metavar="NAME", help="Use this assignor.")] = None,
    static: Annotated[
        int | None,
        typer.Option("--static", metavar="MS", min=1, help="Make all members static, with this session timeout."),
    ] = None,
    cooperative: Annotated[
        bool | None,
        typer.Option(
            "--cooperative/--eager", help="Cooperative (only moved partitions stop) or eager (everything stops)."
        ),
    ] = None,
    standbys: Annotated[
        int | None,
        typer.Option("--standbys", metavar="N", min=0, help="Number of standby tasks for each task (streams)."),
    ] = None,
    warmups: Annotated[
        int | None,
        typer.Option("--warmups", metavar="N", min=0, help="Most warm-up tasks at one time (streams, KIP-1071)."),
    ] = None,
    recovery_lag: Annotated[
        int | None,
        typer.Option(
            "--recovery-lag",
            metavar="N",
            min=0,
            help="Acceptable recovery lag (streams, KIP-1071). The log has no task offsets: only the recorded lag and "
            "9223372036854775807 (any lag) can be supposed.",
        ),
    ] = None,
    partitions: Annotated[
        list[str] | None,
        typer.Option("--partitions", metavar="TOPIC=N", help="Raise the partition count of a topic to N; repeatable."),
    ] = None,
    delay: Annotated[
        int | None, typer.Option("--delay", metavar="MS", min=0, help="Scheduled rebalance delay (Connect).")
    ] = None,
    delivery_limit: Annotated[
        int | None,
        typer.Option(
            "--delivery-limit",
            metavar="N",
            min=LOWEST_LIMIT,
            help="Delivery limit of a share group, without other options: compare how many records are given up.",
        ),
    ] = None,
) -> None:
    """Replay a group's history with another assignor or setting, and compare it with what happened.

    Compared are: rebalances, partitions moved and stopped, imbalance, and idle time. The line "repeated" has the same
    settings as the actual history, replayed in the same way as the hypothetical one: how far it is from the line
    "actual" is the error of the method.
    """
    change = WhatIf(assignor, static, cooperative, standbys, warmups, recovery_lag, _counts(partitions or []), delay)
    is_change = change != WhatIf(partitions={})
    if delivery_limit is not None:
        if is_change:
            raise UsageError("--delivery-limit cannot be combined with other changes")
        _deliveries(source, source.answers(), group, delivery_limit)
        return
    if not is_change:
        raise UsageError("nothing to change: give at least one option such as --assignor range or --static 45000")
    known = source.answers()
    happened = known.rounds(group)
    if not happened:
        missing = "; ".join(["", *lacking(known, group, known.history(group))])
        raise InputError(f"group {group!r} has no assignment in these logs for which the topics are known{missing}")
    rows = known.rebalances(RebalanceFilter(group))
    comparison = what_if(happened, change, _idle_ms(rows), _end_ms(rows, known))
    outcomes = comparison._asdict()
    if not source.json:
        # To people a line that repeats another one says nothing; programs get all three.
        outcomes = {name: each for name, each in outcomes.items() if name == "actual" or each != comparison.actual}
        if comparison.hypothetical == comparison.repeated:
            outcomes.pop("hypothetical", None)
    if delay is not None and comparison.hypothetical.idle_ms is not None:
        source.console.warn(OF_DELAY)
    lines = [{"history": name, **outcome._asdict()} for name, outcome in outcomes.items()]
    _print(source, group, lines, result(comparison))


def _deliveries(source: AnswerSource, known: Answers, group: str, limit: int) -> None:
    """Print what a share group gives up with another delivery limit."""
    history = known.history(group)
    if history is None or not history.share_partitions:
        raise InputError(
            f"group {group!r} has no share state in these logs: a share group's deliveries are in {SHARE_LOG}"
        )
    deliveries = with_delivery_limit(history.share_partitions, limit)
    if not deliveries.is_whole:
        source.console.warn("records of the share state are missing: the figures are what the others prove")
    figures = {"actual": deliveries.actual, "hypothetical": deliveries.hypothetical}
    lines = [{"history": name, **figure._asdict()} for name, figure in figures.items()]
    _print(source, group, lines, result_of_limit(deliveries, limit))


def _print(source: AnswerSource, group: str, lines: Sequence[Line], sentence: str) -> None:
    """Print the outcomes, for people with the result in a sentence."""
    if source.json:
        print_lines(lines, as_json=True, title=group)
        return
    print_lines([_readable(line) for line in lines], as_json=False, title=group)
    print_text(sentence)


def _readable(line: Line) -> Line:
    idle_ms = line.get("idle_ms")
    shown = {name.replace("_", " "): value for name, value in line.items() if name != "idle_ms"}
    return shown if idle_ms is None else {**shown, "idle": duration(idle_ms)}


def _idle_ms(rows: Sequence[RebalanceRow]) -> int | None:
    """Return the total idle time of partitions; None if it is unknown.

    The log of a classic group does not show it, and where records are missing, some of it is missing too.
    """
    known = [row.idle_ms for row in rows if row.idle_ms is not None]
    is_vague = len(known) < len(rows) or any(
        row.group_type == GroupType.CLASSIC or not row.history_complete for row in rows
    )
    return None if is_vague or not known else sum(known)


def _end_ms(rows: Sequence[RebalanceRow], known: Answers) -> int | None:
    """Return when the log of the group ends, or when its last member went; None: not known."""
    last = max(rows, key=lambda row: row.at.timestamp_ms, default=None)
    is_over = last is not None and last.outcome in ENDS
    return last.at.timestamp_ms if last is not None and is_over else known.knowledge().last_ms


def _counts(texts: list[str]) -> dict[str, int]:
    counts = {}
    for text in texts:
        topic, equals, number = text.rpartition("=")
        if not equals or (count := whole_number(number)) is None:
            raise UsageError(f"invalid --partitions {text!r}: use TOPIC=N, as in orders=12")
        counts[topic] = count
    return counts


def result(compared: Comparison) -> str:
    """Return what a change would have done, against the same replay without it.

    A difference counts if it is larger than the error of the method: that between this replay and what happened.
    """
    if compared.hypothetical == compared.repeated:
        return SAME
    beyond = list(_differences(compared, beyond_error=True))
    within = list(_differences(compared, beyond_error=False))
    if not beyond:
        return f"No difference is larger than the error of the method: {', '.join(within)}."
    more = f" Not beyond the error of the method: {', '.join(within)}." if within else ""
    return f"With the change: {', '.join(beyond)}.{more}"


def _differences(compared: Comparison, *, beyond_error: bool) -> Iterator[str]:
    for name in WhatIfOutcome._fields:
        actual, repeated, supposed = (getattr(outcome, name) for outcome in compared)
        if None in (actual, repeated, supposed) or supposed == repeated:
            continue
        if (abs(supposed - repeated) > abs(repeated - actual)) is beyond_error:
            words, written = MEASURES[name]
            yield words.format(written(supposed), written(repeated))


def result_of_limit(compared: DeliveryComparison, limit: int) -> str:
    """Return how many records a share group would have given up with another delivery limit."""
    then = compared.hypothetical
    text = f"With a limit of {limit} the group would have given up {then.given_up} records instead of "
    text += f"{compared.actual.given_up}"
    if then.accepted:
        text += f"; {then.accepted} of them a later delivery did settle, or may still settle"
    if then.undecided:
        text += f"; how another delivery of {then.undecided} more would have ended is not known"
    return f"{text}."
