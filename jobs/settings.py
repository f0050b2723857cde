"""The settings: one typed model, filled from layers (defaults, file, environment, flags); the last layer wins."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple, Self, get_type_hints

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from coordinator_core.audit.finding_rows import FindingKind, Level
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.rows import Verdict
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.errors import UsageError
from coordinator_core.groups.rules import Rule
from jobs import secret_values, yaml_files
from jobs.installation import PREFIX, given

NULL = "tag:yaml.org,2002:null"
DEFAULT_ORIGIN = "default"
MOST_DAYS: Final = 100_000
"""So long before today there is still a date."""

Days = Annotated[float, Field(ge=0, le=MOST_DAYS)]


class Section(BaseModel):
    """A section of the settings: immutable; unknown keys are errors, and so is a number that is not finite: what is
    compared to it would never be too much.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class SparkSettings(Section):
    """The Spark session to create if none exists."""

    master: str
    remote: str | None
    conf: dict[str, str]


class InputSettings(Section):
    """The dumps that ``nightly`` ingests, a topic in them that is a copy of the log of groups, whether snapshots of a
    running cluster are taken with them, the application logs of its brokers with their zone, and snapshots in a file.
    """

    paths: list[str]
    format: Literal["segments", "parquet", "delta", "json_lines"] | None
    topic: str
    copied_topic: str | None
    snapshots: bool
    broker_logs: list[str]
    broker_log_zone: str | None
    topics: str | None

    @property
    def dumps(self) -> list[str]:
        """What is ingested: the dumps, and the snapshots that tell of their topics."""
        return [*self.paths, *filter(None, [self.topics])]


class NightlySettings(Section):
    """The steps of ``nightly``, its report, and how long its lease lasts without being renewed."""

    steps: list[str]
    report: Path | None
    lease_minutes: Annotated[float, Field(gt=0, le=24 * 60 * MOST_DAYS)]


class Accepted(Section):
    """What is known and accepted, so that no gate counts it: of groups whose ids match ``groups`` (``*`` and ``?``
    stand for any characters), until the end of a day (UTC), for a reason.

    ``names``: kinds of findings, rules, verdicts; empty for all. ``max_score``: a finding with a higher score is not
    accepted; None: any is.
    """

    groups: Annotated[str, Field(min_length=1)] = "*"
    names: list[FindingKind | Rule | Verdict] = []
    max_score: Annotated[float, Field(ge=0)] | None = None
    until: date
    reason: Annotated[str, Field(min_length=1)]


class GateSettings(Section):
    """What all gates ask: the lowest level of what they count, and what is accepted."""

    min_level: Level
    accepted: list[Accepted]


class FindingCheckSettings(Section):
    """Which findings the checks count, and of which kinds they fail the run."""

    min_score: Annotated[float, Field(ge=0)]
    fail_on: list[FindingKind | Literal["any"]]


class CheckSettings(Section):
    """The Great Expectations project to validate, and facts about the cluster that the tables may lack."""

    project: Path | None
    offsets_partitions: Annotated[int, Field(gt=0)] | None
    data_docs: Path | None
    findings: FindingCheckSettings


class MaintenanceSettings(Section):
    """How the tables are kept small. Days and hours; None: never."""

    every_days: Days | None
    optimize: bool
    vacuum_hours: Annotated[float, Field(ge=0, le=24 * MOST_DAYS)] | None
    keep_values_days: Days | None


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """How much of the tables this process takes on; what is more is for Spark.

    ``rows`` are those that one step puts in order as columns: ranges of log partitions that have gaps, sums of
    commits, committed offsets. A replay takes ``replayed_rows`` records and commits at a time, which become Python
    objects, and ``replayed_bytes`` of their values and of the states of their groups, in ``replayed_parts`` at
    most; it looks through ``replayed_ranges`` of the log. ``staged_bytes``: what one step makes, in memory until it
    is written. As Parquet: what a replay has staged (``staged_file_bytes``), the inputs of findings that are read
    at a time (``findings_bytes``, in ``findings_parts`` at most: each reads all tables), a table whose rows change
    (``merged_bytes``), and one that is copied where only Spark can open it (``copied_bytes``).
    """

    rows: int = 500_000
    replayed_rows: int = 250_000
    replayed_bytes: int = 64 << 20
    replayed_ranges: int = 200_000
    replayed_parts: int = 4
    staged_bytes: int = 256 << 20
    staged_file_bytes: int = 16 << 20
    findings_bytes: int = 32 << 20
    findings_parts: int = 16
    merged_bytes: int = 64 << 20
    copied_bytes: int = 8 << 20

    @classmethod
    def of(cls, memory_mb: int, copied_mb: int) -> "EngineLimits":
        """Return the limits of a process that may have so much of a step in memory, and copy tables of that size.

        The others are in proportion to the memory of a step: what Python objects and columns of that many rows take.
        """
        if memory_mb < 0:
            return replace(cls.nothing(), copied_bytes=copied_mb << 20)
        usual = cls()
        grown = {
            name: getattr(usual, name) * memory_mb // (usual.staged_bytes >> 20)
            for name in (each.name for each in fields(usual))
            if name not in ("replayed_parts", "findings_parts", "copied_bytes")
        }
        return replace(usual, **grown, copied_bytes=copied_mb << 20)

    @classmethod
    def nothing(cls) -> "EngineLimits":
        """Return limits that leave every step with a limit to Spark."""
        return EngineLimits(*(-1 for _ in fields(EngineLimits)))


