"""Two things missing at once. A pair is named "A, B" by what it takes away, and is made of those removals."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.matrix.removals import NO_FIELD, Removal


def pairs(found: Mapping[str, Removal], partitions: Sequence[int], workers: Sequence[int]) -> dict[str, Removal]:
    """The pairs of these removals that logs have; ``workers`` are the partitions of the log of workers with records."""
    named = _named(partitions[0], partitions[min(1, len(partitions) - 1)], partitions[-1], workers)
    return {", ".join(names): combined([found[name] for name in names]) for names in named if found.keys() >= {*names}}


def _named(one: int, other: int, last: int, workers: Sequence[int]) -> Iterator[tuple[str, ...]]:
    """Yield what each pair is of: each pair is of another kind."""
    yield f"{one} compacted without tombstones", "metadata absent"
    yield f"damaged batch in {one}", "share state 0 without its first half"
    yield f"partition {one} absent", "metadata absent"
    if last != one:
        yield f"partition {last} absent", "metadata absent"
    yield f"partition {one} absent", "share state absent"
    yield f"last segment of {other}", f"unreadable values in {other}"
    yield f"cut off in {one}", "metadata with a hole"
    yield f"first segment of {other}", "clock of metadata +300 ms"
    yield f"first segment of {one}", f"unreadable keys in {other}"
    yield f"{other} compacted with tombstones", f"unreadable values in {other}"
    yield f"damaged batches and a cut in {other}", "metadata without first half"
    yield f"marker lost in {one}", "metadata short"
    for number in workers[:1]:
        yield "log of workers absent", f"{number} compacted with tombstones"
    yield f"{one} compacted without tombstones", "Parquet of a consumer"
    yield f"{other} compacted with tombstones", "JSON lines of a consumer"
    yield f"unreadable values in {one}", f"middle segment of {one} comes a night later"


def combined(parts: Sequence[Removal]) -> Removal:
    """Return the removal that makes these changes one after the other.

    Logs that end earlier are whole ones: where something else is missing of them, answers are compared with theirs.
    """
    missing = [each for each in parts if not each.is_tail]
    tails = [each for each in parts if each.is_tail]
    return Removal(
        change=_one_after_the_other(missing),
        ends=_one_after_the_other(tails) if tails else None,
        reason=_either(each.reason for each in missing),
        partitions=tuple(sorted({number for each in missing for number in each.partitions})),
        others=any(each.others for each in missing),
        forgets=any(each.forgets for each in missing),
        nights=max(each.nights for each in missing),
        is_dump=any(each.is_dump for each in missing),
        changes=_either(each.changes for each in missing),
        lacks=_either(each.lacks for each in missing),
        questions="".join(f"(?=.*?(?:{each.questions}))" for each in missing),
        may_be_silent=any(each.may_be_silent for each in missing),
        moves_topics_ms=max(each.moves_topics_ms for each in missing),
    )


def _one_after_the_other(parts: Sequence[Removal]) -> Callable[[Path], list[Path] | None]:
    """Return what makes all changes, and returns what is given instead of the folder after the last of them."""

    def change(folder: Path) -> list[Path] | None:
        given = None
        for each in parts:
            given = each.change(folder) or given
        return given

    return change


def _either(patterns: Iterable[str]) -> str:
    """Return a pattern for what matches one of these. An empty one stands for nothing, as of a removal's reason."""
    return "|".join(f"(?:{each})" for each in patterns if each) or NO_FIELD
