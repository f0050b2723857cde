"""A log in the records of KIP-1071 as accepted: epochs without a metadata hash, topics in a record of type 18.

The log is of three members that are bounced one after the other to a new topology (the example of the document).
"""

import json
from pathlib import Path

import pytest

from coordinator_core.audit.rows import Verdict
from coordinator_core.groups.certainty import Certainty
from coordinator_core.groups.streams.state import StreamsGroup
from coordinator_core.records import RecordType
from coordinator_core.wire.record_codec import decode_value, encode_value
from jobs.queries.from_logs.answers import LogAnswers
from jobs.relations.moment import AsOf
from jobs.settings import load
from jobs.sources.files import find_logs
from tests.commands import run_command
from tests.jobs.queries.same_answers import only_topics_missing
from tests.shared_data import ROOT

LOG = ROOT / "tests" / "data" / "kip_1071" / "rolling_topology.log"
EPOCH = {"epoch": 4}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "__consumer_offsets-0"
    place.mkdir()
    (place / "00000000000000000000.log").write_bytes(LOG.read_bytes())
    return tmp_path


def test_both_layouts_of_one_version_are_read_and_written() -> None:
    document = encode_value(RecordType.STREAMS_GROUP_METADATA, 0, EPOCH)
    release = encode_value(RecordType.STREAMS_GROUP_METADATA, 0, {**EPOCH, "metadataHash": 0})
    assert (len(document), len(release)) == (7, 15)
    assert decode_value(document, RecordType.STREAMS_GROUP_METADATA)[1] == EPOCH
    assert decode_value(release, RecordType.STREAMS_GROUP_METADATA)[1] == {**EPOCH, "metadataHash": 0}


@pytest.mark.parametrize("length", [3, 6, 8, 11, 14])
def test_a_damaged_record_is_not_taken_for_the_other_layout(length: int) -> None:
    release = encode_value(RecordType.STREAMS_GROUP_METADATA, 0, {**EPOCH, "metadataHash": 1 << 40})
    with pytest.raises(Exception, match="StreamsGroupMetadataValue"):
        decode_value(release[:length], RecordType.STREAMS_GROUP_METADATA)


def test_targets_are_recomputed_without_a_metadata_log(folder: Path) -> None:
    answers = LogAnswers(find_logs([folder]), pytest.fail, lambda: load(environment={}))
    (then,) = answers.at(AsOf()).groups()
    assert isinstance(then.group.state, StreamsGroup)
    assert then.group.state.metadata_hash is None
    assert {name: each.partitions for name, each in (then.group.state.subscription_metadata or {}).items()} == {"in": 9}
    assert then.certainty == Certainty()
    verdicts = list(answers.verdicts("billing", 0))
    assert [row.epoch for row in verdicts] == list(range(2, 11))
    assert {row.verdict for row in verdicts} == {Verdict.IDENTICAL}
    assert list(answers.violations("billing", 0)) == []


def test_the_history_knows_that_the_topology_fits(folder: Path) -> None:
    answers = LogAnswers(find_logs([folder]), only_topics_missing, lambda: load(environment={}))
    history = answers.history("billing")
    assert history is not None
    checks = {row.topology.status for row in history.epochs if row.topology is not None}
    assert checks == {"READY"}


def test_nothing_of_it_is_quarantined_or_warned_of(folder: Path) -> None:
    result = run_command("groups", "--log", folder, "--json")
    (said,) = result.stderr.splitlines()
    assert (result.exit_code, "no metadata log says how many partitions" in said) == (0, True)
    (group,) = map(json.loads, result.stdout.splitlines())
    assert (group["state"], group["epoch"], group["certainty"]) == ("STABLE", 10, "certain")
