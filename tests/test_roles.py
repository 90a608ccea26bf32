# SPDX-License-Identifier: Apache-2.0
"""A job with roles: its ranks on this machine, its plan and its manifests."""
import json
import os
import re

import pytest
import yaml

from support.build import SOURCE

SHOW = 'echo "$DRARUN_ROLE $RANK/$WORLD_SIZE worker $DRARUN_WORKER local $LOCAL_RANK/$LOCAL_WORLD_SIZE $1"'


@pytest.fixture
def job(tmp_path):
    """A job.yaml with these keys of its spec."""
    def make(*roles, **spec):
        path = tmp_path / "job.yaml"
        path.write_text(yaml.safe_dump({"metadata": {"name": "job"}, "spec": {"image": "i", "roles": list(roles), **spec}}))
        return path
    return make


def role(name, script=SHOW, **keys):
    return {"name": name, "command": ["sh", "-c", script, "sh"], **keys}


@pytest.mark.gate
def test_each_role_runs_its_program_on_its_own_workers(drarun, job):
    spec = job(role("head"), role("train", SHOW + "; echo $DRARUN_HOSTS_HEAD $DRARUN_HOSTS_ROLL_OUT", workers=2, ranksPerWorker=2, args=["x"]),
               role("roll-out", workers=1, ranksPerWorker=3, args=["z"]))
    result = drarun("run", "--local", spec).ok()
    assert sorted(line for line in result.out.splitlines() if "worker" in line) == [
        "head 0/8 worker 0 local 0/1 ",
        "roll-out 5/8 worker 3 local 0/3 z", "roll-out 6/8 worker 3 local 1/3 z", "roll-out 7/8 worker 3 local 2/3 z",
        "train 1/8 worker 1 local 0/2 x", "train 2/8 worker 1 local 1/2 x",
        "train 3/8 worker 2 local 0/2 x", "train 4/8 worker 2 local 1/2 x"]
    assert result.out.count("127.0.0.1 127.0.0.1\n") == 4


@pytest.mark.gate
def test_worlds_of_their_own(drarun, job):
    """Ranks from 0, and a place where each world's rank 0 listens; workers are the job's."""
    show = SHOW + "; echo node $NODE_RANK/$NNODES of $DRARUN_ROLE at $MASTER_ADDR:$MASTER_PORT jax $JAX_PROCESS_ID/$JAX_NUM_PROCESSES"
    spec = job(role("head", show), role("train", show, workers=2, ranksPerWorker=2), world="own", launch="env")
    lines = drarun("run", "--local", spec).ok().out.splitlines()
    assert sorted(line for line in lines if "worker" in line) == [
        "head 0/1 worker 0 local 0/1 ", "train 0/4 worker 1 local 0/2 ", "train 1/4 worker 1 local 1/2 ",
        "train 2/4 worker 2 local 0/2 ", "train 3/4 worker 2 local 1/2 "]
    at = {line.split()[3]: line.split()[5] for line in lines if line.startswith("node")}
    assert len(set(at.values())) == 2 and len([line for line in lines if at["train"] in line]) == 4, lines
    assert sorted(line.replace(at[line.split()[3]], "X") for line in lines if line.startswith("node")) == [
        "node 0/1 of head at X jax 0/1", "node 0/2 of train at X jax 0/4", "node 0/2 of train at X jax 1/4",
        "node 1/2 of train at X jax 2/4", "node 1/2 of train at X jax 3/4"]


def test_torchrun_in_a_world_of_its_own(drarun, job, tmp_path):
    """It counts the workers of its role."""
    program = tmp_path / "torchrun"
    program.write_text("#!/bin/sh\necho $DRARUN_ROLE $PET_NODE_RANK/$PET_NNODES\n")
    program.chmod(0o755)
    roles = [{"name": name, "workers": workers, "command": [str(program), "t.py"]} for name, workers in (("a", 1), ("b", 2))]
    result = drarun("run", "--local", job(*roles, world="own", launch="env")).ok()
    assert sorted(result.out.splitlines()) == ["a 0/1", "b 0/2", "b 1/2"]
    refused = drarun("run", "--local", job(*roles, launch="env"))
    assert refused.rc == 65 and "launch: torchrun (a) would count the workers of all roles: set world: own" in refused.err, refused


