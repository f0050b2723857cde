"""Which releases have each message of ``schemas/broker_log``: its templates are constants of Kafka's jars.

``python -m tests.broker.witness.templates`` writes the releases into the file. Needs the jars of every release, which
Maven fetches once. The coordinator before Kafka 4.0 is written in Scala: its jar has the words between the values, and
a release has a message if it has the part by which the message is found.
"""

import json
import re
import struct
import subprocess
import zipfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from tests.broker.kafka import CACHE, jars
from tests.shared_data import ROOT

FILE = ROOT / "schemas" / "broker_log" / "messages.json"
RELEASES = ("3.9.1", "4.0.0", "4.2.1", "4.3.1", "4.4.0")
OLD_RELEASES = {"2.0.1": "2.12", "2.4.1": "2.13", "2.8.2": "2.13", "3.3.2": "2.13", "3.6.2": "2.13", "3.7.2": "2.13"}
OLD_RELEASES |= {"3.8.1": "2.13", "3.9.1": "2.13"}
"""Releases whose coordinator is written in Scala, with the version of Scala in the name of their jar."""
OLD_CLASSES = re.compile(r"kafka/coordinator/group/(GroupCoordinator|GroupMetadataManager|GroupMetadata)(\$.*)?\.class")
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


def old_words(release: str) -> str:
    """The words of the coordinator that is written in Scala, in the order of its classes."""
    name = f"kafka_{OLD_RELEASES[release]}"
    jar = CACHE / "coordinators" / f"{name}-{release}.jar"
    if not jar.exists():
        artifact = f"-Dartifact=org.apache.kafka:{name}:{release}"
        command = ["mvn", "-q", "-B", "dependency:copy", artifact, f"-DoutputDirectory={jar.parent}"]
        subprocess.run(command, check=True)
    with zipfile.ZipFile(jar) as files:
        names = (name for name in sorted(files.namelist()) if OLD_CLASSES.fullmatch(name))
        return "".join("".join(constants(files.read(name))) for name in names)


def has_part(message: dict[str, Any], words: str) -> bool:
    """Whether a part by which the message is found is among these words."""
    return any(part.removesuffix("__consumer_offsets") in words for part in parts(message))


def parts(message: dict[str, Any]) -> list[str]:
    """The parts of which a message always has one."""
    return [message["has"]] if isinstance(message["has"], str) else list(message["has"])


def filled(template: str) -> Iterator[str]:
    """The template with every combination of values in its places."""
    pieces = template.replace("\x01", "{}").split("{}")
    for values in product(VALUES, repeat=min(len(pieces) - 1, MOST_PLACES)):
        said = [*values, *[VALUES[0]] * (len(pieces) - 1 - len(values)), ""]
        yield "".join(piece + value for piece, value in zip(pieces, said, strict=True))


def is_said(message: dict[str, Any], found: set[str]) -> bool:
    """Whether one of the templates can say this message."""
    pattern = re.compile(message["pattern"], re.S)
    near = (text for text in found if any(part in each for part in parts(message) for each in (text, *filled(text))))
    return any(pattern.match(each) for text in near for each in filled(text))


def main() -> None:
    """Write the releases of each message."""
    source = json.loads(FILE.read_text())
    of_release = {release: texts(release) for release in RELEASES}
    of_old = {release: old_words(release) for release in OLD_RELEASES}
    for message in source["messages"]:
        if message["kind"].startswith("request_"):
            continue  # the authorizer's, which builds them of words
        has = {release for release, words in of_old.items() if has_part(message, words)}
        has |= {release for release, found in of_release.items() if is_said(message, found)}
        message["releases"] = sorted(has)
    FILE.write_text(json.dumps(source, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
