# SPDX-License-Identifier: Apache-2.0
"""Images for pods, packed from directories into the cache and imported into each node's containerd. There
is no registry: a name begins with localhost/, and a pod's pull policy is IfNotPresent or Never."""
import contextlib
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

from .api import wait
from .daemon import Daemon
from ..build import BUILD, SOURCE

IMPORT = ["-n", "k8s.io", "images", "import", "--local"]  # of ctr
IMPORT_S = 120
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
KEPT = 16  # packed images, and stores, that the cache keeps: the last ones used


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
            what = (os.readlink(path) if os.path.islink(path) else
                    "" if os.path.isdir(path) else f"{at.st_size} {at.st_mtime_ns}")
            seen.update(f"{os.path.relpath(path, root)} {at.st_mode} {what}\n".encode())
    return seen.hexdigest()


def pack(name, root, config=None, base=None):
    """The OCI archive, in the cache, of an image called name that holds the directory root. config:
    {"Entrypoint": ..., "Env": ..., "User": ...}. base: an archive that lies below root; what it holds is
    not in this one again, so it must be imported before."""
    config = {"Env": [f"PATH={PATH}"], **(config or {})}
    below = base.name if base else ""
    key = hashlib.sha256(json.dumps([2, name, _signature(root), config, below]).encode()).hexdigest()[:16]
    packed = cache() / f"{name.replace('/', '-').replace(':', '-')}-{key}.tar"
    with _locked():
        if packed.exists():
            os.utime(packed)
        else:
            _pack(name, root, config, packed, _layers(base) if base else [])
            for old in _oldest("*.tar"):
                old.unlink()
    return packed


@contextlib.contextmanager
def _locked():
    """One process at a time makes something here, so what another one began and left is nobody's."""
    with open(cache() / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in cache().glob("making-*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


def _oldest(pattern):
    return sorted(cache().glob(pattern), key=os.path.getmtime)[:-KEPT]


def store(programs, packed):
    """The root directory of a containerd, in the cache, that has these archives imported and unpacked. Each
    one is made of the one without the last archive, so those that change most often stand last."""
    with _locked():
        made = None
        for count in range(1, len(packed) + 1):
            key = hashlib.sha256("\n".join(each.name for each in packed[:count]).encode()).hexdigest()[:16]
            found = cache() / f"store-{key}"
            if found.exists():
                os.utime(found)
            else:
                _import(programs, made, packed[count - 1], found)
                for old in _oldest("store-*"):
                    shutil.rmtree(old)
            made = found
        return made


def copy_store(source, target):
    """Files are shared as hard links, as nothing writes to an image's; databases are copied."""
    run = subprocess.run(["cp", "-al", source, target], capture_output=True, text=True)
    if run.returncode != 0:  # another file system
        shutil.rmtree(target, ignore_errors=True)
        subprocess.run(["cp", "-a", source, target], check=True)
        return
    for path in target.rglob("*.db"):
        path.unlink()
        shutil.copy2(source / path.relative_to(target), path)


def _import(programs, base, packed, made):
    """Runs a containerd of its own for a moment."""
    with tempfile.TemporaryDirectory(prefix="making-", dir=made.parent) as work:
        root, state = Path(work) / "root", Path(work) / "state"
        copy_store(base, root) if base else root.mkdir()
        settings, socket = Path(work) / "settings.toml", Path(work) / "socket"
        settings.write_text(f"version = 3\nroot = '{root}'\nstate = '{state}'\n"
                            "disabled_plugins = ['io.containerd.grpc.v1.cri', 'io.containerd.internal.v1.tracing',"
                            "'io.containerd.snapshotter.v1.blockfile', 'io.containerd.snapshotter.v1.erofs']\n"
                            f"[grpc]\naddress = '{socket}'\n")
        log = Path(work) / "log"
        daemon = Daemon("containerd", [programs / "containerd", "--config", settings], log).start()
        try:
            ctr = [programs / "ctr", "--address", socket]
            wait(lambda: f"containerd does not start:\n{daemon.tail()}",
                 lambda: daemon.check() or subprocess.run([*ctr, "version"], capture_output=True).returncode == 0,
                 IMPORT_S, 0.02)
            run = subprocess.run([*ctr, *IMPORT, packed], capture_output=True, text=True, timeout=IMPORT_S)
            assert run.returncode == 0, f"{packed} is not imported: {run.stderr}"
            daemon.process.terminate()
            daemon.process.wait(20)
        finally:
            daemon.kill()
        root.rename(made)


def _layers(packed):
    """The layers of an archive as its manifest names them."""
    with tarfile.open(packed) as tar:
        def read(digest):
            return json.load(tar.extractfile(f"blobs/{digest.replace(':', '/')}"))
        index = json.load(tar.extractfile("index.json"))
        return read(index["manifests"][0]["digest"])["layers"]


def _pack(name, root, config, packed, below):
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


@functools.cache
def fetched_root(name):
    """The directory of a root that scripts/fetch-roots has in the cache or fetches."""
    run = subprocess.run([SOURCE / "scripts" / "fetch-roots", name], capture_output=True, text=True)
    if run.returncode != 0:
        pytest.skip(f"scripts/fetch-roots {name}: {run.stderr.strip()[-300:]}")
    return Path(run.stdout.split()[1])


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


def image(name, programs):
    """The packed archive of one of the images that every test may ask for: localhost/NAME:1."""
    full, config, root = f"localhost/{name}:1", {}, None
    if name == "pause":
        root, config = copied({"/pause": programs / "pause"}), {"Entrypoint": ["/pause"]}
    elif name == "distroless":  # one static program and nothing else, no shell, no /etc
        root, config = copied({"/busybox": shutil.which("busybox")}), {"Entrypoint": ["/busybox"]}
    elif name == "drarun":  # what an image volume or an init container brings, and the launcher
        ours = {f"/{path.relative_to(BUILD)}": path for path in (
            BUILD / "bin/drarun", BUILD / "bin/drarun-worker", *(BUILD / "libexec/drarun").glob("*")) if path.is_file()}
        root = copied({**libraries(ours.values()), **ours})
        (root / "tmp").mkdir()
        (root / "tmp").chmod(0o1777)
        config = {"Entrypoint": ["/bin/drarun"], "Env": ["PATH=/bin"]}
    elif name in ("busybox", "bookworm", "trixie", "sid", "mpi"):
        return pack(full, fetched_root(name))
    else:
        raise ValueError(f"no image {name}; busybox, bookworm, trixie, sid, mpi, distroless, drarun, pause are known")
    try:
        return pack(full, root, config)
    finally:
        shutil.rmtree(root)
