"""History of Connect groups on KIP-848, from logs that the coordinator of such groups writes."""

from coordinator_core.groups.group import Group
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.history_fold import GroupFold
from coordinator_core.history.rows import AssignmentRow, GroupEpochRow, HistoryRow, MembershipRow, RebalanceRow
from coordinator_core.records import ConnectRecordType, CoordinatorRecord, Family, LogPosition
from coordinator_core.wire.embedded import encode_blob
from tests.core.cluster.test_metadata_log import Log, supporting
from tests.core.coordinator.test_connect import GROUP, A, B, Cluster, Worker, first_worker, migration
from tests.core.history.logs import kinds
from tests.core.stored import next_history
from tests.core.whole_log import fold


def of(cluster: Cluster) -> list[HistoryRow]:
    return list(fold(cluster.log, Group(GROUP, family=Family.CONNECT)))


def rebalances(cluster: Cluster) -> list[RebalanceRow]:
    return [row for row in of(cluster) if isinstance(row, RebalanceRow)]


def two_workers() -> tuple[Cluster, Worker, Worker]:
    """W1 has everything; W2 joins, and gets B two seconds after W1 was asked to stop it."""
    cluster, one = first_worker()
    one.beat()
    one.install(W1=[*A, *B])
    one.beat()
    cluster.pass_time(1_000)
    two = Worker(cluster, "W2")
    two.beat()
    one.beat()
    cluster.pass_time(500)
    one.install(W1=A, W2=B)
    two.beat()
    one.beat()
    cluster.pass_time(2_000)
    one.beat()
    cluster.pass_time(100)
    two.beat()
    return cluster, one, two


def test_work_configured_then_a_worker_then_another() -> None:
    cluster, _, _ = two_workers()
    first, second = rebalances(cluster)
    configured = next(row for row in of(cluster) if isinstance(row, GroupEpochRow))
    assert (configured.epoch, kinds(configured)) == (0, ["connectors_changed"]), "no rebalance: there is no worker yet"
    assert configured.causes[0].topics == ("A", "B")
    assert (first.from_epoch, first.to_epoch, first.outcome, kinds(first)) == (0, 1, "converged", ["member_joined"])
    assert (second.outcome, kinds(second), second.causes[0].member_id) == ("converged", ["member_joined"], "W2")
    assert (second.time_to_target_ms, second.time_to_converge_ms) == (500, 2_600)
    (revocation,) = second.revocations
    assert (revocation.member_id, revocation.units, revocation.duration_ms) == ("W1", 2, 2_000)
    assert second.delayed_by == "W1"
    assert (second.units_moved, second.units_lost, second.idle_ms, second.idle_max_ms) == (2, 0, 200, 100)


def test_workers_begin_with_an_epoch_before_the_second() -> None:
    """Where the first one is lost, the group does not begin with the second."""
    cluster, _, _ = two_workers()
    epochs = [record.at.offset for record in cluster.log if record.type == ConnectRecordType.GROUP_METADATA]
    joined = max(r.at.offset for r in cluster.log if r.key.get("memberId") == "W2" and r.at.offset < epochs[2])
    group, rest = Group(GROUP, family=Family.CONNECT), [each for each in cluster.log if each.at.offset >= joined]
    topics = Log().batch(supporting(1, 30)).history()
    rows = fold(rest, group, topics, Coverage({0: [(joined, rest[-1].at.offset)]}))
    second = next(row for row in rows if isinstance(row, RebalanceRow))
    assert (second.to_epoch, second.missing) == (2, "the log does not show the group before epoch 2")


def test_rows_of_epochs_members_and_work() -> None:
    cluster, _, _ = two_workers()
    rows = of(cluster)
    epochs = [row for row in rows if isinstance(row, GroupEpochRow)]
    assert [(row.group_type, row.epoch, row.state, row.assignor) for row in epochs] == [
        ("CONNECT", 0, "EMPTY", None),
        ("CONNECT", 1, "STABLE", "sessioned"),
        ("CONNECT", 2, "STABLE", "sessioned"),
    ]
    members = {row.member_id: row.came_by for row in rows if isinstance(row, MembershipRow)}
    assert members == {"W1": "join", "W2": "join"}
    owned = {
        (row.member_id, row.role, row.connector, row.partition)
        for row in rows
        if isinstance(row, AssignmentRow) and row.kind == "current" and row.is_open
    }
    assert owned == {
        ("W1", "connector", "A", -1),
        ("W1", "task", "A", 1),
        ("W1", "task", "A", 2),
        ("W2", "connector", "B", -1),
        ("W2", "task", "B", 1),
    }


def test_the_work_of_a_worker_that_left_waits_until_the_delay_is_over() -> None:
    cluster, one, two = two_workers()
    two.beat(memberEpoch=-1)
    one.beat()
    one.install(W1=A)
    one.beat()
    for _ in range(10):
        cluster.pass_time(30_000)
        one.beat()
    one.install(W1=[*A, *B])
    one.beat()
    left, waited = rebalances(cluster)[-2:]
    assert (kinds(left), left.causes[0].member_id, left.units_lost) == (["member_left_or_expired"], "W2", 2)
    assert (kinds(waited), waited.outcome, waited.units_lost) == (["delay_elapsed"], "converged", 0)


