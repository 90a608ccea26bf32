# SPDX-License-Identifier: Apache-2.0
"""The agent is one file without needs: it runs in any root, and the launcher loads next to nothing."""
import gzip
import hashlib
import http.server
import importlib.machinery
import importlib.util
import io
import json
import os
import platform
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import pytest

from support.build import ANYWHERE_MISSING, SANITIZE, SOURCE, cached, patience, with_ccache
from support.cluster.keys import Authority

sys.path.insert(0, str(SOURCE / "scripts/lib"))
import sbom  # noqa: E402

EMULATOR = "qemu-aarch64-static"

pytestmark = pytest.mark.skipif(bool(SANITIZE), reason="sanitizer build: linked dynamically")


def roots(source):
    """{name: path} of the root file systems that scripts/fetch-roots has made."""
    run = subprocess.run([source / "scripts" / "fetch-roots"], capture_output=True, text=True)
    if run.returncode != 0:
        pytest.skip(f"scripts/fetch-roots: {run.stderr.strip()[-300:]}")
    found = {}
    for line in run.stdout.split():
        for name in ("busybox", "bookworm", "trixie", "sid"):
            if name in os.path.basename(line):
                found[name] = line
    return found


def copy_of(source, name, tmp_path):
    """A root file system that a test may change."""
    if os.geteuid() != 0:
        pytest.skip("needs root for chroot and mount")
    found = roots(source)
    if name not in found:
        pytest.skip(f"scripts/fetch-roots makes no {name} root here")
    return shutil.copytree(found[name], tmp_path / "root", symlinks=True)


@pytest.mark.parametrize("program", ["bin/drarun", "bin/drarun-worker", "bin/drarun-attach", "bin/drarun-plugin", "libexec/drarun/drarun-remote",
                                     "libexec/drarun/drarun-cluster"])
def test_no_loader_and_no_library(build, program):
    out = subprocess.run(["readelf", "-ld", build / program], capture_output=True, text=True,
                         check=True).stdout
    assert "INTERP" not in out and "NEEDED" not in out


@pytest.mark.skipif(platform.machine() != "x86_64", reason="cmake/code-order.ld is that of x86-64")
@pytest.mark.parametrize("program", ["bin/drarun-plugin", "libexec/drarun/drarun-cluster"])
def test_code_that_runs_lies_together(build, program):
    """The kernel maps 64 KiB around what runs: strewn about, it makes all code of libraries resident."""
    def read(*words):
        return subprocess.run(["readelf", "-W", *words, build / program], capture_output=True, text=True, check=True).stdout
    at, size = (int(word, 16) for word in re.search(r" \.text\.ran +PROGBITS +(\w+) \w+ (\w+)", read("-S")).groups())
    where = {name: int(value, 16) for value, name in re.findall(r"^ +\d+: (\w+) +\w+ FUNC +\w+ +\w+ +\d+ (\S+)$", read("-s"), re.M)}
    runs = {name for name, value in where.items() if at <= value < at + size}
    assert {"SSL_connect", "EVP_DigestVerify", "RSA_verify", "curl_multi_socket_action", "nghttp2_session_mem_recv", "json_loadb", "malloc"} <= runs
    assert {"Camellia_EncryptBlock", "SSL_accept", "yaml_emitter_emit", "d2i_PKCS7"} & set(where) - runs and size < 3 << 20


def test_the_agent_is_small(build, tmp_path):
    subprocess.run(["strip", "-o", tmp_path / "worker", build / "bin" / "drarun-worker"], check=True)
    assert (tmp_path / "worker").stat().st_size < 9 << 20


