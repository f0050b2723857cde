"""What the commands say of a log, and where it is not what the broker's Admin client said."""

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
    """Group, part, what Admin said and what we say, wherever that is not the same.

    What we call unknown is left out, such as the assignor of a group whose members name none: it is in no log.
    """
    ours = {each["group"]: each for each in described}
    found: list[tuple[str, str, Any, Any]] = []
    if ours.keys() != said.keys():
        found.append(("", "groups", sorted(said), sorted(ours)))
    for group_id, parts in said.items():
        unknown = ours.get(group_id, {}).get("unknownFields", ())
        for part, said_of_part in parts.items():
            theirs = {name: value for name, value in said_of_part.items() if name not in unknown}
            mine = ours.get(group_id, {}).get(part)
            if (part.endswith("offsets") and (mine or {}).keys() != theirs.keys()) or like(mine, theirs) != like(
                theirs, theirs
            ):
                found.append((group_id, part, theirs, mine))
    return found
