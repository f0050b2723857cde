"""A log partition without a record, of which a moment names an offset: tables say of it what log files say."""

import pytest

from coordinator_core.groups.certainty import LogGaps
from jobs.queries.from_logs.answers import replay
from jobs.queries.from_tables.stored_moment import StoredMoment
from jobs.relations.moment import AsOf
from jobs.sources.files import find_logs
from jobs.tables.folder_reader import FolderReader
from tests.jobs.conftest import SAMPLE_LOGS
from tests.matrix.sources import CLUSTER, StoredTables, ThisProcess

EMPTY = 2
"""The partition of the samples that has an empty segment."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> FolderReader:
    place = tmp_path_factory.mktemp("tables")
    StoredTables(ThisProcess(), place, [[SAMPLE_LOGS]])
    return FolderReader(str(place))


def test_share_state_at_a_moment_that_a_log_does_not_reach_is_not_certain(tables: FolderReader) -> None:
    """When the moment was is not known: share state has no offsets in common with the logs of groups."""
    found = []
    for offsets in ({1: 400}, {1: 400, EMPTY: 10}):
        moment = AsOf(offsets=offsets)
        states = [
            then.surroundings().share_state
            for then in (StoredMoment(tables, CLUSTER, moment), replay(find_logs([SAMPLE_LOGS]), moment, print))
        ]
        assert states[0] == states[1]
        assert states[0] is not None
        found.append((bool(states[0].partitions), bool(states[0].undated)))
    assert found == [(True, False), (False, True)]


def test_a_log_without_a_record_does_not_reach_a_moment(tables: FolderReader) -> None:
    for number, expected in ((EMPTY, LogGaps(9, 9)), (7, None)):
        moment = AsOf(offsets={number: 10})
        stored, replayed = StoredMoment(tables, CLUSTER, moment), replay(find_logs([SAMPLE_LOGS]), moment, print)
        assert stored.gaps().get(f"__consumer_offsets-{number}") == expected
        assert expected in (None, replayed.gaps().get(f"__consumer_offsets-{number}"))
