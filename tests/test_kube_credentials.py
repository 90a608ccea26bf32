# SPDX-License-Identifier: Apache-2.0
"""As whom lib/kube speaks to a real API server, and what it says when that fails."""
import base64
import datetime
import errno
import json
import os
import pty
import select
import socket
import subprocess
import threading
import time

import pytest

from support.api_proxy import kubeconfig
from support.build import patience
from support.kube_fixtures import admin_token, cluster, probe_of, proxy  # noqa: F401
from support.kube_probe import PROGRAM

WHO = {"do": "request", "method": "POST", "path": "/apis/authentication.k8s.io/v1/selfsubjectreviews",
       "body": {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}}
ADMIN = "system:serviceaccount:default:kube-test-admin"


def who(probe, **more):
    answer = probe.ask(**WHO, **more)
    assert answer["err"] is None, answer["err"]["text"]
    return answer["body"]["status"]["userInfo"]["username"]


def data(path):
    return base64.b64encode(path.read_bytes()).decode()


@pytest.fixture
def config_of(cluster, tmp_path):
    """config_of(user, cluster fields) writes a kubeconfig for the real server."""
    def write(user, more=None, server=None, name="config"):
        return kubeconfig(tmp_path / name, server or cluster.plane.server, user,
                          {"certificate-authority-data": data(cluster.keys.folder / "ca.crt")} if more is None else more)
    return write


def refused(*args, env=None):
    """What the program says when it does not begin."""
    run = subprocess.run([PROGRAM, *map(str, args)], input="", capture_output=True, text=True, timeout=patience(),
                         env=env)
    assert run.returncode == 1, run
    return run.stderr.strip()


def test_client_certificate_as_data(cluster, config_of, probe_of):
    keys = cluster.keys.folder
    path = config_of({"client-certificate-data": data(keys / "admin.crt"), "client-key-data": data(keys / "admin.key")})
    assert who(probe_of("--kubeconfig", path)) == "admin"


def test_impersonation(cluster, config_of, probe_of, admin_token):
    path = config_of({"token": admin_token, "as": "somebody", "as-groups": ["system:authenticated"],
                      "as-user-extra": {"scopes": ["view", "edit"], "example.com/team": ["a"]}})
    found = probe_of("--kubeconfig", path).ask(**WHO)["body"]["status"]["userInfo"]
    assert found["username"] == "somebody"
    assert found["extra"] == {"scopes": ["view", "edit"], "example.com/team": ["a"]}


def test_token_file_rotates(cluster, config_of, probe_of, admin_token, tmp_path):
    """An expired token, then a fresh one put in its place as the kubelet does."""
    first, second, link = tmp_path / "first", tmp_path / "second", tmp_path / "token"
    first.write_text("expired\n")
    second.write_text(admin_token + "\n")
    link.symlink_to(first)
    probe = probe_of("--kubeconfig", config_of({"tokenFile": "token"}))
    denied = probe.ask(**WHO)
    assert (denied["status"], denied["err"]["code"]) == (401, 13)
    assert "credentials" in denied["err"]["text"]
    watch = probe.start(do="watch", apiVersion="v1", kind="ConfigMap", namespace="default")
    assert probe.next(watch)["err"]["code"] == 13
    (tmp_path / "new").symlink_to(second)
    (tmp_path / "new").rename(link)
    assert who(probe) == ADMIN
    probe.until(watch, "synced")


def test_token_that_rotates_between_try_and_answer(proxy, probe_of, admin_token, tmp_path):
    """401, and meanwhile the file has changed: once more, without the caller."""
    token = tmp_path / "token"
    token.write_text("expired")

    def rotate(exchange):
        token.write_text(admin_token)
        exchange.forward()
    proxy.fault(rotate)
    path = kubeconfig(tmp_path / "config", proxy.url, {"tokenFile": str(token)}, {"certificate-authority": proxy.ca})
    probe = probe_of("--kubeconfig", path)
    assert who(probe) == ADMIN
    assert len(proxy.requests) == 2


def test_token_of_an_oidc_provider(config_of, probe_of, admin_token):
    """It is the provider's last one, which kubectl renews in the file; who needs a new one is told so, once."""
    def user(token):
        return {"auth-provider": {"name": "oidc", "config": {"client-id": "kubernetes", "id-token": token}}}
    path = config_of(user("expired"))
    probe = probe_of("--kubeconfig", path)
    for _ in range(2):
        denied = probe.ask(**WHO)
        assert denied["status"] == 401
    config_of(user(admin_token), name="next").rename(path)
    assert who(probe) == ADMIN
    rc, said = probe.close()
    assert rc == 0 and said.count("the server refuses the id-token") == 1 and "kubectl version" in said