def test_a_worker_asks_for_a_rebalance_by_its_assignors_metadata() -> None:
    cluster, one = first_worker()
    assignor = {"name": "sessioned", "minimumVersion": 0, "maximumVersion": 2, "version": 0}
    one.beat(clientAssignors=[assignor | {"reason": 3}])
    one.beat(clientAssignors=[assignor | {"reason": 3, "maximumVersion": 1}])
    one.beat(clientAssignors=[{**assignor, "name": "other"}])
    causes = [row.causes[0] for row in rebalances(cluster)[1:]]
    assert [(each.kind, each.detail) for each in causes] == [
        ("member_changed", "reason of assignor sessioned 0 to 3"),
        ("member_changed", "versions of assignor sessioned"),
        ("assignor_changed", "assignors sessioned to other"),
    ]


def test_a_bump_that_nothing_explains_says_so() -> None:
    cluster, one = first_worker()
    one.beat()
    last = cluster.log[-1].at
    at = LogPosition(last.partition, last.offset + 1, last.timestamp_ms + 5)
    cluster.log.append(CoordinatorRecord(at, ConnectRecordType.GROUP_METADATA, {"groupId": GROUP}, {"epoch": 3}))
    assert kinds(rebalances(cluster)[-1]) == ["unknown"]


def test_in_any_two_pieces_it_is_the_same_history() -> None:
    cluster, _, two = two_workers()
    two.beat(memberEpoch=-1)
    whole = set(map(repr, of(cluster)))
    for cut in range(len(cluster.log)):
        evening = GroupFold(Group(GROUP, family=Family.CONNECT))
        rows = [row for record in cluster.log[:cut] for row in evening.feed(record)]
        morning = next_history(evening)
        rows += [row for record in cluster.log[cut:] for row in morning.feed(record)]
        assert set(map(repr, [*rows, *morning.open_rows()])) == whole, cut


def epochs_of(cluster: Cluster) -> list[GroupEpochRow]:
    return [row for row in of(cluster) if isinstance(row, GroupEpochRow)]


def test_an_epoch_says_what_no_worker_is_to_run() -> None:
    cluster, one, two = two_workers()
    two.beat(memberEpoch=-1)
    assert [row.unassigned for row in epochs_of(cluster)] == [5, 0, 0, None], "no worker, two targets, and none yet"
    one.beat()
    one.install(W1=A)
    assert epochs_of(cluster)[-1].unassigned == 2


def test_an_epoch_says_that_no_worker_can_compute() -> None:
    """The document's example: a worker must support all versions of the others (FATAL)."""
    cluster = Cluster()
    cluster.configure(*A)
    for name, versions in (("W1", (1, 5)), ("W2", (3, 4)), ("W3", (4, 6))):
        supported = {"name": "sessioned", "minimumVersion": versions[0], "maximumVersion": versions[1]}
        Worker(cluster, name).beat(clientAssignors=[supported | {"version": versions[1], "reason": 0}])
    assert [row.assignment_error for row in epochs_of(cluster)] == [None, None, None, -1]


def test_a_group_that_becomes_classic_needs_no_worker_that_computes_and_its_workers_go_on() -> None:
    rows = list(fold(migration().log, Group(GROUP, family=Family.CONNECT)))
    (last,) = [row for row in rows if isinstance(row, GroupEpochRow) and row.epoch == 5]
    (ended,) = [row for row in rows if isinstance(row, RebalanceRow) and row.to_epoch == 5]
    assert (last.assignment_error, len(last.members)) == (None, 3)
    assert (ended.outcome, ended.units_lost) == ("group deleted", 0)


def test_an_epoch_says_that_the_assignor_failed() -> None:
    cluster, one, _ = two_workers()
    cluster.configure(*A)
    one.beat()
    member = {"groupId": GROUP, "memberId": "W1", "memberEpoch": one.epoch}
    cluster.send("PrepareAssignment", member)
    cluster.send("InstallAssignment", member | {"groupEpoch": 3, "error": 5, "members": []})
    assert [row.assignment_error for row in epochs_of(cluster)] == [None, 0, 0, 5]


def test_memberships_have_the_url_of_the_worker() -> None:
    cluster, one = first_worker()
    assignor = {"name": "sessioned", "minimumVersion": 0, "maximumVersion": 2, "version": 0}
    for url in ("http://here:8083/", "http://there:8083/"):
        fields = {"url": url, "configOffset": 1}
        one.beat(clientAssignors=[assignor | {"metadata": encode_blob("ConnectProtocolMetadata", 0, fields)}])
    (row,) = [row for row in of(cluster) if isinstance(row, MembershipRow)]
    assert row.url == "http://there:8083/"
