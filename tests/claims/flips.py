"""The places of a function, or of a constant, that can be made false, and the text of its file with one of them so."""

import ast
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

GONE: Final = "gives nothing"
Piece = tuple[ast.expr | ast.stmt, str, str]
"""What is changed, what is done with it, and the text that takes its place; ``{}`` is the text that is there."""


class Flip(NamedTuple):
    """A change of one place: the line, what is changed, and the text of the whole file with the change."""

    line: int
    change: str
    text: str


def defined(tree: ast.Module, symbol: str) -> ast.stmt | None:
    """Return what a module defines by a name, such as ``function``, ``Class.method`` or ``CONSTANT``."""
    found: ast.stmt = ast.Pass()
    body = tree.body
    for name in symbol.split("."):
        named = [each for each in body if name in _names(each)]
        if not named:
            return None
        found = named[-1]
        body = getattr(found, "body", [])
    return found


def _names(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [each.id for each in targets if isinstance(each, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def flips(text: str, symbol: str, reached: Collection[int]) -> Iterator[Flip]:
    """Yield a change for each place of a definition that tests reach, by line; a function that gives nothing first.

    ``reached``: the lines that the tests run.
    """
    found = defined(ast.parse(text), symbol)
    assert found is not None, symbol
    if isinstance(found, ast.FunctionDef):
        first = next(each for each in found.body if not _is_text(each))
        is_generator = any(isinstance(each, ast.Yield | ast.YieldFrom) for each in _own(found))
        lines, at = text.splitlines(keepends=True), first.lineno - 1
        nothing = f"{' ' * first.col_offset}{'if True: return' if is_generator else 'return None'}\n"
        yield Flip(found.lineno, GONE, "".join([*lines[:at], nothing, *lines[at:]]))
    for node, change, instead in _pieces(found):
        if node.lineno in reached or not isinstance(found, ast.FunctionDef | ast.ClassDef):
            there = ast.get_source_segment(text, node) or ""
            start, end = _place(text, node.lineno, node.col_offset), _place(text, node.end_lineno, node.end_col_offset)
            shown = " ".join(there.split())[:60]
            yield Flip(node.lineno, f"{change}: {shown}", text[:start] + instead.replace("{}", there) + text[end:])


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _own(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """What is in a function and in no function inside it."""
    left: list[ast.AST] = [*function.body]
    while left:
        yield (node := left.pop())
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            left.extend(ast.iter_child_nodes(node))


def _place(text: str, line: int | None, column: int | None) -> int:
    """Where a place of the syntax tree is in the text; its columns count bytes."""
    lines = text.splitlines(keepends=True)
    assert line is not None
    return sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())


def _pieces(found: ast.stmt) -> Iterator[Piece]:
    is_constant = not isinstance(found, ast.FunctionDef | ast.ClassDef)
    left: list[ast.AST] = [found]
    while left:
        node = left.pop(0)
        yield from _changes(node, is_constant)
        left.extend(_inside(node))


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node that are evaluated; a formatted text has no places of its own."""
    skipped = ("annotation", "returns", "decorator_list", "pattern")
    if not isinstance(node, ast.JoinedStr):
        for name, value in ast.iter_fields(node):
            if name not in skipped:
                yield from (
                    each for each in (value if isinstance(value, list) else [value]) if isinstance(each, ast.AST)
                )


def _changes(node: ast.AST, is_constant: bool) -> Iterator[Piece]:
    match node:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            yield node, "not so", "(not ({}))"
        case ast.Constant(value=bool()):
            yield node, "not so", "(not {})"
        case ast.Constant(value=int() | float()):
            yield node, "another number", "({} + 1)"
        case ast.Constant(value=str()) | ast.JoinedStr() if is_constant:
            yield node, "another text", '("~" + {})'
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield node, "returns nothing", "return None"
        case ast.Expr(value=ast.Yield() | ast.YieldFrom() as value):
            yield value, "left out", "None if True else ({})"
        case ast.Expr(value=ast.Call() as value):
            yield value, "left out", "None"
        case ast.If(test=test) | ast.IfExp(test=test) if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp):
            yield test, "not so", "(not ({}))"
        case ast.comprehension(ifs=ifs):
            for each in ifs:
                if not isinstance(each, ast.Compare | ast.BoolOp | ast.UnaryOp):
                    yield each, "not so", "(not ({}))"
