# SPDX-License-Identifier: Apache-2.0
"""What the programs of a build are linked with, and the SPDX 2.3 document that says so. Libraries are found by what was built: the archives on a program's link line of which it
has symbols, and the shared libraries that its ELF header asks for. Their names and versions are those of the packages that their files come from."""
import functools
import os
import re
import subprocess
import urllib.parse
from dataclasses import dataclass
from pathlib import Path

import oci_image

SOURCE = Path(__file__).resolve().parents[2]

# Programs of a build, as patterns of their paths in it. What is built for an image of others lies in anywhere/.
CORE = "bin/drarun", "bin/drarun-worker", "bin/drarun-attach", "bin/drarun-plugin", "libexec/drarun/*"
BENCH = "bin/drarun-bench", "lib/drarun/*.so"
LIBRARY = ("lib/libdrarun.so.0",)
WHEEL = "bin/drarun", "bin/drarun-worker", "libexec/drarun/drarun-cluster", "libexec/drarun/drarun-remote", "lib/alone/libdrarun.so.0"
ANYWHERE = "anywhere/bin/*", "anywhere/lib/drarun/*.so"
ALL = tuple(dict.fromkeys((*CORE, *BENCH, *ANYWHERE, *LIBRARY, *WHEEL)))

# By Debian's source packages: the licence of the libraries, as their authors and debian/copyright name it. What is linked or carried must be here.
LICENCES = {
    "curl": "curl",
    "gcc-12": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "glibc": "LGPL-2.1-or-later",
    "hwloc": "BSD-3-Clause",
    "jansson": "MIT",
    "libevent": "BSD-3-Clause",
    "libnl3": "LGPL-2.1-only",
    "libyaml": "MIT",
    "munge": "LGPL-3.0-or-later",  # of libmunge
    "nghttp2": "MIT",
    "openmpi": "BSD-3-Clause-Open-MPI",
    "openpmix": "BSD-3-Clause-Open-MPI",
    "openssl": "Apache-2.0",
    "pmix": "BSD-3-Clause-Open-MPI",
    "protobuf-c": "BSD-2-Clause",
    "rdma-core": "(Linux-OpenIB OR GPL-2.0-only) AND (BSD-2-Clause OR GPL-2.0-only)",
    "ziglang": "MIT AND LGPL-2.1-or-later",  # its own runtime, and glibc's begin of programs
    "zlib": "Zlib",
}
# What scripts/fetch-* have put into the cache: the file beside its folder that says so, and those with the notices.
BUILT = {"libcurl.a": "version", "libpmix.a": "include/pmix_version.h", "compiler_rt.zig": "zig"}
BUILT_NOTICES = {"libcurl.a": ("COPYING",), "libpmix.a": ("LICENSE",), "compiler_rt.zig": ("LICENSE", "lib/libc/glibc/LICENSES")}
# The same code in packages for cross compilers.
CROSS = {"gcc-12-cross": "gcc-12"}


class Unknown(Exception):
    """The origin of something that is linked cannot be said."""


@dataclass(frozen=True, order=True)
class Part:
    """Somebody's library. name: of the source package; package: which of its binary packages the file comes from."""
    name: str
    version: str
    package: str
    arch: str
    purl: str
    source: str  # where the source is, in words

    @property
    def id(self):
        return spdx_id("Library", self.package, self.version, self.arch)

    @property
    def licence(self):
        return LICENCES.get(CROSS.get(self.name, self.name), "NOASSERTION")


@dataclass(frozen=True, order=True)
class Program:
    """path: in the build."""
    path: str
    machine: str

    @property
    def id(self):
        return spdx_id("Program", self.machine, self.path)


def spdx_id(*words):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(words)).strip("-")


def output(*command):
    run = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if run.returncode != 0:
        raise Unknown(f"{command[0]}: {run.stderr.strip() or run.stdout.strip()}")
    return run.stdout