def test_workers_of_roles_are_not_changed(drarun, job):
    """A freed list of programs would show: the C library fills what is freed."""
    refused = drarun("run", "--local", "--workers", 2, job(role("a"), role("b")), env={"MALLOC_PERTURB_": "165"})
    assert refused.rc == 64 and "--workers" in refused.err and len(refused.err.splitlines()) == 1, refused


def test_without_roles_there_is_one(drarun, tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text("workers: 2\nranksPerWorker: 2\nimage: i\ncommand: [sh, -c, 'echo $RANK $GROUP_RANK [$DRARUN_ROLE]']\n")
    result = drarun("run", path, "--local").ok()
    assert sorted(result.out.splitlines()) == ["0 0 []", "1 0 []", "2 1 []", "3 1 []"]


@pytest.mark.parametrize("keys,options", [({"reportBindings": True}, ()), ({}, ("--report-bindings",))], ids=["key", "option"])
def test_where_the_ranks_of_a_job_run(drarun, job, keys, options):
    result = drarun("run", "--local", job(role("a", "true"), role("b", "true", workers=2), **keys), *options).ok()
    assert sorted(re.findall(r"^drarun: worker (\d): rank (\d) on \S+: CPUs [0-9,-]+ \(not bound\)$", result.err, re.M)) == [
        ("0", "0"), ("1", "1"), ("2", "2")], result


INSPECTED = """test "$NCCL_INSPECTOR_ENABLE$NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS" = 11000000 || exit 9
echo $NCCL_PROFILER_PLUGIN >$NCCL_INSPECTOR_DUMP_DIR/$RANK.log"""
OFF = "test -z $NCCL_INSPECTOR_ENABLE$NCCL_INSPECTOR_DUMP_DIR"


@pytest.fixture
def inspected(drarun, tmp_path):
    """inspected(script, variables): a spec without roles that wants NCCL's inspector."""
    def write(script, variables):
        path = tmp_path / "inspected.yaml"
        path.write_text(yaml.safe_dump({"metadata": {"name": "inspected"}, "spec": {
            "image": "i", "workers": 2, "ranksPerWorker": 1, "command": ["sh", "-c", script], "nccl": {"inspector": True, "env": variables}}}))
        return path

    return write


def test_what_nccls_inspector_writes_is_kept(drarun, inspected, tmp_path):
    """A file stands for the library: the ranks are shells."""
    library, report = tmp_path / "lib.so", tmp_path / "report.json"
    library.touch()
    result = drarun("run", "--local", inspected(INSPECTED, {"NCCL_PROFILER_PLUGIN": str(library)}), "--report", report, cwd=tmp_path).ok()
    folder = tmp_path / "report.json.inspector"
    assert f"NCCL's inspector: 2 files in {folder}" in result.err, result
    assert {str(path.relative_to(folder)): path.read_text() for path in folder.glob("*/*")} == {
        f"worker-{rank}/{rank}.log": f"{library}\n" for rank in range(2)}
    assert json.loads(report.read_text())["inspector"]["files"] == 2


def test_nccls_inspector_writes_where_the_user_says(drarun, inspected, tmp_path):
    library = tmp_path / "lib.so"
    library.touch()
    variables = {"NCCL_PROFILER_PLUGIN": str(library), "NCCL_INSPECTOR_DUMP_DIR": str(tmp_path)}
    result = drarun("run", "--local", inspected(INSPECTED, variables), cwd=tmp_path).ok()
    assert sorted(path.name for path in tmp_path.glob("*.log")) == ["0.log", "1.log"] and "inspector" not in result.err, result


def test_nccls_inspector_that_writes_nothing(drarun, inspected, tmp_path):
    """As of a communicator of one rank: there is a file, but nothing in it."""
    library = tmp_path / "lib.so"
    library.touch()
    empty = inspected(': >"$NCCL_INSPECTOR_DUMP_DIR/$RANK.log"', {"NCCL_PROFILER_PLUGIN": str(library)})
    result = drarun("run", "--local", empty, "--report", "report.json", "--output", "json", cwd=tmp_path).ok()
    assert json.loads(result.err.splitlines()[-1])["status"] == 0, result
    assert "NCCL's inspector has written nothing: is the program's NCCL older than 2.28, or did it make no communicator of more than one rank?" in result.err, result


def test_nccls_inspector_whose_folder_cannot_be_made(drarun, inspected, tmp_path):
    """It is said before any rank starts."""
    (tmp_path / "lib.so").touch()
    (tmp_path / "file").touch()
    path = inspected("touch started", {"NCCL_PROFILER_PLUGIN": str(tmp_path / "lib.so")})
    result = drarun("run", "--local", path, "--report", "file/report.json", cwd=tmp_path)
    assert result.rc != 0 and "file/report.json.inspector" in result.err and "does not fit" not in result.err, result
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("library, said", [("lib.so", "no folder is set for its files; give --report FILE"), ("none.so", "its library is not on this machine")])
def test_nccls_inspector_that_cannot_be(drarun, inspected, tmp_path, library, said):
    (tmp_path / "lib.so").touch()
    result = drarun("run", "--local", inspected(OFF, {"NCCL_PROFILER_PLUGIN": str(tmp_path / library)}), cwd=tmp_path).ok()
    assert f"NCCL's inspector is off: {said}" in result.err, result


def test_mpi_program_of_two_roles(drarun, source, examples):
    """examples/mpmd/job.yaml as it is."""
    if not (examples / "pi-coordinator").exists():
        pytest.skip("the build left out the example mpmd: there is no MPI compiler")
    env = {"PATH": f"{examples}:{os.environ['PATH']}"}
    result = drarun("run", "--local", source / "examples/mpmd/job.yaml", env=env).ok()
    assert result.out == "mpmd: 1 coordinator, 3 integrators: pi = 3.141592654, right\n"


@pytest.mark.gate
def test_success_of_a_role_ends_the_others(drarun, job):
    """Who serves hears of the end, however it takes it."""
    here = job().parent
    spec = job(role("server", f"trap 'echo told; exit 9' TERM; touch {here}/up$RANK; while :; do sleep 0.1; done", workers=2),
               role("client", f"until [ -e {here}/up0 ] && [ -e {here}/up1 ]; do sleep 0.1; done; echo done"), success="client")
    result = drarun("run", "--local", spec, "--report", spec.parent / "report.json").ok()
    assert sorted(result.out.splitlines()) == ["done", "told", "told"]
    report = json.loads((spec.parent / "report.json").read_text())
    assert report["status"] == 0 and report["cause"] is None and report["ended"] == 3


def test_success_of_rank_0(drarun, job):
    result = drarun("run", "--local", job(role("a", "echo $RANK", ranksPerWorker=1), role("b", "exec sleep 1000"), success="rank0")).ok()
    assert result.out == "0\n"


@pytest.mark.parametrize("success", ["all", "good", "rank0"])
def test_failure_before_the_success_is_the_jobs(drarun, job, success):
    result = drarun("run", "--local", job(role("good", "exec sleep 1000"), role("bad", "exit 7"), success=success))
    assert result.rc == 7 and "rank 1 of program 2 on worker 1" in result.err, result


@pytest.mark.parametrize("words,said", [([], "1.00 s"), (["--timeout", "500ms"], "500 ms (--timeout)"), (["--launch", "pmix"], "1.00 s")])
def test_limit_is_named_as_it_was_given(drarun, job, words, said):
    """An option that nobody has typed is not named."""
    result = drarun("run", "--local", job(role("a", "exec sleep 1000"), timeouts={"total": "1s"}), *words)
    assert result.rc == 124 and re.search(f"^drarun: the job did not end within {re.escape(said)}$", result.err, re.M), result


def test_signal_is_named_as_it_was_given(drarun, job):
    spec = job(role("a", "exec sleep 1000"), timeouts={"total": "10m", "signal": "SIGUSR1"})
    result = drarun("run", "--local", spec, "--timeout", "30s")
    assert result.rc == 64 and "timeouts.signal USR1@60s: --timeout is 30 s" in result.err, result
    result = drarun("run", "--local", spec, "--signal", "USR2@15m")
    assert result.rc == 64 and "--signal USR2@900s: timeouts.total is 600 s" in result.err and "a longer timeouts.total" in result.err, result


@pytest.mark.gate
@pytest.mark.parametrize("words,said", [
    (["--workers", 2], "--workers 2: the job job has roles, each of which says how many workers it has"),
    (["--image", "x"], "--local and --image: it has no effect on ranks of this machine"),
    (["-n", 2], "-n 2: a job's spec sets the ranks of each worker (ranksPerWorker); --workers N changes the workers\n"),
    (["--launch", "env"], "--local and --launch"),
])
def test_what_the_spec_says_is_refused(drarun, job, words, said):
    result = drarun("run", job(role("a")), "--local", *words)
    assert result.rc == 64 and said in result.err, result


@pytest.mark.parametrize("words", [["--env", "X=y", "--wd", "/", "--bind", "core"], ["-x", "X=y", "--wd", "/", "--bind", "0"]])
def test_command_line_is_for_all_ranks(drarun, job, words):
    """Over what the spec says; a role's own variables stay."""
    show = "echo $DRARUN_ROLE $X $A $PWD $(nproc)"
    spec = job(role("a", show, workingDir="/tmp"), role("b", show, env={"A": "b", "X": "b"}), env={"A": "top"}, bind="none")
    assert sorted(drarun("run", "--local", spec, *words).ok().out.splitlines()) == ["a y top / 1", "b y b / 1"]


def test_spec_on_standard_input(drarun, job):
    """Also where another program of drarun's takes over; the ranks' own is empty then."""
    text = job(role("a", "cat; echo $RANK"), role("b", "cat; echo $RANK", ranksPerWorker=2)).read_text()
    assert sorted(drarun("run", "--local", "-", input=text).ok().out.split()) == ["0", "1", "2"]
    refused = drarun("run", "--stdin", "all", "--local", "-", input=text)
    assert refused.rc == 64 and "--stdin: standard input is already used for the job's spec" in refused.err, refused


def test_options_of_messages_behind_the_spec(drarun, job):
    """They are read later than those before it, and hold as much."""
    spec = job(role("a", "true", env={"B": {"secretKeyRef": {"name": "s", "key": "k"}}}))
    for words, note, steps in ([], True, False), (["-v"], True, True), (["-q"], False, False):
        said = drarun("run", spec, "--local", *words, clean=False).ok().err
        assert ("comes from an object of a cluster" in said, "all agents said hello" in said) == (note, steps), said
    for words in (["-q", spec, "-v"], ["-v", spec, "-q"]):
        refused = drarun("run", "--local", *words)
        assert refused.rc == 64 and "--quiet and --verbose: give one of them" in refused.err, refused


def test_local_is_for_a_spec(drarun):
    result = drarun("--local", "true")
    assert result.rc == 64 and "--local is for a job of a cluster" in result.err, result


def test_arguments_of_the_command_line(drarun, job):
    result = drarun("run", "--local", job(role("a", args=["x"]), role("b")), "--", "z").ok()
    assert all(line.endswith(" z") for line in result.out.splitlines()) and result.out.count("\n") == 2


def test_variables_of_cluster_objects_are_told(drarun, job):
    """Once for all roles that lack the same, and for all variables that the same roles lack."""
    secret = {name: {"secretKeyRef": {"name": "s", "key": name}} for name in "BCD"}
    spec = job(role("a", "echo [$A] [$B]"), role("b", "true"), role("c", "true", env={"A": "z", "D": secret["D"]}),
               role("d", "true", env={}), env={"A": "x", **secret})
    result = drarun("run", "--local", spec, clean=False).ok()
    assert result.out == "[x] []\n"
    assert [line for line in result.err.splitlines() if "of a cluster" in line] == [
        "drarun: roles a, b: the variables B, C come from objects of a cluster: they are not set here",
        "drarun: roles a, b, c: the variable D comes from an object of a cluster: it is not set here"]


def test_variables_of_a_job_without_roles_are_told(drarun, tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text("image: i\ncommand: ['true']\nenv: {B: {secretKeyRef: {name: s, key: k}}}\n")
    result = drarun("run", "--local", path, clean=False).ok()
    assert result.err == "drarun: the variable B comes from an object of a cluster: it is not set here\n"


def test_objects_of_variables_are_told(drarun, job):
    """Those that give all that they have: a line for each."""
    objects = [{"configMapRef": {"name": "c"}}, {"prefix": "X_", "secretRef": {"name": "s", "optional": True}}]
    spec = job(role("a", "true"), role("b", "true", envFrom=objects[:1]), role("d", "true", envFrom=[]), envFrom=objects)
    result = drarun("run", "--local", spec, clean=False).ok()
    assert result.err.splitlines() == [
        "drarun: roles a, b: the variables of ConfigMap c come from an object of a cluster: they are not set here",
        "drarun: role a: the variables of Secret s come from an object of a cluster: they are not set here"]


# ---- references to variables ----

def test_references(drarun, job):
    """Words know each rank's variables, a value those before it; a command line's words stay as they are."""
    env = [{"name": "EARLY", "value": "$(FOO)"}, {"name": "FOO", "value": "foo"}, {"name": "BAR", "value": "$(FOO)-x$$"}, {"name": "NONE"}]
    program = {"name": "a", "command": ["$(SAY)", "v=$(FOO)", "$(RANK)/$(WORLD_SIZE)", "$$(FOO)", "$(date +%s)"], "args": ["$(BAR)<$(NONE)>$(EARLY)"]}
    spec = job(program, env=[*env, {"name": "SAY", "value": "echo"}], ranksPerWorker=2)
    words = "v=foo {}/2 $(FOO) $(date +%s) "
    assert sorted(drarun("run", "--local", spec).ok().out.splitlines()) == [words.format(r) + "foo-x$<>$(FOO)" for r in range(2)]
    assert sorted(drarun("run", "--local", spec, "--", "$(RANK)", "$$").ok().out.splitlines()) == [
        words.format(r) + "$(RANK) $$" for r in range(2)]
    assert drarun("-n", 1, "-x", "A=$(RANK)", "sh", "-c", "echo $A '$(RANK)' '$$'").ok().out == "$(RANK) $(RANK) $$\n"


def test_program_that_is_a_reference(drarun, job, tmp_path):
    """Also to what each rank has of its own; what is not there is told by the word that it became."""
    for rank in range(2):
        path = tmp_path / f"program.{rank}"
        path.write_text(f"#!/bin/sh\necho {rank}\n")
        path.chmod(0o755)
    spec = job({"name": "a", "command": [f"{tmp_path}/program.$(RANK)"], "ranksPerWorker": 2})
    assert sorted(drarun("run", "--local", spec).ok().out.split()) == ["0", "1"]
    for value, says in ("/nowhere", "/nowhere"), ("", "the program's name is empty"):
        result = drarun("run", "--local", job({"name": "a", "command": ["$(PROGRAM)"], "env": {"PROGRAM": value}}))
        assert result.rc == 127 and says in result.err and "$(PROGRAM)" not in result.err, result
    result = drarun("run", "--local", job({"name": "a", "command": ["$(PROGRAM)"]}))
    assert result.rc == 127 and "no program $(PROGRAM) in PATH" in result.err, result


@pytest.mark.parametrize("workers", [1, 3])
def test_other_number_of_workers(drarun, workers):
    """Of a job without roles, as in a cluster."""
    result = drarun("run", SOURCE / "examples/jobs/hello.yaml", "--local", "--workers", workers).ok()
    assert sorted(line[:11] for line in result.out.splitlines()) == [f"rank {r} of {2 * workers}" for r in range(2 * workers)]


# ---- plan and manifests ----

DEVICES = {"gpus": {"count": 8, "class": "gpu.nvidia.com"},
           "nics": {"count": 8, "class": "dranet", "selector": 'device.attributes["dra.net"].rdma == true'}}


@pytest.mark.gate
def test_plan_of_each_role(drarun, machine, job):
    spec = job(role("head"), role("train", workers=2, devices=DEVICES), role("serve", devices={"gpus": {"count": 1, "class": "gpu.nvidia.com"}}))
    words = ["plan", spec, *machine("a4-highgpu-8g", 3)]
    plan = json.loads(drarun(*words, "-o", "json").ok().out)
    assert (plan["job"], plan["workers"]) == ("job", 4)
    head, train, serve = plan["roles"]
    assert [each["role"] for each in plan["roles"]] == ["head", "train", "serve"]
    assert head["claim"] is None and train["plan"]["jobScore"] == 1.0
    nodes = [worker["node"] for worker in train["prediction"]["workers"] + serve["prediction"]["workers"]]
    assert len(set(nodes)) == 3, nodes  # what one role holds, another does not get
    text = drarun(*words).ok().out
    assert text.startswith("job job: 4 workers in 3 roles")
    assert "\nrole train: 2 workers, each with 8 GPUs of class gpu.nvidia.com and 8 NICs of class dranet\n" in text


def test_warnings_of_roles_are_grouped(drarun, machine, job):
    """What several roles' plans warn of is said once, behind them."""
    spec = job(role("train", workers=2, devices=DEVICES), role("serve", devices=DEVICES), role("head"))
    text = drarun("plan", spec, *machine("a4-highgpu-8g", 3)).ok().out
    assert text.count("Warnings:") == 1 and text.index("Warnings:") > text.index("\nrole head: ")
    lines = text[text.index("Warnings:"):].splitlines()[1:]
    assert [line for line in lines if "PROFILE_NOT_NAMED" in line] == [
        "  PROFILE_NOT_NAMED, roles train, serve: not mounted into the pods: /usr/local/nvidia, /usr/local/gib: set nccl: {profile: gke-a4}, "
        "or have them in the image"]
    unknown, = (line for line in lines if "IBDEV_UNKNOWN" in line)
    assert unknown.startswith("  IBDEV_UNKNOWN, roles train (workers 0-1), serve (worker 0): "), unknown


def test_no_room_names_the_role(drarun, machine, job):
    spec = job(role("train", workers=2, devices=DEVICES), role("serve", devices={"gpus": {"count": 1, "class": "gpu.nvidia.com"}}))
    result = drarun("plan", spec, *machine("a4-highgpu-8g", 2))
    assert result.rc == 75 and re.search(r"role serve: 1 worker.*No room: worker 0 of 1 has no node", result.out, re.S), result


def test_render_of_each_role(drarun, job):
    spec = job(role("head", image="cpu", nodeSelector={"pool": "cpu"}), role("train", workers=2, devices=DEVICES), success="train")
    listed = json.loads(drarun("render", spec, "--format", "json", "--pod-groups", "v1alpha2").ok().out)["items"]
    pods = [each for each in listed if each["kind"] == "Pod"]
    assert [pod["metadata"]["name"] for pod in pods] == ["job-w-0", "job-w-1", "job-w-2"]
    assert [pod["spec"]["containers"][0]["image"] for pod in pods] == ["cpu", "i", "i"]
    assert pods[0]["spec"]["nodeSelector"] == {"pool": "cpu"} and "nodeSelector" not in pods[1]["spec"]
    assert [each["metadata"]["name"] for each in listed if each["kind"] == "ResourceClaim"] == ["job-w-1", "job-w-2"]
    assert "resourceClaims" not in pods[0]["spec"] and "resourceClaims" in pods[2]["spec"]
    group, = (each for each in listed if each["kind"] == "PodGroup")
    assert "3" in json.dumps(group["spec"]["schedulingPolicy"])


@pytest.mark.gate
@pytest.mark.parametrize("words,rc", [
    (["render", "--as", "raycluster"], 65), (["render", "--claims", "template"], 65),
    (["plan", "--workers", "2"], 64),
])
def test_what_several_roles_cannot_yet(drarun, job, words, rc):
    result = drarun(*words, job(role("a"), role("b")))
    assert result.rc == rc and ("roles" in result.err), result


@pytest.mark.gate
@pytest.mark.parametrize("words,rc,said", [
    (["--role", "work"], 64, "--role work: no such role; job has head, train, serve"),
    (["--gpus", "4"], 64, "--gpus: the job has several roles (train, serve): add --role NAME"),
    (["--workers", "2"], 64, "--workers: the job has several roles"),
    ([], 65, "spec.roles: NCCL measures the GPUs of train, and serve has none: say --role NAME (train, serve), or --backend mpi"),
])
def test_roles_that_bench_cannot_measure_together(drarun, job, words, rc, said):
    spec = job(role("head"), role("train", devices=DEVICES), role("serve", devices={"nics": {"count": 1, "class": "dranet"}}))
    result = drarun("bench", "all_reduce", *words, "--job", spec)
    assert result.rc == rc and said in result.err, result


@pytest.mark.parametrize("words,rc,said", [
    (["--role", "work"], 64, "--role work: no such role; job has head, train, serve"),
    (["--workers", "2"], 64, "--workers: the job has several roles (train, serve): add --role NAME"),
])
def test_roles_that_bench_fabric_does_not_check(drarun, job, words, rc, said):
    spec = job(role("head"), role("train", devices=DEVICES), role("serve", devices=DEVICES))
    result = drarun("bench", "fabric", "--reach", *words, "--job", spec)
    assert result.rc == rc and said in result.err, result


def test_role_without_a_job(drarun):
    result = drarun("bench", "fabric", "--role", "a", "--agents", "h:1", "--key-file", "k")
    assert result.rc == 64 and "--role, --workers, --name, --image and the cluster's options are for --job" in result.err, result
    result = drarun("bench", "all_reduce", "--role", "a")
    assert result.rc == 64 and "--role a is of a job: add --job FILE" in result.err, result


@pytest.mark.parametrize("roles,said", [
    # the finding is where the role, or the top, has it
    ([role("a"), role("b", devices={"gpus": {"count": 33, "class": "gpu.nvidia.com"}})],
     r":\d+:\d+: spec.roles\[1\].devices.gpus.count: 33 devices; a claim holds 32"),
    ([role("a"), role("b", template={"spec": {"restartPolicy": "Always"}})],
     r":\d+:\d+: spec.roles\[1\].template.spec.restartPolicy: expected Never"),
    ([role("a"), role("b", labels={"drarun.dev/x": "y"})], r"spec.roles\[1\].labels\[.drarun.dev/x.\]: keys of drarun.dev"),
])
def test_findings_are_in_the_role(drarun, job, roles, said):
    result = drarun("validate", job(*roles))
    assert result.rc == 65 and re.search(said, result.out), result


def test_summary(drarun, job):
    path = job(role("head"), role("train", workers=2, devices=DEVICES))
    assert drarun("validate", path).ok().out == f"{path}: ok (job job, 3 workers, 1 of role head, 2 of role train, 8 GPUs each, 8 NICs each)\n"