@pytest.mark.parametrize("root", ["busybox", "bookworm", "trixie", "sid"])
def test_a_job_in_another_root(drarun, build, source, tmp_path, root):
    inside = copy_of(source, root, tmp_path)
    (inside / "opt").mkdir(exist_ok=True)
    for program in ("drarun", "drarun-worker"):
        shutil.copy(build / "bin" / program, inside / "opt")
    for folder in ("proc", "sys", "dev", "tmp"):
        (inside / folder).mkdir(exist_ok=True)
    script = " && ".join([f"mount -t proc proc {inside}/proc", f"mount --rbind /sys {inside}/sys",
                          f"mount --rbind /dev {inside}/dev",
                          f"exec env TMPDIR=/tmp chroot {inside} /opt/drarun -n 3 "
                          "/bin/sh -c 'echo rank $RANK of $PMIX_NAMESPACE'"])
    run = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True,
                         timeout=patience(), env={"PATH": os.environ["PATH"]})
    assert run.returncode == 0, run.stderr
    lines = sorted(run.stdout.splitlines())
    assert [line.split()[1] for line in lines] == ["0", "1", "2"]
    assert all("drarun." in line for line in lines)
    assert list((inside / "tmp").iterdir()) == []


def test_the_local_job_loads_no_library(drarun):
    """What a local job does not need it must not load."""
    job = drarun.start("-n", 1, "sh", "-c", "sleep 0.5; echo ready; exec sleep 1000")
    assert job.process.stdout.readline() == "ready\n" # the topology has been read by then
    names = set()
    for pid, line in job.processes().items():
        if "drarun" not in line.split(" ")[0]:
            continue
        with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
            names |= {os.path.basename(m.split()[-1]) for m in maps if "/" in m}
    job.signal(signal.SIGTERM)
    assert job.finish().rc == 143
    assert names and not [name for name in names if ".so" in name], names


@pytest.fixture(scope="module")
def built_arm64(source):
    """The folder of a build for arm64."""
    if platform.machine() == "aarch64":
        pytest.skip("this machine is arm64: every other test runs there")
    if not shutil.which(EMULATOR) or not shutil.which("aarch64-linux-gnu-gcc"):
        pytest.skip("no cross compiler or no emulator; run scripts/setup --test")
    folder = source / "build-arm64"
    for script in ("fetch-pmix", "fetch-curl"):
        missing = subprocess.run([source / "scripts" / script, "--cached", "arm64"], capture_output=True, text=True)
        if missing.returncode != 0:
            pytest.skip(missing.stderr.strip())
    options, env = with_ccache(source)
    for command in (["cmake", "--preset", "arm64", *options],
                    ["cmake", "--build", folder, "--target", "drarun", "drarun-worker", "drarun-attach", "drarun-nvml", "drarun-plugin",
                     *(() if ANYWHERE_MISSING else ("bench_anywhere",))]):
        run = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=patience(400), env=env)
        assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    return folder


@pytest.fixture(scope="module")
def sysroot(source, built_arm64):
    """Where the libraries of arm64 are."""
    fetched = subprocess.run([source / "scripts/fetch-pmix", "--cached", "arm64"], capture_output=True, text=True, check=True)
    return Path(fetched.stdout.splitlines()[1])


def c_library_of(sysroot):
    """The version of its package."""
    version, = re.findall(r"^libc6-dev_(.*)_arm64\.deb$", (sysroot / "packages").read_text(), re.M)
    return version


def said(*command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True, timeout=patience(), **more).stdout


@pytest.mark.parametrize("program,library", [("bin/drarun-attach", "libc.a"), ("libexec/drarun/drarun-nvml", "libc.so.6")])
def test_arm64_is_compiled_and_linked_with_the_sysroot(built_arm64, sysroot, tmp_path, program, library):
    """With the headers, the start files and the library that Debian corrects, and with nothing of the cross compiler's C library."""
    commands = said("ninja", "-C", built_arm64, "-t", "commands", program)
    headers = said("ninja", "-C", built_arm64, "-t", "deps", *re.findall(r"-o (\S+\.o) -c ", commands))
    assert f" {sysroot}/usr/include/features.h\n" in headers and "/usr/aarch64-linux-gnu/include/" not in headers
    link = commands.splitlines()[-1]
    assert f" -o {program} " in link
    taken = said("sh", "-ec", link.replace(f" -o {program} ", f" -Wl,--trace -o {tmp_path}/linked "), cwd=built_arm64)
    files = {os.path.realpath(line.partition("(")[0]) for line in taken.splitlines() if line.startswith("/")}
    assert f"{sysroot}/usr/lib/aarch64-linux-gnu/{library}" in files
    assert {os.path.dirname(each) for each in files if re.search(r"/[SM]?crt[1in]\.o$", each)} == {f"{sysroot}/usr/lib/aarch64-linux-gnu"}
    assert not [each for each in files if each.startswith("/usr/aarch64-linux-gnu/") and "gcc" not in os.path.basename(each)]


def test_arm64_has_the_c_library_of_the_sysroot(built_arm64, sysroot):
    """By what it says itself."""
    found = set(re.findall(rb"GNU C Library \((.*?)\)", (built_arm64 / "bin/drarun").read_bytes()))
    assert found == {f"Debian GLIBC {c_library_of(sysroot)}".encode()}


def test_arm64(built_arm64, tmp_path):
    """Launcher and agent are built for arm64 and run under user-mode emulation."""
    for program in ("drarun", "drarun-worker"):
        assert cached("CMAKE_PROJECT_VERSION") in emulated(built_arm64 / "bin" / program, "--version")
    # the launcher starts the agent by name, which the kernel cannot run: a script stands between
    worker = tmp_path / "worker"
    worker.write_text(f"#!/bin/sh\nexec {EMULATOR} {built_arm64}/bin/drarun-worker \"$@\"\n")
    worker.chmod(0o755)
    run = subprocess.run([EMULATOR, built_arm64 / "bin" / "drarun", "-n", "2", "/bin/sh", "-c",
                          "echo rank $RANK"], capture_output=True, text=True, timeout=patience(),
                         env={**os.environ, "DRARUN_WORKER": str(worker), "TMPDIR": str(tmp_path)})
    # launcher and agent have met and the agent has looked at the program, which is not for "its" machine;
    # one that is could not be started by this machine's kernel
    assert run.returncode == 126, run.stderr
    assert "it is a program for x86_64 (ELF machine 62), this is aarch64" in run.stderr


def emulated(program, *args, root="/"):
    run = subprocess.run([EMULATOR, "-L", root, program, *args], capture_output=True, text=True, timeout=patience())
    assert run.returncode == 0, run.stderr
    return run.stdout


def says_there_is_no_nvml(program, root):
    run = subprocess.run([EMULATOR, "-L", root, program], capture_output=True, text=True, timeout=patience())
    return "libnvidia-ml.so.1: cannot open shared object file" in run.stdout


def blob(tar, descriptor):
    """Of an OCI archive, held to its digest and size."""
    content = tar.extractfile(f"blobs/{descriptor['digest'].replace(':', '/')}").read()
    assert len(content) == descriptor["size"] and f"sha256:{hashlib.sha256(content).hexdigest()}" == descriptor["digest"]
    return content


def test_one_image_for_both_architectures(source, build, built_arm64, tmp_path):
    """scripts/image --also: an index from which each node takes the programs of its own architecture."""
    file = tmp_path / "drarun.tar"
    subprocess.run([source / "scripts/image", "localhost/drarun:1", file, "--also", built_arm64], check=True, capture_output=True,
                   env={**os.environ, "DRARUN_BUILD": str(build)})
    with tarfile.open(file) as tar:
        (top,) = json.load(tar.extractfile("index.json"))["manifests"]
        assert top["annotations"]["io.containerd.image.name"] == "localhost/drarun:1"
        listed = json.loads(blob(tar, top))["manifests"]
        assert [each["platform"] for each in listed] == [{"architecture": name, "os": "linux"} for name in ("amd64", "arm64")]
        for each in listed:
            manifest = json.loads(blob(tar, each))
            about, (layer,) = json.loads(blob(tar, manifest["config"])), manifest["layers"]
            inside = gzip.decompress(blob(tar, layer))
            assert layer["mediaType"].endswith(".tar+gzip") and about["architecture"] == each["platform"]["architecture"]
            assert about["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(inside).hexdigest()}"]
            root = tmp_path / about["architecture"]
            with tarfile.open(fileobj=io.BytesIO(inside)) as content:
                content.extractall(root)
    for name, machine in (("amd64", "Advanced Micro Devices X86-64"), ("arm64", "AArch64")):
        for program in ("bin/drarun", "bin/drarun-worker", "bin/drarun-attach", "bin/drarun-plugin", "libexec/drarun/drarun-remote",
                        "libexec/drarun/drarun-cluster", "libexec/drarun/drarun-nvml"):
            head = subprocess.run(["readelf", "-h", tmp_path / name / program], capture_output=True, text=True, check=True).stdout
            assert re.search(r"Machine: +(.*)", head)[1] == machine, (name, program)
    root = tmp_path / "arm64"
    for program in ("drarun", "drarun-worker"):
        assert emulated(root / "bin" / program, "--version") == subprocess.run(
            [tmp_path / "amd64/bin" / program, "--version"], capture_output=True, text=True, check=True).stdout
    assert "drarun" in emulated(root / "bin/drarun-plugin", "--version")
    assert says_there_is_no_nvml(root / "libexec/drarun/drarun-nvml", root)  # with the C library of the image
    brought = tmp_path / "brought"  # as the init container does it
    brought.mkdir()
    emulated(root / "bin/drarun-worker", "--install", brought)
    assert [path.read_bytes() for path in brought.rglob("drarun-worker")] == [(root / "bin/drarun-worker").read_bytes()]


class Empty(http.server.BaseHTTPRequestHandler):
    """An API server without objects."""

    def do_GET(self):  # noqa: N802
        text = json.dumps({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "1"}, "items": []}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


