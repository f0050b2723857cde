"""Where the model of the coordinator differs from a recorded step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Difference:
    """One part of a step: the expected result, and that of the model."""

    part: str
    expected: Any
    actual: Any
