# SPDX-License-Identifier: Apache-2.0
"""drarun controller beside an API server without nodes: what one user's DraJobs and other objects may cost the others."""
import calendar
import contextlib
import email.utils
import json
import re
import signal
import threading
import time
import zlib

import pytest

from support.api_proxy import ApiProxy, Exchange
from support.build import BUILD
from support.cluster_jobs import Jobs
from support.run import peak_memory_kib
from test_cluster_controller import API, DEPLOYMENT, HOME, KIND, TAKE_OVER_S, Applied, controller, manifests, said

MADE_S = 60
WORKERS = 800  # 64 at a time are made
LARGE = 200
SMALLEST_LARGE = 65
LARGE_TEXT = 65536
UNDER_WAY = 16  # calls for a large job
DELAY_S = 2
WAITED_S = 35  # 20 s that a launcher may take, 10 s in which a client would give it up


@pytest.fixture(scope="module")
def served(control_plane):
    control_plane.api.make(*manifests("crd.yaml"))
    control_plane.wait("the server does not serve DraJobs", lambda: control_plane.api.plural(API, KIND), MADE_S)
    control_plane.api.make(*[each for each in manifests("controller.yaml") if each["kind"] != DEPLOYMENT])
    return control_plane


@contextlib.contextmanager
def jobs_in(name, served, drarun, folder):
    """Nothing of them runs: their pods get no node."""
    jobs = Jobs(served, drarun, served.namespace(name), folder)
    jobs.install()
    made = Applied(jobs)
    yield made
    for each in served.api.get(API, KIND, namespace=name):
        served.api.delete(API, KIND, each["metadata"]["name"], name)


@pytest.fixture
def applied(served, drarun, tmp_path, request):
    with jobs_in(f"test-{zlib.crc32(request.node.name.encode()):08x}", served, drarun, tmp_path) as made:
        yield made


@pytest.fixture
def other(served, drarun, tmp_path, request):
    """In another namespace."""
    with jobs_in(f"other-{zlib.crc32(request.node.name.encode()):08x}", served, drarun, tmp_path) as made:
        yield made


@pytest.fixture
def proxy(served):
    if not (served.keys.folder / "proxy.crt").exists():
        served.keys.sign("proxy", "/CN=proxy", ["IP:127.0.0.1"])
    made = ApiProxy(served.network.api_port, served.keys.folder)
    yield made
    made.close()


def is_of_worker(exchange):
    """Of "job"."""
    return b'"job-w-' in exchange.body


def slow_pods(exchange):
    if is_of_worker(exchange):
        time.sleep(DELAY_S)
    exchange.forward()


def is_of_pods(method, path):
    return method == "POST" and "/pods?" in path


def is_of_jobs(method, path):
    return method == "POST" and "/jobs?" in path


def is_of_document(method, path):
    return method == "GET" and "/configmaps/job-status" in path


def pods_asked(proxy):
    return sum(is_of_pods(method, path) for _, method, path, _ in proxy.seen())


def jobs_asked(proxy):
    return sum(is_of_jobs(method, path) for _, method, path, _ in proxy.seen())


def documents_read(proxy):
    return sum(is_of_document(method, path) for _, method, path, _ in proxy.seen())


def workers_of(applied, name="job"):
    """Their pods."""
    return [each for each in applied.cluster.api.get("v1", "Pod", namespace=applied.namespace) if each["metadata"]["name"].startswith(f"{name}-w-")]


class Gate:
    """A fault: what is asked, with this in its body, waits until it is opened."""

    def __init__(self, then=Exchange.forward, of=b""):
        self.then, self.of, self.asked, self.opened = then, of, [], threading.Event()

    def __call__(self, exchange):
        if self.of not in exchange.body:
            exchange.forward()
            return
        self.asked.append(exchange.path)
        self.opened.wait(MADE_S)
        self.then(exchange)

    def open(self):
        self.opened.set()


@contextlib.contextmanager
def managing(applied, *words, **how):
    """A controller that has begun."""
    with controller(applied, *words, **how) as running:
        applied.cluster.wait("it does not begin", lambda: "manages the DraJobs" in said(running), MADE_S)
        yield running


def begin_large(applied, proxy, workers=LARGE, pods=slow_pods):
    """The controller has begun to create them. pods: what the proxy does with the calls."""
    proxy.fault(pods, is_of_pods, 10 ** 6)
    assert applied.apply(workers=workers, command=["true"]) == ""
    applied.cluster.wait("it makes no pod", lambda: pods_asked(proxy), MADE_S)


def test_lease_is_lost_while_a_large_job_is_made(applied, proxy):
    """Who had it makes no further object, deletes none, and ends; who has it next starts over."""
    cluster = applied.cluster

    with managing(applied, through=proxy) as running:
        begin_large(applied, proxy, WORKERS)
        proxy.fault(Exchange.drop, lambda method, path: method == "PUT" and "/leases/" in path, 10 ** 6)
        cluster.wait("it does not end", lambda: running.process.poll() is not None, 4 * MADE_S)
        assert running.process.returncode == 70 and "Lease is lost" in said(running), said(running)
        assert "not all of its objects are made" in said(running) and pods_asked(proxy) < WORKERS
        assert not proxy.seen("DELETE") and cluster.api.get("batch/v1", "Job", "job", applied.namespace)


def test_controller_that_was_stopped_for_longer_than_its_lease(applied, proxy):
    """Another one leads meanwhile, and is making a job: nothing of that is touched by the time that the first one knows."""
    api, leases = applied.cluster.api, "coordination.k8s.io/v1"
    with managing(applied, through=proxy) as running:
        running.signal(signal.SIGSTOP)
        time.sleep(15)  # the life of its Lease
        holder = {"spec": {"holderIdentity": "other_1"}}
        api.ok("PATCH", api.path(leases, "Lease", HOME, HOME), holder, content="application/merge-patch+json")
        assert applied.apply(command=["true"]) == ""
        proxy.fault(Gate(), lambda method, path: method == "PUT" and "/leases/" in path, 10 ** 6)
        before = len(proxy.seen())
        running.signal(signal.SIGCONT)
        applied.cluster.wait("it does not end", lambda: running.process.poll() is not None, MADE_S)
        assert running.process.returncode == 70 and "Lease is lost" in said(running), said(running)
        changes = [(method, path) for _, method, path, _ in proxy.seen()[before:] if method != "GET"]
        assert not [path for _, path in changes if "/leases/" not in path], changes
    assert "status" not in applied.get()
    api.delete(leases, "Lease", HOME, HOME)


def test_large_job_holds_up_no_other(applied, proxy):
    """Nor do many of one namespace: one of them is made at a time."""
    cluster = applied.cluster

    def is_made(name):
        return f"{applied.namespace}/{name}: its objects are made" in said(running)

    def message(name):
        return ((applied.get(name) or {}).get("status") or {}).get("message", "")

    def pods(name):
        return len(workers_of(applied, name))
    with managing(applied, through=proxy) as running:
        begin_large(applied, proxy)
        cluster.wait("it makes no pod", lambda: pods("job"), MADE_S)
        assert applied.apply("second", workers=LARGE, command=["true"]) == ""
        cluster.wait("it does not say why", lambda: "waits for its turn" in message("second"), MADE_S)
        assert applied.apply("small", command=["true"]) == ""
        cluster.wait("the small job waits", lambda: is_made("small"), MADE_S)
        assert not is_made("job") and pods("job") < LARGE and not pods("second")
        cluster.wait("its status does not say so", lambda: "launcherUID" in (applied.get("small").get("status") or {}), MADE_S)
        assert "launcherUID" not in applied.get()["status"]
        cluster.wait("it does not say that it has its turn", lambda: "creating the job's objects" in message("second"), 4 * MADE_S)
        for name in ("job", "second"):
            cluster.wait(lambda: f"{name} is not made: {said(running)}", lambda: is_made(name), 4 * MADE_S)
            assert pods(name) == LARGE
        cluster.wait("its status does not say so", lambda: "launcherUID" in applied.get("second")["status"], MADE_S)