# ---- what is linked ----

class Build:
    """A finished build tree; machine is its architecture, as images call it."""

    def __init__(self, folder):
        self.folder = Path(folder).resolve()
        self.machine = oci_image.machine_of(self.folder / "bin/drarun-worker")
        foreign = self.machine != oci_image.own_machine()
        self.tools = f"{oci_image.TRIPLETS[self.machine]}-" if foreign else ""
        self.sysroot = oci_image.sysroot(self.folder) if foreign else None
        self.libraries = oci_image.foreign_folder(self.folder, self.machine) if foreign else None

    def programs(self, patterns):
        """Those of the patterns that were built."""
        found = {path for pattern in patterns for path in self.folder.glob(pattern) if path.is_file()}
        return sorted(Program(str(path.relative_to(self.folder)), self.machine) for path in found)

    @functools.cached_property
    def links(self):
        """{output: what its link line has} of the ninja build."""
        found, names = {}, []
        for line in (self.folder / "build.ninja").read_text().splitlines():
            if line.startswith("build "):
                outputs, _, inputs = line[len("build "):].replace("${cmake_ninja_workdir}", "").partition(": ")
                names = outputs.split(" | ")[0].split()
                for name in names:
                    found[name] = inputs
            elif names and line.startswith(("  LINK_FLAGS = ", "  LINK_LIBRARIES = ", "  COMMAND = ")):
                for name in names:
                    found[name] += line
        return found

    def archives(self, program):
        """The archives of others on the link line of a program of which it has a symbol, and the compiler's. Where it was stripped, all."""
        file = self.folder / program.path
        line = self.links.get(str(file.resolve().relative_to(self.folder)))
        if line is None:
            raise Unknown(f"{self.folder}/build.ninja does not say how {program.path} was linked")
        listed = {path for path in map(os.path.realpath, re.findall(r"(?<!\S)/\S+\.a(?!\S)", line)) if not path.startswith(f"{self.folder}/")}
        symbols = self.symbols(file)
        found = [Path(path) for path in sorted(listed) if not symbols or symbols & self.symbols(Path(path))]
        if program.path.startswith("anywhere/"):
            return [*found, self.of_zig(program, line)]
        folders = tuple(re.findall(r"(?<!\S)-B\S+", line))
        found.append(self.of_compiler("libgcc.a", folders))
        if not self.needed(file):
            found.append(self.of_compiler("libc.a", folders))
        return found

    @functools.lru_cache
    def symbols(self, file):
        """The names that it defines; of an archive those that others may use."""
        options = ["--extern-only"] if file.suffix == ".a" else []
        run = subprocess.run([f"{self.tools}nm", "--defined-only", "--just-symbols", *options, file], capture_output=True, text=True)
        if run.returncode != 0 and "no symbols" not in run.stderr:
            raise Unknown(f"{file}: {run.stderr.strip()}")
        return frozenset(line for line in run.stdout.splitlines() if line and not line.endswith(":"))

    @functools.lru_cache
    def of_compiler(self, name, folders):
        """The archive that it takes. folders: the options of the link line that say where it looks first."""
        path = Path(output(f"{self.tools}gcc", *folders, f"-print-file-name={name}").strip())
        if not path.is_absolute():
            raise Unknown(f"{self.tools}gcc has no {name}")
        return path.resolve()

    @staticmethod
    def of_zig(program, line):
        """The source of which Zig's compiler makes the runtime that it links in."""
        zig = re.search(r"(?<!\S)(/\S+)/zig cc ", line)
        if not zig:
            raise Unknown(f"{program.path}: its link line has no zig")
        return Path(zig[1]) / "lib/compiler_rt.zig"

    def needed(self, file):
        """The shared libraries that the ELF header asks for."""
        return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", file))

    def shared(self, program):
        """The files, on this machine, of those that it asks for."""
        if program.path.startswith("anywhere/"):
            return []  # those of the image that it will run in
        file = self.folder / program.path
        names = self.needed(file)
        if self.libraries:
            return [self.libraries / name for name in names]
        said = dict(re.findall(r"^\s*(\S+) => (/\S+)", output("ldd", file), re.M)) if names else {}
        missing = [name for name in names if name not in said and not name.startswith("ld-linux")]
        if missing:
            raise Unknown(f"{file}: ldd finds no {missing[0]}")
        return [Path(said[name]) for name in names if name in said]

    def loaded(self, programs):
        """All shared libraries that these need, those of libraries among them: what an image brings."""
        files = [self.folder / each.path for each in programs]
        found = oci_image.foreign_libraries(files, self.libraries) if self.libraries else oci_image.libraries(files)
        return sorted(Path(path) for path in found.values())


