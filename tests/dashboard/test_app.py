"""The application as a whole: what it answers when it fails."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from yardmaster.dashboard.app import create_app
from yardmaster.dashboard.desk import Desk
from yardmaster.dashboard.runs import RunsFolder


def test_a_fault_of_its_own_is_a_sentence_too(tmp_path: Path, monkeypatch):
    """Pages read errors as JSON; what went wrong inside is nobody's business."""

    def fail(_: RunsFolder) -> None:
        raise RuntimeError("inner workings")

    monkeypatch.setattr(RunsFolder, "index", fail)
    app = create_app(Desk(RunsFolder(tmp_path), "x" * 20))

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get("/api/runs")

    with ThreadPoolExecutor(1) as pool:  # the browser's tools keep a loop running in this thread
        reply = pool.submit(lambda: asyncio.run(ask())).result()
    assert reply.status_code == 500
    assert "fault" in reply.json()["error"]
    assert "inner" not in reply.text
