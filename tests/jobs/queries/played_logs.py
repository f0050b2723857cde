"""A transcript of the coordinator model as log files with the metadata log of its topics, and what is said of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from coordinator_core.audit.explain import explain, find_rebalance
from coordinator_core.audit.findings.group_history import GroupHistory
from coordinator_core.cluster.image import Topic
from coordinator_core.groups.describe import describe
from coordinator_core.records import CoordinatorRecord, Family, LogPosition, MetadataRecordType
from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.interface import AsOf
from jobs.settings import load
from jobs.sources.files import find_logs
from tests.core.audit.transcribed import TRANSCRIPTS, RecordedPlay
from tests.core.coordinator.transcript import GROUP, SEPARATOR
from tests.jobs.logs import batch, write_segment


@dataclass(slots=True)
class LoggedPlay(RecordedPlay):
    """A transcript whose topics are written to the metadata log as well."""

    metadata: list[list[CoordinatorRecord]] = field(default_factory=list)

    def _topics(self, words: list[str]) -> Iterator[str]:
        before = dict(self.topics.by_name)
        shown = RecordedPlay._topics(self, words)
        after = self.topics.by_name
        values: list[tuple[int, dict[str, Any]]] = []
        for name, topic in after.items():
            known = before.get(name)
            is_new = known is None or known.id != topic.id
            values += [(MetadataRecordType.TOPIC, {"name": name, "topicId": topic.id})] * is_new
            values += _partitions(topic, 0 if known is None or is_new else known.partitions)
        gone = [topic for name, topic in before.items() if name not in after]
        values += [(MetadataRecordType.REMOVE_TOPIC, {"topicId": topic.id}) for topic in gone]
        if values:
            offset = sum(map(len, self.metadata))
            self.metadata.append(
                [
                    CoordinatorRecord(LogPosition(0, offset + number, self.now), kind, {}, value, 0)
                    for number, (kind, value) in enumerate(values)
                ]
            )
        return shown


def _partitions(topic: Topic, since: int) -> list[tuple[int, dict[str, Any]]]:
    lists = ("removingReplicas", "addingReplicas")
    rest = dict.fromkeys(("leaderRecoveryState", "leaderEpoch", "partitionEpoch"), 0) | {key: [] for key in lists}
    placed = {"topicId": topic.id, "replicas": [1], "isr": [1], "leader": 1, **rest}
    return [
        (MetadataRecordType.PARTITION, {**placed, "partitionId": number}) for number in range(since, topic.partitions)
    ]


def _still_there(offset: int, now: int) -> CoordinatorRecord:
    """A record without news of topics: the metadata log goes on, as that of a cluster does twice a second."""
    value = {"name": "group.version", "featureLevel": 1}
    return CoordinatorRecord(LogPosition(0, offset, now), MetadataRecordType.FEATURE_LEVEL, {}, value, 0)


class PlayedLogs:
    """A transcript as it is played, and what the product says of its log files so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.play = LoggedPlay()

    def answers(self) -> LogAnswers:
        """Answers from the logs as they are now."""
        play = self.play
        groups = [batch(*together) for _, together in groupby(play.log, key=lambda each: each.batch)]
        write_segment(self.folder / "__consumer_offsets-0", groups)
        metadata = [*play.metadata, [_still_there(sum(map(len, play.metadata)), play.now)]]
        write_segment(self.folder / "__cluster_metadata-0", [batch(*each, family=Family.METADATA) for each in metadata])
        return LogAnswers(find_logs([self.folder]), pytest.fail, load(environment={}))

    def history(self) -> GroupHistory:
        history = self.answers().history(GROUP)
        assert history is not None
        return history

    def described(self) -> dict[str, Any]:
        """The group as ``describe --json`` has it."""
        then = self.answers().at(AsOf(), GROUP)
        around = then.surroundings()
        (found,) = then.groups()
        return describe(found.group, found.offsets, around, found.certainty)

    def story(self, epoch: int) -> list[str]:
        """What ``explain`` says of the rebalance to an epoch, with the names of the transcript."""
        history = self.history()
        return [self.play._named(sentence.text) for sentence in explain(history, find_rebalance(history, epoch))]

    def steps(self, name: str) -> Iterator[tuple[str, list[str]]]:
        """Play a transcript, command by command: each with what came of it."""
        for block in (TRANSCRIPTS / f"{name}.txt").read_text().strip("\n").split("\n\n"):
            lines = block.split("\n")
            if not all(line.startswith("#") for line in lines):
                for command in lines[: lines.index(SEPARATOR)]:
                    if not command.startswith("#"):
                        yield command, list(self.play.command(command))

    def through(self, name: str) -> PlayedLogs:
        """Play a transcript to its end."""
        list(self.steps(name))
        return self
