# SPDX-License-Identifier: Apache-2.0
"""Requests of a test to the API server, which may be in another network namespace."""
import ctypes
import http.client
import json
import os
import socket
import ssl
import threading
import time

from ..build import SLOW_BUILD, patience

CLONE_NEWNET = 0x40000000
REQUEST_S = patience(30)
IDLE_S = 30  # the server closes a connection on which nothing came for 90 s
_libc = ctypes.CDLL(None, use_errno=True)


def connect_in(pid, address, timeout):
    """A TCP connection made in the network namespace of process pid (None: in ours)."""
    return in_network(pid, lambda: socket.create_connection(address, timeout))


def connection_in(pid, address, tls):
    return _Connection(pid, address, tls)


def in_network(pid, make):
    """What make() gives, a socket, in the network namespace of process pid. A thread of its own enters it, as a
    namespace belongs to a thread; the socket stays in it."""
    if pid is None:
        return make()
    answer = []

    def work():
        try:
            with open(f"/proc/{pid}/ns/net") as namespace:
                if _libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), namespace.name)
            answer.append(make())
        except OSError as error:
            answer.append(error)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if isinstance(answer[0], OSError):
        raise answer[0]
    return answer[0]


class _Connection(http.client.HTTPSConnection):
    def __init__(self, pid, address, tls):
        super().__init__(*address, timeout=REQUEST_S, context=tls)
        self.pid, self.address, self.tls = pid, address, tls

    def connect(self):
        connection = connect_in(self.pid, self.address, REQUEST_S)
        # head and body go out one by one: the second would wait 40 ms for the first one's acknowledgement
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = self.tls.wrap_socket(connection, server_hostname="localhost")


class Api:
    """One user's requests. request(method, path, body) gives (status, answer)."""

    def __init__(self, address, authority, certificate=None, token=None, pid=None):
        self.address, self.pid, self.token = address, pid, token
        self.tls = ssl.create_default_context(cafile=authority)
        if certificate:
            self.tls.load_cert_chain(f"{certificate}.crt", f"{certificate}.key")
        self.connection, self.used = None, 0
        self.kinds = {}

    def _exchange(self, method, path, body, headers):
        if self.connection is None:
            self.connection = _Connection(self.pid, self.address, self.tls)
        try:
            self.connection.request(method, path, body, headers)
            answer = self.connection.getresponse()
            text = answer.read().decode()
            self.used = time.monotonic()
            return answer.status, text
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def request(self, method, path, body=None, content="application/json", accept="application/json"):
        headers = {"User-Agent": "drarun-test", "Accept": accept}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            headers["Content-Type"] = content
            body = json.dumps(body, separators=(",", ":"), sort_keys=True)  # as kubectl: docs/design/010-claims.md
        if self.connection and time.monotonic() - self.used > IDLE_S:
            self.close()
        fresh = self.connection is None
        try:
            status, text = self._exchange(method, path, body, headers)
        except (OSError, http.client.HTTPException):
            if fresh or method != "GET":
                raise
            status, text = self._exchange(method, path, body, headers)  # the server closed an idle connection
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text

    def ok(self, method, path, body=None, **how):
        """The answer, with a status of 2xx."""
        status, answer = self.request(method, path, body, **how)
        assert 200 <= status < 300, f"{method} {path}: {status}: {_message(answer)}"
        return answer

    def plural(self, api_version, kind):
        """("/apis/batch/v1", "jobs", namespaced), or None where the server has no such kind now."""
        if (api_version, kind) not in self.kinds:
            root = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
            status, answer = self.request("GET", root)
            for each in answer["resources"] if status == 200 else ():
                if "/" not in each["name"]:
                    self.kinds[api_version, each["kind"]] = root, each["name"], each["namespaced"]
        return self.kinds.get((api_version, kind))

    def path(self, api_version, kind, namespace=None, name=None):
        found = self.plural(api_version, kind)
        assert found, f"the server knows no {api_version} {kind}"
        root, plural, namespaced = found
        where = f"{root}/namespaces/{namespace or 'default'}/{plural}" if namespaced else f"{root}/{plural}"
        return f"{where}/{name}" if name else where

    def create(self, manifest, dry_run=False):
        """The server's answer to creating it; unknown and doubled fields are errors."""
        where = self.path(manifest["apiVersion"], manifest["kind"], manifest["metadata"].get("namespace"))
        return self.request("POST", f"{where}?fieldValidation=Strict{'&dryRun=All' if dry_run else ''}", manifest)

    def make(self, *manifests):
        """Creates them all; the last one as the server made it."""
        made = None
        for manifest in manifests:
            status, made = self.create(manifest)
            assert status == 201, f"{manifest['kind']} {manifest['metadata'].get('name')}: {status}: {_message(made)}"
        return made

    def get(self, api_version, kind, name=None, namespace=None):
        """The object, or the list of objects without a name; None where it is not there."""
        deadline = time.monotonic() + patience(60)
        status, answer = self.request("GET", self.path(api_version, kind, namespace, name))
        while status == 429 and time.monotonic() < deadline:  # as while a new definition is taken up
            time.sleep(0.5)
            status, answer = self.request("GET", self.path(api_version, kind, namespace, name))
        if status == 404:
            return None
        assert status == 200, f"{kind} {name}: {status}: {_message(answer)}"
        return answer if name else answer["items"]

    def delete(self, api_version, kind, name, namespace=None, grace=None, propagation="Background"):
        options = {"propagationPolicy": propagation}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        status, answer = self.request("DELETE", self.path(api_version, kind, namespace, name), options)
        assert status in (200, 202, 404), f"{kind} {name}: {status}: {_message(answer)}"

    def patch_status(self, api_version, kind, name, status, namespace=None):
        return self.ok("PATCH", self.path(api_version, kind, namespace, name) + "/status", {"status": status},
                       content="application/merge-patch+json")

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None


def _message(answer):
    return answer.get("message", answer) if isinstance(answer, dict) else answer


LOOK_S, LATER_S = 0.05, 0.4


def wait(what, condition, seconds, pause=None):
    """condition()'s first true answer. what: a text, or what gives one when time is over: after patience(seconds). pause: between two
    looks; None: short at first, and longer later, since each look costs a request or more."""
    seconds = patience(seconds)
    begin = time.monotonic()
    while True:
        answer = condition()
        if answer:
            return answer
        waited = time.monotonic() - begin
        if waited > seconds:
            raise AssertionError(f"after {seconds} s: {what() if callable(what) else what}")
        time.sleep(pause or min(max(LOOK_S, waited / 12), LATER_S))


def never(what, condition, seconds):
    """Looks for so long that what would make condition() true had come; fails with what it gives."""
    end = time.monotonic() + seconds * SLOW_BUILD
    while time.monotonic() < end:
        answer = condition()
        assert not answer, f"{what}: {answer}"
        time.sleep(0.2)
