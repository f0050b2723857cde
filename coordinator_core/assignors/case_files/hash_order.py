"""Cases of kind ``hash-order``: the iteration order of the hash tables themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordinator_core.assignors.profiles import Profile
from coordinator_core.errors import InputError
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


def run(case: Mapping[str, Any], profile: Profile, assign: object = None) -> dict[str, Any]:
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
