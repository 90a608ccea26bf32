# SPDX-License-Identifier: Apache-2.0
"""Images for pods, packed from directories into the cache and imported into each node's containerd. There
is no registry: a name begins with localhost/, and a pod's pull policy is IfNotPresent or Never."""
import fcntl
import functools
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest

from ..build import BUILD, SOURCE

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
KEPT = 40  # packed images that the cache keeps


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(os.environ.get("DRARUN_CACHE") or Path(base) / "drarun") / "images"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _signature(root):
    """Changes when a file under root does."""
    seen = hashlib.sha256()
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(folders + files):
            path = os.path.join(folder, name)
            at = os.lstat(path)
            link = os.readlink(path) if os.path.islink(path) else ""
            seen.update(f"{os.path.relpath(path, root)} {at.st_mode} {at.st_size} {at.st_mtime_ns} {link}\n".encode())
    return seen.hexdigest()


def pack(name, root, config=None):
    """The OCI archive, in the cache, of an image called name that holds the directory root. config:
    {"Entrypoint": ..., "Env": ..., "User": ...}."""
    config = {"Env": [f"PATH={PATH}"], **(config or {})}
    key = hashlib.sha256(json.dumps([1, name, _signature(root), config]).encode()).hexdigest()[:16]
    folder = cache()
    packed = folder / f"{name.replace('/', '-').replace(':', '-')}-{key}.tar"
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if packed.exists():
            os.utime(packed)
        else:
            _pack(name, root, config, packed)
            for old in sorted(folder.glob("*.tar"), key=os.path.getmtime)[:-KEPT]:
                old.unlink()
    return packed


def _pack(name, root, config, packed):
    with tempfile.TemporaryDirectory(dir=packed.parent) as work:
        layer = Path(work) / "layer"
        subprocess.run(["tar", "-C", root, "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-cf", layer,
                        "."], check=True)
        with open(layer, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        blobs = {}

        def put(content):
            found = hashlib.sha256(content).hexdigest()
            blobs[found] = content
            return {"digest": f"sha256:{found}", "size": len(content)}
        oci = "application/vnd.oci.image"
        machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
        about = put(json.dumps({"architecture": machine, "os": "linux", "config": config, "rootfs": {
            "type": "layers", "diff_ids": [f"sha256:{digest}"]}}).encode())
        manifest = put(json.dumps({
            "schemaVersion": 2, "mediaType": f"{oci}.manifest.v1+json",
            "config": {"mediaType": f"{oci}.config.v1+json", **about},
            "layers": [{"mediaType": f"{oci}.layer.v1.tar", "digest": f"sha256:{digest}",
                        "size": layer.stat().st_size}]}).encode())
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


@functools.cache
def fetched_root(name):
    """The directory of a root that scripts/fetch-roots has in the cache or fetches."""
    run = subprocess.run([SOURCE / "scripts" / "fetch-roots", name], capture_output=True, text=True)
    if run.returncode != 0:
        pytest.skip(f"scripts/fetch-roots {name}: {run.stderr.strip()[-300:]}")
    return Path(run.stdout.split()[1])


def _copied(files):
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


def image(name, programs):
    """The packed archive of one of the images that every test may ask for: localhost/NAME:1."""
    full, config, root = f"localhost/{name}:1", {}, None
    if name == "pause":
        root, config = _copied({"/pause": programs / "pause"}), {"Entrypoint": ["/pause"]}
    elif name == "distroless":  # one static program and nothing else, no shell, no /etc
        root, config = _copied({"/busybox": shutil.which("busybox")}), {"Entrypoint": ["/busybox"]}
    elif name == "drarun":  # what an image volume or an init container brings, and the launcher
        ours = {f"/{path.relative_to(BUILD)}": path for path in (
            BUILD / "bin/drarun", BUILD / "bin/drarun-worker", *(BUILD / "libexec/drarun").glob("*")) if path.is_file()}
        root = _copied({**libraries(ours.values()), **ours})
        (root / "tmp").mkdir(mode=0o1777)
        config = {"Entrypoint": ["/bin/drarun"], "Env": ["PATH=/bin"]}
    elif name in ("busybox", "bookworm", "trixie", "sid", "mpi"):
        return pack(full, fetched_root(name))
    else:
        raise ValueError(f"no image {name}; busybox, bookworm, trixie, sid, mpi, distroless, drarun, pause are known")
    try:
        return pack(full, root, config)
    finally:
        shutil.rmtree(root)
