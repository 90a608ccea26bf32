# SPDX-License-Identifier: Apache-2.0
"""A guest: a Debian kernel under QEMU, whose root is this machine's, for one command (tests/vm).

    python3 -m support.vm [--memory MIB] [--device QEMU-DEVICE]... COMMAND [ARGUMENT]...   # from tests/"""
import argparse
import contextlib
import functools
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from .build import BUILD, SOURCE, patience
from .run import Result

GUEST = SOURCE / "tests" / "vm"
BOOT_S = 240  # 4 s where nothing else runs; deadlines are for a machine on which much does
# tsc, timer: what the emulation has is good, and to find that out costs seconds
KERNEL = ("console=ttyS0,115200 quiet loglevel=4 panic=-1 mitigations=off nokaslr nowatchdog tsc=reliable no_timer_check "
          "rcupdate.rcu_expedited=1 cryptomgr.notests=1 random.trust_cpu=on cgroup_no_v1=all net.ifnames=0")


@functools.cache
def fetched():
    """The directory that scripts/fetch-vm made, or None and the reason why it is not there."""
    if platform.machine() != "x86_64":
        return None, f"guests are x86-64, and this machine is {platform.machine()}"
    run = subprocess.run([SOURCE / "scripts" / "fetch-vm", "--cached"], capture_output=True, text=True)
    return (Path(run.stdout.strip()), "") if run.returncode == 0 else (None, run.stderr.strip())


def _need_built(module, what):
    folder, reason = fetched()
    if reason or not list(folder.glob(f"kernel/lib/modules/*/updates/{module}.ko")):
        pytest.skip(reason or f"scripts/fetch-vm could not build its {what}")


def need_movable_rdma():
    """Skips where a guest's rdma_rxe is the stock one, which does not move between network namespaces."""
    _need_built("rdma_rxe", "rdma_rxe (tests/vm/rxe-netns.patch)")


def need_iwarp():
    _need_built("siw", "siw (scripts/lib/guest-rdma.sh)")


def program(folder):
    """QEMU under the loader that came with it: its libraries are another suite's than this machine's."""
    root = folder / "qemu" / "usr"
    libraries = root / "lib" / "x86_64-linux-gnu"
    return [libraries / "ld-linux-x86-64.so.2", "--library-path", libraries, root / "bin" / "qemu-system-x86_64",
            "-L", root / "share" / "qemu", "-L", root / "share" / "seabios", "-L", root / "lib" / "ipxe" / "qemu"]


