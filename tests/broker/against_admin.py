"""What the commands say of a log, and where it is not what the broker's Admin client said."""

from __future__ import annotations

import json
from typing import Any

from tests.broker.kafka import Line


def like(ours: Any, theirs: Any) -> Any:
    """What we say, but for fields that the clients of this test do not ask Admin for; lists in one order."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return {name: like(ours.get(name), value) for name, value in theirs.items()}
    if isinstance(theirs, list) and isinstance(ours, list):
        shape = theirs[0] if theirs else None
        return sorted((like(each, shape) for each in ours), key=json.dumps)
    return ours


def differences(said: Line, described: list[Line]) -> list[tuple[str, str, Any, Any]]:
    """Group, part, what Admin said and what we say, wherever that is not the same."""
    ours = {each["group"]: each for each in described}
    found: list[tuple[str, str, Any, Any]] = []
    if ours.keys() != said.keys():
        found.append(("", "groups", sorted(said), sorted(ours)))
    for group_id, parts in said.items():
        for part, theirs in parts.items():
            mine = ours.get(group_id, {}).get(part)
            if (part.endswith("offsets") and (mine or {}).keys() != theirs.keys()) or like(mine, theirs) != like(
                theirs, theirs
            ):
                found.append((group_id, part, theirs, mine))
    return found
