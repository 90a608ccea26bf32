# SPDX-License-Identifier: Apache-2.0
"""A real API server with its etcd, on free ports of the loopback (tests/cluster)."""
import functools
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from .build import SOURCE

READY_S = 120  # alone 3 s; the machine may be busy with a build
TOKEN = "test"


@functools.cache
def fetched():
    """The directory of the programs, or None and the reason why they are not there."""
    run = subprocess.run([SOURCE / "scripts" / "fetch-cluster", "--cached"], capture_output=True, text=True)
    if run.returncode != 0:
        return None, run.stderr.strip()
    return Path(run.stdout.strip()), ""


def free_ports(count):
    """Ports that nobody has right now: all are held until the last one is known."""
    held = [socket.socket() for _ in range(count)]
    for each in held:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


class ControlPlane:
    """request(method, path, body) gives (status, answer). close() ends both and removes their files."""

    def __init__(self):
        programs, reason = fetched()
        if not programs:
            pytest.skip(reason)
        if not shutil.which("openssl"):
            pytest.skip("no openssl; run scripts/setup --test")
        self.programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="dt-cluster-", dir="/tmp"))
        self.processes = []
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self):
        client, peer, self.port = free_ports(3)
        key, public = self.folder / "sa.key", self.folder / "sa.pub"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        subprocess.run(["openssl", "rsa", "-in", key, "-pubout", "-out", public], check=True, capture_output=True)
        tokens = self.folder / "tokens"
        tokens.write_text(f"{TOKEN},admin,1,system:masters\n")
        tokens.chmod(0o600)
        etcd, there = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
        self._run("etcd", "--data-dir", self.folder / "etcd", "--unsafe-no-fsync", "--log-level", "warn",
                  "--listen-client-urls", etcd, "--advertise-client-urls", etcd, "--listen-peer-urls", there,
                  "--initial-advertise-peer-urls", there, "--initial-cluster", f"default={there}")
        self._run("kube-apiserver", "--etcd-servers", etcd, "--bind-address", "127.0.0.1",
                  "--secure-port", self.port, "--cert-dir", self.folder / "certs",
                  "--service-account-issuer", "https://kubernetes.default.svc",
                  "--service-account-key-file", public, "--service-account-signing-key-file", key,
                  "--service-cluster-ip-range", "10.96.0.0/16", "--authorization-mode", "RBAC",
                  "--token-auth-file", tokens, "--profiling=false", "--runtime-config",
                  "resource.k8s.io/v1beta1=true,resource.k8s.io/v1beta2=true")
        # the certificate was made by this server a moment ago, for this port of the loopback alone
        self.tls = ssl.create_default_context()
        self.tls.check_hostname = False
        self.tls.verify_mode = ssl.CERT_NONE
        self._wait()

    def _run(self, name, *args):
        with open(self.folder / f"{name}.log", "wb") as log:
            self.processes.append(subprocess.Popen([self.programs / name, *map(str, args)], stdin=subprocess.DEVNULL,
                                                   stdout=log, stderr=log, start_new_session=True))

    def _wait(self):
        end = time.monotonic() + READY_S
        while True:
            for process in self.processes:
                assert process.poll() is None, f"{process.args[0].name} ended:\n{self.logs()}"
            try:
                if self.request("GET", "/readyz")[0] == 200:
                    return
            except OSError:
                pass
            assert time.monotonic() < end, f"the API server is not ready after {READY_S} s:\n{self.logs()}"
            time.sleep(0.1)

    def logs(self):
        return "\n".join(path.read_text(errors="replace")[-2000:] for path in self.folder.glob("*.log"))

    def request(self, method, path, body=None):
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}{path}", method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=30, context=self.tls) as answer:
                status, text = answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read().decode()
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text

    @functools.cache
    def plural(self, api_version, kind):
        """("/apis/batch/v1", "jobs"), or None where the server has no such kind."""
        root = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
        status, answer = self.request("GET", root)
        for each in answer["resources"] if status == 200 else ():
            if each["kind"] == kind and "/" not in each["name"]:
                return root, each["name"]
        return None

    def create(self, manifest, dry_run=False):
        """The server's answer to creating it; unknown and doubled fields are errors."""
        found = self.plural(manifest["apiVersion"], manifest["kind"])
        assert found, f"the server knows no {manifest['apiVersion']} {manifest['kind']}"
        root, plural = found
        namespace = manifest["metadata"].get("namespace")
        where = f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"
        return self.request("POST", f"{where}?fieldValidation=Strict{'&dryRun=All' if dry_run else ''}", manifest)

    def close(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
