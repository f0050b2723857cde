"""The log that the coordinator of a transcript writes, with the topics of its time, as an audit reads them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from unittest import mock

from coordinator_core.assignors.registry import ASSIGNORS
from coordinator_core.audit.group_audit import GroupAudit
from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.auditor import TargetAuditor
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.coordinator.protocol import RequestOutcome
from coordinator_core.groups.group import Group
from coordinator_core.groups.violations import Violation
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import CoordinatorRecord, Family, LogPosition
from tests.core.coordinator.transcript import GROUP, SEPARATOR, Play
from tests.shared_data import ROOT

TRANSCRIPTS = ROOT / "tests" / "data" / "transcripts"
EVERYTHING = Coverage({0: [(0, 2**40)]})
KIP_1071 = AuditSettings(profile="kip-1071")


@dataclass(slots=True)
class RecordedPlay(Play):
    """A transcript in which time passes between commands, and whose topics are written down.

    ``images`` has each set of topics with the time from which it holds. The records of one answer are one batch.
    """

    history: TopicHistory = field(default_factory=TopicHistory)

    def __post_init__(self) -> None:
        self.history.open_version(LogPosition(0, 0, self.now))

    def command(self, line: str) -> Iterator[str]:
        self.now += 1
        yield from Play.command(self, line)

    def _topics(self, words: list[str]) -> Iterator[str]:
        shown = Play._topics(self, words)
        self.history.open_version(LogPosition(0, len(self.history), self.now))
        for word in words:
            if word.startswith("-"):
                self.history.remove_topic(word[1:])
        for topic in self.topics.by_name.values():
            self.history.put_topic(topic)
        self.history.last_seen_ms = self.now
        return shown

    def _shown(self, outcome: RequestOutcome, name: str = "") -> Iterator[str]:
        known = len(self.log)
        yield from Play._shown(self, outcome, name)
        self.log[known:] = [each._replace(batch=known) for each in self.log[known:]]


def played(name: str) -> RecordedPlay:
    """Play the transcript of this name."""
    play = RecordedPlay()
    with mock.patch.dict(ASSIGNORS):
        for block in (TRANSCRIPTS / f"{name}.txt").read_text().strip("\n").split("\n\n"):
            lines = block.split("\n")
            if not all(line.startswith("#") for line in lines):
                for command in lines[: lines.index(SEPARATOR)]:
                    list(play.command(command))
    return play


def broken(play: RecordedPlay) -> list[Violation]:
    """The broken rules of the transcript's group."""
    fold = GroupAudit.begin(GROUP, Family.GROUP, play.history, EVERYTHING, KIP_1071, from_start=True)
    rows = [row for record in group_records(play) for row in fold.feed(record, 0)]
    return [row for row in (*rows, *fold.open_rows()) if isinstance(row, Violation)]


def audited(play: RecordedPlay, settings: AuditSettings = KIP_1071) -> list[TargetAuditRow]:
    """The verdicts on the targets of the transcript's group."""
    auditor = TargetAuditor(Group(GROUP, from_start=True), None, play.history, settings, EVERYTHING)
    return [row for record in group_records(play) for row in auditor.feed(record, 0)]


def group_records(play: RecordedPlay) -> list[CoordinatorRecord]:
    """The records of the transcript's group."""
    return [record for record in play.log if record.group_id == GROUP]
