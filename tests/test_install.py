# SPDX-License-Identifier: Apache-2.0
"""Install, uninstall and the Debian package."""
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest

from support.build import ANYWHERE_MISSING, cached, patience
from support.run import Runner

pytestmark = pytest.mark.plain("what is installed is a plain build")

FILES = {
    "bin/drarun",
    "bin/drarun-worker",
    "libexec/drarun/drarun-cluster",
    "libexec/drarun/drarun-nvml",
    "libexec/drarun/drarun-remote",
    "share/bash-completion/completions/drarun",
    "share/doc/drarun/LICENSE",
    "share/doc/drarun/README.md",
    "share/doc/drarun/examples/README.md",
    "share/doc/drarun/examples/allreduce/allreduce.c",
    "share/doc/drarun/examples/nccl-id/pmix_share.h",
    "share/doc/drarun/examples/jobs/two-by-two.yaml",
    "share/drarun/schema/drajob-v1alpha1.json",
    "share/drarun/schema/drajob-status-v1alpha1.json",
    "share/man/man1/drarun.1",
    "sbin/drarun-attach",
    "sbin/drarun-plugin",
    "share/man/man1/drarun-worker.1",
    "share/man/man8/drarun-attach.8",
    "share/man/man8/drarun-plugin.8",
}
BENCH = {"bin/drarun-bench", "lib/drarun/bench-mpi.so"}  # which are a package of their own
LIB = {"lib/libdrarun.so.0"}
DEV = {"include/drarun/drarun.h", "include/drarun/error.h", "lib/libdrarun.so", "lib/pkgconfig/libdrarun.pc",
       "lib/cmake/drarun/drarunConfig.cmake", "lib/cmake/drarun/drarunConfigVersion.cmake", "share/man/man3/drarun.3",
       "share/man/man3/drarun_run.3", "share/man/man3/drarun_env_free.3"}
# what makes no sense in a user's tree
NOT = ("CMakeLists.txt", "__pycache__", ".pyc", ".a")


def files_below(root):
    return {str(p.relative_to(root)) for p in root.rglob("*") if not p.is_dir()}


def cmake(*args, umask=-1, **environment):
    run = subprocess.run(["cmake", *map(str, args)], capture_output=True, text=True, timeout=patience(200),
                         umask=umask, env={**os.environ, **environment})
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.fixture
def staged(build, tmp_path):
    """An installation, and the build tree's own record of it put back afterwards."""
    manifest = build / "install_manifest.txt"
    before = manifest.read_bytes() if manifest.exists() else None
    cmake("--install", build, "--prefix", tmp_path / "prefix")
    yield tmp_path / "prefix"
    manifest.unlink(missing_ok=True)
    if before is not None:
        manifest.write_bytes(before)


def test_files(staged):
    files = files_below(staged)
    assert FILES | BENCH | LIB | DEV <= files
    assert [f for f in files if f.endswith(NOT)] == []


def test_examples_are_as_in_the_tree(staged, source):
    """Their pages have commands that start some."""
    def executable(folder):
        return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.stat().st_mode & 0o111}
    assert executable(staged / "share/doc/drarun/examples") == executable(source / "examples") != set()


def test_installed_for_all_users(staged, build):
    """Whatever root's umask is: those who find drarun start the programs of libexec, too. A folder that was there before stays as it is."""
    shutil.rmtree(staged)
    (staged / "share/private").mkdir(parents=True)
    (staged / "share").chmod(0o700)
    cmake("--install", build, "--prefix", staged, umask=0o077)
    modes = {str(each.relative_to(staged)): each.stat().st_mode & 0o777 for each in staged.rglob("*") if not each.is_symlink()}
    assert modes.pop("share") == 0o700 and modes.pop("share/private") and {*modes.values()} == {0o644, 0o755}


def test_folders_that_were_closed(staged, build):
    """By somebody who wants them so, empty ones, too: they stay, also when the next version is installed. Brackets in the path are no pattern."""
    prefix = staged.parent / "of[all"
    closed = {prefix, prefix / "bin", prefix / "share", prefix / "share/man"}
    for folder in sorted(closed):
        folder.mkdir(0o700)
    for _ in range(2):
        cmake("--install", build, "--prefix", prefix, umask=0o077)
        folders = {prefix, *(each for each in prefix.rglob("*") if each.is_dir())}
        assert {each for each in folders if each.stat().st_mode & 0o777 == 0o700} == closed
        assert {each.stat().st_mode & 0o777 for each in folders - closed} == {0o755}


