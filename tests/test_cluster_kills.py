# SPDX-License-Identifier: Apache-2.0
"""The launcher is killed between any two of its writes to the API, and followed by the next one, as its Job makes one:
the job ends as if nothing had been, no rank runs twice in one attempt, and nothing is left."""
import json
import os
import secrets
import signal
import subprocess
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.build import patience
from support.api_proxy import NodesProxy
from support.cluster.machines import GPU
from support.cluster_jobs import IMAGE

# of every write, before the server has it and after; 0: is_chosen
ROUNDS = int(os.environ.get("DRARUN_KILLS", 0))
LANES = 6
GONE_S = 60  # the garbage collector's, of a worker Job that was deleted
RANK = ["sh", "-c", "echo rank $RANK of attempt $DRARUN_ATTEMPT; sleep 0.3; [ $DRARUN_ATTEMPT != 1 ] || exit $0"]
# the fields of spec: from creation to an end with success, and over the restart of a failed attempt
JOBS = {
    "direct": {"workers": 2, "command": [*RANK, "0"], "restarts": 1},
    "template": {"workers": 2, "command": [*RANK, "0"], "restarts": 1,  # with a device: without one there is no claim's template
                 "devices": {"gpus": {"count": 1, "class": GPU}, "claims": "template"}},
    "restart": {"workers": 1, "command": [*RANK, "3"], "restarts": 2},
}
WRITES = ("POST", "PUT", "PATCH", "DELETE")
NEVER = 10 ** 6


class Killer:
    """The API server for one launcher, which is killed at its write number `turn`: when the server has it, but not its
    answer, or before."""

    def __init__(self, cluster, turn, has_it):
        self.turn, self.has_it = turn, has_it
        self.lock, self.writes, self.pid = threading.Lock(), [], None
        self.proxy = NodesProxy(cluster)
        self.proxy.fault(self._write, lambda method, path: method in WRITES, NEVER)

    def _write(self, exchange):
        with self.lock:
            self.writes.append(f"{exchange.method} {exchange.path}")
            mine = len(self.writes) == self.turn
            late = len(self.writes) > self.turn
        if late:
            exchange.drop()
        if not mine:
            return exchange.forward()
        if self.has_it:
            exchange.ask().read()
        os.kill(self.pid, signal.SIGKILL)
        exchange.drop()


class Account:
    """What all launchers of the test's namespace share."""

    def __init__(self, jobs, drarun):
        self.jobs, self.drarun, self.cluster, self.there = jobs, drarun, jobs.cluster, jobs.namespace.name
        self.cluster.kubectl("apply", "-f", "-", input=jobs.verb("install", "--namespace", self.there).ok().out)
        self.token = jobs.namespace.token("drarun-launcher")

    def kubeconfig(self, name, server):
        return self.cluster.keys.kubeconfig(self.jobs.folder / f"{name}.conf", server, {"token": self.token}, self.there)


