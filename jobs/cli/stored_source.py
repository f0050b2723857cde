"""How the tables are opened for a question: in this process where they can be, otherwise through Spark."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coordinator_core.errors import InputError
from jobs import settings
from jobs.cli.console import Console
from jobs.relations.replay import unfinished_run
from jobs.tables.engine import Engine, reads_here
from jobs.tables.folder_reader import FolderReader, UnsupportedTableError
from jobs.tables.kept_copy import kept_copy
from jobs.tables.reader import TableReader

if TYPE_CHECKING:
    from jobs.tables.spark_reader import SparkReader


def open_stored(
    console: Console, config: Path | None, flags: dict[str, Any], beside: Sequence[settings.Layer] = ()
) -> tuple[TableReader, settings.Settings]:
    """Return a reader of the tables, and the settings, which name the cluster that the question is about.

    ``flags`` (by dotted name) override the settings file, and that those ``beside`` logs. A run that has not ended is a
    warning.

    Raises:
        InputError: the tables do not have the named cluster, or none is named and they do not have exactly one.
    """
    chosen = settings.load(config, flags=flags, beside=beside)
    # The default names no cluster: tables that hold only one answer without its name.
    is_named = settings.is_given("cluster", settings.layers(config, os.environ, flags, beside))
    tables = open_reader(console, config, flags)
    cluster = choose_cluster(tables, chosen.cluster if is_named else None)
    warn_of_unfinished(console, tables)
    return tables, chosen.model_copy(update={"cluster": cluster})


def warn_of_unfinished(console: Console, tables: TableReader) -> None:
    """Warn of a run that writes the tables now, or was killed while it did."""
    if (unfinished := unfinished_run(tables, datetime.now(UTC))) is not None:
        console.warn(unfinished)


def open_reader(console: Console, config: Path | None, flags: dict[str, Any]) -> TableReader:
    """Return a reader of the tables; ``flags`` (by dotted name) override the settings file."""
    chosen = settings.load(config, flags=flags)

    if not reads_here(chosen.tables, chosen.spark.remote):
        if (copy := kept_copy(chosen.engine.working_copy, chosen.tables)) is not None:
            published = datetime.fromtimestamp(copy.published_ms / 1000, UTC).isoformat(timespec="seconds")
            console.note(
                f"this answer is from {copy.place}, the copy of {chosen.tables} as it was published at {published}; "
                "to ask the catalog itself, set engine.working_copy to null"
            )
            return FolderReader(str(copy.place))
        from jobs.cli.table_options import open_tables

        return open_tables(console, config, flags)[0].asked()

    def through_spark(error: UnsupportedTableError | None) -> SparkReader:
        from jobs.cli.table_options import open_tables
        from jobs.tables.spark_reader import SparkReader

        if error is not None:
            console.note(f"{error}; Spark reads it instead")
        opened, _ = open_tables(console, config, flags)
        return SparkReader(opened.spark, opened.location)

    return Engine(FolderReader(chosen.tables), through_spark, chosen.engine.limits)


def clusters(tables: TableReader) -> list[str]:
    """Return the names of the clusters of which a log was ingested, sorted.

    Raises:
        MissingTableError: nothing was ingested into these tables.
    """
    rows = tables.rows("SELECT DISTINCT cluster FROM $runs WHERE cluster IS NOT NULL")
    return sorted(row["cluster"] for row in rows)


def choose_cluster(tables: TableReader, named: str | None) -> str:
    """Return the cluster that a question is about: the one that is named, or the only one in the tables.

    Raises:
        InputError: the named cluster is not in the tables, or none is named and the tables hold none or several.
        MissingTableError: nothing was ingested into these tables.
    """
    there = clusters(tables)
    listed = ", ".join(there)
    if named is not None:
        if named in there:
            return named
        raise InputError(f"no cluster {named!r} in the tables at {tables.location}: they hold {listed or 'no cluster'}")
    if len(there) == 1:
        return there[0]
    if not there:
        raise InputError(f"the tables at {tables.location} hold no cluster: no log was ingested")
    raise InputError(f"the tables at {tables.location} hold several clusters: name one with --cluster ({listed})")
