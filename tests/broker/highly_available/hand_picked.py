"""Groups for the comparison of ``highly_available`` with Kafka Streams: rules that random groups meet seldom."""

from collections.abc import Iterator
from typing import Any

from tests.core.assignors.streams.kafka_cases import END, UNBOUNDED, Case

A, B, C, D = (f"{first}0000000-0000-4000-8000-000000000000" for first in "a14f")
"""Process ids: as signed numbers, the one with f comes second, and 1 third."""


def hand_picked() -> Iterator[Case]:
    """Cases for the rules that random groups meet seldom."""
    ends = {f"0_{number}": END for number in range(6)}
    one = member("A", A, active=[0, 2, 4], standby=[1, 3, 5], offsets=ends, end_offsets=ends)
    two = member("B", B, active=[1, 3, 5], standby=[0, 2, 4], offsets=ends, end_offsets=ends)
    yield case("kip-1071-c-joins", [6], [one, two, member("C", C)], num_standby_replicas=1)
    yield case("no-members-state", [6, -3], [member("A", A), member("B", B), member("C", C), member("D", D)])
    yield case("no-tasks", [0, 0], [member("A", A)])
    yield case("only-stateless", [-5, -2], [member("A", A), member("B", B), member("A2", A)])
    yield case("one-process", [3, -2], [member("A", A), member("A2", A)], num_standby_replicas=2)
    yield case("more-standbys-than-processes", [4], [member("A", A), member("B", B)], num_standby_replicas=3)
    yield case("processes-of-all-sizes", [17], [member(f"{n}", p) for n, p in enumerate([A, A, A, B, C, C, D])])
    yield case("twelve-subtopologies", [1] * 12, [member("A", A), member("B", B), member("C", C)])
    for behind in (10_000, 10_001):
        mine = {"0_0": END - behind}
        new = member("B", B, warmup=[0], offsets=mine, end_offsets={"0_0": END})
        yield case(
            f"lag-{behind}", [1], [member("D", D, active=[0], offsets={"0_0": END}, end_offsets={"0_0": END}), new]
        )
        both = [member("A", A), member("B", B, active=[0, 1], offsets=dict.fromkeys(("0_0", "0_1"), END - behind))]
        ended = {"0_0": END, "0_1": END}
        yield case(f"restores-{behind}", [2], [both[0], {**both[1], "end_offsets": ended}])
    small = {"0_0": 9_000, "0_1": 9_000}
    yield case(
        "small-changelog", [2], [member("A", A), member("B", B, active=[0, 1], offsets=small, end_offsets=small)]
    )
    held = {"0_0": END, "0_1": END}
    owner = member("D", D, active=[0, 1], offsets=held, end_offsets=held)
    yield case("beyond-the-end", [2], [member("A", A, offsets={"0_0": END + 1}), owner])
    yield case(
        "corrupt-everywhere",
        [1],
        [member("A", A, offsets={"0_0": 9}, end_offsets={"0_0": 5}), member("B", B)],
        acceptable_recovery_lag=0,
    )
    yield case(
        "no-end", [2], [member("A", A, offsets={"0_0": 7, "0_1": 3}), member("B", B, offsets={"0_0": 8, "0_1": 2})]
    )
    for lag in (END, UNBOUNDED):
        yield case(f"no-end-{lag}", [2], [member("A", A), member("B", B, offsets=held)], acceptable_recovery_lag=lag)
        yield case(f"end-{lag}", [2], [member("A", A), owner], acceptable_recovery_lag=lag)
    yield case("assigned-just-now", [4], [member("A", A), member("B", B, active=[0, 1, 2, 3])])
    yield case("roles-traded", [2], [member("A", A), owner], num_standby_replicas=1)
    yield case(
        "roles-traded-one-free",
        [6],
        [member("A", A), {**two, "active": {"0": [0, 1, 2, 3, 4, 5]}}],
        num_standby_replicas=1,
        num_warmup_replicas=1,
    )
    for number, zones in enumerate(["aabb", "abab", "aaab", "abcd", "aaaa"]):
        tagged = [
            member(name, process, tags={"zone": zone, "cluster": name})
            for name, process, zone in zip("ABCD", (A, B, C, D), zones, strict=True)
        ]
        for keys in (["zone"], ["zone", "cluster"], ["rack"]):
            yield case(f"zones-{number}-{'-'.join(keys)}", [7], tagged, num_standby_replicas=2, rack_aware_tags=keys)


def case(name: str, counts: list[int], members: list[dict[str, Any]], **configs: Any) -> Case:
    """A case of subtopologies 0, 1, ... with so many tasks; below zero: without state."""
    defaults = {
        "num_standby_replicas": 0,
        "num_warmup_replicas": 2,
        "acceptable_recovery_lag": 10_000,
        "rack_aware_tags": [],
    }
    subtopologies = [{"id": str(number), "tasks": abs(n), "stateful": n > 0} for number, n in enumerate(counts)]
    return {"id": name, "input": {"subtopologies": subtopologies, **defaults, **configs, "members": members}}


def member(name: str, process: str, tags: dict[str, str] | None = None, **has: Any) -> dict[str, Any]:
    """A member; its tasks are of subtopology 0."""
    roles = {role: {"0": has[role]} for role in ("active", "standby", "warmup") if role in has}
    offsets = {kind: has[kind] for kind in ("offsets", "end_offsets") if kind in has}
    return {"id": name, "process_id": process} | ({"tags": tags} if tags else {}) | roles | offsets