def test_in_cluster(cluster, probe_of, admin_token, tmp_path):
    (tmp_path / "token").write_text(admin_token)
    (tmp_path / "ca.crt").write_bytes((cluster.keys.folder / "ca.crt").read_bytes())
    (tmp_path / "namespace").write_text("default")
    env = {**os.environ, "KUBERNETES_SERVICE_HOST": "127.0.0.1",
           "KUBERNETES_SERVICE_PORT": str(cluster.network.api_port)}
    assert who(probe_of("--in-cluster", tmp_path, env=env)) == ADMIN
    nowhere = {k: v for k, v in env.items() if k != "KUBERNETES_SERVICE_HOST"}
    assert "this is no pod" in refused("--in-cluster", tmp_path, env=nowhere)


PLUGIN = """#!/usr/bin/python3
import json, os, sys, time
print("told:", os.environ["KUBERNETES_EXEC_INFO"], file=sys.stderr)
here = os.path.dirname(os.path.abspath(__file__))
with open(here + "/runs", "a") as runs:
    runs.write(json.dumps({"argv": sys.argv[1:], "info": json.loads(os.environ["KUBERNETES_EXEC_INFO"]),
                           "extra": os.environ.get("EXTRA"), "fds": os.listdir("/proc/self/fd")}) + "\\n")
"""


@pytest.fixture
def plugin(tmp_path, config_of):
    """plugin(body, **exec fields): a kubeconfig whose user is a program; .runs() says how it was run."""
    class Plugin:
        def __call__(self, body, version="v1", server=None, more=None, name="config", **fields):
            program = tmp_path / "plugin"
            program.write_text(PLUGIN + body)
            program.chmod(0o755)
            spec = {"apiVersion": f"client.authentication.k8s.io/{version}", "command": "./plugin",
                    "interactiveMode": "Never", **fields}
            return config_of({"exec": spec}, server=server, more=more, name=name)

        @staticmethod
        def runs():
            path = tmp_path / "runs"
            return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return Plugin()


def answer(version="v1", **status):
    credential = {"apiVersion": f"client.authentication.k8s.io/{version}", "kind": "ExecCredential", "status": status}
    return f"print({json.dumps(json.dumps(credential))})\n"


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_exec_plugin(cluster, plugin, probe_of, admin_token, version):
    """Many calls, one run; it sees its arguments, environment and cluster, and no descriptor of ours."""
    path = plugin(answer(version, token=admin_token), version, args=["a b", "$HOME"], provideClusterInfo=True,
                  env=[{"name": "EXTRA", "value": "x y"}])
    probe = probe_of("--kubeconfig", path)
    numbers = [probe.start(**WHO) for _ in range(20)]
    assert all(probe.next(number)["err"] is None for number in numbers)
    run, = plugin.runs()
    assert (run["argv"], run["extra"]) == (["a b", "$HOME"], "x y")
    assert len(run["fds"]) <= 5  # 0, 1, 2, and two that it has opened itself
    spec = run["info"]["spec"]
    assert run["info"]["apiVersion"].endswith(version) and spec["interactive"] is False
    assert spec["cluster"]["server"] == cluster.plane.server
    assert spec["cluster"]["certificate-authority-data"] == data(cluster.keys.folder / "ca.crt")


def test_exec_plugin_gives_a_certificate(cluster, plugin, probe_of):
    keys = cluster.keys.folder
    path = plugin(answer(clientCertificateData=(keys / "admin.crt").read_text(),
                         clientKeyData=(keys / "admin.key").read_text()))
    assert who(probe_of("--kubeconfig", path)) == "admin"


def at(seconds):
    when = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


# as answer(), with a token for three seconds from when it is asked
SHORT = "when = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(time.time() + 3))\n"


def test_exec_credential_expires(plugin, probe_of, admin_token):
    body = SHORT + answer(token=admin_token, expirationTimestamp="WHEN").rstrip(")\n") + ".replace('WHEN', when))\n"
    probe = probe_of("--kubeconfig", plugin(body))
    assert who(probe) == ADMIN and len(plugin.runs()) == 1
    time.sleep(3.1)
    plugin(answer(token=admin_token, expirationTimestamp=at(3600)))
    assert who(probe) == ADMIN and who(probe) == ADMIN
    assert len(plugin.runs()) == 2


def test_exec_plugin_fails_for_a_while(plugin, probe_of, admin_token):
    """What it gave is used until it expires; after that its failure is one that may pass, since it worked before."""
    fails = "if os.path.exists(here + '/fails'): sys.exit('the token service is overloaded')\n"
    short = SHORT.replace("+ 3", "+ 30") + answer(token=admin_token, expirationTimestamp="WHEN").rstrip(")\n") + ".replace('WHEN', when))\n"
    path = plugin(fails + short)
    probe = probe_of("--kubeconfig", path)
    assert who(probe) == ADMIN
    (path.parent / "fails").touch()
    time.sleep(27)  # it is renewed three seconds before
    assert who(probe) == ADMIN and len(plugin.runs()) == 2
    time.sleep(4)
    err = probe.ask(**WHO)["err"]
    assert "the token service is overloaded" in err["text"] and err["code"] == errno.EAGAIN, err
    (path.parent / "fails").unlink()
    assert who(probe) == ADMIN


