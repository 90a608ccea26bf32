# SPDX-License-Identifier: Apache-2.0
"""drarun import on manifests that people reported (tests/regress), and on others of the same kinds: what it
prints is the job that the manifest starts, or it says why not."""
import json

import pytest
import yaml

from support.build import SOURCE
from support.imports import complete
from support.short_form import in_template

REGRESS = SOURCE / "tests/regress"


@pytest.fixture
def imported(drarun, tmp_path):
    """imported(text or file, *program): (the job, notes), the job having been validated; all of the pod is in its template."""
    def run(what, *program):
        file = what
        if isinstance(what, str):
            file = tmp_path / "in.yaml"
            file.write_text(what)
        result = drarun("import", file, *(["--", *program] if program else []))
        out = tmp_path / "out.yaml"
        out.write_text(complete(result))
        drarun("validate", out).ok()
        drarun("render", out).ok()
        job = next(yaml.safe_load_all(result.out))
        return {**job, "spec": in_template(job["spec"])}, result.err
    return run


@pytest.fixture
def refused(drarun):
    """refused(text): why there is no job, having printed none."""
    def run(what):
        result = drarun("import", "-", input=what) if isinstance(what, str) else drarun("import", what)
        assert result.rc == 65 and result.out == "", repr(result)
        return result.err.splitlines()[-1]
    return run


def case(number, name="job.yaml"):
    return next(REGRESS.glob(f"{number:02}-*")) / name


def first(job):
    return job["spec"]["template"]["spec"]["containers"][0]


def env(job):
    return {v["name"]: v.get("value", v.get("valueFrom")) for v in first(job).get("env", [])}


def mpijob(command, slots=4, workers=2, launcher=None, pod=None, more="", **spec):
    """An MPIJob whose launcher runs the command, a list, or the script, a text."""
    words = ["/bin/bash", "-c", command] if isinstance(command, str) else command
    return yaml.safe_dump({
        "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "m"},
        "spec": {"slotsPerWorker": slots, **spec, "mpiReplicaSpecs": {
            "Launcher": {"template": {"spec": {"containers": [
                {"name": "l", "image": "i", "command": words, **(launcher or {})}], **(pod or {})}}},
            "Worker": {"replicas": workers, "template": {"spec": {"containers": [{"name": "w", "image": "i"}]}}}}},
    }, sort_keys=False) + more


# ---- how many words an option has ----

def test_option_of_hydra(imported):
    job, notes = imported(case(1))
    assert first(job)["command"] == ["./run.sh"] and env(job) == {"MODE": "fast"}
    assert (job["spec"]["workers"], job["spec"]["ranksPerWorker"]) == (3, 4)
    assert "mpiexec -launcher-exec /etc/mpi/agent.sh" in notes


@pytest.mark.parametrize("words", [
    ["mpirun", "--display", "map", "--output", "tag", "--runtime-options", "x", "app"],  # Open MPI 5
    ["mpirun", "--prtemca", "plm_ssh_agent", "x", "--pmixmca", "a", "b", "--stream-buffering", "1", "app"],
    ["mpirun", "--report-uri", "-", "--launch-agent", "orted", "--personality", "ompi", "app"],  # 4
    ["prterun", "--forward-signals", "USR1", "--with-ft", "ulfm", "app"],
    ["mpiexec.hydra", "-bootstrap", "ssh", "-bootstrap-exec", "/x", "-iface", "eth0", "-rmk", "user", "-usize", "8", "app"],
    ["mpiexec", "-errfile-pattern", "e", "-outfile-pattern", "o", "-nameserver", "h:1", "-demux", "poll", "app"],
    ["mpirun", "-check_mpi", "-gtool", "vtune:0", "-print-rank-map", "-branch-count", "2", "-s", "all", "app"],  # Intel
    ["srun", "--mpi=pmix", "--cpu-bind=none", "-c", "4", "--gres", "gpu:4", "--nice", "-l", "app"],
    ["srun", "-p", "debug", "--bcast-exclude", "/x", "--propagate", "-K1", "app"],
])
def test_values_of_options(imported, words):
    job, _ = imported(mpijob(words, mpiImplementation="Intel" if "-check_mpi" in words else "OpenMPI"))
    assert first(job)["command"] == ["app"]
    assert (job["spec"]["workers"], job["spec"]["ranksPerWorker"]) == (2, 4)


@pytest.mark.parametrize("words,option", [
    (["mpirun", "-np", "8", "--no-such-thing", "x", "app"], "--no-such-thing"),
    (["mpiexec.hydra", "-x", "A=b", "app"], "-x"),
    (["srun", "--map-by", "node", "app"], "--map-by"),
    (["prterun", "-genvall", "app"], "-genvall"),
])
def test_an_unknown_option_is_refused(refused, words, option):
    reason = refused(mpijob(words))
    assert f"<stdin>:15: {words[0]} has an unknown option {option}, so drarun cannot tell where the program begins; remove the option, or" in reason and "-- PROGRAM" in reason


def test_an_option_of_two_kinds_is_refused(refused):
    """Open MPI 4's --dvm has no value, that of 5 has one."""
    assert "mpirun --dvm has a value in one release of the launcher" in refused(mpijob(["mpirun", "--dvm", "x", "app"]))


@pytest.mark.parametrize("command", [
    ["mpirun", "-np", "1", "a", ":", "-np", "3", "b"],
    "mpirun -np 1 ./a --x : -np 3 ./b",
    ["mpiexec.hydra", "-n", "1", "a", ":", "-n", "3", "b"],
])
def test_several_programs_are_refused(refused, command):
    assert "starts several programs" in refused(mpijob(command))


def test_several_programs_as_one_that_chooses(refused, imported, drarun):
    """The refusal shows a program that does the same, and import takes it."""
    manifest = mpijob(["mpirun", "-np", "1", "./a", "--x", ":", "-np", "3", "./b", ":", "-np", "4", "./c"])
    reason = refused(manifest)
    script = reason.split("drarun import FILE -- sh -c '")[1].split("'")[0]
    assert script == "test $RANK -lt 1 && exec ./a --x; test $RANK -lt 4 && exec ./b; exec ./c"
    job, _ = imported(manifest, "sh", "-c", script)
    assert first(job)["command"] == ["sh", "-c", script]
    run = drarun("-n", 8, "sh", "-c", script.replace("./a --x", "echo a").replace("./b", "echo b").replace("./c", "echo c")).ok()
    assert sorted(run.out.split()) == ["a", *["b"] * 3, *["c"] * 4]


@pytest.mark.parametrize("words", [["a", ":", "-np", "3", "b"], ["-np", "1", "a", ":", "--no-such", "b"],
                                   ["-np", "1", "a", ":", "-np", "3", "-x", "A=b", "b"], ["-np", "1", "a'b", ":", "b"],
                                   ["-np", "1", "a", "x" * 200, ":", "b"], ["-np", "1", "a", ":"], ["-np", "5", "a", ":", "-np", "3", ":"]])
def test_several_programs_that_cannot_be_shown(refused, words):
    assert "give the ranks' program behind the file" in refused(mpijob(["mpirun", *words]))


@pytest.mark.parametrize("script,programs", [
    ("mpirun -np 4 ./prep && mpirun -np 4 ./run -x", ["./prep", "./run -x"]),
    ("cd /a; timeout 60 mpirun --tag-output -x A=b -N 4 ./prep 'a b' | tee l\nsleep 1\nmpiexec -n4 ./run; mpirun ./third", ["./prep 'a b'", "./run"]),
    ("mpirun hostname\nif test -e x; then mpirun $OPTIONS ./run; fi", ["hostname", "$OPTIONS ./run"]),
    ("mpirun ./a\nmpirun --no-such ./b", ["./a", "mpirun --no-such ./b"]),
])
def test_several_runs_are_refused(refused, script, programs):
    """Which of the programs would be the job's?"""
    reason = refused(mpijob(script))
    one, other = programs
    assert f'<stdin>:15: the launcher\'s script runs mpirun more than once, for "{one}" and then for "{other}", and a job runs one' in reason
    assert "drarun import FILE -- PROGRAM" in reason


@pytest.mark.parametrize("words", [
    ["mpirun", "--app", "file"], ["mpiexec.hydra", "-configfile", "f", "x"], ["srun", "--multi-prog", "f"]])
def test_programs_in_a_file_are_refused(refused, words):
    assert "starts several programs" in refused(mpijob(words))


# ---- a shell's words ----

def test_script_that_computes(imported, refused):
    """What is in the launcher's host file is known, other files are not."""
    job, notes = imported(case(2))
    assert (job["spec"]["workers"], job["spec"]["ranksPerWorker"]) == (2, 2)
    assert "NODES=$(wc -l < $OMPI_MCA_orte_default_hostfile) is 2" in notes and "N=$((NODES*2)) is 4" in notes
    reason = refused(case(2).read_text().replace("$OMPI_MCA_orte_default_hostfile", "/data/hosts"))
    assert "mpirun -np: only the launcher's shell knows the value ${N}; " in reason


