# SPDX-License-Identifier: Apache-2.0
"""`drarun join PROGRAM`, formerly `drarun exec -- PROGRAM`, as the program of pods that somebody's controller made: machines of namespaces, each with the
name, the /etc/hosts and the variables that the controller and the kubelet would give it."""
import os
import re
import secrets
import signal
import socket
import subprocess
import sys

import pytest

from support.build import BUILD, SLOW_BUILD, patience

DOMAIN = "train.svc.cluster.local"
CONTAINER = 'hostname "$1" && mount --bind "$2" /etc/hosts && mount --bind "$3" /etc/resolv.conf && shift 3 && exec "$@"'
SILENT = """
import socket
asked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asked.bind(("127.0.0.9", 53))
print("up", flush=True)
while asked.recv(2000):
    print("asked", flush=True)
"""
WHO = "echo rank $DRARUN_RANK of $WORLD_SIZE on $(hostname) at $MASTER_ADDR key=$DRARUN_KEY"
PORT = "echo $MASTER_PORT"


class Pods:
    """names: of the pods, by worker. variables: a function of the worker."""

    def __init__(self, drarun, nodes, folder, names, service, variables=lambda i: {}):
        self.drarun, self.nodes, self.names, self.variables = drarun, nodes, names, variables
        self.key, self.folder = secrets.token_hex(32), folder
        self.hosts = [f"{node.address} {name}.{service}.{DOMAIN} {name}\n" for node, name in zip(nodes, names)]
        for i in range(len(names)):
            self.tell(i, range(len(names)))

    def tell(self, i, known):
        """Which pods the name service knows, as pod i sees it."""
        text = "127.0.0.1 localhost\n" + self.hosts[i] + "".join(self.hosts[k] for k in known if k != i)
        (self.folder / f"hosts{i}").write_text(text)

    def start(self, i, *words, resolver="/etc/resolv.conf", **env):
        under = [*self.nodes[i].enter, "unshare", "--uts", "--mount", "sh", "-c", CONTAINER, "pod", self.names[i],
                 self.folder / f"hosts{i}", resolver]
        env = {"DRARUN_KEY": self.key, **self.variables(i), **env}
        return self.drarun.start("exec", *words, under=under, env={k: v for k, v in env.items() if v is not None})

    def run(self, *words, timeout=60):
        """The same in all of them; returns their Results."""
        return finish([self.start(i, *words) for i in range(len(self.names))], timeout)


def finish(jobs, timeout=60):
    return [job.finish(timeout) for job in jobs]


@pytest.fixture
def pods(drarun, nodes, tmp_path):
    """pods(2): of a StatefulSet called web; or names, service and variables."""
    def make(count, names=None, service="web", variables=lambda i: {}):
        return Pods(drarun, nodes(count), tmp_path, names or [f"web-{i}" for i in range(count)], service, variables)
    return make


def lws(i):
    return {"LWS_LEADER_ADDRESS": f"lws-5.lws.{DOMAIN}", "LWS_GROUP_SIZE": 2, "LWS_WORKER_INDEX": i}


def completion(i):
    return {"JOB_COMPLETION_INDEX": i}


CONTROLLERS = {
    "StatefulSet": (None, "web", lambda i: {}, ["--workers", 2]),
    "Indexed Job": (["train-0", "train-1"], "train", completion, ["--workers", 2]),
    "JobSet": (["js-workers-3-0", "js-workers-3-1"], "js", completion, ["--workers", 2]),
    "several Jobs of a JobSet": (["js-a-0-0", "js-a-1-0"], "js", lambda i: {"JOB_COMPLETION_INDEX": 0},
                                 ["--peers", f"js-a-[0-1]-0.js.{DOMAIN}"]),
    "LeaderWorkerSet": (["lws-5", "lws-5-1"], "lws", lws, []),
}


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_controllers(pods, controller):
    names, service, variables, options = CONTROLLERS[controller]
    made = pods(2, names, service, variables)
    first, second = made.run(*options, "--per-worker", 2, "--", "sh", "-c", WHO)
    at = made.nodes[0].address
    assert sorted(first.ok().out.splitlines()) == [
        f"rank {rank} of 4 on {made.names[rank // 2]} at {at} key=" for rank in range(4)]
    assert second.ok().out == ""


