"""The kinds of case, by the name in their ``assignor`` field, and the function that runs each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from coordinator_core.assignors import registry
from coordinator_core.assignors.case_files import broker, hash_order, leader, streams_mock
from coordinator_core.assignors.profiles import DEFAULT, Profile
from coordinator_core.assignors.registry import Assign
from coordinator_core.errors import INVALID, InputError

Runner = Callable[[Any, Profile, Assign], dict[str, Any]]
"""A case's ``input``, the profile and how to assign -> its ``expected``, with ``presented`` where the kind has it."""

RUNNERS: dict[str, Runner] = {
    **{f"client-{name}": leader.runner(name) for name in leader.NAMES},
    "connect-eager": leader.run_connect,
    "connect-incremental": leader.run_connect,
    "hash-order": hash_order.run,
    "uniform": broker.uniform,
    "range": broker.range_,
    "simple": broker.simple,
    "streams-sticky": broker.streams("sticky"),
    "streams-highly-available": broker.streams("highly_available"),
    "streams-mock": streams_mock.run,
}


def run_case(
    case: Mapping[str, Any], profile: Profile = DEFAULT, *, presented: bool = False, assign: Assign = registry.assign
) -> dict[str, object]:
    """Return the ``expected`` part of one case, ``{"steps": [...]}`` for most kinds.

    Beside its ``assignor`` a case of a classic group may name the ``client`` of the leader; absent: Kafka's own.

    ``presented`` keeps what the coordinator gave the assignor.

    Raises:
        InputError: the kind is unknown, or the input lacks what its kind needs.
    """
    kind = case.get("assignor")
    if not isinstance(kind, str) or kind not in RUNNERS:
        raise InputError(f"no assignor {kind!r} to run a case; there are {', '.join(sorted(RUNNERS))}")
    try:
        chosen = {"client": case["client"]} if "client" in case else {}
        expected = RUNNERS[kind]({**case["input"], **chosen}, profile, assign)
    except INVALID as cause:
        raise InputError(f"case {case.get('id')!r} is no {kind} case: {type(cause).__name__} {cause}") from cause
    if not presented:
        for step in expected.get("steps", ()):
            step.pop("presented", None)
    return expected
