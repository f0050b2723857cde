"""The command line: a table of commands, each imported only when it runs; ``--help`` is quick and Spark-free."""

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
    """A command: ``module:name`` under ``jobs.cli`` (a function, or a ``typer.Typer`` of subcommands), and its line."""

    target: str
    help: str


COMMANDS: dict[str, Entry] = {
    "nightly": Entry("nightly:nightly_command", "All of it, from where the last run ended; one run at a time."),
    "ingest": Entry("pipeline:ingest_command", "Take dumped coordinator logs into tables, each record once."),
    "decode": Entry("pipeline:decode_command", "Decode what was taken in into typed tables."),
    "replay": Entry("pipeline:replay_command", "Replay what was decoded: epochs, rebalances, members, assignments."),
    "checks": Entry("checks:checks_command", "Data-quality checks of the tables; exit code 3 if one fails."),
    "tables": Entry("pipeline:tables_command", "The tables, with their rows."),
    "dump": Entry("dump:dump", "Print the records of log segments as JSON lines, or as Kafka's own tools do."),
    "groups": Entry("describe:groups_command", "The groups with type, state and members, at any moment."),
    "describe": Entry("describe:describe_command", "A group as Kafka's Admin client would describe it, at any moment."),
    "offsets": Entry("describe:offsets_command", "The committed offsets of a group, at any moment."),
    "owners": Entry("describe:owners_command", "Who held the partitions of a topic, at any moment."),
    "history": Entry("history:history_command", "What a group went through: epochs, rebalances with causes, members."),
    "rebalances": Entry("history:rebalances_command", "Rebalances of one group or all: why, how long, who held it up."),
    "audit": Entry("audit:audit_command", "Whether each assignment was right, and each transition by the rules."),
    "whatif": Entry("whatif:whatif_command", "A group again under another assignor or setting, beside what happened."),
    "findings": Entry("explain:findings_command", "What of all groups an operator should look at, ranked."),
    "explain": Entry("explain:explain_command", "The story of one rebalance in plain sentences, with positions."),
    "report": Entry("report:report_command", "Write the report: one self-contained HTML page, and its data as JSON."),
    "config": Entry("config:config_command", "The effective settings, and where each value came from."),
    "assign": Entry("assign:assign_command", "What Kafka's assignors make of groups written as JSON lines."),
    "compare": Entry("assign:compare_command", "Several assignors on one input: balance, movement and racks."),
    "simulate": Entry(
        "simulate:simulate_command", "Make up a cluster's logs from a scenario, with the truth about them."
    ),
    "trace": Entry("trace:trace_command", "Whether the coordinator model does what a recorded coordinator did."),
}

EXTRAS = {
    "pyspark": "spark",
    "delta": "spark",
    "pandas": "spark",
    "great_expectations": "checks",
    "confluent_kafka": "live",
}


def load(name: str) -> Any:
    """The command of that name as typer runs it, imported now."""
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
    """Told by its module's name: most commands run without Spark."""
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j")


class CommandTable(TyperGroup):
    """Lists the table without importing anything; turns the errors of the tree into one line and exit code 1 or 2."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A placeholder that only carries the help line."""
        entry = COMMANDS.get(cmd_name)
        return None if entry is None else TyperCommand(cmd_name, help=entry.help)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command itself, once it is known which one runs."""
        name, placeholder, rest = super().resolve_command(ctx, args)
        return name, placeholder and load(str(name)), rest

    def invoke(self, ctx: Any) -> Any:
        """Run; expected failures end as one line on standard error."""
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
            Console.of(ctx).error(f"this needs {error.name}: pip install 'coordinator-audit[{extra}]'")
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
    help="What a Kafka group coordinator decided, replayed and checked from its own log.",
)


@app.callback()
def options(context: typer.Context, quiet: QuietOption = False, json: JsonOption = False) -> None:
    """Options that hold for every command; each command accepts them too."""


def main() -> None:
    """Entry point of the console script. Exit code 0 is success, 1 a failure, 2 wrong usage, 3 a finding."""
    if isinstance(sys.stdout, TextIOWrapper):  # names and metadata are anything; a notebook's output is something else
        sys.stdout.reconfigure(encoding="utf-8")
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