# ---- where it comes from ----

class Origins:
    """Whose a file is, by dpkg."""

    def __init__(self):
        self.known = {}

    def of(self, files):
        """{file: Part}"""
        asked = {file: self.asked(file) for file in files if file not in self.known}
        owners = owners_of({path for path, _ in asked.values() if path})
        packages = installed({name for names in owners.values() for name in names})
        for file, (path, listed) in asked.items():
            if path is None:
                self.known[file] = built_by_us(file)
                continue
            if path not in owners:
                raise Unknown(f"{file}: of no Debian package; where does it come from?")
            found = packages[owners[path][0]]
            self.known[file] = Part(**from_list(found, listed)) if listed else Part(**found)
        return {file: self.known[file] for file in files}

    @staticmethod
    def asked(file):
        """(the path to ask dpkg about, or None of what scripts/fetch-* have built; the list of packages of the sysroot that the file lies in, or None)"""
        if file.name in BUILT and (file.parents[1] / BUILT[file.name]).exists():
            return None, None
        for folder in file.parents:
            if folder.name.startswith("sysroot-") and (folder / "packages").exists():
                # the packages of another architecture are those of this one, in other versions
                there = str(file)[len(str(folder)):]
                for names in (oci_image.TRIPLETS, oci_image.LOADERS):
                    for name in names.values():
                        there = there.replace(name, names[oci_image.own_machine()])
                return there, folder / "packages"
        return str(file), None


