"""The options of commands that answer questions about groups, from log files or from the tables."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from coordinator_core.errors import InputError
from jobs import settings
from jobs.cli.arrow_start import start_without_pandas
from jobs.cli.console import Console, JsonOption, QuietOption
from jobs.cli.options import ClusterOption, ConfigOption, LogsOption, StoreOption
from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.interface import Answers
from jobs.sources.files import find_logs


@dataclass(frozen=True, kw_only=True)
class AnswerSource:
    """Options of a query: where it reads, and how it prints its result."""

    context: typer.Context
    log: LogsOption = None
    tables: StoreOption = None
    cluster: ClusterOption = None
    config: ConfigOption = None
    quiet: QuietOption = False
    json: JsonOption = False

    @property
    def console(self) -> Console:
        """The console of this run."""
        return Console.of(self.context)

    def answers(self) -> Answers:
        """Return the answers from the logs of ``--log``, or from the tables of ``--store``."""
        self.check()
        start_without_pandas()
        flags = {"tables": self.tables, "cluster": self.cluster}
        if self.tables is None:
            logs = find_logs(self.log or [], snapshots=True)
            return LogAnswers(logs, self.console.warn, settings.load(self.config, flags=flags))
        from jobs.cli.stored_source import open_stored
        from jobs.queries.from_tables.answers import StoredAnswers

        tables, chosen = open_stored(self.console, self.config, flags)
        return StoredAnswers(tables, chosen.cluster, chosen.audit, self.console.warn)

    def check(self) -> None:
        """Raise BadParameter unless exactly one of ``--log`` and ``--tables`` is given."""
        if bool(self.log) == (self.tables is not None):
            raise typer.BadParameter("give either --log PATH or --tables PLACE")


def refuse_unknown(answers: Answers, group_id: str | None) -> None:
    """Raise InputError if the group does not exist. Call this for an empty result, to tell the two cases apart."""
    if group_id is not None and answers.history(group_id) is None:
        raise InputError(f"these logs have no history of group {group_id!r}")