def late(exchange):
    time.sleep(DELAY_S)
    exchange.forward()


def reads_spec(name):
    """Whether the controller reads that DraJob alone, for its spec."""
    return lambda method, path: method == "GET" and f"/drajobs?fieldSelector=metadata.name%3D{name}&" in path


def reads_remains(name):
    """Whether it asks for what is in the job's way."""
    return lambda method, path: method == "GET" and f"/pods?labelSelector=drarun.dev%2Fjob%3D{name}&" in path


def apply_in_turn(applied, *names):
    """Large ones, by their text, with few objects."""
    for name in names:
        assert applied.apply(name, command=["true"], args=["a" * LARGE_TEXT]) == ""
        time.sleep(1.1)  # the time of their creation has whole seconds


def wait_for_turn(applied, *names):
    """They say that they do."""
    for name in names:
        applied.cluster.wait(lambda: f"it does not wait: {applied.get(name)}",
                             lambda: "waits for its turn" in (applied.get(name).get("status") or {}).get("message", ""), MADE_S)


def make_until(applied, proxy):
    """A large one is being created until the gate that this returns is opened."""
    pods = Gate()
    proxy.fault(pods, is_of_pods, 10 ** 6)
    apply_in_turn(applied, "job")
    applied.cluster.wait("it makes no pod", lambda: pods.asked, MADE_S)
    return pods


def wait_made(applied, running, *names):
    """All objects of these are created, in this order."""
    def made():
        return re.findall("/([a-z]+): its objects are made", said(running))
    applied.cluster.wait(lambda: f"they are not made: {said(running)}", lambda: len(made()) >= len(names), 2 * MADE_S)
    assert made() == [*names], said(running)


def test_large_jobs_wait_in_the_order_of_their_creation(applied, proxy):
    """Of the first one what the controller has to know comes late, and of later ones at once: where it has waited for its turn, and where
    it need not."""
    with managing(applied, through=proxy) as running:
        pods = make_until(applied, proxy)
        apply_in_turn(applied, "c", "b", "a")
        wait_for_turn(applied, "c", "b", "a")
        for match in (reads_spec("c"), reads_remains("c"), reads_remains("e")):
            proxy.fault(late, match, 10 ** 6)
        pods.open()
        wait_made(applied, running, "job", "c", "b", "a")
        apply_in_turn(applied, "e", "d")
        wait_made(applied, running, "job", "c", "b", "a", "e", "d")


def test_large_job_whose_turn_comes_while_others_are_read(applied, proxy):
    """Of a namespace one spec is read at a time. Those that are read keep it waiting, and do not pass it."""
    with managing(applied, through=proxy) as running:
        pods, read = make_until(applied, proxy), Gate()
        apply_in_turn(applied, "d")
        wait_for_turn(applied, "d")
        proxy.fault(Exchange.forward, reads_spec("c"))
        proxy.fault(read, reads_spec("c"))
        proxy.fault(late, reads_spec("b"), 10 ** 6)
        apply_in_turn(applied, "c")
        applied.cluster.wait("it is not read again", lambda: read.asked, MADE_S)
        apply_in_turn(applied, "b")
        pods.open()
        wait_made(applied, running, "job")
        time.sleep(DELAY_S)  # in which it is the next one's turn
        read.open()
        wait_made(applied, running, "job", "d", "c", "b")


def test_large_job_whose_turn_comes_before_news_of_it(applied, proxy):
    """What the controller wrote of it last is not in its watch yet: it keeps its place until then."""
    armed, told, opened = threading.Event(), threading.Event(), threading.Event()

    def watch(exchange):
        answer = exchange.ask()
        exchange.send(exchange.head(answer, chunked=True))
        line = b""
        while data := answer.read1(10 ** 6):
            line += data
            if armed.is_set() and b'"name":"d"' in line and b"waits for its turn" in line:
                told.set()
                opened.wait(MADE_S)
            exchange.chunk(data)
            line = line.rpartition(b"\n")[2]
        exchange.send(b"0\r\n\r\n")
    proxy.fault(watch, lambda method, path: "/drajobs?" in path and "watch=" in path, 10 ** 6)
    with managing(applied, through=proxy) as running:
        pods = make_until(applied, proxy)
        apply_in_turn(applied, "d")
        wait_for_turn(applied, "d")
        applied.patch({"spec": {"suspend": True}}, "d")
        applied.cluster.wait("it is not suspended", lambda: applied.state("d") == "Suspended", MADE_S)
        apply_in_turn(applied, "c")
        wait_for_turn(applied, "c")
        armed.set()
        applied.patch({"spec": {"suspend": False}}, "d")
        applied.cluster.wait("it does not wait", told.is_set, MADE_S)
        pods.open()
        wait_made(applied, running, "job")
        time.sleep(DELAY_S)  # in which it is the next one's turn
        opened.set()
        wait_made(applied, running, "job", "d", "c")


def test_large_jobs_that_another_controller_left_waiting(applied, proxy):
    with managing(applied, through=proxy) as running:
        pods = make_until(applied, proxy)
        apply_in_turn(applied, "c", "b", "a")
        wait_for_turn(applied, "c", "b", "a")
        running.signal(signal.SIGTERM)
        pods.open()
        assert running.finish(MADE_S).rc == 0
    applied.cluster.api.delete(API, KIND, "job", applied.namespace)
    with managing(applied, "second") as running:
        wait_made(applied, running, "c", "b", "a")


def test_large_job_is_resumed_while_another_one_is_made(applied, proxy):
    """It says that it waits for its turn, and not that it is suspended."""
    cluster = applied.cluster

    def waits():
        status = applied.get("second").get("status") or {}
        return status.get("state") == "Pending" and "waits for its turn" in status["message"]
    with managing(applied, through=proxy):
        begin_large(applied, proxy, WORKERS)
        assert applied.apply("second", workers=LARGE, command=["true"]) == ""
        cluster.wait("it does not say why", waits, MADE_S)
        applied.patch({"spec": {"suspend": True}}, "second")
        cluster.wait("it is not suspended", lambda: applied.state("second") == "Suspended", MADE_S)
        applied.patch({"spec": {"suspend": False}}, "second")
        cluster.wait(lambda: f"it says {applied.get('second')['status']}", waits, MADE_S)
        assert not applied.get()["status"].get("launcherUID")


