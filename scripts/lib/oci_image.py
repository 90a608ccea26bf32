# SPDX-License-Identifier: Apache-2.0
"""OCI archives of directories, without a daemon: what containerd, kind, podman and skopeo import."""
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

PLUGIN = {"Entrypoint": ["/bin/drarun-plugin"], "Env": ["PATH=/bin"]}
DRARUN = {"Entrypoint": ["/bin/drarun"], "Env": ["PATH=/bin"]}


def write(packed, name, root, config, below=()):
    """Writes the OCI archive `packed` of an image that is called name and holds the directory root. below: layers of
    an image that it lies on, which are not in this archive."""
    with tempfile.TemporaryDirectory(prefix="making-", dir=packed.parent) as work:
        layer = Path(work) / "layer"
        subprocess.run(["tar", "-C", root, "--sort=name", "--owner=0", "--group=0", "--numeric-owner",
                        "--mtime=@0", "-cf", layer, "."], check=True)
        with open(layer, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        layers = [*below, {"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": f"sha256:{digest}",
                           "size": layer.stat().st_size}]
        blobs = {}

        def put(content):
            found = hashlib.sha256(content).hexdigest()
            blobs[found] = content
            return {"digest": f"sha256:{found}", "size": len(content)}
        oci = "application/vnd.oci.image"
        machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
        about = put(json.dumps({"architecture": machine, "os": "linux", "config": config, "rootfs": {
            "type": "layers", "diff_ids": [each["digest"] for each in layers]}}).encode())
        manifest = put(json.dumps({
            "schemaVersion": 2, "mediaType": f"{oci}.manifest.v1+json",
            "config": {"mediaType": f"{oci}.config.v1+json", **about}, "layers": layers}).encode())
        index = {"schemaVersion": 2, "manifests": [{
            "mediaType": f"{oci}.manifest.v1+json", **manifest, "annotations": {
                "io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]}}]}
        made = Path(work) / "image.tar"
        with tarfile.open(made, "w", format=tarfile.GNU_FORMAT) as tar:
            _add(tar, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
            _add(tar, "index.json", json.dumps(index).encode())
            for found, content in blobs.items():
                _add(tar, f"blobs/sha256/{found}", content)
            tar.add(layer, f"blobs/sha256/{digest}")
        made.rename(packed)


def _add(tar, name, content):
    info = tarfile.TarInfo(name)
    info.size = len(content)
    tar.addfile(info, io.BytesIO(content))


def copied(files):
    """A directory that holds {path: file}, with the libraries that the files need; the caller removes it."""
    root = Path(tempfile.mkdtemp(prefix="dt-image-", dir="/tmp"))
    root.chmod(0o755)
    for path, file in files.items():
        there = root / path.lstrip("/")
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, there)
    return root


def libraries(programs):
    """{path: path} of the shared libraries, the loader among them, that these programs are linked with."""
    found = {}
    for program in programs:
        run = subprocess.run(["ldd", program], capture_output=True, text=True)
        for line in run.stdout.splitlines():
            words = [word for word in line.split() if word.startswith("/")]
            if run.returncode == 0 and words:
                found[words[0]] = words[0]
    return found


def drarun(build, plugin=False):
    """A directory with our programs and what they are linked with; the caller removes it. It is what launchers and
    node plugins run, and agents and hooks come from. plugin: what a node plugin runs and hands out alone."""
    names = ("drarun-worker", "drarun-plugin", "drarun-attach", *(() if plugin else ("drarun",)))
    ours = {f"/{path.relative_to(build)}": path for path in (
        *(build / "bin" / name for name in names),
        *(() if plugin else (build / "libexec/drarun").glob("*"))) if path.is_file()}
    root = copied({**libraries(ours.values()), **ours})
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    return root
