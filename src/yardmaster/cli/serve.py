"""`yardmaster serve`: answer other schedulers over local HTTP."""

from __future__ import annotations

import os
from typing import Annotated

from cyclopts import Parameter

from yardmaster.cli.console import remark
from yardmaster.errors import YardmasterError

TOKEN_VARIABLE = "YARDMASTER_TOKEN"  # noqa: S105  (the variable's name, no secret)
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def serve(
    *,
    policy: Annotated[
        str,
        Parameter(
            name=["--policy", "--scheduler", "-s"],
            help="Who answers: any scheduler, such as sjf+easy, policy:NAME or meta:NAME.",
        ),
    ] = "sjf+easy",
    host: Annotated[str, Parameter(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="Port to listen on.")] = 8766,
    anywhere: Annotated[
        bool,
        Parameter(negative="", help="Allow an address that other machines can reach."),
    ] = False,
    seed: Annotated[int, Parameter(help="Seed of random schedulers.")] = 0,
) -> None:
    """Answer until interrupted; the token is in YARDMASTER_TOKEN, or made and printed."""
    import secrets

    import uvicorn

    from yardmaster.live.decision import Decider
    from yardmaster.live.service import create_service
    from yardmaster.model.cluster import Cluster

    if host not in LOOPBACK and not anywhere:
        raise YardmasterError(
            f"{host} can be reached from other machines, without encryption; add --anywhere if"
            " that is meant."
        )
    if not 0 <= port <= 65_535:
        raise YardmasterError(f"--port must be between 0 and 65535, got {port}.")
    decider = Decider(policy, seed=seed)
    remark(f"{decider.name} is getting ready …")
    decider.warm(Cluster.of("2x A100:8"))
    token = os.environ.get(TOKEN_VARIABLE, "")
    if not token:
        token = secrets.token_urlsafe(24)
        remark(f"Token (set {TOKEN_VARIABLE} to choose one): {token}")
    remark(f"Answering at http://{host}:{port}/v1/rank; Ctrl-C ends it.")
    uvicorn.run(
        create_service(decider, token), host=host, port=port, log_level="warning",
        limit_concurrency=64, timeout_keep_alive=30,
    )  # fmt: skip
