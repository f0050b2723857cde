"""``assign`` and ``compare``: run Kafka's assignors on groups given as JSON lines."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from coordinator_core.assignors.case_files.case_types import Row, compare_case, run_case
from coordinator_core.assignors.client.clients import CLIENTS
from coordinator_core.assignors.profiles import DEFAULT, PROFILES, Profile, profile
from coordinator_core.errors import InputError
from jobs.cli.console import Console, JsonOption, QuietOption
from jobs.cli.json_lines import STANDARD_INPUT, read_lines

FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="[FILE]",
        help="Cases as JSON lines (docs/cases-and-traces.md), optionally gzipped; standard input if absent or -.",
    ),
]
ProfileOption = Annotated[
    str, typer.Option("--profile", metavar="NAME", help=f"Kafka release to reproduce: {', '.join(sorted(PROFILES))}.")
]
JdkOption = Annotated[
    int,
    typer.Option(
        "--jdk",
        metavar="N",
        help="Java version of the broker or client (JDK 19 changed HashSet sizing, hence iteration order).",
    ),
]

ClientOption = Annotated[
    str | None,
    typer.Option(
        "--client",
        metavar="NAME",
        help=f"Client of the leader of a classic group, or an older release of Kafka's: {', '.join(CLIENTS)}. "
        "Default: what the case says, else Kafka's own.",
    ),
]


def assign_command(
    context: typer.Context,
    file: FileArgument = STANDARD_INPUT,
    profile_name: ProfileOption = DEFAULT.name,
    jdk: JdkOption = DEFAULT.jdk,
    client: ClientOption = None,
    presented: Annotated[
        bool,
        typer.Option(
            "--presented", help="Also print the members and topics that the coordinator passed to the assignor."
        ),
    ] = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run each case and print one line for it: {"id": ..., "expected": ...}.

    Invalid lines are reported on standard error and skipped; the exit code is then 1.
    """
    skipped = False
    for case, behaviour in _cases(file, profile_name, jdk, client):
        try:
            expected = run_case(case, behaviour, presented=presented)
        except InputError as error:
            Console.of(context).warn(str(error))
            skipped = True
        else:
            print(json.dumps({"id": case.get("id"), "expected": expected}, ensure_ascii=False, separators=(",", ":")))
    if skipped:
        raise typer.Exit(1)


def compare_command(
    file: FileArgument = STANDARD_INPUT,
    assignor: Annotated[
        list[str] | None,
        typer.Option(
            "--assignor",
            "-a",
            metavar="NAME",
            help="Assignor to compare; repeatable; default: all assignors for the group's type.",
        ),
    ] = None,
    profile_name: ProfileOption = DEFAULT.name,
    jdk: JdkOption = DEFAULT.jdk,
    client: ClientOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run several assignors on the same cases and compare balance, movement and racks.

    If a case has several rounds, each assignor starts from its own previous result. With --quiet: only the totals of
    each case.
    """
    for case, behaviour in _cases(file, profile_name, jdk, client):
        rows = compare_case(case, behaviour, assignor)
        if quiet:
            rows = [row for row in rows if row.round == "all"]
        if as_json:
            for row in rows:
                print(json.dumps({"id": case.get("id"), **asdict(row)}))
        else:
            print(f"{case.get('id')}")
            for line in _table(rows):
                print(f"  {line}")


def _cases(file: Path, profile_name: str, jdk: int, client: str | None) -> Iterator[tuple[dict[str, object], Profile]]:
    behaviour = profile(profile_name, jdk)
    chosen = {} if client is None else {"client": client}
    return ((case | chosen, behaviour) for case in read_lines(file))


def _table(rows: list[Row]) -> Iterator[str]:
    """Return the rows as aligned text: words left-aligned, numbers right-aligned."""
    cells = [[str(cell) for cell in asdict(row).values()] for row in rows]
    head = list(Row.__dataclass_fields__)
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    for line in [head, *cells]:
        yield "  ".join(
            cell.rjust(width) if position > 1 else cell.ljust(width)
            for position, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
