"""``trend``: what each night found, from the tables."""

from typing import Annotated

import typer

from coordinator_core.errors import InputError
from jobs.cli.console import Console, JsonOption, QuietOption
from jobs.cli.options import ClusterOption, ConfigOption, StoreOption
from jobs.cli.output import Line, print_lines, utc
from jobs.cli.stored_source import open_stored
from jobs.formatting import plain
from jobs.queries.from_tables.answers import StoredAnswers
from jobs.relations.news import late_records
from jobs.tables.night_rows import NightRow, stored_nights


def trend_command(
    context: typer.Context,
    tables: StoreOption = None,
    cluster: ClusterOption = None,
    last: Annotated[int | None, typer.Option("--last", metavar="N", min=1, help="Only the last N nights.")] = None,
    config: ConfigOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Show what each night found: groups, rebalances, findings, violations, unstable groups, lag.

    A night from before the table nights existed has no counts: they are unknown. A night counts what it had of the
    logs; where it lacked records that a later one had, a warning names them.
    """
    console = Console.of(context)
    reader, chosen = open_stored(console, config, {"tables": tables, "cluster": cluster})
    nights = stored_nights(reader, chosen.cluster)
    if not nights:
        raise InputError(f"{reader.location} has no nights: the command nightly counts them (step trend)")
    StoredAnswers(reader, chosen.cluster, chosen.audit, console.warn).warn_once()
    unknown = sum(night.groups is None for night in nights)
    if unknown:
        console.warn(f"{unknown} nights are from before the table nights existed: what they found is unknown")
    nights = nights if last is None else nights[-last:]
    late = late_records(reader, chosen.cluster, [night.night for night in nights if night.groups is not None])
    for night, lacked in late.items():
        console.warn(f"night {night} lacked records that a later one has, of {', '.join(lacked)}: it counted less")
    lines = [plain(night) if json else _line(night) for night in nights]
    print_lines(lines, as_json=json, title=f"nights of {chosen.cluster}")


def _line(night: NightRow) -> Line:
    counts = {name.replace("_", " "): value for name, value in night._asdict().items() if name != "ended_ms"}
    return {**counts, "ended": "unknown" if night.groups is None else utc(night.ended_ms)}
