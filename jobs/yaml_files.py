"""YAML files that people write: how they are read, and how the first problem in one is reported."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from importlib.resources.abc import Traversable
from typing import Any

import yaml
from pydantic import ValidationError

from coordinator_core.errors import CoordinatorAuditError

UNKNOWN_KEY = ("extra_forbidden", "unexpected_keyword_argument")
"""Pydantic's error types for a key that the model does not have."""


def read_mapping(
    file: Traversable, error: type[CoordinatorAuditError], loader: type[yaml.SafeLoader] = yaml.SafeLoader
) -> dict[str, Any]:
    """Return the mapping in a YAML file; an empty file is an empty mapping. Raise ``error`` if it has no mapping."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise error(f"{file}: cannot be read: {cause}") from cause
    content = parse(text, str(file), error, loader)
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise error(f"{file}: must be a mapping, not a {type(content).__name__}")
    return content


def parse(
    text: str, origin: str, error: type[CoordinatorAuditError], loader: type[yaml.SafeLoader] = yaml.SafeLoader
) -> Any:
    """Return the value of a YAML text. Raise ``error``, which names the ``origin``, if it is not YAML."""
    try:
        return yaml.load(text, loader)
    except yaml.YAMLError as cause:
        raise error(f"{origin}: not valid YAML: {' '.join(str(cause).split())}") from cause


def first_problem(error: ValidationError, known: Iterable[str], what: str, *, by_path: bool = False) -> str:
    """Return the first problem of an invalid model in one line; an unknown key comes before all others.

    For an unknown key the message suggests the most similar of the ``known`` names: keys, or with ``by_path`` dotted
    paths. ``what`` is the word for a key: "setting", "key".
    """
    problems = error.errors()
    first = next((each for each in problems if each["type"] in UNKNOWN_KEY), problems[0])
    path = ".".join(str(part) for part in first["loc"])
    if first["type"] not in UNKNOWN_KEY:
        message = first["msg"].removeprefix("Value error, ")
        return f"{path}: {message}" if path else message
    name = path if by_path else str(first["loc"][-1])
    similar = difflib.get_close_matches(name, sorted(set(known)), n=1)
    return f"unknown {what} {path}" + (f"; did you mean {similar[0]}?" if similar else "")