def test_exec_credential_is_refused(plugin, probe_of, admin_token):
    """Revoked before its time: the plugin is asked once more, for all calls that were refused. The server
    hangs up with the first 401, so that the others may hear nothing: they are such that may be repeated."""
    body = answer(token="TOKEN").replace("print(", "text = (")
    body += f"first = len(open(here + '/runs').readlines()) == 1\nprint(text.replace('TOKEN', 'old' if first else '{admin_token}'))\n"
    probe = probe_of("--kubeconfig", plugin(body))
    numbers = [probe.start(**WHO, repeat=True) for _ in range(10)]
    answers = [probe.next(number) for number in numbers]
    assert not [each["err"] for each in answers if each["err"]]
    assert len(plugin.runs()) == 2


@pytest.mark.parametrize("body, part", [
    ("sys.exit('please log in')", "it ended with 1: told: "),
    ("sys.exit('please log in')", "please log in"),
    ("os.kill(os.getpid(), 9)", "it was killed by signal 9"),
    ("", "its answer is empty"),
    ("print('{')", "its answer is no JSON"),
    ("print('{}')", "its answer is no ExecCredential"),
    (answer("v1beta1", token="x"), "its answer has apiVersion client.authentication.k8s.io/v1beta1"),
    (answer(), "has neither status.token nor"),
    (answer(clientKeyData="x"), "expected both"),
    (answer(token="x\r\nHost: y"), "blanks or control characters"),
    (answer(token="x", expirationTimestamp="soon"), "no RFC 3339 time"),
    (answer(token="x", expirationTimestamp="2001-01-01T00:00:00Z"), "has expired already"),
    ("print('x' * (2 << 20))", "its answer is larger than"),
    ("time.sleep(1000)", "no answer within 2 s"),
    ("import subprocess\nsubprocess.Popen(['sleep', '1000'])\ntime.sleep(1000)", "no answer within 2 s"),
])
def test_exec_plugin_fails(plugin, probe_of, body, part):
    path = plugin(body)
    limit_ms = 2000 if "within 2 s" in part else 10 ** 6  # one that ends must not meet a limit
    failed = probe_of("--kubeconfig", path, "--exec-ms", limit_ms).ask(**WHO)
    assert part in failed["err"]["text"], failed["err"]["text"]
    assert "credential plugin " in failed["err"]["text"] and str(path) in failed["err"]["text"]


def test_exec_plugin_missing(plugin, probe_of):
    path = plugin("", command="drarun-no-such-plugin", installHint="get it from example.com")
    failed = probe_of("--kubeconfig", path).ask(**WHO)["err"]
    assert "cannot be run: No such file or directory: get it from example.com" in failed["text"]
    path = plugin("", interactiveMode="Always")
    assert "there is none" in probe_of("--kubeconfig", path).ask(**WHO)["err"]["text"]


def test_exec_plugin_speaks_to_the_terminal(plugin, probe_of, admin_token, tmp_path):
    """A login elsewhere: what the plugin says is seen while it waits, also if it reads nothing from the terminal."""
    path = plugin("print('open https://login.test/', file=sys.stderr, flush=True)\n"
                  "while not os.path.exists(here + '/logged-in'): time.sleep(0.02)\n" + answer(token=admin_token))
    ours, theirs = pty.openpty()
    probe = probe_of("--kubeconfig", path, stderr=theirs)
    os.close(theirs)
    number, seen = probe.start(**WHO), ""
    while "https://login.test/" not in seen:
        assert select.select([ours], [], [], patience())[0], seen
        seen += os.read(ours, 4096).decode(errors="replace")
    (tmp_path / "logged-in").touch()
    assert probe.next(number)["err"] is None
    os.close(ours)


def test_exec_plugin_hangs_while_a_call_is_cancelled_by_the_end(plugin, probe_of):
    """Ending does not wait for it, and it is gone then."""
    probe = probe_of("--kubeconfig", plugin("time.sleep(1000)"), "--exec-ms", 10 ** 6)
    probe.start(**WHO)
    end = time.monotonic() + patience()
    while not plugin.runs():
        assert time.monotonic() < end
        time.sleep(0.02)
    assert probe.close()[0] == 0


def test_certificate_that_is_not_trusted(config_of, probe_of, admin_token, tmp_path):
    probe = probe_of("--kubeconfig", config_of({"token": admin_token}, more={}))
    failed = probe.ask(**WHO)
    assert (failed["err"]["code"], failed["tries"]) == (129, 1) and "certificate" in failed["err"]["text"]
    insecure = config_of({"token": admin_token}, more={"insecure-skip-tls-verify": True})
    assert who(probe_of("--kubeconfig", insecure)) == ADMIN