def test_large_jobs_of_two_namespaces(applied, other, proxy):
    """Half of the calls, which are 64, are left to other jobs."""
    cluster, lock, now = applied.cluster, threading.Lock(), []

    def slow(exchange):
        """Counted while it is held back: after its answer the next one may come before this thread goes on."""
        with lock:
            now.append((now[-1] if now else 0) + 1)
        if is_of_worker(exchange):
            time.sleep(DELAY_S)
        with lock:
            now.append(now[-1] - 1)
        exchange.forward()
    with managing(applied, through=proxy) as running:
        proxy.fault(slow, is_of_pods, 10 ** 6)
        for each in (applied, other):
            assert each.apply(workers=LARGE, command=["true"]) == ""
        for each in (applied, other):
            cluster.wait(lambda: f"it is not made: {said(running)}", lambda: f"{each.namespace}/job: its objects are made" in said(running), 4 * MADE_S)
    assert 16 < max(now) <= 32


def conflict(exchange):
    exchange.answer(409, {"kind": "Status", "status": "Failure", "code": 409, "reason": "Conflict", "message": "it was changed"})


@pytest.mark.parametrize("conflicts", [0, 2])
def test_end_after_the_last_object_of_a_large_job(applied, proxy, conflicts):
    """The controller records the job that it has completed, and the next one does not make it again. conflicts: of others who change
    the DraJob just then. An earlier job, of which an answer was lost, is not before it."""
    cluster, lost = applied.cluster, []

    def lose_record(exchange):
        if b"launcherUID" in exchange.body and not lost:
            lost.append(exchange.path)
            exchange.lose()
        exchange.forward()
    with managing(applied, through=proxy) as running:
        proxy.fault(lose_record, lambda method, path: method == "PUT" and "/drajobs/small/status" in path, 10 ** 6)
        assert applied.apply("small", command=["true"], ttlSecondsAfterFinished=86400) == ""
        cluster.wait("it does not record the small one", lambda: lost and applied.get("small")["status"].get("launcherUID"), MADE_S)
        end_job(applied, "small")
        cluster.wait("the small one does not end", lambda: applied.state("small") == "Failed", MADE_S)
        proxy.fault(slow_pods, is_of_pods, 10 ** 6)
        assert applied.apply(workers=LARGE, command=["true"]) == ""
        cluster.wait("it makes not all pods", lambda: pods_asked(proxy) == 1 + LARGE, 4 * MADE_S)
        proxy.fault(conflict, lambda method, path: method == "PUT" and "/drajobs/job/status" in path, conflicts)
        running.signal(signal.SIGTERM)
        assert running.finish(MADE_S).rc == 0
    made = cluster.api.get("batch/v1", "Job", "job", applied.namespace)["metadata"]["uid"]
    assert applied.get()["status"].get("launcherUID") == made
    with managing(applied, "second") as running:
        assert applied.apply("next", command=["true"]) == ""
        cluster.wait("it makes nothing", lambda: "next: its objects are made" in said(running), MADE_S)
        assert cluster.api.get("batch/v1", "Job", "job", applied.namespace)["metadata"]["uid"] == made


def invalid(exchange):
    exchange.answer(422, {"kind": "Status", "status": "Failure", "code": 422, "reason": "Invalid", "message": "a webhook says no"})


def test_status_that_is_refused(applied, proxy):
    """It is tried again less and less often, and written once it may be. That counts for this one alone."""
    def is_of_status(method, path):
        return method == "PUT" and "/drajobs/job/status" in path

    def asked():
        return [at for at, method, path, _ in proxy.seen("PUT") if is_of_status(method, path)]
    with managing(applied, through=proxy) as running:
        proxy.fault(invalid, is_of_status, 3)
        assert applied.apply(command=["true"], suspend=True) == ""
        applied.cluster.wait(lambda: f"it is not tried again: {said(running)}", lambda: len(asked()) > 3, MADE_S)
        assert asked()[3] - asked()[0] >= 6  # 1 + 2 + 4 s
        applied.cluster.wait("it is not written", lambda: "status" in applied.get(), MADE_S)
        assert said(running).count("cannot write its status: ") == 3
        before = len(asked())
        proxy.fault(invalid, is_of_status, 2)
        applied.patch({"spec": {"suspend": False}})
        applied.cluster.wait("it is not tried again", lambda: len(asked()) > before + 2, MADE_S)
        assert 2 <= asked()[before + 2] - asked()[before] < 20  # 1 + 2 s, and not 8 + 16


def test_objects_that_are_refused(applied, proxy):
    """They are tried again less and less often, though what was made of them goes, and each refusal says something else, until they may be
    made: here after the job was suspended."""
    cluster, numbers, lifted = applied.cluster, iter(range(10 ** 6)), threading.Event()

    def refuse(exchange):
        if lifted.is_set():
            exchange.forward()
        else:
            exchange.answer(403, {"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden",
                                  "message": f"exceeded quota: few, used: pods={next(numbers)}"})

    def asked():
        return [at for at, method, path, _ in proxy.seen("POST") if is_of_jobs(method, path)]
    with managing(applied, through=proxy) as running:
        proxy.fault(refuse, is_of_pods, 10 ** 6)
        assert applied.apply(workers=2, command=["true"]) == ""
        cluster.wait(lambda: f"it is not tried again: {said(running)}", lambda: len(asked()) > 3, 2 * MADE_S)
        assert asked()[3] - asked()[0] >= 6  # 1 + 2 + 4 s
        applied.patch({"spec": {"suspend": True}})
        cluster.wait(lambda: f"it is not suspended: {applied.get()}", lambda: applied.state() == "Suspended", MADE_S)
        lifted.set()
        applied.patch({"spec": {"suspend": False}})
        cluster.wait(lambda: f"it is not made: {said(running)}", lambda: "/job: its objects are made" in said(running), MADE_S)


@contextlib.contextmanager
def no_launchers(applied):
    """A policy that refuses pods of launchers in the namespace, and not those of workers."""
    version, api, name = "admissionregistration.k8s.io/v1", applied.cluster.api, {"name": f"no-launchers-{applied.namespace}"}
    where = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": applied.namespace}},
             "objectSelector": {"matchExpressions": [{"key": "drarun.dev/worker", "operator": "DoesNotExist"}]},
             "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}
    kinds = {"ValidatingAdmissionPolicy": {"matchConstraints": where, "validations": [{"expression": "false", "message": "not now"}]},
             "ValidatingAdmissionPolicyBinding": {"policyName": name["name"], "validationActions": ["Deny"]}}
    api.make(*({"apiVersion": version, "kind": kind, "metadata": name, "spec": spec} for kind, spec in kinds.items()))
    probe = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "namespace": applied.namespace},
             "spec": {"serviceAccountName": "drarun-launcher", "containers": [{"name": "a", "image": "a"}]}}
    applied.cluster.wait("the policy does not work", lambda: api.create(probe, dry_run=True)[0] == 422, MADE_S)
    yield
    for kind in reversed(kinds):
        api.delete(version, kind, name["name"])


def test_launcher_that_gets_no_pod(applied, proxy):
    """Its Events say why, and the job's message where they are. Once it has a pod, that says what it waits for."""
    def told(*words):
        def there():
            return all(each in (applied.get().get("status") or {}).get("message", "") for each in words)
        applied.cluster.wait(lambda: f"it is not told: {words}: {applied.get()}", there, 2 * MADE_S)
        assert applied.state() == "Pending"
    with managing(applied, through=proxy):
        with no_launchers(applied):
            assert applied.apply(command=["true"]) == ""
            told("the launcher has no pod: kubectl describe job shows")
            assert len(workers_of(applied)) == 1
        told("the launcher does not start: pod job-", ": no node has room: ")
        write_document(applied, phase="placing", waiting={"text": "workers wait"})
        applied.cluster.wait(lambda: f"it is told still: {applied.get()}", lambda: applied.get()["status"]["message"] == "workers wait", MADE_S)


