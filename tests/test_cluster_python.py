# SPDX-License-Identifier: Apache-2.0
"""The Python package on a cluster of two real nodes."""
import sys

import pytest

from support import python_package
from support.cluster_jobs import RUN_S
from support.run import Runner

pytest.importorskip("cffi", reason="no python3-cffi: scripts/setup --test installs it")

HEAD = """
import asyncio, errno, os, signal, sys, threading, time
import drarun
IMAGE = "localhost/drarun:1"
signal.signal(signal.SIGINT, signal.default_int_handler)
def job(name, *command, workers=1):
    return drarun.Job({"metadata": {"name": name}, "spec": {
        "workers": workers, "image": "localhost/busybox:1", "command": ["sh", "-c", *command]}})
def until(what, there):
    end = time.monotonic() + 100
    while not there():
        assert time.monotonic() < end, what
        time.sleep(0.1)
"""


@pytest.fixture
def python(jobs, tmp_path):
    """python(text): a program where the cluster can be reached."""
    runner = Runner(sys.executable)
    env = {**jobs.env, **python_package.in_folder(tmp_path / "package")}
    yield lambda text: runner("-c", HEAD + text, under=jobs.cluster.under, env=env, timeout=RUN_S)
    runner.close()


def others(text):
    """The lines that are not the library's own: progress, notes and why a job ended."""
    return [line for line in text.splitlines() if not line.startswith("drarun: ")]


def test_a_job_from_submit_to_cancel(python, jobs):
    result = python("""
told = []
cluster = drarun.Cluster(log=lambda level, line: told.append(line))
three = job("three", "echo rank $RANK of $WORLD_SIZE; echo bad >&2; sleep 1; exit 3", workers=2)
seen, awaited = [], []
assert drarun.run(three, cluster=cluster, image=IMAGE, output=seen.append, progress=awaited.append) == 3
assert {(each.rank, each.text) for each in seen if not each.stderr} == {(0, "rank 0 of 2\\n"), (1, "rank 1 of 2\\n")}, seen
assert sum(each.stderr and each.text == "bad\\n" for each in seen) == 2, seen
assert any("exited with status 3" in line for line in told), told
try:
    three.submit(image=IMAGE)
    assert False, "a second job of that name"
except drarun.ClusterError as error:
    assert error.code == errno.EEXIST, error
assert three.submit(image=IMAGE, replace=True).wait(100) == 3
try:
    cluster.job("nothing")
    assert False, "a job that is not there"
except drarun.UsageError as error:
    assert error.code == errno.ENOENT and "no job nothing" in str(error), error
assert "1 worker" in cluster.plan(job("planned", "true")).text()

long = job("long", "echo up; sleep 1000")
submitted = long.submit(image=IMAGE)
until("the rank does not run", lambda: long.status().get("phase") == "running")
assert submitted.document() == cluster.job("long").document() == long.document
try:
    long.submit(image=IMAGE, replace=True)
    assert False, "the job that runs was replaced"
except drarun.ClusterError as error:
    assert error.code == errno.EEXIST, error
until("no output", lambda: long.logs() == [drarun.Output(0, "up\\n", False)])
try:
    long.wait(timeout=0.3)
    assert False, "it ended"
except TimeoutError as error:
    assert isinstance(error, drarun.TimeoutError), error
if os.fork() == 0:
    os._exit(0 if submitted.status()["phase"] == "running" else 1)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
def wrong(output):
    raise KeyError(output.text)
try:
    submitted.follow(output=wrong)
    assert False, "it ended"
except KeyError as error:
    assert error.args == ("up\\n",)
def press(output):
    print(output.text, end="", flush=True)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    submitted.follow(output=press)
    assert False, "Ctrl-C does nothing"
except KeyboardInterrupt:
    print("left")
ends = []
def wait():
    try:
        ends.append(submitted.wait(100))
    except drarun.Error as error:  # deleted: the kubelet had not told yet that its launcher runs
        ends.append(130 if error.code == errno.ENOENT else error)
waits = threading.Thread(target=wait)
waits.start()
time.sleep(0.5)
long.cancel()  # beside the thread that waits
waits.join()
assert ends == [130], ends
gone = job("gone", "sleep 1000").submit(image=IMAGE)
def is_deleted():
    try:
        gone.cancel()
    except drarun.Error as error:
        return error.code == errno.ENOENT
until("it is there", is_deleted)
try:
    gone.wait(60)
    assert False, "it ended"
except drarun.Error as error:
    assert error.code == errno.ENOENT, error
""")
    assert (result.rc, others(result.err)) == (0, []) and result.out == "up\nleft\n", result


def test_ctrl_c_and_cancelling_leave_no_job_that_runs(python, jobs):
    result = python("""
async def main():
    running = asyncio.create_task(drarun.aio.run(job("task", "echo up; sleep 1000"), image=IMAGE, output=None))
    ticks = 0
    cluster = drarun.Cluster()
    while True:
        ticks += 1
        await asyncio.sleep(0.1)
        try:
            if (await drarun.aio.status(await asyncio.to_thread(cluster.job, "task"))).get("phase") == "running":
                break
        except drarun.UsageError:  # not yet there
            pass
        assert ticks < 1000
    running.cancel()
    try:
        await running
    except asyncio.CancelledError:
        print("cancelled")
asyncio.run(main())

for index, delay in enumerate((0.01, 0.05, 0.2, 1.5)):
    name = f"pressed-{index}"
    try:
        threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
        drarun.run(job(name, "sleep 1000"), image=IMAGE)
        assert False, "it ended"
    except KeyboardInterrupt:
        pass
print("pressed")
""")
    assert (result.rc, others(result.err), result.out) == (0, [], "cancelled\npressed\n"), result
    def running():
        pods = jobs.cluster.api.get("v1", "Pod", namespace=jobs.namespace.name)
        return [each["metadata"]["name"] for each in pods
                if each["status"].get("phase") not in ("Succeeded", "Failed")]
    jobs.cluster.wait("pods of a job that was ended so go on", lambda: not running(), 60)