class Guest:
    """Starts a guest that runs argv as root and ends with it. finish(): its Result.

    The guest sees this machine's files; what it writes is lost, but for what it writes to /run/vm/job, which is
    `.folder` here. /tmp and /run are its own, though the build and source trees and `folders` show
    there. devices: more of QEMU's -device; kernel: more words of its command line; options: more of QEMU's."""

    def __init__(self, *argv, memory_mib=1024, cpus=2, env=None, devices=(), kernel=(), options=(), folders=()):
        fetched_folder, reason = fetched()
        if reason:
            pytest.skip(reason)
        self.argv = [str(word) for word in argv]
        self.folder = Path(tempfile.mkdtemp(prefix="dt-vm-", dir="/tmp"))
        self._fill(fetched_folder, env or {}, folders)
        words = [*program(fetched_folder), *self._machine(memory_mib, cpus), *self._kernel(fetched_folder, kernel),
                 *self._channels(), *options]
        for each in devices:
            words += ["-device", each]
        self.words = ["setpriv", "--pdeathsig", "KILL", *map(str, words)]
        self.env = {**os.environ, "QEMU_MODULE_DIR": str(fetched_folder / "qemu/usr/lib/x86_64-linux-gnu/qemu")}
        self._start()

    def _start(self):
        self.started = time.monotonic()
        self.process = subprocess.Popen(self.words, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, start_new_session=True)
        with contextlib.suppress(PermissionError):  # a kernel that gets no CPU for 20 s takes it for a fault; its threads inherit this
            os.setpriority(os.PRIO_PROCESS, self.process.pid, -5)

    def _fill(self, fetched_folder, env, folders):
        """What the guest finds in its job's directory."""
        for name in ("boot", "settle"):
            shutil.copy(GUEST / name, self.folder)
        (self.folder / "modules").write_text(f"{fetched_folder / 'kernel/lib/modules'}\n")
        (self.folder / "folders").write_text("".join(f"{each}\n" for each in sorted({SOURCE, BUILD, *folders})))
        exports = "".join(f"export {name}={shlex.quote(str(value))}\n" for name, value in env.items())
        (self.folder / "command").write_text(
            f"{exports}cd {shlex.quote(os.getcwd())} 2>/dev/null || cd /\nexec {shlex.join(self.argv)}\n")

    @staticmethod
    def _machine(memory_mib, cpus):
        # la57=off: five levels of page tables are slow in emulation; any named CPU is slower at copying
        return ["-M", "q35", "-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max,la57=off", "-smp", cpus,
                "-m", memory_mib, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-monitor", "none",
                "-device", "virtio-rng-pci,bus=pcie.0"]

    def _kernel(self, fetched_folder, more):
        return ["-kernel", fetched_folder / "kernel" / "vmlinuz", "-initrd", fetched_folder / "initrd",
                "-append", " ".join([KERNEL, *more]), "-serial", f"file:{self.folder / 'console'}"]

    def _channels(self):
        words = ["-device", "virtio-serial-pci,bus=pcie.0,max_ports=4"]
        for name in ("out", "err"):
            words += ["-chardev", f"file,id={name},path={self.folder / name}",
                      "-device", f"virtserialport,chardev={name},name={name}"]
        for tag, path, mode in (("machine", "/", ",readonly=on"), ("job", self.folder, "")):
            words += ["-fsdev", f"local,id={tag},path={path},security_model=none,multidevs=remap{mode}",
                      "-device", f"virtio-9p-pci,bus=pcie.0,fsdev={tag},mount_tag={tag}"]
        return words

    def text(self, name):
        """What a file of the job's directory holds so far: out, err, console."""
        path = self.folder / name
        return path.read_text(errors="replace") if path.exists() else ""

    def _emulator_failed(self):
        """An assertion of QEMU's own ended it before the kernel said anything (seen once: one of msix_table_mmio_write)."""
        return self.process.returncode == -signal.SIGABRT and not self.text("console") and not self.text("out")

    def finish(self, seconds=BOOT_S):
        """The command's Result, after at most so many seconds and those that a guest needs to boot."""
        try:
            said = self.process.communicate(timeout=patience(BOOT_S + seconds))[0]
            for _ in range(2):
                if not self._emulator_failed():
                    break
                print(f"QEMU failed before the guest's kernel said anything, and is started again: {said}", file=sys.stderr)
                self._start()
                said = self.process.communicate(timeout=patience(BOOT_S + seconds))[0]
            why = f"QEMU ended with {self.process.returncode}: {said}"
        except subprocess.TimeoutExpired:
            why = f"it has not ended after {patience(BOOT_S + seconds)} s"
        try:
            status = self.text("status")
            result = Result(self.argv, int(status or -1), self.text("out"), self.text("err"), time.monotonic() - self.started)
            assert status, f"no status from the guest: {why}\n{result!r}\n--- its console\n{self.text('console')[-4000:]}"
            return result
        finally:
            self.close()

    def close(self):
        self.process.kill()
        self.process.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)


def run(*argv, seconds=BOOT_S, **how):
    """Runs a command in a guest of its own; its Result."""
    return Guest(*argv, **how).finish(seconds)


def main():
    options = argparse.ArgumentParser(prog="support.vm")
    options.add_argument("--memory", type=int, default=1024, metavar="MIB")
    options.add_argument("--device", action="append", default=[])
    options.add_argument("--seconds", type=int, default=300)
    options.add_argument("command", nargs=argparse.REMAINDER)
    given = options.parse_args()
    result = run(*given.command, memory_mib=given.memory, devices=given.device, seconds=given.seconds)
    sys.stdout.write(result.out)
    sys.stderr.write(result.err)
    return result.rc


if __name__ == "__main__":
    sys.exit(main())
