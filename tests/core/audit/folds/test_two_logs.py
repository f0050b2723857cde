"""Groups of Connect workers that live in two logs, of which one does not show what the other ends."""

import pytest

from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.folds.topics_at_end import TopicsAtEnd
from coordinator_core.audit.folds.two_logs import by_log, last_time
from coordinator_core.history.grounds import CONVERTED_ELSEWHERE, MAY_BE_CONVERTED, MAY_HAVE_MOVED
from coordinator_core.history.lost_records import LogExtent, LostRecords
from coordinator_core.records import CONNECT_LOG, GROUP_LOG, LogPosition
from tests.core.audit.histories import at, cause, epoch, member, rebalance


@pytest.mark.parametrize(("members", "missing"), [(("w",), MAY_BE_CONVERTED), ((), None)])
@pytest.mark.parametrize("has_classic", [True, False])
def test_a_group_that_ends_with_members_was_not_deleted(
    members: tuple[str, ...], missing: str | None, has_classic: bool
) -> None:
    """Its first generation is lost, or was removed by compaction: the next one is not at the time of the end."""
    ended = {"ended": at(9), "ended_by": "group deleted", "members": members}
    history = GroupHistory(
        "g",
        10_000_000,
        epochs=[
            epoch(4, at(7), group_type="CONNECT", **ended),
            *([epoch(6, at(20), group_type="CLASSIC")] if has_classic else []),
        ],
        rebalances=[rebalance(4, at(7), group_type="CONNECT", outcome="group deleted", finished=at(9))],
        memberships=[
            member("w", at(7), at(9), group_type="CONNECT", went_by="group deleted"),
            member("x", at(7), at(8, at(9).timestamp_ms), group_type="CONNECT", went_by="leave or expiry"),
        ],
    )
    connect = by_log(history)[0]
    rows = (*connect.epochs, *connect.rebalances, *connect.memberships)
    assert [row.outcome for row in connect.rebalances] == ["group deleted" if missing is None else "unknown"]
    assert {row.missing for row in rows} == {missing}
    assert {row.history_complete for row in rows} == {missing is None}


@pytest.mark.parametrize(
    ("protocol", "members", "missing"),
    [("connect", ("w",), MAY_BE_CONVERTED), ("connect", (), None), ("consumer", ("w",), None)],
)
@pytest.mark.parametrize("has_connect", [True, False])
def test_classic_workers_may_have_moved_where_the_log_of_workers_shows_no_group_that_continues_them(
    protocol: str, members: tuple[str, ...], missing: str | None, has_connect: bool
) -> None:
    ended = {"ended": at(9), "ended_by": "group deleted", "members": members, "protocol_type": protocol}
    history = GroupHistory(
        "g",
        10_000_000,
        epochs=[
            epoch(4, at(7), group_type="CLASSIC", **ended),
            *([epoch(9, at(40), group_type="CONNECT")] if has_connect else []),
        ],
        memberships=[member("w", at(7), at(9), group_type="CLASSIC", went_by="group deleted")],
    )
    classic = by_log(history)[0]
    rows = (*classic.epochs, *classic.memberships)
    assert {row.missing for row in rows} == {missing}
    assert {row.history_complete for row in rows} == {missing is None}


@pytest.mark.parametrize(("is_there", "is_read"), [(False, False), (True, True), (True, False)])
def test_a_classic_group_without_members_may_have_moved_to_a_log_of_workers_that_was_not_read(
    is_there: bool, is_read: bool
) -> None:
    """One partition of the log: the metadata log has it."""
    ended = {"ended": at(9), "ended_by": "group deleted", "members": (), "protocol_type": "connect"}
    history = GroupHistory(
        "g",
        10_000_000,
        epochs=[epoch(4, at(7), group_type="CLASSIC", **ended)],
        topics=TopicsAtEnd({CONNECT_LOG: 1} if is_there else {}),
        lost=LostRecords(read={(CONNECT_LOG, 0): LogExtent(0, 9, 0)} if is_read else {}),
    )
    (row,) = by_log(history)[0].epochs
    assert row.missing == (MAY_BE_CONVERTED if is_there and not is_read else None)