class EngineSettings(Section):
    """Who runs the steps, and how much this process takes on; ``memory_mb`` -1: Spark does all that has a limit."""

    runner: Literal["auto", "local", "spark"]
    memory_mb: Annotated[int, Field(ge=-1)]
    copied_mb: Annotated[int, Field(ge=0)]
    published_mb: Annotated[int, Field(ge=0)]
    working_copy: Path | None

    @property
    def limits(self) -> EngineLimits:
        """The limits of this process."""
        return EngineLimits.of(self.memory_mb, self.copied_mb)


class Settings(Section):
    """All settings. ``conf/defaults.yaml`` explains each of them."""

    tables: Annotated[str, Field(min_length=1)]
    registered_in: Annotated[str, Field(pattern=r"^\w+\.\w+(\.\w+)?$")] | None
    cluster: Annotated[str, Field(min_length=1)]
    input: InputSettings
    nightly: NightlySettings
    checks: CheckSettings
    gates: GateSettings
    maintenance: MaintenanceSettings
    kafka: dict[str, str]
    storage_options: dict[str, str]
    spark: SparkSettings
    engine: EngineSettings
    audit: AuditSettings
    findings: Thresholds

    @model_validator(mode="after")
    def _share(self) -> Self:
        """What clients do is said once, and findings ask it, too."""
        if self.findings.metadata_age_ms == self.audit.metadata_age_ms:
            return self
        findings = replace(self.findings, metadata_age_ms=self.audit.metadata_age_ms)
        return self.model_copy(update={"findings": findings})


class Layer(NamedTuple):
    """One source of settings: its origin, and its values as nested mappings with the keys of the model; the file that
    has them (None: none has).
    """

    origin: str
    values: Mapping[str, object]
    file: Traversable | None = None

    def place(self, path: Sequence[object]) -> str:
        """Return where the setting of this path is: the origin, and the line of the file that has it."""
        line = None if self.file is None else yaml_files.line_of(self.file, path, UsageError)
        return self.origin if line is None else f"{self.origin}:{line}"


def load(
    file: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    flags: Mapping[str, object] | None = None,
    beside: Iterable[Layer] = (),
) -> Settings:
    """Return the effective settings. ``flags``: values by dotted name (``spark.master``); None means not set.
    ``beside``: the settings in files beside the logs.

    Raises:
        UsageError: the file cannot be read, a key is unknown (the message suggests a similar one), a value is invalid.
    """
    return combine(layers(file, environment, flags, beside))


def layers(
    file: Path | None, environment: Mapping[str, str], flags: Mapping[str, object] | None, beside: Iterable[Layer] = ()
) -> Iterator[Layer]:
    """Yield the layers; each overrides the ones before it."""
    yield _defaults()
    yield from beside
    if file is not None:
        yield read_layer(file)
    for name, text in given(environment):
        path = name.removeprefix(PREFIX).lower().split("__")
        yield Layer(f"environment variable {name}", nest(path, _parse(text, name)))
    for name, value in (flags or {}).items():
        if value is not None:
            yield Layer(f"flag for {name}", nest(name.split("."), value))


