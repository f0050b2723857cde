"""YAML files that people write: how they are read, and how the first problem in one is reported."""

import difflib
import re
from collections.abc import Iterable, Sequence
from importlib.resources.abc import Traversable
from itertools import chain
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails
from yaml.scanner import ScannerError

from coordinator_core.errors import CoordinatorAuditError
from jobs.secret_values import shown_name

UNKNOWN_KEY = ("extra_forbidden", "unexpected_keyword_argument")
"""Pydantic's error types for a key that the model does not have."""


QUOTED = re.compile(r"'(?![<?:,\[\]{}-])[^']{2,}'|\"(?!<)[^\"]{2,}\"")
"""A piece of the text in an error of the parser; what it says of tokens is in angle brackets."""


DEEPEST = 100
"""Nested more deeply is nothing that this software reads, and each token of it takes time for all levels."""


MOST_VALUES = 1_000_000
"""A file of some hundred bytes may name a list several times in another, this one in a third, and so on: each reader
goes through all that it stands for.
"""


SURROGATE = re.compile("[\ud800-\udfff]")


class BoundedLoader(yaml.SafeLoader):
    """YAML that is not nested very deeply, is of a bounded size and has no part that contains itself; its texts can be
    written as UTF-8.
    """

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._values: dict[yaml.Node, int] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Read a value; one that names a list or mapping that has not ended yet would have no end."""
        if self.check_event(yaml.AliasEvent):
            alias = self.peek_event()  # type: ignore[no-untyped-call]
            named = self.anchors.get(alias.anchor)
            if named is not None and named.end_mark is None:
                raise ScannerError(None, None, "a list or mapping contains itself", alias.start_mark)
        node = super().compose_node(parent, index)
        if node is not None and node not in self._values:
            self._values[node] = 1 + sum(self._values[part] for part in _parts(node))
            if self._values[node] > MOST_VALUES:
                problem = f"it stands for more than {MOST_VALUES:,} values, as aliases repeat what they name"
                raise ScannerError(None, None, problem, node.start_mark)
        return node

    def scan_flow_scalar(self, style: str) -> Any:
        """Read a text in quotes: only there escapes may stand for half of a character."""
        token = super().scan_flow_scalar(style)
        if SURROGATE.search(token.value):
            raise ScannerError(None, None, "a text has half of a character (a lone surrogate)", token.start_mark)
        return token

    def fetch_flow_collection_start(self, token: object) -> None:
        """Begin a list or mapping in brackets."""
        self._check_depth(self.flow_level)
        super().fetch_flow_collection_start(token)

    def add_indent(self, column: int) -> bool:
        """Begin a list or mapping of indented lines."""
        self._check_depth(len(self.indents))
        return bool(super().add_indent(column))

    def _check_depth(self, depth: int) -> None:
        if depth >= DEEPEST:
            raise ScannerError(None, None, f"it is nested more than {DEEPEST} deep", self.get_mark())


def _parts(node: yaml.Node) -> Iterable[yaml.Node]:
    """Return the elements of a list, the keys and values of a mapping."""
    if isinstance(node, yaml.MappingNode):
        return chain.from_iterable(node.value)
    return node.value if isinstance(node, yaml.SequenceNode) else ()


def read_mapping(
    file: Traversable, error: type[CoordinatorAuditError], loader: type[BoundedLoader] = BoundedLoader
) -> dict[str, Any]:
    """Return the mapping in a YAML file; an empty file is an empty mapping. Raise ``error`` if it has no mapping."""
    content = parse(_text(file, error), str(file), error, loader)
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise error(f"{file}: must be a mapping, not a {type(content).__name__}")
    return content


def _text(file: Traversable, error: type[CoordinatorAuditError]) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise error(f"{file}: cannot be read: {cause}") from cause


def line_of(file: Traversable, path: Sequence[object], error: type[CoordinatorAuditError]) -> int | None:
    """Return the line of the key at a path of keys in a file that was read; that of the nearest key
    above it, or None, if the file does not have it."""
    line, node = None, yaml.compose(_text(file, error), BoundedLoader)
    for part in map(str, path):
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        found = next(((key, value) for key, value in pairs if key.value == part), None)
        if found is None:
            return line
        line, node = found[0].start_mark.line + 1, found[1]
    return line


def parse(
    text: str, origin: str, error: type[CoordinatorAuditError], loader: type[BoundedLoader] = BoundedLoader
) -> object:
    """Return the value of a YAML text. Raise ``error``, which names the ``origin``, if it is not YAML.

    The error has the place of the problem, and nothing of the text: that may be a password.
    """
    try:
        return yaml.load(text, loader)
    except yaml.MarkedYAMLError as cause:
        mark = cause.problem_mark or cause.context_mark
        place = "" if mark is None else f" at line {mark.line + 1}, column {mark.column + 1}"
        problem = QUOTED.sub("something", cause.problem or cause.context or "it cannot be read")
        raise error(f"{origin}: not valid YAML{place}: {problem}") from None
    except yaml.reader.ReaderError as cause:
        raise error(f"{origin}: not valid YAML: character {cause.position + 1} is not a printable one") from None
    except RecursionError:
        raise error(f"{origin}: not valid YAML: it is nested too deeply") from None
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError):
        # Values with a tag, numbers and dates are made by Python's own types, which raise what they raise.
        raise error(f"{origin}: not valid YAML: a number, a date or a value with a tag is invalid") from None


def first_problem(error: ValidationError, known: Iterable[str], noun: str, *, by_path: bool = False) -> str:
    """Return the first problem of an invalid model in one line; an unknown key comes before all others.

    For an unknown key the message suggests the most similar of the ``known`` names: keys, or with ``by_path`` dotted
    paths. ``noun`` is the word for a key: "setting", "key".
    """
    first = _first(error)
    is_hidden = by_path  # of settings: what stands for a name may be a password in the wrong place
    path = ".".join(shown_name(part) if is_hidden and isinstance(part, str) else str(part) for part in first["loc"])
    if first["type"] not in UNKNOWN_KEY:
        message = first["msg"].removeprefix("Value error, ")
        return f"{path}: {message}" if path else message
    name = path if by_path else str(first["loc"][-1])
    similar = difflib.get_close_matches(name, sorted(set(known)), n=1)
    return f"unknown {noun} {path}" + (f"; did you mean {similar[0]}?" if similar else "")


def first_path(error: ValidationError) -> tuple[int | str, ...]:
    """Return the path of keys to the first problem of an invalid model."""
    return tuple(_first(error)["loc"])


def _first(error: ValidationError) -> ErrorDetails:
    problems = error.errors()
    return next((problem for problem in problems if problem["type"] in UNKNOWN_KEY), problems[0])
