"""Starting, disturbing and removing a small Slurm cluster in one private folder."""

from __future__ import annotations

import contextlib
import json
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from yardmaster.errors import YardmasterError
from yardmaster.live.slurm.minicluster import daemons, documents
from yardmaster.live.slurm.minicluster.documents import Ports, Shape

PROGRAMS = {
    "munged": "munge",
    "mungekey": "munge",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "slurmdbd": "slurmdbd",
    "squeue": "slurm-client",
    "mariadbd": "mariadb-server",
    "mariadb-install-db": "mariadb-server",
}
"""Programs that are needed, and the Debian package of each."""

MARK = "minicluster.json"
LONGEST_FOLDER = 80
"""Letters; sockets in it have paths of at most 107."""
SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PATIENCE_S = 90.0
"""How long to wait for a daemon on a busy machine before giving up."""


def missing_packages() -> list[str]:
    """Return the packages that are not installed, in order."""
    found = f"{os.environ.get('PATH', '')}:{SEARCHED}"
    absent = {pack for name, pack in PROGRAMS.items() if shutil.which(name, path=found) is None}
    return [package for package in dict.fromkeys(PROGRAMS.values()) if package in absent]


class MiniCluster:
    """A small cluster in a folder; the folder is all there is to it.

    Attributes:
        folder: where everything lives.
        shape: what it looks like.
    """

    def __init__(self, folder: Path, shape: Shape | None = None) -> None:
        self.folder = folder.resolve()
        mark = self.folder / MARK
        self.shape = shape or Shape()
        if mark.is_file():
            self.shape = Shape(**json.loads(mark.read_text(encoding="utf-8")))

    @property
    def conf(self) -> Path:
        """slurm.conf: set SLURM_CONF to it and every Slurm command means this cluster."""
        return self.folder / "slurm.conf"

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables with which Slurm commands mean this cluster."""
        kept = {name: text for name, text in os.environ.items() if not name.startswith("SLURM_")}
        return kept | {
            "SLURM_CONF": str(self.conf),
            "PATH": f"{os.environ.get('PATH', '')}:{SEARCHED}",
        }

    @property
    def daemon_names(self) -> tuple[str, ...]:
        """All daemons, in the order in which they start."""
        return ("munged", "database", "slurmdbd", "slurmctld", *self.shape.node_names)

    def up(self) -> None:
        """Lay out the folder and start everything; return when all nodes are idle.

        Raises:
            YardmasterError: if packages are missing, the folder is in use, or something does not
                come up; what had come up is taken down again.
        """
        self._refuse()
        self._lay_out()
        try:
            for name in self.daemon_names[:3]:
                self.start(name)
            self._wait(self._accounts_answer, "slurmdbd")
            for name in self.daemon_names[3:]:
                self.start(name)
            self._wait(self.is_ready, "slurmctld and the nodes")
        except BaseException:
            self.down(keep_logs=True)
            raise

    def down(self, *, keep_logs: bool = False) -> None:
        """Cancel all jobs, stop everything, remove the folder. What is not there is no mistake.

        Raises:
            YardmasterError: if the folder holds something that is not a small cluster.
        """
        if not self.folder.exists():
            return
        if not (self.folder / MARK).is_file():
            raise YardmasterError(f"{self.folder} holds no small cluster; it is left alone.")
        if daemons.is_alive("slurmctld", self.folder):
            self._cancel_all()
        daemons.stop(self.shape.node_names, self.folder)
        for name in ("slurmctld", "slurmdbd", "database", "munged"):
            daemons.stop([name], self.folder)
        self._end_strays()
        for entry in self.folder.iterdir():
            if keep_logs and entry.name in {"logs", MARK}:
                continue
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        if not keep_logs:
            self.folder.rmdir()

    def start(self, name: str) -> None:
        """Start one daemon, again if it was killed."""
        daemons.start(name, self._commands()[name], self.folder, self.environment)
        if name == "munged":
            self._wait((self.folder / "munge.socket").exists, name)
        if name == "database":
            self._wait(lambda: _answers(self._ports().database), name)

    def kill(self, name: str) -> None:
        """End one daemon the hard way, as a crash would (SIGKILL)."""
        daemons.send(name, self.folder, signal.SIGKILL)
        while daemons.is_alive(name, self.folder):
            time.sleep(daemons.POLL_S)

    def run(
        self, *command: str, timeout_s: float = 30.0, text: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a Slurm command on this cluster and return what it said; it may fail."""
        return subprocess.run(  # noqa: S603 - the caller's own command
            command, env=self.environment, input=text, text=True, capture_output=True,
            timeout=timeout_s, check=False,
        )  # fmt: skip

    def is_ready(self) -> bool:
        """Whether the controller answers and all nodes can take jobs."""
        try:
            answer = self.run("sinfo", "-h", "-N", "-o", "%N %t", timeout_s=15)
        except subprocess.TimeoutExpired:
            return False
        states = dict(line.split() for line in answer.stdout.splitlines())
        working = {"idle", "mix", "alloc", "comp"}
        return set(states) == set(self.shape.node_names) and set(states.values()) <= working

    def wait_until_ready(self) -> None:
        """Wait until the controller answers and all nodes can take jobs."""
        self._wait(self.is_ready, "slurmctld and the nodes")

    # --- parts of starting ------------------------------------------------------------------------

    def _refuse(self) -> None:
        if absent := missing_packages():
            raise YardmasterError(
                "A small Slurm cluster needs packages that are not installed:"
                f" {', '.join(absent)}. On Debian: apt-get install {' '.join(absent)}"
                " slurm-wlm-basic-plugins"
            )
        if len(str(self.folder)) > LONGEST_FOLDER:
            raise YardmasterError(
                f"{self.folder} is too long a name for sockets; use at most {LONGEST_FOLDER}"
                " letters, for example a folder in /tmp."
            )
        if not str(self.folder).isascii() or any(sign in str(self.folder) for sign in " ,;=#[]%"):
            raise YardmasterError(f"{self.folder}: Slurm cannot read a path with such signs in it.")
        if self.folder.exists() and any(self.folder.iterdir()):
            raise YardmasterError(f"{self.folder} is not empty; nothing was started.")

    def _lay_out(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        self._write(MARK, json.dumps(asdict(self.shape)))
        for name in ("state", "spool", "pids", "logs", "gpus", "munge"):
            (self.folder / name).mkdir()
        (self.folder / "munge").chmod(0o700)
        for number in range(self.shape.gpus):
            (self.folder / "gpus" / f"gpu{number}").symlink_to("/dev/null")
        ports = _free_ports(self.shape.nodes)
        self._write("ports.json", json.dumps(asdict(ports)))
        password = secrets.token_hex(16)
        self._write("slurm.conf", documents.slurm_conf(self.folder, self.shape, ports))
        self._write("gres.conf", documents.gres_conf(self.folder, self.shape))
        self._write("cgroup.conf", "CgroupAutomount=no\n")
        self._write("slurmdbd.conf", documents.slurmdbd_conf(self.folder, ports, password), 0o600)
        self._write("first.sql", documents.first_sql(password), 0o600)
        self._prepare(["mungekey", "--create", f"--keyfile={self.folder}/munge/key"])
        install = ["mariadb-install-db", "--no-defaults", f"--datadir={self.folder}/database",
                   f"--tmpdir={self.folder}", "--auth-root-authentication-method=normal",
                   "--skip-test-db",
                   *documents.database_options(self.folder, ports)[1:2]]  # fmt: skip
        self._prepare(install)

    def _write(self, name: str, text: str, mode: int = 0o644) -> None:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)

    def _prepare(self, command: Sequence[str]) -> None:
        answer = self.run(*command, timeout_s=PATIENCE_S)
        if answer.returncode:
            tail = (answer.stderr or answer.stdout).strip()[-400:]
            self.down()
            raise YardmasterError(f"{command[0]} failed: {tail}")

    def _commands(self) -> Mapping[str, list[str]]:
        folder, conf = self.folder, str(self.conf)
        munged = ["munged", "--foreground", "--force", f"--key-file={folder}/munge/key",
                  f"--socket={folder}/munge.socket", f"--pid-file={folder}/munge/pid",
                  f"--seed-file={folder}/munge/seed", f"--log-file={folder}/logs/munged.log",
                  "--num-threads=10"]  # fmt: skip
        nodes = {name: ["slurmd", "-D", "-N", name, "-f", conf] for name in self.shape.node_names}
        return {
            "munged": munged,
            "database": ["mariadbd", *documents.database_options(folder, self._ports())],
            "slurmdbd": ["slurmdbd", "-D"],
            "slurmctld": ["slurmctld", "-D", "-f", conf],
            **nodes,
        }

    def _ports(self) -> Ports:
        values = json.loads((self.folder / "ports.json").read_text(encoding="utf-8"))
        return Ports(**{**values, "nodes": tuple(values["nodes"])})

    def _accounts_answer(self) -> bool:
        try:
            self.run("sacctmgr", "-i", "add", "cluster", "mini", timeout_s=15)
            answer = self.run("sacctmgr", "-n", "-P", "list", "cluster", "format=cluster")
        except subprocess.TimeoutExpired:
            return False
        return answer.stdout.split() == ["mini"]

    def _wait(self, is_done: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_done():
            if time.monotonic() > deadline:
                raise YardmasterError(
                    f"{what} did not come up within {PATIENCE_S:.0f} s; see {self.folder}/logs."
                )
            time.sleep(0.05)

    # --- parts of stopping ------------------------------------------------------------------------

    def _cancel_all(self) -> None:
        """Cancel every job and wait for their processes; daemons alone would leave them behind."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            names = [f"--state={state}" for state in ("PENDING", "RUNNING", "SUSPENDED")]
            for name in names:
                self.run("scancel", "--quiet", name, f"--user={_user()}", timeout_s=20)
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline:
                if not self.run("squeue", "-h", timeout_s=10).stdout.strip():
                    break
                time.sleep(0.1)

    def _end_strays(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            left = list(daemons.strays(self.folder))
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
            deadline = time.monotonic() + 2
            while left and time.monotonic() < deadline:
                time.sleep(daemons.POLL_S)
                left = list(daemons.strays(self.folder))


def _user() -> str:
    import pwd

    return pwd.getpwuid(os.geteuid()).pw_name


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_ports(nodes: int) -> Ports:
    """Return ports nobody listens on, below those the kernel hands out for outgoing connections."""
    dice, ports = random.SystemRandom(), list[int]()
    while len(ports) < nodes + 3:
        port = dice.randrange(20_000, 32_000)
        with socket.socket() as probe:
            if port not in ports and probe.connect_ex(("127.0.0.1", port)):
                ports.append(port)
    return Ports(ports[0], ports[1], ports[2], tuple(ports[3:]))