def combine(stack: Iterable[Layer]) -> Settings:
    """Return the settings from all layers, merged key by key. Raise UsageError as ``load`` does."""
    values: dict[str, object] = {}
    for layer in stack:
        for name, value in _leaves(layer.values):
            # Before the values are checked: an error quotes what is invalid, and must not show a password.
            secret_values.remember(name, value)
        values = _merge(values, layer.values)
        try:
            settings = Settings.model_validate(values)
        except ValidationError as error:
            problem = yaml_files.first_problem(error, _names(Settings), "setting", by_path=True)
            raise UsageError(f"{layer.place(yaml_files.first_path(error))}: {problem}") from error
        except UsageError as error:
            raise UsageError(f"{layer.origin}: {error}") from error
    # delta-rs reads them there, in this process and in those that it starts.
    os.environ.update({name.upper(): value for name, value in settings.storage_options.items()})
    return settings


def over(beside: Iterable[Layer], chosen: Settings) -> Settings:
    """Return settings with those ``beside`` logs, which what they have other than the defaults goes before."""
    own = _differing(chosen.model_dump(mode="json"), combine([_defaults()]).model_dump(mode="json"))
    return combine([_defaults(), *beside, Layer("settings", own)])


def _differing(values: Mapping[str, object], usual: Mapping[str, object]) -> dict[str, object]:
    both = ((name, value, usual.get(name)) for name, value in values.items() if value != usual.get(name))
    return {
        name: _differing(value, other) if isinstance(value, Mapping) and isinstance(other, Mapping) else value
        for name, value, other in both
    }


def assignments(texts: Iterable[str]) -> dict[str, object]:
    """Return flags by name from texts such as ``spark.master=local[2]``; the value is YAML.

    Raises:
        UsageError: a text has no name, no ``=`` or no valid value.
    """
    flags: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            given = secret_values.shown_name(text)
            raise UsageError(f"invalid setting {given!r}: use NAME=VALUE, as in spark.master=local[2]")
        flags[name] = _parse(value, name)
    return flags


class Effective(NamedTuple):
    """One effective setting: its dotted name, its value (as in JSON), and the origin of the value."""

    name: str
    value: object
    origin: str


def explain(stack: Iterable[Layer]) -> list[Effective]:
    """Return every effective setting in the order of the model, with the origin of its value.

    Raises:
        UsageError: as ``load``.
    """
    all_layers = list(stack)
    settings = combine(all_layers)
    origins: dict[str, str] = {}
    for layer in all_layers:
        origins.update(dict.fromkeys((name for name, _ in _leaves(layer.values)), layer.origin))
    return [Effective(name, value, origins[name]) for name, value in _leaves(settings.model_dump(mode="json"))]


def is_given(name: str, stack: Iterable[Layer]) -> bool:
    """Return whether a layer other than the defaults sets this dotted name."""
    return any(setting.name == name and setting.origin != DEFAULT_ORIGIN for setting in explain(stack))


def _leaves(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def conf() -> Traversable:
    """Return the folder ``conf``. In a checkout it is next to this package; in a wheel or its zip it is inside."""
    packaged = files("jobs") / "conf"
    return packaged if packaged.is_dir() else Path(__file__).parent.parent / "conf"


@cache
def _defaults() -> Layer:
    return read_layer(conf() / "defaults.yaml")._replace(origin=DEFAULT_ORIGIN)


def read_layer(file: Traversable) -> Layer:
    """Return the settings in a file. Raise UsageError if it cannot be read."""
    return Layer(str(file), yaml_files.read_mapping(file, UsageError, TextLoader), file)


class TextLoader(yaml_files.BoundedLoader):
    """YAML whose scalars stay text, except null: the model knows which of them are numbers."""


TextLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if tag == NULL]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _parse(text: str, origin: str) -> object:
    return yaml_files.parse(text, origin, UsageError, TextLoader)


def nest(path: Sequence[str], value: object) -> dict[str, object]:
    """Return a value as nested mappings with the keys of a path."""
    *above, last = path
    nested = {last: value}
    for name in reversed(above):
        nested = {name: nested}
    return nested


def _merge(under: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            merged[key] = _merge(below, value)
        else:
            merged[key] = value
    return merged


def _names(model: type, prefix: str = "") -> Iterator[str]:
    """Yield the dotted names of the settings of a section (a model, or a dataclass of the core) and its sections."""
    for name, kind in get_type_hints(model).items():
        yield prefix + name
        if isinstance(kind, type) and (issubclass(kind, BaseModel) or is_dataclass(kind)):
            yield from _names(kind, f"{prefix}{name}.")
