# SPDX-License-Identifier: Apache-2.0
"""What docs/stable.md promises between versions, with the programs of two: this tree's and those of tests/base-release. Launchers with
agents, documents of one for the other, programs and the Python package over the other's library."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml

from support import python_package
from support.agents import Agents
from support.build import BUILD, SOURCE, patience
from support.run import Runner, output_of
from support.skew import SIDES, TREE, base, differences, pairs, sides  # noqa: F401

pytestmark = pytest.mark.plain("the other side is a plain build")

REMOTE, LOCAL = pairs("launcher", "agents"), pairs("launcher", "agent")
JOB, SLICES = "jobs/half-nodes-aligned.yaml", "clusters/a4-two-nodes.json"
HEAVY = 3_000_000  # bytes of output of a rank: three times what an agent may have under way


@pytest.fixture
def runner():
    """runner(side, name): runs that program of a side as the fixture drarun does its own."""
    made = []

    def of(side, name="drarun"):
        made.append(Runner(side.program(name)))
        return made[-1]
    yield of
    for each in made:
        each.close()


@pytest.fixture
def remote(sides, runner, tmp_path):
    """A launcher of one side, .drarun, with two agents of the other, .options; .ended() looks at them."""
    class Remote:
        drarun = runner(sides[0])
        agents = Agents(drarun, tmp_path / "key", [("127.0.0.1", ())] * 2, program=sides[1].program("drarun-worker"))
        options = agents.options

        def ended(self):
            assert [(agent.rc, agent.err) for agent in self.agents.finish()] == [(0, "")] * 2
    return Remote()


@pytest.fixture
def local(sides, runner):
    """local(words...): a job on this machine, its launcher of one side and its agents of the other."""
    drarun = runner(sides[0])

    def run(*words, env=None, start=False, **how):
        env = {"DRARUN_WORKER_PROGRAM": sides[1].program("drarun-worker"), **(env or {})}
        return (drarun.start if start else drarun)(*words, env=env, **how)
    return run


# ---- a launcher and agents, over TLS ----

@REMOTE
def test_job_that_passes(remote):
    result = remote.drarun(*remote.options, "-n", 4, "-x", "ADDED=x y", "sh", "-c", "echo $RANK/$WORLD_SIZE $DRARUN_WORKER $ADDED; echo bad >&2").ok()
    assert sorted(result.out.splitlines()) == [f"{rank}/4 {rank // 2} x y" for rank in range(4)]
    assert result.err == "bad\n" * 4
    remote.ended()


@REMOTE
@pytest.mark.parametrize("name", ["openmpi4", "openmpi5", "mpich4", "mpich5"])
def test_mpi(remote, mpi_named, name):
    """Over PMIx and over PMI-1."""
    mpi = mpi_named(name)
    result = remote.drarun(*remote.options, "-n", 4, mpi.compile("mpi_check.c"), "all", env=mpi.env, timeout=120).ok()
    assert "ok: 4 ranks, " in result.out and mpi.version in result.out and result.err == "", result
    remote.ended()


@REMOTE
@pytest.mark.parametrize("case", ["modex", "dmodex", "publish", "group", "event", "spawn"])
def test_pmix(remote, case):
    """What goes over the launcher, or along the tree of agents."""
    result = remote.drarun(*remote.options, "-n", 4, BUILD / "tests/programs/pmix_client_inside", case, timeout=60).ok()
    assert result.out.startswith(f"{case} ok on 4 ranks"), result
    remote.ended()


@REMOTE
@pytest.mark.parametrize("end,status,says", [
    ("exit 3", 3, "exited with status 3"), ("kill -SEGV $$", 139, "was killed by signal 11 (SIGSEGV)")], ids=["status", "signal"])
def test_rank_that_fails(remote, tmp_path, end, status, says):
    report = tmp_path / "report.json"
    script = f"[ $RANK = 3 ] || exec sleep 1000; echo cannot go on >&2; {end}"
    result = remote.drarun(*remote.options, "--report", report, "-n", 4, "sh", "-c", script)
    assert result.rc == status and "rank 3 on worker 1 " in result.err and says in result.err, result
    assert "    cannot go on\n" in result.err, result
    told = json.loads(report.read_text())
    assert (told["status"], told["cause"]["rank"], told["cause"]["worker"], told["ended"]) == (status, 3, 1, 4), told
    remote.ended()


@REMOTE
def test_output_whole(remote):
    """More than an agent may have under way: nothing is lost, and each rank's bytes keep their order."""
    script = f"seq -w 1 {HEAVY // 8}; seq -w 1 {HEAVY // 8} >&2"
    result = remote.drarun(*remote.options, "-n", 4, "-l", "sh", "-c", script, timeout=200).ok()
    wanted = [str(i).zfill(len(str(HEAVY // 8))) for i in range(1, HEAVY // 8 + 1)]
    for text in (result.out, result.err):
        lines = {str(rank): [] for rank in range(4)}
        for line in text.splitlines():
            rank, line = re.match(r"\[(\d)(?::err)?\] (.*)", line).groups()
            lines[rank].append(line)
        assert all(found == wanted for found in lines.values()), {rank: len(found) for rank, found in lines.items()}
    remote.ended()


@REMOTE
def test_input(remote):
    data = "0123456789abcde\n" * 100_000
    result = remote.drarun(*remote.options, "-n", 4, "--stdin", "all", "sh", "-c", "cksum", input=data).ok()
    assert result.out == output_of("cksum", input=data) * 4
    remote.ended()


@REMOTE
def test_cancelled(remote):
    """By Ctrl-C: the ranks have their grace, and what they write in it arrives."""
    job = remote.drarun.start(*remote.options, "-n", 4, "sh", "-c", "trap 'echo ending; exit 0' INT; echo up; while :; do sleep 0.1; done")
    assert [job.process.stdout.readline() for _ in range(4)] == ["up\n"] * 4
    job.signal(signal.SIGINT)
    result = job.finish()
    assert result.rc == 130 and result.out == "ending\n" * 4, result
    remote.ended()


@REMOTE
def test_time_limit(remote):
    result = remote.drarun(*remote.options, "--timeout", "0.5", "-n", 4, "sleep", "1000")
    assert result.rc == 124 and "--timeout" in result.err, result
    remote.ended()


@REMOTE
def test_agent_that_is_lost(remote):
    """It is named, and the other one ends."""
    job = remote.drarun.start(*remote.options, "-n", 4, "sh", "-c", "echo up; exec sleep 1000")
    assert [job.process.stdout.readline() for _ in range(4)] == ["up\n"] * 4
    remote.agents.jobs[1].process.kill()
    result = job.finish(clean=False)
    assert result.rc != 0 and "worker 1" in result.err, result
    assert remote.agents.jobs[0].finish().rc == 0
    remote.agents.jobs[1].close()


# ---- agents of a release that is still to come ----

@pytest.fixture
def of_base(runner):
    return runner(base())


def test_release_of_the_same_protocol_is_served(of_base, tmp_path):
    """tests/programs: the tree's agent, which says that it is of drarun 99.0."""
    later = BUILD / "tests/programs/drarun_worker_next"
    agents = Agents(of_base, tmp_path / "key", [("127.0.0.1", ())] * 2, program=later)
    result = of_base(*agents.options, "-n", 4, "sh", "-c", "echo $RANK").ok()
    assert sorted(result.out.split()) == list("0123") and result.err == ""
    assert [(agent.rc, agent.err) for agent in agents.finish()] == [(0, "")] * 2
    assert of_base("-n", 2, "echo", "up", env={"DRARUN_WORKER_PROGRAM": later}).ok().out == "up\nup\n"


def test_another_protocol_is_refused(runner):
    """By a sentence that names both, and at once. The base and the tree speak the same one, 1: so all 0.x releases do."""
    env = {"DRARUN_WORKER_PROGRAM": BUILD / "tests/fake_agent", "FAKE_AGENT": "major"}
    for side in SIDES.values():
        result = runner(side())("-n", 2, "play", "line:a", env=env)
        said = re.search(r"speaks protocol version 99\.0 \(drarun .*\), this side (\d+)\.\d+ \(drarun (\d+)\.[\d.]+\): use the same release", result.err)
        assert result.rc == 70 and said, result
        assert said.groups() == ("1", "0"), "docs/stable.md promises the major version for 0.x"


@pytest.mark.parametrize("side", ["base", "tree"])
def test_what_is_not_known_is_refused_by_name(runner, tmp_path, side):
    drarun = runner(SIDES[side]())
    result = drarun("-n", 2, "--later-option", "true")
    assert result.rc == 64 and "--later-option" in result.err, result
    spec = tmp_path / "job.yaml"
    spec.write_text("workers: 1\nimage: i\ncommand: [true]\nlaterKey: 3\n")
    for words in (["validate", spec], ["run", "--local", spec], ["plan", spec]):
        result = drarun(*words)
        assert result.rc == 65 and "laterKey" in result.out + result.err and ":4:" in result.out + result.err, result
    spec.write_text("kind: DraJob\napiVersion: drarun.dev/v1beta1\nmetadata: {name: later}\nspec: {workers: 1, image: i, command: [true]}\n")
    for words in (["validate", spec], ["run", "--local", spec], ["plan", spec], ["submit", spec]):
        result = drarun(*words)
        assert result.rc == 65 and f'{spec}:2:13: apiVersion: expected drarun.dev/v1alpha1, got "drarun.dev/v1beta1"' in result.out + result.err, result


# ---- a launcher that starts its agents ----

@LOCAL
def test_local_job(local, mpi_named):
    result = local("--workers", 2, "-n", 4, "sh", "-c", "echo $RANK $DRARUN_WORKER; exit $((RANK * 7))")
    assert result.rc in (7, 14, 21) and "exited with status" in result.err, result
    for name in ("openmpi4", "mpich4"):
        mpi = mpi_named(name)
        result = local("--workers", 2, "-n", 4, mpi.compile("mpi_check.c"), "all", env=mpi.env, timeout=120).ok()
        assert "ok: 4 ranks, " in result.out and result.err == "", result


@LOCAL
def test_job_of_a_spec(local, tmp_path):
    """With its input, and its output in a folder."""
    spec = tmp_path / "job.yaml"
    spec.write_text("workers: 2\nranksPerWorker: 2\nimage: i\nenv: {A: b c}\ncommand: [sh, -c, 'echo $RANK $GROUP_RANK $A; cat; echo bad >&2; exit $((RANK == 2 ? 9 : 0))']\n")
    result = local("run", "--local", spec, "--stdin", "all", "--output-dir", tmp_path / "out", input="given\n")
    assert result.rc == 9 and "rank 2 on worker 1" in result.err, result
    found = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
    assert sorted(found) == sorted(f"rank.{rank}.{end}" for rank in range(4) for end in ("out", "err"))
    assert (found["rank.2.out"], found["rank.2.err"]) == ("2 1 b c\ngiven\n", "bad\n")


@LOCAL
def test_references_of_a_spec(local, tmp_path):
    """A side that does not replace them leaves them to the program."""
    spec = tmp_path / "job.yaml"
    spec.write_text("image: i\nenv: {A: b}\ncommand: [echo, $(A), $$(A)]\n")
    assert local("run", "--local", spec).ok().out in ("$(A) $$(A)\n", "b $(A)\n")


@LOCAL
def test_job_with_roles(local, tmp_path):
    spec = tmp_path / "job.yaml"
    show = ["sh", "-c", "echo $DRARUN_ROLE $RANK/$WORLD_SIZE"]
    roles = [{"name": "head", "command": show}, {"name": "train", "workers": 2, "ranksPerWorker": 2, "command": show}]
    spec.write_text(yaml.safe_dump({"image": "i", "world": "own", "roles": roles}))
    result = local("run", "--local", spec).ok()
    assert sorted(result.out.splitlines()) == ["head 0/1", *(f"train {rank}/4" for rank in range(4))]


@LOCAL
def test_local_cancel_and_time_limit(local):
    job = local("--workers", 2, "-n", 2, "sh", "-c", "echo up; exec sleep 1000", start=True)
    assert [job.process.stdout.readline() for _ in range(2)] == ["up\n"] * 2
    job.signal(signal.SIGINT)
    assert job.finish().rc == 130
    assert local("--timeout", "0.5", "-n", 2, "sleep", "1000").rc == 124


@pairs("allocation", "jobs")
def test_allocation(sides, runner):
    """Its folder, its shell's environment and its agents are of one release, drarun -n in it is of the other."""
    script = "for i in 1 2; do $D -n 4 sh -c 'echo $RANK $DRARUN_WORKER'; done; $D -n 2 sh -c 'exit 3'; echo status $?"
    result = runner(sides[0])("alloc", "--workers", 2, "--", "sh", "-c", script, env={"D": sides[1].program()}).ok()
    lines = result.out.splitlines()
    assert sorted(lines[:8]) == sorted(f"{rank} {rank // 2}" for rank in range(4) for _ in range(2)) and lines[8:] == ["status 3"], result


# ---- documents ----

def jobs_of_base():
    """Job specs of the base's examples; of a file with several documents those of ours."""
    folder = base().source / "examples"
    found = [path for path in sorted(folder.glob("**/*.yaml")) if "kind: DraJob" in path.read_text()]
    assert len(found) >= 10, found
    return found


def told(drarun, *words, **how):
    """The JSON that it prints, and its status."""
    result = drarun(*words, **how)
    try:
        return result.rc, json.loads(result.out)
    except json.JSONDecodeError:
        pytest.fail(f"no JSON: {result!r}")


def held(both, *words, values=True, **how):
    """The tree tells all that the base tells, of the same."""
    (old_status, old), (status, new) = (told(each, *words, **how) for each in both)
    assert status == old_status and not list(differences(old, new, values)), (words, *differences(old, new, values))
    return new


@pytest.fixture
def both(runner):
    return runner(base()), runner(TREE)


def test_job_specs(both):
    """They are found right, and get the same devices, ranks and variables."""
    slices = base().source / "examples" / SLICES
    for path in jobs_of_base():
        held(both, "validate", "-o", "json", path)
        held(both, "plan", "-o", "json", path, "--slices", slices)
        held(both, "render", "-o", "json", "--image", "i", path, values=False)


def test_findings(both, tmp_path):
    """Of specs that are wrong: their codes and places."""
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("workers: two\nimage: 3\ncommands: [true]\ndevices: {gpus: {count: -1}}\n")
    assert held(both, "validate", "-o", "json", wrong)[0]["findings"]


def test_imported_specs(both):
    """What was imported by the base is right to the tree, and is what the tree imports."""
    found = sorted((SOURCE / "tests/data/import").glob("*.yaml"))
    assert len(found) >= 10
    for path in found:
        first, second = (each("import", path) for each in both)
        assert second.rc in (0, first.rc), (first, second)  # what the base refused may be taken now
        if first.rc == 0:
            assert not list(differences(*([*yaml.safe_load_all(each.out)] for each in (first, second)))), (first, second)
            if both[0]("validate", "-", input=first.out).rc == 0:  # an earlier one may have imported what it refuses itself
                both[1]("validate", "-", input=first.out).ok()


def test_plans_are_read(both, tmp_path):
    """bench report takes a plan for what its ranks had."""
    old, new = both
    plan = tmp_path / "plan.json"
    plan.write_text(old("plan", "-o", "json", base().source / "examples" / JOB, "--slices", base().source / "examples" / SLICES).ok().out)
    text = base().source / "docs/bench/nccl-tests.txt"
    page, without = (new("bench", "report", *words, text).ok() for words in (["--plan", plan], []))
    assert page.err == "" and page.out != without.out and page.out.startswith("<!doctype html>"), page.err


@pytest.fixture
def measured(both, tmp_path):
    """(the base's result, the tree's): {format: file}."""
    found = []
    for name, drarun in zip(("base", "tree"), both):
        files = {"-J": tmp_path / f"{name}.json", "--json-lines": tmp_path / f"{name}.jsonl", "--csv": tmp_path / f"{name}.csv"}
        drarun("bench", "--workers", 2, "-n", 2, "all_reduce", "-b", 8, "-e", "4K", "-f", 2,
               *(word for pair in files.items() for word in pair)).ok()
        found.append(files)
    return found


def test_results_of_benchmarks(both, measured):
    old, new = measured
    assert not list(differences(*(json.loads(files["-J"].read_text()) for files in measured), values=False))
    first, second = ([json.loads(line) for line in files["--json-lines"].read_text().splitlines()] for files in measured)
    assert len(first) == len(second) and not list(differences(first, second, values=False))
    heads = [files["--csv"].read_text().splitlines()[0].split(",") for files in measured]
    assert set(heads[0]) <= set(heads[1]), heads
    for kind in ("-J", "--json-lines"):
        compared, = json.loads(both[1]("bench", "compare", "-o", "json", old[kind], new[kind]).ok().out)
        assert {row["size"] for row in compared["measurements"]} == {8 << k for k in range(10)}, compared
        assert (compared["only_first"], compared["only_second"]) == (0, 0), compared
        held(both, "bench", "judge", "-o", "json", old[kind])
        held(both, "bench", "compare", "-o", "json", old[kind], old[kind])
        assert "<svg" in both[1]("bench", "report", old[kind], new[kind]).ok().out


def test_verdicts(both):
    held(both, "bench", "judge", "-o", "json", base().source / "docs/bench/nccl-tests.txt")


def test_report_of_a_job(both, tmp_path):
    """Of one that fails and of one that passes."""
    for script in ("exit $((RANK * 7))", "true"):
        found = []
        for drarun in both:
            drarun("-n", 2, "--report", tmp_path / "report.json", "sh", "-c", script)
            found.append(json.loads((tmp_path / "report.json").read_text()))
        assert not list(differences(*found, values=False)), found
        old, new = ({key: found[key] for key in ("status", "ranks", "ended", "workers", "programs")} for found in found)
        assert old == new
        assert [(each["cause"] or {}).get("kind") for each in found] == [None if script == "true" else "exit"] * 2


def test_this_machine(both):
    """What doctor and topo say of it, and what the node plugin would publish."""
    (_, old), (_, new) = (told(each, "topo", "-o", "json") for each in both)
    for each in old, new:  # other tests create and delete virtual interfaces meanwhile
        each["netdevs"] = [netdev for netdev in each["netdevs"] if netdev["pciBusID"]]
    unknown = [name for name, value in old["limits"].items() if value is None]  # as those of control groups of version 1 once were
    new["limits"] |= dict.fromkeys(unknown)
    assert not list(differences(old, new))
    held(both, "doctor", "--node", "-o", "json", values=False)


def test_schemas():
    """Of specs and of status documents: keys stay, with their types and values."""
    for name in ("drajob-v1alpha1.json", "drajob-status-v1alpha1.json"):
        old, new = (json.loads((side.source / "docs/schema" / name).read_text()) for side in (base(), TREE))
        assert not [each for each in differences(keys(old), keys(new))]


def keys(schema):
    """A schema as {key: its type, its own keys and values}."""
    made = {"type": schema.get("type"), "values": sorted(map(str, schema.get("enum", ())))}
    made["values"] = {value: True for value in made["values"]}  # more may come
    for name in ("properties", "definitions", "$defs"):
        made[name] = {key: keys(value) for key, value in schema.get(name, {}).items() if isinstance(value, dict)}
    if isinstance(schema.get("items"), dict):
        made["items"] = keys(schema["items"])
    return made


# ---- the command line ----

def text_of(program, *words):
    run = subprocess.run([program, *words], capture_output=True, text=True, timeout=patience())
    assert run.returncode == 0 and run.stdout, (program, words, run)
    return run.stdout


def options_in(help_text):
    """{"--name" or "-n": whether it takes a value}, as the help lists them."""
    found = {}
    for letter, name, value in re.findall(r"^ {2,6}(?:(-\w), )?(--[\w-]+)( \S+)?(?: |$)", help_text, re.M):
        for each in filter(None, (letter, name)):
            found[each] = bool(value)
    return found


def verbs_of(side):
    """All that `drarun help` and the help of verbs with parts name."""
    words = re.search(r'case " ([a-z ]+) " in \*" \$word "\*\)', text_of(side.program(), "completion", "bash"))[1].split()
    parts = re.findall(r"^  drarun (bench [a-z]+)", text_of(side.program(), "help", "bench"), re.M)
    return [*(word for word in words if word not in ("help", "version", "completion")), *parts]


def command_lines(side):
    """{(program, verb...): its options}."""
    found = {("drarun", *verb.split()): options_in(text_of(side.program(), "help", *verb.split())) for verb in verbs_of(side)}
    for name in ("drarun-worker", "drarun-bench"):
        found[name,] = options_in(text_of(side.program(name), "--help"))
    for verb in re.findall(r"^  ([a-z]+) {2,}\S", text_of(side.program("drarun-plugin"), "--help").partition("\n\n")[2], re.M):
        found["drarun-plugin", verb] = options_in(text_of(side.program("drarun-plugin"), verb, "--help"))
    return found


def spellings(side):
    """{verb: {option: the values that it lists, or None for one that takes none}}, with the aliases that only the completion knows."""
    text = text_of(side.program(), "completion", "bash")
    found = {verb: dict.fromkeys(words.split()) for verb, words in re.findall(r'^      ([a-z]+)\) _drarun_words "(--[^"]*)" ;;', text, re.M)}
    for names, action in re.findall(r"^    ([a-z]+:-\S+)\) (.*); return ;;", text, re.M):
        values = re.match(r'_drarun_words "([\w .-]+)"$', action)
        for name in names.split("|"):
            verb, option = name.split(":")
            found[verb][option] = set(values[1].split()) if values else set()
    return found


def lost(old, new):
    """What the command lines of old have and those of new lack."""
    for command, options in old.items():
        for option, value in options.items():
            if new.get(command, {}).get(option) != value:
                yield " ".join((*command, option, *["VALUE"] * value))


def test_verbs_and_options_stay():
    """As the help of the base shows them; an option takes a value if it took one. A renamed one is still spelt as before."""
    old, new = command_lines(base()), command_lines(TREE)
    assert len(old) > 28 and sum(map(len, old.values())) > 300, old
    taken = {verb: {option: values is not None for option, values in options.items()} for verb, options in spellings(TREE).items()}
    for command, options in new.items():
        for option, value in taken.get(command[1], {}).items() if command[0] == "drarun" and len(command) == 2 else ():
            options.setdefault(option, value)
    assert not [each for each in lost(old, new) if not is_flag_still(*each.split())]


def is_flag_still(program, *words):
    """An alias that no help lists: --help behind it is not reached where it is unknown."""
    run = subprocess.run([TREE.program(program), *words, "--help"], capture_output=True, text=True, timeout=patience())
    return words[-1].startswith("-") and run.returncode == 0 and run.stdout.startswith("Usage: ")


def test_options_that_are_gone_are_seen():
    """By the two above: they would see a verb, an option, a letter, a value."""
    old = {("drarun", "run"): {"--ranks": True, "-n": True, "--local": False}, ("drarun", "plan"): {"--live": False}}
    new = {("drarun", "run"): {"--ranks": False, "-n": True}}
    assert [*lost(old, old)] == []
    assert [*lost(old, new)] == ["drarun run --ranks VALUE", "drarun run --local", "drarun plan --live"]
    assert options_in("Usage: x\n\nThe ranks:\n  -n, --ranks N   number\n  --local         here\n      --version  it\n  --align HOW\n      text") == {
        "-n": True, "--ranks": True, "--local": False, "--version": False, "--align": True}


def test_values_and_aliases_stay():
    """Those that the completion of the base offers."""
    old, new = spellings(base()), spellings(TREE)
    assert {"text", "json"} <= old["run"]["--output"] and "--npernode" in old["join"], old
    gone = [(verb, option) for verb in old for option, values in old[verb].items()
            if option not in new.get(verb, {}) or (values or set()) - (new[verb][option] or set())]
    assert not gone


def messages_of(side, folder):
    """{section: {code, in all its forms: the cell beside it}} of the page of messages."""
    page = folder / f"{side}.md"
    subprocess.run([side.program("message-page"), page], check=True, timeout=patience())
    return {part.partition("\n")[0]: dict(re.findall(r"^\| (`[^|]+`) \| ([^|]*) \|", part, re.M)) for part in page.read_text().split("\n## ")[1:]}


def test_exit_statuses_and_codes_stay(tmp_path):
    """A status keeps its number and the word for it in reports; a code stays where it was explained."""
    old, new = (messages_of(side, tmp_path) for side in (base(), TREE))
    assert old["Exit statuses"]["`75`"] == "capacity" and sum(map(len, old.values())) > 100, old
    assert all(old.values()) and old["Exit statuses"].items() <= new["Exit statuses"].items()
    gone = [(section, code) for section, codes in old.items() for code in codes if code not in new.get(section, {})]
    assert not gone


# ---- versions of the API ----

def test_versions_of_drajobs():
    """What the base serves is served; objects are stored as the base can read them; None converts, so all versions have the same fields."""
    old, new = (yaml.safe_load((side.source / "deploy/crd.yaml").read_text())["spec"] for side in (base(), TREE))
    served = [{each["name"]: each for each in spec["versions"] if each["served"]} for spec in (old, new)]
    assert set(served[0]) <= set(served[1])
    stored, = (each["name"] for each in new["versions"] if each["storage"])
    assert stored in served[0]
    assert new.get("conversion", {}).get("strategy", "None") == "None"
    schemas = [each["schema"] for each in served[1].values()]
    assert all(schema == schemas[0] for schema in schemas)


# ---- programs of others, over the library ----

@pytest.fixture(scope="module")
def embedders(tmp_path_factory):
    """examples/embed-c of the base, compiled with its headers and linked with its library."""
    old, folder = base(), tmp_path_factory.mktemp("embed")
    for name in ("embed", "ranks"):
        output_of("cc", "-std=gnu11", "-Werror", f"-I{old.source / 'include'}", "-o", folder / name, old.source / f"examples/embed-c/{name}.c",
                  f"-L{old.library.parent}", "-ldrarun")
    return folder


def embedder(folder, name, side, *words, program=None):
    """Runs one over a side's library."""
    env = {**os.environ, "LD_LIBRARY_PATH": str(side.library.parent)}
    if program:
        env["PATH"] = f"{program.parent}:{env['PATH']}"
    return subprocess.run([folder / name, *map(str, words)], capture_output=True, text=True, env=env, timeout=patience())


@pytest.mark.parametrize("side", ["base", "tree"])
def test_program_built_with_older_headers_runs_ranks(side, embedders):
    """Over the tree's library, which starts a drarun of either side."""
    program = SIDES[side]().program()
    run = embedder(embedders, "ranks", TREE, 2, "sh", "-c", "echo $RANK; exit $RANK", program=program)
    assert (run.returncode, sorted(run.stdout.splitlines()), run.stderr) == (1, ["0: 0", "1: 1"], ""), run
    run = embedder(embedders, "ranks", TREE, 2, "/nowhere/at/all", program=program)
    assert run.returncode == 127 and "/nowhere/at/all" in run.stderr, run


def test_older_library_with_a_newer_program(embedders):
    run = embedder(embedders, "ranks", base(), 2, "sh", "-c", "echo $RANK; exit $RANK", program=TREE.program())
    assert (run.returncode, sorted(run.stdout.splitlines()), run.stderr) == (1, ["0: 0", "1: 1"], ""), run


def test_program_built_with_older_headers_plans(embedders):
    """Options of an earlier size; the same answer."""
    words = base().source / "examples" / JOB, base().source / "examples" / SLICES
    old, new = (embedder(embedders, "embed", side, *words) for side in (base(), TREE))
    assert old.returncode == new.returncode == 0, (old, new)
    assert ": job all-gather-4x4, 4 workers, 4 GPUs each, 4 NICs each\n" in new.stdout
    variables = [sorted(re.findall(r"\bNCCL_\w+", run.stdout)) for run in (old, new)]
    assert variables[0] and set(variables[0]) <= set(variables[1])


def exported(library):
    return {line.split()[2] for line in output_of("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines() if "drarun_" in line}


def test_functions_of_the_library_stay():
    assert exported(base().library) <= exported(TREE.library)


# ---- the Python package ----

USES = """
import json, sys, drarun
seen = []
assert drarun.run_local(["sh", "-c", "echo $RANK; exit $RANK"], ranks=2, program=sys.argv[1], output=seen.append, log=None) == 1
assert sorted(each.text for each in seen) == ["0\\n", "1\\n"], seen
job = drarun.Job(sys.argv[2])
plan = drarun.plan(job, slices=sys.argv[3])
assert plan.ok and job.document["spec"]["workers"] == 4
try:
    drarun.Job({"spec": {"workers": "two", "image": "i", "command": ["true"]}})
    assert False, "it is right"
except drarun.SpecError as error:
    assert "workers" in str(error), error
print(json.dumps(plan.document()))
"""


@pytest.fixture
def package(tmp_path):
    """package(side, library, program): runs USES with that side's package over that library, which starts the program."""
    pytest.importorskip("cffi", reason="no python3-cffi: scripts/setup --test installs it")

    def run(side, library, program):
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        env = {**os.environ, **python_package.in_folder(folder, side.source, library)}
        words = [program, base().source / "examples" / JOB, base().source / "examples" / SLICES]
        return subprocess.run([sys.executable, "-c", USES, *map(str, words)], env=env, capture_output=True, text=True, timeout=patience())
    return run


def test_package_over_a_newer_library(package):
    over_its_own = package(base(), base().library, base().program())
    for program in (base().program(), TREE.program()):
        run = package(base(), TREE.library, program)
        assert (run.returncode, run.stderr) == (0, ""), run
        assert not list(differences(json.loads(over_its_own.stdout), json.loads(run.stdout)))


def test_package_over_an_older_library(package):
    """It says what the library lacks, or does all that the older one did."""
    run = package(TREE, base().library, base().program())
    declared = set(re.findall(r"\b(drarun_\w+)\(", "".join(path.read_text() for path in (TREE.source / "include/drarun").glob("*.h"))))
    there = {name.partition("@")[0] for name in exported(base().library)}
    lacking = {name.partition("@")[0] for name in exported(TREE.library)} & declared - there
    if lacking:
        assert run.returncode == 1 and "too old for this package: it lacks" in run.stderr, run
    else:
        assert (run.returncode, run.stderr) == (0, ""), run
