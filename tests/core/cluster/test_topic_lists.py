"""Topic history from listings instead of a log."""

from datetime import UTC, datetime

import pytest

from coordinator_core.cluster.image import Topic
from coordinator_core.cluster.topic_lists import ZERO_ID, fold_snapshots
from coordinator_core.errors import InputError

A = "5J6Vb5ZiR3aDu5l2a3l1Ew"


def row(time, name="t", **fields):
    return {"name": name, "id": A, "partitions": 1, "time": time, **fields}


def test_each_time_is_a_whole_listing():
    history = fold_snapshots(
        [row(2000, partitions=3), row(1000), row(1000, name="u", id=None), row(3000, name="u", id=None)]
    )
    assert history.at(999) is None
    assert dict(history.at(1000).image.by_name) == {"t": Topic("t", A, 1), "u": Topic("u", ZERO_ID, 1)}
    assert list(history.at(2000).image.by_name) == ["t"]
    assert [change.kind for change in history.changes(["t"], 0, 2)] == ["grown", "deleted"]
    assert history.at(2999).at.timestamp_ms == 2000
    assert history.last_seen_ms == 3000


def test_racks_by_partition_and_times_as_datetimes():
    history = fold_snapshots([row(datetime(2026, 1, 1, tzinfo=UTC), partitions=2, racks=[["a", None], []])])
    assert history.at(1767225600000).image.by_name["t"].racks == (("a",), ())


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"name": "t", "time": 1}, "lacks the field 'partitions'"),
        (row("yesterday"), "time 'yesterday'"),
        (row(1, partitions="3"), "partitions '3'"),
        (row(1, partitions=2, racks=[["a"]]), "racks of 1 partitions, but 2"),
    ],
)
def test_a_row_of_another_shape_is_refused_by_name(bad, says):
    with pytest.raises(InputError, match=says):
        fold_snapshots([bad])
