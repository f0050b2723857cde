"""The settings: one typed model, filled from layers (defaults, file, environment, flags), the last one wins."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.errors import UsageError

UNKNOWN_KEY = ("extra_forbidden", "unexpected_keyword_argument")
"""What pydantic says of a key that a section does not have."""
NULL = "tag:yaml.org,2002:null"
ENVIRONMENT_PREFIX = "COORDINATOR_AUDIT_"
DEFAULT_ORIGIN = "default"


class Section(BaseModel):
    """A part of the settings: immutable, and strict about its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SparkSettings(Section):
    """The Spark session to make when there is none yet."""

    master: str
    remote: str | None
    conf: dict[str, str]


class InputSettings(Section):
    """Which dumps ``nightly`` takes in."""

    paths: list[str]
    format: Literal["segments", "parquet", "delta", "json_lines"] | None
    topic: str


class NightlySettings(Section):
    """What ``nightly`` does, and for how long a run that says nothing keeps others out."""

    steps: list[str]
    report: Path | None
    lease_minutes: Annotated[float, Field(gt=0)]


class CheckSettings(Section):
    """Which expectations are checked, and what the tables cannot tell about the cluster."""

    suites: Path | None
    offsets_partitions: Annotated[int, Field(gt=0)] | None
    data_docs: Path | None


class MaintenanceSettings(Section):
    """How the tables are kept small; days and hours, None for never."""

    every_days: Annotated[float, Field(ge=0)] | None
    optimize: bool
    vacuum_hours: Annotated[float, Field(ge=0)] | None
    keep_values_days: Annotated[float, Field(ge=0)] | None


class Settings(Section):
    """All settings; ``conf/defaults.yaml`` explains each."""

    tables: Annotated[str, Field(min_length=1)]
    cluster: Annotated[str, Field(min_length=1)]
    input: InputSettings
    nightly: NightlySettings
    checks: CheckSettings
    maintenance: MaintenanceSettings
    kafka: dict[str, str]
    spark: SparkSettings
    audit: AuditSettings
    findings: Thresholds


class Layer(NamedTuple):
    """One source of settings: where it comes from, and its values as nested mappings like the model's."""

    origin: str
    values: Mapping[str, Any]


def load(
    file: Path | None = None, environment: Mapping[str, str] = os.environ, flags: Mapping[str, Any] | None = None
) -> Settings:
    """The effective settings. ``flags`` maps dotted names (``spark.master``) to values; those that are None are unset.

    Raises:
        UsageError: an unreadable file, an unknown key (with the nearest known one) or a value of the wrong type.
    """
    return combine(layers(file, environment, flags))


def layers(file: Path | None, environment: Mapping[str, str], flags: Mapping[str, Any] | None) -> Iterator[Layer]:
    """The layers, the weakest first."""
    yield _from_file(conf() / "defaults.yaml")._replace(origin=DEFAULT_ORIGIN)
    if file is not None:
        yield _from_file(file)
    for name, text in sorted(environment.items()):
        if name.startswith(ENVIRONMENT_PREFIX):
            path = name.removeprefix(ENVIRONMENT_PREFIX).lower().split("__")
            yield Layer(f"environment variable {name}", _nest(path, _parse(text, name)))
    for name, value in (flags or {}).items():
        if value is not None:
            yield Layer(f"flag for {name}", _nest(name.split("."), value))


def combine(stack: Iterable[Layer]) -> Settings:
    """The model of all layers, a later one overriding an earlier one key by key."""
    values: dict[str, Any] = {}
    for layer in stack:
        values = _merge(values, layer.values)
        try:
            settings = Settings.model_validate(values)
        except ValidationError as error:
            raise UsageError(f"{layer.origin}: {_first_complaint(error)}") from error
        except UsageError as error:
            raise UsageError(f"{layer.origin}: {error}") from error
    return settings


def assignments(given: Iterable[str]) -> dict[str, Any]:
    """Flags of the form ``spark.master=local[2]``, the value as YAML; raises UsageError for one that has no ``=``."""
    flags: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{text!r} is no NAME=VALUE")
        flags[name] = _parse(value, name)
    return flags


class Effective(NamedTuple):
    """One setting as it holds: its dotted name, its value as JSON has it, and the layer that gave it."""

    name: str
    value: Any
    origin: str


def explain(stack: Iterable[Layer]) -> list[Effective]:
    """Every effective setting in the order of the model, with the last layer that gave it.

    Raises UsageError as ``load`` does.
    """
    kept = list(stack)
    settings = combine(kept)
    origins: dict[str, str] = {}
    for layer in kept:
        origins.update(dict.fromkeys((name for name, _ in _leaves(layer.values)), layer.origin))
    return [Effective(name, value, origins[name]) for name, value in _leaves(settings.model_dump(mode="json"))]


def is_given(name: str, stack: Iterable[Layer]) -> bool:
    """Return whether a layer other than the defaults sets this dotted name."""
    return any(each.name == name and each.origin != DEFAULT_ORIGIN for each in explain(stack))


def _leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def conf() -> Traversable:
    """The folder ``conf``: in a checkout it stands beside this package, in a wheel, and in a zip made of it, inside."""
    packaged = files("jobs") / "conf"
    return packaged if packaged.is_dir() else Path(__file__).parent.parent / "conf"


def _from_file(file: Traversable) -> Layer:
    try:
        values = _parse(file.read_text(encoding="utf-8"), str(file)) or {}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: settings cannot be read: {error}") from error
    if not isinstance(values, dict):
        raise UsageError(f"{file}: settings are a mapping, this is a {type(values).__name__}")
    return Layer(str(file), values)


class TextLoader(yaml.SafeLoader):
    """YAML whose scalars stay text, except null: the model knows which of them are numbers."""


TextLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if tag == NULL]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _parse(text: str, origin: str) -> Any:
    try:
        return yaml.load(text, TextLoader)
    except yaml.YAMLError as error:
        raise UsageError(f"{origin}: not YAML: {' '.join(str(error).split())}") from error


def _nest(path: list[str], value: Any) -> dict[str, Any]:
    *above, last = path
    nested = {last: value}
    for name in reversed(above):
        nested = {name: nested}
    return nested


def _merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            merged[key] = _merge(below, value)
        else:
            merged[key] = value
    return merged


def _first_complaint(error: ValidationError) -> str:
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] not in UNKNOWN_KEY:
        return f"{name}: {first['msg']}"
    near = difflib.get_close_matches(name, _names(Settings), n=1)
    return f"unknown setting {name}" + (f"; did you mean {near[0]}?" if near else "")


def _names(model: type, prefix: str = "") -> Iterator[str]:
    """The names of the settings of a section: a model, or a dataclass of the core."""
    for name, kind in get_type_hints(model).items():
        yield prefix + name
        if isinstance(kind, type) and (issubclass(kind, BaseModel) or is_dataclass(kind)):
            yield from _names(kind, f"{prefix}{name}.")
