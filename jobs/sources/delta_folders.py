"""Delta tables among folders and files: their Parquet files are not all part of them, which their logs alone tell."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from coordinator_core.errors import InputError

DELTA_LOG: Final = "_delta_log"
"""The folder of a Delta table that says which files are part of it."""


def delta_tables(files: Iterable[str]) -> list[str]:
    """Return the folders of the Delta tables to whose logs some of these files belong."""
    logs = {os.path.dirname(file) for file in files}
    return sorted(os.path.dirname(folder) for folder in logs if os.path.basename(folder) == DELTA_LOG)


def refuse_part(folder: str) -> None:
    """Raise InputError if a folder lies in a Delta table: which of its files are part of the table, only that tells."""
    above = Path(os.path.abspath(folder)).parents
    if (table := next((each for each in above if (each / DELTA_LOG).is_dir()), None)) is not None:
        raise InputError(f"{folder}: part of a Delta table: name the table, {table}")


def outside_of_tables(files: Iterable[str], tables: Iterable[str]) -> list[str]:
    """Return those of these files that lie in none of these tables."""
    folders = tuple(os.path.join(table, "") for table in tables)
    return [file for file in files if not file.startswith(folders)]