class Case:
    """One job, made as far as its Job, Secret and document, whose launchers we start ourselves."""

    def __init__(self, account, spec, turn, has_it, lap=0):
        self.account, self.there = account, account.there
        self.api = account.cluster.plane.api_of("admin")  # of this thread
        self.name = f"kill-{turn}-{'after' if has_it else 'before'}-{lap}"
        self.killer, self.key, self.starts = Killer(account.cluster, turn, has_it), secrets.token_hex(32), 0
        self.tries = spec["restarts"] + 1
        file = account.jobs.file(self.name, **spec)
        self.uid = None
        for manifest in self._manifests(file):
            if manifest["kind"] == "Job" and manifest["metadata"]["name"] == self.name:
                variables = manifest["spec"]["template"]["spec"]["containers"][0]["env"]
                self.document = next(each["value"] for each in variables if each["name"] == "DRARUN_DOCUMENT")
                manifest["spec"]["parallelism"] = 0
                self.uid = self.api.make(manifest)["metadata"]["uid"]
        for manifest in self._manifests(file, "--owner-uid", self.uid):
            if manifest["kind"] == "Secret":
                self.secret = manifest["metadata"]["name"]
                manifest["stringData"]["key"] = self.key
            if manifest["kind"] in ("Secret", "ConfigMap"):
                self.api.make(manifest)

    def _manifests(self, file, *options):
        done = self.account.jobs.verb("render", file, "--format", "json", "--namespace", self.there, *options).ok()
        return json.loads(done.out)["items"]

    def launcher(self, server):
        """In the place of the Job's next pod: another host name, the same account."""
        self.starts += 1
        host = f"{self.name}-{self.starts}"
        under = [*self.account.cluster.under, "unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', host]
        return self.account.drarun.start("run", "--job", self.name, under=under, env={
            "KUBECONFIG": self.account.kubeconfig(host, server), "DRARUN_KEY": self.key, "DRARUN_SECRET": self.secret,
            "DRARUN_IMAGE": IMAGE, "DRARUN_DOCUMENT": self.document})

    def pods(self):
        return [each["metadata"]["name"] for each in self.api.get("v1", "Pod", namespace=self.there)
                if each["metadata"]["labels"]["drarun.dev/job"] == self.name
                and "deletionTimestamp" not in each["metadata"]]

    def run(self):
        """The writes of the first launcher, and whether it was killed."""
        first = self.launcher(self.killer.proxy.url)
        self.killer.pid = first.pid
        result = first.finish(60, clean=False)
        self.killer.proxy.close()
        killed, out = result.rc == -signal.SIGKILL, result.out
        if killed:
            result = self.launcher(self.account.cluster.plane.server).finish(90)
            out += result.out
        self.out = out
        told = (self.name, self.killer.writes[-1:], out, result)
        assert result.rc == 0, told
        assert '"event":"ended"' in result.out and '"status":0' in result.out, told
        ranks = Counter(line for line in out.splitlines() if " of attempt " in line)
        assert ranks and max(ranks.values()) == 1, told
        document = json.loads(self.api.get("v1", "ConfigMap", f"{self.name}-status", self.there)["data"]["status.json"])
        assert document["exit"] == 0 and document["attempt"] <= self.tries, told
        self.account.cluster.wait(lambda: f"{self.pods()} remain: {told}", lambda: not self.pods(), GONE_S)
        self.api.close()
        return self.killer.writes, killed


HOLD = """
import socket, sys
held = socket.create_server(("", 7172))
print("held", flush=True)
sys.stdin.read()
"""


def test_port_of_the_metrics_is_taken(jobs, drarun):
    """By another launcher on the node's own network: it is said, and the job goes on."""
    holder = subprocess.Popen([*jobs.cluster.under, "python3", "-c", HOLD], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        case = Case(Account(jobs, drarun), {"workers": 1, "command": [*RANK, "0"], "restarts": 0}, NEVER, False)
        case.run()
        assert "metrics are not served: port 7172: Address already in use; DRARUN_METRICS=PORT" in case.out, case.out
    finally:
        holder.communicate(timeout=patience())


def is_chosen(spec, turn, has_it):
    """In the short run: each write of the first job, each second one of the others, half of them before."""
    step = 1 if spec is JOBS["direct"] else 2
    return turn % step == 0 and has_it == bool(turn // step % 2)


@pytest.mark.plain("what it kills leaves no report, and it takes minutes")
@pytest.mark.parametrize("spec", JOBS.values(), ids=JOBS)
def test_killed_at_each_write(jobs, drarun, spec, request):
    if "devices" in spec:
        request.getfixturevalue("machines")
    account = Account(jobs, drarun)
    writes, _ = Case(account, spec, NEVER, False).run()
    assert len(writes) >= 6, writes
    assert any("/resourceclaimtemplates" in each for each in writes) == ("devices" in spec), writes
    cases = [(turn, has_it, lap) for lap in range(max(1, ROUNDS)) for turn in range(1, len(writes) + 1)
             for has_it in (False, True) if ROUNDS or is_chosen(spec, turn, has_it)]
    with ThreadPoolExecutor(LANES) as lanes:
        done = list(lanes.map(lambda case: Case(account, spec, *case).run(), cases))
    # How often the status is written varies, and a launcher may end before the answer to its last write.
    killed = [killed for _, killed in done]
    assert sum(killed) >= len(cases) / 2, (cases, killed, writes)
