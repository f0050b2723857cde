"""What Kafka's own leader of a share partition and share coordinator do, to compare the model with them.

``pytest tests/broker/test_share_leader.py`` compares random scripts; it needs a JDK and Maven.
``python -m tests.broker.share_leader`` writes the scripts of ``tests/data/share_leader.jsonl.gz`` anew.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from tests.broker.share_group import Line, driver

HERE = Path(__file__).parent


def kafkas_leader(home: Path) -> AbstractContextManager[Callable[[Line], Line]]:
    """A function that gives one line of a script to Kafka's classes and returns it answered.

    Compiled classes go to the folder ``home``.
    """
    return driver(home, HERE / "ShareLeaders.java", "kafka.server.share.ShareLeaders")
