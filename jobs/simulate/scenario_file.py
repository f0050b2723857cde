"""Scenario files: YAML, read into the model of the simulator; problems are reported in one line."""

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from pydantic import BaseModel, ValidationError

from coordinator_core.assignors.profiles import KIP_1071
from coordinator_core.coordinator.config import BrokerConfig, GroupConfig
from coordinator_core.errors import InputError
from coordinator_core.simulator.scenario import Scenario
from jobs.yaml_files import first_problem, read_mapping


def load_scenario(file: Path) -> Scenario:
    """Return the scenario in a file.

    Raises:
        InputError: the file cannot be read, a key is unknown (the message suggests a similar one), or a value is
            invalid; the message names the file and the path of the key.
    """
    values = read_mapping(file, InputError)
    try:
        scenario = Scenario.model_validate(values)
    except ValidationError as error:
        problem = first_problem(error, _keys(Scenario), "key")
        raise InputError(f"{file}: {problem}") from None
    try:
        _check_configs(scenario)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    return scenario


def _check_configs(scenario: Scenario) -> None:
    broker = BrokerConfig.of(scenario.cluster.config)
    for name, group in scenario.groups.items():
        try:
            GroupConfig.of(broker, group.config, kip_1071=scenario.cluster.profile == KIP_1071)
        except InputError as error:
            raise InputError(f"groups.{name}.config: {error}") from None


def _keys(model: type[BaseModel]) -> Iterator[str]:
    """Yield the keys of a model and of its parts."""
    yield from model.model_fields
    for part in sections(model):
        yield from _keys(part)


def sections(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield the models that the fields of a model have as their types."""
    for field in model.model_fields.values():
        yield from _models(field.annotation)


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)