def test_installed_readme(staged, source):
    """For somebody who has the programs and not the repository: its links are to files of this version."""
    text = (staged / "share/doc/drarun/README.md").read_text()
    links = re.findall(r"\]\(([^)]+)\)", text)
    start = f"https://github.com/drarun/drarun/blob/v{cached('CMAKE_PROJECT_VERSION')}/"
    assert links and all(each.startswith(start) and (source / each.removeprefix(start)).exists() for each in links)
    assert "scripts/" not in text and "build/" not in text and "@" not in text


def test_installed_programs_run(staged, examples, tmp_path):
    """From another place: nothing points back into the source or build tree."""
    moved = tmp_path / "moved"
    staged.rename(moved)
    runner = Runner(moved / "bin" / "drarun")
    try:
        result = runner("-n", 2, "sh", "-c", "echo rank $DRARUN_RANK").ok()
        assert sorted(result.out.splitlines()) == ["rank 0", "rank 1"]
        # drarun-remote and the agent are found beside it
        result = runner("--workers", 2, "-n", 4, "sh", "-c", "echo $DRARUN_WORKER").ok()
        assert sorted(result.out.split()) == ["0", "0", "1", "1"]
        # and drarun-bench with its module
        result = runner("bench", "all_reduce", "-n", 2, "-b", "1K", "-e", "1K", "--iters", 1).ok()
        assert "# Out of bounds values : 0 OK\n" in result.out
        assert subprocess.run([moved / "bin/drarun-worker", "--version"], capture_output=True,
                              text=True, check=True).stdout.startswith("drarun-worker ")
    finally:
        runner.close()
        moved.rename(staged)


def packed(source, build, file, *options):
    """The names in the image that scripts/image makes. It says if jobs of drarun bench would not find their program there."""
    run = subprocess.run([source / "scripts/image", "localhost/drarun:1", file, *options], capture_output=True, text=True,
                         env={**os.environ, "DRARUN_BUILD": str(build)})
    assert run.returncode == 0 and "localhost/drarun:1" in run.stdout and " MiB" in run.stdout, run
    assert ("install python3-venv" in run.stderr) == ("--plugin" not in options and not (build / "anywhere").exists()), run
    with tarfile.open(file) as tar:
        index = json.load(tar.extractfile("index.json"))["manifests"][0]
        manifest = json.load(tar.extractfile(f"blobs/{index['digest'].replace(':', '/')}"))
        about = json.load(tar.extractfile(f"blobs/{manifest['config']['digest'].replace(':', '/')}"))
        assert about["config"].get("User") == (None if "--plugin" in options else "65532:65532")  # the kubelet takes a number as no root
        layer = tar.extractfile(f"blobs/{manifest['layers'][0]['digest'].replace(':', '/')}")
        return set(tarfile.open(fileobj=layer).getnames())


def test_image_of_the_plugin(source, build, tmp_path):
    """What the manifest's command names is in it, with all that it needs to start, and the launcher is not."""
    small, whole = tmp_path / "plugin.tar", tmp_path / "drarun.tar"
    names = packed(source, build, small, "--plugin")
    packed(source, build, whole)
    wanted = set(re.findall(r"/bin/drarun-\w+", (source / "deploy/plugin.yaml").read_text()))
    assert wanted and {f".{name}" for name in wanted} <= names
    assert "./bin/drarun" not in names
    assert {name for name in names if name.startswith("./libexec/drarun/")} == {"./libexec/drarun/drarun-nvml"}
    assert small.stat().st_size < whole.stat().st_size
    sys.path.insert(0, str(source / "scripts/lib"))
    import oci_image  # noqa: PLC0415
    root = oci_image.drarun(build, plugin=True)
    try:
        if os.geteuid() == 0:
            for name in wanted - {"/bin/drarun-attach"}:  # which is static, and wants a /dev/null
                run = subprocess.run(["chroot", root, name, "--version"], capture_output=True, text=True)
                assert run.returncode == 0 and Path(name).name in run.stdout, run
            run = subprocess.run(["chroot", root, "/libexec/drarun/drarun-nvml"], capture_output=True, text=True)
            assert "libnvidia-ml.so.1: cannot open shared object file" in json.loads(run.stdout)["error"], run
        # what NVIDIA's library is linked with, beside the C library
        libraries = next(root.rglob("libc.so.6")).parent
        assert {"libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1"} <= {each.name for each in libraries.iterdir()}
    finally:
        shutil.rmtree(root)


