"""The command line: a table of commands. A command is imported only when it runs, so ``--help`` is fast."""

from __future__ import annotations

import importlib
import sys
from io import TextIOWrapper
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from coordinator_core.errors import CoordinatorAuditError, UsageError
from jobs.cli.console import Console, JsonOption, QuietOption


class Entry(NamedTuple):
    """A command: ``module:name`` under ``jobs.cli`` (a function or a ``typer.Typer``), and its help."""

    target: str
    help: str


COMMANDS: dict[str, Entry] = {
    "nightly": Entry(
        "nightly:nightly_command", "Ingest, decode, replay, audit, check and report everything new since the last run."
    ),
    "ingest": Entry("pipeline:ingest_command", "Ingest dumped coordinator logs into the tables, each record once."),
    "decode": Entry("pipeline:decode_command", "Decode ingested records into typed tables."),
    "replay": Entry("pipeline:replay_command", "Replay decoded records: epochs, rebalances, members, assignments."),
    "checks": Entry("checks:checks_command", "Check the data quality of the tables; exit code 3 if a check fails."),
    "tables": Entry("pipeline:tables_command", "List the tables and their row counts."),
    "dump": Entry("dump:dump", "Print the records of log segments as JSON lines, or in the formats of Kafka's tools."),
    "groups": Entry("describe:groups_command", "List the groups with type, state and members, now or at a given time."),
    "describe": Entry(
        "describe:describe_command", "Describe a group as Kafka's Admin client does, now or at a given time."
    ),
    "offsets": Entry("describe:offsets_command", "List the committed offsets of a group, now or at a given time."),
    "owners": Entry("describe:owners_command", "List the owners of the partitions of a topic, now or at a given time."),
    "history": Entry(
        "history:history_command", "Show the history of a group: epochs, rebalances with causes, members."
    ),
    "rebalances": Entry(
        "history:rebalances_command", "List rebalances: why they began, how long they took, which member delayed them."
    ),
    "audit": Entry(
        "audit:audit_command", "Check every assignment, and every state transition against the protocol rules."
    ),
    "whatif": Entry("whatif:whatif_command", "Replay a group's history with another assignor or setting and compare."),
    "findings": Entry("explain:findings_command", "List problems across all groups, most urgent first."),
    "explain": Entry(
        "explain:explain_command", "Explain one rebalance in plain sentences, with log positions as evidence."
    ),
    "report": Entry("report:report_command", "Write the report: one self-contained HTML page, and its data as JSON."),
    "config": Entry("config:config_command", "Show the effective settings and the source of each value."),
    "assign": Entry("assign:assign_command", "Run Kafka's assignors on groups given as JSON lines."),
    "compare": Entry(
        "assign:compare_command", "Compare several assignors on the same groups: balance, movement and racks."
    ),
    "simulate": Entry(
        "simulate:simulate_command", "Simulate the logs of a cluster from a scenario, with ground truth."
    ),
    "trace": Entry("trace:trace_command", "Compare the coordinator model with recorded behaviour of a coordinator."),
}

EXTRAS = {
    "pyspark": "spark",
    "delta": "spark",
    "pandas": "spark",
    "great_expectations": "checks",
    "confluent_kafka": "live",
}


def load(name: str) -> Any:
    """Import a command and return it as Typer runs it."""
    module, attribute = COMMANDS[name].target.split(":")
    target = getattr(importlib.import_module(f"jobs.cli.{module}"), attribute)
    if not isinstance(target, typer.Typer):
        single = typer.Typer(add_completion=False)
        single.command(name)(target)
        target = single
    command = typer.main.get_command(target)
    command.name = name
    return command


def _is_of_spark(error: Exception) -> bool:
    """Return whether an error comes from Spark, by the name of its module: most commands do not import Spark."""
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j")


class CommandTable(TyperGroup):
    """Lists the commands without importing them, and turns expected errors into one line and exit code 1 or 2."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a placeholder that has only the help of the command."""
        entry = COMMANDS.get(cmd_name)
        return None if entry is None else TyperCommand(cmd_name, help=entry.help)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command itself, once it is known which one runs."""
        name, placeholder, rest = super().resolve_command(ctx, args)
        return name, placeholder and load(str(name)), rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command; print an expected error as one line on standard error."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except UsageError as error:
            Console.of(ctx).error(error)
            raise typer.Exit(2) from None
        except CoordinatorAuditError as error:
            Console.of(ctx).error(error)
        except OSError as error:
            named = error.filename is not None and error.strerror is not None
            Console.of(ctx).error(f"{error.filename}: {error.strerror}" if named else error)
        except ModuleNotFoundError as error:
            extra = EXTRAS.get((error.name or "").split(".")[0])
            if extra is None:
                raise
            Console.of(ctx).error(f"{error.name} is not installed: run pip install 'coordinator-audit[{extra}]'")
        except Exception as error:
            if not _is_of_spark(error):
                raise
            from jobs.errors import SparkJobError, one_line

            Console.of(ctx).error(SparkJobError(one_line(error)))
        raise typer.Exit(1)


app = typer.Typer(
    cls=CommandTable,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Replay and audit the decisions of a Kafka group coordinator from its own log.",
)


@app.callback()
def options(context: typer.Context, quiet: QuietOption = False, json: JsonOption = False) -> None:
    """Define the options of all commands. Each command accepts them as well."""


def main() -> None:
    """Run the command line. Exit codes: 0 success, 1 failure, 2 usage error, 3 problems found."""
    if isinstance(sys.stdout, TextIOWrapper):  # ids and metadata may hold any character; notebooks replace stdout
        sys.stdout.reconfigure(encoding="utf-8")
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
