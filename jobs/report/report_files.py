"""What is known of a report by its files alone: nothing is imported that makes one."""

import json
from pathlib import Path
from typing import Any, Final

from coordinator_core.errors import UsageError
from jobs.report.data import Report

HEAD: Final = 65_536
"""Characters of the JSON in which its first fields are."""


def check_name(out: Path) -> None:
    """Raise UsageError unless the name ends in .html or .htm."""
    if out.suffix not in (".html", ".htm"):
        raise UsageError(f"invalid report file {str(out)!r}: use a name that ends in .html")


def head_of(data: Path) -> dict[str, Any]:
    """Return the first fields of the JSON of a report, up to ``made_ms``; none if it is something else.

    All of it may be a hundred megabytes. A text in JSON has no quote that is not escaped.
    """
    with data.open(encoding="utf-8") as stream:
        head, found, _ = stream.read(HEAD).partition(f',"{Report._fields[Report._fields.index("made_ms") + 1]}":')
    try:
        fields = json.loads(head + "}") if found else {}
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}