def test_output_of_the_launcher(imported):
    job, notes = imported(case(2))
    assert first(job)["command"] == ["python3", "train.py", "--lr", "0.1", "--world", "4"]
    assert first(job)["workingDir"] == "/opt/app" and env(job) == {"LR": "0.1", "DATA_DIR": "/data"}
    assert 'mpirun\'s redirection "2>&1" is left out' in notes and '"tee /data/log.txt" is left out' in notes


@pytest.mark.parametrize("script,command", [
    ("mpirun app > log.txt 2>&1", ["app"]),
    ("mpirun app &> log < /dev/null", ["app"]),
    ("N=8\nARGS='-b 8'\nmpirun -np $N app $ARGS \"$ARGS\"", ["app", "-b", "8", "-b 8"]),
    ("mpirun app '$HOME' \\$X", ["app", "$HOME", "$X"]),
    ("mpirun app --lr $LR --name=${LR}x", ["app", "--lr", "0.1", "--name=0.1x"]),
    ("mpirun bash -c 'echo $OMPI_COMM_WORLD_RANK > out.$(hostname)'",
     ["bash", "-c", "echo $OMPI_COMM_WORLD_RANK > out.$$(hostname)"]),
    ("exec mpirun app", ["app"]),
    ("A=x; echo A=$A; A=y true; mpirun app $A", ["app", "x"]),
    ("time timeout -k 5 3600 mpirun app", ["app"]),
    ("echo mpirun -np 3 nothing; mpirun app", ["app"]),
    ("until getent hosts m-worker-0; do sleep 1; done; mpirun app", ["app"]),
    ("mpirun app & wait", ["app"]),
    ("mpirun -np 8 app $HOME/x", ["/bin/bash", "-c", "exec app $HOME/x"]),
    ("mpirun app *.py", ["/bin/bash", "-c", "exec app *.py"]),
    ("mpirun app $LR$HOME 'a b'", ["/bin/bash", "-c", "LR=0.1\nexec app $LR$HOME 'a b'"]),
    ("A=$HOME/a\nmpirun app $A", ["/bin/bash", "-c", "A=$HOME/a\nexec app $A"]),
    ("L=(a 'b c')\nmpirun app \"${L[@]}\"", ["/bin/bash", "-c", "L=(a 'b c')\nexec app \"${L[@]}\""]),
])
def test_words_of_a_script(imported, script, command):
    job, _ = imported(mpijob(script, launcher={"env": [{"name": "LR", "value": "0.1"}]}))
    assert first(job)["command"] == command and "args" not in first(job)


@pytest.mark.parametrize("script,reason", [
    ("mpirun app $(date +%s)", "gets $(date +%s), which the launcher's shell computes"),
    ("mpirun app `hostname`", "gets `hostname`, which"),
    ("mpirun app $((1 + 2))", "gets $((1 + 2)), which"),
    ("D=$(date)\nmpirun app --at=$D", "gets $D, which"),
    ("D=$(date)\nE=$D-x\nmpirun app \"${E:-y}\"", "gets ${E:-y}, which"),
    ("mpirun app \"$@\"", "gets $@, which"),
    ("mpirun $OPTIONS app", "mpirun's words come from $OPTIONS"),
    ("mpirun -x A=$(date) app", "-x A=$(date): only the launcher's shell knows the value $(date)"),
    ("if [ -e x ]; then mpirun app; fi", "in a condition, a loop or a function"),
    ("for n in 1 2 4; do mpirun -np $n app; done", "in a condition, a loop or a function"),
    ("run() { mpirun app; }; run", "in a condition, a loop or a function"),
    ("(cd /x; mpirun app)", "in a condition, a loop or a function"),
    ("[ -e x ] && mpirun app", "on a condition"),
    ("cd /a || cd /b; mpirun app", "changes its directory on a condition"),
    ("if [ -e /a ]; then cd /a; fi; mpirun app", "changes its directory on a condition"),
    ("A=1; if [ -e /a ]; then A=2; fi; mpirun app $A", "gets $A, which"),
    ("[ -e x ] && A=1; mpirun app $A", "gets $A, which"),
    ("read A < file; mpirun app $A", "gets $A, which"),
    ("for i in 1 2; do echo $i; done; mpirun app $i", "gets $i, which"),
    ("test -e x || mpirun app", "on a condition"),
    ("mpirun app < input.txt", "gives mpirun an input"),
    ("echo 3 | mpirun app", "gives mpirun an input"),
    ("mpirun app <<EOF\n1\nEOF\n", "gives mpirun an input"),
])
def test_what_only_a_shell_knows(refused, script, reason):
    assert reason in refused(mpijob(script))


def test_words_without_a_shell_are_not_expanded(imported):
    """exec gives $LR as it is; the kubelet expands $(LR)."""
    job, _ = imported(mpijob(["mpirun", "-np", "$(COUNT)", "app", "$LR", "$(LR)", "2>&1", "$(OTHER)"],
                             launcher={"env": [{"name": "LR", "value": "0.1"}, {"name": "COUNT", "value": "8"}]}))
    assert first(job)["command"] == ["app", "$LR", "0.1", "2>&1", "$$(OTHER)"]


def test_words_that_the_kubelet_made(imported):
    """They are not read a second time, except for what only the workers know."""
    key = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    job, _ = imported(mpijob(["mpirun", "-x", "KEY", "-x", "B", "app", "$$(LR)", "a$$b $$$$", "$(B)", "$(KEY)"], launcher={"env": [
        {"name": "LR", "value": "0.1"}, {"name": "B", "value": "$$(LR)$$"}, key]}))
    assert first(job)["command"] == ["app", "$$(LR)", "a$b $$$", "$$(LR)$", "$(KEY)"]
    assert first(job)["env"] == [key, {"name": "B", "value": "$$(LR)$"}]


def test_a_program_of_the_callers_own(imported):
    """What is refused can be given."""
    job, notes = imported(case(2), "python3", "train.py")
    assert first(job)["command"] == ["python3", "train.py"]
    assert "the launcher's command is ignored, since a program is given: its ranks, variables and directory are left out" in notes


def test_arguments_of_a_script(imported):
    job, _ = imported(mpijob(["sh", "-c", "mpirun -np $1 $2 $0", "zero", "8", "app"]))
    assert first(job)["command"] == ["app", "zero"]


# ---- what the launcher hands on ----

def test_directory_of_the_launcher(imported):
    job, _ = imported(case(3))
    assert first(job)["workingDir"] == "/code"
    assert first(job)["command"] == ["python", "cnn.py", "--model", "resnet101"]


def test_what_stands_before_mpirun(imported):
    job, _ = imported(mpijob(["/usr/bin/tini", "--", "env", "A=b $c", "timeout", "60", "mpirun", "-x", "A", "app"]))
    assert env(job) == {"A": "b $c"} and first(job)["command"] == ["app"]


@pytest.mark.parametrize("time,total", [
    ("90", "90s"), ("1h", "3600s"), ("1.5m", "90s"), ("2d", "172800s"), ("0.5", "1s"), ("-k 5 -s INT 60s", "60s"), ("--signal TERM --kill-after=9 1m", "60s"),
    ("0", None), ("$T", "30s"), ("$(cat t)", None), ("1x", None)])
@pytest.mark.parametrize("before", ["", "bash -lc "])
def test_a_time_limit_around_mpirun(imported, time, total, before):
    script = f"timeout {time} mpirun app"
    if before and "$" in time:
        return  # no shell reads it
    command = ["timeout", *time.split(), "bash", "-lc", "mpirun app"] if before else f"T=30\n{script}"
    job, notes = imported(mpijob(command))
    assert first(job)["command"] == ["app"] and job["spec"].get("timeouts") == (total and {"total": total})
    said = f'the launcher\'s "timeout {time}" is '
    assert said + ("now timeouts.total" if total else "left out: its time is not known here") in notes or time == "0"


def test_the_shorter_time_limit(imported):
    job, notes = imported(mpijob("timeout 1h mpirun --timeout 60 app", runPolicy={"activeDeadlineSeconds": 600}))
    assert job["spec"]["timeouts"] == {"total": "60s"}
    assert "timeout 1h\" is left out: another limit ends the job after 600 s already" in notes


@pytest.mark.parametrize("before,said", [
    ("exec", None), ("time -p", None), ("nohup", None), ("A=b", None), ("tini -g --", None), ("command", None), ("env A=b", None),
    ("nice -n 5", "it is for mpirun, not for the ranks"), ("nice --adjustment 5", "it is for mpirun"), ("stdbuf --output L", "it is for mpirun"),
    ("numactl -N 0 --membind 0", "it is for mpirun"), ("taskset -c 0-3", "it is for mpirun"),
    ("sudo -E", "ranks run as the user of the workers' container"), ("sudo -Eu mpi", "ranks run as the user"), ("gosu mpi", "ranks run as the user"),
    ("env -u X", None), ("env -iv", None), ("env --ignore-signal=INT", "it is for mpirun")])
@pytest.mark.parametrize("shell", [True, False])
def test_what_starts_mpirun(imported, before, said, shell):
    words = f"{before} mpirun app"
    job, notes = imported(mpijob(words if shell else words.split()))
    assert first(job)["command"] == ["app"]
    assert (f'the launcher\'s "{before}" is left out: {said}' in notes) if said else ("is left out: it is for" not in notes and "user" not in notes)


