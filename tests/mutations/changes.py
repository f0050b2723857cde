"""The places of a text of SQL that are changed, and readers that ask changed texts."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any, Final
from unittest.mock import patch

from jobs.tables import folder_reader, spark_reader
from jobs.tables.reader import with_names

CHANGES: Final = (
    (r"cluster = :cluster", "TRUE"),
    (r"(?<= )<(?= )", "<="),
    (r"(?<= )<=(?= )", "<"),
    (r"(?<= )>(?= )", ">="),
    (r"(?<= )>=(?= )", ">"),
    (r"(?<= )=(?= )(?! :cluster)", "<>"),
    (r"(?<= )<>(?= )", "="),
    (r"\bmin\(", "max("),
    (r"\bmax\(", "min("),
    (r"(?<!PRECEDING) AND ", " OR "),
    (r" OR ", " AND "),
    (r"IS NOT NULL", "IS NULL"),
    (r"IS NULL", "IS NOT NULL"),
    (r"(?<!NOT) IN (?=[:(])", " NOT IN "),
    (r" NOT IN ", " IN "),
    (r"NOT coalesce", "coalesce"),
    (r" DESC\b", ""),
    (r"LEFT JOIN", "JOIN"),
    (r"bool_or", "bool_and"),
    (r" [+-] 1\b", ""),
    (r"SELECT DISTINCT", "SELECT"),
)
AROUND: Final = 70
"""Characters before and behind a place that say which one it is."""
IN_ORDER: Final = re.compile(r"SELECT \* FROM \((.*)\) AS found ORDER BY [^()]*", re.DOTALL)
"""What a reader makes of a text whose rows it wants in an order."""


def without_numbers(text: str) -> str:
    """Texts of one kind differ in the partitions and offsets that they name, and in how many there are."""
    uncommented = re.sub(r"\n *--[^\n]*", "", text)
    plain = re.sub(r"\s+", " ", re.sub(r"[0-9]+", "0", re.sub(r"'__[a-z_]+'", "'log'", uncommented)))
    return re.sub(r"(WHEN 0 THEN -?0 )+", "WHEN 0 THEN 0 ", re.sub(r"\(0(, 0)+\)", "(0)", plain))


def inner(sql: str) -> str:
    """The text, without the order that a reader wants."""
    ordered = IN_ORDER.fullmatch(sql)
    return ordered[1] if ordered else sql


@cache
def changed(sql: str) -> Mapping[str, str]:
    """The text with each of its places changed, by place: what is changed to what, and some characters around it.

    What stands in a text several times is changed everywhere: it is one place of the module.
    """
    spans: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    text = inner(sql)
    for pattern, instead in CHANGES:
        for match in re.finditer(pattern, text):
            first, last = match.span()
            before, behind = without_numbers(text[:first])[-AROUND:], without_numbers(text[last:])[:AROUND]
            place = f"{before}[{match[0]} -> {instead}]{behind}".strip()
            spans[place].append((first, last, instead))
    texts = {}
    for place, of_place in spans.items():
        made = text
        for first, last, instead in reversed(of_place):
            made = made[:first] + instead + made[last:]
        texts[place] = sql.replace(text, made)
    return texts


@contextmanager
def asked_through(change: Callable[[str], str]) -> Iterator[None]:
    """Let each text pass through a function before an engine gets it."""

    def passed(sql: str, *rest: Any) -> str:
        return with_names(change(sql), *rest)

    with ExitStack() as both:
        for reader in (folder_reader, spark_reader):
            both.enter_context(patch.object(reader, "with_names", passed))
        yield


def with_place_changed(place: str) -> Callable[[str], str]:
    return lambda sql: changed(sql).get(place, sql)
