"""Runs the validation definitions of a Great Expectations project and the actions of its checkpoints."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from coordinator_core.errors import InputError
from jobs.checks import project
from jobs.checks.gated import MOST_NAMED
from jobs.checks.measures import MEASURES
from jobs.checks.project import key_of
from jobs.tables.catalog import CATALOG
from jobs.tables.delta import Tables
from jobs.tables.reader import Row
from jobs.tables.spark_errors import one_line

CRITICAL: Final = "critical"
"""The severity that fails a run, in Great Expectations' words; the others are warning and info."""

COLUMNS: Final = ("column", "column_A", "column_B", "column_list", "column_set")
"""The arguments of expectations that name columns."""

UNSAID: Final = (*COLUMNS, "condition_parser")
"""The arguments that are not a part of the bound."""

BY_CLUSTER: Final = {"result_format": "COMPLETE", "unexpected_index_column_names": ["cluster"]}
"""The form of results on measures, whatever the checkpoint says: it names the clusters that fail."""

ABOUT_ACTION: Final = "action of a checkpoint"


Gx: TypeAlias = Any
"""A value of Great Expectations, whose classes are imported late: it takes seconds."""


class Result(NamedTuple):
    """One row of ``check_results``."""

    run_id: str
    cluster: str | None
    suite: str
    check: str
    expectation: str
    about: str
    happened: str | None
    severity: str
    observed: float | None
    bound: str
    passed: bool | None
    checked_at: datetime

    @property
    def failed(self) -> bool:
        """Whether the expectation failed with severity critical, which fails the run."""
        return self.passed is False and self.severity == CRITICAL


class CheckRun(NamedTuple):
    """What is checked: the tables, their measures, the id of the run and its time.

    ``happened`` says in a sentence what each measure counted, by cluster and measure.
    """

    tables: Tables | None
    measures: Sequence[Row]
    run_id: str
    now: datetime
    happened: Mapping[str, Mapping[str, str]] = {}


def validate(folder: Path, checked: CheckRun, *, docs: bool = False) -> list[Result]:
    """Validate all that the project in this folder defines, and run the actions of its checkpoints.

    A suite without an expectation is passed over. An expectation on a measure has a result for each cluster; it is
    unknown where the measure is null. An expectation on a table is unknown if the table does not exist. With ``docs``,
    Data Docs are built as well.

    Raises:
        InputError: the project is invalid, or a suite is validated on nothing.
    """
    try:
        context = _open(folder)
        return [*_Validations(context, checked).results(docs=docs)]
    except InputError:
        raise
    except Exception as error:
        if not type(error).__module__.startswith(("great_expectations", "pydantic")):
            raise
        raise InputError(f"{folder}: {one_line(error)}") from error


def write_measures(folder: Path, measures: Sequence[Row]) -> None:
    """Write the measures to where the project's data source reads them."""
    target = folder / project.FOLDERS[project.MEASURES]
    target.mkdir(parents=True, exist_ok=True)
    columns = {"cluster": pa.string(), **dict.fromkeys(MEASURES, pa.float64())}
    pq.write_table(
        pa.Table.from_pylist([dict(row) for row in measures], pa.schema(columns)), target / "measures.parquet"
    )


