"""Holders of units against a plain model: what each member has, looked through anew each time."""

from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.audit.rules.holders import Holders
from coordinator_core.history.holdings import SHARED_ROLES, Held, UnitOwners, WorkUnit

MEMBERS = ("a", "b", "c")
RESOURCES = (("partition", "t"), ("active", "0"), ("standby", "0"))
HELD = st.dictionaries(st.sampled_from(RESOURCES), st.frozensets(st.integers(0, 3), min_size=1))
PUTS = st.lists(st.tuples(st.sampled_from(MEMBERS), HELD), max_size=30)
UNITS = [WorkUnit(*resource, number) for resource in RESOURCES for number in range(4)]


def holders_of(held: dict[str, Held], unit: WorkUnit) -> set[str]:
    if unit.role in SHARED_ROLES:
        return set()
    return {member for member, mine in held.items() if unit.number in mine.get(unit.resource, ())}


@given(PUTS)
def test_holders_are_the_members_that_have_a_unit(puts: list[tuple[str, Held]]) -> None:
    holders, held = Holders({}), dict[str, Held]()
    for member_id, mine in puts:
        before = {unit: holders_of(held, unit) for unit in UNITS}
        clashes = holders.put(member_id, mine)
        held[member_id] = mine
        after = {unit: holders_of(held, unit) for unit in UNITS}
        taken = {unit for unit in UNITS if member_id in after[unit] - before[unit] and before[unit]}
        assert dict(clashes) == {unit: min(before[unit]) for unit in taken}
        for unit in UNITS:
            assert holders.has_holder(unit) == bool(after[unit])
            several = after[unit] if len(after[unit]) > 1 else set()
            assert holders.others(unit, member_id) == sorted(several - {member_id})


def test_a_unit_goes_to_who_took_it_last_and_only_its_owner_gives_it_up() -> None:
    owners, topic = UnitOwners(), ("partition", "t")
    assert owners.take(topic, [0, 1], "a") == []
    assert owners.take(topic, [1, 2], "b") == [(1, "a")]
    assert owners.release(topic, [0, 1, 7], "a") == [0]
    copy = owners.copy()
    assert owners.release(topic, [1], "b") == [1]
    assert (copy[topic], owners[topic]) == ({1: "b", 2: "b"}, {2: "b"})
