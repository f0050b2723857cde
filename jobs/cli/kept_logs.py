"""``--keep``: a log becomes tables, which are asked, and of which the next question adds only what is new."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from coordinator_core.errors import InputError
from jobs import nightly_run
from jobs.cli.console import Console
from jobs.settings import Settings
from jobs.tables.delta import Tables

STEPS: Final = ("ingest", "decode", "replay", "offsets", "findings")
FILE_NAME: Final = "kept.json"
"""What the tables were made of: without this file, or of anything else, no log is added to them."""


def take(chosen: Settings, console: Console) -> None:
    """Take what is new in the dumps of these settings into their tables, in this process.

    Raises:
        InputError: the tables were made of another log, cluster or settings, or not by this; a step failed.
    """
    nightly_run.check_settings(chosen)
    tables = Tables(None, chosen.tables, chosen.engine.limits)
    # Before anything is taken in: of what a killed run leaves, the next one has to know whose it is.
    _claim(Path(chosen.tables), _about(chosen))
    with console.step(f"taking what is new into {chosen.tables}"):
        outcome = nightly_run.run(tables, chosen, replace(console, quiet=True, logged={}))
    for step in outcome.steps:
        if step.error is not None:
            raise InputError(f"{step.step}: {step.error}")


def _about(chosen: Settings) -> dict[str, object]:
    """Return what all that is in the tables depends on; findings are made again where thresholds change."""
    said: dict[str, object] = chosen.model_dump(mode="json", include={"cluster", "audit"})
    files = chosen.input.model_dump(mode="json")
    for name in ("paths", "broker_logs"):
        files[name] = sorted(map(os.path.abspath, files[name]))
    return {**said, "input": files}


def _claim(place: Path, about: dict[str, object]) -> None:
    file = place / FILE_NAME
    if file.is_file():
        kept = json.loads(file.read_text(encoding="utf-8"))
        for name, asked in about.items():
            if kept.get(name) != asked:
                raise InputError(f"{place} keeps {_difference(name, kept.get(name), asked)}: name another place")
    elif place.exists() and any(place.iterdir()):
        raise InputError(f"{place} is not empty, and keeps no log: name another place, or ask it with --tables")
    else:
        place.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(about), encoding="utf-8")


def _difference(name: str, kept: object, asked: object) -> str:
    """Return in words what is kept, and what was asked for instead."""
    if isinstance(kept, dict) and isinstance(asked, dict):
        key = next(key for key in (*asked, *kept) if kept.get(key) != asked.get(key))
        return _difference(f"{name}.{key}", kept.get(key), asked.get(key))
    was, now = (", ".join(value) if isinstance(value, list) else value or "unset" for value in (kept, asked))
    return f"{'the log' if name == 'input.paths' else name} {was}, and not {now}"