def owners_of(paths):
    """{path: the packages that have it}. On a merged /usr, dpkg may know a file by either name."""
    names = {}  # {name: the paths that may be known by it}
    for path in paths:
        for name in {path, os.path.realpath(path)}:
            names.setdefault(name, set()).add(path)
            names.setdefault(name.removeprefix("/usr") if name.startswith("/usr/lib") else f"/usr{name}", set()).add(path)
    found = {}
    run = subprocess.run(["dpkg-query", "-S", *sorted(names)], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    for line in run.stdout.splitlines():
        packages, _, name = line.rpartition(": ")
        for path in () if packages.startswith("diversion by") else names.get(name, ()):
            found.setdefault(path, packages.split(", "))
    return found


def installed(packages):
    """{package as dpkg -S names it: the fields of a Part}"""
    if not packages:
        return {}
    shown = output("dpkg-query", "-W", "-f", "${binary:Package}\\t${Package}\\t${Version}\\t${Architecture}\\t${source:Package}\\n", *sorted(packages))
    found = {}
    for line in shown.splitlines():
        name, package, version, arch, source = line.split("\t")
        found[name] = debian(source, package, version, arch)
    return found


def debian(source, package, version, arch):
    return {"name": source, "version": version, "package": package, "arch": arch,
            "purl": f"pkg:deb/debian/{package}@{urllib.parse.quote(version, safe='~.-')}?arch={arch}",
            "source": f"Debian's source package {source}"}


def packages_in(listed):
    """[(package, version, architecture)] of a list of .deb files."""
    return [tuple(urllib.parse.unquote(name.removesuffix(".deb")).split("_")) for name in listed.read_text().split()]


def from_list(fields, listed):
    """The same package in the version that the list of a sysroot has."""
    for package, version, arch in packages_in(listed):
        if package == fields["package"]:
            return debian(fields["name"], package, version, arch)
    raise Unknown(f"{listed}: expected the package {fields['package']}")


def built_by_us(file):
    return {"libpmix.a": openpmix, "libcurl.a": curl, "compiler_rt.zig": zig}[file.name](file)


def arch_of(archive):
    found = re.search(r"-(amd64|arm64)-", str(archive))
    return found[1] if found else oci_image.own_machine()


def curl(archive):
    """libcurl of scripts/fetch-curl, which keeps Debian's version of the source."""
    version = (archive.parents[1] / "version").read_text().strip()
    return Part("curl", version, "libcurl", arch_of(archive), f"pkg:deb/debian/curl@{urllib.parse.quote(version, safe='~.-')}?arch=source",
                "Debian's source package curl, built by scripts/fetch-curl of drarun")


def openpmix(archive):
    """libpmix of scripts/fetch-pmix."""
    numbers = dict(re.findall(r"define PMIX_VERSION_(MAJOR|MINOR|RELEASE) (\d+)L?", (archive.parents[1] / "include/pmix_version.h").read_text()))
    version = ".".join(numbers[each] for each in ("MAJOR", "MINOR", "RELEASE"))
    script = (SOURCE / "scripts/fetch-pmix").read_text()
    source = dict(re.findall(r"\b(source_\w+)=(\S+)", script))
    return Part("openpmix", version, "libpmix", arch_of(archive), f"pkg:github/openpmix/openpmix@v{version}",
                f"{source['source_folder']} of {source['source_package']}_{source['source_version']}.orig.tar.xz (SHA-256 {source['source_sha256']}), "
                "with cmake/patches/pmix of drarun")


def zig(runtime):
    """The compiler of scripts/fetch-zig, which holds the hashes of what it fetches."""
    version = output(runtime.parents[1] / "zig", "version").strip()
    hashes = re.search(r"^hashes=\((.*?)\)", (SOURCE / "scripts/fetch-zig").read_text(), re.M | re.S)[1]
    return Part("ziglang", version, "ziglang", "all", f"pkg:pypi/ziglang@{version}",
                f"ziglang {version} of PyPI (SHA-256 {' or '.join(re.findall('[0-9a-f]{64}', hashes))}), which has the source of this runtime")


def versions(builds):
    """{source package: {machine: the version, without its number of a rebuild}} of what is in the programs of these builds."""
    origins, found = Origins(), {}
    for build in builds:
        for program in build.programs(ALL):
            for part in origins.of(build.archives(program)).values():
                found.setdefault(part.name, {})[build.machine] = re.sub(r"\+b\d+$", "", part.version)
    return found


def licences(builds, programs, carried):
    """The SPDX expression for an image with these programs and shared libraries. builds: {machine: Build}"""
    origins = Origins()
    parts = {*origins.of(carried).values()}
    for program in programs:
        parts |= {*origins.of(builds[program.machine].archives(program)).values()}
    return " AND ".join(dict.fromkeys(["Apache-2.0", *sorted(part.licence for part in parts)]))


# ---- what their authors want to be said ----

NOTICES = """drarun is under the Apache License 2.0. Its programs have the libraries below in them. Each is followed by the notice of its authors.

Who wants a program with other versions of these libraries builds it from drarun's source, as docs/install.md says: it takes what is installed, and
DRARUN_PMIX_DIR and DRARUN_CURL_DIR name a libpmix and a libcurl.
"""


def notices(builds, programs):
    """The text that goes along with these programs. builds: {machine: Build}"""
    origins, found = Origins(), {}
    for program in sorted(programs):
        for file, part in origins.of(builds[program.machine].archives(program)).items():
            found.setdefault((part.name, part.version), (part, file))
    text = NOTICES + "".join(chapter(f"{name} {version} ({part.licence}): {part.source}", notice_of(part, file))
                             for (name, version), (part, file) in sorted(found.items()))
    # Debian's notices name these files
    named = {Path(path).resolve() for path in re.findall(r"/usr/share/common-licenses/[\w.-]*\w", text)}
    return text + "".join(chapter(str(path), path.read_text()) for path in sorted(named) if path.is_file())


def chapter(title, text):
    return f"\n{'=' * 80}\n{title}\n{'=' * 80}\n\n{text.strip()}\n"


def notice_of(part, file):
    if file.name in BUILT:
        paths = [file.parents[1] / name for name in BUILT_NOTICES[file.name]]
    else:
        paths = [Path("/usr/share/doc") / part.package / "copyright"]
    for path in paths:
        if not path.exists():
            raise Unknown(f"no {path}, the notice of {part.name}, which goes along with programs that have it in them: install {part.package} with its documentation")
    return "\n\n".join(path.read_text(errors="replace").strip() for path in paths)


# ---- the document ----

@dataclass(frozen=True)
class Artefact:
    """A file of a release. programs: what is in it; carried: the shared libraries that are in it, too."""
    file: Path
    sha256: str
    about: str
    programs: tuple = ()
    carried: tuple = ()


def package(ident, name, version, licence, **more):
    return {"SPDXID": ident, "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": licence, "copyrightText": "NOASSERTION", **more}


def relation(one, kind, other):
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}