def test_words_stay_as_they_are(pods):
    """The kubelet has replaced their references."""
    first, _ = pods(2).run("--workers", 2, "--", "echo", "$(DRARUN_RANK)", "$$")
    assert first.ok().out == "$(DRARUN_RANK) $$\n" * 2


def test_the_port_of_rank_0(pods):
    """Of jobs on a node's network the second needs another port, and its ranks then have one, too."""
    made = pods(2)
    assert made.run("--workers", 2, "--", "sh", "-c", PORT)[0].ok().out == "29500\n" * 2
    shown = made.run("--workers", 2, "--port", 7174, "--", "sh", "-c", PORT)[0].ok().out.split()
    assert len(shown) == 2 and shown[0] == shown[1] != "29500", shown


def test_an_mpi_program(pods, examples):
    """Every pod runs the same line; the ranks see three hosts and their data crosses between them."""
    results = pods(3).run("--workers", 3, "--per-worker", 2, "-l", "--", examples / "allreduce")
    assert "6 ranks, workers: 3, hosts: 3" in results[0].ok().out and "[0] " in results[0].out
    assert "every element right on every rank" in results[0].out
    assert [each.rc for each in results] == [0, 0, 0]


def test_ranks_that_ranks_start(pods, mpi_named):
    """They run in the pods that are there, as many as --slots says."""
    mpi = mpi_named("openmpi5")
    made, program = pods(2), mpi.compile("mpi_spawn.c")

    def run(*words):
        return finish([made.start(i, "--workers", 2, *words, **mpi.env) for i in (0, 1)])[0].ok()
    spawned = run("--slots", 2, "--", program, "once")
    assert sorted(re.findall(r"child (\d) of 2 on (\d) ", spawned.out)) == [("0", "0"), ("1", "1")], spawned
    refused = run("--slots", 1, "--", program, "refused", "own", 2)
    assert "rank 0: spawn: 2 ranks are asked for, 0 slots are free: --slots N gives each worker N" in refused.err, refused


def test_report_of_bindings(pods):
    """With the pod's name, and that of its node where the pod knows it."""
    made = pods(2)
    words = ("--workers", 2, "--report-bindings", "--", "sh", "-c", "sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status")
    first, second = finish([made.start(0, *words), made.start(1, *words, DRARUN_NODE="node-7")])
    cpus = first.ok().out.split()[0]
    assert first.out.split() == [cpus, cpus] and "CPUs" not in second.err, (first, second)
    for line in (f"worker 0: rank 0 on web-0: CPUs {cpus} (not bound)", f"worker 1: rank 1 on web-1 (node node-7): CPUs {cpus} (not bound)"):
        assert first.err.count(line) == 1, first


def test_the_status_is_every_pods(pods):
    first, second = pods(2).run("--workers", 2, "--", "sh", "-c", "test $DRARUN_RANK = 0 && sleep 1000; exit 9")
    assert (first.rc, second.rc) == (9, 9)
    for each in (first, second):
        assert each.err.count("rank 1 on worker 1 (web-1) exited with status 9") == 1, each


def test_ranks_that_fail_alone(pods):
    """Every pod stays until all ranks have ended, and ends with the status of the one that failed."""
    first, second = pods(2).run("--workers", 2, "--on-rank-failure", "continue", "--", "sh", "-c",
                                "test $DRARUN_RANK = 0 || exit 9; sleep 2; echo done")
    assert (first.rc, second.rc) == (9, 9) and first.out == "done\n", (first, second)