def launchers_of(applied):
    """Their pods."""
    return [each for each in applied.cluster.api.get("v1", "Pod", namespace=applied.namespace)
            if each["metadata"]["labels"].get("batch.kubernetes.io/job-name") == "job"]


def given_up(applied, status, words):
    """Its DraJob has that exit status and says why, and its workers go."""
    def stay():
        pods = applied.cluster.api.get("v1", "Pod", namespace=applied.namespace)
        return [each["metadata"]["name"] for each in pods if "deletionTimestamp" not in each["metadata"]]
    said_last = applied.wait("Failed", seconds=2 * MADE_S)
    assert (said_last["reason"], said_last["exitStatus"]) == ("LauncherNotStarted", status), said_last
    text = next(each["message"] for each in said_last["conditions"] if each["type"] == "Failed")
    assert text.startswith(words), text
    applied.cluster.wait(lambda: f"they stay: {stay()}", lambda: not stay(), MADE_S)
    assert applied.get()["status"] == said_last


def test_launcher_that_gets_no_pod_in_time(applied, proxy):
    """Its worker has one, which would hold its devices without end."""
    with managing(applied, through=proxy), no_launchers(applied):
        assert applied.apply(command=["true"], timeouts={"allocation": "20s", "nodes": "1s", "imagePull": "1s"}) == ""
        applied.cluster.wait("it has no worker", lambda: workers_of(applied), MADE_S)
        given_up(applied, 75, "the launcher has not started within 20 s (timeouts.allocation): it has no pod: ")


def test_launcher_that_gets_no_node_in_time(applied, proxy):
    """An autoscaler may have ordered one, which only Events say."""
    with managing(applied, through=proxy):
        assert applied.apply(command=["true"], timeouts={"allocation": "1s", "nodes": "20s", "imagePull": "1s"}) == ""
        given_up(applied, 75, "the launcher has not started within 20 s (timeouts.nodes): pod job-")


@pytest.mark.parametrize("why,timeout,status,words", [
    ("ImagePullBackOff", "20s", 70, "the launcher has not started within 20 s (timeouts.imagePull): pod job-"),
    ("InvalidImageName", "0", 65, "image localhost/drarun:1 of the launcher is not a valid name")], ids=["not in time", "never"])
def test_launcher_whose_image_is_not_pulled(applied, proxy, why, timeout, status, words):
    api, node = applied.cluster.api, f"n-{applied.namespace}"
    api.make({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})  # has room for nothing
    with managing(applied, through=proxy):
        assert applied.apply(command=["true"], timeouts={"allocation": "0", "imagePull": timeout}) == ""
        applied.cluster.wait("it has no launcher", lambda: launchers_of(applied), MADE_S)
        pod = launchers_of(applied)[0]
        name, containers = pod["metadata"]["name"], pod["spec"]["containers"]
        api.ok("POST", f"{api.path('v1', 'Pod', applied.namespace, name)}/binding", {
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"apiVersion": "v1", "kind": "Node", "name": node}})
        waits = {"waiting": {"reason": why, "message": "not there"}}
        api.patch_status("v1", "Pod", name, {"phase": "Pending", "containerStatuses": [
            {"name": each["name"], "image": each["image"], "imageID": "", "ready": False, "restartCount": 0, "state": waits} for each in containers]},
            applied.namespace)
        given_up(applied, status, words)
        api.delete("v1", "Pod", name, applied.namespace, grace=0)
    api.delete("v1", "Node", node)


def test_launcher_that_is_waited_for_without_end(applied, proxy):
    """As its spec has it; and one whose Job is suspended has not begun to wait."""
    with managing(applied, through=proxy), no_launchers(applied):
        assert applied.apply("held", command=["true"], timeouts={"allocation": "20s"}) == ""
        began = time.monotonic()
        applied.cluster.wait("it is not made", lambda: applied.cluster.api.get("batch/v1", "Job", "held", applied.namespace), MADE_S)
        path = applied.cluster.api.path("batch/v1", "Job", applied.namespace, "held")
        applied.cluster.api.ok("PATCH", path, {"spec": {"suspend": True}}, content="application/merge-patch+json")
        assert applied.apply(command=["true"], timeouts={"allocation": "0", "nodes": "1s", "imagePull": "1s"}) == ""
        for name, words in (("job", "the launcher has no pod: "), ("held", "the launcher's Job is suspended: ")):
            applied.cluster.wait(lambda: f"it is not told: {applied.get(name)}",
                                 lambda: ((applied.get(name) or {}).get("status") or {}).get("message", "").startswith(words), 2 * MADE_S)
        time.sleep(max(0, began - time.monotonic() + WAITED_S))
        assert [applied.state(name) for name in ("job", "held")] == ["Pending"] * 2


def test_launcher_whose_job_is_suspended(applied, proxy):
    """As Kueue does it where it manages all Jobs."""
    with managing(applied, through=proxy):
        assert applied.apply(command=["true"]) == ""
        applied.cluster.wait("it is not made", lambda: "launcherUID" in (applied.get().get("status") or {}), MADE_S)
        path = applied.cluster.api.path("batch/v1", "Job", applied.namespace, "job")
        applied.cluster.api.ok("PATCH", path, {"spec": {"suspend": True}}, content="application/merge-patch+json")
        applied.cluster.wait(lambda: f"it is not told: {applied.get()}", lambda: "the launcher's Job is suspended" in applied.get()["status"]["message"], MADE_S)


def test_document_that_cannot_be_read(applied, proxy):
    """It is tried again less and less often, until it can be read: what fails later begins anew."""
    with managing(applied, through=proxy) as running:
        assert applied.apply(command=["true"]) == ""
        applied.cluster.wait("it is not made", lambda: (applied.get().get("status") or {}).get("launcherUID"), MADE_S)
        proxy.fault(invalid, is_of_document, 4)
        write_document(applied, phase="placing")
        applied.cluster.wait(lambda: f"it is not read: {said(running)}", lambda: applied.state() == "Placing", MADE_S)
        proxy.fault(invalid, is_of_document, 2)
        write_document(applied, phase="pulling")
        applied.cluster.wait(lambda: f"it is not read: {said(running)}", lambda: applied.state() == "Pulling", 2 * MADE_S)
        assert re.findall(r"cannot read its launcher's document, retrying in (\d+) s", said(running)) == ["1", "2", "4", "8", "1", "2"]


def test_deleted_job_that_a_finalizer_keeps(applied, proxy):
    """Its ranks run on, and who keeps it may wait for its end."""
    with managing(applied, through=proxy):
        assert applied.apply(command=["true"]) == ""
        applied.cluster.wait("it is not made", lambda: (applied.get().get("status") or {}).get("launcherUID"), MADE_S)
        applied.patch({"metadata": {"finalizers": ["example.com/archive"]}})
        applied.cluster.api.delete(API, KIND, "job", applied.namespace)
        write_document(applied, phase="placing")
        applied.cluster.wait(lambda: f"its state stays: {applied.get()}", lambda: applied.state() == "Placing", MADE_S)
        end_job(applied)
        applied.cluster.wait(lambda: f"its end is not told: {applied.get()}", lambda: applied.state() == "Failed", MADE_S)
        assert "deletionTimestamp" in applied.get()["metadata"]
        applied.patch({"metadata": {"finalizers": []}})
        applied.cluster.wait("it stays", lambda: not applied.get(), MADE_S)


