# SPDX-License-Identifier: Apache-2.0
"""OCI archives of directories, without a daemon: what containerd, kind, podman and skopeo import."""
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

PLUGIN = {"Entrypoint": ["/bin/drarun-plugin"], "Env": ["PATH=/bin"]}
# Pods of jobs name no user, so that a platform may assign one: without one they have this (OBJECT_USER of jobs/manifests/objects.h). The plugin is root's.
DRARUN = {"Entrypoint": ["/bin/drarun"], "Env": ["PATH=/bin"], "User": "65532:65532"}


MACHINES = {62: "amd64", 183: "arm64"}  # e_machine of an ELF file: what the image calls it
TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
LOADERS = {"amd64": "ld-linux-x86-64.so.2", "arm64": "ld-linux-aarch64.so.1"}
OCI = "application/vnd.oci.image"


def machine_of(program):
    """The architecture of an ELF file, as images call it."""
    with open(program, "rb") as file:
        head = file.read(20)
    if head[:4] != b"\x7fELF" or int.from_bytes(head[18:20], "little") not in MACHINES:
        raise ValueError(f"{program}: expected a program for one of {', '.join(MACHINES.values())}")
    return MACHINES[int.from_bytes(head[18:20], "little")]


def own_machine():
    return {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]


class NoSysroot(Exception):
    """A build does not say where the libraries of its architecture are."""


def sysroot(build):
    """Of a build for another machine, as its toolchain file has set it."""
    found = re.search(r"^DRARUN_SYSROOT:\w+=(.+)$", (build / "CMakeCache.txt").read_text(), re.M)
    if not found:
        raise NoSysroot(f"{build}/CMakeCache.txt has no DRARUN_SYSROOT, where the libraries of another architecture are: configure it again, as by cmake --preset arm64")
    return Path(found[1])


def foreign_folder(build, machine):
    """Where the shared libraries of such a build are on this machine."""
    return sysroot(build) / "usr/lib" / TRIPLETS[machine]


def write(packed, name, root, config, below=()):
    """Writes the OCI archive `packed` of an image that is called name and holds the directory root. below: layers of
    an image that it lies on, which are not in this archive."""
    with tempfile.TemporaryDirectory(prefix="making-", dir=packed.parent) as work:
        blobs = Blobs(Path(work), compress=False)
        blobs.finish(packed, name, blobs.manifest(own_machine(), root, config, below))


def publish(packed, name, roots, config, labels=None):
    """The same as registries hold it: layers are compressed, so that a copy there keeps its digest. roots: {architecture: directory}; where there are several,
    a node takes the one of its own. labels: {name: value} about the whole."""
    about = {"annotations": labels} if labels else {}
    config = {**config, **({"Labels": labels} if labels else {})}
    with tempfile.TemporaryDirectory(prefix="making-", dir=packed.parent) as work:
        blobs = Blobs(Path(work), compress=True)
        if len(roots) == 1:
            (machine, root), = roots.items()
            top = blobs.manifest(machine, root, config, more=about)
        else:
            manifests = [{**blobs.manifest(machine, root, config), "platform": {"architecture": machine, "os": "linux"}}
                         for machine, root in roots.items()]
            top = blobs.put("index", {"schemaVersion": 2, "mediaType": f"{OCI}.index.v1+json", "manifests": manifests, **about})
        blobs.finish(packed, name, top)


def digest(packed):
    """Of the image in an archive, as a registry names it."""
    with tarfile.open(packed) as tar:
        return json.load(tar.extractfile("index.json"))["manifests"][0]["digest"]


