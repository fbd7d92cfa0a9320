"""An S3 that tests own: moto's server in a process of its own, behind a proxy that can fail.

The proxy refuses requests or is slow when it is told to.
"""

import http.client
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import boto3
from botocore.config import Config
from sluice.setup.server import free_ports
from sluice.storage import aws_client, split_uri

_REFUSAL = (
    b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
)
Match = Callable[[str, str], bool]
"""(method, path with query) of a request -> whether it is meant.

What is asked of a queue reads `/?AmazonSQS.ReceiveMessage`.
"""


class _Weather:
    """What the proxy does with requests.

    `delay`: seconds each one waits. `breaks_at`: the request from which on every one is refused.
    `refused`: those that are.
    """

    def __init__(self) -> None:
        self.delay, self.refuses, self.breaks_at, self.refused = 0.0, False, None, None
        self.seen: list[tuple[str, str]] = []
        self.broken = threading.Event()

    def meets(self, method: str, path: str) -> bool:
        """Note a request; True when it is refused."""
        self.seen.append((method, path))
        if self.breaks_at is not None and self.breaks_at(method, path):
            self.refuses, self.breaks_at = True, None
            self.broken.set()
        return self.refuses or (self.refused is not None and self.refused(method, path))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _serve(self) -> None:
        weather, body = (
            self.server.weather,
            self.rfile.read(int(self.headers.get("Content-Length") or 0)),
        )
        time.sleep(weather.delay)
        called = self.headers.get("X-Amz-Target")  # a queue's requests all have one path
        if weather.meets(self.command, f"{self.path}?{called}" if called else self.path):
            return self._answer(503, {"Content-Type": "application/xml"}, _REFUSAL)
        upstream = http.client.HTTPConnection("127.0.0.1", self.server.upstream, timeout=60)
        try:
            upstream.request(self.command, self.path, body, dict(self.headers.items()))
            answer = upstream.getresponse()
            return self._answer(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            upstream.close()

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in ("connection", "content-length", "transfer-encoding"):
                self.send_header(name, value)
        length = headers.get("Content-Length") if self.command == "HEAD" else None
        self.send_header("Content-Length", length or str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve

    def log_message(self, *_: object) -> None:
        """Nothing: a run makes hundreds of requests."""


class S3Server:
    """A running store. `url`: of the store behind its proxy; `weather` says what the proxy does."""

    def __init__(self, port: int, proxy: ThreadingHTTPServer) -> None:
        self.direct, self.url, self.weather = (
            f"http://127.0.0.1:{port}",
            f"http://127.0.0.1:{proxy.server_address[1]}",
            proxy.weather,
        )
        self.client = boto3.client(
            "s3",
            endpoint_url=self.direct,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(retries={"total_max_attempts": 1}),
        )

    @property
    def environment(self) -> dict[str, str]:
        """What a user would export to reach this store, through the proxy."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def create_bucket(self, name: str) -> str:
        """Create a bucket; returns its `s3a://` address."""
        self.client.create_bucket(Bucket=name)
        return f"s3a://{name}"

    def put(self, uri: str, body: str | bytes) -> None:
        """Put an object, past the proxy."""
        bucket, key = split_uri(uri)
        self.client.put_object(Bucket=bucket, Key=key, Body=body)

    def get(self, uri: str) -> bytes:
        """An object's bytes, past the proxy."""
        bucket, key = split_uri(uri)
        return self.client.get_object(Bucket=bucket, Key=key)["Body"].read()

    def create_queue(self, bucket: str, prefix: str = "") -> str:
        """A queue that gets the events of a bucket, or of a folder in it; returns its URL.

        Args: bucket: `s3a://...`.
        """
        name, sqs = split_uri(bucket)[0], aws_client("sqs")
        url = sqs.create_queue(QueueName=name)["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"][
            "QueueArn"
        ]
        below = (
            {"Filter": {"Key": {"FilterRules": [{"Name": "prefix", "Value": prefix}]}}}
            if prefix
            else {}
        )
        events = {
            "QueueConfigurations": [{"QueueArn": arn, "Events": ["s3:ObjectCreated:*"], **below}]
        }
        self.client.put_bucket_notification_configuration(
            Bucket=name, NotificationConfiguration=events
        )
        return url

    def remove(self, uri: str) -> None:
        """Remove an object, past the proxy."""
        bucket, key = split_uri(uri)
        self.client.delete_object(Bucket=bucket, Key=key)

    def addresses(self, uri: str) -> list[str]:
        """Addresses of all objects below a prefix, in the store's order, past the proxy."""
        bucket, prefix = split_uri(uri)
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [
            f"s3a://{bucket}/{entry['Key']}" for page in pages for entry in page.get("Contents", [])
        ]

    @contextmanager
    def counted(self) -> Iterator[list[tuple[str, str]]]:
        """The requests (method, path) that are made within a block."""
        self.weather.seen = seen = []
        yield seen

    @contextmanager
    def slow(self, delay: float) -> Iterator[None]:
        """Every request of a block waits some seconds."""
        self.weather.delay = delay
        try:
            yield
        finally:
            self.weather.delay = 0.0

    @contextmanager
    def refusing(self, refused: Match) -> Iterator[None]:
        """Within a block these requests, and no others, are refused with 503."""
        self.weather.refused = refused
        try:
            yield
        finally:
            self.weather.refused = None

    @contextmanager
    def outage(self, begins: Match = lambda method, path: True) -> Iterator[threading.Event]:
        """Within a block every request is refused with 503, from the first that matches on.

        Yields the event that says it has begun.
        """
        self.weather.broken.clear()
        self.weather.breaks_at = begins
        try:
            yield self.weather.broken
        finally:
            self.weather.refuses, self.weather.breaks_at = False, None


@contextmanager
def start_s3(log: Path) -> Iterator[S3Server]:
    """Start the store and its proxy; both are ended with the block."""
    port = free_ports(1)[0]
    command = [
        str(Path(sys.executable).with_name("moto_server")),
        "-H",
        "127.0.0.1",
        "-p",
        str(port),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "MOTO_EC2_LOAD_DEFAULT_AMIS": "false"},
        )
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    proxy.daemon_threads, proxy.weather, proxy.upstream = True, _Weather(), port
    thread = threading.Thread(target=proxy.serve_forever, daemon=True)
    thread.start()
    try:
        _wait_for(port, process, log)
        yield S3Server(port, proxy)
    finally:
        proxy.shutdown()
        proxy.server_close()
        process.terminate()
        process.wait(30)


def _wait_for(port: int, process: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            http.client.HTTPConnection("127.0.0.1", port, timeout=5).request(
                "GET", "/moto-api/data.json"
            )
            return
        except OSError:
            assert process.poll() is None and time.monotonic() < deadline, log.read_text(
                errors="replace"
            )[-2000:]
            time.sleep(0.05)