def test_peers_that_come_late(pods):
    """The name service knows the other pod only once it runs, and it had another address before."""
    made = pods(2)
    made.tell(0, [0])
    first = made.start(0, "--workers", 2, "--", "true")
    line = first.process.stderr.readline() + first.process.stderr.readline()
    assert f"waits for the others: worker 1: cannot look up web-1.web.{DOMAIN}" in line
    second = made.start(1, "--workers", 2, "--", "true")
    made.tell(0, [0, 1])
    assert [each.rc for each in finish([first, second])] == [0, 0]


def test_peers_that_never_come(pods):
    made = pods(3)
    first, second = finish([made.start(i, "--workers", 3, "--start-timeout", 5 * SLOW_BUILD, "--", "true")
                            for i in (0, 1)])
    assert (first.rc, second.rc) == (70, 70)
    assert f"worker 2 (web-2.web.{DOMAIN}:7173) is not reached" in first.err
    assert f"after {5 * SLOW_BUILD} s (--start-timeout)" in first.err and "worker 1" not in first.err
    assert "worker 2 (web-2" in second.err  # it was told
    lone = made.start(1, "--workers", 3, "--start-timeout", 1, "--", "true").finish()
    assert lone.rc == 70 and f"worker 0 (web-0.web.{DOMAIN}:7173) has not connected within 1 s" in lone.err
    made.tell(0, [0])
    lost = made.start(0, "--workers", 3, "--start-timeout", 1, "--", "true").finish()
    assert lost.rc == 70 and re.search(r"not all peers have come within 1 s.*worker 1: cannot look up web-1.*"
                                       r"worker 2: cannot look up web-2.*headless Service", lost.err)


