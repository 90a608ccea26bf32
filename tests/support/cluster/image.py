# SPDX-License-Identifier: Apache-2.0
"""Images for pods, packed from directories into the cache and imported into each node's containerd. There
is no registry: a name begins with localhost/, and a pod's pull policy is IfNotPresent or Never."""
import contextlib
import fcntl
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest

from .api import wait
from .daemon import Daemon
from ..build import BUILD, SOURCE, patience

sys.path.insert(0, str(SOURCE / "scripts/lib"))
import oci_image  # noqa: E402
from oci_image import copied  # noqa: E402

IMPORT = ["-n", "k8s.io", "images", "import", "--local"]  # of ctr
TAG = ["-n", "k8s.io", "images", "tag", "--local", "--force", "--skip-reference-check"]
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
            oci_image.write(packed, name, root, config, _layers(base) if base else [])
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
            key = hashlib.sha256("\n".join(["2", *(each.name for each in packed[:count])]).encode()).hexdigest()[:16]
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
            for words in ([*IMPORT, packed], [*TAG, *_names(packed)]):
                run = subprocess.run([*ctr, *words], capture_output=True, text=True, timeout=patience(IMPORT_S))
                assert run.returncode == 0, f"{packed} is not imported: {run.stderr}"
            daemon.process.terminate()
            daemon.process.wait(patience())
        finally:
            daemon.kill()
        root.rename(made)


def _read(packed):
    """The entry of an archive's index, and the manifest that it is for."""
    with tarfile.open(packed) as tar:
        entry = json.load(tar.extractfile("index.json"))["manifests"][0]
        return entry, json.load(tar.extractfile(f"blobs/{entry['digest'].replace(':', '/')}"))


def _layers(packed):
    """The layers of an archive as its manifest names them."""
    return _read(packed)[1]["layers"]


def _names(packed):
    """The image's name, and the one that a pull gives it besides, its id: kubelets up to 1.35 ask for an image volume by that."""
    entry, manifest = _read(packed)
    return entry["annotations"]["io.containerd.image.name"], manifest["config"]["digest"]


@functools.cache
def fetched_root(name):
    """The directory of a root that scripts/fetch-roots has in the cache or fetches."""
    run = subprocess.run([SOURCE / "scripts" / "fetch-roots", name], capture_output=True, text=True)
    if run.returncode != 0:
        pytest.skip(f"scripts/fetch-roots {name}: {run.stderr.strip()[-300:]}")
    return Path(run.stdout.split()[1])


def image(name, programs):
    """The packed archive of one of the images that every test may ask for: localhost/NAME:1."""
    full, config, root = f"localhost/{name}:1", {}, None
    if name == "pause":
        root, config = copied({"/pause": programs / "pause"}), {"Entrypoint": ["/pause"]}
    elif name == "distroless":  # one static program and nothing else, no shell, no /etc
        root, config = copied({"/busybox": shutil.which("busybox")}), {"Entrypoint": ["/busybox"]}
    elif name == "drarun":  # what an image volume or an init container brings, and the launcher
        root, config = oci_image.drarun(BUILD), oci_image.DRARUN
    elif name in ("busybox", "bookworm", "trixie", "sid", "mpi"):
        return pack(full, fetched_root(name))
    else:
        raise ValueError(f"no image {name}; busybox, bookworm, trixie, sid, mpi, distroless, drarun, pause are known")
    try:
        return pack(full, root, config)
    finally:
        shutil.rmtree(root)
