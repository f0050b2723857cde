"""The pages that state facts of the code are what the code says now."""

from jobs.docs.__main__ import DOCS, pages
from tests.commands import run_command


def test_each_page_is_current() -> None:
    for name, text in pages().items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"{name}: run python -m jobs.docs"


def test_the_readme_quotes_what_explain_says():
    logs = DOCS.parent / "data" / "samples" / "logs"
    told = run_command("explain", "B-range-5175@6", "--log", logs).stdout.splitlines()
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    of_first = readme.partition("data/samples/incident")[0].splitlines()
    quoted = [line.strip().removesuffix("]") for line in of_first if line.endswith(" ...]")]
    assert len(quoted) == 5
    for line in quoted:
        sentence, positions = line.split("  [")
        said = next(each for each in told if each.startswith(f"{sentence}  ["))
        assert all(f"{position.removesuffix(' ...')} " in said for position in positions.split(", "))
