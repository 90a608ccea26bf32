# SPDX-License-Identifier: Apache-2.0
"""Verbs, options, exit statuses and the report."""
import contextlib
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

from support.build import BUILD, SLOWER, patience
from support.agents import Agents


def test_help_and_version(drarun):
    screen = drarun("help").ok().out
    for words in (["--help"], ["-h"], ["-v", "help"], ["help", "-h"], ["help", "--help"], ["version", "--help"], ["completion", "-h"]):
        assert drarun(*words).ok().out == screen
    behind = (["run", "job.yaml", "--help"], ["job.yaml", "-h"], ["run", "job.yaml", "-n", 2, "--name", "x", "-h"])
    for words in (["run", "--help"], ["help", "run"], ["-n", 3, "-h"], *behind):
        assert drarun(*words).ok().out.startswith("Usage: drarun [run] [options] program")
    for verb in ("validate", "import", "plan", "render", "submit"):
        assert drarun(verb, "no-such-job.yaml", "--help").ok().out.startswith(f"Usage: drarun {verb} ")
    for words in (["version"], ["--version"], ["-V"], ["run", "job.yaml", "--version"], ["job.yaml", "-V"]):
        assert drarun(*words).ok().out.startswith("drarun 0.")


def test_version_names_the_commit(drarun, source):
    """That of its build; the programs that nobody asks are not linked again for each."""
    commit, = re.findall(r'= "(.*)";', (BUILD / "launcher/commit_id.c").read_text())
    assert json.loads(drarun("version", "-o", "json").ok().out).get("commit", "") == commit
    if (source / ".git").exists():
        assert subprocess.run(["git", "-C", source, "cat-file", "-t", commit], capture_output=True, text=True).stdout == "commit\n"
    run = subprocess.run([BUILD / "libexec/drarun/drarun-remote", "version", "-o", "json"], capture_output=True, text=True, timeout=patience(), check=True)
    assert "commit" not in json.loads(run.stdout)


@pytest.mark.parametrize("status, lines", [
    ("139", ["signal 11 (SIGSEGV) ended the first rank that failed", "read the rank's last lines"]),
    ("137", ["signal 9 (SIGKILL) ended", "a limit of CPU time (ulimit -t)"]),
    ("1", ["a check of doctor, accept, bench", "a rank exited with it"]),
    ("200", ["the first rank that failed exited with it"]),
    ("76", ["error: preflight"]),
])
def test_help_of_an_exit_status(drarun, status, lines):
    text = drarun("help", status).ok().out
    assert text.startswith(f"{status} (Exit statuses)\n") and all(line in text for line in lines), text


def test_verbs_on_one_screen(drarun):
    """What stands there for whom has typed nothing, and each verb's own screen."""
    bare = drarun()
    assert bare.rc == 64 and bare.out == "" and bare.err == drarun("--help").ok().out
    lines = bare.err.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80
    assert [line for line in lines if line.isalpha()] == ["Run", "Look", "Before", "Cluster", "Bench"]
    verbs = [each[:10].strip() for line in lines[2:-2] for each in (line[2:40], line[40:]) if line[0] == " " and each]
    assert {"run", "submit", "join", "list", "logs", "plan", "doctor", "accept", "bench"} <= {*verbs} and len(verbs) > 20
    screens = {verb: drarun("help", verb).ok().out for verb in verbs}
    for verb, screen in screens.items():
        assert screen == drarun(verb, "--help").ok().out and screen.startswith(f"Usage: drarun {'[run]' if verb == 'run' else verb}")
        assert max(map(len, screen.splitlines())) <= 80, screen
    assert all(f"\n  drarun bench {part} " in screens["bench"] for part in ("compare", "fabric", "judge", "report"))
    assert len({*screens.values()}) == len(verbs)


def test_verbs_are_words_in_first_place_only(drarun):
    assert drarun("run", "echo", "help").ok().out == "help\n"
    assert drarun("--", "env", "-i", "echo", "x").ok().out == "x\n"
    assert drarun("env", "-i", "echo", "x").rc == 64  # the verb
    assert drarun("-n", 1, "help").rc == 127
    assert drarun("--", "run").rc == 127


