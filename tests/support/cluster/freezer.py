# SPDX-License-Identifier: Apache-2.0
"""Servers of a cluster that stand still now and then, as those of a starved machine do: what waits for them has to wait."""
import os
import random
import signal
import threading
import time

from ..build import patience

NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "containerd", "runc", "drarun-plugin",
         "drarun-attach")
LOOK_S, LONGEST_S, OFTEN = 0.3, 2.0, 0.35  # a third of the looks freezes somebody, for at most that long
COMM = 15  # bytes of a name that the kernel keeps


def servers(folder):
    """{name: [pid]} of the servers whose command line names the cluster's folder."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm") as file:
                comm = file.read().strip()
            name = next((each for each in NAMES if comm == each[:COMM]), None)
            if name:
                with open(f"/proc/{pid}/cmdline") as file:
                    if folder in file.read():
                        found.setdefault(name, []).append(int(pid))
        except OSError:
            continue  # it is gone
    return found


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


class Freezer:
    """Of the cluster in this folder, while the block runs; at its end all of them go on. frozen: how often each was."""

    def __init__(self, folder, seed):
        self.folder, self.random, self.frozen, self.until = str(folder), random.Random(seed), {}, {}
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join(patience())

    def _run(self):
        try:
            while not self.ends.wait(LOOK_S):
                self._thaw(time.monotonic())
                if self.random.random() < OFTEN:
                    self._freeze()
        finally:
            self._thaw(float("inf"))

    def _thaw(self, now):
        for pid in [pid for pid, end in self.until.items() if end < now]:
            del self.until[pid]
            send(pid, signal.SIGCONT)

    def _freeze(self):
        found = servers(self.folder)
        if not found:
            return
        name = self.random.choice(sorted(found))
        pid = self.random.choice(sorted(found[name]))
        if pid not in self.until and send(pid, signal.SIGSTOP):
            self.until[pid] = time.monotonic() + self.random.uniform(0.1, LONGEST_S)
            self.frozen[name] = self.frozen.get(name, 0) + 1
