"""The Great Expectations project of the checks: ``conf/gx``, bound to the tables at one location."""

import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import yaml

from coordinator_core.errors import InputError
from jobs.settings import conf
from jobs.tables.catalog import CATALOG
from jobs.tables.reader import is_catalog_name
from jobs.tables.table import Table
from jobs.whole_files import write_whole
from jobs.yaml_files import read_mapping

FOLDER: Final = "gx"
"""Name of the folder in which Great Expectations looks for a project."""

CONFIG: Final = "great_expectations.yml"
MEASURES: Final = "measures"
TABLES: Final = "tables"
"""Names of the data sources."""

REFERENCES: Final = "references"
TREND: Final = "trend"
"""Names of assets beside the measures: questions about several tables. See ``jobs.checks.frames``."""

PANDAS: Final = "pandas_filesystem"
"""The type of a data source of files that the checks write."""

ALL: Final = "all"
"""Name of the batch definition of each asset."""

FOLDERS: Final = {MEASURES: "uncommitted/measures", TABLES: "uncommitted/tables"}
"""Where the checks write the files of the data sources."""

SITE: Final = "uncommitted/data_docs/local_site"
DATA_SOURCES: Final = re.compile(r"^fluent_datasources:.*?(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
IDS: Final = uuid.UUID("6f1d2c1e-6b0e-5d0a-9a53-0c5b1f0c7a11")


def write_project(folder: Path, location: str, *, spark: bool = False, tables: Iterable[str] = CATALOG) -> None:
    """Write the project for the tables at a location to a folder; suites, definitions and checkpoints there are kept.

    The data sources and the plugins are written again. With ``spark``, Spark reads the tables, and the data sources
    name the location: an absolute path, a URI or a schema of a catalog. Otherwise the checks write to the folder what
    suites look at. ``tables``: those that have assets.
    """
    shipped = conf() / FOLDER
    for name in _files(shipped):
        target = folder / name
        if name == CONFIG or (target.exists() and not name.startswith("plugins/")):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, shipped.joinpath(name).read_bytes())
    for name, content in _of_tables(tables):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            write_whole(target, json.dumps(content, indent=2) + "\n")
    _write_config(folder, shipped, _tables_source(location, tables) if spark else _files_source(folder, tables))


@cache
def shipped() -> Mapping[str, Mapping[str, Any]]:
    """Return the shipped suites, by name."""
    files = conf().joinpath(FOLDER, "expectations").iterdir()
    return {suite["name"]: suite for suite in (json.loads(file.read_bytes()) for file in files if _is_json(file))}


@cache
def of_tables() -> Set[str]:
    """Return the names of the shipped suites that look at tables; the others look at measures."""
    return frozenset(name for name in shipped() if name in CATALOG or name in (REFERENCES, TREND))


def leave(folder: Path, suites: Set[str]) -> None:
    """Leave only these suites in a folder, and what validates them."""
    for part in ("validation_definitions", "checkpoints", "expectations"):
        for file in (folder / part).iterdir():
            if _is_json(file) and file.stem not in suites:
                file.unlink()


def _is_json(file: Traversable) -> bool:
    return file.name.endswith(".json")


def folder_of(given: Path) -> Path:
    """Return the folder of a project, which may be given by the folder that has it (as ``gx``)."""
    return given if (given / CONFIG).is_file() else given / FOLDER


def check_location(folder: Path, location: str) -> None:
    """Raise InputError unless the folder has a project for the tables at this location.

    One that reads files of its own folder is for all tables.
    """
    file = folder / CONFIG
    command = f"coordinator-audit expectations {folder.parent} --tables {location}"
    if not file.is_file():
        raise InputError(f"{folder}: is not a Great Expectations project: {command} writes one")
    sources = _sources_in(file)
    files = sources.get(TABLES, {}).get("type") == PANDAS
    wanted = {
        MEASURES: _measures_source(folder),
        TABLES: _files_source(folder, ()) if files else _tables_source(location, ()),
    }
    for name, source in wanted.items():
        if any(sources.get(name, {}).get(key) != source.get(key) for key in ("type", "base_directory")):
            raise InputError(
                f"{file}: the data source {name} is not the one of the tables at {location} and of this folder: "
                f"{command} repairs it, and keeps your suites"
            )


def is_by_pandas(folder: Path) -> bool:
    """Return whether the checks write the tables to the folder for this project; otherwise Spark reads them."""
    return _sources_in(folder / CONFIG).get(TABLES, {}).get("type") == PANDAS


