# SPDX-License-Identifier: Apache-2.0
"""An API server that stores objects and serves watches. It has no controllers and no nodes: the test makes each change
itself, when it wants it."""
import bisect
import collections
import contextlib
import copy
import functools
import http.server
import json
import operator
import threading
import time
import urllib.parse

from .build import patience

NAMESPACE = "default"


def path_of(kind, name, namespace=NAMESPACE):
    """path_of("pods", "a"), path_of("batch/v1/jobs", "a")"""
    group, _, plural = kind.rpartition("/")
    return f"/{f'apis/{group}' if group else 'api/v1'}/namespaces/{namespace}/{plural}/{name}"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body go out one by one: the second would wait 40 ms for the first one's acknowledgement
    server: "Registry"

    def parse_request(self):
        parsed = super().parse_request()
        held = parsed and self.server.held.get((self.command, self.path.partition("?")[0]))
        if held:
            held.count += 1
            held.wait(patience())
        return parsed

    def date_time_string(self, timestamp=None):
        return super().date_time_string((timestamp or time.time()) + self.server.ahead)

    def answer(self, code, body):
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if code == 201 and self.server.warning:
            self.send_header("Warning", f'299 - "{self.server.warning}"')
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, code, reason, message):
        self.answer(code, {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message})

    def none(self):
        self.refuse(404, "NotFound", "not there")

    def is_refused(self, what=None):
        """what: the method by itself."""
        refused = (what or self.command) in self.server.refused
        if self.command in self.server.busy:
            self.refuse(503, "ServiceUnavailable", "the registry cannot do that now")
            return True
        if refused:
            self.refuse(403, "Forbidden", "the registry says no")
        return refused

    def found(self, it):
        if it is None:
            self.none()
        else:
            self.answer(200, it)

    def body(self):
        return json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"{}")

    def stream(self, pieces):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with contextlib.suppress(OSError):  # its reader may go at any time
            for piece in pieces:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")

    def do_GET(self):
        path, _, query = self.path.partition("?")
        query = {key: values[0] for key, values in urllib.parse.parse_qs(query).items()}
        time.sleep(self.server.delay)
        if path in ("/api", "/apis"):
            self.answer(200, {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
                              "items": self.server.groups if path == "/apis" else []})
        elif path == "/version":
            self.answer(200, {"major": "1", "minor": "36"})
        elif path.endswith("/log"):
            log = self.server.logs.get(path.split("/")[-2])
            if self.is_refused("log"):
                return
            self.none() if log is None else self.stream(_stamped(log()))
        elif "watch" in query:
            self.stream(self.server.changes(path, query))
        elif _is_collection(path):
            self.server.lists.append((path, query))
            self.answer(200, {"kind": "List", "metadata": {"resourceVersion": str(self.server.version)},
                              "items": self.server.matching(path, query)})
        else:
            self.server.reads[path] += 1
            self.found(self.server.objects.get(path))

    def do_POST(self):
        time.sleep(self.server.delay)
        made = self.body()
        path, _, query = self.path.partition("?")
        path = f"{path}/{made['metadata']['name']}"
        with self.server.changed:
            exists = path in self.server.objects
            if not exists and "dryRun=" not in query:
                self.server.admit(path, made)
                made = self.server.put(path, made)
        if exists:
            return self.refuse(409, "AlreadyExists", "there already")
        self.server.answering.wait(patience())
        if path in self.server.lost:
            self.server.lost.discard(path)
            self.close_connection = True
        else:
            self.answer(201, made)

    def do_PATCH(self):
        path, patch = self.path.partition("?")[0], self.body()
        if self.is_refused():
            return
        with self.server.changed:
            found = copy.deepcopy(self.server.objects.get(path))
        if found is None:
            return self.none()
        if not isinstance(patch, list):
            for key, value in patch.items():
                _merge(found.setdefault(key, {}), value)
        elif not _apply(found, patch):
            return self.refuse(422, "Invalid", "the patch does not fit")
        self.answer(200, self.server.put(path, found))

    def do_PUT(self):
        path, sent = self.path.partition("?")[0], self.body()
        if self.is_refused():
            return
        with self.server.changed:
            found = self.server.objects.get(path.removesuffix("/status"))
            same = found and sent["metadata"].get("resourceVersion") == found["metadata"]["resourceVersion"]
            if path.endswith("/status"):
                path, sent = path.removesuffix("/status"), {**(found or {}), "status": sent.get("status")}
            made = self.server.put(path, sent) if same else None
        if same:
            self.answer(200, made)
        elif found:
            self.refuse(409, "Conflict", "it was changed")
        else:
            self.none()

    def do_DELETE(self):
        options = self.body()
        now = options.get("gracePeriodSeconds") == 0
        if self.is_refused():
            return None
        path, _, query = self.path.partition("?")
        if not _is_collection(path):
            return self.delete_one(path, options.get("preconditions", {}))
        query = {key: values[0] for key, values in urllib.parse.parse_qs(query).items()}
        for each in self.server.matching(path, query):
            name = each["metadata"]["name"]
            if name in self.server.silent and not now:
                self.server.put(f"{path}/{name}", {**each, "metadata": {**each["metadata"], "deletionTimestamp": "2026-11-21T15:24:42Z"}})
            else:
                self.server.remove(f"{path}/{name}")
        self.answer(200, {"kind": "Status", "status": "Success"})

    def delete_one(self, path, preconditions):
        with self.server.changed:
            found = self.server.objects.get(path)
            same = not found or all(found["metadata"][key] == value for key, value in preconditions.items())
            gone = self.server.remove(path) if same else None
        if same:
            self.found(gone)
        else:
            self.refuse(409, "Conflict", "the preconditions do not hold")

    def log_message(self, *_):
        pass


