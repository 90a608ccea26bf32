# SPDX-License-Identifier: Apache-2.0
"""drarun import on manifests in the forms that clouds and operators publish: docs/measured/import.md is
written by DRARUN_GOLDEN=write python3 -m pytest test_import_corpus.py, and must be what a run gives."""
import json
import os
import re

import pytest
import yaml

from support.build import SOURCE
from support.imports import complete
from support.short_form import KEYS, in_template

FILES = sorted([*(SOURCE / "tests/data/import").glob("*.yaml"), *(SOURCE / "tests/data/seeds").glob("*.yaml")])
PAGE = SOURCE / "docs/measured/import.md"
SLICES = SOURCE / "examples/clusters/a4-two-nodes.json"
REFUSED = {"jobset-two-kinds", "ray-all-nic", "fabric-claim", "trainjob-alone"}
SERVER = "\n## The API server's dry run\n"  # test_dry_run.py writes it
HEAD = """# Imported manifests

`drarun import` on the manifests of `tests/data/import` and `tests/data/seeds`, each written in a form that clouds and operators publish.
"Job" says that `drarun validate` and `drarun render` take the result, those without a program once one is given. The environment by hand is that of the manifest's containers and of
`mpirun -x`; beside it stands what `drarun plan` derives for the job on the two a4-highgpu-8g nodes of `examples/clusters`, with the reason
that it gives. No GPU took part. Written by `tests/test_import_corpus.py`, and the last section, for which a real API server answers, by `tests/test_dry_run.py`.

Read as published, on 2026-11-29: the files that hold a workload, one at a time and unchanged. "Taken" says that import and `drarun validate` end with 0,
"without a program" that they do once the program is given in place of `PROGRAM`, since the pods sleep or their script is in another file.

| repository | manifests | taken | without a program | not taken |
|---|---|---|---|---|
| GoogleCloudPlatform/container-engine-accelerators, gpudirect-* | 18 | 1 | 16 | tcpxo/nccl-test: one Pod of two has a mount more |
| oracle-quickstart/oci-hpc-oke, nccl-tests and rccl-tests | 24 | 24 | 0 | |
| coreweave/nccl-tests, mpi-operator | 18 | 18 | 0 | |
| kubeflow/mpi-operator, examples | 5 | 5 | 0 | |
| kubernetes-sigs/dranet, examples and tests | 27 | 10 | 15 | two tests of routing tables |
| kubernetes-sigs/jobset, site/static/examples | 31 | 6 | 5 | 18 with several ReplicatedJobs, two whose image is to be filled in |
| NVIDIA/k8s-dra-driver-gpu, demo/specs/imex | 6 | 6 | 0 | |
| Azure/aks-rdma-infiniband, tests | 5 | 1 | 0 | four are templates, and no YAML yet |

| manifest | kinds | result | remarks |
|---|---|---|---|
"""


def by_hand(file):
    """Variables of NCCL, UCX and Gloo: of env lists, and behind mpirun -x."""
    found = {}

    def walk(node):
        if isinstance(node, dict):
            if {"name", "value"} <= node.keys():
                found[node["name"]] = str(node["value"])
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for at, value in enumerate(node):
                if at and node[at - 1] == "-x" and "=" in str(value):
                    found.update([str(value).split("=", 1)])
                walk(value)
        elif isinstance(node, str):
            found.update(re.findall(r"-x\s+([A-Z_0-9]+)=(\S+)", node))
    for each in yaml.load_all(file.read_text(), yaml.BaseLoader):
        walk(each)
    return {k: v for k, v in found.items() if k.startswith(("NCCL_", "UCX_", "GLOO_"))}


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def compare(drarun, job, file):
    """A line for each variable by hand: the value on both sides, and why."""
    def planned():
        return json.loads(drarun("plan", job, "--slices", SLICES, "--explain", "-o", "json").out)
    shown, head = planned(), []
    if shown["claim"] and "placement.spread: none packs them" in (shown["prediction"]["shortage"] or ""):
        documents = list(yaml.safe_load_all(job.read_text()))
        documents[0]["spec"]["placement"] = {"spread": "none"}
        job.write_text(yaml.safe_dump_all(documents))
        shown, head = planned(), ["With `placement: {spread: none}`: two nodes are too few for one worker each.", ""]
    if not shown["claim"]:
        return ["No claim, since all devices are the device plugin's: `plan` has nothing to derive an environment from."]
    plan = shown["plan"]
    env = {**plan["env"], **plan["workers"][0]["env"]}
    lines = ["| variable | by hand | drarun | reason |", "|---|---|---|---|"]
    for name, value in sorted(by_hand(file).items()):
        new = env.get(name)
        why = ("the same" if new == value else plan["explain"][name]["reason"] if new is not None else
               "left out by import, and what this worker holds needs no such variable")
        lines.append(f"| {name} | {cell(value)} | {cell(new if new is not None else 'not set')} | {cell(why)} |")
    return head + (lines if len(lines) > 2 else ["No such variable by hand."])


