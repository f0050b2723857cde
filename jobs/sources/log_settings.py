"""The settings of a log: what no record of it says, given once in a file beside it.

Whoever made the folder of a log may have written this file. So it can set only what describes the log, and name only
files in its folder: nothing that is written, sent or logged in with.
"""

from __future__ import annotations

import difflib
import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from coordinator_core.errors import UsageError
from jobs.sources.left_beside import FOLDER

if TYPE_CHECKING:
    from jobs.settings import Layer

FILE_NAME: Final = "coordinator-audit.yaml"
MOST_BYTES: Final = 1 << 16
PATHS: Final = {"input.broker_logs", "input.topics"}
ALLOWED: Final = {
    "cluster",
    "input.copied_topic",
    "input.broker_log_zone",
    *PATHS,
    "audit.default_assignor",
    "audit.profile",
    "audit.older",
    "audit.jdk",
    "audit.metadata_age_ms",
    "audit.connect_max_delay_ms",
    "audit.clock_slack_ms",
}
"""The settings that the file may have."""


def files_beside(logs: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Return the settings files of these logs: in a folder that was named, else beside the file or partition."""
    folders = dict.fromkeys(_folder_of(os.fspath(log)) for log in logs)
    return [file for folder in folders if (file := folder / FILE_NAME).is_file()]


def _folder_of(log: str) -> Path:
    is_whole = os.path.isdir(log) and FOLDER.fullmatch(Path(log).name) is None
    return Path(log) if is_whole else Path(log).parent


def note_beside(logs: Iterable[str | os.PathLike[str]], note: Callable[..., None]) -> list[Layer]:
    """Return the settings in the files beside these logs, and say which files these are. Raise as ``layers_beside``."""
    files = files_beside(logs)
    found = list(layers_beside(files)) if files else []
    for file in files:
        note(f"settings of the log: {file}", file=str(file))
    return found


def layers_beside(files: Iterable[Path]) -> Iterator[Layer]:
    """Yield the settings in these files. Broker logs of several files are taken together; the rest must agree.

    Raises:
        UsageError: a file cannot be read, or has what is not a setting of a log; a path leads out of its folder; two
            files say different things.
    """
    from jobs.settings import Layer, nest, read_layer

    said: dict[str, tuple[object, Path]] = {}
    for file in files:
        if (size := file.stat().st_size) > MOST_BYTES:
            raise UsageError(f"{file}: has {size} bytes, but settings of a log have at most {MOST_BYTES}")
        layer = read_layer(file)
        for path, value in _settings_in(layer.values):
            name = ".".join(path)
            if name not in ALLOWED or any("." in part for part in path):
                raise UsageError(f"{layer.place(path)}: {_refused(name)}")
            own = _within(value, file.parent, layer.place(path)) if name in PATHS else value
            before, other = said.get(name, (own, file))
            if isinstance(own, list) and isinstance(before, list) and other != file:
                own = [*before, *own]
            elif own != before:
                raise UsageError(f"{layer.place(path)}: {other} has another {name}")
            said[name] = own, file
            yield Layer(str(file), nest(path, own), file)


def _settings_in(values: Mapping[str, object]) -> Iterator[tuple[list[str], object]]:
    for section, value in values.items():
        if isinstance(value, Mapping):
            yield from (([str(section), str(key)], below) for key, below in value.items())
        else:
            yield [str(section)], value


def _refused(name: str) -> str:
    from jobs.secret_values import shown_name

    close = difflib.get_close_matches(name, sorted(ALLOWED), n=1)
    hint = f"did you mean {close[0]}?" if close else f"use {', '.join(sorted(ALLOWED))}; give others with --config"
    return f"{shown_name(name)} is not a setting of a log: {hint}"


def _within(value: object, folder: Path, place: str) -> object:
    """Return the paths of a setting as seen from here; other types are left to the model, which refuses them.

    Raises:
        UsageError: a path leads out of the folder, by its name or by a symbolic link.
    """
    if isinstance(value, list):
        return [_within(each, folder, place) for each in value]
    if not isinstance(value, str):
        return value
    if "\0" in value:
        raise UsageError(f"{place}: {value!r} is not a path")
    path = os.path.join(folder, value)
    inside = os.path.realpath(folder)
    for found in (path, *glob.iglob(path, recursive=True)):
        if os.path.commonpath([inside, os.path.realpath(found)]) != inside:
            raise UsageError(f"{place}: {value!r} is not in the folder of this file: give it by an option")
    return path
