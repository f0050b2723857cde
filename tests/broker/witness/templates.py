"""Which releases have each message of ``schemas/broker_log``: its templates are constants of Kafka's jars.

``python -m tests.broker.witness.templates`` writes the releases into the file. Needs the jars of every release, which
Maven fetches once.
"""

from __future__ import annotations

import json
import re
import struct
import zipfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from tests.broker.kafka import jars
from tests.shared_data import ROOT

FILE = ROOT / "schemas" / "broker_log" / "messages.json"
RELEASES = ("3.9.1", "4.0.0", "4.2.1", "4.3.1", "4.4.0")
CLASSES = re.compile(r"coordinator/(group|group/runtime|common/runtime)/(classic/ClassicGroup|\w+)(\$\w+)*\.class")
VALUES = (
    "12",
    "c1-00000000-0000-4000-8000-000000000001",
    "__consumer_offsets-3",
    "Stable",
    "topic-1",
    "the member session expired",
    "the member failed to sync within timeout",
)
"""What stands in a template for a value: a message is there if its pattern matches with one of them in each place."""
MOST_PLACES = 4
SIZES = {3: 5, 4: 5, 5: 9, 6: 9, 7: 3, 8: 3, 9: 5, 10: 5, 11: 5, 12: 5, 15: 4, 16: 3, 17: 5, 18: 5, 19: 3, 20: 3}
"""Bytes of a constant of a class file, by its tag (JVM specification, 4.4)."""


def constants(data: bytes) -> Iterator[str]:
    """The texts among the constants of a class file."""
    (count,) = struct.unpack(">H", data[8:10])
    at, index = 10, 1
    while index < count:
        tag = data[at]
        if tag == 1:
            (size,) = struct.unpack(">H", data[at + 1 : at + 3])
            yield data[at + 3 : at + 3 + size].decode("utf-8", "replace")
            at += 3 + size
        else:
            at += SIZES[tag]
            index += tag in (5, 6)
        index += 1


def texts(release: str) -> set[str]:
    """The texts of the group coordinator's classes."""
    found: set[str] = set()
    for jar in Path(jars(release).removesuffix("/*")).glob("kafka-*coordinator*.jar"):
        with zipfile.ZipFile(jar) as files:
            for name in files.namelist():
                if CLASSES.search(name):
                    known = constants(files.read(name))
                    found.update(text for text in known if " " in text and len(text) < 400)
    return found


def filled(template: str) -> Iterator[str]:
    """The template with every combination of values in its places."""
    pieces = template.replace("\x01", "{}").split("{}")
    for values in product(VALUES, repeat=min(len(pieces) - 1, MOST_PLACES)):
        said = [*values, *[VALUES[0]] * (len(pieces) - 1 - len(values)), ""]
        yield "".join(piece + value for piece, value in zip(pieces, said, strict=True))


def is_said(message: dict[str, str], found: set[str]) -> bool:
    """Whether one of the templates can say this message."""
    pattern = re.compile(message["pattern"], re.S)
    near = (text for text in found if message["has"] in text or any(message["has"] in each for each in filled(text)))
    return any(pattern.match(each) for text in near for each in filled(text))


def main() -> None:
    """Write the releases of each message."""
    source = json.loads(FILE.read_text())
    of_release = {release: texts(release) for release in RELEASES}
    for message in source["messages"]:
        message["releases"] = [release for release, found in of_release.items() if is_said(message, found)]
    FILE.write_text(json.dumps(source, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
