"""The Great Expectations project of the checks: ``conf/gx``, bound to the tables at one location."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

import yaml

from coordinator_core.errors import InputError
from jobs.settings import conf
from jobs.tables.catalog import CATALOG
from jobs.tables.reader import is_catalog_name
from jobs.whole_files import write_whole
from jobs.yaml_files import read_mapping

FOLDER: Final = "gx"
"""Name of the folder in which Great Expectations looks for a project."""

CONFIG: Final = "great_expectations.yml"
MEASURES: Final = "measures"
TABLES: Final = "tables"
"""Names of the data sources."""

ALL: Final = "all"
"""Name of the batch definition of each asset."""

MEASURES_FOLDER: Final = "uncommitted/measures"
SITE: Final = "uncommitted/data_docs/local_site"
DATA_SOURCES: Final = re.compile(r"^fluent_datasources:.*?(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
IDS: Final = uuid.UUID("6f1d2c1e-6b0e-5d0a-9a53-0c5b1f0c7a11")


def write_project(folder: Path, location: str, *, tables: bool = True) -> None:
    """Write the project for the tables at a location to a folder; suites, definitions and checkpoints there are kept.

    The data sources, which name the location, and the plugins are written again. ``location``: an absolute path, a URI
    or a schema of a catalog. Without ``tables``, only the measures have suites.
    """
    shipped = conf() / FOLDER
    for name in _files(shipped):
        target = folder / name
        if name == CONFIG or (target.exists() and not name.startswith("plugins/")):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, shipped.joinpath(name).read_bytes())
    for name, content in _of_tables() if tables else ():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            write_whole(target, json.dumps(content, indent=2) + "\n")
    _write_config(folder, shipped, location)


def folder_of(given: Path) -> Path:
    """Return the folder of a project, which may be given by the folder that has it (as ``gx``)."""
    return given if (given / CONFIG).is_file() else given / FOLDER


def check_location(folder: Path, location: str) -> None:
    """Raise InputError unless the folder has a project for the tables at this location."""
    file = folder / CONFIG
    command = f"coordinator-audit expectations {folder.parent} --tables {location}"
    if not file.is_file():
        raise InputError(f"{folder}: is not a Great Expectations project: {command} writes one")
    sources = _sources_in(file)
    for name, wanted in _data_sources(folder, location).items():
        connection = {key: sources.get(name, {}).get(key) for key in ("type", "base_directory")}
        if connection != {key: wanted.get(key) for key in connection}:
            raise InputError(
                f"{file}: the data source {name} is not the one of the tables at {location} and of this folder: "
                f"{command} repairs it, and keeps your suites"
            )


def _sources_in(file: Traversable) -> dict[str, dict[str, Any]]:
    """Return the data sources in a configuration, by name; raise InputError if they are not mappings."""
    sources = read_mapping(file, InputError).get("fluent_datasources") or {}
    if not isinstance(sources, dict) or not all(isinstance(source, dict) for source in sources.values()):
        raise InputError(f"{file}: fluent_datasources must be a mapping of mappings")
    return sources


def _files(folder: Traversable, prefix: str = "") -> Iterator[str]:
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_file():
            yield name
        elif entry.name not in ("uncommitted", "__pycache__"):
            yield from _files(entry, f"{name}/")


def _of_tables() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the files of each table: an empty suite, its validation definition, and a checkpoint."""
    for table in CATALOG:
        suite, definition = _named("suite", table), _named("definition", table)
        about = f"On the whole table {table}, with Spark."
        yield f"expectations/{table}.json", {**suite, "expectations": [], "meta": {}, "notes": about}
        data = {
            "datasource": _named("datasource", TABLES),
            "asset": _named("asset", table),
            "batch_definition": {"name": ALL, "id": _id("batch", table)},
        }
        yield f"validation_definitions/{table}.json", {**definition, "data": data, "suite": suite}
        checkpoint = {"validation_definitions": [definition], "actions": [], "result_format": "SUMMARY"}
        yield f"checkpoints/{table}.json", {**_named("checkpoint", table), **checkpoint}


def _named(kind: str, name: str) -> dict[str, str]:
    return {"name": name, "id": _id(kind, name)}


def _id(kind: str, name: str) -> str:
    return str(uuid.uuid5(IDS, f"{kind}/{name}"))


def _write_config(folder: Path, shipped: Traversable, location: str) -> None:
    """Write the configuration: the one that is there, or the shipped one, with the data sources of this location."""
    file = folder / CONFIG
    given = file if file.is_file() else shipped / CONFIG
    sources = _sources_in(given) | _data_sources(folder, location)
    changed: dict[str, Any] = {"fluent_datasources": sources}
    if "data_context_id" not in read_mapping(given, InputError):
        changed["data_context_id"] = _id("context", f"{folder.resolve()}\n{location}")
    # Only this part is written again: the rest has comments, which are lost where YAML is read and written.
    rest = DATA_SOURCES.sub("", given.read_text(encoding="utf-8")).rstrip() + "\n"
    write_whole(file, rest + yaml.safe_dump(changed, sort_keys=False))


def _data_sources(folder: Path, location: str) -> dict[str, dict[str, Any]]:
    measures = read_mapping(conf() / FOLDER / CONFIG, InputError)["fluent_datasources"][MEASURES]
    return {
        MEASURES: {**measures, "base_directory": str(folder.resolve() / MEASURES_FOLDER)},
        TABLES: _tables_source(location),
    }


def _tables_source(location: str) -> dict[str, Any]:
    """Return the data source of the tables: Delta folders, or data frames that a run is given.

    Great Expectations reads folders of this machine by itself. It has no asset for a Delta table of a catalog in Spark.
    """
    in_folder = not is_catalog_name(location) and location.startswith("/")
    source: dict[str, Any] = {"type": "spark", "id": _id("datasource", TABLES), "persist": False}
    if in_folder:
        source |= {"type": "spark_filesystem", "base_directory": location}
    return source | {"assets": {table: _asset(table, in_folder=in_folder) for table in CATALOG}}


def _asset(table: str, *, in_folder: bool) -> Mapping[str, Any]:
    asset = {"type": "dataframe", "id": _id("asset", table)}
    if in_folder:
        asset |= {"type": "directory_delta", "data_directory": table}
    return asset | {"batch_definitions": {ALL: {"id": _id("batch", table), "partitioner": None}}}
