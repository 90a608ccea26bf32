# SPDX-License-Identifier: Apache-2.0
"""The guests of tests/vm: what other tests lean on."""
import os

from support import vm
from support.build import SOURCE

LOOK = """
uname -r; stat -fc %T /sys/fs/cgroup; grep -c cgroup /proc/filesystems
modprobe rdma_rxe && cat /proc/sys/kernel/hostname && head -2 "$1" && echo "$WORD" && pwd
(echo lost >"$1") 2>/dev/null; echo lost >/etc/drarun-guest-wrote
echo kept >/run/vm/job/kept
ls /sys/bus/pci/drivers/virtio-pci | grep -c :
echo to stderr >&2; exit 3
"""


def test_command_in_a_guest():
    """Another kernel, cgroup v2 alone, the machine's files, nothing written to them, the command's own end."""
    guest = vm.Guest("sh", "-c", LOOK, "sh", SOURCE / "tests/vm/README.md", env={"WORD": "a 'b' $c"},
                     devices=["virtio-net-pci,bus=pcie.0"])
    result = guest.finish()
    assert result.rc == 3 and result.err == "to stderr\n", result
    kernel, cgroup, _, host, title, _, word, folder, devices = result.out.splitlines()
    assert kernel != os.uname().release and cgroup == "cgroup2fs" and host == "vm", result
    assert title == "# tests/vm" and word == "a 'b' $c" and folder == os.getcwd() and int(devices) >= 4, result
    assert not os.path.exists("/etc/drarun-guest-wrote") and "lost" not in (SOURCE / "tests/vm/README.md").read_text()
    assert not guest.folder.exists()


def test_guest_that_panics_is_told_with_its_console():
    try:
        result = vm.run("sh", "-c", "echo c >/proc/sysrq-trigger; sleep 60")
    except AssertionError as e:
        assert "no status from the guest" in str(e) and "sysrq triggered crash" in str(e), e
    else:
        raise AssertionError(result)
