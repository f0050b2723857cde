"""Files that appear whole under their name, or not at all: a run may be killed, and others may read, at any time."""

from pathlib import Path


def write_whole(file: Path, content: str | bytes) -> None:
    """Write a text (UTF-8) or bytes to a file, in place of what it had. Its folder exists."""
    unfinished = file.with_name(f"{file.name}.unfinished")
    unfinished.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    unfinished.replace(file)
