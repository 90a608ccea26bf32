# SPDX-License-Identifier: Apache-2.0
"""A TLS proxy before a real API server that makes faults: HTTP/1.1 on both sides, a certificate of its own."""
import http.client
import json
import re
import socket
import ssl
import struct
import threading
import time

from .cluster.api import connection_in, in_network
from .ports import free_port


def kubeconfig(path, server, user, cluster=None, namespace="default"):
    """Writes one with one context, with more fields of its cluster than support.cluster's; returns its path."""
    path.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u", "namespace": namespace}}],
        "clusters": [{"name": "c", "cluster": {"server": server, **(cluster or {})}}],
        "users": [{"name": "u", "user": user}]}))
    return path


def reset(connection):
    """Ends it with RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class Fault:
    """What happens to the next `times` requests that match (method, path)."""

    def __init__(self, action, match=None, times=1):
        self.action, self.match, self.left = action, match or (lambda method, path: True), times


class Dropped(Exception):
    pass


class Exchange:
    """One request of a client, for a fault's action."""

    def __init__(self, proxy, client, method, path, headers, body):
        self.proxy, self.client, self.method, self.path, self.headers, self.body = \
            proxy, client, method, path, headers, body

    def send(self, data):
        self.client.sendall(data)

    def drop(self):
        raise Dropped

    def lose(self):
        """Processed, and the answer lost."""
        self.ask().read()
        self.drop()

    def ask(self):
        """The real server's answer, its body unread."""
        upstream = self.proxy.connect()
        self.proxy.upstreams.append(upstream)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "accept-encoding")}
        upstream.request(self.method, self.path, body=self.body or None, headers=headers)
        return upstream.getresponse()

    def head(self, answer, chunked=False, length=None):
        lines = [f"HTTP/1.1 {answer.status} {answer.reason}"]
        for name in ("Content-Type", "Retry-After"):
            if answer.headers.get(name):
                lines.append(f"{name}: {answer.headers[name]}")
        lines.append("Transfer-Encoding: chunked" if chunked else f"Content-Length: {length}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def answer(self, status, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"HTTP/1.1 {status} X", "Content-Type: application/json", f"Content-Length: {len(data)}"]
        lines += [f"{name}: {value}" for name, value in headers]
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode() + data)

    def chunk(self, data):
        self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def forward(self, cut_after=None):
        """A watch or log as it comes, ended with a reset after so many bytes; else the whole answer."""
        answer = self.ask()
        if not answer.chunked:
            data = answer.read()
            self.send(self.head(answer, length=len(data)) + data)
            return
        self.send(self.head(answer, chunked=True))
        sent = 0
        while True:
            data = answer.read1(65536)
            if not data:
                self.send(b"0\r\n\r\n")
                return
            if cut_after is not None and sent + len(data) >= cut_after:
                self.chunk(data[:max(1, cut_after - sent)])
                raise Dropped
            self.chunk(data)
            sent += len(data)