def test_no_program_is_run_for_a_word_like_a_verb(drarun, tmp_path):
    """A program of that name is in PATH: it runs only where the word cannot be meant as a verb."""
    for name in ("statsu", "rm", "squeue", "lits"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho ran\n")
        program.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for name in ("statsu", "rm", "squeue", "lits"):
        for words in ([name], [name, "x"], ["-v", name], ["--namespace", "x", name]):
            refused = drarun(*words, env=env)
            assert refused.rc == 64 and refused.out == "" and f"drarun has no verb {name}" in refused.err, refused
            assert f"drarun -- {name}" in refused.err
        for words in (["--", name], ["-n", 1, name], ["run", name], [tmp_path / name]):
            assert drarun(*words, env=env).ok().out == "ran\n"


def test_options_before_the_verb(drarun, source):
    job = source / "examples/jobs/two-by-two.yaml"
    assert drarun("-v", "validate", job).ok().out == drarun("validate", "-v", job).ok().out
    for words in (["--kubeconfig", "/nonexistent", "list"], ["--kubeconfig=/nonexistent", "run", job], ["list", "--kubeconfig", "/nonexistent"]):
        result = drarun(*words)
        assert "/nonexistent" in result.err and "PATH" not in result.err, result


def test_path_is_said_to_who_asks(drarun):
    plain = drarun("no-such-program")
    assert plain.rc == 127 and "no program no-such-program in PATH" in plain.err and "/bin" not in plain.err, plain
    assert "PATH of the ranks is /nowhere:" in drarun("-v", "-x", "PATH=/nowhere:/bin", "no-such-program").err


def test_completion(drarun):
    script = drarun("completion", "bash").ok().out
    script += "\nCOMP_WORDS=(drarun --outp) COMP_CWORD=1; _drarun; echo ${COMPREPLY[@]}\n"
    assert subprocess.check_output(["bash", "-c", script], text=True) == "--output-dir --output\n"
    result = drarun("completion", "csh")
    assert result.rc == 64 and "drarun completion bash, zsh or fish" in result.err


@pytest.mark.parametrize("words, part", [
    (["-v"], "no program given"),
    (["--workers"], "--workers needs a value"),
    (["--nonsense", "x"], "unknown option --nonsense"),
    (["--nproc-per-node=2", "train.py"], "--nproc-per-node is not an option here: drarun torchrun ... starts torchrun itself"),
    (["--nproc_per_node", 2, "train.py"], "drarun -n N python3 train.py starts N ranks"),
    (["-o", "json", "true"], "-o is not an option here: --output json prints the report; --output-dir DIR"),
    (["--standalone", "train.py"], "--standalone is not an option here: drarun torchrun"),
    (["\u2013n", 2, "x"], '"\u2013n" begins with a dash that is not "-"'),
    (["\u2014label", "x"], '"\u2014label" begins with a dash that is not "-"'),
    (["true", ":", "\u2212n", 2, "x"], '"\u2212n" begins with a dash that is not "-"'),
    (["-n", 0, "x"], "expected 1 to 1000000, got 0"),
    (["-n", -3, "x"], "expected 1 to 1000000, got -3"),
    (["-n", 10**30, "x"], "expected 1 to 1000000"),
    (["run", "job.yaml", "-n", "train"], "got \"train\"; for run, -n is the number of ranks: use --namespace train for the"),
    (["run", "-n", "train", "job.yaml"], "use --namespace train for the namespace"),
    (["-np", "two", "x"], "expected a whole number from 1 to 1000000, got \"two\"\n"),
    (["--bind-to", "hwthread", "x"], "expected none, core, core:N, numa or CPUs such as \"0-3;4-7\"\n"),
    (["-nameserver", "host", "x"], "what ranks publish is known to all jobs of the user on this machine: leave it out"),
    (["-n", "4.5", "x"], "expected a whole number from 1 to 1000000, got \"4.5\"\n"),
    (["job.yaml", "-n", 4], "-n 4: a job's spec sets the ranks of each worker"),
    (["job.yaml", "--output-dir", "out"], "--output-dir applies to a program on the command line; job.yaml is a job of a cluster: drarun logs"),
    (["job.yaml", "--timeout", "1m"], "the spec sets it: timeouts.total"),
    (["--bind", "core", "job.yaml"], "--bind applies to a program on the command line"),
    (["-genvlist", "A", "job.yaml"], "-genvlist: the ranks' environment is set in the job's spec"),
    (["--namespace", "x", "true"], "--namespace is for a job of a cluster, and true is a program"),
    (["--here", "true"], "--here is for a job of a cluster"),
    (["version", "x"], "version: unexpected argument \"x\""),
    (["help", "nosuch"], "drarun has no verb nosuch: drarun help shows the verbs"),
    (["help", "run", "x"], "help: unexpected argument \"x\""),
    (["list", "--watch", "-o", "json"], "list: --watch prints text: give it without -o json"),
    (["logs"], "logs: expected the name of one job"),
    (["describe", "a", "b"], "describe: expected the name of one job"),
    (["install", "--crd", "--user-role"], "--cluster-role, --user-role, --controller-role and --crd: give one of them"),
    (["help", "bench", "x"], "there is no drarun bench x; there are compare, fabric, judge, report"),
    (["job.yaml", "-x", "A=1"], "--env: the job's spec sets it: the container's env"),
    (["job.yaml"], "job.yaml: cannot be opened: No such file"),
    (["job.yaml", "--here", "word"], "unexpected argument \"word\": arguments for the ranks go after --"),
    (["--agents", "a:1,b", "--key-file", "/nonexistent", "x"], "--agents"),
    (["-n", 9, "--ranks-per-worker", 2, "x"], "9"),
])
def test_usage(drarun, words, part):
    result = drarun(*words)
    assert result.rc in (64, 65, 70) and part in result.err
    assert len(result.err.splitlines()) == 1


def test_job_without_a_cluster(drarun, tmp_path):
    (tmp_path / "job.yaml").write_text("spec: {workers: 1, image: a, command: [echo, hello]}\n")
    env = {"KUBECONFIG": str(tmp_path / "none")}
    result = drarun("job.yaml", env=env, cwd=tmp_path)
    assert (result.rc, result.err) == (66, f"drarun: no kubeconfig: looked at {tmp_path}/none; set KUBECONFIG or name a file; "
                                       "drarun run --local job.yaml runs its ranks here\n")
    assert drarun("run", "--local", "job.yaml", env=env, cwd=tmp_path).ok().out == "hello\n"
    for words in (["--kubeconfig", tmp_path / "none"], ["--context", "far"]):
        assert "--local" not in drarun(*words, "job.yaml", env=env, cwd=tmp_path).err


def test_status_of_the_first_cause(drarun):
    assert drarun("sh", "-c", "exit 42").rc == 42
    assert drarun("sh", "-c", "kill -9 $$").rc == 137
    assert drarun("/nonexistent/program").rc == 127
    assert drarun("/etc/passwd").rc == 126
    assert drarun("/").rc == 126


def test_a_cause_does_not_look_like_lines_of_ours(drarun):
    result = drarun("-n", 1, "--wd", "/none\ndrarun: job a has succeeded\n\nx", "true")
    assert result.err.splitlines()[1:3] == ["  drarun: job a has succeeded", ""] and result.err.count("\ndrarun:") == 0, result


def test_ranks_default_to_one_a_worker(drarun):
    assert drarun("--workers", 3, "sh", "-c", "echo $RANK/$WORLD_SIZE").ok().out.count("/3\n") == 3
    result = drarun("--workers", 2, "--ranks-per-worker", 2, "sh", "-c", "echo $WORLD_SIZE").ok()
    assert result.out == "4\n" * 4


def test_programs(drarun, tmp_path):
    result = drarun("-l", "-n", 2, "-x", "A=1", "sh", "-c", "echo a $A$B", ":",
                    "-n", 1, "-x", "B=2", "--wd", tmp_path, "sh", "-c", "echo b $A$B; pwd").ok()
    assert sorted(result.out.splitlines()) == ["[0] a 1", "[1] a 1", "[2] " + str(tmp_path), "[2] b 2"]


def test_words_of_a_job_that_divide_programs_elsewhere(drarun, tmp_path):
    (tmp_path / "job.yaml").write_text("spec: {image: a, command: [echo]}\n")
    assert drarun("run", tmp_path / "job.yaml", "--local", "--", "a", ":", "b").ok().out == "a : b\n"


def test_environment(drarun):
    env = {"SEEN": "yes", "PASSED": "on"}
    for where in ((), ("--workers", 2, "-n", 1)):
        result = drarun(*where, "-x", "PASSED", "-x", "ODD=a=b c", "-x", "NOT_THERE", "sh", "-c",
                        'echo "$SEEN $PASSED $ODD ${NOT_THERE-unset}"', env=env).ok()
        assert result.out == "yes on a=b c unset\n"
        assert "-x NOT_THERE: the variable is not set here" in result.err


def test_variables_by_the_beginning_of_their_names(drarun):
    """As Open MPI 5's -x; agents started elsewhere would not have them else."""
    env = {"SEEN_A": "1", "SEEN_B": "x y", "SEE": "no"}
    result = drarun("-genvnone", "-x", "SEEN_*", "-x", "NOT_*", "-n", 1, "env", env=env).ok()
    lines = result.out.splitlines()
    assert "SEEN_A=1" in lines and "SEEN_B=x y" in lines and "SEE=no" not in lines
    assert result.err == "drarun: -x NOT_*: no variable here has such a name, so the ranks get none\n"
    assert "-x A*B: the variable is not set here" in drarun("-x", "A*B", "-n", 1, "true").ok().err


def test_variable_that_is_not_there_is_told_once(drarun):
    """Several programs may ask for it."""
    run = drarun("-x", "NOT_THERE", "-n", 1, "true", ":", "-x", "NOT_THERE", "-x", "NOR_THIS", "-n", 1, "true").ok()
    assert run.err.splitlines() == [f"drarun: -x {name}: the variable is not set here, so the ranks do not get it"
                                    for name in ("NOT_THERE", "NOR_THIS")]


@pytest.mark.parametrize("inner", [["-n", 2], ["--workers", 2, "-n", 2]], ids=["2", "2x1"])
@pytest.mark.parametrize("outer", [["-n", 2], ["--workers", 2, "-n", 2]], ids=["2", "2x1"])
def test_a_job_in_each_rank_of_a_job(drarun, outer, inner):
    show = "echo $O $DRARUN_JOB $DRARUN_RANK $DRARUN_SIZE $DRARUN_WORKER $DRARUN_WORKERS $MASTER_PORT"
    result = drarun(*outer, "sh", "-c", 'O="$DRARUN_RANK $DRARUN_JOB $MASTER_PORT" exec "$0" "$@"', drarun.program,
                    *inner, "sh", "-c", show).ok()
    ranks = [line.split() for line in sorted(result.out.splitlines())]
    workers = 2 if "--workers" in inner else 1
    assert [[*rank[:1], *rank[4:8]] for rank in ranks] == [
        [str(outer), str(rank), "2", str(rank % workers), str(workers)] for outer in range(2) for rank in range(2)]
    assert len({rank[1] for rank in ranks} | {rank[3] for rank in ranks}) == 3  # jobs: one and two in it
    assert all(rank[2] != rank[8] for rank in ranks), repr(result)  # each has a port of its own


def test_nobody_comes_by_the_port_of_rank_0(drarun):
    """Of two ports that the kernel gives to who asks for any, an agent takes one; of all, a job takes one all the same."""
    if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode:
        pytest.skip("needs root for a network of its own")
    for given, some in (("40000 40001", range(10000, 30000)), ("1024 65535", range(1024, 65536))):
        under = ["unshare", "--net", "sh", "-c",
                 f'ip link set lo up && echo {given} >/proc/sys/net/ipv4/ip_local_port_range && exec "$@"', "sh"]
        script = '"$0" -n 2 sh -c "echo $MASTER_PORT \\$MASTER_PORT"'
        outer, inner = zip(*map(str.split, drarun("sh", "-c", script, drarun.program, under=under).ok().out.splitlines()))
        assert len({*outer}) == len({*inner}) == 1 and outer != inner, (outer, inner)
        assert all(int(each) in some for each in (*outer, *inner)), (outer, inner)


def test_environment_as_hydra_sets_it(drarun, agents):
    """-genv and -env take two words, or one with =, and -genvlist says which of our variables ranks get, wherever they are."""
    show = ["sh", "-c", 'echo "${SEEN-unset} ${HIDDEN-unset} $A$B"']
    env = {"SEEN": "yes", "HIDDEN": "too"}
    for where in ((), ("--workers", 2), agents(1).options):
        result = drarun(*where, "-genvlist", "SEEN,PATH", "-genv", "A", "1", "-n", 1, "-env", "B", "2", *show, env=env)
        assert result.ok().out == "yes unset 12\n" and result.err == ""
    assert drarun("-genvnone", "-genv", "A=1", "-env", "B=2", *show, env=env).ok().out == "unset unset 12\n"
    assert drarun("-genvnone", *show, env=env).ok().out == "unset unset \n"
    assert drarun(*agents(1).options, "-genvall", *show, env=env).ok().out == "yes too \n"
    assert drarun("--mca", "btl", "self", "sh", "-c", "echo $OMPI_MCA_btl").ok().out == "self\n"
    note = "drarun: --prtemca a: drarun starts no daemons of PRRTE, so nothing reads it\n"
    for words, said in (((), note), (("--workers", 2), note), (("-q",), ""), (("--launch", "mpirun"), "")):  # that one's mpirun may read it
        assert drarun(*words, "--prtemca", "a", "b", "true").ok().err == said


def test_variables_of_other_launchers(drarun):
    """What the user told mpirun or srun by a variable is heeded, or named once."""
    result = drarun("sleep", 1000, env={"MPIEXEC_TIMEOUT": "1"})
    assert result.rc == 124
    env = {"HYDRA_HOST_FILE": "hosts", "I_MPI_PIN": "0", "I_MPI_PIN_DOMAIN": "core", "SLURM_NTASKS": "4", "SLURM_JOB_NUM_NODES": "1", "OMPI_MCA_btl": "self"}
    said = drarun("true", env=env).ok().err.splitlines()
    assert said == ["drarun: HYDRA_HOST_FILE=hosts: drarun does not read this variable: --hostfile FILE",
                    "drarun: I_MPI_PIN_DOMAIN=core: drarun does not read this variable: --bind none, core, core:N, numa or a list as 0-1;2-3",
                    "drarun: SLURM_NTASKS=4: drarun does not read this variable: -n N"]
    assert drarun("-n", 2, "-H", "localhost", "--bind", "core", "true", env=env).ok().err == ""
    assert drarun("-q", "true", env=env).ok().err == ""
    assert "OMPI_MCA_orte_tag_output=1" in drarun("--mca", "orte_tag_output", 1, "true").ok().err


def test_hosts_of_a_batch_system(drarun, tmp_path):
    """mpirun would start ranks on all of them."""
    hosts = tmp_path / "hosts"
    hosts.write_text("a\na\nb\nb\n")
    start = "start drarun-worker --listen :7173 --key-file FILE on each host, then pass --agents HOST:7173,... --key-file FILE\n"
    said = "drarun: {} names {} hosts, but all ranks start on this one: " + start
    slurm = "drarun: SLURM_JOB_NUM_NODES=4: drarun does not read this variable: " + start
    # the value of the second one is longer than a line of the log
    for env, err in (({"PBS_NODEFILE": hosts}, said.format("PBS_NODEFILE", 2)),
                     ({"LSB_MCPU_HOSTS": " ".join(f"host{i} 64" for i in range(200))}, said.format("LSB_MCPU_HOSTS", 200)),
                     ({"SLURM_JOB_NUM_NODES": "4"}, slurm)):
        assert drarun("true", env=env).ok().err == drarun("-n", 2, "true", env=env).ok().err == err
        assert drarun("-n", 1, "true", ":", "-n", 1, "true", env=env).ok().err == err
        assert drarun("-n", 1, "true", env=env).ok().err == drarun("--workers", 2, "true", env=env).ok().err == ""
    hosts.write_text("a\na\n")
    assert drarun("true", env={"PBS_NODEFILE": hosts}).ok().err == ""


def test_host_file_that_is_a_pipe(drarun):
    """drarun becomes another program for several workers."""
    for options in ("", "--workers 2"):
        script = f"exec {drarun.program} {options} --hostfile <(echo localhost slots=4) sh -c 'echo $DRARUN_SIZE'"
        assert drarun("-c", script, program="/bin/bash").ok().out == "4\n" * 4


def test_where_the_shell_of_a_slurm_allocation_is(drarun):
    """On a login node, or on the first node, where it is a task of an "interactive step"."""
    start = "start drarun-worker --listen :7173 --key-file FILE on each host, then pass --agents HOST:7173,... --key-file FILE\n"
    several = {"SLURM_JOB_NUM_NODES": "4", "SLURM_JOB_NODELIST": "nowhere[1-4]", "SLURM_NTASKS": "8", "SLURM_CPU_BIND": "quiet,mask_cpu:0x3"}
    said = drarun("-n", 8, "true", env={**several, "SLURM_STEP_ID": "4294967290", "SLURMD_NODENAME": "nowhere1"}).ok().err
    assert said == "drarun: SLURM_JOB_NUM_NODES=4: drarun does not read this variable: " + start
    assert drarun("-n", 8, "true", env={**several, "SLURM_STEP_ID": "0", "SLURMD_NODENAME": "nowhere1"}).ok().err == ""
    one = {"SLURM_JOB_NUM_NODES": "1", "SLURM_JOB_NODELIST": "nowhere1"}
    said = "drarun: SLURM_JOB_NODELIST=nowhere1: the allocation is on that host, but all ranks start on this one: " + start
    assert drarun("-n", 2, "true", env=one).ok().err == drarun("-n", 1, "true", env=one).ok().err == said
    assert drarun("-n", 2, "true", env={**one, "SLURMD_NODENAME": "nowhere1"}).ok().err == ""
    assert drarun("-n", 2, "true", env={**one, "SLURM_JOB_NODELIST": os.uname().nodename}).ok().err == ""
    assert drarun("--workers", 2, "true", env=one).ok().err == ""


def test_environment_of_agents_by_hand(drarun, agents):
    agents = agents(1)
    result = drarun(*agents.options, "-x", "PASSED", "sh", "-c", 'echo "${SEEN-unset} $PASSED"',
                    env={"SEEN": "yes", "PASSED": "on"}).ok()
    assert result.out == "unset on\n"


@pytest.mark.parametrize("group, options, part", [
    (("pids", "pids.max", "30"), ["-n", 1000], "1000 ranks on this worker are more than the control group may hold, 30 processes and threads, of which "),
    # each of the workers alone would have room for its own
    (("pids", "pids.max", "60"), ["--workers", 4, "-n", 60], "60 ranks on this machine are more than the control group may hold, 60 processes "),
    (("memory", "memory.limit_in_bytes", "64M"), ["-n", 1000], "1000 ranks on this worker need 125.0 MiB of memory even if they do nothing, and "),
], indirect=["group"])
def test_no_room_in_the_control_group(drarun, group, options, part):
    under = ["sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh"]
    result = drarun(*options, "echo", "ran", under=under)
    assert result.rc == 76 and result.out == "" and part in result.err and len(result.err.splitlines()) == 1, repr(result)
    drarun(*options[:-1], 4, "true", under=under).ok()


def test_no_room_for_the_ranks_descriptors(drarun, agents):
    """The agent's limit counts, here and elsewhere, before any rank runs."""
    low = ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh"]
    said = "32 ranks on this worker need 15"
    result = drarun("-n", 32, "echo", "ran", under=low)
    assert result.rc == 76 and result.out == "" and said in result.err and "the limit is 64: raise it (ulimit -n)" in result.err
    drarun("-n", 10, "true", under=low).ok()
    one = Agents(drarun, agents(0).key_file, [("127.0.0.1", low)])
    result = drarun(*one.options, "-n", 32, "echo", "ran")
    assert result.rc == 76 and result.out == "" and said in result.err
    one.finish()


def test_tmp_that_is_read_only(drarun):
    under = ["unshare", "--mount", "sh", "-c", 'mount --bind -o ro /tmp /tmp && ! touch /tmp/x 2>/dev/null && exec "$@"', "sh"]
    if subprocess.run([*under, "true"], capture_output=True).returncode:
        pytest.skip("needs root for a mount of its own")
    for words in ((), ("--workers", 2)):
        result = drarun(*words, "-n", 2, "sh", "-c", "test -w $PMIX_SERVER_TMPDIR && echo fine", under=under).ok()
        assert result.out == "fine\nfine\n" and result.err == ""


def test_tmp_that_is_full(drarun):
    """Another place is taken; where there is none, the user hears what to do."""
    full = 'mount -t tmpfs -o size=64k none /mnt && { cat /dev/zero >/mnt/all; } 2>/dev/null; test -s /mnt/all || exit 99; '
    under = ["unshare", "--mount", "sh", "-c", full + 'exec "$@"', "sh"]
    if subprocess.run([*under, "true"], capture_output=True).returncode:
        pytest.skip("needs root for a mount of its own")
    for words in ((), ("--workers", 2)):
        result = drarun(*words, "-n", 2, "sh", "-c", "echo fine >$PMIX_SERVER_TMPDIR/x.$RANK && cat $PMIX_SERVER_TMPDIR/x.$RANK", under=under, env={"TMPDIR": "/mnt"}).ok()
        assert result.out == "fine\nfine\n" and result.err == ""
    none = 'program=/mnt/${1##*/} && mount --bind "${1%/*}" /mnt || exit 99; shift; cd /; '  # the build may be below one of these:
    none += 'for each in /tmp /dev/shm /run; do mount -t tmpfs -o nr_inodes=1 none $each || exit 99; done; exec $program "$@"'
    result = drarun("true", under=["unshare", "--mount", "sh", "-c", none, "sh"], env={"TMPDIR": "/tmp"})
    assert result.rc == 70 and result.err.endswith(": No space left on device: make room there, or set TMPDIR to another directory, whose path has at most 40 characters\n")


@pytest.fixture
def open_folder():
    """Any user may enter it, wherever the build is."""
    with tempfile.TemporaryDirectory(prefix="dt-", dir="/tmp") as name:
        os.chmod(name, 0o755)
        yield Path(name)


def test_user_without_home(drarun, mpi_named, open_folder):
    """As in a container whose user has no entry: libpmix crashed in the agent, and libpmix 4 in the rank."""
    if os.getuid() != 0:
        pytest.skip("needs root")
    check = mpi_named("openmpi4").compile("mpi_check.c")
    for file in (drarun.program, drarun.program.with_name("drarun-worker"), check):
        shutil.copy(file, open_folder)

    def run(user, *words, **how):
        under = ["setpriv", "--reuid", user, "--regid", "0", "--clear-groups", "env", "-u", "HOME"]
        return drarun(*words, program=open_folder / "drarun", under=under, env={"TMPDIR": "/tmp"}, **how).ok().out
    assert run("123456", "-n", 1, "sh", "-c", "echo $HOME") == "/\n"
    assert run("123456", "-n", 1, "-x", "HOME=/else", "sh", "-c", "echo $HOME") == "/else\n"
    assert run("daemon", "-n", 1, "sh", "-c", "echo $HOME") == "/usr/sbin\n"
    assert "ok: 2 ranks" in run("123456", "-n", 2, open_folder / check.name, "all", leaves=["*"])


def test_report(drarun, tmp_path):
    file = tmp_path / "report.json"
    result = drarun("-n", 2, "--output", "json", "--report", file, "sh", "-c", "exit $((RANK * 7))")
    report = json.loads(result.err)
    assert result.rc == 7 and report == json.loads(file.read_text())
    assert report["status"] == 7 and report["ranks"] == 2 and report["workers"] == 1
    assert report["cause"]["kind"] == "exit" and report["cause"]["rank"] == 1
    assert report["cause"]["host"] == socket.gethostname()
    assert report["programs"] == [["sh", "-c", "exit $((RANK * 7))"]]
    assert report["max_rss_kib"] > 0


def test_report_when_all_went_well(drarun, tmp_path):
    file = tmp_path / "report.json"
    result = drarun("--report", file, "true").ok()
    assert result.err == ""
    assert json.loads(file.read_text())["cause"] is None
    assert json.loads(drarun("--report", "/dev/stderr", "true").ok().err)["status"] == 0
    assert json.loads(drarun("--output", "json", "true").ok().err)["status"] == 0


@pytest.mark.parametrize("name, said", [
    ("none/r.json", "no file can be made in {}/none/: No such file or directory"),
    ("file/r.json", "no file can be made in {}/file/: Not a directory"),
    ("folder", "it is a directory; name a file in it"),
])
def test_report_that_cannot_be_written(drarun, tmp_path, name, said):
    """It is said before the ranks run, not after hours of work."""
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "job.yaml").write_text(f"spec: {{workers: 1, image: a, command: [touch, {tmp_path}/ran]}}\n")
    for words in (["touch", tmp_path / "ran"], [tmp_path / "job.yaml", "--local"], [tmp_path / "job.yaml", "--here"]):
        result = drarun("--report", tmp_path / name, *words)
        assert (result.rc, result.err) == (70, f"drarun: --report {tmp_path / name}: {said.format(tmp_path)}\n")
        assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name, said", [("", '--report: expected a file, got ""\n'), ("-", "--report -: expected a file: standard output is the ranks'")])
