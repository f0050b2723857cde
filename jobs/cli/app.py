"""The command line: a table of commands. A command is imported only when it runs, so ``--help`` is fast."""

import importlib
import sys
from functools import partial
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
    """A command: its panel in the list of commands, its help, the arguments of an example, and the module under
    ``jobs.cli`` that has the function ``NAME_command``; empty: it has the name of the command."""

    panel: str
    help: str
    example: str
    module: str = ""


_question, _nightly, _lab = (partial(Entry, panel) for panel in (INVESTIGATE, NIGHTLY, LAB))

COMMANDS: dict[str, Entry] = {
    "findings": _question("List problems across all groups, most urgent first.", LOG),
    "groups": _question("List the groups with type, state and members, now or at a given time.", LOG, "describe"),
    "describe": _question(
        "Describe a group as Kafka's Admin client does, now or at a given time.", f"A-coop-a2d7 {LOG}"
    ),
    "rebalances": _question(
        "List rebalances: why they began, how long they took, which member delayed them.",
        f"{LOG} --group B-range-5175 --slowest 3",
        "history",
    ),
    "explain": _question(
        "Explain one rebalance in plain sentences, with log positions as evidence.", f"B-range-5175@6 {LOG}"
    ),
    "history": _question(
        "Show the history of a group: epochs, rebalances with causes, members.", f"B-range-5175 {LOG}"
    ),
    "owners": _question(
        "List the owners of the partitions of a topic: now, at a given time, or over time.", f"a-coop-x8 {LOG}"
    ),
    "offsets": _question(
        "List the committed offsets of a group, now or at a given time.", f"A-coop-a2d7 {LOG}", "describe"
    ),
    "commits": _question(
        "Show how the committed offsets of a group moved: forward, set back, reset, removed; by whom and why.",
        f"A-admin-879 {LOG}",
    ),
    "audit": _question(
        "Check every assignment, and every state transition against the protocol rules.",
        f"{LOG} --fail-on divergent,invalid",
    ),
    "whatif": _question(
        "Replay a group's history with another assignor or setting and compare.", f"A-coop-a2d7 {LOG} --assignor range"
    ),
    "report": _question(
        "Write the report: one self-contained HTML page, and its data as JSON.", f"{LOG} --out report.html"
    ),
    "serve": _question(
        "Serve the page over HTTP: groups at any moment, two moments side by side, a search, live rows.", LOG
    ),
    "metrics": _question(
        "Print metrics about all groups for Prometheus: state, rebalances, verdicts, offsets and lag.", LOG
    ),
    "watch": _question(
        "Follow a running cluster: each rebalance when it begins and when it ends, and findings when they arise.",
        "kafka://broker-1:9092 --explain",
    ),
    "nightly": _nightly(
        "Ingest, decode, replay, audit, check and report everything new since the last run.",
        "data/samples/logs --tables tables --report report.html",
    ),
    "snapshot": _nightly(
        "Store the topics and end offsets of a running cluster as a file, for lag and verdicts.",
        "kafka://broker-1:9092 --out cluster.jsonl",
    ),
    "ingest": _nightly(
        "Ingest and decode dumped coordinator logs, each record once.", "data/samples/logs --tables tables", "pipeline"
    ),
    "decode": _nightly("Complete ingested records: later facts, counts, sums.", "--tables tables", "pipeline"),
    "replay": _nightly(
        "Replay decoded records: epochs, rebalances, members, assignments.", "--tables tables", "pipeline"
    ),
    "checks": _nightly("Check the data quality of the tables; exit code 3 if a check fails.", "--tables tables"),
    "rebuild": _nightly("Set damaged tables aside, so that nightly makes them again.", "--tables tables"),
    "expectations": _nightly(
        "Write a Great Expectations project for the tables, to add your own expectations.",
        "quality --tables tables",
        "checks",
    ),
    "trend": _nightly(
        "Show what each night found: rebalances, findings, violations, unstable groups, lag.", "--tables tables"
    ),
    "tables": _nightly("List the tables and their row counts.", "--tables tables", "pipeline"),
    "config": _nightly(
        "Show the effective settings and the source of each value; the levels of a cluster's features.",
        "--config conf/small.yaml",
    ),
    "schema": _lab("Print the JSON Schema of what a command prints with --json.", "audit"),
    "dump": _lab(
        "Print the records of log segments as JSON lines, or in the formats of Kafka's tools.", "data/samples/logs"
    ),
    "assign": _lab("Run Kafka's assignors on groups given as JSON lines.", CASES),
    "compare": _lab(
        "Compare several assignors on the same groups: balance, movement and racks.",
        f"{CASES} --assignor uniform --assignor range",
        "assign",
    ),
    "simulate": _lab(
        "Simulate the logs of a cluster from a scenario, with ground truth.", "data/scenarios/shop.yaml --out shop"
    ),
    "trace": _lab(
        "Compare the coordinator model with recorded behaviour of a coordinator.", "tests/data/trace-sample.jsonl.gz"
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
    single = typer.Typer(add_completion=False)
    module = importlib.import_module(f"jobs.cli.{COMMANDS[name].module or name}")
    single.command(name)(getattr(module, f"{name}_command"))
    command = typer.main.get_command(single)
    command.name = name
    command.epilog = f"Example: coordinator-audit {name} {COMMANDS[name].example}"
    return command


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
        # Click ends such a run without a word: who reads the output, as head does, has enough of it.
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
            # By the name of its module: most commands do not import Spark.
            if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j"):
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
