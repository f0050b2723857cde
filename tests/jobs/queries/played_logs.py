"""A transcript of the coordinator model as log files with the metadata log of its topics, and what is said of them."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from coordinator_core.audit.explain import explain, find_rebalance
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.groups.describe import describe
from coordinator_core.records import MetadataRecordType
from coordinator_core.simulator.brokers import MetadataRecord
from jobs.queries.from_logs.answers import LogAnswers
from jobs.relations.moment import AsOf
from jobs.settings import load
from jobs.sources.files import find_logs
from tests.core.audit.transcribed import TRANSCRIPTS, RecordedPlay
from tests.core.coordinator.transcript import GROUP, SEPARATOR
from tests.jobs.logs import batch, metadata_batches, write_segment

STILL_THERE = MetadataRecord(MetadataRecordType.FEATURE_LEVEL, 0, {"name": "group.version", "featureLevel": 1})
"""A record without news of topics: the metadata log goes on, as that of a cluster does twice a second."""


def only_share_state_missing(message: str) -> None:
    """A coordinator of groups does not write the share state log: that it was not given is no fault."""
    if not message.startswith("the share state log (__share_group_state) was not given"):
        pytest.fail(message)


class PlayedLogs:
    """A transcript as it is played, and what the product says of its log files so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.play = RecordedPlay()

    def answers(self) -> LogAnswers:
        """Answers from the logs as they are now."""
        play = self.play
        groups = [batch(*together) for _, together in groupby(play.log, key=lambda each: each.batch)]
        write_segment(self.folder / "__consumer_offsets-0", groups)
        metadata = [*play.metadata, (play.now, [STILL_THERE])]
        write_segment(self.folder / "__cluster_metadata-0", metadata_batches(metadata))
        return LogAnswers(find_logs([self.folder]), only_share_state_missing, lambda: load(environment={}))

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

    def through(self, name: str) -> "PlayedLogs":
        """Play a transcript to its end."""
        list(self.steps(name))
        return self
