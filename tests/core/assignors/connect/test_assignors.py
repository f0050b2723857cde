"""Connect's assignors: invariants over rounds, and what KIP-415 promises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.assignors.connect.work import CONFIG_MISMATCH, ConnectorsAndTasks, configured
from coordinator_core.assignors.inputs import ConnectGroupSpec, WorkerSpec
from coordinator_core.assignors.registry import assign
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError
from tests.core.assignors.connect.groups import MAX_DELAY_MS, Cluster

NO_TOPICS = TopicImage.of([])
CONNECTORS = st.dictionaries(st.sampled_from(["A", "B", "C", "sink", "src-1"]), st.integers(0, 7), max_size=4)
WORKERS = st.lists(st.sampled_from(["w1", "w10", "w2", "w3", "AaAa", "BBBB"]), unique=True, min_size=2, max_size=5)


def cluster(connectors: dict[str, int], workers: list[str], **options: object) -> Cluster:
    started = Cluster(connectors, **options)
    for worker in workers:
        started.join(worker)
    started.settle()
    return started


def check_settled(group: Cluster) -> None:
    """Everything runs once, and no worker has two connectors or two tasks more than another."""
    assert group.holders() == dict.fromkeys(configured(group.spec()).units(), 1)
    for kind in range(2):
        loads = [len(work[kind]) for work in group.works.values()]
        assert max(loads) - min(loads) <= 1


@given(connectors=CONNECTORS, workers=WORKERS)
@pytest.mark.parametrize("protocol", ["default", "compatible", "sessioned"])
def test_all_runs_once_and_evenly(protocol: str, connectors: dict[str, int], workers: list[str]) -> None:
    group = Cluster(connectors, protocol)
    for worker in workers:
        group.join(worker)
    group.round()
    assert group.holders() == dict.fromkeys(configured(group.spec()).units(), 1)
    loads = [len(work.units()) for work in group.works.values()]
    assert max(loads) - min(loads) <= (1 if protocol == "default" else 2)


@given(connectors=CONNECTORS, workers=WORKERS, later=CONNECTORS, data=st.data())
@pytest.mark.parametrize("max_delay_ms", [0, 1, MAX_DELAY_MS])
def test_comes_to_rest_whatever_happens(
    max_delay_ms: int, connectors: dict[str, int], workers: list[str], later: dict[str, int], data: st.DataObject
) -> None:
    """The leader stays: a new one does not know of work that was deleted before, and leaves it running."""
    group = cluster(connectors, workers[:-1], max_delay_ms=max_delay_ms)
    check_settled(group)
    events = {
        "join": lambda: group.join(workers[-1]),
        "leave": lambda: group.leave(data.draw(st.sampled_from(sorted(group.works.keys() - {group.leader})))),
        "reconfigure": lambda: setattr(group, "connectors", later),
    }
    for event in data.draw(st.permutations(sorted(events))):
        if event != "leave" or len(group.works) > 1:
            events[event]()
        if data.draw(st.booleans()):
            group.round()
            assert all(count == 1 for count in group.holders().values())
    group.settle()
    check_settled(group)


@given(connectors=CONNECTORS, workers=WORKERS, data=st.data())
def test_work_of_a_worker_that_comes_back_in_time_waits_for_it(
    connectors: dict[str, int], workers: list[str], data: st.DataObject
) -> None:
    """Unless other workers have nothing to do: they get some of it too."""
    group = cluster(connectors, workers)
    before = {worker: set(work.units()) for worker, work in group.works.items()}
    gone = data.draw(st.sampled_from(sorted(set(workers) - {group.leader})))
    group.leave(gone)
    told = group.round()
    assert {worker: set(work.units()) for worker, work in group.works.items()} == {
        worker: units for worker, units in before.items() if worker != gone
    }
    assert told[group.leader].delay_ms == (MAX_DELAY_MS if before[gone] else 0)
    group.now_ms += MAX_DELAY_MS // 2
    group.join(gone)
    group.settle()
    if all(before.values()):
        assert {worker: set(work.units()) for worker, work in group.works.items()} == before


def test_nothing_is_stopped_for_balance_while_a_delay_runs() -> None:
    group = cluster({"A": 4, "B": 4}, ["w1", "w2"])
    group.leave("w2")
    group.round()
    group.join("w3")
    group.join("w4")
    told = group.round()
    assert told["w1"].delay_ms == MAX_DELAY_MS
    assert not any(mine.revoked_tasks or mine.tasks for mine in told.values())


def test_a_second_round_in_a_row_that_would_stop_work_is_put_off() -> None:
    group = cluster({"A": 12}, ["w1"])
    group.join("w2")
    assert group.round()["w1"].revoked_tasks
    group.join("w3")
    told = group.round()
    assert [told["w1"].delay_ms, told["w1"].revoked_tasks] == [40, []]


def test_work_run_twice_is_stopped_everywhere_and_given_anew() -> None:
    group = Cluster({"A": 1})
    group.join("w1", ConnectorsAndTasks.of(["A"], [("A", 0)]))
    group.join("w2", ConnectorsAndTasks.of([], [("A", 0)]))
    told = group.round()
    assert told["w1"].revoked_tasks == told["w2"].revoked_tasks == [("A", 0)]
    group.settle()
    check_settled(group)


def test_a_leader_that_lost_a_round_forgets_what_it_assigned() -> None:
    group = cluster({"A": 2}, ["w1", "w2"])
    group.leave("w2")
    group.completed = -7
    told = group.round()
    assert told["w1"].delay_ms == 0
    check_settled(group)


@pytest.mark.parametrize("protocol", ["default", "sessioned"])
def test_a_leader_behind_in_the_config_topic_assigns_nothing(protocol: str) -> None:
    members = {"w1": WorkerSpec("u1", 4, ["A"]), "w2": WorkerSpec("u2", 6)}
    spec = ConnectGroupSpec(members, "w1", {"A": 1}, 5, 3, 2, 0, MAX_DELAY_MS)
    told = assign(protocol, spec, NO_TOPICS)
    assert {mine.error for mine in told.members.values()} == {CONFIG_MISMATCH}
    assert [(mine.config_offset, list(mine.connectors), mine.delay_ms) for mine in told.members.values()] == [
        (6, [], 0),
        (6, [], 0),
    ]


@pytest.mark.parametrize("protocol", ["default", "compatible"])
def test_odd_input_fails_clearly(protocol: str) -> None:
    spec = ConnectGroupSpec({}, "w1", {}, 5, 3, 2, 0, MAX_DELAY_MS)
    with pytest.raises(AssignorError, match="the leader 'w1' is not among the workers"):
        assign(protocol, spec, NO_TOPICS)
    spec = ConnectGroupSpec({"w1": WorkerSpec("u", 1)}, "w1", {"A": -1}, 5, 3, 2, 0, MAX_DELAY_MS)
    with pytest.raises(AssignorError, match="connector 'A' has -1 tasks"):
        assign(protocol, spec, NO_TOPICS)
