"""A real broker of a release before 4.0 with ZooKeeper, from the jars that Maven fetches once."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import Template

from tests.broker import kafka

SETTINGS = """broker.id=1
zookeeper.connect=127.0.0.1:{zookeeper}
zookeeper.session.timeout.ms=6000
listeners=PLAINTEXT://127.0.0.1:{port}
log.dirs={home}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
group.initial.rebalance.delay.ms=500
group.min.session.timeout.ms=1000
log.cleaner.enable=false
"""
ZOOKEEPER = """dataDir={home}/zookeeper
clientPort={zookeeper}
clientPortAddress=127.0.0.1
admin.enableServer=false
"""


class OlderBroker:
    """A broker and its ZooKeeper; its application log goes to ``log``."""

    def __init__(self, home: Path, release: str) -> None:
        self.home, self.log = home, home / "server.log"
        self.port, zookeeper = kafka.free_ports(2)
        path = kafka._fetched(f"older-{release}", "pom-older.xml", kafka=release)
        for name, text in (("server.properties", SETTINGS), ("zookeeper.properties", ZOOKEEPER)):
            (home / name).write_text(text.format(home=home, port=self.port, zookeeper=zookeeper))
        logging = home / "log4j.properties"
        logging.write_text(Template((kafka.HERE / "log4j.properties").read_text()).substitute(log=self.log))
        self._java = ["java", "-Xmx400m", f"-Dlog4j.configuration=file:{logging}", "-cp", path]
        self._zookeeper = self._started(
            "org.apache.zookeeper.server.quorum.QuorumPeerMain", "zookeeper.properties", zookeeper
        )
        self.start()

    def start(self) -> None:
        """Start the broker, perhaps again."""
        self._broker = self._started("kafka.Kafka", "server.properties", self.port)

    def kill(self) -> None:
        """End the broker as a crash does."""
        self._broker.kill()
        self._broker.wait(kafka.START_S)

    def stop(self) -> None:
        """End both."""
        for process in (self._broker, self._zookeeper):
            process.terminate()
            process.wait(kafka.START_S)

    def _started(self, main: str, settings: str, port: int) -> subprocess.Popen[bytes]:
        out = self.home / "broker.out"
        with out.open("a") as stream:
            command = [*self._java, main, str(self.home / settings)]
            process = subprocess.Popen(command, stdout=stream, stderr=stream)
        kafka.wait_until_it_listens(process, port, out)
        return process


@contextmanager
def older_broker(home: Path, release: str) -> Iterator[OlderBroker]:
    """A broker of a release, with its data in ``home/data``."""
    started = OlderBroker(home, release)
    try:
        yield started
    finally:
        started.stop()
