"""The options of commands that answer questions about groups, from log files or from the tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from coordinator_core.errors import InputError
from coordinator_core.records import Family
from jobs.cli.arrow_start import start_without_pandas
from jobs.cli.console import Console, JsonOption, QuietOption
from jobs.cli.options import (
    BrokerLogOption,
    BrokerZoneOption,
    ClusterOption,
    ConfigOption,
    CopiedTopicOption,
    KeepOption,
    LogsOption,
    ProfileOption,
    StoreOption,
    TopicsOption,
)
from jobs.formatting import parse_time
from jobs.installation import given
from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.from_logs.brokers import BrokerLogs
from jobs.queries.interface import Answers, no_history
from jobs.sources.absent_segments import with_absent
from jobs.sources.broker_logs import find_broker_logs, parse_zone
from jobs.sources.copies import copies_in_words, without_tails
from jobs.sources.files import LogFile, find_group_logs, with_copy
from jobs.sources.log_settings import note_beside

if TYPE_CHECKING:
    from coordinator_core.cluster.topic_history import TopicHistory
    from jobs.checks.gates import Gate
    from jobs.settings import Layer, Settings
    from jobs.tables.reader import TableReader


class ToldOfLog(NamedTuple):
    """What settings say of a log, as ``InputSettings`` has it."""

    copied_topic: str | None = None
    topics: str | None = None
    broker_logs: tuple[str, ...] = ()
    broker_log_zone: str | None = None


@dataclass(frozen=True, kw_only=True)
class AnswerSource:
    """Options of a query: where it reads, and how it prints its result."""

    context: typer.Context
    log: LogsOption = None
    copied_topic: CopiedTopicOption = None
    topics: TopicsOption = None
    broker_log: BrokerLogOption = None
    broker_log_zone: BrokerZoneOption = None
    keep: KeepOption = None
    tables: StoreOption = None
    cluster: ClusterOption = None
    config: ConfigOption = None
    profile: ProfileOption = None
    quiet: QuietOption = False
    json: JsonOption = False

    @property
    def console(self) -> Console:
        """The console of this run."""
        return Console.of(self.context)

    def answers(self) -> Answers:
        """Return the answers from the logs of ``--log``, or from the tables of ``--tables`` or ``--keep``."""
        return self.checked()._answers()

    def _answers(self) -> Answers:
        if self.tables is None:
            logs = self.logs()
            for copies in copies_in_words(logs):
                self.console.note(copies)
            listed = self.listed_topics(logs)
            self._check_settings()
            return LogAnswers(logs, self.console.warn, self.settings, listed, self.broker_logs())
        from jobs.queries.from_tables.answers import StoredAnswers

        tables, chosen = self.stored()
        return StoredAnswers(tables, chosen.cluster, chosen.audit, self.console.warn)

    def stored(self) -> tuple[TableReader, Settings]:
        """Return a reader of the tables of ``--tables``, and the settings, as ``open_stored`` does."""
        from jobs.cli.stored_source import open_stored

        return open_stored(self.console, self.config, self.flags, self._beside)

    def logs(self) -> list[LogFile]:
        """Return the log files of ``--log``."""
        topics = with_copy(self.copied_topic or self._told.copied_topic)
        return with_absent(without_tails(find_group_logs(self.log or [], self.console.warn, topics)))

    def with_logs(self, logs: Sequence[Path]) -> AnswerSource:
        """Return the same with these log files beside those of ``--log``."""
        return replace(self, log=[*(self.log or []), *logs])

    def gate(self, answers: Answers, night: str | None = None) -> Gate:
        """Return the gate of the settings; new is what came with the last night, or with ``night`` and later."""
        from jobs.checks.gates import Gate

        return Gate(self.settings().gates, datetime.now(UTC).date(), answers.news(night))

    @property
    def flags(self) -> dict[str, str | None]:
        """The settings that options give, by dotted name."""
        return {"tables": self.tables, "cluster": self.cluster, "audit.profile": self.profile}

    def settings(self) -> Settings:
        """Return the effective settings of a question to log files."""
        from jobs.settings import load

        return load(self.config, flags=self.flags, beside=self._beside)

    def _check_settings(self) -> None:
        """Check now what is given, even if the answer will not need it: it is loaded only then, which takes a while."""
        if self.cluster or self.profile or self._has_settings:
            self.settings()

    @property
    def _has_settings(self) -> bool:
        return bool(self.config or self._beside or given(os.environ))

    @cached_property
    def _beside(self) -> list[Layer]:
        """The settings in the files beside the logs, which are noted once."""
        return note_beside(self.log or (), self.console.note)

    @cached_property
    def _told(self) -> ToldOfLog:
        """What settings say of the logs; options go before it."""
        if not self._has_settings:
            return ToldOfLog()
        told = self.settings().input
        return ToldOfLog(told.copied_topic, told.topics, tuple(told.broker_logs), told.broker_log_zone)

    def broker_logs(self) -> BrokerLogs:
        """Return the application logs of ``--broker-log``, else of the settings; what is given is checked now."""
        paths = self.broker_log or [*map(Path, self._told.broker_logs)]
        if self.broker_log_zone is not None and not paths:
            raise typer.BadParameter("--broker-log-zone goes with --broker-log")
        if paths:
            find_broker_logs(paths)
        zone = self.broker_log_zone or self._told.broker_log_zone
        return BrokerLogs(paths, None if zone is None else parse_zone(zone))

    def listed_topics(self, logs: Sequence[LogFile]) -> TopicHistory | None:
        """Return the topics of ``--topics``, else of the settings, and the settings that its snapshots show.

        The metadata log, which knows every change, goes before its topics.
        """
        topics = self.topics or self._told.topics
        if topics is None:
            return None
        if any(log.family is Family.METADATA for log in logs):
            self.console.warn(f"topics of {topics} are not used: the logs contain the metadata log")
        from jobs.sources.snapshot_files import read_topics

        return read_topics(Path(topics))

    def checked(self) -> AnswerSource:
        """Return what is asked: this, or the tables of ``--keep``, with what is new in the logs. Start Arrow for it.

        Raises:
            BadParameter: not exactly one of ``--log`` and ``--tables`` is given, or an option that does not go with it.
        """
        if self.topics is not None and self.tables is not None:
            raise typer.BadParameter("--topics goes with --log: the tables have the topics of the metadata log")
        if self.profile is not None and self.tables is not None:
            raise typer.BadParameter(
                "--profile goes with --log: the verdicts in tables are of the setting audit.profile"
            )
        if self.broker_log and self.tables is not None:
            raise typer.BadParameter("--broker-log goes with --log")
        if bool(self.log) == (self.tables is not None):
            raise typer.BadParameter("give either --log PATH or --tables PLACE")
        if self.keep is not None and self.tables is not None:
            raise typer.BadParameter("--keep goes with --log")
        start_without_pandas()
        return self if self.keep is None else self._kept(self.keep)

    def _kept(self, place: Path) -> KeptSource:
        from jobs.cli.kept_logs import STEPS, take
        from jobs.settings import load

        flags = {
            **self.flags,
            "tables": str(place),
            "input.paths": [*map(str, self.log or ())],
            "input.copied_topic": self.copied_topic,
            "input.topics": None if self.topics is None else str(self.topics),
            "input.broker_logs": [*map(str, self.broker_log or ())] or None,
            "input.broker_log_zone": self.broker_log_zone,
            "nightly.steps": list(STEPS),
        }
        take(load(self.config, flags=flags, beside=self._beside), self.console)
        return KeptSource(
            context=self.context, tables=str(place), config=self.config, quiet=self.quiet, json=self.json, of=self
        )


@dataclass(frozen=True, kw_only=True)
class KeptSource(AnswerSource):
    """The tables that keep the logs of another source, whose settings count."""

    of: AnswerSource

    @property
    def flags(self) -> dict[str, str | None]:
        """The settings that options give, by dotted name."""
        return {**self.of.flags, "tables": self.tables}

    @cached_property
    def _beside(self) -> list[Layer]:
        return self.of._beside


def refuse_unknown(answers: Answers, group_id: str | None, since_ms: int | None = None) -> None:
    """Raise InputError for an empty result that proves nothing.

    The group does not exist, or what is missing of the logs may have told of it, or of any group (``group_id`` None),
    or they end before ``since_ms``, the time from which on was asked (None: any).
    """
    if group_id is not None and answers.history(group_id) is None:
        raise no_history(answers, group_id)
    refuse_unproven(answers, "nothing was found", group_id, since_ms)


def warn_of_window(console: Console, answers: Answers, since: str | None, until: str | None = None) -> None:
    """Say where nothing is known of the times that ``--since`` and ``--until`` name: the logs end before, or begin
    after them.
    """
    times = (None if time is None else parse_time(time) for time in (since, until))
    for reason in answers.knowledge().about_window(*times):
        console.warn(reason)


def refuse_unproven(
    answers: Answers,
    negative: str,
    group_id: str | None = None,
    since_ms: int | None = None,
    *,
    rests_on_shares: bool = False,
) -> None:
    """Raise InputError where an answer such as "nothing was found" is not known, as the logs lack something, or end
    before ``since_ms``, the time from which on was asked (None: any); ``group_id``: a group that is there (None: all).
    ``rests_on_shares``: the share state log may tell of what was looked for.
    """
    known = answers.knowledge()
    of_shares = answers.lacks_of_shares(group_id) if rests_on_shares else ()
    if missing := [*known.about_window(since_ms), *known.reasons(group_id), *of_shares]:
        if group_id is None and known.given.absent():
            missing.append("give them, or name a group whose partition is there (--group)")
        raise InputError(f"{negative}, which does not prove that there is nothing: {'; '.join(missing)}")
