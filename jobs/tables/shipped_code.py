"""The code of this project as a zip file, for Python workers on machines that do not have it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile

from pyspark.sql import SparkSession

PACKAGES: Final = ("coordinator_core", "jobs")
"""The packages that Python workers import."""

DATA: Final = {"coordinator_core/schemas": "schemas", "jobs/conf": "conf"}
"""The folders of data within the packages of a wheel, and where a checkout has them."""


def code_zip(folder: Path) -> Path:
    """Write the packages with their data to a zip file in this folder, and return it."""
    out = folder / "coordinator_audit.zip"
    with ZipFile(out, "w", ZIP_DEFLATED) as target:
        for package in PACKAGES:
            for name, file in _below(files(package), package):
                target.writestr(name, file.read_bytes())
        for place, beside in DATA.items():
            if not any(name.startswith(f"{place}/") for name in target.namelist()):
                for name, file in _below(Path(__file__).parents[2] / beside, place):
                    target.writestr(name, file.read_bytes())
    return out


def ship(spark: SparkSession) -> None:
    """Give the code to the Python workers of a session through Spark Connect, for as long as the session lasts."""
    with tempfile.TemporaryDirectory(prefix="coordinator-audit-") as folder:
        spark.addArtifacts(str(code_zip(Path(folder))), pyfile=True)


def _below(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        name = f"{prefix}/{entry.name}"
        if entry.is_file():
            yield name, entry
        elif entry.name != "__pycache__":
            yield from _below(entry, name)
