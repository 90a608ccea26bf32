# SPDX-License-Identifier: Apache-2.0
"""The ranks' output: whole lines, in order, never lost, never unbounded, whoever reads it."""
import hashlib
import os
import re
import select
import socket
import subprocess
import sys
import time

import pytest

from support.build import patience
from support.run import UNREAD

PRINT = """
import os, sys
rank = os.environ["RANK"]
for i in range({lines}):
    sys.stdout.write(f"{{rank}}:{{i}}:" + "x" * (i % 300) + "\\n")
    if i % 100 == 0:
        sys.stdout.flush()
"""


@pytest.mark.parametrize("where", [("-n", 8), ("--workers", 4, "-n", 8)])
def test_lines_stay_whole_and_in_order(drarun, where):
    out = drarun(*where, "python3", "-c", PRINT.format(lines=3000)).ok().out
    seen = {}
    for line in out.splitlines():
        rank, number, rest = line.split(":")
        assert int(number) == seen.get(rank, 0)
        assert rest == "x" * (int(number) % 300)
        seen[rank] = int(number) + 1
    assert seen == {str(rank): 3000 for rank in range(8)}


def test_a_reader_that_pauses_gets_whole_lines(drarun):
    """The ranks stop in the middle of lines, some of them longer than what an agent holds."""
    lines = [str(i) + "x" * (200_000 if i % 300 == 299 else i % 90) + "\n" for i in range(3000)]
    program = """
import os, sys
text = "".join(f"{os.environ['RANK']}:{i}" + "x" * (200_000 if i % 300 == 299 else i % 90) + "\\n"
               for i in range(3000)).encode()
for at in range(0, len(text), 4096):
    os.write(1, text[at:at + 4096])
"""
    job = drarun.start("-n", 4, "python3", "-c", program, text=False)
    read = job.process.stdout.read
    data = read(1_000_000)
    time.sleep(1.1)  # longer than the others wait for a line
    data += read()
    job.finish().ok()
    for rank in range(4):
        of_rank = [line for line in data.decode().splitlines(True) if line.startswith(f"{rank}:")]
        assert of_rank == [f"{rank}:{line}" for line in lines]


def test_label(drarun):
    result = drarun("-n", 11, "-l", "sh", "-c",
                    'if [ $RANK = 9 ]; then printf "a\\n\\nb"; printf e >&2; fi').ok()
    assert result.out == "[ 9] a\n[ 9] \n[ 9] b\n"
    assert result.err == "[ 9] e\n"


def test_raw_bytes_pass_unchanged(drarun):
    program = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 40)"
    assert drarun("python3", "-c", program, text=False).ok().out == bytes(range(256)) * 40


def test_unfinished_last_line_gets_no_newline(drarun):
    assert drarun("printf", "no newline").ok().out == "no newline"


def test_a_prompt_is_shown_at_once(drarun):
    job = drarun.start("sh", "-c", "printf 'name? '; sleep 1000", text=False)
    assert select.select([job.process.stdout], [], [], patience())[0]
    assert os.read(job.process.stdout.fileno(), 100) == b"name? "
    job.signal(15)
    job.finish()


def test_others_wait_for_an_unfinished_line(drarun):
    program = ('if [ $RANK = 0 ]; then printf first; sleep 0.5; echo second; '
               'else sleep 0.2; echo other; fi')
    assert drarun("-n", 2, "sh", "-c", program).ok().out == "firstsecond\nother\n"


def test_others_do_not_wait_for_ever(drarun):
    program = 'if [ $RANK = 0 ]; then printf first; sleep 3; echo second; else sleep 0.2; echo other; fi'
    assert drarun("-n", 2, "sh", "-c", program).ok().out == "firstother\nsecond\n"


def test_nobody_waits_for_the_line_of_a_lost_worker(drarun, tmp_path):
    """A rank's line is unfinished when its agent is killed, and nobody reports its end: what others said meanwhile was lost."""
    program = ('if [ $RANK = 0 ]; then printf unfinished; until [ -e said ]; do sleep 0.05; done; kill -9 $PPID; sleep 1000; '
               'else until [ -e begun ]; do sleep 0.05; done; echo last words; touch said; sleep 1000; fi')
    job = drarun.start("--workers", 2, "-n", 2, "sh", "-c", program, cwd=tmp_path, text=False)
    begin = job.process.stdout.read1(100)
    (tmp_path / "begun").touch()
    result = job.finish()
    assert result.rc == 70 and begin + result.out == b"unfinishedlast words\n", (begin, result)