@pytest.mark.parametrize(
    ("opened", "members", "left", "ended_by"),
    [
        (4, (), "CLASSIC", None),
        (40, ("w",), "CONNECT", None),
        (40, (), None, None),
        (4, (), "CLASSIC", "group deleted"),
        (40, (), None, "group downgraded"),
    ],
)
def test_what_is_open_in_a_log_that_the_other_one_outlives_is_in_doubt(
    opened: int, members: tuple[str, ...], left: str | None, ended_by: str | None
) -> None:
    """The log of the last classic generation, at ``opened``, ends before the record of the move. A group on KIP-848
    without workers stays there.
    """
    end = {"is_open": True} if ended_by is None else {"ended": at(30), "ended_by": ended_by, "is_open": False}
    history = GroupHistory(
        "g",
        50_000_000,
        epochs=[
            epoch(4, at(opened), group_type="CLASSIC", is_open=True),
            epoch(9, at(20), group_type="CONNECT", members=members, **end),
        ],
        rebalances=[rebalance(4, at(opened), group_type="CLASSIC", is_open=True)],
        memberships=[member("w", at(opened), group_type="CLASSIC", is_open=True)],
    )
    for part in by_log(history):
        rows = (*part.epochs, *part.rebalances, *part.memberships)
        is_left = part.group_type == left
        assert {row.missing for row in rows} == {MAY_HAVE_MOVED if is_left else None}
        assert {row.history_complete for row in rows} == {not is_left}


@pytest.mark.parametrize(
    ("target", "before", "missing", "upgraded"),
    [
        (at(8, 7_000), (), None, True),
        (at(8, 7_000), (), CONVERTED_ELSEWHERE, True),
        (at(9, 7_000), (), None, False),
        (at(8, 7_020), (), None, False),
        (None, (), None, False),
        (at(8, 7_000), ("v", "w"), None, False),
        (at(8, 7_000), (), "records are lost", False),
    ],
)
@pytest.mark.parametrize("has_classic", [True, False])
def test_only_workers_that_were_moved_have_a_target_at_once(
    target: LogPosition | None, before: tuple[str, ...], missing: str | None, upgraded: bool, has_classic: bool
) -> None:
    """The other log does not show the generation that goes on here; the last one that it has may be another one."""
    joined = cause("member_joined", "w", at(7))
    of_row = {"group_type": "CONNECT", "causes": (joined,), "history_complete": missing is None, "missing": missing}
    history = GroupHistory(
        "g",
        10_000_000,
        epochs=[
            *([epoch(6, at(2), group_type="CLASSIC")] if has_classic else []),
            epoch(0, at(5), group_type="CONNECT", members=before, ended=at(7), ended_by="next epoch", is_open=False),
            epoch(1, at(7), members=("w",), target=target, **of_row),
        ],
        rebalances=[rebalance(1, at(7), from_epoch=0, members_before=0, **of_row)],
    )
    connect = by_log(history)[-1]
    (begun,) = connect.rebalances
    assert (begun.from_epoch, begun.members_before) == ((None, None) if upgraded else (0, 0))
    for row in (connect.epochs[-1], *connect.rebalances):
        assert [each.kind for each in row.causes] == (["group_upgraded"] if upgraded else ["member_joined"])
        assert row.history_complete == (upgraded or missing is None)


def test_a_worker_that_left_just_before_did_not_move() -> None:
    """Its last generation still lists it; the group on KIP-848 does not. The one that moves back did not leave."""
    up, down = at(9), at(30)
    ends = {"ended_by": "group deleted", "is_open": False, "protocol_type": "connect"}
    history = GroupHistory(
        "g",
        50_000_000,
        epochs=[
            epoch(4, at(7), group_type="CLASSIC", ended=up, members=("gone", "w"), **ends),
            epoch(4, at(10, up.timestamp_ms), group_type="CONNECT", members=("w",), target=at(11), ended=at(20)),
            epoch(5, at(20), group_type="CONNECT", members=("w",), ended=down, target=None, **ends),
            epoch(4, at(31, down.timestamp_ms), group_type="CLASSIC", members=("w",), protocol_type="connect"),
        ],
        rebalances=[
            rebalance(4, at(10, up.timestamp_ms), group_type="CONNECT", from_epoch=None),
            rebalance(4, at(31, down.timestamp_ms), group_type="CLASSIC", from_epoch=None),
        ],
        memberships=[
            member("gone", at(7), up, group_type="CLASSIC", went_by="group deleted"),
            member("w", at(7), up, group_type="CLASSIC", went_by="group deleted"),
            member("w", at(10), at(28, down.timestamp_ms), group_type="CONNECT", went_by="leave or expiry"),
        ],
    )
    classic, connect = by_log(history)
    assert {row.member_id: row.went_by for row in classic.memberships} == {"gone": "leave or expiry", "w": "upgrade"}
    assert [row.went_by for row in connect.memberships] == ["downgrade"]
    (moved,), (back,) = connect.rebalances, classic.rebalances
    assert (moved.from_epoch, moved.members_before, back.from_epoch, back.members_before) == (4, 2, 5, 1)
    assert [(each.kind, each.member_id) for each in moved.causes] == [
        ("group_upgraded", None),
        ("member_left_or_expired", "gone"),
    ]
    assert back.causes[0].detail == "group epoch 5 has no target: the generation is the last epoch that had one"