class Blobs:
    """What an archive is made of, as it comes. compress: its layers."""

    def __init__(self, work, compress):
        self.work, self.compress, self.contents, self.layers = work, compress, {}, {}

    def put(self, kind, document):
        """Its descriptor."""
        content = json.dumps(document).encode()
        found = hashlib.sha256(content).hexdigest()
        self.contents[found] = content
        return {"mediaType": f"{OCI}.{kind}.v1+json", "digest": f"sha256:{found}", "size": len(content)}

    def layer(self, root):
        """Its descriptor, and the digest of the layer before it was compressed."""
        made = self.work / f"layer-{len(self.layers)}"
        subprocess.run(["tar", "-C", root, "--sort=name", "--owner=0", "--group=0", "--numeric-owner",
                        "--mtime=@0", "-cf", made, "."], check=True)
        kind, inside = f"{OCI}.layer.v1.tar", _sha256(made)
        if self.compress:
            subprocess.run(["gzip", "-6n", made], check=True)
            kind, made = f"{kind}+gzip", made.with_name(f"{made.name}.gz")
        found = _sha256(made)
        self.layers[found] = made
        return {"mediaType": kind, "digest": f"sha256:{found}", "size": made.stat().st_size}, f"sha256:{inside}"

    def manifest(self, machine, root, config, below=(), more=None):
        """Its descriptor. below: layers that are not compressed."""
        layer, inside = self.layer(root)
        about = self.put("config", {"architecture": machine, "os": "linux", "config": config, "rootfs": {
            "type": "layers", "diff_ids": [*(each["digest"] for each in below), inside]}})
        return self.put("manifest", {"schemaVersion": 2, "mediaType": f"{OCI}.manifest.v1+json", "config": about, "layers": [*below, layer], **(more or {})})

    def finish(self, packed, name, top):
        index = {"schemaVersion": 2, "manifests": [{**top, "annotations": {
            "io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]}}]}
        made = self.work / "image.tar"
        with tarfile.open(made, "w", format=tarfile.GNU_FORMAT) as tar:
            _add(tar, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
            _add(tar, "index.json", json.dumps(index).encode())
            for found, content in self.contents.items():
                _add(tar, f"blobs/sha256/{found}", content)
            for found, file in self.layers.items():
                tar.add(file, f"blobs/sha256/{found}", filter=_nobodys)
        made.rename(packed)


def _sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _nobodys(info):
    """Without the time and the user, so that the same layer gives the same archive."""
    info.mtime = info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mode = 0o644
    return info


def _add(tar, name, content):
    info = tarfile.TarInfo(name)
    info.size = len(content)
    tar.addfile(info, io.BytesIO(content))


def copied(files):
    """A directory that holds {path: file}, with modes that do not depend on the umask; the caller removes it."""
    root = Path(tempfile.mkdtemp(prefix="dt-image-", dir="/tmp"))
    for path, file in files.items():
        there = root / path.lstrip("/")
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, there)
        there.chmod(0o755 if os.access(file, os.X_OK) else 0o644)
    for folder in (root, *(path for path in root.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    return root


def add(root, path, file):
    """One more file in such a directory."""
    there = root / path
    there.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(file, there)
    there.chmod(0o644)
    for folder in there.relative_to(root).parents:
        (root / folder).chmod(0o755)


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


def foreign_libraries(programs, folder):
    """The same for programs of another machine, whose libraries lie in that folder: {path there: path here}."""
    found, left = {}, list(programs)
    while left:
        said = subprocess.run(["readelf", "-d", "-l", left.pop()], capture_output=True, text=True, check=True).stdout
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]|interpreter: /lib/([^\]]*)\]", said):
            path = f"/lib/{name[0] or name[1]}"
            if path not in found:
                found[path] = folder / Path(path).name
                left.append(found[path])
    return found


# Parts of the C library that NVIDIA's libnvidia-ml.so.1 is linked with, and drarun-nvml, which loads it, is not: it must find those of the same version.
FOR_NVML = "libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1"


def beside_c_library(needed):
    """{path there: path here} of FOR_NVML, which lie where the C library does."""
    return {str(Path(there).with_name(name)): str(Path(here).with_name(name)) for there, here in needed.items() if Path(there).name == "libc.so.6"
            for name in FOR_NVML if Path(here).with_name(name).exists()}


def drarun(build, plugin=False, strip=False):
    """A directory with our programs and what they are linked with; the caller removes it. It is what launchers and
    node plugins run, and agents and hooks come from. plugin: what a node plugin runs and hands out alone. strip: without
    symbols and debugging information, as packages have them."""
    names = ("drarun-worker", "drarun-plugin", "drarun-attach", *(() if plugin else ("drarun",)))
    machine = machine_of(build / "bin/drarun-worker")
    foreign = machine != own_machine()
    ours = {f"/{path.relative_to(build)}": path for path in (
        *(build / "bin" / name for name in names),
        *(build / "libexec/drarun").glob("drarun-nvml" if plugin else "*")) if path.is_file()}
    needed = foreign_libraries(ours.values(), foreign_folder(build, machine)) if foreign else libraries(ours.values())
    anywhere = build / "anywhere"  # drarun-bench for the images of others
    bench = {} if plugin else {f"/{path.relative_to(anywhere)}": path for path in anywhere.rglob("*") if path.is_file()}
    root = copied({**beside_c_library(needed), **needed, **ours, **bench})
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    if strip:
        tool = f"{TRIPLETS[machine]}-strip" if foreign else "strip"
        subprocess.run([tool, *(root / path.lstrip("/") for path in ours)], check=True)
    return root
