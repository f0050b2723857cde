"""Values of options: plain ones as they are, all others as Typer converts them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from jobs.cli.app import QuickCommand


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


def values(*arguments: str, cls: Any) -> tuple[int, dict[str, Any]]:
    """The exit code of a command of this class with all kinds of options, and the values that it was given."""
    found: dict[str, Any] = {}
    app = typer.Typer(add_completion=False)

    @app.command(cls=cls)
    def command(
        name: str,
        more: Annotated[list[str] | None, typer.Argument()] = None,
        text: str | None = None,
        count: Annotated[int, typer.Option(min=1)] = 2,
        share: float = 0.5,
        colour: Colour = Colour.RED,
        path: Path | None = None,
        paths: Annotated[list[Path] | None, typer.Option("--paths")] = None,
        there: Annotated[Path | None, typer.Option(exists=True)] = None,
        names: Annotated[list[str], typer.Option("--names")] = ["a"],  # noqa: B006
        yes: bool = False,
    ) -> None:
        found.update({name: value for name, value in locals().items() if name != "found"})

    return CliRunner().invoke(app, arguments).exit_code, found


@pytest.mark.parametrize(
    "arguments",
    [
        "n",
        "n one two --text 12 --count 3 --share 1e-3 --colour blue --path a/b --paths x --paths y --yes",
        "n --names b --names c --there /",
        "n --count 0",
        "n --count many",
        "n --colour green",
        "n --there /no/such/file",
        "",
    ],
)
def test_values_are_those_of_typer(arguments):
    quick = values(*arguments.split(), cls=QuickCommand)
    assert quick == values(*arguments.split(), cls=typer.core.TyperCommand)
    assert bool(quick[1]) == (quick[0] == 0)
