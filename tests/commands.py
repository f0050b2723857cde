"""Commands, run in this process as a shell runs them."""

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from typer.testing import CliRunner, Result

from jobs.cli.app import app
from jobs.cli.schema import SHAPES, output_schema


def run_command(*words: object, **options: Any) -> Result:
    """Run a command; ``options`` are those of click: ``env``, ``input``.

    The lines of JSON that it prints fit its schema, in whichever test.
    """
    arguments = [str(word) for word in words]
    result = CliRunner().invoke(app, arguments, **options)
    if "--json" in arguments and (name := next((word for word in arguments if word in SHAPES), None)):
        check_lines(name, result.stdout)
    return result


def check_lines(command: str, printed: str) -> None:
    """Assert that what a command printed with ``--json`` fits the schema that is published for it."""
    for text in printed.splitlines():
        line = json.loads(text)
        shape = command, shape_of(line)
        if shape not in _CHECKED:
            problem = best_match(_validator(command).iter_errors(line))
            assert problem is None, (command, problem.message, line)
            _CHECKED.add(shape)


_CHECKED: set[object] = set()
"""Shapes of lines that fit: tests print hundreds of thousands of lines, but few shapes."""


def shape_of(value: object) -> object:
    """The names and types in a line; of what tells kinds of lines apart also the value."""
    if isinstance(value, dict):
        return tuple((name, part if name in ("event", "table") else shape_of(part)) for name, part in value.items())
    if isinstance(value, list):
        return list, frozenset(map(shape_of, value))
    return type(value)


@cache
def _validator(command: str) -> Draft202012Validator:
    return Draft202012Validator(output_schema(command))


def text_of_command(*words: object, **options: Any) -> str:
    """What a command prints that succeeds."""
    result = run_command(*words, **options)
    assert result.exit_code == 0, (words, result.output, result.exception)
    return result.stdout


def rows_of_command(*words: object, **options: Any) -> list[dict[str, Any]]:
    """The rows that a command prints as JSON lines."""
    return [json.loads(line) for line in text_of_command(*words, "--json", **options).splitlines()]
