"""Who owned what within one rebalance."""

from coordinator_core.history.holdings import Holdings, Ownership, Wanted
from coordinator_core.records import LogPosition

PARTITION = ("partition", "orders")


def test_partitions_stay_with_two_processes_that_take_turns_as_one_static_member() -> None:
    holdings, ownership = Holdings(), Ownership()
    ownership.change([holdings.put("a", {PARTITION: {0, 1}}, LogPosition(0, 1, 1), 1)], LogPosition(0, 1, 1))
    for offset, (former, member_id) in enumerate((("a", "b"), ("b", "a"), ("a", "c")), start=2):
        at = LogPosition(0, offset, offset)
        ended = holdings.put(former, {}, at, 1)
        ownership.rename(former, member_id)
        ownership.change([ended, holdings.put(member_id, {PARTITION: {0, 1}}, at, 1)], at)
        assert ownership.tally().moved == 0
    at = LogPosition(0, 9, 9)
    ended = holdings.put("c", {PARTITION: {0}}, at, 2)
    ownership.change([ended, holdings.put("other", {PARTITION: {1}}, at, 2)], at)
    assert ownership.tally().moved == 1


def test_a_topic_that_is_known_to_be_there_later_was_there_when_that_was_in_doubt() -> None:
    holdings, ownership, at = Holdings(), Ownership(), LogPosition(0, 1, 1)
    ownership.change([holdings.put("a", {PARTITION: {0, 1}}, at, 1)], at)
    ownership.change([holdings.put("a", {PARTITION: {0}}, at, 2)], at)
    ownership.forget(lambda _: Wanted(None))
    assert ownership.tally().lost is None
    ownership.forget(lambda _: Wanted(2))
    assert ownership.tally().lost == 1
    ownership.forget(lambda _: Wanted(None, may_be_unsubscribed=True))
    ownership.forget(lambda _: Wanted(2))
    assert ownership.tally().lost is None, "the group may have unsubscribed for a time"


def test_a_topic_that_may_be_another_one_of_its_name_may_not_have_moved() -> None:
    holdings, ownership = Holdings(), Ownership()

    def moved(by_name: bool, offset: int, **held: set[int]) -> int | None:
        """Return how many partitions moved with a record, of which the topics are not known."""
        at = LogPosition(0, offset, offset)
        put = [holdings.put(member, {PARTITION: has} if has else {}, at, offset) for member, has in held.items()]
        ownership.begin()
        ownership.change(put, at, by_name=by_name)
        ownership.forget(lambda _: Wanted(None))
        return ownership.tally().moved

    for by_name, known in ((True, None), (False, 1)):
        ownership.clear()
        holdings.clear(LogPosition(0, 0, 0))
        assert moved(by_name, 1, a={0, 1, 2}, b=set()) == 0
        assert moved(by_name, 2, a=set()) == 0, "the topic may be gone"
        assert moved(by_name, 3, a={0}, b={1}) == known, "it may have come again"
        assert moved(by_name, 4, a=set(), b={0, 1}) == 1, "the rest is still in doubt"
