"""What clients see of the racks of replicas while brokers are away."""

from coordinator_core.cluster.client_view import client_views, rack_changes
from tests.core.cluster.test_broker_history import changed
from tests.core.cluster.test_metadata_log import A, B, Log, broker, partition, topic


def a_cluster():
    """A topic from 2 s on; broker 2 is away from 3 s to 5 s, and the topic grows at 4 s."""
    log = Log().batch(broker(1, "r1"), broker(2, "r2")).batch(topic("t", A), partition(A, 0, 1, 2))
    log.batch(changed(2, fenced=1)).batch(partition(A, 1, 2, 1)).batch(changed(2, fenced=-1))
    return log.batch(topic("u", B), partition(B, 0, 1)).history()


def seen(views):
    return [(view.at.offset, view.image.by_name["t"].racks, sorted(view.away)) for view in views]


def test_a_replica_on_a_broker_that_is_away_has_no_rack():
    assert seen(client_views(a_cluster(), 2_500, 9_000, ["t"], with_racks=True)) == [
        (3, (("r1", "r2"),), []),
        (4, (("r1",),), [2]),
        (5, (("r1",), ("r1",)), [2]),
        (6, (("r1", "r2"), ("r2", "r1")), []),
    ]


def test_what_was_away_before_is_away_at_the_beginning():
    assert seen(client_views(a_cluster(), 3_500, 3_800, ["t"], with_racks=True)) == [(4, (("r1",),), [2])]
    assert seen(client_views(a_cluster(), 5_500, 5_900, ["t"], with_racks=True)) == [
        (5, (("r1", "r2"), ("r2", "r1")), [])
    ], "with the position of the topic, as nobody is away"


def test_where_racks_do_not_count_only_the_topics_change():
    assert [view.at.offset for view in client_views(a_cluster(), 2_500, 9_000, ["t"], with_racks=False)] == [3, 5]


def test_which_topics_a_broker_changes():
    history = a_cluster()
    changes = rack_changes(history, ["t", "u", "gone"], 0, 10_000)
    assert [(each.at.offset, each.broker, each.is_there, each.topics) for each in changes] == [
        (4, 2, False, ("t",)),
        (6, 2, True, ("t",)),
    ]
    assert rack_changes(history, ["u"], 0, 10_000) == []


def test_a_second_replica_in_the_same_rack_goes_too():
    """A Java client compares sets of racks, in which one that is away has none."""
    log = Log().batch(broker(1, "r"), broker(2, "r")).batch(topic("t", A), partition(A, 0, 1, 2))
    history = log.batch(changed(2, fenced=1)).batch(changed(1, fenced=1)).history()
    assert [each.broker for each in rack_changes(history, ["t"], 0, 10_000)] == [2, 1]
