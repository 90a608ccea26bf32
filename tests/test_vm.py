# SPDX-License-Identifier: Apache-2.0
"""The guests of tests/vm: what other tests lean on."""
import os
import re

from support import vm
from support.build import SLOWER, SOURCE

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


def test_emulator_that_fails_early_is_started_again(monkeypatch, tmp_path, capsys):
    real = vm.program
    once = f'[ -e {tmp_path}/failed ] && exec "$@"; touch {tmp_path}/failed; echo its assertion; kill -ABRT $$'
    monkeypatch.setattr(vm, "program", lambda folder: ["sh", "-c", once, "sh", *real(folder)])
    result = vm.run("echo", "up")
    assert (result.rc, result.out) == (0, "up\n"), result
    assert "is started again: its assertion" in capsys.readouterr().err


def test_guest_that_panics_is_told_with_its_console():
    try:
        result = vm.run("sh", "-c", "echo c >/proc/sysrq-trigger; sleep 1000")
    except AssertionError as e:
        assert "no status from the guest" in str(e) and "sysrq triggered crash" in str(e), e
    else:
        raise AssertionError(result)


# $0: where the programs are. Groups without room, one by the group above it: a guest takes long to start, so both tests share one.
FULL_GROUPS = """
cd /sys/fs/cgroup; echo +memory +pids >cgroup.subtree_control
mkdir -p few/inner small; echo 20 >few/pids.max; echo 32M >small/memory.max
for group in few/inner small; do
    sh -c "echo 0 >$group/cgroup.procs; exec $0/drarun -n 1000 echo ran" || echo $group $?
    sh -c "echo 0 >$group/cgroup.procs; exec $0/drarun -n 2 echo fine"
done
"""

# $0: where the programs are. Two agents started by hand, each with its ranks in a cgroup that is killed as a whole.
GROUP_KILL = """
set -e; umask 077
cd /sys/fs/cgroup; echo +memory >cgroup.subtree_control
python3 -c 'import secrets; print(secrets.token_hex(32))' >/tmp/key
for i in 0 1; do
    mkdir w$i; echo 128M >w$i/memory.max; echo 1 >w$i/memory.oom.group
    sh -c "echo 0 >w$i/cgroup.procs; exec $0/drarun-worker --listen 127.0.0.1:710$i --key-file /tmp/key --once" >/tmp/agent$i 2>&1 &
done
until grep -q listening /tmp/agent0 && grep -q listening /tmp/agent1; do sleep 0.1; done
rc=0
"$0/drarun" --agents 127.0.0.1:7100,127.0.0.1:7101 --key-file /tmp/key -n 4 sh -c '
    echo rank $RANK: $(cat /proc/self/oom_score_adj)
    [ $RANK = 3 ] || exec sleep 1000
    dd if=/dev/zero of=/dev/null bs=300M count=1; echo survived' || rc=$?
wait
cat /tmp/agent*; grep oom_group_kill w?/memory.events; exit $rc
"""


def test_oom_kill_of_a_whole_cgroup_is_the_cause(build):
    """memory.oom.group of cgroup v2, as the kubelet sets it: the ranks of a worker go at once; an agent that may live on tells.
    Before that: ranks for which a group of version 2 has no room are refused."""
    result = vm.run("sh", "-c", FULL_GROUPS + GROUP_KILL, build / "bin")
    assert result.rc == 137, result
    assert result.out.startswith("few/inner 76\nfine\nfine\nsmall 76\nfine\nfine\n"), result
    assert re.search(r"1000 ranks on this worker are more than the control group may hold, 20 processes", result.err), result
    assert re.search(r"need 125.0 MiB of memory even if they do nothing, and \d+.\d MiB of the control group's 32.0 MiB", result.err)
    assert re.search(r"rank [23] on worker 1 \(vm\) was ended by the kernel's OOM killer", result.err), result
    assert "w0/memory.events:oom_group_kill 0" in result.out and "w1/memory.events:oom_group_kill 1" in result.out, result
    assert re.findall(r"rank \d: (-?\d+)", result.out) == ["0"] * 4, result  # the ranks are not exempt


LATE_S = 240  # less than the 300 s of the last jump

# Sets the clock, as somebody on the node may: a guest's is nobody else's. Arguments: drarun, after how many seconds it ends the job,
# and how many it has for that: where the last jump moves a deadline, it is missed.
CLOCK = """
import subprocess, sys, time
began = time.monotonic()
job = subprocess.Popen([sys.argv[1], "--workers", "2", "-n", "2", "--timeout", sys.argv[2], "sh", "-c", "echo ready; sleep 1000"],
                       stdout=subprocess.PIPE, text=True)
assert [job.stdout.readline() for _ in range(2)] == ["ready\\n"] * 2
real = time.time() - time.monotonic()
for jump in (600, -600, -7200, 300):
    time.clock_settime(time.CLOCK_REALTIME, real + time.monotonic() + jump)
    time.sleep(0.2)
    assert job.poll() is None, jump
status = job.wait(timeout=float(sys.argv[3]))
assert time.monotonic() - began >= float(sys.argv[2]), time.monotonic() - began
sys.exit(status)
"""


def test_wall_clock_jumps(build):
    """Deadlines and silence are measured with a clock that nobody sets. On arm64 and in sanitizer builds this does not run: there are no
    guests."""
    seconds = 10 * SLOWER
    result = vm.run("python3", "-c", CLOCK, build / "bin/drarun", seconds, seconds + LATE_S, seconds=seconds + LATE_S)
    assert result.rc == 124 and f"the job did not end within {seconds}" in result.err, result