def test_variables_around_a_shell(imported):
    job, notes = imported(mpijob(["env", "A=b $c", "timeout", "60", "bash", "-c", "env 'D=e f' mpirun -x A -x D app"]))
    assert env(job) == {"A": "b $c", "D": "e f"} and job["spec"]["timeouts"] == {"total": "60s"}


def test_variables_behind_sudo(imported):
    job, notes = imported(mpijob("sudo -E A=b 'C=d e' mpirun -x A -x C app"))
    assert env(job) == {"A": "b", "C": "d e"} and 'the launcher\'s "sudo -E" is left out: ranks run as the user' in notes


def test_an_empty_environment(imported):
    """Hydra hands on what it has itself."""
    launcher = {"env": [{"name": "A", "value": "1"}]}
    for script, given in (("env -i B=2 mpiexec app", {"B": "2"}), ("env B=2 mpiexec app", {"A": "1", "B": "2"})):
        assert env(imported(mpijob(script, mpiImplementation="MPICH", launcher=launcher))[0]) == given


@pytest.mark.parametrize("before,given,directory", [
    ("env -u A", {"B": "2"}, "/base"), ("env -uA -v", {"B": "2"}, "/base"), ("env --unset=A --unset B", {}, "/base"), ("env -u A A=3", {"A": "3", "B": "2"}, "/base"),
    ("env -iv", {}, "/base"), ("env -iu X C=3", {"C": "3"}, "/base"), ("env -v - --", {}, "/base"), ("env --ignore-environment", {}, "/base"),
    ("env -C /data", {"A": "1", "B": "2"}, "/data"), ("env --chdir=sub -u B", {"A": "1"}, "/base/sub"), ("env -vCsub", {"A": "1", "B": "2"}, "/base/sub"),
    ("env --chdir /data -iC sub", {}, "/base/sub")])
@pytest.mark.parametrize("shell", [True, False])
def test_options_of_env(imported, before, given, directory, shell):
    """They hold for mpirun, and so for ranks that inherit from it."""
    words = f"{before} mpiexec app"
    job, notes = imported(mpijob(words if shell else words.split(), mpiImplementation="MPICH", launcher={
        "workingDir": "/base", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}))
    assert first(job)["command"] == ["app"] and first(job)["workingDir"] == directory and env(job) == given
    assert "env -" not in notes and "does not hand them on" not in notes


def test_options_of_env_that_are_not_known_here(imported):
    launcher = {"env": [{"name": "A", "value": "1"}], "envFrom": [{"secretRef": {"name": "s"}}]}
    job, notes = imported(mpijob("env -u $(id -un) -u X -C $HOME/d mpiexec app", mpiImplementation="MPICH", launcher=launcher))
    assert 'the launcher\'s "env -u $(id -un)" is left out: the name is not known here' in notes
    assert 'the launcher\'s "env -u X" is left out: which variables its envFrom has is not known here' in notes
    assert first(job)["command"] == ["/bin/bash", "-c", "cd $HOME/d\nexec app"]
    job, notes = imported(mpijob("env -u A mpirun -x A app", launcher={"env": [{"name": "A", "value": "1"}]}))
    assert env(job) == {} and "mpirun -x A: nothing in the manifest sets it for the launcher" in notes


@pytest.mark.parametrize("implementation", ["MPICH", "OpenMPI"])
@pytest.mark.parametrize("script,command,given", [
    ("unset A; mpirun {} app", ["app"], {"B": "2"}), ("unset -v A B; mpirun {} app", ["app"], {}), ("unset -f A; mpirun {} app", ["app"], {"A": "1", "B": "2"}),
    ("unset A; export A=3; mpirun {} app", ["app"], {"A": "3", "B": "2"}),
    ("export C=4; unset C; mpirun {} app", ["app"], {"A": "1", "B": "2"}),
    (". /opt/setvars.sh; unset C B; mpirun {} app", ["/bin/bash", "-c", ". /opt/setvars.sh\nunset C B\nexec app"], {"A": "1"})])
