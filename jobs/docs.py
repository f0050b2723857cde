"""The pages of ``docs/`` that state facts of the code: ``python -m jobs.docs`` writes them anew.

A test compares the pages that are checked in with what this makes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from inspect import getdoc
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pyspark.sql.types import ArrayType, DataType, StructType

from coordinator_core.audit.findings import rows as findings
from coordinator_core.audit.rules import table as rules
from coordinator_core.records import Family
from coordinator_core.simulator.scenario import Scenario
from coordinator_core.wire.schema import record_schemas
from jobs.cli.app import COMMANDS, load
from jobs.simulate.scenario_file import sections
from jobs.tables.catalog import CATALOG
from jobs.tables.delta import Table

DOCS: Final = Path(__file__).parent.parent / "docs"
MADE: Final = "<!-- Made by python -m jobs.docs; change the code instead. -->"
OF_ALL_COMMANDS: Final = ("quiet", "json", "as_json")


def pages() -> dict[str, str]:
    """The text of each generated page by its name."""
    bodies = {
        "tables.md": ("Tables", _tables()),
        "rules.md": ("Protocol rules", _grid(rules.document_rows())),
        "findings.md": ("Findings", _grid(findings.document_rows())),
        "records.md": ("Record types", _records()),
        "commands.md": ("Commands", _commands()),
        "scenarios.md": ("Scenarios", _scenario()),
    }
    return {name: "\n".join((MADE, "", f"# {title}", "", *body, "")) for name, (title, body) in bodies.items()}


def _grid(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    heads = list(rows[0])
    yield _line(heads)
    yield _line(["---"] * len(heads))
    for row in rows:
        yield _line([row[head] for head in heads])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _tables() -> Iterator[str]:
    yield "A column of the core's rows is described where the row is defined; this page shows what Spark sees."
    for table in CATALOG.values():
        yield from _table(table)


def _table(table: Table) -> Iterator[str]:
    yield f"\n## {table.name}\n"
    yield f"{table.about}\n\nKey: {', '.join(f'`{name}`' for name in table.key)}\n"
    yield from _grid(
        [
            {
                "Column": f"`{field.name}`",
                "Type": _type(field.dataType),
                "What it is": field.metadata.get("comment", ""),
            }
            for field in table.schema.fields
        ]
    )


def _type(of: DataType) -> str:
    if isinstance(of, ArrayType):
        return f"array of {_type(of.elementType)}"
    return "struct" if isinstance(of, StructType) else of.simpleString()


def _records() -> Iterator[str]:
    yield "Every record type that is decoded; the files in `schemas/` are the only source.\n"
    yield from _grid(
        [
            {
                "Log": family.value,
                "Type": str(schema.type),
                "Record": schema.name,
                "Meaning": schema.about,
                "Value versions, and who writes them": "; ".join(
                    f"{version}: {writers}" for version, writers in schema.written.items()
                ),
            }
            for family in Family
            for schema in record_schemas(family).values()
        ]
    )


def _commands() -> Iterator[str]:
    yield from _grid(
        [{"Command": f"[`{name}`](#{name})", "What it does": entry.help} for name, entry in COMMANDS.items()]
    )
    yield ""
    yield "Results go to standard output, all else to standard error. Commands with `--log` and `--store` answer from"
    yield "log files, without Spark, or from filled tables. `--quiet` leaves out all but results and errors. With"
    yield "`--json` each line is one object: rows of history, verdicts, violations and findings have the columns of the"
    yield "[tables](tables.md), and the table's name in `table` where a command gives several; groups are described in"
    yield "the words of Kafka's Admin client; messages have `note`, `warning` or `error`.\n"
    yield "Exit codes: 0 done; 1 it failed, and one line, `error: ...`, says why; 2 wrong usage, or a setting that"
    yield "cannot be; 3 it found something: a check failed, `--fail-on` was met, a trace differed."
    for name in COMMANDS:
        yield from _command(name)


def _command(name: str) -> Iterator[str]:
    command = load(name)
    yield f"\n## {name}\n"
    yield f"{command.help}\n"
    yield from _grid(
        [
            {"Option": f"`{_option(each)}`", "What it does": each.help}
            for each in command.params
            if each.name not in OF_ALL_COMMANDS
        ]
    )


def _option(parameter: Any) -> str:
    """How it is written: a flag, an option with what it takes, or an argument."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    names = ", ".join((*parameter.opts, *parameter.secondary_opts))
    if parameter.is_flag:
        return names
    return f"{names} {parameter.metavar or parameter.name.upper()}"


def _scenario() -> Iterator[str]:
    yield "`coordinator-audit simulate SCENARIO.yaml --seed N --out DIR` writes the logs of a cluster that never was:"
    yield "`__consumer_offsets-*`, `__cluster_metadata-0`, for share groups `__share_group_state-*`, for Connect groups"
    yield "on KIP-848 `__worker_offsets-*`, as segments or as rows of Spark's Kafka source. In `DIR/truth` is every"
    yield "rebalance with its causes, what happened to each group, and how it ended. Examples are in `data/scenarios`."
    yield "A seed gives the same bytes each time; with `--spark` each log partition is a task.\n"
    yield "A scenario is YAML. A duration is a number with a unit: `250ms`, `30s`, `5m`, `2h`, `1d`.\n"
    parts: list[type[BaseModel]] = [Scenario]
    for part in parts:
        parts += [each for each in sections(part) if each not in parts]
        yield f"## {part.__name__}\n"
        yield f"{getdoc(part)}\n"
        yield from _grid(
            [
                {"Key": f"`{name}`", "Default": "needed" if field.is_required() else f"`{_default(field)}`"}
                for name, field in part.model_fields.items()
            ]
        )
        yield ""


def _default(field: FieldInfo) -> Any:
    value = field.get_default(call_default_factory=True)
    return value.model_dump(exclude_none=True) if isinstance(value, BaseModel) else value


def main() -> None:
    """Write the pages."""
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
