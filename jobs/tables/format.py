"""The format of the tables: which releases can read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from coordinator_core.errors import InputError

FORMAT: Final = "coordinator_audit.format"
"""Table property: format version of the tables."""
FORMAT_VERSION: Final = 1


def check_format(location: str, properties: Mapping[str, str]) -> None:
    """Raise InputError for tables of a format that this release cannot read, by the properties of one of them."""
    version = properties.get(FORMAT, "0")
    if int(version) > FORMAT_VERSION:
        raise InputError(
            f"the tables at {location} have format {version}, written by a newer release of "
            f"coordinator-audit; this release supports formats up to {FORMAT_VERSION}"
        )
