"""Scenario files: YAML, read into the simulator's model; what is wrong with one is said in one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from coordinator_core.coordinator.config import BrokerConfig, GroupConfig
from coordinator_core.errors import InputError
from coordinator_core.simulator.scenario import Scenario


def load_scenario(file: Path) -> Scenario:
    """The scenario of a file.

    Raises:
        InputError: the file cannot be read, or has an unknown key (with the nearest known one) or a value that cannot
            be; the message names file and place.
    """
    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: the scenario cannot be read: {error}") from None
    except yaml.YAMLError as error:
        raise InputError(f"{file}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise InputError(f"{file}: a scenario is a mapping, this is a {type(values).__name__}")
    try:
        scenario = Scenario.model_validate(values)
    except ValidationError as error:
        raise InputError(f"{file}: {_first_complaint(error)}") from None
    try:
        _check_configs(scenario)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    return scenario


def _check_configs(scenario: Scenario) -> None:
    broker = BrokerConfig.of(scenario.cluster.config)
    for name, group in scenario.groups.items():
        try:
            GroupConfig.of(broker, group.config)
        except InputError as error:
            raise InputError(f"groups.{name}.config: {error}") from None


def _first_complaint(error: ValidationError) -> str:
    complaints = error.errors()
    first = next((each for each in complaints if each["type"] == "extra_forbidden"), complaints[0])
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] != "extra_forbidden":
        said = first["msg"].removeprefix("Value error, ")
        return f"{place}: {said}" if place else said
    name = str(first["loc"][-1])
    near = difflib.get_close_matches(name, sorted(set(_keys(Scenario))), n=1)
    return f"unknown key {place}" + (f"; did you mean {near[0]}?" if near else "")


def _keys(model: type[BaseModel]) -> Iterator[str]:
    """All keys that a model and its parts have."""
    yield from model.model_fields
    for part in sections(model):
        yield from _keys(part)


def sections(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """The models of a model's own parts."""
    for field in model.model_fields.values():
        yield from _models(field.annotation)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in get_args(annotation):
        yield from _models(each)