def test_a_group_that_goes_back_and_forth_within_a_second_goes_on_where_it_begins_at_that_time() -> None:
    """The last epoch of the life before has the number of the generation, too, and another began a little later."""
    ends = {"ended_by": "group deleted", "is_open": False, "protocol_type": "connect", "members": ("w",)}
    up = at(20)
    history = GroupHistory(
        "g",
        50_000_000,
        epochs=[
            epoch(5, at(15), group_type="CLASSIC", ended=up, **ends),
            epoch(5, at(14, up.timestamp_ms - 900), group_type="CONNECT", ended=at(15, up.timestamp_ms - 900), **ends),
            epoch(5, at(21, up.timestamp_ms), group_type="CONNECT", ended=at(22, up.timestamp_ms + 400), **ends),
            epoch(5, at(23, up.timestamp_ms + 500), group_type="CONNECT", members=("w",)),
        ],
    )
    connect = by_log(history)[-1]
    upgraded = [row.opened.offset for row in connect.epochs if [each.kind for each in row.causes] == ["group_upgraded"]]
    assert upgraded == [21]


@pytest.mark.parametrize(
    ("connect_at", "classic_at", "expected"),
    [(at(7), at(20), 200_000), (at(20), at(7), 100_000), (at(7), None, 100_000)],
)
def test_the_log_that_a_group_left_does_not_tell_until_when_it_was_seen(
    connect_at: LogPosition, classic_at: LogPosition | None, expected: int
) -> None:
    epochs = [epoch(4, connect_at, group_type="CONNECT")]
    if classic_at is not None:
        epochs.append(epoch(5, classic_at, group_type="CLASSIC"))
    assert last_time({CONNECT_LOG: 100_000, GROUP_LOG: 200_000}, epochs) == expected


def test_what_is_open_in_a_log_lasts_until_that_log_ends() -> None:
    history = GroupHistory(
        "g",
        50_000,
        epochs=[epoch(6, at(20), group_type="CONNECT", is_open=True), epoch(1, at(30), group_type="CLASSIC")],
        logs_ms={CONNECT_LOG: 90_000, GROUP_LOG: 50_000},
    )
    assert {part.group_type: part.now_ms for part in by_log(history)} == {"CONNECT": 90_000, "CLASSIC": 50_000}


@pytest.mark.parametrize(
    ("moved_at", "lost", "is_certain"), [(at(8), (8, 9), False), (at(8), (30, 31), True), (at(25), (8, 9), True)]
)
def test_a_member_may_have_moved_to_the_other_log_and_back_in_lost_records(
    moved_at: LogPosition, lost: tuple[int, int], is_certain: bool
) -> None:
    lost_records = LostRecords({(GROUP_LOG, 0): [lost]})
    epochs = [epoch(4, at(7), group_type="CLASSIC", members=("w",)), epoch(4, moved_at, group_type="CONNECT")]
    stays = [member("w", at(7), at(20), group_type="CLASSIC")]
    history = GroupHistory("g", 10_000_000, epochs=epochs, memberships=stays, lost=lost_records)
    (classic,) = (part for part in by_log(history) if part.group_type == "CLASSIC")
    assert [row.history_complete for row in classic.memberships] == [is_certain]
