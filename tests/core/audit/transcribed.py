"""The log that the coordinator of a transcript writes, with the topics of its time, as an audit reads them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from unittest import mock

from coordinator_core.assignors.registry import ASSIGNORS
from coordinator_core.audit.group_audit import GroupAudit
from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.auditor import TargetAuditor
from coordinator_core.cluster.image import Topic
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.coordinator.protocol import RequestOutcome
from coordinator_core.groups.group import Group
from coordinator_core.groups.violations import Violation
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import GROUP_LOG, CoordinatorRecord, Family, LogPosition, MetadataRecordType
from coordinator_core.simulator.brokers import Brokers, MetadataRecord
from coordinator_core.simulator.seeded_random import SeededRandom
from tests.core.coordinator.transcript import GROUP, SEPARATOR, Play
from tests.shared_data import ROOT

TRANSCRIPTS = ROOT / "tests" / "data" / "transcripts"
EVERYTHING = Coverage({0: [(0, 2**40)]})
LOG_ID = "bG9nIG9mIGdyb3VwcyBpZA"
KIP_1071 = AuditSettings(profile="kip-1071")


@dataclass(slots=True)
class RecordedPlay(Play):
    """A transcript in which time passes between commands, and whose topics are written down.

    ``history`` has the topics through time, and ``metadata`` the same as records with their times. The records of one
    answer are one batch.
    """

    history: TopicHistory = field(default_factory=TopicHistory)
    metadata: list[tuple[int, list[MetadataRecord]]] = field(default_factory=list)
    brokers: Brokers = field(default_factory=lambda: Brokers({0: None}, SeededRandom(1)))

    def __post_init__(self) -> None:
        self.history.open_version(LogPosition(0, 0, self.now))
        self.metadata.append((self.now, [*self.brokers.start(0, 0), *self._log_of_groups()]))

    def _log_of_groups(self) -> Iterator[MetadataRecord]:
        """The topic of the log, of one partition."""
        yield MetadataRecord(MetadataRecordType.TOPIC, 0, {"name": GROUP_LOG, "topicId": LOG_ID})
        yield self.brokers.place(self.now, GROUP_LOG, LOG_ID, 0, (0,))

    def command(self, line: str) -> Iterator[str]:
        self.now += 1
        yield from Play.command(self, line)

    def _topics(self, words: list[str]) -> Iterator[str]:
        before = self.topics.by_name
        shown = list(Play._topics(self, words))  # all of it: the topics change on the way
        self.metadata.append((self.now, list(self._metadata(before))))
        self.history.open_version(LogPosition(0, len(self.history), self.now))
        for word in words:
            if word.startswith("-"):
                self.history.remove_topic(word[1:])
        for topic in self.topics.by_name.values():
            self.history.put_topic(topic)
        self.history.last_seen_ms = self.now
        return iter(shown)

    def _metadata(self, before: Mapping[str, Topic]) -> Iterator[MetadataRecord]:
        """The records of the metadata log that make the topics what they are now."""
        for name in before.keys() - self.topics.by_name.keys():
            yield MetadataRecord(MetadataRecordType.REMOVE_TOPIC, 0, {"topicId": before[name].id})
        for name, topic in self.topics.by_name.items():
            known = before.get(name)
            if known is None:
                yield MetadataRecord(MetadataRecordType.TOPIC, 0, {"name": name, "topicId": topic.id})
            for number in range(0 if known is None else known.partitions, topic.partitions):
                yield self.brokers.place(self.now, name, topic.id, number, (0,))

    def _shown(self, outcome: RequestOutcome, name: str = "") -> Iterator[str]:
        known = len(self.log)
        yield from Play._shown(self, outcome, name)
        self.log[known:] = [each._replace(batch=known) for each in self.log[known:]]


def played(name: str, until: str | None = None) -> RecordedPlay:
    """Play the transcript of this name, up to the block whose comment begins with ``until``."""
    play = RecordedPlay()
    with mock.patch.dict(ASSIGNORS):
        for block in (TRANSCRIPTS / f"{name}.txt").read_text().strip("\n").split("\n\n"):
            if until is not None and block.startswith(f"# {until}"):
                return play
            lines = block.split("\n")
            if not all(line.startswith("#") for line in lines):
                for command in lines[: lines.index(SEPARATOR)]:
                    list(play.command(command))
    assert until is None
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