def test_variables_that_are_unset(imported, implementation, script, command, given):
    """They are not the ranks', whether these inherit all or are given some."""
    words = script.format("-x A -x B -x C" if implementation == "OpenMPI" else "")
    job, notes = imported(mpijob(words, mpiImplementation=implementation, launcher={"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}))
    assert first(job)["command"] == command and env(job) == given and '"unset' not in notes


@pytest.mark.parametrize("implementation,shell,command", [
    ("OpenMPI", "-lc", ["app"]), ("MPICH", "-c", ["app"]), ("MPICH", "-lc", ["bash", "-lc", "exec app"])])
def test_a_login_shell(imported, implementation, shell, command):
    """Its variables reach the ranks by a launcher that hands them on."""
    job, notes = imported(mpijob(["bash", shell, "mpiexec app"], mpiImplementation=implementation))
    assert first(job)["command"] == command
    assert ("a login shell sets variables, which the ranks inherit" in notes) == (len(command) > 1)


@pytest.mark.parametrize("asks", ["command -v mpirun || exit 1", "mpirun --version", "mpirun -V | head -1", "which mpirun"])
def test_questions_about_mpirun(imported, asks):
    """They run no program."""
    job, notes = imported(mpijob(f"{asks}\nmpirun -np 8 app"))
    assert first(job)["command"] == ["app"] and asks.split(" |")[0] in notes


def test_a_script_that_is_too_deep(refused):
    deep = f"X=$({'(' * 100000}{')' * 100000})\nmpirun app"
    assert "<stdin>:15: the launcher's script has more than 64 quotations and brackets inside one another" in refused(mpijob(deep))


@pytest.mark.parametrize("worker,said", [
    ({}, []),
    ({"command": ["/usr/sbin/sshd", "-De"]}, []),
    ({"command": ["bash", "-c"], "args": ["mkdir -p /run/sshd; echo X >> /etc/ssh/sshd_config; /usr/sbin/sshd -De"]}, []),
    ({"command": ["sleep", "infinity"]}, []),
    ({"command": ["bash", "-c", "pip install -r r.txt && service ssh start; sleep infinity"]}, ["pip install"]),
    ({"command": ["bash", "-e", "-c", "pip install x; /usr/sbin/sshd -De"]}, ["pip install"]),
    ({"command": ["/bin/bash"], "args": ["-c", "pip install x; /usr/sbin/sshd -De"]}, ["pip install"]),
    ({"command": ["tini", "--", "bash", "-euo", "pipefail", "-c", "pip install x; exec /usr/sbin/sshd -De"], "args": ["bash", "y"]}, ["pip install"]),
    ({"args": ["sh", "-c", "make keys\npip install x\n/usr/sbin/sshd -De"]}, ["make keys", "pip install"]),
    ({"command": ["sh", "-c", "[ -f x ] && test -f y; for i in a b; do pip install $i; done; case $A in b) exec sleep infinity;; esac; exit 1"]}, ["pip install"]),
    ({"command": ["tini", "--", "sleep", "infinity"]}, []),
    ({"command": ["/entry.sh"], "args": ["-v"]}, ["/entry.sh -v"]),
    ({"args": ["/entry.sh"]}, ["/entry.sh"]),
    ({"command": ["app"]}, []),
])
def test_what_workers_did_themselves(imported, worker, said):
    text = mpijob("mpirun app").replace("name: w\n", "name: w\n" + "".join(f"            {key}: {json.dumps(value)}\n" for key, value in worker.items()))
    _, notes = imported(text)
    left = [line.split(": ", 3)[-1] for line in notes.splitlines() if "in place of its own command" in line]
    assert len(left) == len(said) and all(f'"{part}" is left out' in line for part, line in zip(said, left)), notes


def nccl(*values):
    return yaml.safe_dump({"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [
        {"name": "w", "image": "i", "command": ["c"], "env": [{"name": "NCCL_DEBUG", **({"valueFrom": v} if isinstance(v, dict) else {"value": v})}
                                                              for v in values]}]}})


@pytest.mark.parametrize("command,waits", [
    (["tail", "-f", "/dev/null"], '"tail -f" is left out: the pod waits for someone to log in'),
    (["/bin/tail", "-n", "0", "--follow", "/dev/null"], '"/bin/tail -n" is left out'),
    (["sh", "-c", "trap 'exit 0' TERM; sleep infinity & wait"], '"wait" is left out: the pod waits for someone to log in'),
    (["sh", "-c", "sleep infinity & wait $!"], '"sleep infinity" is left out: the pod waits'),
    (["bash", "-c", "/setup.sh; while true; do sleep 30; done"], '"/setup.sh" is left out: not the ranks\' program'),
    (["tini", "--", "bash", "-c", "while :; do\n  sleep 1d\ndone\n"], '"sleep 1d" is left out: the pod waits'),
    (["train", "--steps", "infinity"], None), (["train", "--decay", "inf"], None), (["sh", "-c", "exec train --steps=infinity"], None),
    (["sh", "-c", "while true; do train; sleep 30; done"], None), (["sh", "-c", "train & sleep 5; wait"], None), (["tail", "/dev/null"], None),
    (["sh", "-c", "if test $RANK = 0; then train; else true; sleep 5; fi"], None), (["tail", "-f", "/var/log/app"], None)])
def test_pods_that_wait(imported, command, waits):
    """Their program is still to be given; others keep the one that they have."""
    pod = {"spec": {"containers": [{"name": "w", "image": "i", "command": command}]}}
    job, notes = imported(yaml.safe_dump({"kind": "StatefulSet", "metadata": {"name": "s"}, "spec": {"template": pod}}))
    assert first(job)["command"] == (["PROGRAM"] if waits else command), notes
    assert ("the ranks' program is not in the manifest" in notes) == bool(waits) and (waits or "") in notes, notes


def test_the_last_of_several_values_counts(imported):
    """As with the kubelet."""
    job, notes = imported(nccl("INFO", "WARN"))
    assert job["spec"]["nccl"]["env"] == {"NCCL_DEBUG": "WARN"} and env(job) == {}
    assert "env[0]: NCCL_DEBUG=INFO is left out: the list has NCCL_DEBUG again, and the last one counts" in notes
    job, notes = imported(nccl("INFO", SECRET))
    assert "nccl" not in job["spec"] and env(job) == {"NCCL_DEBUG": SECRET} and "NCCL_DEBUG=INFO is left out" in notes
    job, _ = imported(nccl(SECRET, "INFO"))
    assert job["spec"]["nccl"]["env"] == {"NCCL_DEBUG": "INFO"}
    job, _ = imported(mpijob("mpirun -x A=3 app").replace("name: w\n", "name: w\n            env: [{name: A, value: '1'}, {name: A, value: '2'}]\n"))
    assert env(job) == {"A": "3"}


def test_ephemeral_containers(imported):
    """kubectl debug adds them to pods that run; an API server takes no pod with one."""
    pod = {"containers": [{"name": "w", "image": "i", "command": ["c"]}], "ephemeralContainers": [{"name": "debugger-x", "image": "b"}]}
    job, notes = imported(yaml.safe_dump({"kind": "Pod", "metadata": {"name": "p"}, "spec": pod}))
    assert "ephemeralContainers" not in job["spec"]["template"]["spec"]
    assert "spec.ephemeralContainers[0]: the ephemeral container debugger-x is left out: kubectl debug adds it" in notes


@pytest.mark.parametrize("command", [["env", "A=b", "torchrun", "t.py"], ["timeout", "1h", "python3", "-m", "torch.distributed.run", "t.py"]])
def test_torchrun_behind_another_program(imported, command):
    """It starts a process for each GPU itself."""
    pod = {"containers": [{"name": "w", "image": "i", "command": command, "resources": {"limits": {"nvidia.com/gpu": 8}}}]}
    job, notes = imported(yaml.safe_dump({"kind": "Pod", "metadata": {"name": "p"}, "spec": pod}))
    assert "ranksPerWorker" not in job["spec"] and "runs its program once" not in notes


@pytest.mark.parametrize("script,directory,command", [
    ("cd /a; cd b && mpirun app", "/a/b", ["app"]),
    ("mpirun -wdir /w app", "/w", ["app"]),
    ("mpirun --wd sub app", "/base/sub", ["app"]),
    ("mpirun app", "/base", ["app"]),
    ("D=/d; cd $D && mpirun app", "/d", ["app"]),
    ("ulimit -l unlimited; mpirun app 'x y'", "/base", ["/bin/bash", "-c", "ulimit -l unlimited\nexec app 'x y'"]),
    ("source /opt/env.sh && cd /a && mpirun app", "/base", ["/bin/bash", "-c", "source /opt/env.sh\ncd /a\nexec app"]),
    ("cd $HOME/x && mpirun app", "/base", ["/bin/bash", "-c", "cd $HOME/x\nexec app"]),
    ("mpirun -x LD_LIBRARY_PATH=/l:$LD_LIBRARY_PATH app", "/base",
     ["/bin/bash", "-c", "export LD_LIBRARY_PATH=/l:$LD_LIBRARY_PATH\nexec app"]),
    ("export PATH=/p:$PATH\nmpirun -x PATH app", "/base",
     ["/bin/bash", "-c", "PATH=/p:$PATH\nexport PATH\nexec app"]),
    ("source /usr/local/gib/scripts/set_nccl_env.sh; mpirun app", "/base", ["app"]),
    ("[ -f e.sh ] && . e.sh\nmpirun app", "/base", ["/bin/bash", "-c", "[ -f e.sh ] && . e.sh\nexec app"]),
    ("[ -d /x ] && cd /x\nmpirun app", "/base", ["/bin/bash", "-c", "[ -d /x ] && cd /x\nexec app"]),
    ("cd /x || exit 1; mpirun app", "/x", ["app"]),
    ("set -a; source .env; set +a; mpirun -x A app", "/base", ["/bin/bash", "-c", "set -a\nsource .env\nset +a\nexec app"]),
    ("set -eo allexport -u; . .env; mpirun app", "/base", ["/bin/bash", "-c", "set -a\n. .env\nexec app"]),
    ("export $(grep -v '^#' .env | xargs) B=1; mpirun app", "/base",
     ["/bin/bash", "-c", "export $(grep -v '^#' .env | xargs)\nB=1\nexec app"]),
    ("set -euxo pipefail; set -- -a; mpirun app", "/base", ["app"]),
    ("if [ -e x ]; then A=1; fi; mpirun app $B", "/base", ["/bin/bash", "-c", "exec app $B"]),
])
def test_what_ranks_inherit(imported, script, directory, command):
    job, notes = imported(mpijob(script, launcher={"workingDir": "/base"}))
    assert first(job)["workingDir"] == directory and first(job)["command"] == command
    assert ("the program stays in a shell" in notes) == (command[0] != "app")


@pytest.mark.parametrize("implementation,launch,given", [
    ("OpenMPI", "mpirun", {}),
    ("OpenMPI", "mpirun -x A -x B=2", {"A": "1", "B": "2"}),
    ("OpenMPI", "export \"E=5 $A\" 'F=6'; mpirun -x E -x F", {"E": "5 1", "F": "6"}),
    ("MPICH", "mpiexec", {"A": "1", "C": "3"}),
    ("Intel", "mpirun", {"A": "1", "C": "3"}),
    ("OpenMPI", "mpiexec.hydra", {"A": "1", "C": "3"}),
    ("MPICH", "mpiexec -genvlist C", {"C": "3"}),
    ("MPICH", "mpiexec -genvnone", {}),
    ("OpenMPI", "srun", {"A": "1", "C": "3"}),
    ("OpenMPI", "srun --export=NONE", {}),
    ("OpenMPI", "srun --export=ALL,D=4", {"A": "1", "C": "3", "D": "4"}),
])
def test_exported_variables(imported, implementation, launch, given):
    """Hydra and srun hand on all of them, Open MPI what -x names."""
    job, notes = imported(mpijob(f"export A=1\nPLAIN=x\n{launch} app", mpiImplementation=implementation,
                                 launcher={"env": [{"name": "C", "value": "3"}]}))
    assert env(job) == given
    assert ("are left out: " in notes) == ("C" not in given or "A" not in given)


def test_variables_that_are_exported_all_at_once(imported):
    job, _ = imported(mpijob("Z=0; set -a; A=1; B=2; set +a; C=3\nmpiexec app", mpiImplementation="MPICH"))
    assert env(job) == {"A": "1", "B": "2"}


@pytest.mark.parametrize("launcher", ["mpirun", "horovodrun", "prterun"])
@pytest.mark.parametrize("kind,spec,launch", [("Job", {}, "mpirun"), ("StatefulSet", {"replicas": 1}, "mpirun"),
                                              ("StatefulSet", {"replicas": 2}, None)])
def test_pods_that_run_mpirun(imported, kind, spec, launch, launcher):
    """Such a pod runs it once; as the program of eight ranks it would run eight times."""
    text = workload(kind, {**KINDS[kind], **spec}).replace("- c\n", f"- {launcher}\n")
    job, notes = imported(text)
    assert first(job)["command"] == [launcher] and job["spec"].get("launch") == launch
    assert ("the pod runs mpirun itself: launch is mpirun" if launch else "each pod runs mpirun itself") in notes


def joining(command, **pod):
    container = {"name": "w", "image": "i", "command": command, "env": [
        {"name": "DRARUN_KEY", "valueFrom": {"secretKeyRef": {"name": "k", "key": "key"}}}, {"name": "A", "value": "1"}]}
    return workload("StatefulSet", {"replicas": 2, "template": {"spec": {"containers": [{**container, **pod}]}}})


JOINED = "drarun join is left out: the job's launcher starts the ranks of all pods"


@pytest.mark.parametrize("command,args,program,keys,says", [
    (["drarun", "join", "--workers", "2", "--", "app", "-x"], [], ["app", "-x"], {}, [JOINED]),
    (["drarun", "join", "--workers=2"], ["app", "$(A)"], ["app", "$(A)"], {}, [JOINED]),
    (["/opt/drarun/bin/drarun", "exec", "-N4", "--slots=8", "--oversubscribe", "--bind", "core", "--report-bindings", "--on-rank-failure", "continue", "--", "app"],
     [], ["app"], {"ranksPerWorker": 4, "slots": 8, "oversubscribe": True, "bind": "core", "reportBindings": True,
                   "failurePolicy": {"onRankFailure": "continue"}}, [JOINED.replace("join", "exec")]),
    (["nice", "drarun", "join", "--launch", "env", "--network", "any", "--workers", "3", "-lv", "--peers", "a-[0-1].a", "--start-timeout", "9m", "--", "app"],
     [], ["nice", "app"], {"launch": "env", "network": "any"},
     [JOINED, "--workers 3 is left out: the workload has 2 pods", "--peers is left out: a job's launcher knows its workers",
      "--start-timeout is left out: a job's timeouts say", "-l is left out: it is an option of drarun run", "-v is left out"]),
])
def test_pods_that_run_drarun_join(imported, command, args, program, keys, says):
    """As a job's program it would look for pods that no worker is; with a key of its own the job could not be made."""
    job, notes = imported(joining(command, args=args, resources={"limits": {"nvidia.com/gpu": 4}}))
    spec = job["spec"]
    assert first(job)["command"] == program and "args" not in first(job) and env(job) == {"A": "1"}
    assert {key: value for key, value in spec.items() if key not in ("workers", "devices", "template")} == keys
    assert spec["workers"] == 2
    assert all(each in notes for each in [*says, "DRARUN_KEY is left out: drarun makes a key for each job"]), notes


@pytest.mark.parametrize("command", [["drarun", "exec", "hello", "3", "--", "env"], ["drarun", "exec", "-it", "job", "3", "--", "gdb"]])
def test_pods_that_run_drarun_exec(imported, command):
    """A command beside the rank of another job, as people type it."""
    job, notes = imported(joining(command))
    assert first(job)["command"] == command and "drarun exec" not in notes


@pytest.mark.parametrize("command,why", [
    (["drarun", "join", "--workers", "2"], "drarun join starts no program"),
    (["drarun", "join"], "drarun join starts no program"),
    (["drarun", "join", "-N", "$(EACH)", "--", "app"], "drarun join: -N: "),
    (["drarun", "join", "--tree", "app"], "drarun join: unknown option --tree"),
])
def test_what_drarun_join_would_not_start(refused, command, why):
    text = refused(joining(command))
    assert "<stdin>:" in text and why in text, text


def test_drarun_join_of_a_shell(imported):
    job, notes = imported(joining(["sh", "-c", "ulimit -n 9999; exec drarun join --workers 2 -- app"]))
    assert first(job)["command"][0] == "sh" and "each pod runs drarun join itself, and each rank would: put the ranks' program in its place" in notes


def test_the_example_of_drarun_join(imported, source):
    job, notes = imported(source / "examples/statefulset/statefulset.yaml")
    assert first(job)["command"] == ["/programs/allreduce"] and JOINED in notes and job["spec"]["workers"] == 2
    assert job["spec"]["devices"]["nics"] == {"count": 1, "class": "nic.drarun.dev"}


# ---- ranks, not slots ----

def test_fewer_ranks_than_slots(imported):
    job, notes = imported(case(4))
    assert (job["spec"]["workers"], job["spec"]["ranksPerWorker"]) == (1, 2)
    assert "mpirun starts 2 ranks, all on 1 of 2 workers" in notes


@pytest.mark.parametrize("words,each", [("-np 8 -H $HOSTS", 4), ("-npernode 2 -H $HOSTS", 2), ("-np 4 --map-by node -H $HOSTS", 2), ("-H $HOSTS", None),
                                         ("-np 4 --host $(cat hosts)", None)])
def test_hosts_that_only_a_shell_knows(imported, refused, words, each):
    """Open MPI has one rank of each host that is named without a number, whatever slotsPerWorker is."""
    script = f"HOSTS=$(paste -sd, hosts)\nmpirun {words} app"
    if each:
        job, _ = imported(mpijob(script))
        assert (job["spec"]["workers"], job["spec"]["ranksPerWorker"]) == (2, each)
    else:
        assert "the number of ranks of each worker is in the hosts $" in refused(mpijob(script))


@pytest.mark.parametrize("words,workers,each", [
    (["-np", "8"], 2, 4),
    ([], 2, 4),
    (["-np", "4"], 1, 4),
    (["-npernode", "2"], 2, 2),
    (["-np", "4", "-npernode", "2"], 2, 2),
    (["-N", "1"], 2, 1),
    (["-pernode"], 2, 1),
    (["--map-by", "ppr:3:node"], 2, 3),
    (["--map-by", "ppr:2:node:PE=4"], 2, 2),
    (["--ppr", "2:node"], 2, 2),
    (["-np", "4", "--map-by", "node"], 2, 2),
    (["-np", "2", "--bynode"], 2, 1),
    (["-np", "16", "--oversubscribe"], 2, 8),
    (["-H", "m-worker-0,m-worker-1"], 2, 1),
    (["--host", "m-worker-0:2,m-worker-1:2"], 2, 2),
    (["-host", "a,b,a,b", "-np", "2"], 1, 2),
    (["-np", "16", "--map-by", "slot:OVERSUBSCRIBE"], 2, 8),
])
def test_ranks_of_open_mpi(imported, words, workers, each):
    job, _ = imported(mpijob(["mpirun", *words, "app"]))
    assert (job["spec"]["workers"], job["spec"]["ranksPerWorker"]) == (workers, each)


@pytest.mark.parametrize("words,workers,each", [
    (["mpiexec", "-n", "4", "-ppn", "2"], 2, 2),
    (["mpiexec", "-n", "2", "-perhost", "1"], 2, 1),
    (["mpiexec", "-n", "16"], 2, 8),
    (["mpirun", "-n", "2", "-rr"], 2, 1),
    (["srun", "-N2", "-n4"], 2, 2),
    (["srun", "-N", "1", "--ntasks-per-node=3"], 1, 3),
])
def test_ranks_of_others(imported, words, workers, each):
    job, _ = imported(mpijob([*words, "app"], mpiImplementation="Intel"))
    assert (job["spec"]["workers"], job["spec"]["ranksPerWorker"]) == (workers, each)


@pytest.mark.parametrize("words,reason", [
    (["-np", "5"], "5 ranks fill 1 workers with 4 each and leave 1"),
    (["-np", "3", "--map-by", "node"], "3 ranks cannot be divided among 2 workers"),
    (["-np", "16"], "16 ranks are more than 2 workers with 4 slots hold"),
    (["-np", "x"], "-np x: expected a number of at least 1"),
    (["--map-by", "ppr:2:socket"], "ppr:2:socket: the number of ranks on a node depends on its hardware; give it by -np"),
    (["--map-by", "ppr:0:node"], "--map-by ppr:0:node: expected ppr:N:node"),
    (["--map-by", "ppr:2"], "--map-by ppr:2: expected ppr:N:node"),
    (["--ppr", "x:node"], "--ppr x:node: expected ppr:N:node"),
    (["--map-by", "dist:mlx5_0"], "dist:mlx5_0: unknown placement; "),
    (["--rankfile", "f"], "places ranks in a way"),
    (["-npersocket", "2"], "places ranks in a way"),
    (["-H", "m-worker-0"], "1 of 2 workers are named"),
    (["-H", "m-worker-0,m-worker-0"], "1 of 2 workers are named"),
    (["-H", "a:1,b:3"], "hosts have different numbers of slots"),
])
def test_a_spread_that_no_job_has(refused, words, reason):
    assert reason in refused(mpijob(["mpirun", *words, "app"]))


def hostfile(text, path="/h/hostfile"):
    """For mpijob: a hostfile of a ConfigMap."""
    folder, key = path.rsplit("/", 1)
    config = yaml.safe_dump({"kind": "ConfigMap", "metadata": {"name": "h"}, "data": {key: text}})
    return {"launcher": {"volumeMounts": [{"name": "v", "mountPath": folder}]}, "more": "\n---\n" + config,
            "pod": {"volumes": [{"name": "v", "configMap": {"name": "h"}}]}}


@pytest.mark.parametrize("text", ["# both\na slots=2 max_slots=8\nb slots=2\n", "a:2\nb:2", "a\na\n\nb\r\nb\n", "  a slots=2 # one\n\tb  slots=2\n", "a\tslots=2\nb\tslots=2\n"])
@pytest.mark.parametrize("words,workers,each", [([], 2, 2), (["-np", "4"], 2, 2), (["-np", "2"], 1, 2), (["-np", "2", "--map-by", "node"], 2, 1)])
def test_slots_of_a_hostfile(imported, text, words, workers, each):
    """They count in place of slotsPerWorker, which is 4."""
    job, _ = imported(mpijob(["mpirun", "--hostfile", "/h/hostfile", *words, "app"], **hostfile(text)))
    assert (job["spec"]["workers"], job["spec"]["ranksPerWorker"]) == (workers, each)


@pytest.mark.parametrize("text,reason", [
    ("a slots=2\nb slots=1\n", "hosts have different numbers of slots"), ("a slots=2\n", "1 of 2 workers are named")])
def test_a_hostfile_that_no_job_has(refused, text, reason):
    assert reason in refused(mpijob(["mpirun", "-machinefile", "/h/hostfile", "app"], **hostfile(text)))


@pytest.mark.parametrize("words,spread", [
    (["-np", "8"], (2, 4)), (["-np", "4", "-npernode", "2"], (2, 2)), (["-np", "2", "--map-by", "node"], (2, 1)),
    (["-np", "4"], None), ([], None)])
def test_a_hostfile_that_is_not_at_hand(imported, refused, words, spread):
    """The script writes it: where its slots decide, nobody knows them."""
    manifest = mpijob(f"make-hosts > /tmp/hosts; mpirun --hostfile /tmp/hosts {' '.join(words)} app")
    if not spread:
        assert "the number of ranks of each worker is in the hostfile /tmp/hosts, which is not among" in refused(manifest)
        return
    job, _ = imported(manifest)
    assert (job["spec"]["workers"], job["spec"]["ranksPerWorker"]) == spread


# ---- horovodrun ----

HOROVOD = ["horovodrun", "-np", "8", "-H", "m-worker-0:4,m-worker-1:4"]


def test_horovodrun(imported):
    """It hands on all variables; its options are variables of the ranks."""
    words = [*HOROVOD, "--autotune", "--cycle-time-ms=3.5", "--no-stall-check", "--timeline-filename", "/t.json", "-p", "2222",
             "--network-interfaces", "eth0,eth1", "--log-level", "INFO", "--verbose", "python", "train.py", "--autotune"]
    job, notes = imported(mpijob(words, launcher={"env": [{"name": "DATA", "value": "/d"}]}))
    assert first(job)["command"] == ["python", "train.py", "--autotune"]
    assert (job["spec"]["workers"], job["spec"]["ranksPerWorker"]) == (2, 4)
    assert env(job) == {"DATA": "/d", "HOROVOD_AUTOTUNE": "1", "HOROVOD_CYCLE_TIME": "3.5", "HOROVOD_STALL_CHECK_DISABLE": "1",
                        "HOROVOD_TIMELINE": "/t.json", "HOROVOD_LOG_LEVEL": "INFO"}
    assert "Horovod must have been built with it" in notes and "horovodrun -p 2222: not carried over" in notes


@pytest.mark.parametrize("words,workers,each", [
    (["-np", "4"], 1, 4), (["--num-proc=8"], 2, 4)])
def test_ranks_of_horovodrun(imported, words, workers, each):
    job, _ = imported(mpijob(f"horovodrun {' '.join(words)} --hostfile $OMPI_MCA_orte_default_hostfile python t.py"))
    assert (job["spec"]["workers"], job["spec"]["ranksPerWorker"]) == (workers, each)


@pytest.mark.parametrize("words,reason", [
    (["horovodrun", "-np", "8", "python", "t.py"], "names no hosts (-H, --hostfile), so that all of its ranks are in the launcher's own pod"),
    ([*HOROVOD, "--gloo", "t.py"], "--gloo starts ranks that meet without MPI"),
    ([*HOROVOD, "--min-np", "4", "t.py"], "--min-np is for elastic jobs"),
    ([*HOROVOD, "--host-discovery-script", "/etc/mpi/discover_hosts.sh", "t.py"], "is for elastic jobs"),
    ([*HOROVOD, "--mpi-args=--map-by ppr:6:node", "t.py"], "has options that are not read here"),
    ([*HOROVOD, "--config-file", "c.yaml", "t.py"], "has options that are not read here"),
    ([*HOROVOD, "--fusion-threshold-mb", "32", "t.py"], "HOROVOD_FUSION_THRESHOLD in bytes"),
    ([*HOROVOD, "--bind-to", "none", "t.py"], "horovodrun has an unknown option --bind-to"),
    (["horovodrun", "-np", "16", *HOROVOD[3:], "t.py"], "16 ranks are more than 2 workers with 4 slots hold"),
])
def test_horovodrun_that_is_refused(refused, words, reason):
    assert reason in refused(mpijob(words))


def test_options_of_horovodrun_are_ours(drarun):
    result = drarun("-np", "2", "-H", "localhost:2", "--autotune", "--cycle-time-ms", "2.5", "--no-stall-check", "sh", "-c",
                    "echo $HOROVOD_AUTOTUNE $HOROVOD_CYCLE_TIME $HOROVOD_STALL_CHECK_DISABLE").ok()
    assert result.out == "1 2.5 1\n" * 2
    gloo = drarun("-np", "2", "--gloo", "true")
    assert gloo.rc == 64 and "Horovod must have been built with it" in gloo.err


def test_slots_of_a_job_with_gpus(imported):
    """slotsPerWorker is 1 unless it says more, whatever the worker holds."""
    text = mpijob(["mpirun", "app"]).replace("  slotsPerWorker: 4\n", "").replace(
        "name: w\n", "name: w\n            resources: {limits: {nvidia.com/gpu: 8}}\n")
    job, notes = imported(text)
    assert job["spec"]["ranksPerWorker"] == 1 and "so ranksPerWorker is 1" in notes


def test_slots_that_nothing_says(imported):
    """A JobSet has no slotsPerWorker: the ranks are those of mpirun."""
    def replicated(name, count, container):
        return {"name": name, "template": {"spec": {"parallelism": count, "completions": count, "template": {
            "spec": {"containers": [{"name": name, "image": "i", **container}]}}}}}
    text = yaml.safe_dump({"kind": "JobSet", "metadata": {"name": "s"}, "spec": {"replicatedJobs": [
        replicated("l", 1, {"command": ["mpirun", "-np", "16", "app"]}), replicated("w", 2, {"command": ["sshd"]})]}})
    assert imported(text)[0]["spec"]["ranksPerWorker"] == 8
    assert imported(text.replace("'16'", "'2'"))[0]["spec"].get("ranksPerWorker", 1) == 1


# ---- the other half of an MPIJob ----

def test_variables_of_the_launcher(imported):
    job, notes = imported(case(5))
    assert job["spec"]["nccl"]["env"] == {"NCCL_DEBUG": "WARN", "NCCL_ALGO": "Ring"}
    assert env(job) == {"LD_LIBRARY_PATH": "/opt/lib:/usr/lib", "OMPI_MCA_pml": "^cm"}
    assert first(job)["command"][0] == "/opt/all_reduce_perf"
    assert "the launcher's init container wait is left out" in notes


SECRET = {"secretKeyRef": {"name": "s", "key": "k"}}
CONFIG = "\n---\n" + yaml.safe_dump({"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"A": "1", "NCCL_ALGO": "Tree"}})


def test_values_from_elsewhere(imported):
    launcher = {"env": [{"name": "KEY", "valueFrom": SECRET},
                        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                        {"name": "OMPI_MCA_btl", "value": "tcp,self"}, {"name": "OMPI_MCA_plm_rsh_agent", "value": "x"}],
                "envFrom": [{"configMapRef": {"name": "c"}, "prefix": "P_"}, {"configMapRef": {"name": "c"}}]}
    job, notes = imported(mpijob("mpirun -x KEY -x POD -x P_A -x NCCL_ALGO -x NONE app", launcher=launcher, more=CONFIG))
    assert env(job) == {"KEY": SECRET, "P_A": "1", "OMPI_MCA_btl": "tcp,self"}
    assert job["spec"]["nccl"]["env"] == {"NCCL_ALGO": "Tree"}
    assert "the launcher's POD is left out: it describes the launcher's pod" in notes
    assert "-x NONE: nothing in the manifest sets it" in notes
    assert "the launcher's OMPI_MCA_plm_rsh_agent is left out" in notes
    assert "the launcher's variables P_NCCL_ALGO, A are left out: mpirun does not hand them on" in notes


def test_variables_of_a_config_map_of_the_workers(imported):
    """They stay, and would take the place of what is derived."""
    job, sources = yaml.safe_load(mpijob(["mpirun", "app"])), [{"configMapRef": {"name": "c"}}, {"configMapRef": {"name": "c"}, "prefix": "P_"}, {"secretRef": {"name": "s"}}]
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["envFrom"] = sources
    config = {"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"MASTER_ADDR": "m-0", "NCCL_DEBUG": "INFO", "NCCL_IB_HCA": "mlx5_0"}}
    job, notes = imported(yaml.safe_dump(job) + "\n---\n" + yaml.safe_dump(config))
    assert first(job)["envFrom"] == sources and notes.count("the ConfigMap c gives the ranks ") == 1
    assert "the ConfigMap c gives the ranks MASTER_ADDR, NCCL_IB_HCA, in place of what is derived" in notes


def field(name, path):
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def test_words_of_the_launchers_pod(imported, refused):
    """The namespace is that of all pods."""
    words, variables = ["mpirun", "app", "--of=$(V)"], lambda path: {"env": [field("V", path)]}
    job, notes = imported(mpijob(words, launcher=variables("metadata.namespace")))
    assert notes == "" and first(job)["command"] == ["app", "--of=$(V)"] and env(job) == {"V": {"fieldRef": {"fieldPath": "metadata.namespace"}}}
    assert "mpirun's program gets $(V), which describes the launcher's pod" in refused(mpijob(words, launcher=variables("metadata.name")))
    job, notes = imported(mpijob(["mpirun", "app"], launcher=variables("metadata.name")))
    assert first(job)["command"] == ["app"] and "the launcher's variables V are left out" in notes


def test_values_that_are_not_at_hand(imported):
    sources = [{"secretRef": {"name": "s"}}]
    job, notes = imported(mpijob("mpirun -x TOKEN app", launcher={"envFrom": sources}))
    assert first(job)["envFrom"] == sources and "the launcher's envFrom is the workers' too" in notes
    job, notes = imported(mpijob("mpirun app", launcher={"envFrom": sources}))
    assert "envFrom" not in first(job) and "the launcher's envFrom is left out" in notes


@pytest.mark.parametrize("script,lines,given", [
    ("mpirun -x LD_LIBRARY_PATH=$ROOT/lib:$LD_LIBRARY_PATH app", "ROOT=/opt\nexport LD_LIBRARY_PATH=$ROOT/lib:$LD_LIBRARY_PATH\nexec app", {}),
    ("export PATH=${ROOT}/bin:$PATH; mpirun -x PATH app", "ROOT=/opt\nPATH=${ROOT}/bin:$PATH\nexport PATH\nexec app", {}),
    ("mpirun -x TOKEN=$KEY app", "export TOKEN=$KEY\nexec app", {"KEY": SECRET}),
    ("KEY=${KEY:-none}; mpirun app --key=$KEY", "KEY=${KEY:-none}\nexec app --key=$KEY", {"KEY": SECRET}),
    ("source $ROOT/env.sh; ROOT=/other; mpirun app $HOME", "ROOT=/opt\nsource $ROOT/env.sh\nROOT=/other\nexec app $HOME", {}),
    ("mpirun -x A=/a/$1:$A app", "set -- b 'c d'\nexport A=/a/$1:$A\nexec app", {})])
def test_what_the_ranks_shell_reads(imported, script, lines, given):
    """It has what the launcher's had of the manifest, also where the script gives the variable another value later."""
    launcher = {"env": [{"name": "KEY", "valueFrom": SECRET}, {"name": "ROOT", "value": "/opt"}]}
    job, notes = imported(mpijob(["bash", "-c", script, "run", "b", "c d"], launcher=launcher))
    assert first(job)["command"] == ["bash", "-c", lines] and env(job) == given
    assert "ROOT" not in lines or "variables ROOT" not in notes and ", ROOT" not in notes, notes


@pytest.mark.parametrize("script,is_read", [("mpirun app --key=$TOKEN", True), ("mpirun -x KEY=$TOKEN:$HOME app", True),
                                            ("mpirun -x PATH=/p:$PATH app", False), ("D=a; cd $(pwd)/$D; mpirun app", False)])
def test_what_the_ranks_shell_may_read(imported, script, is_read):
    """Of a Secret nobody knows here which variables it has."""
    sources = [{"secretRef": {"name": "s"}}]
    job, notes = imported(mpijob(script, launcher={"envFrom": sources}))
    assert first(job).get("envFrom") == (sources if is_read else None)
    assert f"the launcher's envFrom is {'the workers' if is_read else 'left out'}" in notes, notes


def test_the_launchers_value_wins(imported):
    text = mpijob(["mpirun", "-x", "A", "app"], launcher={"env": [{"name": "A", "value": "l"}]})
    assert env(imported(text.replace("name: w\n", "name: w\n            env: [{name: A, value: w}]\n"))[0]) == {"A": "l"}


@pytest.mark.parametrize("mount,words,pod", [
    ({"mountPath": "/s"}, ["bash", "/s/run.sh", "8"], {}),
    ({"mountPath": "/s/"}, ["/s/run.sh", "8"], {}),
    ({"mountPath": "/s/run.sh", "subPath": "run.sh"}, ["/s/run.sh", "8"], {}),
    ({"mountPath": "/s"}, ["/s/other.sh", "8"], {"items": [{"key": "run.sh", "path": "other.sh"}]}),
])
def test_script_of_a_config_map(imported, mount, words, pod):
    config = "\n---\n" + yaml.safe_dump({"kind": "ConfigMap", "metadata": {"name": "c"},
                                         "data": {"run.sh": "#!/bin/bash\ncd /a\nmpirun -np $1 app -x\n"}})
    launcher = {"volumeMounts": [{"name": "v", **mount}]}
    volumes = {"volumes": [{"name": "v", "configMap": {"name": "c", **pod}}]}
    job, _ = imported(mpijob(words, launcher=launcher, pod=volumes, more=config))
    assert first(job)["command"] == ["app", "-x"] and first(job)["workingDir"] == "/a"
    job, notes = imported(mpijob(words, launcher=launcher, pod=volumes))
    assert first(job)["command"] == ["PROGRAM"]
    assert f"the script {[w for w in words if '/s/' in w][0]} is in the ConfigMap c, which is not among" in notes


def test_the_rest_of_the_launchers_pod(imported):
    job, notes = imported(mpijob(
        ["mpirun", "app"], launcher={"image": "other", "resources": {"limits": {"cpu": 1}}, "volumeMounts": [{"name": "d", "mountPath": "/d"}]},
        pod={"initContainers": [{"name": "init", "image": "i"}], "nodeSelector": {"a": "b"},
             "volumes": [{"name": "d", "emptyDir": {}}], "serviceAccountName": "me"}))
    assert list(job["spec"]["template"]["spec"]) == ["containers"]
    for part in ["init container init", "nodeSelector", "volumes", "serviceAccountName", "resources", "volumeMounts", "image"]:
        assert f"the launcher's {part} is left out" in notes, part


# ---- nothing vanishes ----

def test_shares_of_devices(imported):
    job, notes = imported(case(6, "shares.yaml"))
    gpus = job["spec"]["devices"]["gpus"]
    assert gpus["count"] == 1 and gpus["selector"].endswith('model == "A"')
    assert gpus["capacity"] == {"cores": 10, "memory": "4Gi"}
    assert "requests[1].exactly: a second request for devices of this kind is left out: the first has other selectors" in notes


def test_tolerations_of_a_request(imported):
    job, notes = imported(case(6, "tolerations.yaml"))
    assert job["spec"]["devices"] == {"gpus": {"count": 1, "class": "gpu.nvidia.com", "capacity": {"memory": "10Gi"}, "tolerations": [
        {"key": "example.org/degraded", "operator": "Exists", "effect": "NoSchedule"}]}}
    for part in ["requests[1].exactly: left out: adminAccess", "devices that differ in gpu.nvidia.com/uuid"]:
        assert part in notes, part


def claim(requests, **devices):
    return [{"kind": "ResourceClaimTemplate", "metadata": {"name": "t"},
             "spec": {"spec": {"devices": {"requests": requests, **devices}}}},
            {"kind": "Pod", "metadata": {"name": "p"}, "spec": {
                "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}],
                "containers": [{"name": "w", "image": "i", "command": ["c"], "resources": {"claims": [{"name": "c"}]}}]}}]


def gpus(**more):
    return {"name": "g", "exactly": {"deviceClassName": "gpu.nvidia.com", **more}}


A = {"selectors": [{"cel": {"expression": "1 == 1"}}]}


@pytest.mark.parametrize("requests,devices,count,note", [
    ([gpus(), gpus(count=2)], {}, 3, None),
    ([gpus(**A), gpus(count=2, **A)], {}, 3, None),
    ([gpus(**A), gpus()], {}, 1, "the first has other selectors"),
    ([gpus(), gpus(**A)], {}, 1, "the first has other selectors"),
    ([gpus(), {"name": "o", "exactly": {"deviceClassName": "gpu.other"}}], {}, 1, "the first is of another class"),
    ([gpus(allocationMode="All"), gpus()], {}, "all", "one of both takes all devices"),
    ([gpus(adminAccess=False)], {}, 1, None),
    ([gpus(later="x")], {}, 1, "requests[0].exactly.later: left out"),
    ([gpus(selectors=[{"other": 1}])], {}, 1, "this selector is left out: it has no cel.expression"),
    ([gpus()], {"config": [{"other": 1}]}, 1, "this configuration is left out"),
    ([gpus()], {"later": 1}, 1, "devices.later: left out"),
])
def test_requests(imported, requests, devices, count, note):
    job, notes = imported(yaml.safe_dump_all(claim(requests, **devices)))
    assert job["spec"]["devices"]["gpus"]["count"] == count
    several = count != 1
    assert ("each pod runs its program once" in notes) == several and job["spec"].get("ranksPerWorker") == (1 if several else None)
    assert note in notes if note else len(notes.splitlines()) == several


def test_a_request_of_a_claim(imported):
    documents = claim([gpus()])
    documents[1]["spec"]["containers"][0]["resources"]["claims"][0]["request"] = "g"
    assert "resources.claims[0].request: left out" in imported(yaml.safe_dump_all(documents))[1]


def test_a_compute_domain(imported):
    domain = {"kind": "ComputeDomain", "metadata": {"name": "d"}, "spec": {
        "numNodes": 2, "channel": {"resourceClaimTemplate": {"name": "x"}, "allocationMode": "All", "later": 1}}}
    job, notes = imported(yaml.safe_dump_all([*claim([gpus()]), domain]))
    assert job["spec"]["computeDomain"] == {"numNodes": 2, "channel": {"allocationMode": "All"}}
    assert "spec.channel.later: left out" in notes


def workload(kind, spec, **metadata):
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "w", "image": "i", "command": ["c"]}]}}
    whole = json.loads(json.dumps(spec).replace('"POD"', json.dumps(pod)))
    return yaml.safe_dump({"apiVersion": "v1", "kind": kind, "metadata": {"name": "work", **metadata}, "spec": whole})


