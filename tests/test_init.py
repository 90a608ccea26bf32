# SPDX-License-Identifier: Apache-2.0
"""drarun init: specs to begin with, which are right as they are."""
import json
import re

import pytest
import yaml

from support.build import SOURCE

KINDS = ["mpi", "torchrun", "nccl-tests", "ray", "cpu"]
PROFILES = {each["name"]: each for each in json.loads((SOURCE / "jobs/profiles/profiles.json").read_text())["profiles"]}
# the jobs that docs/clusters.md has for these machines
DOCUMENTED = {each["nccl"]["profile"]: each for each in map(yaml.safe_load, re.findall(
    r"(?ms)^```yaml\n(.*?)^```", (SOURCE / "docs/clusters.md").read_text())) if "nccl" in each}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds(drarun, tmp_path, kind):
    """Each is a job, also with all that stands in its comments."""
    file = tmp_path / "job.yaml"
    text = drarun("init", kind).ok().out
    whole = re.sub(r"(?m)^( +)# (?=(- )?[a-zA-Z]+: [^a])", r"\1", text)
    assert whole.count("#") < text.count("#")
    for each in (text, whole):
        file.write_text(each)
        drarun("validate", file).ok()
        assert ("\nkind: Pod\n" in drarun("render", file).ok().out) == (each is text)  # with a queue Jobs make them
        drarun("plan", file).ok()
    schema, = re.findall(r"(?m)^# yaml-language-server: \$schema=(\S+)$", text)
    assert (SOURCE / schema.removeprefix("https://raw.githubusercontent.com/drarun/drarun/main/")).is_file()
    spec = yaml.safe_load(whole)["spec"]
    assert kind != "nccl-tests" or "MPI=1" in text  # else each of its processes measures alone
    assert {"env", "tolerations", "queue", "timeouts"} <= set(spec) and ("nics" in spec.get("devices", {})) == (kind != "cpu")


@pytest.mark.parametrize("machine", PROFILES)
def test_machines(drarun, tmp_path, machine):
    """The devices of a whole node, which the machine has; for a machine of several sizes, eight GPUs."""
    text = drarun("init", "--machine", machine, "mpi").ok().out
    spec, profile = yaml.safe_load(text)["spec"], PROFILES[machine]
    known, data = profile.get("machine", {}), profile.get("data", "rdma")
    gpus, nics = spec["devices"]["gpus"], spec["devices"].get("nics", {})
    assert spec["nccl"] == {"profile": machine} and gpus["count"] == known.get("gpus", 8) and nics.get("count") == known.get("nics")
    assert gpus["class"] == known.get("gpuClass", "gpu.nvidia.com")
    assert ("nics:" in text) == ("kubectl get deviceclasses" in text) == (data != "none") and (".rdma == true" in text) == (data == "rdma")
    assert spec.get("network") == ("any" if data == "netdev" else None)  # else a job without RDMA NICs is refused
    same = DOCUMENTED.get(machine, {}).get("devices", {}).get("gpus", gpus)
    assert {**gpus, "count": 0} == {**same, "count": 0}
    (tmp_path / "job.yaml").write_text(text)
    drarun("validate", tmp_path / "job.yaml").ok()


@pytest.mark.parametrize("words,said", [
    ([], "expected one kind of job"), (["touchrun"], "did you mean torchrun?"), (["mpi", "cpu"], "expected one kind of job"),
    (["mpi", "--machine", "a4"], "expected one of gke-a4"), (["cpu", "--machine", "gke-a4"], "leave --machine out"),
])
def test_usage(drarun, words, said):
    run = drarun("init", *words)
    assert run.rc == 64 and said in run.err and run.out == "", run