def test_job_that_is_replaced_while_it_is_looked_at(applied, proxy):
    """What is remembered of the one before does not count for it: that it cannot be created is told of it too."""
    cluster, gate = applied.cluster, Gate()

    def told():
        """Of which DraJobs."""
        return {each["involvedObject"]["uid"] for each in cluster.api.get("v1", "Event", namespace=applied.namespace) if each["reason"] == "CannotCreate"}
    with managing(applied, through=proxy) as running:
        proxy.fault(over_quota, is_of_pods, 10 ** 6)
        assert applied.apply(command=["true"]) == ""
        first = applied.get()["metadata"]["uid"]
        cluster.wait(lambda: f"it does not say so: {said(running)}", lambda: told() == {first}, MADE_S)
        proxy.fault(gate, lambda method, path: method == "GET" and "/drajobs?" in path and "name%3Djob" in path, 10 ** 6)
        cluster.wait("it is not looked at", lambda: gate.asked, MADE_S)
        cluster.api.delete(API, KIND, "job", applied.namespace)
        assert applied.apply(command=["true"]) == ""
        second = applied.get()["metadata"]["uid"]
        assert len(gate.asked) == 1 and first != second
        gate.open()
        cluster.wait(lambda: f"it does not say so: {said(running)}", lambda: told() == {first, second}, 2 * MADE_S)


def test_pod_in_the_way_that_stays(applied, proxy):
    """As on a lost node: it is looked for less and less often, and the job is made once it has gone."""
    api = applied.cluster.api

    def looked():
        return [at for at, method, path, _ in proxy.seen("GET") if "/pods?" in path and "job%3Djob" in path]
    api.make({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "left", "namespace": applied.namespace, "labels": {"drarun.dev/job": "job"}},
              "spec": {"serviceAccountName": "drarun-launcher", "containers": [{"name": "a", "image": "a"}]}})
    with managing(applied, through=proxy) as running:
        assert applied.apply(command=["true"]) == ""
        applied.cluster.wait(lambda: f"it is not looked for: {said(running)}", lambda: len(looked()) > 5, MADE_S)
        assert looked()[5] - looked()[0] >= 8  # 1 + 2 + 4 + 5 s
        assert applied.get()["status"]["reason"] == "NameInUse"
        api.delete("v1", "Pod", "left", applied.namespace, grace=0)
        applied.cluster.wait(lambda: f"it is not made: {said(running)}", lambda: "/job: its objects are made" in said(running), MADE_S)


def copy_of(pod, name):
    """The same as another process makes it."""
    metadata = {key: pod["metadata"][key] for key in ("namespace", "labels", "annotations", "ownerReferences") if key in pod["metadata"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": pod["spec"]}


@pytest.mark.parametrize("left", [False, True], ids=["", "workers are left"])
def test_launcher_that_could_not_tell_of_its_end(applied, proxy, left):
    """Its document was deleted, or the API server was away for very long: its Job is complete, and says that its ranks have succeeded.
    Workers that are left go with the Job, which has the output of the ranks, and stays otherwise."""
    api = applied.cluster.api
    with managing(applied, through=proxy) as running:
        assert applied.apply(command=["true"]) == ""
        applied.cluster.wait(lambda: f"it is not made: {said(running)}", lambda: (applied.get().get("status") or {}).get("launcherUID"), MADE_S)
        write_document(applied, phase="running")
        applied.cluster.wait("it does not run", lambda: applied.state() == "Running", MADE_S)
        applied.cluster.wait("it has no launcher", lambda: launchers_of(applied), MADE_S)
        if not left:
            for each in workers_of(applied):
                api.delete("v1", "Pod", each["metadata"]["name"], applied.namespace, grace=0)
        api.patch_status("v1", "Pod", launchers_of(applied)[0]["metadata"]["name"], {"phase": "Succeeded"}, applied.namespace)
        applied.cluster.wait(lambda: f"it does not end: {said(running)}", lambda: applied.state() == "Succeeded", MADE_S)
        assert (applied.get()["status"]["reason"], applied.get()["status"]["exitStatus"]) == ("LauncherCompleted", 0)
        if left:
            applied.cluster.wait(lambda: f"they stay: {said(running)}", lambda: not workers_of(applied), MADE_S)
        else:
            applied.cluster.wait(lambda: f"it does not look for workers: {said(running)}", lambda: any(
                "status.phase" in path for _, _, path, _ in proxy.seen("GET")), MADE_S)
        running.signal(signal.SIGTERM)
        assert running.finish(MADE_S).rc == 0
        assert bool(api.get("batch/v1", "Job", "job", applied.namespace)) != left and applied.state() == "Succeeded"


def test_large_job_that_its_launcher_completes(applied, proxy):
    """The controller leaves the rest to it: these pods may be released before the controller has come to them."""
    cluster = applied.cluster
    with managing(applied, through=proxy) as running:
        begin_large(applied, proxy)
        cluster.wait("it makes no pod", lambda: workers_of(applied), MADE_S)
        cluster.api.make(copy_of(workers_of(applied)[0], f"job-w-{LARGE // 2}"))
        cluster.wait(lambda: f"it goes on: {said(running)}", lambda: "launcherUID" in applied.get()["status"], MADE_S)
        assert "its objects are made" in said(running) and len(workers_of(applied)) < LARGE
        assert not proxy.seen("DELETE")


def write_document(applied, name="job", **members):
    """As the job's launcher does."""
    uid = applied.cluster.api.get("batch/v1", "Job", name, applied.namespace)["metadata"]["uid"]
    document = {"apiVersion": API, "kind": "DraJobStatus", "name": name, "uid": uid, **members}
    path = applied.cluster.api.path("v1", "ConfigMap", applied.namespace, f"{name}-status")
    applied.cluster.api.ok("PATCH", path, {"data": {"status.json": json.dumps(document)}}, content="application/merge-patch+json")
    return uid


def end_job(applied, name="job"):
    write_document(applied, name, phase="failed", result="failed", exit=65, report={"status": 65, "cause": {"text": "bad image"}})


def tell_date(exchange):
    """Of a server whose clock is an hour ahead."""
    answer = exchange.ask()
    data = answer.read()
    date = f"Date: {email.utils.formatdate(time.time() + 3600, usegmt=True)}\r\n\r\n".encode()
    exchange.send(exchange.head(answer, length=len(data))[:-2] + date + data)


def test_clock_of_the_api_server(applied, proxy):
    """It counts, and not that of the controller's machine, which may have slept: in a status, and for a time to live. The proxy passes on
    no other Date."""
    cluster = applied.cluster
    proxy.fault(tell_date, lambda _, path: "watch=" not in path)
    with managing(applied, through=proxy):
        without_limit = {"allocation": "0", "nodes": "0"}  # its launcher starts so late by this clock
        assert applied.apply(command=["true"], ttlSecondsAfterFinished=1800, timeouts=without_limit) == ""
        cluster.wait("it is not made", lambda: "launcherUID" in (applied.get().get("status") or {}), MADE_S)
        begun = calendar.timegm(time.strptime(applied.get()["status"]["startTime"], "%Y-%m-%dT%H:%M:%SZ"))
        assert begun - time.time() > 3000
        write_document(applied, phase="failed", result="failed", exit=65, report={"status": 65, "cause": {"text": "bad image"}},
                       updated=time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()))
        cluster.wait(lambda: f"it stays: {applied.get()}", lambda: not applied.get(), MADE_S)


def test_clock_of_the_launcher(applied, proxy):
    """It is two hours slow: the time to live begins when the API server took the end all the same."""
    with managing(applied, through=proxy):
        assert applied.apply(command=["true"], ttlSecondsAfterFinished=3600) == ""
        applied.cluster.wait("it is not made", lambda: "launcherUID" in (applied.get().get("status") or {}), MADE_S)
        write_document(applied, phase="ended", result="failed", exit=65, report={"status": 65, "cause": {"text": "bad image"}},
                       updated=time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - 7200)))
        ended = applied.wait("Failed")
        assert ended["completionTime"] >= ended["startTime"]


def test_large_job_that_its_launcher_completes_without_a_controller(applied, proxy):
    """The controller was killed meanwhile: the next one does not start it over."""
    cluster = applied.cluster
    with managing(applied, through=proxy) as running:
        begin_large(applied, proxy)
        running.signal(signal.SIGKILL)
        running.process.wait()
    uid = write_document(applied, phase="placing")
    with controller(applied, "second") as running:
        cluster.wait(lambda: f"it does not take it: {said(running)}", lambda: applied.state() == "Placing", TAKE_OVER_S)
        assert applied.get()["status"]["launcherUID"] == uid


def test_large_job_that_ends_while_it_is_made(applied, proxy):
    """No pod appears after that, and the job is not made again."""
    cluster = applied.cluster
    with managing(applied, through=proxy):
        begin_large(applied, proxy)
        end_job(applied)
        cluster.wait(lambda: f"it does not end: {applied.get()['status']}", lambda: applied.state() == "Failed", MADE_S)
        asked = pods_asked(proxy)
        assert asked < LARGE and not proxy.seen("DELETE")
        time.sleep(2 * DELAY_S)
        assert pods_asked(proxy) == asked


def busy(exchange):
    exchange.answer(429, {"kind": "Status", "status": "Failure", "code": 429, "reason": "TooManyRequests", "message": "later"}, [("Retry-After", "1")])


def test_calls_under_way_when_a_large_job_ends(applied, proxy):
    """They are not repeated: a pod that they created then would have no launcher."""
    cluster, gate = applied.cluster, Gate(busy)
    with managing(applied, through=proxy):
        begin_large(applied, proxy, pods=gate)
        cluster.wait("it makes no more pods", lambda: len(gate.asked) == UNDER_WAY, MADE_S)
        before = documents_read(proxy)
        end_job(applied)
        cluster.wait("it does not read the document", lambda: documents_read(proxy) > before, MADE_S)
        gate.open()
        cluster.wait(lambda: f"it does not end: {applied.get()['status']}", lambda: applied.state() == "Failed", MADE_S)
        time.sleep(2 * DELAY_S)  # more than the answer asks for
        assert pods_asked(proxy) == UNDER_WAY


def test_pod_that_is_created_after_the_end_of_a_large_job(applied, proxy):
    """The API server had the call already when the controller gave it up, and its launcher has ended: it goes with the Job."""
    cluster, gate = applied.cluster, Gate()
    with managing(applied, through=proxy) as running:
        begin_large(applied, proxy, pods=gate)
        end_job(applied)
        cluster.wait(lambda: f"it does not end: {applied.get()['status']}", lambda: applied.state() == "Failed", MADE_S)
        gate.open()
        cluster.wait("no pod is created", lambda: workers_of(applied), MADE_S)
        cluster.wait(lambda: f"they stay: {said(running)}", lambda: not workers_of(applied), 4 * MADE_S)
        assert re.search(r"/job: \d+ pods were created after the job ended: deleting its Job", said(running))
        assert not cluster.api.get("batch/v1", "Job", "job", applied.namespace) and applied.state() == "Failed"


def stop_wanting(applied, way):
    api = applied.cluster.api
    if way == "deleted":
        api.delete(API, KIND, "job", applied.namespace)
    elif way == "suspended":
        applied.patch({"spec": {"suspend": True}})
    elif way == "cancelled":
        path = api.path("batch/v1", "Job", applied.namespace, "job")
        api.ok("PATCH", path, {"metadata": {"annotations": {"drarun.dev/cancel": "now"}}}, content="application/merge-patch+json")
    elif way == "ended":
        end_job(applied)
    else:
        api.delete("batch/v1", "Job", "job", applied.namespace)


@pytest.mark.parametrize("way", ["deleted", "suspended", "cancelled", "without its Job"])
def test_large_job_that_nobody_wants_any_more(applied, proxy, way):
    """The rest of it is not made. A launcher ends a job that is cancelled once no further pods appear."""
    cluster = applied.cluster

    def stands():
        asked = pods_asked(proxy)
        time.sleep(2 * DELAY_S)
        return pods_asked(proxy) == asked
    with managing(applied, through=proxy):
        begin_large(applied, proxy)
        stop_wanting(applied, way)
        cluster.wait("it goes on", stands, MADE_S)
        assert pods_asked(proxy) < LARGE
        if way in WANTED:
            cluster.wait(lambda: f"it is not {WANTED[way]}: {applied.get()}", lambda: applied.state() == WANTED[way], 4 * MADE_S)
        if way == "cancelled":
            cluster.wait("it is not left to its launcher", lambda: applied.get()["status"].get("launcherUID"), MADE_S)
            assert not proxy.seen("DELETE")


def over_quota(exchange):
    exchange.answer(403, {"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "exceeded quota: few"})


@pytest.mark.parametrize("way", ["suspended", "cancelled", "ended", "without its Job"])
def test_large_job_that_nobody_wants_any_more_after_a_failure(applied, proxy, way):
    """One of its pods was refused, others are under way: the job is not made again."""
    cluster, gate = applied.cluster, Gate(Exchange.drop)
    with managing(applied, through=proxy) as running:
        proxy.fault(over_quota, is_of_pods)
        begin_large(applied, proxy, pods=gate)
        cluster.wait("it makes no pods", lambda: pods_asked(proxy) > 1, MADE_S)
        stop_wanting(applied, way)
        if way == "cancelled":
            cluster.wait(lambda: f"it is not left to its launcher: {said(running)}", lambda: applied.get()["status"].get("launcherUID"), MADE_S)
        else:
            cluster.wait(lambda: f"it is not {WANTED[way]}: {applied.get()}", lambda: applied.state() == WANTED[way], MADE_S)
        assert jobs_asked(proxy) == 1 and "exceeded quota" not in said(running)
        gate.open()


WANTED = {"suspended": "Suspended", "ended": "Failed", "without its Job": "Cancelled"}


def test_large_job_is_suspended_during_the_look_at_it(applied, proxy):
    """Which asks for the document of its launcher."""
    cluster, gate = applied.cluster, Gate()
    with managing(applied, through=proxy):
        begin_large(applied, proxy)
        proxy.fault(gate, is_of_document)
        write_document(applied, phase="placing")
        cluster.wait("it does not read the document", lambda: gate.asked, MADE_S)
        time.sleep(1)  # what was begun before has come
        made = pods_asked(proxy)
        applied.patch({"spec": {"suspend": True}})
        time.sleep(2 * DELAY_S)  # it knows of that, and the calls under way are answered
        gate.open()
        cluster.wait("it is not suspended", lambda: applied.state() == "Suspended", 4 * MADE_S)
        assert pods_asked(proxy) == made


HELD = {"its first object": (is_of_jobs, b'"held"'),
        "its status": (lambda method, path: method == "PUT" and "/drajobs/held/status" in path, b""),
        "its spec": (lambda method, path: method == "GET" and "/drajobs?" in path and "name%3Dheld" in path, b"")}


@pytest.mark.parametrize("what", HELD)
def test_slow_answer_about_one_job_holds_up_no_other(applied, other, proxy, what):
    """Of its namespace or of another one: they are made, reported and ended while that call is under way. Of a namespace one spec is
    read at a time."""
    match, of = HELD[what]
    others = [other] if what == "its spec" else [applied, other]
    cluster, gate, log = applied.cluster, Gate(of=of), ""
    with managing(applied, through=proxy) as running:
        proxy.fault(gate, match, 10 ** 6)
        assert applied.apply("held", command=["true"]) == ""
        cluster.wait("it does not ask", lambda: gate.asked, MADE_S)
        for each in others:
            assert each.apply("free", command=["true"]) == ""
        for each in others:
            cluster.wait(lambda: f"it is not made: {said(running)}", lambda: f"{each.namespace}/free: its objects are made" in said(running), MADE_S)
        log = said(running)
        assert len(gate.asked) == 1 and f"{applied.namespace}/held: " not in log, log  # else the call was given up first
        for each in others:
            cluster.wait("it is not reported", lambda: (each.get("free").get("status") or {}).get("launcherUID"), MADE_S)
            end_job(each, "free")
            cluster.wait(lambda: f"it does not end: {said(running)}", lambda: each.state("free") == "Failed", MADE_S)
        assert "launcherUID" not in (applied.get("held").get("status") or {})
        gate.open()
        cluster.wait(lambda: f"it is not made: {said(running)}", lambda: f"{applied.namespace}/held: its objects are made" in said(running), MADE_S)


def test_large_job_is_suspended_while_another_one_is_held_back(applied, proxy):
    cluster, gate = applied.cluster, Gate(of=b'"small"')
    with managing(applied, through=proxy):
        begin_large(applied, proxy)
        proxy.fault(gate, is_of_jobs)
        assert applied.apply("small", command=["true"]) == ""
        cluster.wait("it does not make the small one", lambda: gate.asked, MADE_S)
        applied.patch({"spec": {"suspend": True}})
        cluster.wait("it is not suspended", lambda: applied.state() in ("Suspending", "Suspended"), MADE_S)
        assert len(gate.asked) == 1
        gate.open()
        cluster.wait("it is not suspended", lambda: applied.state() == "Suspended", 4 * MADE_S)


def test_end_while_a_document_is_awaited(applied, proxy):
    """The controller has nothing to finish."""
    cluster, gate = applied.cluster, Gate()
    with managing(applied, through=proxy) as running:
        assert applied.apply(command=["true"]) == ""
        cluster.wait("it is not made", lambda: (applied.get().get("status") or {}).get("launcherUID"), MADE_S)
        proxy.fault(gate, is_of_document, 10 ** 6)
        write_document(applied, phase="placing")
        cluster.wait("it does not read the document", lambda: gate.asked, MADE_S)
        running.signal(signal.SIGTERM)
        assert running.finish(MADE_S).rc == 0
        assert len(gate.asked) == 1, "the call was given up first"
        gate.open()


def test_specs_of_one_namespace_that_are_never_read(applied, other):
    """One at a time is read: that of another namespace is read beside them."""
    cluster, names = applied.cluster, ["slow-a", "slow-b", "slow-c"]
    for name in names:
        assert applied.apply(name, command=["true"], devices={"gpus": {"count": 1, "config": {"number": 0.1}}}) == ""
    with managing(applied, program=BUILD / "tests/programs/drarun_cluster_slow") as running:
        assert other.apply("whole", command=["true"]) == ""
        cluster.wait(lambda: f"it is not made: {said(running)}", lambda: "whole: its objects are made" in said(running), MADE_S)
        assert said(running).count("its spec is invalid") < len(names)
        cluster.wait(lambda: f"they are not refused: {said(running)}", lambda: all(applied.state(name) == "Invalid" for name in names), MADE_S)


def test_slow_list_of_leases_holds_up_no_job(applied, proxy):
    """Of the launchers of jobs that run, which is asked for now and then."""
    cluster, gate, asked = applied.cluster, threading.Event(), []

    def held(exchange):
        asked.append(exchange.path)
        gate.wait(MADE_S)
        exchange.forward()

    def is_led(name):
        return (applied.get(name).get("status") or {}).get("launcherUID")
    with controller(applied, through=proxy) as running:
        cluster.wait("it does not begin", lambda: "manages the DraJobs" in said(running), MADE_S)
        proxy.fault(held, lambda method, path: method == "GET" and "/leases?" in path and "drarun.dev" in path, 10 ** 6)
        assert applied.apply(command=["true"]) == ""
        cluster.wait("it does not look for silent launchers", lambda: asked, MADE_S)
        assert applied.apply("second", command=["true"]) == ""
        cluster.wait("the second job waits", lambda: is_led("second"), MADE_S)
        assert len(asked) == 1, "it was asked for again, after half a minute"
        gate.set()


def lease_of(applied, name):
    return applied.cluster.api.get("coordination.k8s.io/v1", "Lease", name, applied.namespace)


@contextlib.contextmanager
def own_controller(applied):
    """Of the namespace alone, with the account of that of all namespaces, which gets the right to a Lease there. It has the Lease."""
    api, there = applied.cluster.api, {"name": "own-lease", "namespace": applied.namespace}
    api.make({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": there, "rules": [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]}]}, {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": there,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "own-lease"},
            "subjects": [{"kind": "ServiceAccount", "name": HOME, "namespace": HOME}]})
    applied.cluster.wait("the role is not in force", lambda: applied.cluster.in_ns([
        applied.cluster.programs / "kubectl", "auth", "can-i", "create", "leases", "-n", applied.namespace,
        "--as", f"system:serviceaccount:{HOME}:{HOME}"]).returncode == 0, 30)
    with controller(applied, "own", scope=("-n", applied.namespace)) as running:
        applied.cluster.wait(lambda: f"it has no Lease: {said(running)}", lambda: lease_of(applied, HOME), MADE_S)
        yield running


def test_namespace_that_gets_a_controller_of_its_own(applied, other, proxy):
    """While one of its jobs is made: the controller of all namespaces leaves it, and its job runs once. Others are not concerned."""
    cluster, gate = applied.cluster, Gate(Exchange.drop, of=b'"job-w-')
    with managing(applied, through=proxy) as running:
        begin_large(applied, proxy, pods=gate)
        with own_controller(applied) as own:
            cluster.wait(lambda: f"it does not leave it: {said(running)}", lambda: f"namespace {applied.namespace} has a controller of its own" in said(running), MADE_S)
            cluster.wait(lambda: f"it is not made: {said(own)}", lambda: f"{applied.namespace}/job: its objects are made" in said(own), 4 * MADE_S)
            cluster.wait("its status does not say so", lambda: "launcherUID" in applied.get()["status"], MADE_S)
            assert applied.get()["status"]["launcherUID"] == cluster.api.get("batch/v1", "Job", "job", applied.namespace)["metadata"]["uid"]
            assert len(workers_of(applied)) == LARGE and "/job: its objects are made" not in said(running)
            assert other.apply("elsewhere", command=["true"]) == ""
            cluster.wait(lambda: f"it is not made: {said(running)}", lambda: f"{other.namespace}/elsewhere: its objects are made" in said(running), MADE_S)
            before = len(proxy.seen("PUT"))
            end_job(applied)
            cluster.wait(lambda: f"it does not end: {said(own)}", lambda: applied.state() == "Failed", MADE_S)
            assert not [path for _, _, path, _ in proxy.seen("PUT")[before:] if f"/{applied.namespace}/drajobs/" in path]
            assert "begins in 20 s" in said(own)
        with controller(applied, "own", scope=("-n", applied.namespace)) as own:
            cluster.wait(lambda: f"it does not begin: {said(own)}", lambda: "manages the DraJobs" in said(own), MADE_S)
            assert "begins in" not in said(own)
        gate.open()


def is_of_controllers(method, path):
    return method == "GET" and "/leases?" in path and "drarun.dev" not in path


def test_namespaces_that_cannot_be_asked_for(applied, proxy):
    """Another controller may make the job, so nothing begins until that is known. Without the right to ask, there is none."""
    cluster = applied.cluster
    proxy.fault(invalid, is_of_controllers, 10 ** 6)
    assert applied.apply(command=["true"]) == ""
    with controller(applied, through=proxy) as running:
        cluster.wait(lambda: f"it does not say so: {said(running)}", lambda: "cannot find out which namespaces have a controller of their own" in said(running), 4 * MADE_S)
        assert "manages the DraJobs" not in said(running) and "status" not in applied.get()
        proxy.faults.clear()
        cluster.wait(lambda: f"it is not made: {said(running)}", lambda: f"{applied.namespace}/job: its objects are made" in said(running), 2 * MADE_S)
    proxy.fault(forbidden, is_of_controllers, 10 ** 6)
    with managing(applied, "second", through=proxy) as running:
        assert applied.apply("second", command=["true"]) == ""
        cluster.wait(lambda: f"it is not made: {said(running)}", lambda: f"{applied.namespace}/second: its objects are made" in said(running), 2 * MADE_S)


def forbidden(exchange):
    exchange.answer(403, {"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "no role allows it"})


def test_namespaces_that_cannot_be_asked_for_any_more(applied, proxy):
    """One of them may have got a controller of its own since: of no job anything is created until that is known, nor deleted. What has
    its objects goes on."""
    cluster, gate = applied.cluster, Gate()
    with managing(applied, through=proxy) as running:
        assert applied.apply("made", command=["true"]) == ""
        cluster.wait("it is not made", lambda: (applied.get("made").get("status") or {}).get("launcherUID"), MADE_S)
        proxy.fault(gate, is_of_controllers, 10 ** 6)
        cluster.wait("it does not ask", lambda: gate.asked, MADE_S)
        time.sleep(11)  # as long as the list before counts
        asked = jobs_asked(proxy)
        assert applied.apply(command=["true"]) == ""
        end_job(applied, "made")
        cluster.wait(lambda: f"it does not end: {said(running)}", lambda: applied.state("made") == "Failed", MADE_S)
        assert jobs_asked(proxy) == asked
        gate.open()
        cluster.wait(lambda: f"it is not made: {said(running)}", lambda: "/job: its objects are made" in said(running), MADE_S)


@pytest.mark.parametrize("held", ["just taken", "for long"])
def test_lease_that_an_own_controller_left(applied, held):
    """Its holder died. The controller of all namespaces has seen a Lease that was held for long, and leaves the namespace."""
    def at(ago_s):
        return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(time.time() - ago_s))
    applied.cluster.api.make({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {
        "name": HOME, "namespace": applied.namespace, "labels": {"app.kubernetes.io/name": HOME}}, "spec": {
            "holderIdentity": "", "leaseDurationSeconds": 15, "acquireTime": at(5 if held == "just taken" else 600), "renewTime": at(1)}})
    with own_controller(applied) as own:
        applied.cluster.wait(lambda: f"it does not begin: {said(own)}", lambda: "manages the DraJobs" in said(own), MADE_S)
        assert ("begins in 20 s" in said(own)) == (held == "just taken"), said(own)


def test_namespace_whose_own_controller_goes(applied):
    """Once it has not renewed its Lease for a minute. The controller of all namespaces begins when it is there already."""
    def lease(ago_s):
        at = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(time.time() - ago_s))
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {
            "name": HOME, "namespace": applied.namespace, "labels": {"app.kubernetes.io/name": HOME}},
                "spec": {"holderIdentity": "own_1", "leaseDurationSeconds": 15, "renewTime": at}}
    cluster = applied.cluster
    cluster.api.make(lease(-600))  # its clock is ahead
    assert applied.apply(command=["true"]) == ""
    with managing(applied) as running:
        assert f"namespace {applied.namespace} has a controller of its own" in said(running)
        cluster.api.delete("coordination.k8s.io/v1", "Lease", HOME, applied.namespace)
        cluster.api.make(lease(61))
        cluster.wait(lambda: f"it is not made: {said(running)}", lambda: f"{applied.namespace}/job: its objects are made" in said(running), MADE_S)
        log = said(running)
        assert log.index("has no controller of its own any more") < log.index("/job: its objects are made")


def in_pages(exchange):
    exchange.answer(422, {"kind": "Status", "status": "Failure", "code": 422, "reason": "Invalid", "message": "sendInitialEvents is forbidden"})


@pytest.mark.plain("memory of the plain build is the limit")
@pytest.mark.parametrize("way", ["streamed", "in pages"])
def test_many_small_values_of_strangers(applied, proxy, way):
    """They take thirty times their text: in DraJobs of another manager and in suspended ones, and as the owners of what has the
    label of a job's parts."""
    cluster, namespace = applied.cluster, applied.namespace
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": f"{i:x}"} for i in range(4_000)]
    for i in range(12):
        more = {"suspend": True} if i == 0 else {"managedBy": "example.com/other"}
        cluster.api.make({"apiVersion": API, "kind": KIND, "metadata": {"name": f"large-{i}", "namespace": namespace}, "spec": {
            "workers": 1, "image": "a", "command": ["true"], "args": [""] * 100_000, **more}}, {
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {
                    "name": f"owned-{i}", "namespace": namespace, "labels": {"drarun.dev/job": f"owned-{i}"}, "ownerReferences": owners}})
    if way == "in pages":
        proxy.fault(in_pages, lambda method, path: "sendInitialEvents" in path, 10 ** 6)
    with managing(applied, through=proxy) as running:
        assert applied.apply(command=["true"]) == ""
        cluster.wait("it makes nothing", lambda: "job: its objects are made" in said(running), MADE_S)
        cluster.wait("it reads no large one", lambda: applied.state("large-0"), MADE_S)
        assert peak_memory_kib(running.process.pid) < 96 * 1024