KINDS = {
    "Job": {"template": "POD"},
    "StatefulSet": {"replicas": 2, "template": "POD"},
    "MPIJob": {"mpiReplicaSpecs": {"Worker": {"replicas": 1, "template": "POD"}, "Launcher": {
        "template": {"spec": {"containers": [{"name": "l", "image": "i", "command": ["mpirun", "c"]}]}}}}},
    "JobSet": {"replicatedJobs": [{"name": "w", "template": {"spec": {"template": "POD"}}}]},
    "LeaderWorkerSet": {"leaderWorkerTemplate": {"size": 2, "workerTemplate": "POD"}},
    "PyTorchJob": {"pytorchReplicaSpecs": {"Worker": {"template": "POD"}}},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_of_a_workload(imported, kind):
    """A key that no release had when this was written, at each place of the way to the pod."""
    assert imported(workload(kind, KINDS[kind]))[1] == ""
    spots = []

    def walk(node, path):
        if isinstance(node, dict) and "containers" not in node:
            spots.append(path)
        for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else []:
            if key not in ("metadata", "containers"):
                walk(value, [*path, key])
    walk(KINDS[kind], [])
    assert len(spots) >= 1
    for path in spots:
        spec = json.loads(json.dumps(KINDS[kind]))
        node = spec
        for key in path:
            node = node[key]
        node["brandNew"] = 1
        _, notes = imported(workload(kind, spec))
        assert "brandNew: left out" in notes, path


@pytest.mark.parametrize("kind,key,value", [
    ("Job", "maxFailedIndexes", 2), ("Job", "podReplacementPolicy", "Failed"), ("Job", "podFailurePolicy", {"rules": []}),
    ("Job", "podFailurePolicy", {"rules": [{"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [3]}}]}),
    ("StatefulSet", "minReadySeconds", 3), ("StatefulSet", "ordinals", {"start": 1}),
    ("MPIJob", "cleanPodPolicy", "Running"), ("PyTorchJob", "runPolicy", {"cleanPodPolicy": "All"}),
    ("JobSet", "coordinator", {"replicatedJob": "w"}), ("LeaderWorkerSet", "networkConfig", {"subdomainPolicy": "Shared"}),
])
def test_known_keys_of_a_workload(imported, kind, key, value):
    _, notes = imported(workload(kind, {**KINDS[kind], key: value}))
    last = list(value)[0] if key == "runPolicy" else key
    assert f"{last}: left out: " in notes


def test_labels_of_a_workload(imported):
    job, notes = imported(workload("Job", KINDS["Job"], finalizers=["x/y"], uid="1", labels={
        "team": "a", "kueue.x-k8s.io/queue-name": "q", "drarun.dev/job": "z"}, annotations={
            "note": "b", "kubectl.kubernetes.io/last-applied-configuration": "{}"}))
    assert job["metadata"] == {"name": "work", "labels": {"team": "a"}, "annotations": {"note": "b"}}
    assert job["spec"]["queue"] == "q"
    assert "metadata.finalizers: left out" in notes and '"drarun.dev/job"]: left out' in notes and "uid" not in notes


def test_completions_that_take_turns(imported):
    job, notes = imported(workload("Job", {**KINDS["Job"], "completions": 6, "parallelism": 2, "completionMode": "Indexed"}))
    assert job["spec"]["workers"] == 6 and "spec.parallelism: left out: all workers of a job run at once" in notes


def test_restarts_in_place(imported):
    spec = json.loads(json.dumps(KINDS["Job"]))
    text = workload("Job", spec).replace("      containers:", "      restartPolicy: OnFailure\n      containers:")
    job, notes = imported(text)
    assert "restartPolicy: left out" in notes and "restartPolicy" not in job["spec"]["template"]["spec"]


def test_failure_policy_of_a_job(imported):
    rules = [{"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [3, 42]}},
             {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}, {"type": "ConfigIssue", "status": "True"}]},
             {"action": "Count", "onExitCodes": {"operator": "NotIn", "values": [0, *range(2, 255)]}}]
    job, notes = imported(workload("Job", {**KINDS["Job"], "backoffLimit": 2, "podFailurePolicy": {"rules": rules}}))
    got = job["spec"]["failurePolicy"]["rules"]
    assert got[0] == {"on": {"exitCodes": [3, 42]}, "action": "fail"} and got[-1] == {"on": {"exitCodes": [1, 255]}, "action": "restart"}
    assert {each["on"]["cause"] for each in got[1:-1]} == {"evicted", "preempted", "taint", "device-taint", "node-lost", "node-shutdown"}
    assert all(each["action"] == "ignore" for each in got[1:-1]) and job["spec"]["restarts"] == 2
    assert "onExitCodes.containerName: left out" in notes and "onPodConditions[1]: left out" in notes


@pytest.mark.parametrize("count", [20, 21])
def test_as_many_rules_as_a_job_has(imported, count):
    rules = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [code]}} for code in range(1, count + 1)]
    job, notes = imported(workload("Job", {**KINDS["Job"], "podFailurePolicy": {"rules": rules}}))
    assert len(job["spec"].get("failurePolicy", {}).get("rules", [])) == (count if count == 20 else 0)
    assert ("podFailurePolicy: left out: a job has at most 20 rules" in notes) == (count > 20), notes


@pytest.mark.parametrize("kind,where", [("MPIJob", "mpiReplicaSpecs"), ("PyTorchJob", "pytorchReplicaSpecs")])
@pytest.mark.parametrize("policy,told", [("Never", False), ("OnFailure", True), ("ExitCode", True)])
def test_restarts_of_an_operator(imported, kind, where, policy, told):
    spec = json.loads(json.dumps(KINDS[kind]))
    spec[where]["Worker"]["restartPolicy"] = policy
    assert ("Worker.restartPolicy: left out: a rank that fails" in imported(workload(kind, spec))[1]) == told


@pytest.mark.parametrize("kind", ["StatefulSet", "LeaderWorkerSet"])
def test_volumes_of_each_pod(imported, kind):
    claims = [{"metadata": {"name": "data", "creationTimestamp": None, "labels": {"tier": "fast"}}, "spec": {"accessModes": ["ReadWriteOnce"],
                                                      "resources": {"requests": {"storage": "1Gi"}}}}]
    spec = json.loads(json.dumps(KINDS[kind]))
    (spec if kind == "StatefulSet" else spec["leaderWorkerTemplate"])["volumeClaimTemplates"] = claims
    job, notes = imported(workload(kind, spec))
    assert job["spec"]["template"]["spec"]["volumes"] == [
        {"name": "data", "ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"tier": "fast"}}, "spec": claims[0]["spec"]}}}]
    assert "the volume data is an ephemeral one of each worker now" in notes


def test_objects_that_the_pods_name(imported):
    text = workload("Job", KINDS["Job"]).replace("      containers:", "      serviceAccountName: me\n      containers:")
    _, notes = imported(f"{text}---\nkind: ServiceAccount\nmetadata: {{name: me}}\n---\nkind: ConfigMap\nmetadata: {{name: c}}\n")
    assert "the ServiceAccount me is left out, and the job's pods name it" in notes
    assert "the ConfigMap c is left out\n" in notes


# ---- names ----

def test_generated_name(imported):
    job, _ = imported(case(9))
    assert job["metadata"]["name"] == "mig-run" and job["spec"]["workers"] == 2


@pytest.mark.parametrize("kind", KINDS)
def test_generated_names(imported, kind):
    text = workload(kind, KINDS[kind]).replace("  name: work\n", "  generateName: sample-job-\n")
    assert imported(text)[0]["metadata"]["name"] == "sample-job"


def test_generated_names_of_pods(imported):
    pod = {"kind": "Pod", "metadata": {"generateName": "nccl-test-"}, "spec": {"containers": [{"name": "w", "image": "i", "command": ["c"]}]}}
    job, _ = imported(yaml.safe_dump_all([pod, pod]))
    assert job["metadata"]["name"] == "nccl-test" and job["spec"]["workers"] == 2


def test_a_job_without_a_name(refused):
    assert "<stdin>:1: the Job  has no name: add metadata.name" in refused(
        workload("Job", KINDS["Job"]).replace("  name: work\n", "  namespace: other\n"))
