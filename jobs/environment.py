"""The environment variables that set settings. Whoever only asks for them does not load what checks them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PREFIX: Final = "COORDINATOR_AUDIT_"


def given(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return names and values of the variables that set settings, by name."""
    return [(name, text) for name, text in sorted(environment.items()) if name.startswith(PREFIX)]