class ApiProxy:
    """upstream: the real server's port. keys: an Authority (support.cluster.keys) with a pair "proxy"."""

    host = "127.0.0.1"

    def __init__(self, upstream, keys):
        self.upstream = upstream
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(keys / "proxy.crt", keys / "proxy.key")
        self.client_tls = ssl.create_default_context(cafile=keys / "ca.crt")
        self.requests = []  # (monotonic, method, path, headers)
        self.faults = []
        self.connection_faults = []  # "accept" or "tls"
        self.connections = set()
        self.upstreams = []
        self.lock = threading.Lock()
        self.port = free_port(self.socket, self.host)  # which is its own while it is down, too
        self.up()

    @property
    def url(self):
        return f"https://{self.host}:{self.port}"

    def connect(self):
        """To the real server; not connected yet."""
        return http.client.HTTPSConnection("127.0.0.1", self.upstream, timeout=600, context=self.client_tls)

    def socket(self):
        return socket.socket()

    def up(self):
        self.listener = self.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((self.host, self.port))
        self.listener.listen(64)
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def down(self):
        """Refuses connections and resets those that there are."""
        try:
            self.listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
        except OSError:
            pass
        self.listener.close()
        self.cut()

    def cut(self):
        with self.lock:
            connections, upstreams = list(self.connections), list(self.upstreams)
            self.upstreams.clear()
        for each in connections:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for each in upstreams:
            if each.sock:
                try:
                    each.sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def fault(self, action, match=None, times=1):
        self.faults.append(Fault(action, match, times))

    def seen(self, method=None):
        return [each for each in self.requests if method in (None, each[1])]

    def _accept(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            # head and pieces go out one by one: each would wait 40 ms for the acknowledgement of the one before
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        stage = self.connection_faults.pop(0) if self.connection_faults else None
        if stage == "accept":
            reset(connection)
            return
        if stage == "tls":
            connection.recv(10)
            reset(connection)
            return
        with self.lock:
            self.connections.add(connection)
        client = None
        try:
            client = self.tls.wrap_socket(connection, server_side=True)
            with self.lock:
                self.connections.discard(connection)
                self.connections.add(client)
            reader = client.makefile("rb")
            while self._one(client, reader):
                pass
        except (Dropped, OSError, http.client.HTTPException, ValueError, AttributeError):
            pass  # AttributeError: http.client when cut() took its socket away
        finally:
            with self.lock:
                self.connections.discard(connection)
                self.connections.discard(client)
            (client or connection).close()

    def _one(self, client, reader):
        line = reader.readline().decode()
        if not line.strip():
            return False
        method, path, _ = line.split()
        headers = http.client.parse_headers(reader)
        body = reader.read(int(headers.get("Content-Length", 0)))
        self.requests.append((time.monotonic(), method, path, dict(headers.items())))
        exchange = Exchange(self, client, method, path, headers, body)
        self._action(method, path)(exchange)
        return True

    def _action(self, method, path):
        with self.lock:
            for each in self.faults:
                if each.left > 0 and each.match(method, path):
                    each.left -= 1
                    return each.action
        return Exchange.forward

    def serve_only(self, group, versions):
        """From now on the server has no other versions of the group: they are hidden in what it says that it serves, and
        nothing is at their paths."""
        def discovery(exchange):
            answer = exchange.ask()
            found = json.loads(answer.read())
            for each in found["items"]:
                if each["metadata"].get("name") == group:
                    each["versions"] = [served for served in each["versions"] if served["version"] in versions]
            found["items"] = [each for each in found["items"] if each["versions"]]
            body = json.dumps(found).encode()
            exchange.send(exchange.head(answer, length=len(body)) + body)

        def there(exchange):
            version = re.match(f"/apis/{group}/([^/]+)", exchange.path)
            if version and version[1] not in versions:
                return exchange.answer(404, "404 page not found\n".encode())
            return Exchange.forward(exchange)
        self.fault(discovery, lambda _, path: path == "/apis", 10 ** 6)
        self.fault(there, times=10 ** 6)

    def versions_asked(self, group):
        return {path.split("/")[3] for _, _, path, _ in self.requests if path.startswith(f"/apis/{group}/")}

    def close(self):
        self.down()


class NodesProxy(ApiProxy):
    """Before the API server of a cluster with nodes, in the network namespace from which the pods are reached, too;
    for_nodes: at the address at which nodes reach the server."""

    def __init__(self, cluster, for_nodes=False):
        self.network = cluster.network
        if for_nodes:
            self.host = cluster.network.api
        if not (cluster.keys.folder / "proxy.crt").exists():
            cluster.keys.sign("proxy", "/CN=proxy", ["IP:127.0.0.1", f"IP:{cluster.network.api}"])
        super().__init__(cluster.network.api_port, cluster.keys.folder)

    def connect(self):
        return connection_in(self.network.pid, (self.network.api, self.upstream), self.client_tls)

    def socket(self):
        return in_network(self.network.pid, socket.socket)


class Wire:
    """A proxy of bytes before a server's port, such as a load balancer that knows nothing of TLS: HTTP/2 goes through."""

    def __init__(self, port):
        self.to, self.hushed, self.open = port, [], []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def hush(self):
        """The connections that there are stay up, and nothing comes through any more: what is sent is acknowledged here."""
        self.hushed += self.open

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            pair = (client, socket.create_connection(("127.0.0.1", self.to)))
            self.open.append(pair)
            for one, other in (pair, pair[::-1]):
                threading.Thread(target=self._pass, args=(pair, one, other), daemon=True).start()

    def _pass(self, pair, one, other):
        try:
            while data := one.recv(65536):
                if pair not in self.hushed:
                    other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the other direction has ended it

    def close(self):
        self.listener.close()
        for pair in self.open:
            for each in pair:
                each.close()
