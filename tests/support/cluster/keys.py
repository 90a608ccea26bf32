# SPDX-License-Identifier: Apache-2.0
"""One certificate authority of a cluster, and what it signs, with openssl. Good for two days."""
import json
import secrets
import subprocess

from ..build import patience


class Authority:
    """folder: where NAME.crt and NAME.key lie; the authority is "ca"."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(mode=0o755, exist_ok=True)
        self._key("ca")
        self._openssl("req", "-x509", "-new", "-key", "ca.key", "-days", "2", "-subj", "/CN=drarun-test", "-out",
                      "ca.crt", "-addext", "basicConstraints=critical,CA:TRUE",
                      "-addext", "keyUsage=critical,keyCertSign,digitalSignature")

    def _openssl(self, *words):
        run = subprocess.run(["openssl", *words], cwd=self.folder, capture_output=True, text=True, timeout=patience())
        assert run.returncode == 0, f"openssl {' '.join(words)}: {run.stderr}"

    def _key(self, name):
        self._openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")

    def sign(self, name, subject, hosts=(), hours=48):
        """Makes NAME.key and NAME.crt for subject, "/O=group/CN=user"; hosts: "DNS:x", "IP:1.2.3.4"."""
        self._key(name)
        extensions = self.folder / f"{name}.ext"
        extensions.write_text("extendedKeyUsage=clientAuth,serverAuth\n" +
                              (f"subjectAltName={','.join(hosts)}\n" if hosts else ""))
        self._openssl("req", "-new", "-key", f"{name}.key", "-subj", subject, "-out", f"{name}.csr")
        self._openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-days",
                      str(max(1, hours // 24)), "-set_serial", "0x" + secrets.token_hex(8), "-out", f"{name}.crt",
                      "-extfile", extensions.name)
        for suffix in ("csr", "ext"):
            (self.folder / f"{name}.{suffix}").unlink()

    def signing_pair(self, name):
        """NAME.key and NAME.pub for service account tokens."""
        self._openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")
        self._openssl("ec", "-in", f"{name}.key", "-pubout", "-out", f"{name}.pub")

    def certificate(self, name):
        return {"client-certificate": str(self.folder / f"{name}.crt"), "client-key": str(self.folder / f"{name}.key")}

    def kubeconfig(self, path, server, user, namespace="default"):
        """Writes one context; user: what the kubeconfig says of it, as {"token": ...}."""
        path.touch(mode=0o600)
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {
                "server": server, "certificate-authority": str(self.folder / "ca.crt")}}],
            "users": [{"name": "test", "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": namespace}}]}))
        return path
