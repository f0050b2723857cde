"""The kinds of case, by the name in their ``assignor`` field, and the function that runs each kind; and several
assignors on the same case: balance, movement and rack figures side by side.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any

from coordinator_core.assignors import registry
from coordinator_core.assignors.assignment_metrics import AssignmentMetrics, measure
from coordinator_core.assignors.case_files import broker, leader, streams_mock
from coordinator_core.assignors.client.clients import CLIENTS
from coordinator_core.assignors.inputs import AssignedGroupType, Assignment, ClassicGroupSpec, GroupSpecs
from coordinator_core.assignors.profiles import DEFAULT, Profile
from coordinator_core.assignors.registry import Assign
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import INVALID, AssignorError, InputError
from coordinator_core.java import hash_codes as java_hash
from coordinator_core.java.order import HashMap, TimelineHashMap, copy_capacity

_KEYS: dict[str, java_hash.KeyType[Any]] = {
    "string": java_hash.STRING,
    "uuid": java_hash.UUID,
    "int": java_hash.INTEGER,
    "tp": java_hash.TOPIC_PARTITION,
    "tidp": java_hash.TOPIC_ID_PARTITION,
    "task": java_hash.TASK_ID,
}


def _hash_order(case: Mapping[str, Any], profile: Profile, assign: object = None) -> dict[str, Any]:
    """Replay the operations on the table; return the orders asked for and the hash codes of the first keys."""
    table = _table(case, profile)
    orders: list[list[object]] = [list(table)] if case["table"] == "hashset_copy" else []
    for operation, *argument in case["ops"]:
        key = _key(argument[0]) if argument else None
        if operation == "put":
            table[key] = True
        elif operation == "cia":
            table.compute_if_absent(key, lambda: True)  # type: ignore[union-attr]
        elif operation == "remove":
            table.pop(key, None)
        elif operation == "order":
            orders.append(list(table))
        else:
            raise InputError(f"no table operation {operation!r}")
    orders.append(list(table))
    hash_code = _KEYS[case["key"]].hash_code
    as_json = [[list(key) if isinstance(key, tuple) else key for key in order] for order in orders]
    return {"orders": as_json, "hash": [hash_code(key) for key in orders[-1][:5]]}


def _table(case: Mapping[str, Any], profile: Profile) -> HashMap[Any, bool] | TimelineHashMap[Any, bool]:
    key_type = _KEYS[case["key"]]
    kind = case["table"]
    if kind == "timeline":
        return TimelineHashMap(key_type, case.get("capacity", 0))
    if kind == "hashset_copy":
        elements = case["copy_of"]
        copied: HashMap[object, bool] = HashMap(key_type, copy_capacity(len(elements), profile.jdk))
        copied.update((_key(element), True) for element in elements)
        return copied
    return HashMap(key_type, case.get("capacity", 16))


def _key(written: object) -> object:
    return tuple(written) if isinstance(written, list) else written


Runner = Callable[[Any, Profile, Assign], dict[str, Any]]
"""A case's ``input``, the profile and how to assign -> its ``expected``, with ``presented`` where the kind has it."""

RUNNERS: dict[str, Runner] = {
    **{f"client-{name}": partial(leader.run, name) for name in leader.NAMES},
    "connect-eager": leader.run_connect,
    "connect-incremental": leader.run_connect,
    "hash-order": _hash_order,
    "uniform": broker.uniform,
    "range": broker.range_,
    "simple": broker.simple,
    "streams-sticky": partial(broker.run_streams, "sticky"),
    "streams-highly-available": partial(broker.run_streams, "highly_available"),
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


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one assignor in one round of a case; ``error`` says why there are none.

    ``round`` counts assignments from 1; ``all`` sums them up (for members, units and imbalance it has the largest).
    """

    assignor: str
    round: str
    members: int
    units: int
    imbalance: int
    kept: int
    moved: int
    fresh: int
    lost: int
    rack_misses: int
    error: str = ""


NO_METRICS = AssignmentMetrics(0, 0, 0, 0, 0, 0, 0, 0)


def compare_case(
    case: Mapping[str, object], profile: Profile = DEFAULT, assignors: Sequence[str] | None = None
) -> list[Row]:
    """Run a case with each assignor (None: all of its type of group); return the rows by round, then those of all
    rounds.

    Each assignor starts from its own former results where the case carries them from step to step.

    Raises:
        InputError: an assignor is unknown, or nothing is assigned in the case.
    """
    rows: list[Row] = []
    for name in assignors or _names(case, profile):
        recorder = _Recorder(name)
        run_case(case, profile, assign=recorder)
        rows += recorder.rows
        rows.append(Row(name, "all", **asdict(_total(recorder.rows))))
    return rows


class _Recorder:
    """Assigns with one assignor, whatever the case asks for, and keeps the figures of each round."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: list[Row] = []

    def __call__(self, _: str, spec: GroupSpecs, image: TopicImage, profile: Profile) -> Assignment[object]:
        number = str(len(self.rows) + 1)
        try:
            assignment = registry.assign(self.name, spec, image, profile)
        except AssignorError as error:
            self.rows.append(Row(self.name, number, **asdict(NO_METRICS), error=str(error)))
            raise
        self.rows.append(Row(self.name, number, **asdict(measure(spec, image, assignment))))
        return assignment


def _names(case: Mapping[str, object], profile: Profile) -> list[str]:
    """The names under which assignors serve the case's type of group."""
    types: set[AssignedGroupType] = set()
    of_client: dict[str, None] = {}

    def noted(name: str, spec: GroupSpecs, image: TopicImage, profile: Profile) -> Assignment[object]:
        types.add(spec.type)
        if isinstance(spec, ClassicGroupSpec):
            of_client.update(dict.fromkeys(CLIENTS.get(spec.client, ())))
        return registry.assign(name, spec, image, profile)

    run_case(case, profile, assign=noted)
    if not types:
        raise InputError(f"case {case.get('id')!r} assigns nothing that could be compared")
    if of_client:
        return list(of_client)
    return [name for group_type, name in registry.ASSIGNORS if group_type in types]


def _total(rounds: Sequence[Row]) -> AssignmentMetrics:
    of_all = {field.name: [getattr(each, field.name) for each in rounds] for field in fields(AssignmentMetrics)}
    largest = ("members", "units", "imbalance")
    return AssignmentMetrics(**{name: max([0, *of]) if name in largest else sum(of) for name, of in of_all.items()})
