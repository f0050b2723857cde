"""Options that several commands share: the fields of a dataclass, which a command receives as one value."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import get_type_hints


def with_options(shared: type[object]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for commands whose first parameter is a ``shared``: its fields become options of the command.

    They come after the command's own options. ``shared`` is a dataclass whose fields are annotated as Typer parameters.
    """
    types = get_type_hints(shared, include_extras=True)
    shared_parameters = [
        parameter.replace(annotation=types[name], kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(shared).parameters.items()
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
        parameters = [*(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own), *shared_parameters]

        @functools.wraps(command)
        def run(**values: object) -> None:
            command(shared(**{parameter.name: values.pop(parameter.name) for parameter in shared_parameters}), **values)

        vars(run)["__signature__"] = inspect.Signature(parameters)
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate
