# SPDX-License-Identifier: Apache-2.0
"""What scripts/release makes, of the programs of this build: the same bytes twice, and files that work where nothing else is."""
import contextlib
import hashlib
import importlib.util
import io
import json
import os
import platform
import re
import runpy
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import urllib.parse
import zipfile
from pathlib import Path

import pytest

from support import pages
from support.build import ANYWHERE_MISSING, BUILD, SOURCE, cached, copy_source, patience
from support.helm import Helm
from support.run import Runner

sys.path[:0] = [str(SOURCE / "scripts/lib"), str(SOURCE / "python")]
import absolute_links  # noqa: E402
import sbom  # noqa: E402

pytestmark = pytest.mark.plain("a release is of plain builds")

VERSION = cached("CMAKE_PROJECT_VERSION")
MACHINE = sbom.oci_image.own_machine()
TARBALL = f"drarun-{VERSION}-linux-{MACHINE}.tar.gz"
IMAGE = f"drarun-{VERSION}-image.tar"
CHART = f"drarun-{VERSION}.tgz"
BILL = f"drarun-{VERSION}.spdx.json"
NOTES = f"drarun-{VERSION}-notes.md"
BUILDINFO = f"drarun-{VERSION}.buildinfo"
PACKAGES = "drarun", "drarun-bench", "libdrarun0", "libdrarun-dev"
CACHE = Path(os.environ.get("DRARUN_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "drarun")
PAGE = "docs/install.md"
CHECKS = "gpg --verify SHA256SUMS.asc SHA256SUMS", "sha256sum --check --ignore-missing SHA256SUMS"


def typed_of_page():
    """The commands of PAGE that are run here as they stand there: of a folder with the files of a release."""
    first = [each for each in pages.commands(PAGE) if each.text in CHECKS or each.text == f"export VERSION={VERSION}"]
    return first + pages.commands(PAGE, "Tarball")


def ok(*command, **more):
    run = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=patience(300), **more)
    assert run.returncode == 0, (command, run.stdout, run.stderr)
    return run.stdout


def commit(tree, *options, **more):
    ok("git", "add", "-A", cwd=tree)
    ok("git", "-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null",
       "commit", "-q", "--allow-empty", "-m", "tests: a tree", *options, cwd=tree, **more)


def dated(copy):
    """Gives the section of the version a date, and pages what they say when there is a release."""
    changelog = copy / "CHANGELOG.md"
    changelog.write_text(re.sub(rf"^## \[{re.escape(VERSION)}\].*$", f"## [{VERSION}] - 2026-01-31", changelog.read_text(), flags=re.M))
    for page, says, instead in (("README.md", "first release | none yet", "first release | 2026"), ("MAINTAINERS.md", "Fingerprint: none yet.", "Fingerprint: 0000.")):
        (copy / page).write_text((copy / page).read_text().replace(says, instead))


@contextlib.contextmanager
def keyring():
    """The environment of a gpg with one key, of test@example.org."""
    home = tempfile.mkdtemp(prefix="dt-gpg-", dir="/tmp")  # short: holds a socket
    environment = {**os.environ, "GNUPGHOME": home}
    ok("gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", "test@example.org", "ed25519", "sign", "never", env=environment)
    yield environment
    subprocess.run(["gpgconf", "--kill", "all"], env=environment)
    shutil.rmtree(home)


@pytest.fixture
def key():
    """One that a test may change."""
    with keyring() as made:
        yield made


@pytest.fixture(scope="module")
def signer():
    """That of the release and of its commit."""
    with keyring() as made:
        yield made


@pytest.fixture(scope="module")
def tree(tmp_path_factory, signer):
    """The files of this tree, changed ones too, as a repository with one commit, as one for a release is: dated, and signed."""
    folder = tmp_path_factory.mktemp("tree") / "drarun"
    copy_source(folder)
    dated(folder)
    ok("git", "init", "-q", cwd=folder)
    commit(folder, "-Stest@example.org", env=signer)
    return folder


@pytest.fixture
def copy(tree, tmp_path):
    """A clone that a test may change."""
    ok("git", "clone", "-q", "--shared", tree, tmp_path / "copy")
    return tmp_path / "copy"


def release(tree, *options, **more):
    return subprocess.run([tree / "scripts/release", *map(str, options)], capture_output=True, text=True, timeout=patience(300), **more)


@contextlib.contextmanager
def other_file_system():
    """A folder of one in memory, where there is room: folders have another size there."""
    memory = "/dev/shm"
    room = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2**30
    with tempfile.TemporaryDirectory(prefix="dt-release-", dir=memory if room else None) as folder:
        yield Path(folder)


# of the caller's environment, that builds and archivers heed
VARIABLES = {"CFLAGS": "-O0", "DESTDIR": "/nonexistent", "GZIP": "-1", "TAR_OPTIONS": "--mode=a+rwX", "PYTHONPATH": "/nonexistent"}


def other_home(home):
    """Of a user who has another wheel there, and whose pip and distutils do other things."""
    for name, text in ((".pydistutils.cfg", "[bdist_wheel]\nbuild_number = 7\n"), (".config/pip/pip.conf", "[global]\nrequire-virtualenv = true\n")):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    modules = Path(ok("/usr/bin/python3", "-c", "import site; print(site.getusersitepackages())", env={**os.environ, "HOME": str(home)}).strip())
    shutil.copytree(Path(importlib.util.find_spec("wheel").origin).parent, modules / "wheel")
    (modules / "wheel/__init__.py").write_text('__version__ = "99"\n')
    return {"HOME": str(home)}


@pytest.fixture(scope="module")
def made(tree, signer, tmp_path_factory):
    """The folders of two runs: from two clones, on two file systems, with two umasks, time zones, homes and environments. The second is signed,
    where git shows signatures of commits."""
    found = []
    with other_file_system() as other:
        for folder, mask, options, more in ((tmp_path_factory.mktemp("one"), 0o022, (), {"TZ": "UTC"}),
                                            (other, 0o077, ("--sign", "test@example.org"), {**signer, "TZ": "Asia/Tokyo", **other_home(other / "home"), **VARIABLES})):
            clone, out = folder / "clone", folder / "below/out"
            ok("git", "clone", "-q", "--shared", tree, clone)
            ok("git", "config", "log.showSignature", str(bool(options)).lower(), cwd=clone)
            run = release(clone, VERSION, "--build", BUILD, "--out", out, *options, umask=mask, env={**os.environ, **more})
            assert run.returncode == 0, run.stdout + run.stderr
            assert f"{out}: drarun {VERSION} of commit " in run.stdout
            assert [path.name for path in out.parent.iterdir()] == ["out"]
            found.append(out)
        yield found


@pytest.fixture(scope="module")
def files(made):
    return made[0]


@pytest.fixture(scope="module")
def bill(files):
    """(the document, {id: package}, {(id, kind): the ids that it is related to})"""
    document = json.loads((files / BILL).read_text())
    packages = {each["SPDXID"]: each for each in document["packages"]}
    assert len(packages) == len(document["packages"])
    related = {}
    for each in document["relationships"]:
        related.setdefault((each["spdxElementId"], each["relationshipType"]), set()).add(each["relatedSpdxElement"])
    return document, packages, related


@pytest.fixture(scope="module")
def unpacked(files, tmp_path_factory):
    """A folder with what is in the tarball and nothing else."""
    folder = tmp_path_factory.mktemp("unpacked")
    ok("tar", "-C", folder, "-xf", files / TARBALL)
    return folder


@pytest.fixture(scope="module")
def image(files, tmp_path_factory):
    """(the archive's entry, its manifest, its config, a folder with what it holds)"""
    folder = tmp_path_factory.mktemp("image")
    with tarfile.open(files / IMAGE) as tar:
        def blob(of):
            return tar.extractfile(f"blobs/{of['digest'].replace(':', '/')}").read()
        top, = json.load(tar.extractfile("index.json"))["manifests"]
        manifest = json.loads(blob(top))
        with tarfile.open(fileobj=io.BytesIO(blob(manifest["layers"][0]))) as layer:
            layer.extractall(folder)
        return top, manifest, json.loads(blob(manifest["config"])), folder


@pytest.fixture(scope="module")
def script():
    """What scripts/release defines."""
    return runpy.run_path(str(SOURCE / "scripts/release"))


def deb(name):
    return f"{name}_{VERSION}-1_{MACHINE}.deb"


# ---- what is made ----

def test_two_runs_give_the_same_bytes(made):
    names = sorted(path.name for path in made[0].iterdir())
    assert sorted([*names, "SHA256SUMS.asc"]) == sorted(path.name for path in made[1].iterdir())
    assert [name for name in names if (made[0] / name).read_bytes() != (made[1] / name).read_bytes()] == []


def test_files(files):
    wheel = f"drarun-{VERSION}-py3-none-manylinux_2_34_{os.uname().machine}.whl"
    described = {TARBALL, IMAGE, CHART, wheel, *map(deb, PACKAGES)}
    assert {path.name for path in files.iterdir()} == {BILL, NOTES, BUILDINFO, "SHA256SUMS", *described, *(f"{name}.spdx.json" for name in described)}


def test_checksums(files):
    ok("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=files)
    listed = {line.split("  ")[1] for line in (files / "SHA256SUMS").read_text().splitlines()}
    assert listed == {path.name for path in files.iterdir()} - {"SHA256SUMS"}


def test_notes_are_the_section_of_the_changelog_and_the_digest(files, image):
    section, _, about = (files / NOTES).read_text().partition("\n\n### Image\n\n")
    title, empty, *lines = section.splitlines()
    changelog = absolute_links.absolute((SOURCE / "CHANGELOG.md").read_text(), "CHANGELOG.md", VERSION)
    assert (title, empty) == (f"# drarun {VERSION}", "") and lines and "](docs/" not in changelog
    assert "\n".join(lines) in changelog.partition(f"## [{VERSION}]")[2] and not any(line.startswith("## ") for line in lines)
    assert re.findall(r"sha256:[0-9a-f]+", about) == [image[0]["digest"]] * 2 and f"ghcr.io/drarun/drarun:{VERSION}" in about


def test_buildinfo(files):
    """The packages of the machine, compilers and archivers among them, in the versions that it has."""
    text = (files / BUILDINFO).read_text()
    listed = dict(re.findall(r"^ ([a-z0-9.+-]+) \(= (\S+)\),?$", text, re.M))
    assert {"binutils", "cmake", "dpkg", "gcc-12", "gzip", "libc6", "libssl-dev", "libssl3", "python3-wheel", "zlib1g"} <= {*listed}
    assert "usr-local-has" not in text  # another machine has other programs there
    shown = ok("dpkg-query", "-W", "-f", "${Package} ${Version}\n", *listed).splitlines()
    assert {f"{name} {version}" for name, version in listed.items()} <= {*shown}
    for name in PACKAGES:
        assert f" {hashlib.sha256((files / deb(name)).read_bytes()).hexdigest()} {(files / deb(name)).stat().st_size} {deb(name)}\n" in text
    assert f"\nVersion: {VERSION}-1\n" in text and "Build-Date" not in text


# ---- the tarball ----

def test_tarball_runs_where_nothing_else_is(unpacked, tmp_path):
    top, = unpacked.iterdir()
    assert top.name == f"drarun-{VERSION}"
    runner = Runner(top / "bin/drarun")
    try:
        result = runner("-n", 2, "hostname", cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}).ok()
        assert result.out.split() == [socket.gethostname()] * 2
    finally:
        runner.close()
    for program in ("bin/drarun", "bin/drarun-worker", "sbin/drarun-attach"):
        assert not re.search(r"NEEDED|INTERP", ok("readelf", "-ld", top / program))
    assert (top / "share/man/man1/drarun.1").exists() and (top / "share/doc/drarun/examples/jobs/two-by-two.yaml").exists()


def test_tarball_has_nobodys_marks(files, tree):
    seconds = int(ok("git", "log", "-1", "--format=%ct", cwd=tree))
    with tarfile.open(files / TARBALL) as tar:
        members = tar.getmembers()
    names = [each.name.split("/") for each in members]
    assert names == sorted(names)
    assert {(each.uid, each.gid, each.uname, each.gname, each.mtime) for each in members} == {(0, 0, "", "", seconds)}
    assert {each.mode for each in members if not each.issym()} == {0o755, 0o644}


# ---- the bill of materials ----

def programs_in(bill, name):
    """{path of the build: id} of a file of the release."""
    _, packages, related = bill
    ident, = (each["SPDXID"] for each in packages.values() if each["name"] == name)
    inside = related.get((ident, "CONTAINS"), set())
    return {packages[each]["comment"].partition("; ")[2].removesuffix(" of the build"): each for each in inside if "SPDXRef-Program-" in each}


def names_of(bill, idents):
    """{binary package or upstream's name, from the purl}"""
    _, packages, _ = bill
    return {re.match(r"pkg:\w+/\w+/([^@]+)@", packages[each]["externalRefs"][0]["referenceLocator"])[1] for each in idents}


def test_bill_is_whole(bill, files):
    document, packages, related = bill
    assert (document["spdxVersion"], document["SPDXID"], document["dataLicense"]) == ("SPDX-2.3", "SPDXRef-DOCUMENT", "CC0-1.0")
    named = {ident for (one, _), others in related.items() for ident in (one, *others)}
    assert named == {"SPDXRef-DOCUMENT", *packages}
    for ident in named:
        assert re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", ident)
    described = {packages[each]["name"]: packages[each]["checksums"] for each in related["SPDXRef-DOCUMENT", "DESCRIBES"]}
    assert described == {path.name: [{"algorithm": "SHA256", "checksumValue": hashlib.sha256(path.read_bytes()).hexdigest()}]
                         for path in files.iterdir() if path.name not in (NOTES, BUILDINFO, "SHA256SUMS") and path.suffix != ".json"}


def test_bill_of_each_file(bill, files):
    """What one bill of all says of a file, and no more."""
    document, packages, related = bill
    spaces = {document["documentNamespace"]}
    for ident in related["SPDXRef-DOCUMENT", "DESCRIBES"]:
        own = json.loads((files / f"{packages[ident]['name']}.spdx.json").read_text())
        reached, left = set(), ["SPDXRef-DOCUMENT"]
        while left:
            one = left.pop()
            reached.add(one)
            left += [each["relatedSpdxElement"] for each in own["relationships"] if each["spdxElementId"] == one and each["relatedSpdxElement"] not in reached]
        assert reached == {"SPDXRef-DOCUMENT", *(each["SPDXID"] for each in own["packages"])}
        assert all(packages[each["SPDXID"]] == each for each in own["packages"]) and ident in reached
        assert all(each["relatedSpdxElement"] in related[each["spdxElementId"], each["relationshipType"]] for each in own["relationships"])
        spaces.add(own["documentNamespace"])
    assert len(spaces) == 1 + len(related["SPDXRef-DOCUMENT", "DESCRIBES"])


def test_bill_names_every_program(bill, unpacked, files):
    top, = unpacked.iterdir()
    elf = {path.name for path in top.rglob("*") if path.is_file() and path.open("rb").read(4) == b"\x7fELF"}
    assert {Path(path).name for path in programs_in(bill, TARBALL)} == elf
    assert {"bin/drarun", "libexec/drarun/drarun-cluster"} <= {*programs_in(bill, IMAGE)}
    assert {*programs_in(bill, deb("libdrarun0"))} == {"lib/libdrarun.so.0"}


def test_bill_has_the_versions_that_programs_say(bill, unpacked):
    """Of the libraries in them: drarun names all that are in any program of the release, and no other."""
    _, packages, related = bill
    top, = unpacked.iterdir()
    programs = programs_in(bill, TARBALL)
    program, agent = (programs[f"bin/{name}"] for name in ("drarun", "drarun-worker"))
    linked = {packages[each]["name"]: packages[each]["versionInfo"] for (_, kind), others in related.items() if kind == "STATIC_LINK" for each in others}
    said = json.loads(ok(top / "bin/drarun", "version", "-o", "json"))
    assert said["version"] == VERSION == packages[program]["versionInfo"]
    libraries = {{"libc": "glibc", "libpmix": "openpmix"}.get(name, name): version for name, version in said["libraries"].items()}
    assert {*libraries} == {*linked} - {"gcc-12", "ziglang"}  # parts of compilers, which are no library that somebody chose
    for name, version in libraries.items():
        assert re.match(r"(\d+:)?" + re.escape(version) + r"(?!\w|\.\d)", linked[name]), (name, version, linked[name])
    linked = {packages[each]["name"]: packages[each]["versionInfo"] for each in related[agent, "STATIC_LINK"]}
    assert linked["openpmix"] == re.search(r"libpmix (\S+)", ok(top / "bin/drarun-worker", "--version"))[1]
    assert {"openssl", "hwloc", "libevent", "munge", "rdma-core"} <= {*linked}
    assert "openssl" not in {packages[each]["name"] for each in related[program, "STATIC_LINK"]}  # drarun gives place to drarun-remote for TLS


def test_bill_has_the_libraries_that_dpkg_finds(bill, files):
    """dpkg-shlibdeps has looked for the same in its own way, for the Debian package."""
    _, _, related = bill
    depends = ok("dpkg-deb", "-f", files / deb("drarun"), "Depends")
    loaded = set().union(*(related.get((program, "DYNAMIC_LINK"), set()) for program in programs_in(bill, deb("drarun")).values()))
    assert names_of(bill, loaded) == {each.split()[0] for each in depends.split(", ")}


def test_bill_has_the_libraries_that_the_image_carries(bill, files):
    _, packages, related = bill
    ident, = (each["SPDXID"] for each in packages.values() if each["name"] == IMAGE)
    carried = names_of(bill, {each for each in related[ident, "CONTAINS"] if "SPDXRef-Library-" in each})
    owners = set()
    for line in ok("ldd", BUILD / "libexec/drarun/drarun-nvml").splitlines():
        for path in re.findall(r"/\S+", line):
            said = subprocess.run(["dpkg-query", "-S", path, os.path.realpath(path), os.path.realpath(path).removeprefix("/usr")], capture_output=True, text=True).stdout
            owners |= {re.split("[:,]", each)[0] for each in said.splitlines()}
    assert "libc6" in owners and owners <= carried


def test_notices_of_all_that_is_linked_in(bill, files, unpacked, tmp_path):
    """What the authors of libraries want to be said goes along with the programs that have them."""
    _, packages, related = bill
    inside = {packages[each]["name"] for (_, kind), others in related.items() if kind == "STATIC_LINK" for each in others}
    text = (next(unpacked.iterdir()) / "share/doc/drarun/THIRD-PARTY").read_text()
    named = set(re.findall(r"^={80}\n(\S+) \S+ \(.*\): .*\n={80}$", text, re.M))
    assert "GNU LESSER GENERAL PUBLIC LICENSE\n                       Version 2.1" in text
    assert named == inside and {"openssl", "curl", "openpmix", "glibc"} <= named
    assert "Daniel Stenberg" in text and "The OpenSSL Project" in text and "Niels Provos" in text  # of libevent
    ok("dpkg-deb", "-x", files / deb("drarun"), tmp_path / "deb")
    assert (tmp_path / "deb/usr/share/doc/drarun/THIRD-PARTY").read_text() == text
    wheel, = files.glob("*.whl")
    assert ok(sys.executable, "-c", "import sys, zipfile; sys.stdout.write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]).decode())", wheel,
              f"drarun-{VERSION}.data/data/share/doc/drarun/THIRD-PARTY") == text


@pytest.mark.skipif(bool(ANYWHERE_MISSING), reason=ANYWHERE_MISSING)
def test_bill_has_the_compiler_of_programs_for_other_images(bill, unpacked):
    """It links in a runtime of its own."""
    _, packages, related = bill
    for path, ident in programs_in(bill, IMAGE).items():
        compilers = {packages[each]["versionInfo"] for each in related[ident, "STATIC_LINK"] if packages[each]["name"] == "ziglang"}
        assert compilers == ({"0.13.0"} if path.startswith("anywhere/") else set()), path
    text = (next(unpacked.iterdir()) / "share/doc/drarun/THIRD-PARTY").read_text()
    assert "Copyright (c) Zig contributors" in text and "Regents of the University of California" in text


def test_bill_has_all_licences(bill):
    _, packages, related = bill
    inside = set().union(*(others for (_, kind), others in related.items() if kind == "STATIC_LINK"))
    assert inside and not [each["name"] for each in packages.values() if each["licenseDeclared"] == "NOASSERTION"]


# ---- image, chart, wheel, packages ----

def test_image(image, tree):
    top, manifest, config, _ = image
    assert top["annotations"]["io.containerd.image.name"] == f"ghcr.io/drarun/drarun:{VERSION}"
    assert top["annotations"]["io.containerd.image.name"] in (SOURCE / "deploy/plugin.yaml").read_text()
    labels = {name.removeprefix("org.opencontainers.image."): value for name, value in config["config"]["Labels"].items()}
    assert labels.pop("licenses").startswith("Apache-2.0 AND ")
    assert labels == {"source": "https://github.com/drarun/drarun", "version": VERSION, "revision": ok("git", "rev-parse", "HEAD", cwd=tree).strip()}
    assert manifest["annotations"] == config["config"]["Labels"]


def test_image_has_the_programs_of_the_tarball(image, unpacked):
    """Without symbols, which nobody needs there, and compressed as a registry has it, so that its digest stays."""
    _, manifest, _, root = image
    assert [each["mediaType"] for each in manifest["layers"]] == ["application/vnd.oci.image.layer.v1.tar+gzip"]
    top, = unpacked.iterdir()
    for inside, there in (("bin/drarun", "bin/drarun"), ("bin/drarun-worker", "bin/drarun-worker"), ("bin/drarun-attach", "sbin/drarun-attach"),
                          ("bin/drarun-plugin", "sbin/drarun-plugin"), *((f"libexec/drarun/drarun-{name}",) * 2 for name in ("cluster", "nvml", "remote"))):
        assert (root / inside).read_bytes() == (top / there).read_bytes(), inside


def test_no_program_names_the_cache(image, unpacked):
    """Other machines have it elsewhere."""
    for path in (*image[3].rglob("*"), *unpacked.rglob("*")):
        assert path.is_symlink() or not path.is_file() or os.fsencode(CACHE) not in path.read_bytes(), path


@pytest.mark.parametrize("machine", ["amd64", "arm64"])
@pytest.mark.parametrize("library", ["pmix", "curl"])
def test_library_does_not_name_its_cache(library, machine):
    fetched = subprocess.run([SOURCE / f"scripts/fetch-{library}", "--cached", machine], capture_output=True, text=True)
    if fetched.returncode != 0:
        pytest.skip(fetched.stderr.strip())
    folder = Path(fetched.stdout.split()[0])
    assert os.fsencode(folder.parent) not in (folder / f"lib/lib{library}.a").read_bytes()


def test_chart(files, tmp_path):
    ok("tar", "-C", tmp_path, "-xf", files / CHART)
    inside, ours = ({str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}
                    for top in (tmp_path / "drarun", SOURCE / "deploy/chart"))
    page = absolute_links.absolute(ours["README.md"].decode(), "deploy/chart/README.md", VERSION)
    assert f"(https://github.com/drarun/drarun/blob/v{VERSION}/docs/node-plugin.md)" in page and not absolute_links.RELATIVE.search(page)
    assert inside == {**ours, "README.md": page.encode()} and "Chart.yaml" in ours
    assert Helm(tmp_path).rendered(chart=files / CHART) == Helm(tmp_path).rendered()


@pytest.fixture
def wheel(files):
    found, = files.glob("*.whl")
    return found


def test_wheel(wheel, tmp_path):
    ok(sys.executable, "-m", "zipfile", "-e", wheel, tmp_path)
    said = ok(sys.executable, "-B", "-c", "import drarun, drarun._library; print(drarun.__file__); print(open('/proc/self/maps').read())", cwd=tmp_path,
              env={**{name: value for name, value in os.environ.items() if name != "DRARUN_LIBRARY"}, "PYTHONPATH": str(tmp_path)})
    assert said.startswith(f"{tmp_path}/drarun/") and f"{tmp_path}/drarun/libdrarun.so.0" in said
    about = (tmp_path / f"drarun-{VERSION}.dist-info/METADATA").read_text()
    assert "\nVersion: " + VERSION + "\n" in about and "\nDescription-Content-Type: text/markdown\n" in about
    assert f"(https://github.com/drarun/drarun/blob/v{VERSION}/docs/install.md)" in about and not absolute_links.RELATIVE.search(about)
    assert (tmp_path / f"drarun-{VERSION}.dist-info/LICENSE").read_text() == (SOURCE / "LICENSE").read_text()


def test_wheel_has_the_modes_of_every_user(wheel):
    """Root's tar would keep those that git gives an archive, which are others."""
    with zipfile.ZipFile(wheel) as content:
        modes = {each.filename: each.external_attr >> 16 & 0o777 for each in content.infolist()}
    assert {mode for name, mode in modes.items() if not name.endswith("/RECORD")} == {0o644, 0o755}  # RECORD: always 0664


@pytest.mark.parametrize("name", PACKAGES)
def test_size_of_a_package_is_that_of_its_files(files, name):
    size = 0
    for line in ok("dpkg-deb", "-c", files / deb(name)).splitlines():
        mode, _, length, _, _, path, *_ = line.split()
        if path != "./":
            size += (int(length) + 1023) // 1024 if mode.startswith("-") else 1
    assert int(ok("dpkg-deb", "-f", files / deb(name), "Installed-Size")) == size


def test_wheel_goes_with_the_c_libraries_that_its_name_says(wheel, tmp_path):
    ok(sys.executable, "-m", "zipfile", "-e", wheel, tmp_path)
    elf = [path for path in tmp_path.rglob("*") if path.is_file() and path.open("rb").read(4) == b"\x7fELF"]
    assert {path.name for path in elf} == {"libdrarun.so.0", "drarun", "drarun-worker", "drarun-remote", "drarun-cluster"}
    for path in elf:
        assert ".debug_info" not in ok("readelf", "-SW", path)
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", ok("readelf", "-d", path))
        assert all(re.fullmatch(r"(libc|libm|ld-linux-[-\w]+)\.so\.\d", name) for name in needed) if path.suffix == ".0" else not needed
    symbols = ok("readelf", "-W", "--dyn-syms", tmp_path / "drarun/libdrarun.so.0")
    versions = {tuple(map(int, each.split("."))) for each in re.findall(r"@GLIBC_([\d.]+)", symbols)}
    assert versions and max(versions) <= (2, 34)
    exported = {line.split()[-1].split("@")[0] for line in symbols.splitlines() if " UND " not in line and re.search(r" (FUNC|OBJECT) +(GLOBAL|WEAK) ", line)}
    assert exported and all(name.lower().startswith("drarun_") for name in exported), exported  # OpenSSL's own names stay inside


# ---- in the root file systems of others, which have nothing of ours but the artefact ----

class Root:
    """A copy of a small root file system of scripts/fetch-roots, in which commands run."""

    def __init__(self, name, folder):
        fetched = subprocess.run([SOURCE / "scripts/fetch-roots", name], capture_output=True, text=True)
        if fetched.returncode != 0:
            pytest.skip(f"scripts/fetch-roots: {fetched.stderr.strip()[-300:]}")
        self.path = folder / "root"
        shutil.copytree(fetched.stdout.split()[1], self.path, symlinks=True)
        (self.path / "opt").mkdir(exist_ok=True)

    def __call__(self, command, **env):
        """What a shell there prints."""
        words = ["TMPDIR=/tmp", "PATH=/usr/local/bin:/usr/bin:/usr/sbin", *(f"{name}={value}" for name, value in env.items())]
        script = " && ".join([f"mount -t proc proc {self.path}/proc", f"mount --rbind /sys {self.path}/sys", f"mount --rbind /dev {self.path}/dev",
                              f'exec env -i {" ".join(words)} chroot {self.path} sh -ec "$1"'])
        return ok("unshare", "--mount", "sh", "-c", script, "sh", command, env={"PATH": os.environ["PATH"]})

    def names(self):
        """All that is there, folders too, but for dpkg's own notes."""
        found = {str(path.relative_to(self.path)) for path in self.path.rglob("*")}
        return {name for name in found if not name.startswith(("var/lib/dpkg/", "var/log/"))}


@pytest.fixture
def root(request, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root for chroot and mount")
    return Root(request.param, tmp_path)


def in_roots(*names):
    return pytest.mark.parametrize("root", names, indirect=True)


RANKS = "-n 4 sh -c 'echo rank $RANK of $WORLD_SIZE'"
RANKS_SAY = [f"rank {rank} of 4" for rank in range(4)]


@in_roots("busybox")
def test_tarball_by_the_page(files, root):
    """Its commands, in a root that has nothing but busybox."""
    shutil.copy(files / TARBALL, root.path / "opt")
    commands = [each.text for each in typed_of_page() if each.text not in CHECKS]
    assert len(commands) == 4
    said = root("\n".join(["cd /opt", *commands]).replace("amd64", MACHINE))
    assert sorted(said.splitlines()) == RANKS_SAY


@in_roots("busybox", "bullseye", "bookworm", "trixie", "sid")
def test_tarball_in_another_root(files, root):
    """Unpacked, run and removed: nothing is left. Only drarun-bench, and what loads NVIDIA's library, need a C library."""
    before = root.names()
    ok("tar", "-C", root.path / "opt", "-xf", files / TARBALL)
    top = f"/opt/drarun-{VERSION}"
    assert sorted(root(f"{top}/bin/drarun {RANKS}").splitlines()) == RANKS_SAY
    assert sorted(root(f"{top}/bin/drarun --workers 2 {RANKS}").splitlines()) == RANKS_SAY
    assert root(f"{top}/bin/drarun validate {top}/share/doc/drarun/examples/jobs/hello.yaml").endswith("hello.yaml: ok (job hello, 2 workers)\n")
    assert VERSION in root(f"{top}/sbin/drarun-plugin --version")
    said = root(f"{top}/bin/drarun bench all_reduce -n 2 -b 8 -e 8 --iters 1 2>&1 || true")
    if (root.path / "usr/bin/mpirun").is_symlink():  # in bullseye, with glibc 2.31
        assert "# Out of bounds values : 0 OK" in said and "Open MPI v4.1.0" in said, said
    elif root.path.joinpath("etc/packages").exists():
        assert "backend mpi: no MPI library" in said, said
    if root.path.joinpath("etc/packages").exists() and libc_of(root) >= (2, 34):
        assert "cannot open shared object file" in root(f"! {top}/libexec/drarun/drarun-nvml")
    shutil.rmtree(root.path / f"opt/drarun-{VERSION}")
    assert root.names() == before


def packages_of(root):
    """[(package, version, architecture)] that the root was made of."""
    found = [urllib.parse.unquote(name).removesuffix(".deb").split("_") for name in (root.path / "etc/packages").read_text().split()]
    assert any(each[0] == "libc6" for each in found)
    return found


def libc_of(root):
    version, = (version for name, version, _ in packages_of(root) if name == "libc6")
    return tuple(map(int, re.match(r"(\d+)\.(\d+)", version).groups()))


def tell_dpkg(root):
    """Of the packages in the root, which were unpacked without it: it accepts a package there whose dependencies these satisfy."""
    for name in ("info", "updates", "triggers"):
        (root.path / "var/lib/dpkg" / name).mkdir(parents=True, exist_ok=True)
    (root.path / "var/log").mkdir(exist_ok=True)
    (root.path / "var/lib/dpkg/available").touch()
    (root.path / "var/lib/dpkg/status").write_text("\n".join(
        f"Package: {name}\nStatus: install ok installed\nArchitecture: {arch}\nVersion: {version}\n{also_called(name, version)}Maintainer: nobody\n"
        "Description: unpacked\n" for name, version, arch in packages_of(root)))


def also_called(name, version):
    """Since Debian 13 libraries whose ABI has times of 64 bits have another name; where nothing changed, they provide the former one."""
    return f"Provides: {name.removesuffix('t64')} (= {version})\n" if name.endswith("t64") else ""


@in_roots("bookworm", "trixie", "sid")
def test_package_in_another_root(files, root):
    """dpkg takes it, every program of it starts, a job runs, and dpkg purges it: nothing is left."""
    tell_dpkg(root)
    before = root.names()
    ok("dpkg", f"--root={root.path}", "-i", files / deb("drarun"))
    assert "usr/bin/drarun" in root.names()
    for program in ("drarun", "drarun-worker", "drarun-plugin", "drarun-attach"):
        assert VERSION in root(f"{program} --version"), program
    assert sorted(root(f"drarun {RANKS}").splitlines()) == RANKS_SAY
    ok("dpkg", f"--root={root.path}", "--purge", "drarun")
    assert root.names() == before


def of_an_older_version(files, folder):
    """The packages again, as of version 0.0.9."""
    found = []
    for name in PACKAGES:
        ok("dpkg-deb", "-R", files / deb(name), folder / name)
        control = folder / name / "DEBIAN/control"
        control.write_text(control.read_text().replace(f"{VERSION}-1", "0.0.9-1"))
        ok("dpkg-deb", "--root-owner-group", "-Znone", "-b", folder / name, folder / f"{name}.deb")
        found.append(folder / f"{name}.deb")
    return found


@in_roots("library", "library-trixie")
def test_packages_in_another_root(files, root, tmp_path):
    """All four: installed, also over an older version; drarun-bench and the library find what they load; purged, nothing is left."""
    tell_dpkg(root)
    (root.path / "usr/include").mkdir(exist_ok=True)
    (root.path / "usr/include/others.h").touch()
    root("ldconfig")  # as a package with a library makes dpkg do
    before = root.names()

    def versions():
        return ok("dpkg-query", f"--admindir={root.path}/var/lib/dpkg", "-W", "-f", "${Package} ${Version} ${db:Status-Abbrev}\n", *PACKAGES).splitlines()

    for packages, version in ((of_an_older_version(files, tmp_path), "0.0.9"), ([files / deb(name) for name in PACKAGES], VERSION)):
        ok("dpkg", f"--root={root.path}", "-i", *packages)
        assert sorted(versions()) == sorted(f"{name} {version}-1 ii " for name in PACKAGES)
    assert "not found" not in root("ldd /usr/lib/libdrarun.so.0") and (root.path / "usr/include/drarun/drarun.h").exists()
    assert "backend mpi: no MPI library" in root("drarun bench all_reduce -n 2 2>&1 || true")
    ok("dpkg", f"--root={root.path}", "--purge", *PACKAGES)
    assert root.names() == before


@pytest.mark.parametrize("name,least", [("drarun", "2.34"), ("libdrarun0", "2.36")])
def test_package_depends_on_the_c_library_that_pages_name(files, name, least):
    assert re.search(r"\blibc6 \(>= ([\d.]+)\)", ok("dpkg-deb", "-f", files / deb(name), "Depends"))[1] == least
    for page in PAGE, "CHANGELOG.md":
        assert re.search(rf"\b{re.escape(least)}\b", (SOURCE / page).read_text()), page


@in_roots("bullseye")
def test_package_where_its_libraries_are_too_old(files, root):
    """dpkg says what is missing, and programs that need it do not run: what it depends on is neither too little nor too much."""
    tell_dpkg(root)
    run = subprocess.run(["dpkg", f"--root={root.path}", "-i", files / deb("drarun")], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    assert run.returncode != 0 and re.search(r"drarun depends on libc6 \(>= 2\.34\); however:\n +Version of libc6(:\w+)? on system is 2\.31", run.stderr), run
    assert VERSION in root("drarun-plugin --version")
    assert re.search(r"GLIBC_2\.\d+' not found", root("! /usr/libexec/drarun/drarun-nvml 2>&1"))


APP = """
import drarun, os, sys
if "RANK" in os.environ:
    print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"])
else:
    sys.exit(drarun.run_local([sys.executable, __file__], ranks=2))
"""


@in_roots("python", "python-trixie")
def test_wheel_in_another_root(wheel, root):
    """pip installs it in a bare Debian, drarun runs ranks there by either way, and pip leaves nothing of it but two empty folders that others share."""
    shutil.copy(wheel, root.path / "opt")
    (root.path / "opt/app.py").write_text(APP)
    (root.path / "etc/ssl/certs").mkdir(parents=True, exist_ok=True)
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", root.path / "etc/ssl/certs")  # pip does not start without it

    def inside(command):
        return root(command, PYTHONDONTWRITEBYTECODE=1, PIP_ROOT_USER_ACTION="ignore", PIP_NO_CACHE_DIR=1, PIP_BREAK_SYSTEM_PACKAGES=1,
                    PIP_DISABLE_PIP_VERSION_CHECK=1)

    inside("python3 -m pip --version")
    for folder in root.path.glob("usr/lib/python3.*"):  # those that Debian's packages make when they are configured
        (root.path / "usr/local/lib" / folder.name / "dist-packages").mkdir(parents=True)
    (root.path / "usr/local/share").mkdir()
    before = root.names()
    inside(f"python3 -m pip install -q --no-index --no-compile /opt/{wheel.name}")
    assert sorted(inside("drarun -n 4 python3 /opt/app.py").splitlines()) == RANKS_SAY
    assert sorted(inside("drarun --workers 2 -n 2 python3 /opt/app.py").splitlines()) == ["rank 0 of 2", "rank 1 of 2"]
    assert sorted(inside("python3 /opt/app.py").splitlines()) == ["rank 0 of 2", "rank 1 of 2"]
    inside("python3 -m pip uninstall -q -y drarun")
    assert root.names() - before == {"usr/local/libexec", "usr/local/share/doc"} and before <= root.names()


# ---- signatures, and what is refused ----

def test_signature(made, signer, tmp_path):
    for command in CHECKS:
        ok("sh", "-ec", command, cwd=made[1], env=signer)
    for name in ("SHA256SUMS", "SHA256SUMS.asc"):
        shutil.copy(made[1] / name, tmp_path)
    with open(tmp_path / "SHA256SUMS", "a") as sums:
        sums.write("0" * 64 + "  more\n")
    wrong = subprocess.run(["gpg", "--batch", "--verify", "SHA256SUMS.asc", "SHA256SUMS"], cwd=tmp_path, env=signer, capture_output=True, text=True)
    assert wrong.returncode != 0 and "BAD signature" in wrong.stderr, wrong


def before_the_first(copy):
    """With a page that says that there is no release."""
    page = copy / "README.md"
    page.write_text(page.read_text().replace("first release | 2026", "first release | none yet"))


def test_key_that_does_not_sign(copy, key, tmp_path):
    """Before anything is made."""
    home = Path(key["GNUPGHOME"])
    (home / "gpg-agent.conf").write_text("pinentry-program /bin/false\n")
    ok("gpg", "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", "secret", "--quick-generate-key", "locked@example.org", "ed25519", "sign", "never", env=key)
    ok("gpgconf", "--kill", "gpg-agent", env=key)  # which knows the passphrase
    run = release(copy, VERSION, "--build", BUILD, "--sign", "locked@example.org", "--out", tmp_path / "out", env=key)
    assert run.returncode == 1 and re.search(r"^release: gpg cannot sign with the key locked@example\.org: .*; unlock the key", run.stderr, re.S), run
    assert run.stdout == "" and not (tmp_path / "out").exists()


def test_files_stay_where_the_key_is_gone_at_the_end(script, key, monkeypatch, tmp_path):
    monkeypatch.setenv("GNUPGHOME", key["GNUPGHOME"])
    (tmp_path / "SHA256SUMS").touch()
    with pytest.raises(script["Failed"], match=r"has all files but the signature: (?s:.*)\nTo sign them: gpg --armor --local-user nobody@example.org --detach-sign /"):
        script["sign_sums"](tmp_path, "nobody@example.org")


# ---- what a release is made of, which no test fetches: packages, libraries ----

def test_machine_with_an_older_package(script, monkeypatch):
    newer = "bash 5.2.15-2 5.2.15-3\ndpkg-dev 1.21.22 1.21.23\nlibssl-dev 3.0.19-1 3.0.22-1\nzlib1g-dev 1:1.2.12 1:1.2.13\nlibgcc-12-dev 12.2.0-14 12.2.0-15\n"
    names = script["check_newest"].__globals__
    monkeypatch.setitem(names, "run", lambda program, *words: newer if program == "bash" else "bash\ndpkg-dev\nlibssl-dev\nzlib1g-dev\n")
    with pytest.raises(script["Failed"], match=r"^libssl-dev 3\.0\.19-1, one of 3 packages, is older than Debian's 3\.0\.22-1: "):
        script["check_newest"]()
    newer = "libgcc-12-dev-arm64-cross 12.2.0-14cross1 12.2.0-15cross1\n"  # of which the programs for arm64 have libgcc.a
    with pytest.raises(script["Failed"], match=r"^libgcc-12-dev-arm64-cross 12\.2\.0-14cross1 is older than Debian's 12\.2\.0-15cross1: "):
        script["check_newest"]()
    newer = "bash 5.2.15-2 5.2.15-3\ndpkg-dev 1.21.22 1.21.23\n"
    script["check_newest"]()


def test_packages_of_which_there_are_newer_ones(tmp_path):
    """By the archive's lists of the day, not by the machine's."""
    apt = tmp_path / "apt-get"
    apt.write_text("""#!/bin/sh
case "$*" in
*indextargets*) echo "Packages main $(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release) http://example.org/debian" ;;
*"-s upgrade"*)
    grep -q '^Package: libc6$' "$(sed -n 's/^Dir::State::status "\\(.*\\)";/\\1/p' "$3")" || exit 9
    echo 'Inst libssl-dev [3.0.19-1~deb12u2] (3.0.22-1~deb12u2 Debian-Security:12/oldstable-security [amd64]) []'
    echo 'Inst libssl3 [3.0.19-1~deb12u2] (3.0.22-1~deb12u2 Debian-Security:12/oldstable-security [amd64])'
    echo 'Inst new (1.0 Debian:12.15/oldstable [amd64])'
    echo 'Conf libssl3 (3.0.22-1~deb12u2 Debian-Security:12/oldstable-security [amd64])'
    ;;
esac
""")
    apt.chmod(0o755)
    said = ok("bash", SOURCE / "scripts/lib/outdated.sh", env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "DRARUN_CACHE": str(tmp_path / "cache")})
    assert said == "libssl-dev 3.0.19-1~deb12u2 3.0.22-1~deb12u2\nlibssl3 3.0.19-1~deb12u2 3.0.22-1~deb12u2\n"


def test_architectures_with_different_libraries(script):
    alike = {"curl": {"amd64": "7.88.1-10", "arm64": "7.88.1-10"}, "gcc-12": {"amd64": "12.2.0-14"}}
    script["check_alike"](alike)
    with pytest.raises(script["Failed"], match=r"different versions of openssl in them, 3\.0\.19-1 for amd64, 3\.0\.22-1 for arm64: run apt-get update"):
        script["check_alike"]({**alike, "openssl": {"arm64": "3.0.22-1", "amd64": "3.0.19-1"}})


def test_versions_of_what_is_linked(bill):
    """What the architectures are compared by is what the bill names."""
    _, packages, related = bill
    inside = {packages[each]["name"] for (_, kind), others in related.items() if kind == "STATIC_LINK" for each in others}
    found = sbom.versions([sbom.Build(BUILD)])
    assert {*found} == inside
    assert not [each for each in found.values() if re.search(r"\+b\d+$", each[MACHINE])]  # what Debian has built again has another number on each architecture


def test_machine_without_git(script, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda program: None)
    with pytest.raises(script["Failed"], match=r"^no git, which has the commit; scripts/setup --packages --release installs it$"):
        script["check_tree"]()


def test_module_of_nobody_s_package(script, monkeypatch, tmp_path):
    """As pip installs it for all users, and a Python that is not Debian's has it."""
    script["check_modules"]()
    (tmp_path / "wheel.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(script["Failed"], match=rf"takes the module wheel from {tmp_path}/wheel\.py, and a release is made with that of Debian's package: "):
        script["check_modules"]()


@pytest.mark.parametrize("name", ["include/openssl/ssl.h", "lib/libssl.a", "lib/x86_64-linux-gnu/libz.so.1.3", "lib/pkgconfig/yaml-0.1.pc", "share/cmake/a/aConfig.cmake"])
def test_file_that_compilers_find_before_debian_s(script, tmp_path, name):
    script["check_local"](tmp_path)
    for other in ("bin/tool", "include/empty/", "lib/python3.11/dist-packages/a/_b.so", "lib/tool/a.so", "share/man/man1/tool.1"):  # of which nothing is used
        path = tmp_path / other
        (path if other.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not path.is_dir():
            path.touch()
    script["check_local"](tmp_path)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).touch()
    with pytest.raises(script["Failed"], match=rf"^compilers would take {tmp_path}/{re.escape(name)} before what Debian's packages have, "):
        script["check_local"](tmp_path)


def test_another_system(script, monkeypatch):
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "debian", "VERSION_ID": "13", "PRETTY_NAME": "Debian GNU/Linux 13 (trixie)"})
    with pytest.raises(script["Failed"], match=r"^this machine has Debian GNU/Linux 13 \(trixie\), and a release is built on Debian 12: "):
        script["check_system"]()


def test_program_that_names_the_folder_of_its_run(script, tmp_path):
    built = sbom.Build(BUILD)
    script["check_paths"](built, tmp_path)
    with pytest.raises(script["Failed"], match=r" contains lib/base, the folder of this run, and would differ with every run"):
        script["check_paths"](built, "lib/base")


def test_program_that_does_not_name_its_commit(script):
    built = sbom.Build(BUILD)
    script["check_commit"](built, json.loads(ok(BUILD / "bin/drarun", "version", "-o", "json"))["commit"])
    with pytest.raises(script["Failed"], match=rf"^bin/drarun for {MACHINE} does not name 0{{40}}, which it was built of"):
        script["check_commit"](built, "0" * 40)


def test_compiler_of_another_hash_is_refused(tmp_path):
    """What it links is shipped: another file of the same name and version is not used."""
    (tmp_path / "wheels").mkdir()
    with zipfile.ZipFile(tmp_path / f"wheels/ziglang-0.13.0-py3-none-manylinux_2_17_{os.uname().machine}.whl", "w") as wheel:
        wheel.writestr("ziglang/zig", "another")
        wheel.writestr("ziglang-0.13.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: ziglang\nVersion: 0.13.0\n")
        wheel.writestr("ziglang-0.13.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n")
    env = {**os.environ, "DRARUN_CACHE": str(tmp_path / "cache"), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "wheels")}
    run = subprocess.run([SOURCE / "scripts/fetch-zig"], env=env, capture_output=True, text=True)
    assert run.returncode == 1 and run.stdout == "" and "DO NOT MATCH THE HASHES" in run.stderr and "could not download ziglang==0.13.0" in run.stderr, run
    assert not list((tmp_path / "cache").glob("zig-*"))


def unchanged(_):
    pass


def without_section(copy):
    (copy / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n\nNothing yet.\n")


def with_an_empty_section(copy):
    (copy / "CHANGELOG.md").write_text(f"# Changelog\n\n## [{VERSION}] - 2026-01-31\n\n## [0.0.1]\n\nMore.\n")


def without_a_date(copy):
    (copy / "CHANGELOG.md").write_text(f"# Changelog\n\n## [{VERSION}]\n\nMore.\n")


def with_something_unreleased(copy):
    (copy / "CHANGELOG.md").write_text(f"# Changelog\n\n## [Unreleased]\n\n- More.\n\n## [{VERSION}]\n\nMore.\n")


def with_another_version_in_the_chart(copy):
    file = copy / "deploy/chart/Chart.yaml"
    file.write_text(file.read_text().replace(f"appVersion: {VERSION}", "appVersion: 9.9.9"))


def with_a_version_that_is_released(copy):
    (copy / "tests/base-release").write_text(f"{VERSION} {'0' * 40}\n")


def with_another_version(copy):
    file = copy / "CMakeLists.txt"
    file.write_text(file.read_text().replace(f"VERSION {VERSION} ", "VERSION 9.9.9 "))


@pytest.mark.parametrize("change,options,says", [
    (with_another_version, (), rf"CMakeLists\.txt has version 9\.9\.9, expected {re.escape(VERSION)}: change it there"),
    (with_another_version_in_the_chart, (), r"deploy/chart/Chart\.yaml:7: has version 9\.9\.9, expected .*version\.py --write"),
    (with_a_version_that_is_released, (), rf"CMakeLists\.txt has version {re.escape(VERSION)}, and {re.escape(VERSION)} is released \(tests/base-release\): set a greater one"),
    (without_section, (), rf"CHANGELOG\.md has no section for {re.escape(VERSION)}, but Unreleased: expected a line '## \["),
    (with_an_empty_section, (), r"CHANGELOG\.md:3: the section for .* is empty"),
    (without_a_date, ("--sign", "test@example.org"), r"CHANGELOG\.md:3: a release that is signed or tagged has a date"),
    (with_something_unreleased, (), r"CHANGELOG\.md:3: the notes of .* would leave out what is under Unreleased: move it"),
    (before_the_first, ("--sign", "test@example.org"), r"README\.md:\d+: says '\| first release \| none yet', which is wrong once there is a release"),
    (unchanged, ("--sign", "nobody@example.org"), r"gpg has no secret key nobody@example\.org"),
    (unchanged, ("--build", BUILD), rf"is for {MACHINE}, as is "),
    (unchanged, ("--build", "scripts"), r"scripts is no finished build with Ninja: it has no build\.ninja"),
])
def test_refused(copy, tmp_path, change, options, says):
    change(copy)
    commit(copy)
    run = release(copy, VERSION, "--build", BUILD, "--out", tmp_path / "out", *options, cwd=copy)
    assert run.returncode == 1 and re.search(f"^release: .*{says}", run.stderr), run
    assert {path.name for path in tmp_path.iterdir()} == {"copy"}


def test_section_without_a_date_is_enough_to_rehearse(copy):
    without_a_date(copy)
    notes = runpy.run_path(str(copy / "scripts/release"))["notes"]
    assert notes(VERSION, dated=False).splitlines()[0] == f"# drarun {VERSION}"


def test_tag_without_a_date_is_refused(copy, tmp_path):
    without_a_date(copy)
    commit(copy)
    ok("git", "tag", f"v{VERSION}", cwd=copy)
    run = release(copy, VERSION, "--build", BUILD, "--out", tmp_path / "out")
    assert run.returncode == 1 and run.stderr.startswith("release: CHANGELOG.md:3: a release that is signed or tagged has a date: expected "), run


def test_changes_that_no_commit_has_are_refused(copy, tmp_path):
    (copy / "mine").touch()
    (copy / "README.md").write_text("other\n")
    run = release(copy, VERSION, "--build", BUILD, "--out", tmp_path / "out")
    assert run.returncode == 1 and run.stderr.endswith("has changes that are in no commit; commit or remove them:\n   M README.md\n  ?? mine\n"), run
    assert {path.name for path in tmp_path.iterdir()} == {"copy"}


def test_folder_with_files_stays(tree, tmp_path):
    (tmp_path / "mine").write_text("kept")
    run = release(tree, VERSION, "--build", BUILD, "--out", tmp_path)
    assert run.returncode == 1 and f"{tmp_path} exists already: name a new folder" in run.stderr
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("mine", "kept")]


def test_no_version(tree):
    run = release(tree, "next")
    assert run.returncode == 2 and "expected a version as 0.1.0, got next" in run.stderr
