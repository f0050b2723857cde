"""The command line: a table of commands. A command is imported only when it runs, so ``--help`` is fast."""

from __future__ import annotations

import importlib
import sys
from io import TextIOWrapper
from typing import Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from coordinator_core.errors import CoordinatorAuditError, UsageError
from jobs.cli.console import Console, JsonOption, QuietOption
from jobs.installation import how_to_add, software_version

INVESTIGATE: Final = "Investigate: questions to log files (--log) or to filled tables (--tables)"
NIGHTLY: Final = "Nightly: fill and check the tables"
LAB: Final = "Lab: raw records, assignors, simulated logs"
LOG: Final = "--log data/samples/logs"
INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as shells have it: 128 and the number of the signal."""
CASES: Final = "data/samples/assignor_cases.jsonl"


class Entry(NamedTuple):
    """A command: ``module:name`` under ``jobs.cli`` (a function or a ``typer.Typer``), its help, its panel in the list
    of commands, and the arguments of an example."""

    target: str
    help: str
    panel: str
    example: str


COMMANDS: dict[str, Entry] = {
    "findings": Entry(
        "findings:findings_command", "List problems across all groups, most urgent first.", INVESTIGATE, LOG
    ),
    "groups": Entry(
        "describe:groups_command",
        "List the groups with type, state and members, now or at a given time.",
        INVESTIGATE,
        LOG,
    ),
    "describe": Entry(
        "describe:describe_command",
        "Describe a group as Kafka's Admin client does, now or at a given time.",
        INVESTIGATE,
        f"A-coop-a2d7 {LOG}",
    ),
    "rebalances": Entry(
        "history:rebalances_command",
        "List rebalances: why they began, how long they took, which member delayed them.",
        INVESTIGATE,
        f"{LOG} --group B-range-5175 --slowest 3",
    ),
    "explain": Entry(
        "explain:explain_command",
        "Explain one rebalance in plain sentences, with log positions as evidence.",
        INVESTIGATE,
        f"B-range-5175@6 {LOG}",
    ),
    "history": Entry(
        "history:history_command",
        "Show the history of a group: epochs, rebalances with causes, members.",
        INVESTIGATE,
        f"B-range-5175 {LOG}",
    ),
    "owners": Entry(
        "owners:owners_command",
        "List the owners of the partitions of a topic: now, at a given time, or over time.",
        INVESTIGATE,
        f"a-coop-x8 {LOG}",
    ),
    "offsets": Entry(
        "describe:offsets_command",
        "List the committed offsets of a group, now or at a given time.",
        INVESTIGATE,
        f"A-coop-a2d7 {LOG}",
    ),
    "commits": Entry(
        "commits:commits_command",
        "Show how the committed offsets of a group moved: forward, set back, reset, removed; by whom and why.",
        INVESTIGATE,
        f"A-admin-879 {LOG}",
    ),
    "audit": Entry(
        "audit:audit_command",
        "Check every assignment, and every state transition against the protocol rules.",
        INVESTIGATE,
        f"{LOG} --fail-on divergent,invalid",
    ),
    "whatif": Entry(
        "whatif:whatif_command",
        "Replay a group's history with another assignor or setting and compare.",
        INVESTIGATE,
        f"A-coop-a2d7 {LOG} --assignor range",
    ),
    "report": Entry(
        "report:report_command",
        "Write the report: one self-contained HTML page, and its data as JSON.",
        INVESTIGATE,
        f"{LOG} --out report.html",
    ),
    "serve": Entry(
        "serve:serve_command",
        "Serve the page over HTTP: groups at any moment, two moments side by side, a search, live rows.",
        INVESTIGATE,
        LOG,
    ),
    "metrics": Entry(
        "metrics:metrics_command",
        "Print metrics about all groups for Prometheus: state, rebalances, verdicts, offsets and lag.",
        INVESTIGATE,
        LOG,
    ),
    "watch": Entry(
        "watch:watch_command",
        "Follow a running cluster: each rebalance when it begins and when it ends, and findings when they arise.",
        INVESTIGATE,
        "kafka://broker-1:9092 --explain",
    ),
    "nightly": Entry(
        "nightly:nightly_command",
        "Ingest, decode, replay, audit, check and report everything new since the last run.",
        NIGHTLY,
        "data/samples/logs --tables tables --report report.html",
    ),
    "snapshot": Entry(
        "snapshot:snapshot_command",
        "Store the topics and end offsets of a running cluster as a file, for lag and verdicts.",
        NIGHTLY,
        "kafka://broker-1:9092 --out cluster.jsonl",
    ),
    "ingest": Entry(
        "pipeline:ingest_command",
        "Ingest and decode dumped coordinator logs, each record once.",
        NIGHTLY,
        "data/samples/logs --tables tables",
    ),
    "decode": Entry(
        "pipeline:decode_command", "Complete ingested records: later facts, counts, sums.", NIGHTLY, "--tables tables"
    ),
    "replay": Entry(
        "pipeline:replay_command",
        "Replay decoded records: epochs, rebalances, members, assignments.",
        NIGHTLY,
        "--tables tables",
    ),
    "checks": Entry(
        "checks:checks_command",
        "Check the data quality of the tables; exit code 3 if a check fails.",
        NIGHTLY,
        "--tables tables",
    ),
    "rebuild": Entry(
        "rebuild:rebuild_command",
        "Set damaged tables aside, so that nightly makes them again.",
        NIGHTLY,
        "--tables tables",
    ),
    "expectations": Entry(
        "checks:expectations_command",
        "Write a Great Expectations project for the tables, to add your own expectations.",
        NIGHTLY,
        "quality --tables tables",
    ),
    "trend": Entry(
        "trend:trend_command",
        "Show what each night found: rebalances, findings, violations, unstable groups, lag.",
        NIGHTLY,
        "--tables tables",
    ),
    "tables": Entry("pipeline:tables_command", "List the tables and their row counts.", NIGHTLY, "--tables tables"),
    "config": Entry(
        "config:config_command",
        "Show the effective settings and the source of each value; the levels of a cluster's features.",
        NIGHTLY,
        "--config conf/small.yaml",
    ),
    "schema": Entry(
        "schema:schema_command", "Print the JSON Schema of what a command prints with --json.", LAB, "audit"
    ),
    "dump": Entry(
        "dump:dump",
        "Print the records of log segments as JSON lines, or in the formats of Kafka's tools.",
        LAB,
        "data/samples/logs",
    ),
    "assign": Entry("assign:assign_command", "Run Kafka's assignors on groups given as JSON lines.", LAB, CASES),
    "compare": Entry(
        "assign:compare_command",
        "Compare several assignors on the same groups: balance, movement and racks.",
        LAB,
        f"{CASES} --assignor uniform --assignor range",
    ),
    "simulate": Entry(
        "simulate:simulate_command",
        "Simulate the logs of a cluster from a scenario, with ground truth.",
        LAB,
        "data/scenarios/shop.yaml --out shop",
    ),
    "trace": Entry(
        "trace:trace_command",
        "Compare the coordinator model with recorded behaviour of a coordinator.",
        LAB,
        "tests/data/trace-sample.jsonl.gz",
    ),
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
    command.epilog = f"Example: coordinator-audit {name} {COMMANDS[name].example}"
    return command


def _is_of_spark(error: Exception) -> bool:
    """Return whether an error comes from Spark, by the name of its module: most commands do not import Spark."""
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j")


class CommandTable(TyperGroup):
    """Lists the commands without importing them, and turns expected errors into one line and exit code 1 or 2."""

    def list_commands(self, ctx: object) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: object, cmd_name: str) -> Any:
        """Return a placeholder that has only the help of the command."""
        entry = COMMANDS.get(cmd_name)
        return None if entry is None else TyperCommand(cmd_name, help=entry.help, rich_help_panel=entry.panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command itself, once it is known which one runs."""
        self.commands = {
            name: TyperCommand(name) for name in COMMANDS
        }  # the names from which a mistyped one is suggested
        name, placeholder, rest = super().resolve_command(ctx, args)
        return name, placeholder and load(str(name)), rest

    def invoke(self, ctx: Any) -> object:
        """Run the command; print an expected error as one line on standard error."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except KeyboardInterrupt:
            Console.of(ctx).error("interrupted")
            raise typer.Exit(INTERRUPTED) from None
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
            Console.of(ctx).error(f"{error.name} is not installed: {how_to_add(extra)}")
        except Exception as error:
            if not _is_of_spark(error):
                raise
            from jobs.cli.table_options import name_jvm_output
            from jobs.tables.spark_errors import SparkJobError, one_line

            name_jvm_output(Console.of(ctx))
            Console.of(ctx).error(SparkJobError(one_line(error)))
        raise typer.Exit(1)


app = typer.Typer(
    cls=CommandTable,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Replay and audit the decisions of a Kafka group coordinator from its own log.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"coordinator-audit {software_version()}")
        raise typer.Exit


VersionOption = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
]


@app.callback()
def options(
    context: typer.Context, quiet: QuietOption = False, json: JsonOption = False, version: VersionOption = False
) -> None:
    """Define the options of all commands. Each command accepts them as well."""


def main() -> None:
    """Run the command line. Exit codes: 0 success, 1 failure, 2 usage error, 3 problems found."""
    if isinstance(sys.stdout, TextIOWrapper):  # ids and metadata may hold any character; notebooks replace stdout
        sys.stdout.reconfigure(encoding="utf-8")
    try:
        app()
    except KeyboardInterrupt:  # before a command began
        sys.exit(INTERRUPTED)
