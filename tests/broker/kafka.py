"""A real Kafka broker and real clients, from the jars that Maven fetches once; all on loopback."""

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from string import Template
from typing import Any

HERE = Path(__file__).parent
KAFKA = "4.3.1"
CACHE = Path.home() / ".cache" / "coordinator-audit"
JARS = CACHE / f"kafka-{KAFKA}"
STREAMS = {"4.4.0": KAFKA}
"""The release of Kafka Streams beside a broker whose own Maven does not have."""
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
TELLING = (
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.coordinator.group=info",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
)
"""The group coordinator says in ``broker.out`` what it does and why, as a broker does by default."""
START_S = 600
Line = dict[str, Any]


def jars(release: str = KAFKA) -> str:
    """The class path; the jars come by Maven the first time. Raises RuntimeError where that cannot be."""
    return _fetched(f"kafka-{release}", "pom.xml", kafka=release, streams=STREAMS.get(release, release))


def _fetched(name: str, pom: str, **wanted: str) -> str:
    folder = CACHE / name
    for tool in ("javac", "mvn"):
        if shutil.which(tool) is None:
            raise RuntimeError(f"the broker tests need {tool}: sudo apt-get install openjdk-17-jdk-headless maven")
    if not folder.is_dir():
        fetched = folder.with_suffix(".part")
        command = ["mvn", "-q", "-B", "-f", str(HERE / pom), "dependency:copy-dependencies"]
        options = [f"-D{key}={value}" for key, value in {**wanted, "outputDirectory": str(fetched)}.items()]
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"Maven could not fetch Kafka's jars (the first run needs the network): {done.stdout}")
        fetched.rename(folder)
    return f"{folder}/*"


def broker_command(release: str, settings: Path, log: Path | None = None) -> list[str]:
    """The command of a broker; it writes its application log to ``log``, at INFO, as Kafka's own scripts do.

    None: the group coordinator's lines go to standard error.
    """
    java, path = ["java", "-Xmx512m", QUIET], jars(release)
    if log is not None:
        configuration = settings.with_suffix(".log4j2.properties")
        configuration.write_text(Template((HERE / "log4j2.properties").read_text()).substitute(log=log))
        java = ["java", "-Xmx512m", f"-Dlog4j2.configurationFile={configuration}"]
        path = f"{_fetched('log4j', 'pom-log4j.xml')}:{path}"
    return [*java, "-cp", path, *TELLING, "kafka.Kafka", str(settings)]


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on just now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@contextmanager
def broker(
    home: Path,
    release: str = KAFKA,
    ports: tuple[int, int] | None = None,
    changed: dict[str, str] | None = None,
    log: Path | None = None,
) -> Iterator[str]:
    """A broker that is its own controller, with its data in ``home/data``; its address.

    Data that are there already go on. ``ports`` are those of the broker and the controller, ``changed`` settings
    other than those of ``server.properties``. Its application log goes to ``log``; None: it is not written.
    """
    port, controller = ports or free_ports(2)
    process = start_broker(home, release, (port, controller), changed or {}, log)
    try:
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(START_S)


def start_broker(
    home: Path, release: str, ports: tuple[int, int], changed: dict[str, str], log: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start a broker as ``broker`` does, and return its process once it listens. Raises RuntimeError if it does not."""
    data, settings = home / "data", home / "server.properties"
    template = Template((HERE / "server.properties").read_text())
    others = "".join(f"{name}={value}\n" for name, value in changed.items())
    settings.write_text(template.substitute(port=ports[0], controller=ports[1], data=data) + others)
    if not data.exists():
        storage = ["java", "-Xmx512m", QUIET, "-cp", jars(release), "kafka.tools.StorageTool"]
        made = subprocess.run([*storage, "random-uuid"], capture_output=True, text=True, check=True)
        cluster = made.stdout.split()[-1]
        subprocess.run([*storage, "format", "-t", cluster, "-c", str(settings)], capture_output=True, check=True)
    with (home / "broker.out").open("a") as out:
        process = subprocess.Popen(broker_command(release, settings, log), stdout=out, stderr=out)
    try:
        wait_until_it_listens(process, ports[0], home / "broker.out")
    except RuntimeError:
        process.terminate()
        process.wait(START_S)
        raise
    return process


def wait_until_it_listens(process: subprocess.Popen[bytes], port: int, out: Path) -> None:
    """Return once somebody listens on the port. Raises RuntimeError with the end of ``out`` if the process ends."""
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.5)
    raise RuntimeError(f"the broker did not start: {out.read_text()[-2000:]}")


class Clients:
    """A process of Java clients; ``do`` gives it an order of the class ``main`` in the folder ``sources``."""

    def __init__(
        self,
        servers: str,
        home: Path,
        release: str = KAFKA,
        main: str = "Clients",
        sources: Path = HERE,
        arguments: Sequence[str] = (),
    ) -> None:
        classes, path = home / f"classes-{release}", jars(release)
        if not classes.exists():
            files = sorted({str(each) for each in (*sources.glob("*.java"), HERE / "Features.java")})
            subprocess.run(["javac", "-nowarn", "-d", str(classes), "-cp", path, *files], check=True)
        command = ["java", "-Xmx512m", QUIET, "-cp", f"{classes}:{path}", main, servers, *arguments]
        pipe = subprocess.PIPE
        self.errors = (home / "clients.out").open("a")
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self.errors, text=True)

    def do(self, order: str, **fields: Any) -> Line:
        """The answer to an order; raises RuntimeError if it failed."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"do": order, **fields}) + "\n")
        self.process.stdin.flush()
        answer: Line = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(f"{order} {fields}: {answer['error']}")
        return answer

    def kill(self) -> None:
        """End the process as a crash does."""
        self.process.kill()
        self.process.wait()
        self.errors.close()

    def close(self) -> None:
        """Close all clients in good order."""
        self.process.communicate(timeout=START_S)
        self.errors.close()