def load() -> Gx:
    """Return the module of Great Expectations; its import takes ten seconds of a processor."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    import great_expectations

    return great_expectations


def load_without_spark() -> None:
    """Import Great Expectations where pandas judges: without pyspark, of which it imports what it finds, in a fifth of
    its time. What imports pyspark later, as an expectation of a user may, has it.
    """
    modules: dict[str, Gx] = sys.modules
    if "pyspark" in modules:
        load()
        return
    # An import of a name that stands for None raises ModuleNotFoundError, as if pyspark were not installed.
    modules["pyspark"] = None
    try:
        load()
    finally:
        del modules["pyspark"]


def _open(folder: Path) -> object:
    return load().get_context(mode="file", context_root_dir=str(folder))


class _Validations:
    """The validation definitions of a context, and what they gave."""

    def __init__(self, context: Gx, checked: CheckRun) -> None:
        self.context = context
        self.checked = checked
        self.outcomes: dict[str, Gx] = {}
        """Results of Great Expectations by the name of the validation definition."""

    def results(self, *, docs: bool) -> Iterator[Result]:
        """Yield the results of all definitions, then those of the actions that failed."""
        checkpoints = self.context.checkpoints.all()
        formats = {
            definition.name: each.result_format for each in checkpoints for definition in each.validation_definitions
        }
        identity = self._run_identifier()
        for definition in self._definitions():
            of_measures = definition.asset.name == project.MEASURES
            result_format = BY_CLUSTER if of_measures else formats.get(definition.name, "SUMMARY")
            yield from self._validated(definition, result_format, identity)
        if docs:
            self.context.build_data_docs()
        for checkpoint in checkpoints:
            yield from self._act(checkpoint, identity)

    def _run_identifier(self) -> Gx:
        from great_expectations.core.run_identifier import RunIdentifier

        return RunIdentifier(run_name=self.checked.run_id, run_time=self.checked.now)

    def _definitions(self) -> Iterator[Gx]:
        """Yield the definitions; one is added for a suite that has none and the name of a table (``findings.mine``)."""
        import great_expectations as gx

        definitions = self.context.validation_definitions.all()
        bound = {definition.suite.name for definition in definitions}
        yield from sorted(definitions, key=lambda definition: definition.name)
        for suite in sorted(self.context.suites.all(), key=lambda each: each.name):
            if suite.name in bound:
                continue
            asset = suite.name.partition(".")[0]
            if asset not in (*CATALOG, project.MEASURES, project.REFERENCES, project.TREND):
                raise InputError(
                    f"suite {suite.name} of {self.context.root_directory} is not validated on anything: add a "
                    f"validation definition, or begin its name with that of a table (rebalances.{suite.name})"
                )
            source = self.context.data_sources.get(project.TABLES if asset in CATALOG else project.MEASURES)
            batch = source.get_asset(asset).get_batch_definition(project.ALL)
            made = gx.ValidationDefinition(name=suite.name, data=batch, suite=suite)
            yield self.context.validation_definitions.add(made)

    def _validated(self, definition: Gx, result_format: Gx, identity: object) -> Iterator[Result]:
        if not definition.suite.expectations:
            return
        asset, source, tables = definition.asset.name, definition.data_source, self.checked.tables
        is_table = source.name == project.TABLES and asset in CATALOG
        is_file = source.name in project.FOLDERS and source.type == project.PANDAS
        if is_file:
            is_there = Path(self.context.root_directory, project.FOLDERS[source.name], f"{asset}.parquet").exists()
        else:
            is_there = not is_table or (tables is not None and tables.exists(CATALOG[asset]))
        if not is_there:
            for expectation in definition.suite.expectations:
                yield self._result(definition, expectation.configuration, happened=f"table {asset} does not exist")
            return
        frame = None
        if definition.asset.type == "dataframe" and is_table and tables is not None:
            frame = {"dataframe": tables.read(CATALOG[asset])}
        if is_file and is_table:
            result_format = {"result_format": "COMPLETE", "unexpected_index_column_names": key_of(CATALOG[asset])}
        outcome = definition.run(batch_parameters=frame, result_format=result_format, run_id=identity)
        self.outcomes[definition.name] = outcome
        # Great Expectations gives results in an order of its own; they are told in that of the suite.
        order = {each.id: number for number, each in enumerate(definition.suite.expectations)}
        for result in sorted(outcome.results, key=lambda result: order.get(result.expectation_config.id, len(order))):
            if asset == project.MEASURES:
                yield from self._of_measure(definition, result)
            else:
                yield self._of_table(definition, result)

    def _of_measure(self, definition: object, outcome: Gx) -> Iterator[Result]:
        """Yield a result for each cluster if the expectation is on the values of one measure; otherwise one."""
        config, measures = outcome.expectation_config, self.checked.measures
        name, unexpected = config.kwargs.get("column"), outcome.result.get("unexpected_index_list")
        is_measure = name in MEASURES
        if is_measure and unexpected is None and all(row[name] is None for row in measures):
            yield self._result(definition, config)
            return
        if not is_measure or unexpected is None:
            yield self._of_table(definition, outcome)
            return
        failed = {row["cluster"] for row in unexpected}
        for row in measures:
            cluster, observed = row["cluster"], row[name]
            passed = None if observed is None else cluster not in failed
            said = None if passed else self.checked.happened.get(str(cluster), {}).get(str(name))
            if passed is False and said is None:
                said = f"{name} is {_plain(observed)}"
            yield self._result(
                definition, config, cluster=str(cluster), observed=observed, passed=passed, happened=said
            )

    def _of_table(self, definition: object, outcome: Gx) -> Result:
        passed, problem = bool(outcome.success), _problem(outcome.exception_info)
        observed = outcome.result.get("observed_value", outcome.result.get("unexpected_count"))
        is_number = isinstance(observed, int | float) and not isinstance(observed, bool)
        shown = float(observed) if is_number else None
        said = None if passed else _failing(outcome.result) or f"observed: {_plain(observed)}"
        happened = f"could not be computed: {problem}" if problem else said
        return self._result(definition, outcome.expectation_config, observed=shown, passed=passed, happened=happened)

    def _result(
        self,
        definition: Gx,
        config: Gx,
        *,
        cluster: str | None = None,
        observed: float | None = None,
        passed: bool | None = None,
        happened: str | None = None,
    ) -> Result:
        kwargs = {name: value for name, value in config.kwargs.items() if name != "batch_id"}
        given = [kwargs[name] for name in COLUMNS if name in kwargs]
        columns = [str(name) for each in given for name in (each if isinstance(each, list) else [each])]
        of_table = [] if definition.asset.name == project.MEASURES else [definition.asset.name]
        return Result(
            run_id=self.checked.run_id,
            cluster=cluster,
            suite=definition.suite.name,
            check=".".join([*of_table, *columns]),
            expectation=config.type,
            about=_text(config.notes or config.description),
            happened=happened,
            severity=str(getattr(config.severity, "value", config.severity)),
            observed=observed,
            bound=", ".join(f"{name} {_plain(value)}" for name, value in kwargs.items() if name not in UNSAID),
            passed=passed,
            checked_at=self.checked.now,
        )

    def _act(self, checkpoint: Gx, identity: Gx) -> Iterator[Result]:
        """Run the actions of a checkpoint on what was validated of it; yield a failed result for each that fails."""
        from great_expectations.checkpoint.actions import ActionContext, UpdateDataDocsAction
        from great_expectations.checkpoint.checkpoint import CheckpointResult

        outcome = {
            _identifier(definition, self.outcomes[definition.name], identity): self.outcomes[definition.name]
            for definition in checkpoint.validation_definitions
            if definition.name in self.outcomes
        }
        if not outcome:
            return
        # checkpoint.run() would validate everything a second time, in the checkpoint's own form of results.
        result = CheckpointResult(run_id=identity, run_results=outcome, checkpoint_config=checkpoint)
        done = ActionContext()
        # Messages name the pages of Data Docs: these come first, as in Great Expectations' own order.
        for action in sorted(checkpoint.actions, key=lambda action: not isinstance(action, UpdateDataDocsAction)):
            try:
                answer = action.run(checkpoint_result=result, action_context=done)
            except Exception as error:
                problem = _why(error)
            else:
                done.update(action, answer)
                if None not in answer.values():
                    continue
                problem = "the message was not delivered"  # a server that does not answer is not an error
            yield Result(
                run_id=self.checked.run_id,
                cluster=None,
                suite=checkpoint.name,
                check=action.name,
                expectation=ABOUT_ACTION,
                about="an action of the checkpoint",
                happened=problem,
                severity="warning",
                observed=None,
                bound="",
                passed=False,
                checked_at=self.checked.now,
            )


def _identifier(definition: Gx, outcome: Gx, identity: object) -> Gx:
    from great_expectations.data_context.types.resource_identifiers import (
        ExpectationSuiteIdentifier,
        ValidationResultIdentifier,
    )

    suite = ExpectationSuiteIdentifier(name=definition.suite.name)
    return ValidationResultIdentifier(
        expectation_suite_identifier=suite, run_id=identity, batch_identifier=outcome.batch_id
    )


def _failing(result: Mapping[str, Gx]) -> str | None:
    """Return in words how many rows fail, and the first of them; None: it is not about rows, or they are not named."""
    rows = result.get("unexpected_index_list") or []
    if not rows or not isinstance(rows[0], dict):
        return None
    first = "; ".join(", ".join(f"{name} {_plain(value)}" for name, value in row.items()) for row in rows[:MOST_NAMED])
    more = "; ..." if len(rows) > MOST_NAMED else ""
    return f"{len(rows)} of {result['element_count']} rows: {first}{more}"


def _problem(info: Mapping[str, object] | None) -> str | None:
    """Return why an expectation could not be computed; Great Expectations gives one cause, or one for each metric."""
    info = info or {}
    causes = [info] if "raised_exception" in info else [part for part in info.values() if isinstance(part, dict)]
    messages = [str(cause.get("exception_message")) for cause in causes if cause.get("raised_exception")]
    return " ".join(messages[0].split()).removeprefix("Error: ") if messages else None


def _why(error: Exception) -> str:
    """Return why an action failed. Great Expectations' message does not name the variable that is not set."""
    missing = getattr(error, "missing_config_variable", None)
    return " ".join(str(error).split()) if missing is None else f"the environment variable {missing} is not set"


def _plain(value: object) -> object:
    """Return a whole number without decimals, and a condition as it is written.

    Great Expectations turns all bounds into floating-point numbers, and conditions into parts.
    """
    if isinstance(value, dict) and {"column", "operator", "parameter"} <= value.keys():
        return f"{value['column']['name']} {value['operator']} {value['parameter']}"
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(notes: object) -> str:
    return " ".join(notes) if isinstance(notes, list) else str(notes or "")