def document(name, version, commit, created, builds, artefacts):
    """As a dict. name: what it is about; builds: Builds; created: as 2026-01-31T12:00:00Z."""
    origins, programs, parts, relations = Origins(), {}, set(), []
    by_machine = {build.machine: build for build in builds}
    for artefact in artefacts:
        for program in artefact.programs:
            programs.setdefault(program, by_machine[program.machine])
    for program, build in sorted(programs.items()):
        for kind, files in ("STATIC_LINK", build.archives(program)), ("DYNAMIC_LINK", build.shared(program)):
            found = {*origins.of(files).values()}
            for part in sorted(found):
                relations.append(relation(program.id, kind, part.id))
            parts |= found
    packages = []
    for artefact in artefacts:
        ident = spdx_id("File", artefact.file.name)
        packages.append(package(ident, artefact.file.name, version, "Apache-2.0", packageFileName=artefact.file.name, summary=artefact.about,
                                checksums=[{"algorithm": "SHA256", "checksumValue": artefact.sha256}]))
        relations.append(relation("SPDXRef-DOCUMENT", "DESCRIBES", ident))
        relations += [relation(ident, "CONTAINS", program.id) for program in artefact.programs]
        carried = {*origins.of(artefact.carried).values()}
        relations += [relation(ident, "CONTAINS", part.id) for part in sorted(carried)]
        parts |= carried
    unknown = [part for part in sorted(parts) if part.licence == "NOASSERTION"]
    if unknown:
        raise Unknown(f"{unknown[0].package} of {unknown[0].name} is linked or carried, and its licence is not in LICENCES of scripts/lib/sbom.py")
    packages += [package(program.id, Path(program.path).name, version, "Apache-2.0", comment=f"for {program.machine}; {program.path} of the build",
                         primaryPackagePurpose="LIBRARY" if ".so" in program.path else "APPLICATION") for program in sorted(programs)]
    packages += [package(part.id, part.name, part.version, part.licence, sourceInfo=part.source, primaryPackagePurpose="LIBRARY", externalRefs=[
        {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": part.purl}]) for part in sorted(parts)]
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
            "documentNamespace": f"https://drarun.dev/spdx/{name}-{commit}",
            "creationInfo": {"created": created, "creators": ["Organization: The drarun authors", f"Tool: scripts/release-{version}"]},
            "packages": packages, "relationships": relations}