def test_image(source, build, tmp_path):
    """scripts/image packs what the tests' clusters run (tests/support/cluster/image.py)."""
    file = tmp_path / "drarun.tar"
    names = packed(source, build, file)
    assert {"./bin/drarun", "./bin/drarun-worker", "./libexec/drarun/drarun-cluster", "./tmp"} <= names
    bench = {"./bin/drarun-bench", "./lib/drarun/bench-nccl.so", "./lib/drarun/bench-mpi-ompi.so", "./lib/drarun/bench-mpi-mpich.so"}
    assert bench <= names or ANYWHERE_MISSING
    loaded = {Path(name).name for name in names if ".so" in name and not name.startswith("./lib/drarun/")}
    assert loaded <= {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1",  # of drarun-nvml, which loads NVIDIA's library
                      "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    without = tmp_path / "without"  # as on a machine where scripts/fetch-zig fails
    without.mkdir()
    for folder in "bin", "libexec":
        (without / folder).symlink_to(build / folder)
    assert names - packed(source, without, file) >= bench & names
    missing = subprocess.run([source / "scripts/image", "x:1", file], capture_output=True, text=True,
                             env={**os.environ, "DRARUN_BUILD": str(tmp_path)})
    assert missing.returncode == 1 and "build first" in missing.stderr


def test_image_of_the_same_programs_is_the_same(source, build, tmp_path):
    """Neither the time nor the user changes a byte."""
    first, second = tmp_path / "first.tar", tmp_path / "second.tar"
    packed(source, build, first)
    before = os.umask(0o077)
    try:
        packed(source, build, second)
    finally:
        os.umask(before)
    assert first.read_bytes() == second.read_bytes()


def test_agent_is_static(staged):
    if cached("DRARUN_STATIC") == "OFF":
        pytest.skip("DRARUN_STATIC is off")
    run = subprocess.run(["ldd", staged / "bin/drarun-worker"], capture_output=True, text=True)
    assert "not a dynamic executable" in run.stderr


def test_uninstall_leaves_nothing(staged, build):
    (staged / "bin" / "somebody-elses").touch()
    cmake("--build", build, "--target", "uninstall")
    assert files_below(staged) == {"bin/somebody-elses"}
    assert [p for p in staged.rglob("*drarun*")] == []


def test_uninstall_without_the_rights(source):
    """By a user who may not write where it was installed: that is told, and what was installed stays known."""
    folder = Path(tempfile.mkdtemp(prefix="drarun-uninstall-"))  # that others can reach, unlike pytest's
    script, manifest, where = folder / "Uninstall.cmake", folder / "install_manifest.txt", folder / "bin"
    where.mkdir()
    somebody = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}

    def uninstall(**who):
        return subprocess.run(["cmake", "-D", f"manifest={manifest}", "-P", script], capture_output=True, text=True, timeout=patience(), cwd=folder, **who)
    try:
        shutil.copy(source / "cmake/Uninstall.cmake", script)
        (where / "drarun").touch()
        (where / "link").symlink_to("nowhere")
        manifest.write_text(f"{where}/drarun\n{where}/link\n{where}/gone\n")
        if somebody:
            shutil.chown(folder, 65534, 65534)
        where.chmod(0o555)
        folder.chmod(0o755)
        refused = uninstall(**somebody)
        assert refused.returncode != 0 and f"cannot remove 2 of the installed files, such as {where}/drarun" in " ".join(refused.stderr.split()), refused
        assert manifest.exists() and len(list(where.iterdir())) == 2
        if somebody:  # who may not even look
            where.chmod(0o700)
            refused = uninstall(**somebody)
            assert refused.returncode != 0 and "cannot remove 3 of the installed files" in " ".join(refused.stderr.split()), refused
        where.chmod(0o755)
        assert uninstall().returncode == 0
        assert not manifest.exists() and not list(where.iterdir())
    finally:
        where.chmod(0o755)
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def packages(build, tmp_path_factory):
    """{name: file}, by a user who shares nothing."""
    if not shutil.which("dpkg-deb"):
        pytest.skip("no dpkg-deb")
    out = tmp_path_factory.mktemp("package")
    run = subprocess.run(["cpack", "--config", build / "CPackConfig.cmake", "-B", out],
                         capture_output=True, text=True, timeout=patience(250), cwd=out, umask=0o077)
    assert run.returncode == 0, run.stdout + run.stderr
    debs = {deb.name.partition("_")[0]: deb for deb in out.glob("*.deb")}
    assert set(debs) == {"drarun", "drarun-bench", "libdrarun0", "libdrarun-dev"}
    return debs


@pytest.fixture(scope="module")
def package(packages):
    return packages["drarun"]


def listed(package):
    return subprocess.run(["dpkg-deb", "-c", package], capture_output=True, text=True, check=True).stdout.splitlines()