def _apply(found, patch):
    """A JSON patch of tests and removals. False: it does not fit."""
    for step in patch:
        *way, last = [int(key) if key.isdigit() else key for key in step["path"][1:].split("/")]
        try:
            at = functools.reduce(operator.getitem, way, found)
            if step["op"] == "test" and at[last] != step["value"]:
                return False
            if step["op"] == "remove":
                del at[last]
        except (KeyError, IndexError):
            return False
    return True


def _merge(into, patch):
    for key, value in patch.items():
        if isinstance(value, dict):
            _merge(into.setdefault(key, {}), value)
        else:
            into[key] = value


class Held(threading.Event):
    """Of requests that wait until it is set. .count: of those that have come."""

    def __init__(self):
        super().__init__()
        self.count = 0


class Registry(http.server.ThreadingHTTPServer):
    """.objects by path; .logs[pod]: a function that yields the pieces of its log, of whole lines, while the pod is there. .refused: of "PATCH", "PUT", "DELETE" and "log".
    .busy: the same, of what it cannot do now.
    .admit(path, object): changes an object before it is made, as a webhook.
    .reads[path]: how often an object was asked for. .lists: (path, query) of each list that was.
    .silent: names of pods whose node does not answer: they stay until they are deleted without it.
    .groups: of the discovery's answer, beside what every API server has.
    .answering: cleared, what is made is there and its maker does not know.
    .ahead: seconds by which its clock is ahead of ours.
    .warning: what its answer to each creation warns of, as Pod Security does.
    .lost: paths of objects: the next one that is made there is, and the connection breaks before the answer."""

    daemon_threads = True
    request_queue_size = 128  # a launcher opens 64 connections at once; one that is not taken is tried again after half a minute

    def __init__(self, delay=0.0, port=0):
        super().__init__(("127.0.0.1", port), _Handler)
        self.delay, self.version, self.closed, self.refused = delay, 1, False, set()
        self.objects, self.logs, self.events, self.changed = {}, {}, [], threading.Condition()
        self.reads, self.held, self.lists = collections.Counter(), {}, []
        self.told = {}  # by watch: up to which version all was sent
        self.busy = set()
        self.groups, self.silent, self.lost, self.ahead, self.warning = [], set(), set(), 0, ""
        self.admit = lambda path, made: None
        self.answering = threading.Event()
        self.answering.set()
        self.put(path_of("serviceaccounts", "drarun-launcher"), {"metadata": {}})

    def hold(self, method, path):
        """From now on such requests are neither processed nor answered until what this returns is set."""
        return self.held.setdefault((method, path), Held())

    def put(self, path, made):
        """Adds it, or changes it."""
        with self.changed:
            before = self.objects.get(path)
            self.version += 1
            name = path.rsplit("/", 1)[1]
            made["metadata"] = {"uid": f"uid-{self.version}", "name": name, "namespace": NAMESPACE, **made["metadata"],
                                "resourceVersion": str(self.version)}
            self._tell(path, "MODIFIED" if before else "ADDED", made)
            self.objects[path] = made
            return made

    def handle_error(self, request, client_address):
        """A client that is killed leaves its answer."""

    def remove(self, path):
        with self.changed:
            gone = self.objects.pop(path, None)
            if gone is not None:
                self.logs.pop(path.rsplit("/", 1)[1], None)
                self.version += 1
                gone["metadata"]["resourceVersion"] = str(self.version)
                self._tell(path, "DELETED", gone)
            return gone

    def wait(self, path):
        """The object, once it is there."""
        with self.changed:
            assert self.changed.wait_for(lambda: path in self.objects, patience()), f"{path} is not made"
            return self.objects[path]

    def _tell(self, path, type, it):
        self.events.append((self.version, path, type, copy.deepcopy(it)))
        self.changed.notify_all()

    def is_known(self, made):
        """Everyone who watches has read of that change, which put() returned: it was sent, and no connection has bytes that nobody
        has read."""
        version, port = int(made["metadata"]["resourceVersion"]), f"{self.server_address[1]:04X}"
        with self.changed:
            if any(told < version for told in self.told.values()):
                return False
        with open("/proc/net/tcp", encoding="ascii") as connections:
            rows = [line.split() for line in connections][1:]
        return all(queues == "00000000:00000000" for _, local, remote, _, queues, *_ in rows if port in (local[-4:], remote[-4:]))

    def matching(self, path, query):
        with self.changed:
            return [copy.deepcopy(each) for at, each in self.objects.items() if _is_wanted(at, each, path, query)]

    def changes(self, path, query):
        """The pieces of a watch."""
        seen, reader = int(query.get("resourceVersion") or 0), object()
        try:
            with self.changed:
                self.told[reader] = 0
                if query.get("sendInitialEvents") == "true":
                    for each in self.matching(path, query):
                        yield _line("ADDED", each)
                    seen = self.version
                    yield _line("BOOKMARK", {"metadata": {"resourceVersion": str(seen),
                                                          "annotations": {"k8s.io/initial-events-end": "true"}}})
            while not self.closed:
                with self.changed:
                    self.told[reader] = seen
                    self.changed.wait_for(lambda: self.closed or self.version > seen, 1)
                    new = self.events[bisect.bisect_right(self.events, seen, key=lambda each: each[0]):]
                    seen = self.version
                for _, at, type, it in new:
                    if _is_wanted(at, it, path, query):
                        yield _line(type, it)
        finally:
            with self.changed:
                del self.told[reader]

    @contextlib.contextmanager
    def serving(self):
        thread = threading.Thread(target=self.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield self
        finally:
            self.closed = True
            self.answering.set()
            for each in self.held.values():
                each.set()
            with self.changed:
                self.changed.notify_all()
            self.shutdown()
            thread.join()
            self.server_close()

    def kubeconfig(self, folder):
        path = folder / "kubeconfig"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "a", "users": [{"name": "a", "user": {}}],
            "clusters": [{"name": "a", "cluster": {"server": f"http://127.0.0.1:{self.server_address[1]}"}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}]}))
        return path


def _stamped(pieces):
    """With the kubelet's times before the lines, which are the same whenever the log is read."""
    count = 0
    for piece in pieces:
        lines = piece.splitlines(keepends=True)
        yield b"".join(b"2026-11-21T15:24:42.%09dZ %s" % (count + i, line) for i, line in enumerate(lines, 1))
        count += len(lines)


def _line(type, it):
    return json.dumps({"type": type, "object": it}).encode() + b"\n"


def _is_collection(path):
    return path.count("/") == 5 + path.startswith("/apis/")


def _is_wanted(at, it, collection, query):
    labels = it["metadata"].get("labels", {})
    field = query.get("fieldSelector", "").partition("metadata.name=")[2]
    for wanted in filter(None, query.get("labelSelector", "").split(",")):
        key, equal, value = wanted.partition("=")
        if key not in labels or (equal and labels[key] != value):
            return False
    return at.rsplit("/", 1)[0] == collection and (not field or it["metadata"]["name"] == field)
