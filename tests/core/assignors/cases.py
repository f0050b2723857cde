"""Recorded results of Kafka's assignors, made comparable."""

import json
from typing import Any

UNSTABLE_MESSAGES = {"NullPointerException", "NoSuchElementException", "IllegalStateException"}
"""Their messages differ from one JVM to the next."""


def comparable(expected: dict[str, Any]) -> list[str]:
    """One text a step; lists in order, objects by key, and the order of members where the coordinator presents it."""
    if "steps" not in expected:
        return [json.dumps(expected)]
    return [json.dumps(_stable(step), sort_keys=True) for step in expected["steps"]]


def _stable(step: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in step.items() if key != "message" or step["error"] not in UNSTABLE_MESSAGES}
