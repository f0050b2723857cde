"""A quick start of commands: the plain values of options, taken as they are.

Typer converts the value of every option with pydantic, also texts and options that are not given. Importing pydantic
takes a fifth of the start of a question to log files.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Any, Final

UNCHECKED: Final = ("exists", "resolve_path", "writable", "allow_dash", "parser", "click_type")
"""What an option may ask of its value, all of which Typer does."""


def take_plain_values(parameters: Iterable[Any]) -> None:
    """Let these options and arguments of a command take plain values; all other values go to Typer as before."""
    for parameter in parameters:
        annotation, asked = parameter.type_descriptor.annotation, parameter.type_descriptor.parameter_info
        if not any(getattr(asked, name, None) for name in UNCHECKED):
            parameter.get_runtime_param = _Values(annotation, parameter.get_runtime_param).converter


class _Values:
    """Converts the values of one option; ``converter`` replaces the method that returns Typer's own object for it."""

    def __init__(self, annotation: Any, of_typer: Any) -> None:
        self._annotation = annotation
        self._of_typer = of_typer

    def converter(self) -> _Values:
        """Return what converts the values."""
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value of an option as its annotation says."""
        is_list = param.multiple or param.nargs == -1
        kinds = {*map(type, value if is_list and value is not None else (value,))}
        if value is None:
            return () if is_list else None
        if kinds <= {str}:
            if self._annotation in (str, list[str]):
                return list(value) if is_list else value
            if self._annotation in (Path, list[Path]):
                return [*map(Path, value)] if is_list else Path(value)
        if kinds == {self._annotation} and issubclass(self._annotation, Enum | bool | Path):
            return value  # a default
        return self._of_typer().coerce(value, param=param, ctx=ctx)
