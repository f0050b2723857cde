"""Where commands that answer questions about groups find the answers: log files, or the tables."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from coordinator_core.errors import InputError
from jobs import settings
from jobs.cli.console import Console, JsonOption, QuietOption
from jobs.cli.options import ClusterOption, ConfigOption, LogsOption, StoreOption
from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.interface import Answers
from jobs.sources.files import find_logs


@dataclass(frozen=True, kw_only=True)
class AnswerSource:
    """Where an answering command finds its answers, and how it gives them."""

    context: typer.Context
    log: LogsOption = None
    store: StoreOption = None
    cluster: ClusterOption = None
    config: ConfigOption = None
    quiet: QuietOption = False
    json: JsonOption = False

    @property
    def console(self) -> Console:
        """The console of this run."""
        return Console.of(self.context)

    def answers(self) -> Answers:
        """Who answers: the logs of ``--log``, or the tables of ``--store``; Spark is needed for the tables only."""
        self.check()
        flags = {"tables": self.store, "cluster": self.cluster}
        if self.store is None:
            logs = find_logs(self.log or [], snapshots=True)
            return LogAnswers(logs, self.console.warn, settings.load(self.config, flags=flags))
        from jobs.cli.table_options import open_filled_tables
        from jobs.queries.from_tables.answers import StoredAnswers

        tables, chosen = open_filled_tables(self.console, self.config, flags)
        return StoredAnswers(tables, chosen.cluster, chosen.audit)

    def check(self) -> None:
        """Wrong usage unless there is one place to look at."""
        if bool(self.log) == (self.store is not None):
            raise typer.BadParameter("give either --log FOLDER or --store TABLES")


def refuse_unknown(answers: Answers, group_id: str | None) -> None:
    """Nothing was found of this group: raises InputError if that is because there is no such group."""
    if group_id is not None and answers.history(group_id) is None:
        raise InputError(f"no history of a group {group_id!r} in these logs")