def test_line_of_100_mb(drarun):
    program = "import sys; sys.stdout.write('x' * 100_000_000 + '\\n')"
    job = drarun.start("-n", 2, "python3", "-c", "import os\nif os.environ['RANK'] == '0':\n  " + program,
                       text=False)
    digest, size = hashlib.md5(), 0
    while piece := job.process.stdout.read(1 << 20):
        digest.update(piece)
        size += len(piece)
    assert size == 100_000_001
    assert digest.hexdigest() == hashlib.md5(b"x" * 100_000_000 + b"\n").hexdigest()
    job.finish().ok()


def memory(pid, what="VmHWM"):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(rf"{what}:\s+(\d+)", file.read()).group(1))


@pytest.mark.parametrize("where", [("-n", 2), ("--workers", 2, "-n", 2)])
def test_a_slow_reader_gets_what_ranks_said_before_the_end(drarun, tmp_path, where):
    """A rank fails while much is on its way to a log or a terminal that takes longer than an end may take."""
    os.mkfifo(tmp_path / "fail")
    job = drarun.start(*where, "sh", "-c", "test $RANK = 1 || exec seq 1000000 9999999; read go < fail; exit 3", cwd=tmp_path, text=False)
    read = job.process.stdout.read1
    data = read(1 << 16)
    time.sleep(0.5)  # the other one has filled all that it may
    (tmp_path / "fail").write_text("\n")
    while piece := read(20 << 10):
        data += piece
        time.sleep(0.1)
    result = job.finish()
    assert result.rc == 3 and b"is dropped" not in result.err, result
    assert len(data) > 1 << 19 and data == b"".join(b"%d\n" % (1000000 + i) for i in range(len(data) // 8))


def test_what_a_script_leaves_writes_the_rest(drarun, tmp_path):
    """bash does not wait for the process behind `exec > >(tee log)`."""
    lines = "".join(f"{i}\n" for i in range(5000))
    assert drarun("bash", "-c", f"exec > >(sleep 0.1; exec tee {tmp_path}/log); seq 0 4999").ok().out == lines
    assert (tmp_path / "log").read_text() == lines


# No agent can end it, since it comes from none of its ranks.
STRANGER = """
import os, sys
fd = os.open(f"/proc/{sys.argv[1]}/fd/1", os.O_WRONLY)
while True:
    os.write(fd, b"of a stranger\\n" * 64)
"""


@pytest.mark.parametrize("where", [("-n", 2), ("--workers", 2, "-n", 2)])
def test_what_a_stranger_writes_is_not_waited_for(drarun, tmp_path, where):
    """Somebody reads it, as long as it comes: agents close the pipes of ranks that have ended, and with that the job ends."""
    os.mkfifo(tmp_path / "fail")
    job = drarun.start(*where, "sh", "-c", "test $RANK = 1 || exec sleep 1000; echo $$; read go < fail; exit 3", cwd=tmp_path, text=False)
    read, end = job.process.stdout.read1, time.monotonic() + patience()
    stranger = subprocess.Popen([sys.executable, "-c", STRANGER, str(int(job.process.stdout.readline()))], stderr=subprocess.DEVNULL)
    try:
        data = first = read(1 << 16)
        (tmp_path / "fail").write_text("\n")
        while data and time.monotonic() < end:
            data = read(1 << 16)
    finally:
        stranger.kill()
        stranger.wait()
    assert not data, "the job did not end"
    result = job.finish()
    assert result.rc == 3 and b"of a stranger" in first and b"is dropped" not in result.err, result


def test_standard_error_is_read_though_standard_output_is_not(drarun, tmp_path):
    """Both share the agent's window, so that the reason comes when standard output is dropped."""
    os.mkfifo(tmp_path / "fail")
    job = drarun.start("-n", 2, "sh", "-c", "test $RANK = 1 || exec seq 1000000 9999999; read go < fail; echo the reason >&2; exit 3",
                       cwd=tmp_path)
    time.sleep(0.5)  # the other one has filled all that it may
    (tmp_path / "fail").write_text("\n")
    said = job.process.stderr.read()
    assert job.finish().rc == 3 and "is dropped" in said and "the reason\n" in said, said


@pytest.mark.plain("measures memory")
def test_a_slow_reader_slows_the_ranks(drarun):
    job = drarun.start("-n", 4, "sh", "-c", "head -c 250000000 /dev/zero", text=False)
    time.sleep(1)
    ours = [pid for pid, line in job.processes().items() if "drarun" in line]
    size = 0
    while size < 900_000_000:  # the rest is more than all may hold: they are there yet
        size += len(job.process.stdout.read(1 << 20))
    assert max(memory(pid) for pid in ours) < 16 * 1024, "KiB: output piles up"
    size += len(job.process.stdout.read())
    assert size == 1_000_000_000
    job.finish().ok()


def test_files(drarun, tmp_path):
    out = tmp_path / "out"
    result = drarun("-n", 12, "--output-dir", out, "sh", "-c", "echo o $RANK; echo e $RANK >&2").ok()
    assert (result.out, result.err) == ("", "")
    assert sorted(p.name for p in out.iterdir()) == sorted(
        f"rank.{r:02}.{s}" for r in range(12) for s in ("out", "err"))
    assert (out / "rank.07.out").read_text() == "o 7\n"
    assert (out / "rank.11.err").read_text() == "e 11\n"


def test_more_files_than_descriptors(drarun, tmp_path):
    limit = ["sh", "-c", 'ulimit -n 92; exec "$@"', "sh"]  # a rank takes seven in its agent
    drarun("-n", 12, "--output-dir", tmp_path, "sh", "-c", "echo $RANK; sleep 0.1; echo $RANK",
           under=limit).ok()
    for rank in range(12):
        assert (tmp_path / f"rank.{rank:02}.out").read_text() == f"{rank}\n" * 2


def test_files_cannot_be_made(drarun, tmp_path):
    result = drarun("--output-dir", "/proc/nowhere", "touch", tmp_path / "ran")
    assert result.rc == 70 and "/proc/nowhere" in result.err
    assert not (tmp_path / "ran").exists()
    (tmp_path / "file").touch()
    result = drarun("--output-dir", tmp_path / "file" / "b", "true")
    assert result.rc == 70 and f"--output-dir {tmp_path}/file/b: make {tmp_path}/file" in result.err
    result = drarun("--output-dir", tmp_path / "file", "true")
    assert (result.rc, result.err) == (70, f"drarun: --output-dir {tmp_path}/file: Not a directory\n")
    result = drarun("--output-dir", "", "true")
    assert (result.rc, result.err) == (64, 'drarun: --output-dir: expected a directory, got ""\n')
    (tmp_path / "rank.0.out").symlink_to("/dev/full")
    result = drarun("--output-dir", tmp_path, "true")
    assert (result.rc, result.err) == (70, f"drarun: cannot create {tmp_path}/rank.0.out: it is a symbolic link; remove it\n")
    (tmp_path / "rank.0.out").unlink()
    os.mkfifo(tmp_path / "rank.0.out")  # another user's, in a directory that all may write to
    result = drarun("--output-dir", tmp_path, "true")
    assert (result.rc, result.err) == (70, f"drarun: cannot create {tmp_path}/rank.0.out: it is not a regular file; remove it\n")
    drarun("--output-dir", tmp_path / "a" / "b", "true").ok()  # with what is above it
    assert (tmp_path / "a/b/rank.0.out").exists()


@pytest.fixture
def small_disk(tmp_path):
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place]
    if subprocess.run(mount, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("needs root to mount a small disk")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_full_disk_before_the_start(drarun, small_disk, tmp_path):
    subprocess.run(f"head -c 1M /dev/zero > {small_disk}/big", shell=True, stderr=subprocess.DEVNULL)
    result = drarun("-n", 2, "--output-dir", small_disk / "out", "touch", tmp_path / "ran")
    assert result.rc == 70 and "No space left on device" in result.err
    assert not (tmp_path / "ran").exists()


def test_full_disk_in_the_middle(drarun, small_disk):
    result = drarun("-n", 2, "--output-dir", small_disk / "out", "sh", "-c",
                    "head -c 1000000 /dev/zero; sleep 1000")
    assert result.rc == 70
    assert re.search(r"cannot write to .*/out/rank\.[01]\.out: No space left on device", result.err)
    assert result.err.count("No space left") == 1


def test_full_disk_of_our_stdout(drarun):
    result = drarun("sh", "-c", "echo x; sleep 1000", under=["sh", "-c", 'exec "$@" > /dev/full', "sh"])
    assert result.rc == 70
    assert "cannot write to standard output: No space left on device" in result.err


@pytest.mark.parametrize("options,says", [((), "standard output"), (("--output-dir", "out"), "out/rank.0.out")])
def test_limit_of_file_sizes(drarun, tmp_path, options, says):
    result = drarun(*options, "sh", "-c", "head -c 1000000 /dev/zero; sleep 1000", cwd=tmp_path,
                    under=["bash", "-c", 'ulimit -f 64; exec "$@" > big', "bash"])
    assert result.rc == 70 and f"cannot write to {says}: File too large" in result.err, result


def test_nobody_reads(drarun):
    job = drarun.start("-n", 2, "sh", "-c", "while :; do echo y || exit 0; done", text=False)
    assert job.process.stdout.read(100)
    job.process.stdout.close()
    job.process.stdout = None
    result = job.finish(timeout=20)
    # the ranks find out as they would have by themselves: by SIGPIPE
    assert result.rc in (0, 128 + 13)


@pytest.mark.parametrize("words", [(), ("--output", "json"), ("--report", "/dev/stderr")], ids=["text", "json", "file"])
def test_nobody_reads_why_it_ended(drarun, words):
    """The exit status is the job's all the same."""
    result = drarun(*words, "sh", "-c", "exit 3", under=UNREAD)
    assert result.rc == 3, result


def test_closed_stdout(drarun):
    result = drarun("sh", "-c", "echo lost; echo kept >&2; exit 3",
                    under=["sh", "-c", 'exec "$@" >&-', "sh"])
    assert result.rc == 3
    assert result.err.startswith("kept\n")


def test_all_closed(drarun):
    result = drarun("-n", 2, "sh", "-c", "echo x; cat; exit 5",
                    under=["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"])
    assert result.rc == 5


@pytest.mark.parametrize("stream", [1, 2])
def test_terminal_that_has_hung_up(drarun, stream):
    """As of one who logs out while a job runs in the background, which goes on. Only -v tells what is lost."""
    hung_up = f"import os, sys; os.dup2(os.openpty()[1], {stream}); os.execvp(sys.argv[1], sys.argv[1:])"  # exec closes the other side
    result = drarun("-v", "sh", "-c", f"echo kept >&{3 - stream}; echo lost >&{stream}; echo lost >&{stream}; exit 3",
                    under=[sys.executable, "-c", hung_up])
    lines = (result.out + result.err).splitlines()
    assert result.rc == 3 and "kept" in lines and "lost" not in lines, result
    told = lines.count("drarun: standard output is closed: its terminal has hung up; what is for it is dropped")
    assert told == (stream == 1), result  # once


def test_shared_flags_stay(drarun):
    read, write = os.pipe()
    before = subprocess.check_output(["cat", f"/proc/self/fdinfo/{write}"], pass_fds=[write])
    drarun("true", stdin=write, under=["sh", "-c", 'exec "$@" >&0 </dev/null', "sh"]).ok()
    assert subprocess.check_output(["cat", f"/proc/self/fdinfo/{write}"], pass_fds=[write]) == before
    os.close(read)
    os.close(write)


def test_one_file_for_both_streams(drarun):
    program = "for i in 1 2 3 4 5; do echo out $RANK; echo err $RANK >&2; done"
    result = drarun("-n", 4, "-l", "sh", "-c", program,
                    under=["sh", "-c", 'exec "$@" 2>&1', "sh"]).ok()
    assert len(result.out.splitlines()) == 40
    assert all(re.fullmatch(r"\[(\d)\] (out|err) \1", line) for line in result.out.splitlines())


def test_stdout_is_a_socket(drarun):
    ours, theirs = socket.socketpair()
    job = subprocess.Popen([drarun.program, "sh", "-c", "head -c 3000000 /dev/zero"], stdout=theirs,
                           stdin=subprocess.DEVNULL)
    theirs.close()
    size = 0
    while piece := ours.recv(1 << 16):
        size += len(piece)
    assert (job.wait(patience()), size) == (0, 3_000_000)


def test_stdout_is_appended_to(drarun, tmp_path):
    log = tmp_path / "log"
    log.write_text("before\n")
    drarun("echo", "after", under=["sh", "-c", f'exec "$@" >> {log}', "sh"]).ok()
    assert log.read_text() == "before\nafter\n"


@pytest.mark.parametrize("where", ["file", "/dev/null"])
def test_frames_into_what_has_no_reader(drarun, tmp_path, where):
    """Nobody waits there for what comes, and so nobody can leave."""
    result = drarun("--frames", "echo", "a", under=["sh", "-c", f'exec "$@" > {where}', "sh"], cwd=tmp_path).ok()
    assert result.err == "" and (where != "file" or (tmp_path / where).read_text() == "[0] a\n"), result


@pytest.mark.plain("measures memory")
def test_memory_of_the_launcher(drarun):
    job = drarun.start("-n", 4, "sleep", "2")
    time.sleep(1)
    assert memory(job.pid) < 6 * 1024
    job.finish().ok()
