#!/usr/bin/env bash
# Records the files of this folder from a real Slurm: a private cluster of three pretended nodes
# (no GPU is needed), a few dozen short jobs, and what Slurm wrote about them.
#
#   apt-get install slurm-wlm slurmdbd munge mariadb-server
#   ./record.sh /tmp/slurm-record      as root, on a machine that has no Slurm of its own; 5 minutes
#
# Everything lies in the given folder; the daemons are stopped and the two users removed at the end.
# jobs.tsv names the job id of every case, so that tests know what they look at.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
base=$1
mkdir -p "$base"/{run,state,db,log} && cd "$base"
export SLURM_CONF=$base/slurm.conf TZ=UTC
daemons=()
useradd --no-create-home --uid 1001 alice
useradd --no-create-home --uid 1002 bob

stop_all() {
  scancel -u alice || true
  scancel -u bob || true
  sleep 5 # KillWait
  for ((i = ${#daemons[@]} - 1; i >= 0; i--)); do
    kill "${daemons[i]}" 2>/dev/null && sleep 1
  done
  userdel alice; userdel bob
}
trap stop_all EXIT

# --- a private cluster ----------------------------------------------------------------------------
cat >slurm.conf <<CONF
ClusterName=yard
SlurmctldHost=$(hostname -s)(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket=$base/run/munge
SlurmUser=root
SlurmctldPort=16817
StateSaveLocation=$base/state
SlurmdSpoolDir=$base/run/%n
SlurmctldPidFile=$base/run/slurmctld.pid
SlurmdPidFile=$base/run/slurmd.%n.pid
SlurmctldLogFile=$base/log/slurmctld
SlurmdLogFile=$base/log/slurmd.%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
SchedulerParameters=bf_interval=5,sched_min_interval=200000
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightQOS=10000
PreemptType=preempt/qos
PreemptMode=CANCEL
KillWait=2
CompleteWait=0
OverTimeLimit=0
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=16819
AccountingStoragePass=$base/run/munge
AccountingStorageTRES=gres/gpu,gres/gpu:v100,gres/gpu:a100
AccountingStoreFlags=job_comment
JobCompType=jobcomp/filetxt
JobCompLoc=$base/jobcomp.log
GresTypes=gpu
NodeName=gpu-1 NodeHostname=localhost NodeAddr=127.0.0.1 Port=17001 CPUs=8 RealMemory=8000 Gres=gpu:v100:4
NodeName=gpu-2 NodeHostname=localhost NodeAddr=127.0.0.1 Port=17002 CPUs=8 RealMemory=8000 Gres=gpu:a100:4
NodeName=cpu-1 NodeHostname=localhost NodeAddr=127.0.0.1 Port=17003 CPUs=8 RealMemory=8000
PartitionName=batch Nodes=gpu-1,gpu-2,cpu-1 Default=YES MaxTime=UNLIMITED DefaultTime=10
PartitionName=spare Nodes=cpu-1 MaxTime=UNLIMITED DefaultTime=10
CONF
cat >gres.conf <<CONF
NodeName=gpu-1 Name=gpu Type=v100 File=$base/run/gpu[0-3]
NodeName=gpu-2 Name=gpu Type=a100 File=$base/run/gpu[0-3]
CONF
cat >slurmdbd.conf <<CONF
AuthType=auth/munge
AuthInfo=socket=$base/run/munge
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=16819
SlurmUser=root
LogFile=$base/log/slurmdbd
PidFile=$base/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=13306
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm
CONF
for gpu in 0 1 2 3; do mknod "run/gpu$gpu" c 1 3; done # /dev/null plays the GPUs
chmod 600 slurmdbd.conf

wait_for() { for _ in $(seq 60); do "$@" >/dev/null 2>&1 && return; sleep 1; done; echo "no answer: $*" >&2; exit 1; }
database() { mariadb --socket="$base/run/mysql" "$@"; }
started() { "$@" >>"log/$(basename "$1").out" 2>&1 & daemons+=($!); }

dd if=/dev/urandom of=munge.key bs=1024 count=1 2>/dev/null && chmod 400 munge.key
started munged --foreground --force --key-file="$base/munge.key" --socket="$base/run/munge" \
  --pid-file="$base/run/munged.pid" --log-file="$base/log/munged" --seed-file="$base/run/munge.seed"
mariadb-install-db --datadir="$base/db" --user=root --skip-test-db >/dev/null
started mariadbd --no-defaults --user=root --datadir="$base/db" --socket="$base/run/mysql" \
  --bind-address=127.0.0.1 --port=13306 --innodb-log-file-size=64M
wait_for database -e 'select 1'
database -e "create database slurm; create user slurm@'127.0.0.1' identified by 'slurm';
  grant all on slurm.* to slurm@'127.0.0.1'; create user slurm@localhost identified by 'slurm';
  grant all on slurm.* to slurm@localhost; flush privileges"
SLURM_CONF=$base/slurmdbd.conf started slurmdbd -D
wait_for sacctmgr -n show cluster
sacctmgr -i add cluster yard >/dev/null || true
sacctmgr -i add account vision,language Cluster=yard >/dev/null
sacctmgr -i add user alice Account=vision >/dev/null
sacctmgr -i add user bob Account=language >/dev/null
sacctmgr -i add qos scavenger Priority=0 >/dev/null
sacctmgr -i add qos urgent Priority=100 Preempt=scavenger >/dev/null
sacctmgr -i modify user alice,bob set qos+=normal,scavenger,urgent >/dev/null
started slurmctld -D -c
wait_for scontrol ping
for node in gpu-1 gpu-2 cpu-1; do started slurmd -D -N "$node"; done
wait_for sh -c 'test "$(sinfo -h -N -t idle -p batch | wc -l)" = 3'

# --- the jobs -------------------------------------------------------------------------------------
: >jobs.tsv
job() { # job CASE USER sbatch-arguments…: submits, and remembers the id
  local case=$1 user=$2 id; shift 2
  id=$(sbatch --parsable --uid="$user" --chdir=/tmp --output=/dev/null "$@")
  printf '%s\t%s\n' "$case" "${id%%;*}" >>jobs.tsv
}
id_of() { awk -v c="$1" '$1 == c {print $2}' jobs.tsv; }
nap() { echo "--wrap=sleep $1"; }

job untyped alice -J train --gres=gpu:2 -c 4 --mem=2000 -t 5 "$(nap 4)"
job typed alice -J train --gres=gpu:v100:1 -c 2 --mem-per-cpu=300 -t 0:90 "$(nap 3)"
job gpus-flag bob -J 'fine tune' --gpus=a100:2 -t 1-00:00:00 "$(nap 3)"
job two-nodes bob --nodes=2 --ntasks-per-node=1 --gpus-per-node=2 -t 10 --qos=urgent "$(nap 3)"
job cpu-only bob -J preprocess -p spare -c 3 -t 2 "$(nap 3)"
job no-limit alice --gres=gpu:1 -t UNLIMITED "$(nap 2)"
job default-limit alice --gres=gpu:1 "$(nap 2)"
job failed bob -J crash --gres=gpu:1 -t 3 --wrap='sleep 2; exit 3'
job instant bob --gres=gpu:1 -t 3 --wrap=true
job steps alice --gres=gpu:1 -t 3 --wrap='srun sleep 1; srun sleep 1'
job pipe-name alice -J 'a|b' --gres=gpu:1 -t 3 "$(nap 1)"
job array bob -J sweep --array=0-3%2 --gres=gpu:1 -t 3 "$(nap 3)"
cat >het.sh <<'HET'
#!/bin/sh
#SBATCH -J pair -t 3 --gres=gpu:v100:1 -n 1
#SBATCH hetjob
#SBATCH --gres=gpu:a100:2 -n 1
sleep 3
HET
job het alice het.sh
job dependency alice --dependency=afterok:"$(id_of untyped)" --gres=gpu:1 -t 3 "$(nap 2)"
job begin-later bob --begin=now+15 --gres=gpu:1 -t 3 "$(nap 2)"
job held-cancelled bob --hold --gres=gpu:1 -t 3 "$(nap 2)"
job held-array bob --hold --array=1-9%4 --gres=gpu:1 -t 3 "$(nap 2)"
job held alice --hold --gres=gpu:a100:4 -t 3 "$(nap 2)"
job timeout bob --gres=gpu:v100:1 -t 1 "$(nap 300)"
sleep 20
scancel "$(id_of held-cancelled)"
scancel "$(id_of held-array)_[2-4]"
job cancelled-running alice --gres=gpu:v100:1 -t 5 "$(nap 300)"
job requeued bob --requeue --gres=gpu:v100:1 -t 5 "$(nap 12)"
job suspended alice -p spare -c 2 -t 5 "$(nap 12)"
job suspended-gpu alice --gres=gpu:v100:1 -t 5 "$(nap 12)"
sleep 5
scancel "$(id_of cancelled-running)"
scontrol requeue "$(id_of requeued)"
scontrol suspend "$(id_of suspended)"; scontrol suspend "$(id_of suspended-gpu)"
sleep 6
scontrol resume "$(id_of suspended)"; scontrol resume "$(id_of suspended-gpu)"
job scavenged bob --qos=scavenger --gres=gpu:a100:4 -t 5 "$(nap 200)"
sleep 6
job preemptor alice --qos=urgent --gres=gpu:a100:4 -t 5 "$(nap 3)"
job node-failed bob --no-requeue -p spare -t 5 "$(nap 200)"
sleep 6
scontrol update NodeName=cpu-1 State=DOWN Reason=test
sleep 4
scontrol update NodeName=cpu-1 State=RESUME || true # it may have come back by itself
sleep 120 # the requeued job waits two minutes before it may start again
wait_for sh -c "test \"\$(sacct -n -X -P -o State -j $(id_of timeout))\" = TIMEOUT"
wait_for sh -c "test \"\$(sacct -n -X -P -o State -j $(id_of requeued))\" = COMPLETED"
job still-running alice --gres=gpu:2 -t 60 "$(nap 1000)"
job running-unlimited bob -p spare -t UNLIMITED "$(nap 1000)"
job still-waiting bob --gres=gpu:v100:4 --begin=now+1hour -t 60 "$(nap 1)"
job waiting-cancelled bob -N 2 --gpus-per-node=4 -t 60 "$(nap 1)"
job waiting-array alice -N 2 --gpus-per-node=4 -t 60 --array=1-9%4 "$(nap 1)"
job waiting bob -N 2 --gpus-per-node=4 -t 60 "$(nap 1)"
sleep 5
scancel "$(id_of waiting-cancelled)"
scancel "$(id_of waiting-array)_[2-4]"
sleep 5

# --- what Slurm says of them ----------------------------------------------------------------------
fields=JobIDRaw,JobID,JobName,User,Account,Partition,QOS,Submit,Eligible,Start,End,Elapsed,ElapsedRaw
fields+=,Suspended,Timelimit,TimelimitRaw,State,NNodes,NCPUS,ReqCPUS,ReqMem,ReqTRES,AllocTRES,Priority,NodeList
since='--starttime=now-1hour'
sacct -a $since -P --format=$fields >sacct_steps.txt
sacct -a -X $since -P --format=$fields >sacct.txt
sacct -a -X $since -p --format=JobID,User,Account,Submit,Start,End,State,Timelimit,AllocTRES,ReqTRES >sacct_p.txt
sacct -a -X -D $since -P --format=${fields/JobName,/} >sacct_duplicates.txt
sacct -a -X $since >sacct_for_eyes.txt
SLURM_TIME_FORMAT=%s sacct -a -X $since -P --format=$fields >sacct_unix.txt
sacct -a $since --json | gzip -9n >sacct.json.gz
cp jobcomp.log jobcomp.txt
database slurm --batch -e 'select * from yard_job_table' >yard_job_table.tsv
database slurm --batch -e 'select * from tres_table' >tres_table.tsv
cp sacct*.txt sacct.json.gz jobcomp.txt yard_job_table.tsv tres_table.tsv jobs.tsv "$here"
