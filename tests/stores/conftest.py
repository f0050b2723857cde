"""A server of S3 on this machine, with a bucket for each test."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from urllib.error import URLError
from urllib.request import Request, urlopen
from uuid import uuid4

import pytest

SECRET = "swordfish-of-the-store"


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    pytest.importorskip("moto", reason="the server of S3 is moto's: make test-stores says how to install it")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-p", str(port)]
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url, until = f"http://127.0.0.1:{port}", time.monotonic() + 60
    while True:
        try:
            urlopen(url)
            break
        except URLError:
            assert time.monotonic() < until
            time.sleep(0.2)
    yield url
    started.kill()
    started.wait()


@pytest.fixture
def place(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URI of a folder in a new bucket; the environment has what delta-rs needs to open it."""
    bucket = f"b{uuid4().hex[:12]}"
    urlopen(Request(f"{server}/{bucket}", method="PUT"))
    for name, value in {
        "AWS_ENDPOINT_URL": server,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }.items():
        monkeypatch.setenv(name, value)
    return f"s3://{bucket}/audit"
