"""Connecting to a Ray cluster, or to Ray processes on this machine."""

from __future__ import annotations

import logging
import os
import socket
from typing import Any

from yardmaster.errors import YardmasterError

KNOCKING_S = 5.0


def connected(address: str | None, *, needed_by: str, **options: Any) -> Any:
    """Return Ray, connected.

    Args:
        address: HOST:PORT of a cluster's head, `auto` for the cluster on this machine, or None for
            processes that are started here.
        needed_by: who wants Ray, for the message where it is not installed.
        options: of `ray.init`.

    Raises:
        YardmasterError: if Ray is not installed, connected already, or does not answer.
    """
    if address is not None:
        _knock(address)
    # Ray would report to its makers, and complain about what tasks may see of accelerators.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise YardmasterError(
            f"{needed_by} needs Ray: pip install 'yardmaster[ray]' on every machine."
        ) from None
    if ray.is_initialized():
        raise YardmasterError("This process is connected to a Ray cluster already.")
    try:
        ray.init(
            address=address or "local",
            logging_level=logging.ERROR,
            log_to_driver=False,
            configure_logging=False,
            **options,
        )
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        where = address or "this machine"
        raise YardmasterError(
            f"Cannot connect to Ray at {where}: {error}. (A cluster with tokens wants"
            " RAY_AUTH_MODE=token here, as of every client.)"
        ) from None
    return ray


def _knock(address: str) -> None:
    """Make sure that somebody answers at an address: Ray itself would try for two minutes.

    Raises:
        YardmasterError: if nobody does, or this is no address of a head.
    """
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "/" in host:
        raise YardmasterError(
            f"{address!r} is not the address of a head: write HOST:PORT, or auto."
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCKING_S).close()
    except (OSError, OverflowError) as error:
        raise YardmasterError(f"Cannot connect to Ray at {address}: {error}.") from None
