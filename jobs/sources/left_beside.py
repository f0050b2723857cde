"""What lies beside segments and is not taken: said by why, with what to do."""

import re
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath

from jobs.sources.archives import holds_files
from jobs.sources.file_kinds import TAKE_LOG, kind_of
from jobs.sources.printed.forms import form_of

FOLDER = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d+)")
"""The name of the folder of a partition."""

LEFTOVER = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d+)\.[0-9a-f-]+-(?P<why>delete|future|stray)")
"""Names of the folders of partitions that a broker is deleting, moves to another disk, or does not own."""

WHY = {
    "delete": "a partition that the broker is deleting",
    "future": "a copy that the broker is still making on another disk",
    "stray": "a partition that is not the broker's any more",
}


class LeftBeside:
    """What there is at a path that is not taken, by why: the first name, and how many."""

    def __init__(self) -> None:
        self._seen: dict[str, list[str]] = {}

    def note(self, file: PurePosixPath, topics: Collection[str]) -> None:
        """Note a file that was not taken, if it is known why; ``topics`` are those that are wanted."""
        folder = file.parent.name
        if (leftover := LEFTOVER.fullmatch(folder)) is not None and leftover["topic"] in topics:
            self._add(f"{WHY[leftover['why']]}; name the folder itself to read it", folder)
            return
        found = FOLDER.fullmatch(folder)
        topic = "" if found is None else found["topic"]
        copied = next((log for log in topics if log and topic.endswith(log) and topic != log), None)
        if copied is not None:
            self._add(f"a copy of {copied}, as MirrorMaker makes it: name it by --copied-topic {topic}", folder)
        elif topic in topics and (kind := kind_of(file.name, b"")) is not None:
            self._add(f"{kind.what}: {kind.do}", file.name)

    def note_contents(self, name: str, head: bytes) -> None:
        """Note a file of an archive that begins with these bytes, if it may have records."""
        if (form := form_of(head)) is not None:
            self._add(f"{form.name} in an archive: unpack it, and give this file", name)
        elif holds_files(head):
            self._add("an archive in an archive: unpack the outer one", name)

    def note_other(self, name: str, head: bytes) -> None:
        """Note a file of a folder without logs that begins with these bytes, if it is known what it is."""
        if (kind := kind_of(name, head)) is not None:
            self._add(f"{kind.what}: {kind.do}", name)

    def _add(self, why: str, name: str) -> None:
        names = self._seen.setdefault(why, [])
        if name not in names:
            names.append(name)

    def lines(self, *, all_of_it: bool) -> Iterator[str]:
        """Yield what was left out; where logs were found, nothing of what lies beside every segment."""
        for why, names in self._seen.items():
            if all_of_it or not why.endswith(TAKE_LOG):
                more = f" and {len(names) - 1} more" if len(names) > 1 else ""
                yield f"{names[0]}{more}: {why}"
