# SPDX-License-Identifier: Apache-2.0
"""A real API server takes every manifest that `drarun render` prints (tests/cluster)."""
import copy
import functools
import json
import os
import shlex

import pytest
import yaml

from support import foreign_api, pod_rules
from support.build import SOURCE
from support.cluster import Cluster
from support.cluster.api import wait
from support.imports import complete

JOBS = sorted([*(SOURCE / "tests" / "data" / "render").glob("*.job.yaml"),
               *(SOURCE / "examples" / "jobs").glob("*.yaml")])
OTHERS = sorted([*(SOURCE / "tests" / "data" / "render_as").glob("*.job.yaml"), SOURCE / "examples/ray/cluster.yaml"])
APIS = ["v1", "v1beta2", "v1beta1"]
NAMESPACE = "dry-run"
IMPORTED = sorted([*(SOURCE / "tests/data/import").glob("*.yaml"), *(SOURCE / "tests/data/seeds").glob("*.yaml")])
PAGE = SOURCE / "docs/measured/import.md"
SECTION = """
## The API server's dry run
Of each manifest above, imported: what a real API server of Kubernetes says to the DraJob with the DeviceClasses that follow it, and to the objects that
`drarun render` makes of it.

| manifest | DraJob | objects |
|---|---|---|
"""


@pytest.fixture(scope="module")
def whole():
    with Cluster() as cluster:
        cluster.namespace(NAMESPACE)
        crd = json.loads((SOURCE / "tests" / "cluster" / "computedomains.json").read_text())
        cluster.api.make(crd, {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                               "metadata": {"name": "low"}, "value": -1})
        cluster.wait("the server does not serve ComputeDomains", lambda: cluster.api.plural(
            "resource.nvidia.com/v1beta1", "ComputeDomain"), 30)
        yield cluster


@pytest.fixture(scope="module")
def server(whole):
    return whole.api


def manifests(drarun, path, *args):
    text = drarun("render", "--format", "json", "--namespace", NAMESPACE, *args, path).ok().out
    return json.loads(text)["items"]


@pytest.fixture(scope="module")
def systems(server):
    """The server with the CRDs of KubeRay and Kubeflow Trainer."""
    program, reason = foreign_api.fetched()
    if not program:
        pytest.skip(reason)
    made = foreign_api.crds(program, "ray.io", "trainer.kubeflow.org")
    assert len(made) == 4
    server.make(*made)
    for crd in made:
        version = f"{crd['spec']['group']}/{crd['spec']['versions'][0]['name']}"
        wait(f"the server does not serve {crd['metadata']['name']}",
             functools.partial(server.plural, version, crd["spec"]["names"]["kind"]), 60)
    return server


def refused(server, manifest):
    status, answer = server.create(manifest, dry_run=True)
    name = f"{manifest['kind']} {manifest['metadata']['name']}"
    return [] if status == 201 else [f"{name}: {status}: {answer.get('message', answer)}"]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.name)
def test_server_takes_all(drarun, server, path, api):
    found = manifests(drarun, path, "--api", api)
    assert len(found) >= 4
    assert {each["apiVersion"] for each in found if each["kind"].startswith("ResourceClaim")} <= {
        f"resource.k8s.io/{api}"}
    assert sum((refused(server, each) for each in found), []) == []


@pytest.mark.parametrize("args", [
    ["--claims", "template"], ["--claims", "template", "--image-volume"], ["--claims", "direct"], ["--step", "2"],
    ["--owner-uid", "0b2b5d6e-9f5b-4b5e-8c55-3f4f1f1a9d10"]], ids=" ".join)
def test_server_takes_variants(drarun, server, args):
    found = manifests(drarun, SOURCE / "tests" / "data" / "render" / "aligned.job.yaml", *args)
    assert sum((refused(server, each) for each in found), []) == []


def test_server_takes_what_a_namespace_needs(drarun, server):
    found = json.loads(drarun("install", "-n", NAMESPACE, "--format", "json").ok().out)["items"]
    assert len(found) == 4
    assert sum((refused(server, each) for each in found), []) == []


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.name)
def test_server_takes_what_is_for_others(drarun, systems, path):
    """Against the schemas and rules of those systems' own CRDs; the last object is theirs."""
    options = shlex.split(path.read_text().splitlines()[0].removeprefix("# render:"))
    found = manifests(drarun, path, *(options if "--as" in options else ["--as", "raycluster"]))
    assert not found[-1]["apiVersion"].endswith(("k8s.io/v1", "k8s.io/v1beta1"))
    assert sum((refused(systems, each) for each in found), []) == []
    found[-1]["spec"]["unknown"] = 1
    assert "unknown" in refused(systems, found[-1])[0]


def said(server, objects):
    found = sum((refused(server, each) for each in objects), [])
    return "; ".join(found).replace("|", "\\|") if found else f"accepted, {len(objects)}"


def test_server_takes_what_was_imported(drarun, server, tmp_path):
    """The last section of docs/measured/import.md; DRARUN_GOLDEN=write writes it."""
    crd = yaml.safe_load((SOURCE / "deploy/crd.yaml").read_text())
    server.make(crd)
    wait("the server does not serve DraJobs", lambda: server.plural("drarun.dev/v1alpha1", "DraJob"), 60)
    rows = []
    for file in IMPORTED:
        run = drarun("import", file)
        if run.rc == 65 and not run.out:
            rows.append(f"| {file.stem} | not imported | |")
            continue
        path = tmp_path / file.name
        path.write_text(complete(run))
        own = list(yaml.safe_load_all(path.read_text()))
        own[0]["metadata"]["namespace"] = NAMESPACE
        rows.append(f"| {file.stem} | {said(server, own)} | {said(server, manifests(drarun, path))} |")
    page = PAGE.read_text()
    section = SECTION + "\n".join(rows) + "\n"
    if os.environ.get("DRARUN_GOLDEN") == "write":
        PAGE.write_text(page[:page.index(SECTION.splitlines()[1]) - 1] + section)
    assert PAGE.read_text().endswith(section)
    wrong = own[0]
    wrong["spec"]["workers"] = "two"
    assert "spec.workers" in said(server, [wrong])


