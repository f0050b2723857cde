"""A plugin of pytest that writes which lines of some files the tests run: ``CLAIMS_FILES``, into ``CLAIMS_REACHED``."""

import json
import os
import sys
import threading
from collections import defaultdict
from types import FrameType
from typing import Any

FILES = frozenset(os.environ["CLAIMS_FILES"].split(os.pathsep))
reached: dict[str, set[int]] = defaultdict(set)


def in_line(frame: FrameType, event: str, given: Any) -> Any:
    if event == "line":
        reached[frame.f_code.co_filename].add(frame.f_lineno)
    return in_line


def in_call(frame: FrameType, event: str, given: Any) -> Any:
    return in_line if frame.f_code.co_filename in FILES else None


def pytest_configure() -> None:
    threading.settrace(in_call)
    sys.settrace(in_call)


def pytest_unconfigure() -> None:
    sys.settrace(None)
    with open(os.environ["CLAIMS_REACHED"], "w", encoding="utf-8") as file:
        json.dump({path: sorted(lines) for path, lines in reached.items()}, file)
