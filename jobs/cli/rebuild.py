"""``rebuild``: make damaged tables again."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from jobs.cli.lines import RebuiltLine
from jobs.cli.options import with_options
from jobs.cli.output import print_lines
from jobs.cli.table_options import TableOptions
from jobs.pipeline import rebuild


@with_options(TableOptions)
def rebuild_command(
    options: TableOptions,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TABLE]...", help="Tables to rebuild; by default those in a folder that are found to be damaged."
        ),
    ] = None,
) -> None:
    """Set damaged tables aside, with those made from them, so that the next run of nightly makes them again."""
    console = options.console
    rebuild.check_names(names or [])
    with options.writing_damaged() as tables:
        wanted = names or rebuild.damaged(tables)
        with console.step("setting tables aside"):
            done = rebuild.run(tables, wanted, datetime.now(UTC))
    lines = [RebuiltLine(table=name, repaired=True, aside=place) for name, place in done.repaired.items()]
    lines += [RebuiltLine(table=name, repaired=False, aside=place) for name, place in done.aside.items()]
    print_lines(lines, as_json=console.json, title=f"rebuild at {tables.location}")
    if not wanted:
        console.note(f"no table at {tables.location} is damaged")
    for name in done.repaired:
        console.note(f"{name} has all its rows again: only a checkpoint was damaged")
    if done.needs_dumps:
        console.note("run nightly with all dumps, not only the newest: everything is made from them again")
    if done.needs_snapshots:
        console.note("run nightly with all snapshots, not only the newest: their rows are read again")
    if done.aside and not done.needs_dumps and not done.needs_snapshots:
        console.note("run nightly: it makes these tables again")