@pytest.fixture
def named_server(tmp_path):
    """The kubeconfig of a server with TLS whose name /etc/hosts has."""
    keys = Authority(tmp_path / "keys")
    keys.sign("server", "/CN=server", ["DNS:localhost"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(keys.folder / "server.crt", keys.folder / "server.key")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Empty)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield keys.kubeconfig(tmp_path / "config", f"https://localhost:{server.server_port}", {"token": "t"})
    server.shutdown()
    server.server_close()


def assert_no_jobs(*command, **more):
    """drarun-cluster has found the server and trusts it."""
    run = subprocess.run([*command, "status"], capture_output=True, text=True, timeout=patience(), **more)
    assert (run.returncode, run.stderr) == (66, "drarun: status: there are no jobs in namespace default\n"), run


@pytest.mark.parametrize("root", ["busybox", "bookworm", "trixie", "sid"])
def test_a_cluster_from_another_root(build, source, named_server, tmp_path, root):
    """Whatever its C library is, and whatever it says about looking up names."""
    inside = copy_of(source, root, tmp_path)
    for path, content in {"etc/hosts": b"127.0.0.1 localhost\n", "etc/nsswitch.conf": b"hosts: resolve [!UNAVAIL=return] mymachines\n",
                          "opt/ca.crt": (named_server.parent / "keys/ca.crt").read_bytes()}.items():
        (inside / path).parent.mkdir(exist_ok=True)
        (inside / path).write_bytes(content)
    shutil.copy(build / "libexec/drarun/drarun-cluster", inside / "opt")
    config = json.loads(named_server.read_text())
    config["clusters"][0]["cluster"]["certificate-authority"] = "/opt/ca.crt"
    (inside / "opt/config").write_text(json.dumps(config))
    (inside / "dev").mkdir(exist_ok=True)
    (inside / "dev/null").touch()
    assert_no_jobs("chroot", inside, "/opt/drarun-cluster", env={"KUBECONFIG": "/opt/config", "PATH": os.environ["PATH"]})


def test_arm64_talks_to_a_cluster(built_arm64, named_server):
    assert_no_jobs(EMULATOR, built_arm64 / "libexec/drarun/drarun-cluster", env={**os.environ, "KUBECONFIG": str(named_server)})


@pytest.fixture(scope="module")
def packages(source, build, built_arm64, tmp_path_factory):
    """The packages of two runs of the part of scripts/release that makes them, and its list of what they hold."""
    for program in ("dpkg-deb", "dpkg-shlibdeps"):
        if not shutil.which(program):
            pytest.skip(f"no {program}; run scripts/setup --test")
    loader = importlib.machinery.SourceFileLoader("release", str(source / "scripts/release"))
    script = importlib.util.module_from_spec(importlib.util.spec_from_loader("release", loader))
    loader.exec_module(script)
    made = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        patch.setenv("TZ", "UTC")
        for name in ("one", "other"):
            work, out = tmp_path_factory.mktemp(name), tmp_path_factory.mktemp(f"{name}-out")
            release = script.Release(cached("CMAKE_PROJECT_VERSION"), "", 0, source, script.given([build, built_arm64]), work, out)
            before = os.umask(0o022)  # as the script
            release.packages()
            os.umask(before)
            made.append((release, {path.name: path for path in out.iterdir()}))
    return made


def field(package, name):
    return subprocess.run(["dpkg-deb", "-f", package, name], capture_output=True, text=True, check=True).stdout.strip()


def test_packages_for_both_architectures(packages):
    """All four of this machine's; of the other's drarun and, where it is built, drarun-bench; the same bytes twice; each is in the bill with the
    programs of its own build."""
    (release, files), (_, again) = packages
    version = f"{cached('CMAKE_PROJECT_VERSION')}-1"
    foreign = ("drarun",) if ANYWHERE_MISSING else ("drarun", "drarun-bench")
    assert {*files} == {*again} == {*(f"{name}_{version}_amd64.deb" for name in ("drarun", "drarun-bench", "libdrarun0", "libdrarun-dev")),
                                    *(f"{name}_{version}_arm64.deb" for name in foreign)}
    assert [name for name in files if files[name].read_bytes() != again[name].read_bytes()] == []
    held = {each.file.name: each for each in release.artefacts}
    for machine in ("amd64", "arm64"):
        name = f"drarun_{version}_{machine}.deb"
        assert field(files[name], "Architecture") == machine
        assert {each.machine for each in held[name].programs} == {machine} and "bin/drarun-plugin" in {each.path for each in held[name].programs}
    if not ANYWHERE_MISSING:
        held, package = held[f"drarun-bench_{version}_arm64.deb"], files[f"drarun-bench_{version}_arm64.deb"]
        assert {(each.machine, each.path) for each in held.programs} >= {("arm64", "anywhere/bin/drarun-bench"), ("arm64", "anywhere/lib/drarun/bench-nccl.so")}
        assert re.fullmatch(rf"drarun \(= {re.escape(version)}\), libc6 \(>= 2\.\d+\)", field(package, "Depends"))


def test_release_names_the_c_library_of_arm64(packages, sysroot):
    """In the list that the architectures are compared by, as in the bill of materials, and in the .buildinfo."""
    release, _ = packages[0]
    version = c_library_of(sysroot)
    linked = sbom.versions(release.builds.values())
    assert linked["glibc"]["arm64"] == version and {*linked["glibc"]} == {"amd64", "arm64"}
    carried = sbom.Origins().of([path for each in release.builds.values() for path in each.loaded(each.programs(sbom.CORE))])
    assert {(part.package, part.arch) for part in carried.values()} == {("libc6", "amd64"), ("libc6", "arm64")}
    assert {part.version for part in carried.values() if part.arch == "arm64"} == {version}
    release.buildinfo()
    about = (release.out / f"drarun-{cached('CMAKE_PROJECT_VERSION')}.buildinfo").read_text()
    listed = re.search(r"^Sysroot-Packages:\n((?: \S+:\S+ \(= \S+\),\n)+ \S+:\S+ \(= \S+\)\n)\Z", about, re.M)[1]
    assert f" libc6-dev:arm64 (= {version}),\n" in listed and listed.count("\n") == len((sysroot / "packages").read_text().split())


def test_package_for_arm64(packages, sysroot, tmp_path):
    """Of the same files as this machine's; what it depends on has what its programs ask for; no error of lintian's; it runs."""
    version = f"{cached('CMAKE_PROJECT_VERSION')}-1"
    names, roots = {}, {}
    for machine in ("amd64", "arm64"):
        package = packages[0][1][f"drarun_{version}_{machine}.deb"]
        roots[machine] = tmp_path / machine
        subprocess.run(["dpkg-deb", "-x", package, roots[machine]], check=True)
        names[machine] = {str(path.relative_to(roots[machine])) for path in roots[machine].rglob("*")}
    assert names["arm64"] == names["amd64"] and "usr/bin/drarun" in names["arm64"]
    needed = set()
    for path in roots["arm64"].rglob("*"):
        if path.is_file() and not path.is_symlink() and path.open("rb").read(4) == b"\x7fELF":
            said = subprocess.run(["readelf", "-hSVW", path], capture_output=True, text=True, check=True).stdout
            assert re.search(r"Machine: +(.*)", said)[1] == "AArch64" and ".debug_info" not in said, path
            needed |= {tuple(map(int, each.split("."))) for each in re.findall(r"Name: GLIBC_([\d.]+)", said)}
    (depends,) = field(packages[0][1][f"drarun_{version}_arm64.deb"], "Depends").split(", ")
    assert needed and max(needed) <= tuple(map(int, re.fullmatch(r"libc6 \(>= ([\d.]+)\)", depends)[1].split(".")))
    assert cached("CMAKE_PROJECT_VERSION") in emulated(roots["arm64"] / "usr/bin/drarun", "--version")
    assert "drarun" in emulated(roots["arm64"] / "usr/sbin/drarun-plugin", "--version")
    assert says_there_is_no_nvml(roots["arm64"] / "usr/libexec/drarun/drarun-nvml", sysroot)
    if not shutil.which("lintian"):
        pytest.skip("no lintian; run scripts/setup --test")
    run = subprocess.run(["lintian", "--fail-on", "error", "--allow-root", packages[0][1][f"drarun_{version}_arm64.deb"]], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_image_of_builds_that_do_not_go_together(source, build, built_arm64, tmp_path):
    def made(*options):
        run = subprocess.run([source / "scripts/image", "x:1", tmp_path / "x.tar", *options], capture_output=True, text=True,
                             env={**os.environ, "DRARUN_BUILD": str(build)})
        assert run.returncode == 1 and not (tmp_path / "x.tar").exists()
        return run.stderr
    assert "is for amd64, as is another build" in made("--also", build)
    assert "no node/bin/drarun-worker" in made("--also", "node")


@pytest.mark.skipif(bool(ANYWHERE_MISSING), reason=ANYWHERE_MISSING)
def test_arm64_bench(built_arm64, sysroot):
    """drarun-bench for the images of others: linked in the same way; it starts under emulation."""
    objdump, folder = shutil.which("aarch64-linux-gnu-objdump"), built_arm64
    run = subprocess.run(["cmake", "--build", folder, "--target", "bench_anywhere"], capture_output=True, text=True, timeout=patience(240))
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    files = [path for path in (folder / "anywhere").rglob("*") if path.is_file()]
    assert {path.name for path in files} == {"drarun-bench", "bench-nccl.so", "bench-mpi-ompi.so", "bench-mpi-mpich.so"}
    for path in files:
        symbols = subprocess.run([objdump, "-T", path], capture_output=True, text=True, check=True).stdout
        versions = {tuple(map(int, each.split("."))) for each in re.findall(r"GLIBC_([\d.]+\d)", symbols)}
        assert versions and max(versions) <= (2, 28), (path, max(versions))
    assert emulated(folder / "anywhere/bin/drarun-bench", "--help", root=sysroot).startswith("Usage: drarun-bench")