def report(drarun, tmp_path):
    rows, parts = [], []
    for file in FILES:
        kinds = " ".join(o["kind"] for o in yaml.load_all(file.read_text(), yaml.BaseLoader) if o)
        run = drarun("import", file)
        assert (not run.out) == (file.stem in REFUSED), repr(run)
        remarks = run.err.replace(f"{file.parent}/", "").splitlines()
        if not run.out:
            rows.append(f"| {file.stem} | {kinds} | refused: {cell(remarks[-1].split(': ', 1)[1])} | {len(remarks) - 1} |")
            continue
        job = tmp_path / file.name
        job.write_text(complete(run))
        remarks = remarks[:-2] if run.rc else remarks  # behind them stands what is wrong with the job
        drarun("validate", job).ok()
        drarun("render", job).ok()
        workers = next(yaml.safe_load_all(run.out))["spec"].get("workers", 1)
        program = ", without a program" if run.rc else ""
        rows.append(f"| {file.stem} | {kinds} | job of {workers} worker{'s' * (workers > 1)}{program} | {len(remarks)} |")
        parts += ["", f"## {file.stem}", *compare(drarun, job, file)]
    text = PAGE.read_text()
    return HEAD + "\n".join(rows + parts) + "\n" + text[text.index(SERVER):]


def test_corpus(drarun, tmp_path):
    page = report(drarun, tmp_path)
    if os.environ.get("DRARUN_GOLDEN") == "write":
        PAGE.write_text(page)
    assert page == PAGE.read_text()


# Of manifests, by hand: all that is asked of a worker's pod.
TEMPLATES = json.loads((SOURCE / "tests/data/import_templates.json").read_text())


def objects(drarun, path, job):
    """What is made of the job, but for what has its own text or a digest of it (the launcher's); the ranks' container has one
    name, volumes and mounts one order."""
    path.write_text(json.dumps(job))
    made = [each for each in json.loads(drarun("render", path, "--format", "json").ok().out)["items"]
            if each["kind"] != "ConfigMap" and (each["kind"] != "Job" or each["metadata"]["name"].endswith("-w"))]
    pods = [each["spec"] if each["kind"] == "Pod" else each["spec"]["template"]["spec"] for each in made if each["kind"] in ("Pod", "Job")]
    for pod in pods:
        first = pod["containers"][0]
        first["name"] = "worker"
        pod["volumes"] = sorted(pod.get("volumes", []), key=lambda volume: volume["name"])
        first["volumeMounts"] = sorted(first.get("volumeMounts", []), key=lambda mount: mount["mountPath"])
    assert pods
    return made


@pytest.mark.parametrize("name", TEMPLATES)
def test_short_form_is_the_same_pod(drarun, tmp_path, name):
    job = next(yaml.safe_load_all(complete(drarun("import", SOURCE / "tests" / name))))
    long = {**job, "spec": {**{key: value for key, value in job["spec"].items() if key not in KEYS}, "template": TEMPLATES[name]}}
    assert "image" in job["spec"] and "image" not in long["spec"]
    made = objects(drarun, tmp_path / "short.json", job)
    assert made == objects(drarun, tmp_path / "long.json", long)
    # and this is what the tests of import read
    assert objects(drarun, tmp_path / "read.json", {**job, "spec": in_template(job["spec"])}) == made


def test_all_that_is_imported_was_compared(drarun):
    assert {f"data/{file.parent.name}/{file.name}" for file in FILES if file.stem not in REFUSED} <= set(TEMPLATES)


@pytest.mark.parametrize("name", [file.stem for file in FILES if file.stem not in REFUSED])
def test_no_affinity_is_dead(drarun, name):
    """What a term selects is on the pods that drarun makes, or on others by wish of nobody here."""
    file = next(file for file in FILES if file.stem == name)
    job = next(yaml.safe_load_all(complete(drarun("import", file))))
    text = json.dumps(job["spec"].get("template", {}).get("spec", {}).get("affinity", {}))
    assert not re.search(r"kubeflow\.org|jobset\.sigs", text)