def test_report_without_a_name(drarun, tmp_path, name, said):
    result = drarun("--report", name, "touch", "ran", cwd=tmp_path)
    assert result.rc == 64 and result.err.startswith(f"drarun: {said}") and not list(tmp_path.iterdir())


def test_report_in_memory(drarun):
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="report-") as folder:
        drarun("--report", f"{folder}/report.json", "true").ok()
        assert json.loads(Path(folder, "report.json").read_text())["status"] == 0


def test_report_behind_the_output(drarun, tmp_path):
    """What its descriptor's file holds stays."""
    drarun("--report", "/dev/stdout", "echo", "out", cwd=tmp_path, under=["sh", "-c", 'exec "$@" >file', "sh"]).ok()
    out, report = (tmp_path / "file").read_text().splitlines()
    assert out == "out" and json.loads(report)["status"] == 0


def test_report_over_the_limit_of_file_sizes(drarun, tmp_path):
    result = drarun("--report", "report.json", "true", "x" * 90000, cwd=tmp_path, under=["bash", "-c", 'ulimit -f 64; exec "$@"', "bash"])
    assert result.rc == 70 and "report.json" in result.err and "File too large" in result.err, result
    assert not list(tmp_path.iterdir())


def test_report_to_who_does_not_read(drarun, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        result = drarun("--report", pipe, "true", "x" * 90000)
    finally:
        os.close(reader)
    assert (result.rc, result.err) == (70, f"drarun: write {pipe}: who has opened it does not read\n")


def test_report_to_a_named_pipe(drarun, tmp_path):
    """It stays one, and a job does not wait for a reader that there is not."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    result = drarun("--report", pipe, "true")
    assert (result.rc, result.err) == (70, f"drarun: write {pipe}: nobody reads it\n")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        drarun("--report", pipe, "true").ok()
        assert json.loads(os.read(reader, 1 << 16))["status"] == 0 and stat.S_ISFIFO(pipe.stat().st_mode)
    finally:
        os.close(reader)


def test_report_that_nobody_else_may_read(drarun, tmp_path):
    drarun("--report", tmp_path / "r.json", "true", under=["sh", "-c", 'umask 077; exec "$@"', "sh"]).ok()
    assert (tmp_path / "r.json").stat().st_mode & 0o777 == 0o600


def test_report_of_words_that_are_not_utf8(drarun):
    report = json.loads(drarun("--output", "json", "true", os.fsdecode(b"\xff\xc3\x28")).ok().err)
    assert report["programs"] == [["true", "??("]]


def test_verbose_and_quiet(drarun):
    result = drarun("-v", "true").ok()
    assert "connecting -> checking" in result.err and "checking -> preparing" in result.err and "draining -> ended" in result.err
    assert drarun("-q", "-x", "NOT_THERE", "true").ok().err == ""
    assert drarun("-q", "sh", "-c", "exit 3").err.startswith("drarun: rank 0")


def test_agents_by_hand(drarun, agents):
    three = agents(3)
    result = drarun(*three.options, "-n", 6, "sh", "-c", "echo $DRARUN_WORKER").ok()
    assert sorted(result.out.split()) == ["0", "0", "1", "1", "2", "2"]
    for agent in three.finish():
        agent.ok()


def test_hosts_that_are_this_machine(drarun, tmp_path):
    """A list of hosts that names this machine alone says how many ranks there are."""
    file = tmp_path / "hosts"
    file.write_text(f"# two\nlocalhost slots=2\n{socket.gethostname()}:1\n")
    link = tmp_path / "link"  # as those of a mounted ConfigMap
    link.symlink_to(file)
    count = ["sh", "-c", "echo $WORLD_SIZE"]
    for words, ranks in ((["--hostfile", link], 3), (["-H", "localhost:3"], 3), (["--host", "127.0.0.1,127.0.0.1"], 2), (["-hosts", "localhost"], 1),
                         (["--hostfile", file], 3), (["-machinefile", file, "-n", 4], 4), (["-f", file, "-n", 2], 2)):
        result = drarun(*words, *count).ok()
        assert result.out == f"{ranks}\n" * ranks and result.err == ""
    piped = f"{BUILD}/bin/drarun --hostfile <(echo localhost slots=2) sh -c 'echo $WORLD_SIZE'"
    assert subprocess.run(["bash", "-c", piped], capture_output=True, text=True, timeout=patience(30)).stdout == "2\n2\n"
    for words, part in ((["-H", "localhost,node7:2"], "-H node7: this host is another machine"),
                        (["--hostfile", "/nonexistent"], "--hostfile /nonexistent: No such file"),
                        (["-N", 2], "-N 2 sets the ranks of each worker, and there is one worker: use -n 2"),
                        (["-H", "a:x"], "expected HOST or HOST:SLOTS, got \"a:x\"")):
        result = drarun(*words, "true")
        assert result.rc == 64 and part in result.err and len(result.err.splitlines()) == 1


def test_hosts_choose_agents(drarun, agents):
    two = agents(2)
    ports = [address.split(":")[1] for address in two.addresses]
    where = ["--agents", f"127.0.0.1:{ports[0]},127.1:{ports[1]}", "--key-file", two.key_file]
    wrong = drarun(*where, "-H", "node7", "true")
    assert wrong.rc == 64 and "-H node7: no agent has this name (--agents 127.0.0.1:" in wrong.err
    result = drarun(*where, "-H", "127.1:2,127.0.0.1:2", "-l", "sh", "-c", "echo $DRARUN_WORKER$MASTER_PORT").ok()
    assert sorted(line[:5] for line in result.out.splitlines()) == ["[0] 0", "[1] 0", "[2] 1", "[3] 1"]
    for agent in two.finish():
        agent.ok()


def test_ranks_of_each_host(drarun):
    result = drarun("--workers", 2, "-N2", "sh", "-c", "echo $DRARUN_WORKER").ok()
    assert sorted(result.out.split()) == ["0", "0", "1", "1"]


def test_agents_that_cannot_be_reached(drarun, agents):
    one = agents(1)
    result = drarun("--start-timeout", SLOWER, "--agents", one.addresses[0] + ",127.0.0.1:9", "--key-file",
                    one.key_file, "true")
    assert result.rc == 70
    assert (f"worker 1 (127.0.0.1:9) is not reached after {SLOWER} s (--start-timeout): Connection refused; "
            "is drarun-worker --listen running there?\n") in result.err
    assert result.seconds >= SLOWER


def test_agent_that_does_not_answer(drarun, agents):
    """A full queue of connections drops packets, as a firewall does; the kernel reports a timeout only after minutes."""
    key, limit = agents(0).key_file, 3 * SLOWER
    with contextlib.ExitStack() as sockets:
        door, *guests = [sockets.enter_context(socket.socket()) for _ in range(3)]
        door.bind(("127.0.0.1", 0))
        door.listen(0)
        for guest in guests:  # the first one fills the queue
            guest.setblocking(False)
            guest.connect_ex(door.getsockname())
        where = "127.0.0.1:%d" % door.getsockname()[1]
        result = drarun("--start-timeout", limit, "--agents", where, "--key-file", key, "true")
    why = f"no answer to the connection: its machine is down, or a firewall drops packets to port {where.split(':')[1]}"
    assert result.rc == 70
    assert result.err.splitlines() == [f"drarun: waiting: worker 0 ({where}) is not reached: {why}",
                                       f"drarun: worker 0 ({where}) is not reached after {limit} s (--start-timeout): {why}"]


def test_agents_named_twice_or_wrongly(drarun, agents):
    key = agents(0).key_file
    options = ["--key-file", key, "true"]
    assert "named twice" in drarun("--agents", "127.0.0.1:9,127.1:9", *options).err
    said = drarun("--agents", "nowhere.invalid:9", *options).err
    assert said.startswith("drarun: --agents: cannot look up nowhere.invalid: ")
    assert said.endswith("; give the address if DNS and /etc/hosts do not have the name, as those of ~/.ssh/config and .local\n")
    assert "expected HOST:PORT" in drarun("--agents", "127.0.0.1", *options).err
    result = drarun("--agents", "127.0.0.1:9,", "127.0.0.1:8", *options)
    assert result.rc == 64 and result.err == ("drarun: --agents: 127.0.0.1:8 is in the place of the program: "
                                              "list the agents with commas between them, without blanks\n")
    key.chmod(0o644)
    result = drarun("--agents", "127.0.0.1:9", *options)
    assert result.rc == 64 and "chmod 600" in result.err


def test_wrong_key(drarun, agents, tmp_path):
    one = agents(1, once=False)
    other = tmp_path / "other"
    other.touch(mode=0o600)
    other.write_text("00" * 32)
    result = drarun("--agents", one.addresses[0], "--key-file", other, "true")
    assert result.rc == 70 and 'the peer sent the TLS alert "illegal parameter"; does it have the same --key-file' in result.err
    drarun(*one.options, "true").ok()


def test_not_an_agent(drarun, agents):
    key = agents(0).key_file
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(patience())
        job = drarun.start("--agents", f"127.0.0.1:{server.getsockname()[1]}", "--key-file", key, "true")
        peer, _ = server.accept()
        peer.sendall(b"220 mail.example.org ESMTP\r\n")
        result = job.finish()
        peer.close()
    assert result.rc == 70 and "127.0.0.1" in result.err


def test_text_of_others_cannot_move_a_cursor(drarun, tmp_path):
    """A file's name in a message; ranks own their output, and it is passed on as it is."""
    result = drarun("run", str(tmp_path / "\x1b]0;title\x07\x9b31m.json"))
    assert result.rc == 65 and "?]0;title???31m.json" in result.err, result
    assert "\x1b" not in result.err and "\x07" not in result.err
    assert drarun("--", "printf", r"\033[31mred").ok().out == "\x1b[31mred"


def test_nothing_is_loaded(drarun):
    """The local job pays for no library, not even the loader."""
    if subprocess.run(["ldd", drarun.program], capture_output=True).returncode == 0:
        pytest.skip("linked dynamically, for a sanitizer")
    job = drarun.start("sleep", 0.5)
    libraries = [line for line in open(f"/proc/{job.pid}/maps") if ".so" in line]
    assert libraries == []
    job.finish().ok()


@pytest.mark.parametrize("words", [
    ["help"], ["completion", "bash"], ["topo"], ["plan", "{jobs}/two-by-two.yaml"], ["plan", "--help"],
    ["validate", "{jobs}/two-by-two.yaml"], ["render", "{jobs}/two-by-two.yaml", "--format", "json"],
    ["env", "--network", "any"], ["import", "{seeds}/mpijob-1x1.yaml"],
], ids=lambda words: words[0])
def test_full_disk_behind_stdout(drarun, source, words):
    """What cannot be written is said."""
    folders = {"jobs": source / "examples/jobs", "seeds": source / "tests/data/seeds"}
    words = [word.format(**folders) for word in words]
    result = drarun("-c", 'exec "$0" "$@" > /dev/full', drarun.program, *words, program="/bin/sh")
    assert result.rc == 70, result
    assert f"{words[0]}: cannot write to stdout: No space left on device" in result.err, result
