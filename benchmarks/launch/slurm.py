# SPDX-License-Identifier: Apache-2.0
"""A Slurm of one node on the loopback, in a directory of its own, ended with the context."""
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.harness.launchers import Launcher, Missing, in_path

CONFIG = """\
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={top}/munge.sock
CryptoType=crypto/munge
SlurmctldPort={ctl_port}
SlurmdPort={node_port}
StateSaveLocation={top}/state
SlurmdSpoolDir={top}/spool
SlurmctldPidFile={top}/slurmctld.pid
SlurmdPidFile={top}/slurmd.pid
SlurmctldLogFile={top}/slurmctld.log
SlurmdLogFile={top}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
MaxTasksPerNode=4096
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
PATIENCE = 30


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Slurm:
    """launcher: srun for the node. Raises Missing with the reason when it cannot be had."""

    def __init__(self):
        self.top, self.daemons = None, []

    def __enter__(self):
        if os.getuid() != 0:
            raise Missing("the daemons of Slurm want root")
        os.environ["PATH"] += ":/usr/sbin"
        programs = [in_path(name) for name in ("munged", "slurmctld", "slurmd")]
        srun = in_path("srun")
        self.top = Path(tempfile.mkdtemp(prefix="bench-slurm-"))
        try:
            self.start(*programs)
            env = {"SLURM_CONF": str(self.top / "slurm.conf")}
            self.launcher = Launcher("srun", lambda: srun, ["--mpi=pmix", "--overcommit", "-N", "1"], env)
            self.await_node()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self, munged, slurmctld, slurmd):
        top = self.top
        (top / "munge").mkdir(mode=0o700)
        for name in ("state", "spool"):
            (top / name).mkdir()
        key = top / "munge" / "key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
        (top / "slurm.conf").write_text(CONFIG.format(
            host=socket.gethostname().split(".")[0], top=top, ctl_port=free_port(), node_port=free_port(),
            cpus=os.cpu_count()))
        (top / "cgroup.conf").write_text("CgroupAutomount=no\n")
        self.daemon(munged, "--foreground", "--force", f"--key-file={key}", f"--socket={top}/munge.sock",
                    f"--pid-file={top}/munge.pid", f"--log-file={top}/munged.log", f"--seed-file={top}/munge/seed")
        self.daemon(slurmctld, "-D", "-f", top / "slurm.conf")
        self.daemon(slurmd, "-D", "-f", top / "slurm.conf")

    def daemon(self, *command):
        with open(self.top / f"{Path(command[0]).name}.out", "wb") as out:
            self.daemons.append(subprocess.Popen([str(w) for w in command], stdin=subprocess.DEVNULL, stdout=out,
                                                 stderr=subprocess.STDOUT, start_new_session=True))

    def await_node(self):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                done = subprocess.run(self.launcher.command(1, "/bin/true"), env=self.launcher.environment(),
                                      stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10)
                if done.returncode == 0:
                    return
                reason = done.stderr.strip()[-200:]
            except subprocess.TimeoutExpired:
                reason = "srun hangs"
            time.sleep(0.3)
        logs = {name: (self.top / name).read_text(errors="replace")[-300:]
                for name in ("slurmctld.log", "slurmd.log") if (self.top / name).exists()}
        raise Missing(f"Slurm does not run a job after {PATIENCE} s: {reason}; {logs}")

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(5)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        if self.top:
            shutil.rmtree(self.top, ignore_errors=True)
