"""Each place of a definition is made false once, and only where it runs."""

import ast

from tests.claims.flips import GONE, flips

TEXT = '''
LIMIT: int = 5


class Rows:
    def late(self, rows: list[int], least: int = 2) -> list[int]:
        """Those that are late."""
        note("so many")
        if not rows or rows[0] > 3:
            return []
        return [row for row in rows if row in self.known]

    def each(self, rows):
        for row in rows:
            yield row
'''


def made(symbol: str, lines: range = range(100)) -> list[str]:
    found = list(flips(TEXT, symbol, lines))
    assert all(ast.parse(each.text) and each.text != TEXT for each in found)
    return [each.change for each in found]


def test_each_place_is_changed() -> None:
    assert sorted(made("Rows.late")) == sorted(
        [
            *(GONE, "another number: 2", 'left out: note("so many")', "returns nothing: return []"),
            *("not so: not rows or rows[0] > 3", "not so: not rows", "not so: rows[0] > 3"),
            *("another number: 0", "another number: 3", "not so: row in self.known"),
            "returns nothing: return [row for row in rows if row in self.known]",
        ]
    )
    assert made("Rows.each") == [GONE, "left out: yield row"]
    assert made("LIMIT") == ["another number: 5"]


def test_what_does_not_run_stays() -> None:
    assert made("Rows.late", range(8, 9)) == [GONE, 'left out: note("so many")']


def test_a_function_that_gives_nothing_keeps_its_kind() -> None:
    gone = next(flips(TEXT, "Rows.each", ()))
    names: dict[str, type] = {}
    exec(gone.text, names)
    assert list(names["Rows"]().each([1, 2])) == []
