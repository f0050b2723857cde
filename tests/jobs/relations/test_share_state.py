"""What the share state log lacks: the tables know it as the log files show it, so that answers from both agree."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from coordinator_core.history.knowledge import GivenShareState, Knowledge
from coordinator_core.records import LOG_TOPICS, Family
from jobs.queries.from_logs.answers import replay
from jobs.queries.from_logs.history import group_histories
from jobs.queries.from_tables.stored_moment import StoredMoment
from jobs.relations.knowledge import missing_of_shares, stored_knowledge
from jobs.relations.logs import LogFacts
from jobs.relations.moment import AsOf
from jobs.sources.files import find_logs
from jobs.sources.log_reader import LogReader, LogRow, by_partition
from jobs.tables.folder_reader import FolderReader
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.relations.tables_of_logs import CLUSTER, append, fill
from tests.matrix.removals import share_damaged, share_hole, share_part, share_unreadable, without_share, without_topic

GROUP_LOG, SHARE_LOG = LOG_TOPICS[Family.GROUP], LOG_TOPICS[Family.SHARE]
SHARED = "D-share-38"
PARTITIONS = {GROUP_LOG: 4, SHARE_LOG: 2}
Change = Callable[[Path], object]
CHANGES: dict[str, Change] = {
    "nothing": lambda folder: None,
    "absent": without_topic(SHARE_LOG),
    "a partition absent": without_share(0),
    "without its beginning": share_part(0, 0.5, 1),
    "with a hole": share_hole(1),
    "damaged": share_damaged(1),
    "unreadable": share_unreadable(0),
}


@pytest.fixture(scope="module", params=CHANGES)
def logs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The samples without something of the share state log."""
    folder = tmp_path_factory.mktemp("damaged") / "logs"
    shutil.copytree(SAMPLE_LOGS, folder)
    CHANGES[request.param](folder)
    return folder


@pytest.fixture(scope="module")
def tables(logs: Path) -> FolderReader:
    place = logs.parent / "tables"
    fill(place, logs, topics=(GROUP_LOG, SHARE_LOG))
    append(place, "topic_history", [{"cluster": CLUSTER, "topic": of, "partitions": n} for of, n in PARTITIONS.items()])
    return FolderReader(str(place))


def given(known: Knowledge) -> GivenShareState:
    assert known.share_state is not None
    return known.share_state()


def test_a_moment_from_tables_lacks_what_it_lacks_from_files(logs: Path, tables: FolderReader) -> None:
    times = sorted(row.timestamp for row in _share_rows())
    within = [times[len(times) * number // 4] for number in (1, 2, 3)]
    for moment in (AsOf(), *(AsOf(time_ms=each) for each in within), AsOf(offsets={1: 200})):
        stored, replayed = StoredMoment(tables, CLUSTER, moment), replay(find_logs([logs]), moment, lambda _: None)
        assert given(stored.knowledge()) == given(replayed.knowledge())
        assert stored.surroundings().share_state == replayed.surroundings().share_state


def _share_rows(logs: Path = SAMPLE_LOGS) -> Iterator[LogRow]:
    for files in by_partition(find_logs([logs]))[Family.SHARE].values():
        yield from LogReader(files, lambda _: None).rows()


@pytest.mark.parametrize("later", [0, 1], ids=["at the hole", "behind it"])
def test_what_is_lost_just_before_a_moment_may_have_changed_every_share_partition(tmp_path: Path, later: int) -> None:
    """No record up to the moment shows the hole; behind it only those are known of which a record follows."""
    logs = Path(shutil.copytree(SAMPLE_LOGS, tmp_path / "logs"))
    share_damaged(1)(logs)
    whole, left = ([*_share_rows(each / f"{SHARE_LOG}-1")] for each in (SAMPLE_LOGS, logs))
    first_lost = min({row.offset for row in whole} - {row.offset for row in left})
    at = next(number for number, row in enumerate(left) if row.offset > first_lost) - 1 + later
    fill(tmp_path / "tables", logs, topics=(GROUP_LOG, SHARE_LOG))
    moment = AsOf(time_ms=left[at].timestamp)
    stored = StoredMoment(FolderReader(str(tmp_path / "tables")), CLUSTER, moment)
    for source in (stored, replay(find_logs([logs]), moment, lambda _: None)):
        state = source.surroundings().share_state
        assert state is not None
        known = [each.at.offset for each in state.partitions.values() if each.at.partition == 1]
        assert all(offset > first_lost for offset in known)


def test_histories_from_tables_lack_what_they_lack_from_files(logs: Path, tables: FolderReader) -> None:
    known: list[Knowledge] = []
    histories = group_histories(find_logs([logs]), lambda _: None, noted=known.append)
    (shared,) = [history for history in histories if history.group_id == SHARED]
    facts = LogFacts.read(tables, CLUSTER)
    # From files it is known what was read of the group's own log partition, from tables of all.
    assert shared.lost.read.items() <= facts.lost.read.items()
    assert facts.lost.about(SHARED) == replace(shared.lost, read=facts.lost.read)
    assert facts.share_logs.whole == shared.share_logs.whole
    assert given(stored_knowledge(tables, CLUSTER)) == given(known[0])


def test_only_answers_about_share_groups_are_warned_of(tmp_path: Path) -> None:
    phases = [{"phase": "initialized"}, {"phase": "initializing", "was_initialized": True}, {"phase": "initializing"}]
    rows = [{"cluster": CLUSTER, "group_id": f"group {n}", **phase} for n, phase in enumerate(phases)]
    append(tmp_path, "share_initializations", rows)
    append(tmp_path, "group_states", [{"cluster": CLUSTER, "group_id": "deleted", "log_topic": SHARE_LOG}])
    tables, known = FolderReader(str(tmp_path)), Knowledge(share_state=GivenShareState)
    warned = [
        each
        for each in (None, "group 0", "group 1", "group 2", "deleted", "other")
        if missing_of_shares(known, tables, CLUSTER, each) == known.about_share_groups()
    ]
    assert warned == [None, "group 0", "group 1", "deleted"]
