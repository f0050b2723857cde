"""The options of commands that work on the tables, and how the tables are opened."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from jobs import settings
from jobs.cli.console import Console, JsonOption, QuietOption
from jobs.cli.options import ConfigOption, RemoteOption, TablesOption
from jobs.pipeline import rebuild
from jobs.tables import runner
from jobs.tables.catalog import CATALOG
from jobs.tables.damage import find
from jobs.tables.delta import Tables
from jobs.tables.jvm_output import jvm_output
from jobs.tables.kept_copy import drop_kept_copy
from jobs.tables.lease import WRITER, held
from jobs.tables.log import LOG_RECORDS, RUNS
from jobs.tables.nightly import LEASES
from jobs.tables.one_writer import check_damage, writing
from jobs.tables.reader import absolute, is_folder, missing_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_tables(console: Console, config: Path | None, flags: dict[str, object]) -> tuple[Tables, settings.Settings]:
    """Open the tables. Return them and the settings; ``flags`` (by dotted name) override the settings file."""
    chosen = settings.load(config, flags=flags)
    return open_chosen(console, chosen), chosen


def open_chosen(console: Console, chosen: settings.Settings) -> Tables:
    """Open the tables of these settings."""
    steps = runner.choose(chosen)

    def start() -> SparkSession:
        from jobs.tables import session  # not at the top: it may not be installed

        logging.getLogger("SQLQueryContextLogger").disabled = True  # it repeats each error over several pages
        with console.step("starting Spark"), _own_interrupt_handler():
            return session.get_or_create(chosen.spark, has_little_to_do=steps.spares_spark)

    return Tables(steps.session(start), chosen.tables, chosen.engine.limits, chosen.registered_in)


@contextmanager
def _own_interrupt_handler() -> Iterator[None]:
    """Put an own handler of Ctrl-C in the place of PySpark's, which calls Spark in the middle of another call and so
    fails.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread has handlers
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, _interrupt if before is signal.default_int_handler else before)


def _interrupt(number: int, frame: object) -> NoReturn:
    logging.disable(logging.CRITICAL)  # the connection to Spark logs how it was interrupted, over two pages
    raise KeyboardInterrupt


def name_jvm_output(console: Console) -> None:
    """Print where the output of Spark is, if this process started it: an error may have more to it there."""
    if (file := jvm_output()) is not None:
        console.note(f"the output of Spark is in {file}")


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Options of a command that works on the tables: their location, Spark, and how results are printed."""

    context: typer.Context
    tables: TablesOption = None
    config: ConfigOption = None
    remote: RemoteOption = None
    quiet: QuietOption = False
    json: JsonOption = False

    @property
    def console(self) -> Console:
        """The console of this run."""
        return Console.of(self.context)

    def chosen(self, beside: Iterable[settings.Layer] = (), **flags: object) -> settings.Settings:
        """Return the settings; ``flags`` (by dotted name) override the file, which overrides those ``beside`` logs."""
        return settings.load(self.config, flags=self.flags | flags, beside=beside)

    def open(self, beside: Iterable[settings.Layer] = (), **flags: object) -> tuple[Tables, settings.Settings]:
        """Open the tables. Return them and the settings, which are those of ``chosen``."""
        chosen = self.chosen(beside, **flags)
        return open_chosen(self.console, chosen), chosen

    @property
    def flags(self) -> dict[str, object]:
        """The settings that these options give, by dotted name."""
        return {"tables": self.tables, "spark.remote": self.remote}

    @contextmanager
    def writing(
        self, *, begin: bool = False, beside: Iterable[settings.Layer] = (), **flags: object
    ) -> Iterator[tuple[Tables, settings.Settings]]:
        """Open the tables for a command that writes them. Unless ``begin`` is set, they must exist.

        Raises:
            DamagedTableError: a table is damaged.
            MissingTableError: nothing was ingested into these tables, and ``begin`` is not set.
            BusyError: another run is writing the tables.
        """
        tables, chosen = self.open(beside, **flags)
        check_damage(tables)
        if not (begin or tables.exists(LOG_RECORDS)):
            raise missing_table(tables.location, LOG_RECORDS.name)
        with writing(tables, timedelta(minutes=chosen.nightly.lease_minutes)):
            # A copy of tables that are about to change must answer no question any more.
            drop_kept_copy(chosen.engine.working_copy, tables.location)
            yield tables, chosen

    @contextmanager
    def writing_damaged(self) -> Iterator[Tables]:
        """Open the tables for a command that repairs them.

        A damaged table of leases is set aside first: nothing else says who is writing.

        Raises:
            MissingTableError: there is no such folder, so nothing can be damaged in it.
            BusyError: another run is writing the tables.
        """
        before = self.chosen()
        is_here = is_folder(before.tables) and before.spark.remote is None
        if is_here and not Path(before.tables).is_dir():
            raise missing_table(absolute(before.tables), RUNS.name)
        tables, chosen = self.open()
        if tables.is_folder and list(find(tables.location, [LEASES.name], {})):
            rebuild.run(tables, [LEASES.name], datetime.now(UTC))
        with held(tables, WRITER, timedelta(minutes=chosen.nightly.lease_minutes), CATALOG.values()):
            drop_kept_copy(chosen.engine.working_copy, tables.location)
            yield tables