def test_a_silent_name_server(pods):
    """Each name takes seconds then; the deadline and signals hold all the same."""
    made = pods(6)
    made.tell(0, [0])
    resolver = made.folder / "resolv.conf"
    resolver.write_text("nameserver 127.0.0.9\n")
    server = subprocess.Popen([*map(str, made.nodes[0].enter), sys.executable, "-c", SILENT], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout.readline() == "up\n"
        ended = made.start(0, "--workers", 6, "--start-timeout", 600, "--", "true", resolver=resolver)
        assert server.stdout.readline() == "asked\n"
        ended.process.send_signal(signal.SIGTERM)
        assert ended.finish(patience(30)).rc == 143
        late = made.start(0, "--workers", 6, "--start-timeout", 1, "--", "true", resolver=resolver).finish(patience(30))
        assert late.rc == 70 and re.search(r"not all peers have come within 1 s.*worker 2: its name was not looked up yet", late.err), late
    finally:
        server.kill()
        server.wait()


def test_without_a_key_nothing_listens(pods):
    made = pods(2)
    refused = made.start(0, "--workers", 2, "--", "true", DRARUN_KEY=None).finish()
    assert refused.rc == 64 and "without a key nothing listens beyond the loopback" in refused.err
    alone = made.start(0, "--workers", 1, "--", "sh", "-c", "cat /proc/net/tcp /proc/net/tcp6", DRARUN_KEY=None)
    listening = [line.split()[1] for line in alone.finish().ok().out.splitlines() if " 0A " in line]
    assert f"0100007F:{7173:04X}" in listening and all(each.startswith("0100007F:") for each in listening)
    bad = made.start(0, "--workers", 2, "--", "true", DRARUN_KEY="secret").finish()
    assert bad.rc == 64 and "DRARUN_KEY" in bad.err and "secret" not in bad.err


def test_another_key(pods):
    made = pods(2)
    jobs = [made.start(0, "--workers", 2, "--", "true"),
            made.start(1, "--workers", 2, "--start-timeout", 6, "--", "true", DRARUN_KEY=secrets.token_hex(32))]
    first = jobs[0].finish()
    assert first.rc == 70
    assert "worker 1" in first.err and "does it have the same DRARUN_KEY" in first.err
    second = jobs[1].finish()
    assert second.rc == 70 and "does it hold this job's key?" in second.err


@pytest.mark.plain("one that is linked against the sanitizers' own libraries")
def test_another_release(pods):
    """At once, on both sides, and not after the time for those that are late."""
    made = pods(2)
    other = BUILD / "tests/programs/drarun_worker_next"
    first, second = finish([made.start(0, "--workers", 2, "--", "true"),
                            made.start(1, "--workers", 2, "--", "true", DRARUN_WORKER_PROGRAM=other)], timeout=20)
    assert first.rc == 70
    assert "worker 1" in first.err and "it is of drarun 99.0, this side of drarun " in first.err
    assert "use one image, or one release, in all pods" in first.err
    assert second.rc == 70 and "this side of drarun 99.0" in second.err


def test_a_port_in_use(pods):
    made = pods(2)
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = made.drarun("exec", "--peers", f"127.0.0.1:{port},127.0.0.1:1", "--index", 0, "--", "true",
                             env={"DRARUN_KEY": made.key})
    assert result.rc == 70 and f"worker 0 (127.0.0.1:{port})" in result.err and "in use" in result.err


RUNS = "trap 'echo saved $DRARUN_RANK; exit 0' TERM; echo ready; while :; do sleep 0.1; done"


def running(made, program=RUNS):
    jobs = [made.start(i, "--workers", 2, "--", "sh", "-c", program) for i in range(2)]
    for _ in jobs:
        assert jobs[0].process.stdout.readline() == "ready\n"
    return jobs


@pytest.mark.parametrize("which", [0, 1])
def test_a_pod_that_is_taken_away(pods, which):
    """Either pod's SIGTERM reaches all ranks, which may save what they have."""
    jobs = running(pods(2))
    jobs[which].signal(signal.SIGTERM)
    first, second = finish(jobs)
    assert sorted(first.out.split("\n")) == ["", "saved 0", "saved 1"]
    assert first.rc == second.rc != 0


@pytest.mark.parametrize("order,takes", [((1, 0), 1), ((0, 1), 7)])
def test_pods_that_are_taken_away_together(pods, order, takes):
    """As with their StatefulSet. The second SIGTERM takes no time from the ranks, which have 28 s whichever pod is first."""
    jobs = running(pods(2), f"trap 'echo got; sleep {takes}; echo saved $DRARUN_RANK; exit 0' TERM; echo ready; while :; do sleep 0.1; done")
    jobs[order[0]].signal(signal.SIGTERM)
    for _ in jobs:
        assert jobs[0].process.stdout.readline() == "got\n"
    jobs[order[1]].signal(signal.SIGTERM)
    first, second = finish(jobs)
    assert sorted(first.out.split()) == ["0", "1", "saved", "saved"], first
    assert first.rc == second.rc != 0


def test_a_pod_that_is_lost(pods):
    jobs = running(pods(2))
    for signo in (signal.SIGSTOP, signal.SIGKILL):  # at once, as the kernel ends a container
        for pid in jobs[1].processes():
            try:
                os.kill(pid, signo)
            except ProcessLookupError:
                continue
    jobs[1].finish(clean=False)
    first = jobs[0].finish()
    assert first.rc == 70 and "worker 1 (web-1" in first.err and "was lost" in first.err


@pytest.mark.parametrize("words,says", [
    (["--"], "expected a program: drarun join [options] [--] PROGRAM"),
    (["-i", "--", "true"], "expected a job and a rank"),
    (["--", "true"], "the peers are not known"),
    (["--peers", "a,b", "--", "true"], "add --index I"),
    (["--index", "x", "--peers", "a", "--", "true"], "--index"),
    (["job"], "expected a job and a rank: drarun exec"),
])
def test_wrong_lines(drarun, words, says):
    result = drarun("exec", *words, env={"DRARUN_KEY": "0" * 64})
    assert result.rc == 64 and says in result.err
