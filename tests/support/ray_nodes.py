# SPDX-License-Identifier: Apache-2.0
"""Real Ray on machines made of namespaces: each has a raylet, an address, a /dev/shm and a folder of its own, which all of
them see under one path, so that one option names what each machine shows."""
import json
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import pytest

from . import leftovers
from .build import SOURCE, patience
from .sysfs_tree import make_tree

PORT = 6379
START_S = 180  # on a busy machine
STORE = 80 << 20
CPUS = ("0", "1")  # of the two NUMA nodes, which a test machine has
MACHINE = "a4-highgpu-8g"


def kept(tree, without):
    """A switch without those devices."""
    return {**tree, "children": [kept(child, without) if "switch" in child else child for child in tree["children"]
                                 if child.get("dev") not in without]}


def machine(folder, without=()):
    """What a node with 8 GPUs and 8 NICs shows, on the CPUs that there are."""
    fixture = json.loads((SOURCE / f"tests/data/fixtures/{MACHINE}.json").read_text())
    for node, cpus in zip(fixture["truth"]["cpu"]["numa"], CPUS):
        node["cpus"] = cpus
    for address in without:
        del fixture["truth"]["nics"][address]
    fixture["truth"]["pci"] = [{**each, "tree": kept(each["tree"], without)} for each in fixture["truth"]["pci"]]
    folder.mkdir()
    make_tree(fixture, folder)


class RayNodes:
    """nodes: two of support.nodes. The first is Ray's head; programs run there."""

    def __init__(self, nodes, python, environment):
        self.nodes, self.python, self.token = nodes, python, uuid.uuid4().hex
        self.folder = Path(tempfile.mkdtemp(prefix="dr-", dir="/tmp"))  # short: holds sockets
        self.here = self.folder / "m"
        self.env = {**environment, "RAY_DISABLE_IMPORT_WARNING": "1", "RAY_USAGE_STATS_ENABLED": "0",
                    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_DEDUP_LOGS": "0",
                    "RAY_worker_register_timeout_seconds": str(START_S)}
        self.raylets = []
        self.here.mkdir()
        try:
            for number, node in enumerate(nodes):
                self._prepare(number, node)
                self._start(number, node)
            self._until_all_are_in()
        except BaseException:
            self.close()
            raise

    @property
    def address(self):
        return f"{self.nodes[0].address}:{PORT}"

    @property
    def enter(self):
        return self.nodes[0].enter

    def root(self, name):
        """What both nodes show. a4: 8 GPUs and 8 NICs; uneven: the second one has 7 NICs; tcp: that one has none; bare: no
        device on either."""
        return str(self.here / name)

    def _prepare(self, number, node):
        own = self.folder / str(number)
        own.mkdir()
        (own / "bare").mkdir()
        machine(own / "a4")
        nics = list(json.loads((SOURCE / f"tests/data/fixtures/{MACHINE}.json").read_text())["truth"]["nics"])
        machine(own / "uneven", nics[-1:] if number else ())
        machine(own / "tcp", nics if number else ())
        node.run("mount", "--bind", own, self.here)

    def _start(self, number, node):
        where = ["--head", f"--port={PORT}", f"--temp-dir={self.here}/t", "--include-dashboard=false"]
        command = [*node.enter, "setpriv", "--pdeathsig", "TERM", self.python, "-m", "ray.scripts.scripts", "start",
                   *(where if number == 0 else [f"--address={self.address}"]), f"--node-ip-address={node.address}",
                   "--num-cpus=4", "--num-gpus=8", f"--object-store-memory={STORE}", "--disable-usage-stats", "--block"]
        log = open(self.folder / f"ray-{number}.log", "w")
        environment = {**os.environ, **self.env, leftovers.TOKEN: self.token}
        self.raylets.append(subprocess.Popen([*map(str, command)], env=environment, stdin=subprocess.DEVNULL, stdout=log,
                                             stderr=subprocess.STDOUT, start_new_session=True))
        log.close()
        if number == 0:
            self._until(lambda: "Ray runtime started" in self.log(0))

    def log(self, number):
        return (self.folder / f"ray-{number}.log").read_text()

    def _until(self, done):
        end = time.monotonic() + patience(START_S)
        while not done():
            ended = [number for number, each in enumerate(self.raylets) if each.poll() is not None]
            if ended or time.monotonic() > end:
                pytest.fail("Ray did not start:\n" + "\n".join(map(self.log, ended or range(len(self.raylets)))))
            time.sleep(0.1)

    def _until_all_are_in(self):
        self._until(lambda: all("Ray runtime started" in self.log(number) for number in range(len(self.raylets))))

    def processes(self):
        return leftovers.processes(self.token)

    def close(self):
        """The raylets end all that is theirs; what stays is killed and returned."""
        for each in reversed(self.raylets):
            each.terminate()
        for each in self.raylets:
            try:
                each.wait(patience())
            except subprocess.TimeoutExpired:
                pass
        end = time.monotonic() + patience()
        while self.processes() and time.monotonic() < end:
            time.sleep(0.1)
        left = self.processes()
        leftovers.kill(self.token)
        for each in self.raylets:
            each.wait()
        self.raylets = []
        shutil.rmtree(self.folder, ignore_errors=True)
        return left
