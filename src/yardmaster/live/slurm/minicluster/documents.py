"""The configuration files of a small cluster. Why each odd line is there is said beside it."""

from __future__ import annotations

import os
import pwd
import socket
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Shape:
    """What a small cluster looks like.

    Attributes:
        nodes: how many nodes, called n1, n2, …
        gpus: pretended GPUs of each.
        gpu_type: what they are called.
        cpus: cores each node claims; the machine need not have them.
        memory_mib: memory each node claims.
        age_weight: Slurm's PriorityWeightAge.
        max_age_s: Slurm's PriorityMaxAge, in seconds; a week is Slurm's own default.
        credential_s: how long a job's credential lasts, in seconds; requeued jobs wait that long.
            Slurm's own default is 120.
        batch_delay_s: how long Slurm may put off looking for room for batch jobs, in seconds. Its
            own default is 3.
    """

    nodes: int = 4
    gpus: int = 8
    gpu_type: str = "a100"
    cpus: int = 64
    memory_mib: int = 256_000
    age_weight: int = 7_000_000
    max_age_s: int = 604_800
    credential_s: int = 120
    batch_delay_s: int = 3

    @property
    def node_names(self) -> tuple[str, ...]:
        """The nodes' names."""
        return tuple(f"n{number + 1}" for number in range(self.nodes))


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports on the loopback interface; `nodes` has one per node."""

    controller: int
    accounting: int
    database: int
    nodes: tuple[int, ...]


def slurm_conf(folder: Path, shape: Shape, ports: Ports) -> str:
    """Return slurm.conf."""
    user, host = pwd.getpwuid(os.geteuid()).pw_name, socket.gethostname().partition(".")[0]
    munge = f"socket={folder}/munge.socket"
    nodes = "\n".join(
        f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={shape.cpus}"
        f" RealMemory={shape.memory_mib} Gres=gpu:{shape.gpu_type}:{shape.gpus}"
        f" Feature={name} State=UNKNOWN"
        for name, port in zip(shape.node_names, ports.nodes, strict=True)
    )
    return f"""\
ClusterName=mini
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports.controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo={munge},cred_expire={shape.credential_s}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/pids/slurmctld.own
SlurmdPidFile={folder}/pids/%n.own
SlurmctldLogFile={folder}/logs/slurmctld.log
SlurmdLogFile={folder}/logs/%n.log
MailProg=/bin/true
# Without control groups and without systemd.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
SwitchType=switch/none
MpiDefault=none
# Nodes may claim more cores and memory than the machine has.
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldTimeout=60
SlurmdTimeout=60
MessageTimeout=30
InactiveLimit=0
KillWait=2
MinJobAge=300
MaxJobCount=20000
MaxArraySize=2001
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,bf_max_job_test=1000,batch_sched_delay={shape.batch_delay_s}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
PriorityType=priority/multifactor
PriorityWeightAge={shape.age_weight}
PriorityMaxAge={_days(shape.max_age_s)}
PriorityCalcPeriod=1
PriorityDecayHalfLife=7-0
# Clients of the accounting daemon find the private socket here, not in AuthInfo.
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={ports.accounting}
AccountingStoragePass={folder}/munge.socket
AccountingStorageTRES=gres/gpu
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=7-0 DefaultTime=60 State=UP
PartitionName=other Nodes=ALL MaxTime=7-0 DefaultTime=60 State=UP
PartitionName=scavenge Nodes=ALL MaxTime=7-0 DefaultTime=60 State=UP
"""


def gres_conf(folder: Path, shape: Shape) -> str:
    """Return gres.conf; GPUs are links to /dev/null, a device, so jobs learn which they got."""
    last = shape.gpus - 1
    return (
        f"NodeName=n[1-{shape.nodes}] Name=gpu Type={shape.gpu_type}"
        f" File={folder}/gpus/gpu[0-{last}]\n"
    )


def slurmdbd_conf(folder: Path, ports: Ports, password: str) -> str:
    """Return slurmdbd.conf."""
    user, host = pwd.getpwuid(os.geteuid()).pw_name, socket.gethostname().partition(".")[0]
    return f"""\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={ports.accounting}
SlurmUser={user}
LogFile={folder}/logs/slurmdbd.log
PidFile={folder}/pids/slurmdbd.own
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={ports.database}
StorageUser=slurm
StoragePass={password}
StorageLoc=slurm_acct_db
"""


def database_options(folder: Path, ports: Ports) -> list[str]:
    """Return the options of the database server: small, private, no durability to pay for."""
    return [
        "--no-defaults",
        f"--user={pwd.getpwuid(os.geteuid()).pw_name}",
        f"--datadir={folder}/database",
        f"--socket={folder}/database.socket",
        f"--pid-file={folder}/pids/database.own",
        f"--port={ports.database}",
        "--bind-address=127.0.0.1",
        "--skip-name-resolve",
        "--skip-log-bin",
        "--innodb-buffer-pool-size=64M",
        "--innodb-log-file-size=16M",
        "--innodb-lock-wait-timeout=900",
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-flush-method=nosync",
        f"--init-file={folder}/first.sql",
    ]


def first_sql(password: str) -> str:
    """Return what the database is told when it starts."""
    return (
        f"CREATE USER IF NOT EXISTS 'slurm'@'127.0.0.1' IDENTIFIED BY '{password}';\n"
        "GRANT ALL ON slurm_acct_db.* TO 'slurm'@'127.0.0.1';\n"
    )


def _days(seconds: int) -> str:
    """Return `D-HH:MM:SS`."""
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours // 24}-{hours % 24:02d}:{minute:02d}:{second:02d}"
