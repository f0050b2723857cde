"""How far a watch has told what it saw, so that the next one goes on without a loss or a double."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from coordinator_core.errors import InputError
from jobs.sources.bounded_text import json_value
from jobs.sources.files import FAMILIES
from jobs.watch.new_rows import LogPlace

VERSION: Final = 1


def read(file: Path) -> dict[LogPlace, int] | None:
    """Return by log partition the offset from which on events were not told yet; None: there is no such file.

    Raises:
        InputError: the file is not one of a watch.
    """
    try:
        stored = json_value(file.read_bytes())
        if stored["version"] != VERSION:
            raise ValueError(f"version {stored['version']}")
        return {
            LogPlace(topic, FAMILIES[topic], int(partition)): int(offset) for topic, partition, offset in stored["told"]
        }
    except FileNotFoundError:
        return None
    except (InputError, OSError, ValueError, LookupError, TypeError, ArithmeticError) as error:
        raise InputError(f"{file}: not the state of a watch: {error}") from error


def write(file: Path, told: Mapping[LogPlace, int]) -> None:
    """Replace the file; a watch that is killed meanwhile leaves the former one."""
    stored = {
        "version": VERSION,
        "told": [[place.topic, place.partition, offset] for place, offset in sorted(told.items())],
    }
    beside = file.with_name(f"{file.name}.new")
    beside.write_text(json.dumps(stored), encoding="utf-8")
    os.replace(beside, file)