def test_package_content(package):
    lines = listed(package)
    names = {line.split()[5].removeprefix("./usr/") for line in lines}
    expected = {f for f in FILES if not f.startswith("share/man") and not f.endswith("LICENSE")}
    assert expected | {"share/man/man1/drarun.1.gz", "share/doc/drarun/copyright"} <= names
    assert {line.split()[1] for line in lines} == {"root/root"}


def test_packages_are_for_all_users(packages):
    assert {line.split()[0] for package in packages.values() for line in listed(package)} == {"drwxr-xr-x", "-rwxr-xr-x", "-rw-r--r--", "lrwxrwxrwx"}


def test_package_of_the_benchmark(package, packages, tmp_path):
    """It finds an MPI when it starts, whichever it is; where only the one of this machine's MPI was built, that MPI comes with it."""
    names = {line.split()[5].removeprefix("./usr/") for line in listed(packages["drarun-bench"])}
    bench = BENCH if ANYWHERE_MISSING else {"bin/drarun-bench", *(f"lib/drarun/bench-{name}.so" for name in ("mpi-ompi", "mpi-mpich", "nccl"))}
    assert bench | {"share/doc/drarun-bench/copyright"} <= names
    assert {name for name in names if name.startswith(("bin/", "lib/")) and not name.endswith("/")} == bench or ANYWHERE_MISSING
    assert not bench & {line.split()[5].removeprefix("./usr/") for line in listed(package)}
    depends = [subprocess.run(["dpkg-deb", "-f", deb, "Depends"], capture_output=True, text=True, check=True).stdout
               for deb in (package, packages["drarun-bench"])]
    assert "mpi" not in depends[0] and ("mpi" in depends[1]) == bool(ANYWHERE_MISSING) and "drarun (= " in depends[1]
    for deb in packages.values():
        subprocess.run(["dpkg-deb", "-x", deb, tmp_path], check=True)
    runner = Runner(tmp_path / "usr/bin/drarun")
    try:
        assert "values : 0 OK" in runner("bench", "all_reduce", "-n", 2, "-b", "8", "-e", "8", "--iters", 1).ok().out
    finally:
        runner.close()


def test_packages_of_the_library(packages, tmp_path):
    names = {name: {line.split()[5].removeprefix("./usr/") for line in listed(packages[name])}
             for name in ("libdrarun0", "libdrarun-dev")}
    assert LIB | {"share/doc/libdrarun0/copyright"} <= names["libdrarun0"]
    assert {f"{name}.gz" if "/man3/" in name else name for name in DEV} <= names["libdrarun-dev"]
    assert not names["libdrarun0"] & DEV and not names["libdrarun-dev"] & LIB
    control = {name: subprocess.run(["dpkg-deb", "-f", packages[name]], capture_output=True, text=True, check=True).stdout
               for name in names}
    assert "\nSuggests: drarun\n" in control["libdrarun0"]
    assert "libjansson4" in control["libdrarun0"] and "libdrarun0 (= " in control["libdrarun-dev"]


def test_package_control(package):
    fields = subprocess.run(["dpkg-deb", "-f", package], capture_output=True, text=True,
                            check=True).stdout
    assert "Package: drarun\n" in fields and "Maintainer: " in fields
    assert package.name.startswith("drarun_")


def test_package_unpacked_runs(package, tmp_path):
    subprocess.run(["dpkg-deb", "-x", package, tmp_path], check=True)
    runner = Runner(tmp_path / "usr/bin/drarun")
    try:
        assert runner("--workers", 2, "-n", 2, "true").ok().out == ""
    finally:
        runner.close()


def test_completion_of_the_package(package, tmp_path):
    """Debian's zsh finds it without a word in ~/.zshrc: below /usr/share it looks in folders of its own."""
    if not shutil.which("zsh"):
        pytest.skip("no zsh; run scripts/setup --test")
    subprocess.run(["dpkg-deb", "-x", package, tmp_path], check=True)
    script = f'fpath=(${{fpath/#\\/usr\\/share/{tmp_path}/usr/share}} $fpath); autoload -U compinit; compinit -u -D; print -r -- "$_comps[drarun]"'
    run = subprocess.run(["zsh", "-f", "-c", script], capture_output=True, text=True, timeout=patience(), env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})
    assert run.stdout == "_drarun\n", run


def test_packages_have_no_lintian_errors(packages):
    if not shutil.which("lintian"):
        pytest.skip("no lintian; run scripts/setup --test")
    run = subprocess.run(["lintian", "--fail-on", "error", "--allow-root", *packages.values()],
                         capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
