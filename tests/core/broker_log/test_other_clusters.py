"""Files of other clusters, and the same lines in several files."""

from coordinator_core.broker_log.all_files import SLACK_MS, later_lines, of_other_clusters, without_copies
from coordinator_core.broker_log.events import BrokerEvent
from coordinator_core.broker_log.lines import LineReader

CONTEXT = "[GroupCoordinator id=1 topic=__consumer_offsets partition=3] "
MEMBERS = [f"c{each}-00000000-0000-4000-8000-00000000000{each}" for each in range(6)]


def read(*messages: str, file: str = "server.log", at: str = "[2026-11-23 14:25:0{},123] INFO ") -> list[BrokerEvent]:
    lines = [f"{at.format(second)}{CONTEXT}{message}" for second, message in enumerate(messages)]
    return list(LineReader(file).events(enumerate(lines, 1)))


def failed(member: str, group: str = "g") -> str:
    return f"Member {member} in group {group} has failed, removing it from the group."


def test_a_file_whose_members_the_log_does_not_have_is_of_another_cluster() -> None:
    own, other = read(*map(failed, MEMBERS[:2])), read(*map(failed, MEMBERS[2:5]), file="other.log")
    assert list(of_other_clusters([*own, *other], {"g": MEMBERS[:2]})) == [("other.log", 3)]


def test_one_member_that_fits_is_enough_and_one_that_does_not_is_too_few() -> None:
    assert not list(of_other_clusters(read(*map(failed, MEMBERS)), {"g": MEMBERS[5:]}))
    assert not list(of_other_clusters(read(failed(MEMBERS[0])), {"g": MEMBERS[5:]}))


def test_groups_that_the_log_does_not_have_say_nothing() -> None:
    assert not list(of_other_clusters(read(*map(failed, MEMBERS)), {"h": MEMBERS[5:], "g": []}))


def test_reasons_name_members_too() -> None:
    began = "Preparing to rebalance group g in state Stable with old generation {} (reason: removing member {} on x)"
    lines = read(*(began.format(number, member) for number, member in enumerate(MEMBERS[:2])))
    assert list(of_other_clusters(lines, {"g": MEMBERS[2:]})) == [("server.log", 2)]
    assert not list(of_other_clusters(lines, {"g": MEMBERS[1:]}))


def test_the_same_line_in_two_layouts_is_one() -> None:
    exact = read(*map(failed, MEMBERS[:3]))
    coarse = read(*map(failed, MEMBERS[:3]), file="b.log", at="2026-11-23 14:25:0{} INFO  [thread] X:1 - ")
    assert sorted(without_copies([*coarse, *exact])) == sorted(exact)


def test_equal_lines_of_one_file_are_several() -> None:
    lines = read(failed(MEMBERS[0]), failed(MEMBERS[0]))
    copied = [line._replace(file="b.log", written="x") for line in lines]
    assert [each.local_ms for each in without_copies([*lines, *copied])] == [each.local_ms for each in lines]
    later = [line._replace(file="b.log", local_ms=(line.local_ms or 0) + 60_000) for line in lines]
    assert len(without_copies([*lines, *later])) == 4


def test_a_line_behind_the_end_of_a_copy_that_names_a_new_epoch_shows_that_the_copy_is_old() -> None:
    bumps = read(*(f"[GroupId g] Bumped group epoch to {epoch} with metadata hash 1." for epoch in range(3, 9)))
    timed = [each._replace(timestamp_ms=each.local_ms) for each in bumps]
    end = (timed[1].timestamp_ms or 0) - SLACK_MS
    assert later_lines(timed, {3: end}, {"g": 4}) == {3: timed[-1]}
    assert not later_lines(timed, {3: end}, {"g": 8})
    assert not later_lines(timed, {3: timed[-1].timestamp_ms or 0}, {"g": 4})
    assert not later_lines(bumps, {3: end}, {"g": 4})
