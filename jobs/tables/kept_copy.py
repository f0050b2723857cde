"""The copy of a catalog's tables that is kept from night to night: what it is of, so that questions can read it."""

import json
from pathlib import Path
from typing import Final, NamedTuple

from jobs.tables.reader import is_catalog_name

MANIFEST: Final = "published.json"
"""The file in the folder of a copy that says what it is a copy of. It is there only between two nights: a copy that a
night has begun to change, and did not publish, is made again.
"""


class Same(NamedTuple):
    """A version of a table in the catalog and the one of its copy that has the same rows.

    ``written_ms`` is when the catalog's was committed: another catalog may have tables of the same names.
    """

    version: int
    written_ms: int
    copied: int


class KeptCopy(NamedTuple):
    """A copy that is kept between two nights: its folder, and when the last night published it."""

    place: Path
    published_ms: int


def kept_copy(folder: Path | None, location: str) -> KeptCopy | None:
    """Return the copy that the setting ``engine.working_copy`` keeps of the tables of a catalog; None: there is none,
    or a night works on it.
    """
    if folder is None or not is_catalog_name(location):
        return None
    place = folder / location
    times = [same.written_ms for same in published(place, location).values()]
    return KeptCopy(place, max(times)) if times else None


def drop_kept_copy(folder: Path | None, location: str) -> None:
    """Let neither questions nor the next night use a copy that is kept: what comes now changes the tables alone."""
    if folder is not None and is_catalog_name(location):
        (folder / location / MANIFEST).unlink(missing_ok=True)


def published(place: Path, location: str) -> dict[str, Same]:
    """Return what the copy in a folder is of, by table; nothing where it cannot be used."""
    try:
        found = json.loads((place / MANIFEST).read_text(encoding="utf-8"))
        return {name: Same(*same) for name, same in found[location].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