def test_certificate_that_the_machine_trusts(cluster, config_of, probe_of, admin_token):
    """A kubeconfig without an authority: what the machine trusts counts, and SSL_CERT_FILE says where that is, as with kubectl."""
    path = config_of({"token": admin_token}, more={})
    assert who(probe_of("--kubeconfig", path, env={**os.environ, "SSL_CERT_FILE": str(cluster.keys.folder / "ca.crt")})) == ADMIN


def test_tls_server_name(proxy, probe_of, admin_token, tmp_path):
    def config(name, tls_name):
        return kubeconfig(tmp_path / name, proxy.url, {"token": admin_token},
                          {"certificate-authority": proxy.ca, "tls-server-name": tls_name})
    assert who(probe_of("--kubeconfig", config("right", "api.test"))) == ADMIN
    assert proxy.requests[-1][3]["Host"] == f"127.0.0.1:{proxy.port}"
    failed = probe_of("--kubeconfig", config("wrong", "other.test")).ask(**WHO)
    assert failed["err"]["code"] == 129


class Tunnel:
    """An HTTP proxy that knows CONNECT; also cuts what goes through it."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.asked, self.pairs = [], []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            more = client.recv(4096)
            if not more:
                return
            head += more
        self.asked.append(head.split(b"\r\n")[0].decode())
        host, port = head.split()[1].decode().rsplit(":", 1)
        there = socket.create_connection((host, int(port)))
        self.pairs.append((client, there))
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                for each in select.select([client, there], [], [])[0]:
                    more = each.recv(65536)
                    if not more:
                        return
                    (there if each is client else client).sendall(more)
        except OSError:
            pass
        finally:
            client.close()
            there.close()

    def cut(self):
        for pair in self.pairs:
            for each in pair:
                try:
                    each.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        self.pairs.clear()

    def close(self):
        self.listener.close()
        self.cut()


@pytest.fixture
def tunnel():
    made = Tunnel()
    yield made
    made.close()


def through(cluster, tunnel, token, tmp_path):
    return kubeconfig(tmp_path / "tunnel", cluster.plane.server, {"token": token},
                      {"certificate-authority": str(cluster.keys.folder / "ca.crt"),
                       "proxy-url": f"http://127.0.0.1:{tunnel.port}"})


def test_proxy_url(cluster, tunnel, probe_of, admin_token, tmp_path):
    assert who(probe_of("--kubeconfig", through(cluster, tunnel, admin_token, tmp_path))) == ADMIN
    assert tunnel.asked == [f"CONNECT 127.0.0.1:{cluster.network.api_port} HTTP/1.1"]


def test_proxy_url_leads_to_every_host(cluster, tunnel, probe_of, admin_token, tmp_path):
    """As with kubectl, NO_PROXY does not cancel it: people behind a bastion also have the addresses that it leads to there."""
    env = {**os.environ, "NO_PROXY": "127.0.0.0/8", "HTTPS_PROXY": "http://127.0.0.1:1"}
    assert who(probe_of("--kubeconfig", through(cluster, tunnel, admin_token, tmp_path), env=env)) == ADMIN
    assert len(tunnel.asked) == 1


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"])
def test_no_proxy_leads_to_this_machine(cluster, config_of, probe_of, admin_token, name):
    """As with kubectl: a cluster in containers, or behind a forwarded port, where the environment names a proxy."""
    env = {**os.environ, name: "http://127.0.0.1:1"}
    assert who(probe_of("--kubeconfig", config_of({"token": admin_token}), env=env)) == ADMIN


def test_http2_connection_breaks(cluster, tunnel, probe_of, admin_token, tmp_path):
    """All that shares a connection goes on when it is cut under it, again and again."""
    probe = probe_of("--kubeconfig", through(cluster, tunnel, admin_token, tmp_path))
    there = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default"}
    watch = probe.start(do="watch", **there, labels="broken=yes")
    probe.until(watch, "synced")
    for round_ in range(10):
        numbers = [probe.start(do="create", **there, repeat=True, body={
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"b{round_}-{i}", "labels": {"broken": "yes"}}})
            for i in range(20)]
        time.sleep(0.005 * round_)
        tunnel.cut()
        for number in numbers:
            made = probe.next(number, 30)
            assert made["err"] is None or (made["reason"] == "AlreadyExists" and made["lost"]), made
    seen = set()
    while len(seen) < 200:
        event = probe.next(watch, 30)
        if event["event"] == "added":
            assert event["name"] not in seen
            seen.add(event["name"])
    assert probe.ask(do="delete", **there, labels="broken=yes")["err"] is None