def test_server_looks(drarun, server):
    """What it refuses: otherwise the tests above could not fail."""
    found = manifests(drarun, SOURCE / "tests" / "data" / "render" / "aligned.job.yaml")
    claim = next(each for each in found if each["kind"] == "ResourceClaim")
    requests = claim["spec"]["devices"]["requests"]
    for change in (lambda r: r["exactly"].update(count=-1), lambda r: r.update(deviceClassName="flat"),
                   lambda r: r["exactly"].update(selectors=[{"cel": {"expression": "device.("}}])):
        wrong = copy.deepcopy(claim)
        change(wrong["spec"]["devices"]["requests"][0])
        assert refused(server, wrong)
    assert len(requests) == 4
    wrong = copy.deepcopy(claim)
    wrong["spec"]["devices"]["constraints"][0]["requests"] = ["gpu-7", "nic-0"]
    assert refused(server, wrong)


def test_our_rules_for_pods_are_the_servers(server):
    """Of each that drarun validate applies (test_validate.py): it is refused, and its neighbour is taken."""
    said = {name: refused(server, pod_rules.pod(NAMESPACE, spec)) for name, spec, _ in pod_rules.RULES}
    taken = [name for name, _, words in pod_rules.RULES if words and not said[name]]
    assert taken == [] and {name: said[name] for name, _, words in pod_rules.RULES if not words and said[name]} == {}


def repeated(claim, key, count, **changes):
    """The claim with `count` copies of the first entry of a list of its devices."""
    made = copy.deepcopy(claim)
    devices = made["spec"]["devices"]
    devices[key] = [{**copy.deepcopy(devices[key][0]), **({"name": f"r{i}"} if key == "requests" else {})}
                    for i in range(count)]
    if key == "requests":
        devices.pop("constraints"), devices.pop("config")
    return made


def test_our_limits_are_the_servers(drarun, server):
    """jobs/manifests/limits.h: each number is taken, one more is refused."""
    found = manifests(drarun, SOURCE / "tests" / "data" / "render" / "aligned.job.yaml")
    claim = next(each for each in found if each["kind"] == "ResourceClaim")
    for key in ("requests", "constraints", "config"):
        assert refused(server, repeated(claim, key, 32)) == []
        assert "33" in refused(server, repeated(claim, key, 33))[0]

    def selected(expression, count):
        made = copy.deepcopy(claim)
        made["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [{"cel": {"expression": expression}}] * count
        return made
    assert refused(server, selected("true", 32)) == []
    assert refused(server, selected("true", 33))
    assert refused(server, selected("true" + " " * (10240 - 4), 1)) == []
    assert refused(server, selected("true" + " " * (10240 - 3), 1))

    # the sum of counts is the scheduler's to refuse, each time it tries: nobody would tell the user
    many = copy.deepcopy(claim)
    many["spec"]["devices"]["requests"][0]["exactly"]["count"] = 33
    assert refused(server, many) == []


def test_longest_names(drarun, server, tmp_path):
    path = tmp_path / "name.yaml"
    path.write_text(f"metadata: {{name: {'a' * 55}}}\nspec: {{workers: 11, image: i, command: [c], queue: q}}\n")
    found = manifests(drarun, path)
    assert sum((refused(server, each) for each in found), []) == []
    job = next(each for each in found if each["kind"] == "Job" and each["metadata"]["name"].endswith("-w"))
    job["metadata"]["name"] = "a" * 61 + "-w"
    assert refused(server, job)


@pytest.mark.parametrize("devices,kinds", [({}, ["Pod"]), ({"devices": {"gpus": {"count": 1}}}, ["ResourceClaim", "Pod"]),
                                           ({"devices": {"gpus": {"count": 1}, "claims": "template"}}, ["ResourceClaimTemplate"])],
                         ids=["pods", "claims", "template"])
def test_submit_asks_without_making(drarun, whole, tmp_path, devices, kinds):
    file = tmp_path / "asked.json"
    env = {"KUBECONFIG": str(whole.kubeconfig(namespace=NAMESPACE))}
    file.write_text(json.dumps({"workers": 2, "image": "a", "command": ["b"], **devices}))
    lines = drarun("submit", "--dry-run=server", file, env=env).ok().out.splitlines()
    assert all(line.endswith(": ok") for line in lines) and {"Job", "ConfigMap", "Secret", *kinds} <= {line.split()[1] for line in lines}, lines
    file.write_text(json.dumps({"workers": 2, "image": "a", "command": ["b"], **devices, "template": {"spec": {"hostAliases": [{"ip": "nowhere"}]}}}))
    refused = drarun("submit", "--dry-run=server", file, env=env)
    assert refused.rc != 0 and 'hostAliases[0].ip: Invalid value: "nowhere"' in refused.err and "v1 ConfigMap asked-status: ok" in refused.out, refused
    assert not [each for each in whole.api.get("v1", "ConfigMap", namespace=NAMESPACE) if each["metadata"]["name"].startswith("asked")]
    assert not whole.api.get("batch/v1", "Job", namespace=NAMESPACE)
