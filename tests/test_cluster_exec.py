# SPDX-License-Identifier: Apache-2.0
"""drarun exec: commands beside the ranks of a running job."""
import fcntl
import hashlib
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

from support.build import patience
from support.cluster_jobs import Running
from support.run import peak_memory_kib

MUCH = 50_000_000
SLEEP = ["sh", "-c", "cd /tmp; echo up; exec sleep 1000"]


@pytest.fixture
def running(jobs):
    """A job of 4 ranks on 2 workers that sleeps, and is cancelled."""
    job = Running(jobs, "--here", workers=2, ranksPerWorker=2, command=SLEEP).wait_lines(4)
    yield job
    jobs.verb("cancel", "job").ok()
    assert job.ended().rc == 130


def beside(jobs, rank, *command, options=(), **how):
    return jobs.verb("exec", *options, "job", rank, "--", *command, **how)


@pytest.mark.gate
def test_exec(jobs, running):
    running.wait_running()
    env = beside(jobs, 3, "env").ok().out.splitlines()
    assert "DRARUN_RANK=3" in env and "GROUP_RANK=1" in env
    assert not [line for line in env if line.startswith(("PMIX_", "PMI_", "DRARUN_KEY"))]
    result = beside(jobs, 1, "sh", "-c", "pwd; echo wrong >&2; exit 7")
    assert (result.rc, result.out, result.err) == (7, "/tmp\n", "wrong\n")

    much = "".join(f"{i}\n" for i in range(300000))
    wanted = hashlib.md5(much.encode()).hexdigest()
    assert hashlib.md5(beside(jobs, 2, "seq", "0", "299999").ok().out.encode()).hexdigest() == wanted
    job = jobs.drarun.start("exec", "-i", "job", 0, "--", "md5sum", under=jobs.cluster.under, env=jobs.env,
                            stdin=subprocess.PIPE)
    assert job.finish(60, input=much).ok().out.split()[0] == wanted

    for words, rc, message in (
            (("job", 9, "true"), 66, "job has ranks 0 to 3"),
            (("job", 0, "nosuch"), 127, "cannot execute nosuch"),
            (("other", 0, "true"), 66, "no job other"),
            (("job", 0), 64, "expected a command, or -t"),
            (("job",), 64, "expected a job and a rank"),
            (("-t", "job", 0), 64, "not a terminal")):
        result = jobs.verb("exec", *words)
        assert result.rc == rc and message in result.err, result

    assert terminal(jobs) == "33 101"
    forged(jobs)


@pytest.mark.plain("measures memory")
def test_reader_that_pauses(jobs, running):
    """The command waits for it, at no cost; a signal is taken all the same."""
    running.wait_running()
    for interrupt in False, True:
        job = jobs.drarun.start("exec", "job", 1, "--", "sh", "-c", f"head -c {MUCH} /dev/zero | tr '\\0' x; exit 7",
                                under=jobs.cluster.under, env=jobs.env, text=False)
        assert os.read(job.process.stdout.fileno(), 1) == b"x"
        time.sleep(3)
        assert job.process.poll() is None and peak_memory_kib(job.pid) < 24 * 1024
        if interrupt:
            job.signal(signal.SIGINT)
            assert job.process.wait(patience()) == 130
        result = job.finish(60)
        assert interrupt or (result.rc, len(result.out), result.out.strip(b"x")) == (7, MUCH - 1, b""), result


def forged(jobs):
    """A status that the launcher has not written: what it says of sizes costs the caller no memory."""
    api, there = jobs.cluster.api, jobs.namespace.name
    found = api.get("v1", "ConfigMap", "job-status", there)
    status = json.loads(found["data"]["status.json"])
    del status["uid"]  # of another job's it is not believed at all
    for change in {"ranks": 1, "workers": {"count": 4294967294}}, {"ranks": 4294967297, "workers": {"count": 2}}, {"ranks": -1}:
        data = {**found["data"], "status.json": json.dumps({**status, **change})}
        api.make({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
                  "metadata": {"name": "forged-status", "namespace": there, "labels": found["metadata"]["labels"]}})
        result = jobs.verb("exec", "forged", 0, "--", "true")
        assert result.rc == 70 and "ConfigMap forged-status: expected 1 to 1000000 ranks and 1 to 10000 workers" in result.err, result
        api.delete("v1", "ConfigMap", "forged-status", there)


def terminal(jobs):
    """What a shell on a terminal of 33 rows and 101 columns says of it."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
    process = subprocess.Popen([*map(str, jobs.cluster.under), jobs.drarun.program, "exec", "-t", "job", "2"], stdin=theirs,
                               stdout=theirs, stderr=theirs, env={**os.environ, **jobs.env})
    os.close(theirs)
    text, end = "", time.monotonic() + patience()
    os.write(ours, b"sleep 1; echo size $(stty size) of $DRARUN_RANK; exit 5\n")
    while time.monotonic() < end:
        if not select.select([ours], [], [], 1)[0]:
            continue
        try:
            text += os.read(ours, 4096).decode(errors="replace")
        except OSError:
            break
    os.close(ours)
    assert process.wait(patience()) == 5, text
    found = [line for line in text.splitlines() if line.startswith("size ") and line.strip().endswith(" of 2")]
    assert found, text
    return " ".join(found[0].split()[1:3])


VIEWER = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: exec-viewer}
rules: [{apiGroups: [""], resources: [pods, configmaps], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: exec-viewer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: exec-viewer}
subjects: [{kind: User, name: viewer}]
"""


def test_refused_without_the_right(jobs, running):
    """The API server's 403 is its answer to the WebSocket's request."""
    space = jobs.namespace.name
    running.wait_running()
    jobs.cluster.kubectl("apply", "-n", space, "-f", "-", input=VIEWER)
    env = {"KUBECONFIG": str(jobs.cluster.kubeconfig(user="viewer", namespace=space))}
    jobs.cluster.wait("the role is not there", lambda: jobs.verb("status", "job", env=env).rc == 0, 30)
    result = jobs.verb("exec", "job", 0, "true", env=env)
    assert result.rc == 69 and "pods/exec" in result.err and "403" in result.err, result
    jobs.cluster.kubectl("delete", "-n", space, "role/exec-viewer", "rolebinding/exec-viewer")