def flat_columns(table: Table) -> dict[str, tuple[str, pa.DataType]]:
    """Return the columns of a table as a file has them: their name in SQL, and their type. ``at.offset`` is
    ``at_offset``.
    """
    flat: dict[str, tuple[str, pa.DataType]] = {}
    for field in table.schema:
        if pa.types.is_struct(field.type):
            flat |= {f"{field.name}_{part.name}": (f"{field.name}.{part.name}", part.type) for part in field.type}
        else:
            flat[field.name] = field.name, field.type
    return flat


def key_of(table: Table) -> list[str]:
    """Return the columns of a file that identify a row of its table."""
    return [name.replace(".", "_") for name in table.key]


def _sources_in(file: Traversable) -> dict[str, dict[str, object]]:
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


def _of_tables(tables: Iterable[str]) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the files of each table: an empty suite, its validation definition, and a checkpoint."""
    for table in tables:
        suite, definition = _named("suite", table), _named("definition", table)
        yield f"expectations/{table}.json", {**suite, "expectations": [], "meta": {}, "notes": f"On the table {table}."}
        data = {
            "datasource": _named("datasource", TABLES),
            "asset": _named("asset", table),
            "batch_definition": {"name": ALL, "id": _id("batch", table)},
        }
        yield f"validation_definitions/{table}.json", {**definition, "data": data, "suite": suite}
        # Pages name the rows that fail; Spark cannot name them by a column of a column.
        names = [name for name in CATALOG[table].key if "." not in name]
        form = {"result_format": "COMPLETE", "unexpected_index_column_names": names}
        checkpoint = {"validation_definitions": [definition], "actions": [], "result_format": form}
        yield f"checkpoints/{table}.json", {**_named("checkpoint", table), **checkpoint}


def _named(kind: str, name: str) -> dict[str, str]:
    return {"name": name, "id": _id(kind, name)}


def _id(kind: str, name: str) -> str:
    # Ids follow from names: a part that is written again is the same one to the parts that were kept.
    return str(uuid.uuid5(IDS, f"{kind}/{name}"))


def _write_config(folder: Path, shipped: Traversable, tables: Mapping[str, object]) -> None:
    """Write the configuration: the one that is there, or the shipped one, with the data sources of this folder."""
    file = folder / CONFIG
    given = file if file.is_file() else shipped / CONFIG
    sources = _sources_in(given) | {MEASURES: _measures_source(folder), TABLES: tables}
    changed: dict[str, object] = {"fluent_datasources": sources}
    if "data_context_id" not in read_mapping(given, InputError):
        changed["data_context_id"] = _id("context", str(folder.resolve()))
    # Only this part is written again: the rest has comments, which are lost where YAML is read and written.
    rest = DATA_SOURCES.sub("", given.read_text(encoding="utf-8")).rstrip() + "\n"
    write_whole(file, rest + yaml.safe_dump(changed, sort_keys=False))


def _measures_source(folder: Path) -> dict[str, object]:
    measures = read_mapping(conf() / FOLDER / CONFIG, InputError)["fluent_datasources"][MEASURES]
    return {**measures, "base_directory": str(folder.resolve() / FOLDERS[MEASURES])}


def _files_source(folder: Path, tables: Iterable[str]) -> dict[str, object]:
    """Return the data source of tables that the checks write to the folder."""
    source = {
        "type": PANDAS,
        "id": _id("datasource", TABLES),
        "base_directory": str(folder.resolve() / FOLDERS[TABLES]),
    }
    partition = {table: {"regex": f"{table}.parquet$", "param_names": []} for table in tables}
    return source | {"assets": {table: _asset(table, "parquet", by) for table, by in partition.items()}}


def _tables_source(location: str, tables: Iterable[str]) -> dict[str, object]:
    """Return the data source of the tables for Spark: Delta folders, or data frames that a run is given.

    Great Expectations reads folders of this machine by itself. It has no asset for a Delta table of a catalog in Spark.
    """
    source: dict[str, object] = {"type": "spark", "id": _id("datasource", TABLES), "persist": False}
    if is_catalog_name(location) or not location.startswith("/"):
        return source | {"assets": {table: _asset(table, "dataframe") for table in tables}}
    source |= {"type": "spark_filesystem", "base_directory": location}
    return source | {
        "assets": {table: {**_asset(table, "directory_delta"), "data_directory": table} for table in tables}
    }


def _asset(table: str, kind: str, partitioner: Mapping[str, object] | None = None) -> dict[str, object]:
    batches = {ALL: {"id": _id("batch", table), "partitioner": partitioner}}
    return {"type": kind, "id": _id("asset", table), "batch_definitions": batches}
