"""A trainer's Prometheus endpoint: a real process that serves it, and pages that no agent should suffer from."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.integration.agent.watched_job import PATIENCE, SCAN, Job

from flopwatch_agent.attribution import metrics_ports
from flopwatch_agent.endpoint_stream import MAX_PAGE_BYTES, EndpointError, EndpointStream, page_of
from flopwatch_agent.trainer_endpoints import TrainerEndpoints

SERVE = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Page(BaseHTTPRequestHandler):
    step = 0
    def do_GET(self):
        Page.step += 2
        text = f'trainer_step {Page.step}.0\\ntrainer_last_step_timestamp_seconds {BEGAN + Page.step * 0.5}\\n'
        text += '# HELP build_info secrets\\nbuild_info{token="hf_abcdefghijklmnop"} 1\\n'
        self.send_response(200); self.end_headers(); self.wfile.write(text.encode())
    def log_message(self, *words): pass
server = HTTPServer(("127.0.0.1", 0), Page)
import time
BEGAN = time.time()
print(server.server_address[1], flush=True)
server.serve_forever()
"""


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    made = Job(tmp_path)
    yield made
    for process in made.processes:
        process.kill()
        process.wait(5)


def serve(job: Job, *arguments: str) -> int:
    """A trainer whose only output is its endpoint; its port."""
    with (job.folder / "console").open("wb") as sink:
        command = [sys.executable, "-c", SERVE, *arguments]
        job.processes.append(subprocess.Popen(command, stdout=sink, stderr=subprocess.DEVNULL))
    while not (text := (job.folder / "console").read_text()).endswith("\n"):
        time.sleep(0.02)
    return int(text)


def test_a_configured_endpoint_gives_the_steps_of_the_job_that_listens_there(job: Job) -> None:
    port = serve(job)
    endpoints = job.with_endpoints(f"http://127.0.0.1:{port}/metrics")
    began = time.time()

    steps = []
    for moment in (0.0, 1.0, 2.0, PATIENCE + 2):
        steps += job.look(began + moment)
        endpoints.scrape(began + moment)
    steps += job.look(began + SCAN)

    # Each scrape sees two more steps, half a second each by the trainer's own clock.
    assert [(step.source, step.step, step.seconds, step.steps_covered, step.basis) for step in steps] == [
        ("file", 2, None, 2, "none"),
        ("file", 4, 1.0, 2, "derived_counter"),
        ("file", 6, 1.0, 2, "derived_counter"),
        ("file", 8, 1.0, 2, "derived_counter"),
    ]
    assert f"http://127.0.0.1:{port}/metrics" in [log.path for log in job.steps.logs()]


def test_a_port_is_asked_only_where_a_process_of_the_job_listens(job: Job) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        stranger.setblocking(False)
        port = stranger.getsockname()[1]
        job.start(f"--metrics_server.port={port}")
        endpoints = job.with_endpoints(f"http://127.0.0.1:{port}/metrics")
        job.over(0)

        endpoints.scrape(time.time())

        with pytest.raises(BlockingIOError):
            stranger.accept()


@pytest.mark.parametrize(
    ("words", "ports"),
    [
        (("train.py", "--metrics_server.port", "8000"), (8000,)),
        (("rl", "--trainer.metrics-server.port=9001", "--port", "22"), (9001,)),
        (("train.py", "--metrics_server.port", "none"), ()),
        (("train.py", "--metrics_server.port", "70000"), ()),
    ],
)
def test_ports_come_from_known_arguments_only(words: tuple[str, ...], ports: tuple[int, ...]) -> None:
    assert metrics_ports(words) == ports


def test_only_the_gauges_of_trainers_are_kept_of_a_page(job: Job) -> None:
    port = serve(job)
    stream = EndpointStream(f"http://127.0.0.1:{port}/metrics", "n", 0.0)

    stream.scrape(10.0)

    kept = stream.read(1 << 20).decode()
    assert [line.split()[0] for line in kept.splitlines() if not line.startswith("#")] == [
        "trainer_step", "trainer_last_step_timestamp_seconds",
    ]  # fmt: skip
    assert "hf_" not in kept


@pytest.fixture
def server() -> Iterator[Callable[[Callable[[BaseHTTPRequestHandler], None]], str]]:
    """Serves one kind of page; its address."""
    servers = []

    def start(answer: Callable[[BaseHTTPRequestHandler], None]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer(self)

            def log_message(self, *words: object) -> None:
                pass

        made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        made.daemon_threads = True
        servers.append(made)
        threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return f"http://127.0.0.1:{made.server_address[1]}/metrics"

    yield start
    for made in servers:
        made.shutdown()
        made.server_close()


def too_much(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    try:
        for _ in range(2 * MAX_PAGE_BYTES >> 16):
            handler.wfile.write(b"x" * (1 << 16))
    except OSError:
        pass


def elsewhere(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(302)
    handler.send_header("Location", "http://127.0.0.1:1/")
    handler.end_headers()


def dripping(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    try:
        for _ in range(200):
            handler.wfile.write(b"trainer_step 1.0\n")
            time.sleep(0.05)
    except OSError:
        pass


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (too_much, "its page is larger than 4 MiB"),
        (elsewhere, "it answers 302"),
        (dripping, "its page takes longer than 0.3 s"),
        (lambda handler: handler.send_error(503), "it answers 503"),
    ],
    ids=["too much", "a redirect", "a slow page", "an error"],
)
def test_a_page_that_is_none_costs_little_and_is_named(server, monkeypatch, answer, why: str) -> None:
    monkeypatch.setattr("flopwatch_agent.endpoint_stream.TIMEOUT_SECONDS", 0.3)
    url = server(answer)

    with pytest.raises(EndpointError, match=why):
        page_of(url)


def test_an_endpoint_on_another_machine_is_a_job_while_it_answers(server, monkeypatch, job: Job) -> None:
    def page(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(b"trainer_step 3.0\n")

    url = server(page)
    monkeypatch.setattr("flopwatch_agent.trainer_endpoints.LOOPBACK", frozenset())
    endpoints = TrainerEndpoints((url,), job.jobs._procfs, "n")

    assert endpoints.alone(0.0) == ((), ())
    endpoints.scrape(10.0)
    (live,), over = endpoints.alone(20.0)
    assert (live.sighting.ref, over) == (f"endpoint:{url}", ())
    assert [stream.url for stream in endpoints.of_job(live, 20.0)] == [url]
    assert [item.sighting.ref for item in endpoints.alone(10_000.0)[1]] == [f"endpoint:{url}"]
