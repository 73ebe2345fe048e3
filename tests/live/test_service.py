"""The policy service, asked over HTTP."""

from __future__ import annotations

import socket
import threading
import time

import httpx
import pytest
import uvicorn

from yardmaster.live.decision import Decider
from yardmaster.live.service import LARGEST_BODY, MOST_WAITING, create_service

TOKEN = "a-token-for-tests"  # noqa: S105
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
ASKED = {
    "version": 1,
    "time_s": 100,
    "nodes": [{"name": "n1", "gpus": 2}],
    "jobs": [
        {"id": "long", "submit_s": 1, "estimate_s": 900},
        {"id": "short", "submit_s": 2, "estimate_s": 9, "gpus": 2},
    ],
}


@pytest.fixture(scope="module")
def url():
    """Return the address of a real server."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(create_service(Decider("sjf+easy"), TOKEN), log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(10)


def test_ranked_jobs_come_back(url):
    """The order, the scores and what to start, from the scheduler that was named."""
    found = httpx.post(f"{url}/v1/rank", json=ASKED, headers=HEADERS).json()
    assert [one["id"] for one in found["order"]] == ["short", "long"]
    assert found["starts"] == [{"id": "short", "nodes": [["n1", 2]]}]
    about = httpx.get(f"{url}/v1/about", headers=HEADERS).json()
    assert (about["version"], about["scheduler"]) == (1, "sjf+easy")


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"X-Token": TOKEN}])
def test_nobody_is_answered_without_the_token(url, headers):
    """Both addresses want the token, in the right header."""
    assert httpx.post(f"{url}/v1/rank", json=ASKED, headers=headers).status_code == 401
    assert httpx.get(f"{url}/v1/about", headers=headers).status_code == 401


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 400), (b"[" * 100_000, 400), (b"{}", 422), (b" " * (LARGEST_BODY + 1), 413)],
    ids=["no JSON", "too deep", "no state", "too long"],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(url, body, status):
    """Bad bodies, deep ones and long ones end with an error, and the next one is answered."""
    found = httpx.post(f"{url}/v1/rank", content=body, headers=HEADERS, timeout=20)
    assert found.status_code == status
    assert found.json()["error"]
    assert httpx.post(f"{url}/v1/rank", json=ASKED, headers=HEADERS).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("POST", "/rank", 404), ("GET", "/", 404), ("GET", "/v1/rank", 405)],
)
def test_a_wrong_address_is_answered_with_the_right_ones(url, method, path, status):
    """Unknown paths and methods get the same kind of answer as other mistakes."""
    found = httpx.request(method, url + path, headers=HEADERS)
    assert found.status_code == status
    assert "POST /v1/rank" in found.json()["error"]


def test_many_at_once_are_answered_or_told_to_come_back(url):
    """Thirty requests at the same time: each gets a right answer, or is told to ask again."""
    codes = []

    def ask():
        codes.append(httpx.post(f"{url}/v1/rank", json=ASKED, headers=HEADERS).status_code)

    threads = [threading.Thread(target=ask) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(codes) <= {200, 503}
    assert 200 in codes


def test_who_sends_slowly_keeps_nobody_out(url):
    """With more half-sent requests than places, another one is answered all the same."""
    host, port = url.removeprefix("http://").split(":")
    head = (
        f"POST /v1/rank HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1000\r\n"
        f"Authorization: Bearer {TOKEN}\r\n\r\n{{"
    )
    slow = [socket.create_connection((host, int(port))) for _ in range(MOST_WAITING + 2)]
    for one in slow:
        one.sendall(head.encode())
    time.sleep(0.3)
    assert httpx.post(f"{url}/v1/rank", json=ASKED, headers=HEADERS).status_code == 200
    for one in slow:
        one.close()
