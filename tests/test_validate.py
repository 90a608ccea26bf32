# SPDX-License-Identifier: Apache-2.0
"""drarun validate, and the published schema held against the parser."""
import copy
import itertools
import json
import os
import re

import pytest
import yaml

from support import pod_rules
from support.build import SLOW_BUILD, SOURCE

jsonschema = pytest.importorskip("jsonschema", reason="no python3-jsonschema; run scripts/setup --test")
SCHEMA = json.loads((SOURCE / "docs/schema/drajob-v1alpha1.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

WHOLE = yaml.safe_load("""
apiVersion: drarun.dev/v1alpha1
kind: DraJob
metadata: {name: all-reduce, generateName: all-, namespace: train, labels: {a: b}, annotations: {x.y/z: any thing}}
spec:
  workers: 2
  ranksPerWorker: 8
  slots: 10
  oversubscribe: false
  bind: core
  reportBindings: true
  devices:
    gpus: {count: 8, class: gpu.nvidia.com, capacity: {memory: 79Gi}, tolerations: [{key: x.y/z, operator: Exists, effect: NoExecute, tolerationSeconds: 60}]}
    nics: {count: 8, class: dranet, selector: ['1 < 2', '2 < 3'], match: [dra.net/rail], config: {a: 1}, driver: dra.net, capacity: {x.y/a: 2, b: 1.5e3},
           tolerations: [{key: k, value: v}]}
    cpus: {count: 8, groups: 2, class: dra.cpu, selector: '1 < 2'}
    align: preferred
    shared: [{claim: a}, {claim: b.c}]
    claims: template
  placement: {spread: node}
  computeDomain: {numNodes: 2, channel: {allocationMode: Single}}
  network: rdma
  onTcpFallback: report
  onPreflightWarning: report
  preflight: {fabric: open}
  launch: pmix
  mpi: {transport: auto}
  nccl: {profile: auto, hcaList: auto, version: "2.27.5", env: {NCCL_DEBUG: INFO, NCCL_IB_TC: 52}}
  image: i
  command: [c]
  args: [""]
  workingDir: /w
  env: {A: b, COUNT: 4, S: {secretKeyRef: {name: s, key: k}}}
  envFrom: [{configMapRef: {name: m}, prefix: P_}]
  resources: {requests: {cpu: 8}, limits: {memory: 1Gi}}
  volumes:
  - {name: top, hostPath: {path: /top, type: Directory}, mountPath: /top, subPath: in}
  - {persistentVolumeClaim: data, mountPath: /data, readOnly: true}
  - {emptyDir: 5Gi, mountPath: /e}
  - {shm: 16Gi}
  tolerations: [{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 60}]
  nodeSelector: {a: b}
  priorityClassName: p
  serviceAccountName: a
  imagePullSecrets: [a, {name: b}]
  schedulerName: s
  labels: {l: m}
  annotations: {p.q/r: any thing}
  template:
    metadata: {labels: {c: d}}
    spec:
      hostIPC: true
      securityContext: {runAsUser: 0, sysctls: [{name: a, value: b}]}
      resourceClaims: [{name: c, resourceClaimName: mine}]
      containers: [{name: worker, livenessProbe: {httpGet: {port: http}}, resources: {claims: [{name: c}]}}]
  timeouts: {queue: 24h, nodes: 30m, allocation: 600, imagePull: 1h30m, start: 1.5m, total: 2h, agent: 30s, signal: SIGUSR1, signalBefore: 1m}
  hangAfter: 10m
  onHang: report
  failurePolicy:
    rules:
    - {"on": {exitCodes: [3, 137]}, action: restart, scope: job, node: avoid}
    - {"on": {cause: oom}, action: fail}
    restarts: 3
    infrastructureRestarts: 2
    onRankFailure: end
  ttlSecondsAfterFinished: 3600
  suspend: false
  queue: team-a
  managedBy: kueue.x-k8s.io/multikueue
""")
# All that a role may say, which is what the spec may say of its workers, but for the form of claims.
# The keys that go by other ways in WHOLE, or not beside its own.
MORE = yaml.safe_load("""
metadata: {name: all-reduce}
spec:
  workers: 2
  world: own
  devices:
    gpus: {count: 2, profile: 1g.10gb, selector: 1 < 2, match: [a.b/c], config: {a: 1}, driver: x.y, tolerations: [{key: k, operator: Equal, value: v}],
           firstAvailable: [{class: c, profile: 2g.20gb, selector: ["2 < 3"], capacity: {m: 1}, tolerations: [{operator: Exists}]}, {}]}
    nics: {count: 2, class: c, firstAvailable: [{class: d, selector: 3 < 4, capacity: {b: 1}, tolerations: [{operator: Exists, effect: NoSchedule}]}, {}]}
    match: [resource.kubernetes.io/pcieRoot]
  nccl: {inspector: true}
  image: i
  command: [c]
  env: [{name: A, value: b}, {name: F, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
  envFrom: [{secretRef: {name: s, optional: true}}]
  volumes:
  - {configMap: {name: c}, mountPath: /a}
  - {secret: {secretName: s}, mountPath: /b}
  - {nfs: {server: n, path: /}, mountPath: /c}
  - {csi: {driver: d}, mountPath: /d}
  - {ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}, mountPath: /e}
  - {projected: {sources: [{secret: {name: s}}]}, mountPath: /f}
  - {downwardAPI: {items: [{path: p, fieldRef: {fieldPath: metadata.name}}]}, mountPath: /g}
  - {image: {reference: r}, mountPath: /h}
  launcher: {resources: {requests: {cpu: 1}}, tolerations: [{operator: Exists}], nodeSelector: {a: b}, priorityClassName: p, annotations: {a: b}}
  restarts: 3
  gangScheduling: never
""")
ROLE = {key: copy.deepcopy(WHOLE["spec"][key]) for key in SCHEMA["$defs"]["role"]["properties"] if key != "name"}
del ROLE["devices"]["claims"]
ROLED = {"metadata": {"name": "all-reduce"}, "spec": {"roles": [{"name": "train", **ROLE}], "success": "train"}}
SHORT = {"workers": 2, "image": "i", "command": ["c"]}
# Names of controllers, and what is none: as the API server judges spec.managedBy of a Job.
MANAGERS = ["drarun.dev/drajob-controller", "kueue.x-k8s.io/multikueue", "a/b", "a.b/c/d", "a.b/~%!$&'()*+,;=:", "a.b/" + "x" * 59,
            "a.b/" + "x" * 60, "a.b", "a.b/", "/c", "a..b/c", "A.b/c", "-a/c", "a.b/c d", "a.b/c?d", "a.b/ü"]
VALUES = [None, True, -1, 0, 1, 2.0, 1.5, 10**6, "", "x", "X!", "1h", [], ["x"], [1], {}, {"x": 1}, {"x": "y"}]


def variants(root, node, path=()):
    """The document with each of its values replaced, left out, or given a neighbour."""
    items = list(node.items() if isinstance(node, dict) else enumerate(node))
    for key, value in items:
        for other in VALUES:
            node[key] = other
            yield (*path, key, json.dumps(other)), root
        node[key] = value
        if isinstance(value, (dict, list)):
            yield from variants(root, value, (*path, key))
    if isinstance(node, dict):
        for key, value in items:
            del node[key]
            yield (*path, key, "left out"), root
            node[key] = value
        node["unheardOf"] = 1
        yield (*path, "unheardOf"), root
        del node["unheardOf"]


def all_variants():
    yield from variants(WHOLE, WHOLE)
    for name, document in variants(MORE, MORE):
        yield ("more", *name), document
    yield from itertools.islice(variants(ROLED, ROLED["spec"], ("spec",)), 0, None, 7)  # the same keys again: some of each


def documents():
    yield "whole", WHOLE
    yield "more", MORE
    yield "roles", ROLED
    yield "short", SHORT
    yield "short in full", {"spec": SHORT}
    for name, value in [("list", []), ("empty", {}), ("text", "x"), ("number", 3)]:
        yield name, value
    for key in ["image", "command"]:
        yield f"no {key}", {k: v for k, v in SHORT.items() if k != key}
        other = {"template": {"spec": {"containers": [{"name": "worker", key: SHORT[key]}]}}}
        yield f"{key} in the template", {**{k: v for k, v in SHORT.items() if k != key}, **other}
        yield f"{key} in the template alone", other
    yield "template alone", {"template": {"spec": {"containers": [{"image": "i", "command": ["c"]}]}}}
    yield "variables in a list", {**SHORT, "env": [{"name": "A", "value": "b"}]}
    for devices in [{"gpus": {"count": 8, "resource": "nvidia.com/gpu"}}, {"gpus": {"count": "all"}},
                    {"gpus": {"count": "all", "resource": "nvidia.com/gpu"}},
                    {"gpus": {"count": 1, "resource": "nvidia.com/gpu", "selector": "true"}},
                    {"gpus": {"count": 1, "resource": "gpu"}}, {"gpus": {"count": 1, "driver": "x.y"}},
                    {"gpus": {"count": 1, "resource": "a.b/c", "class": "d"}},
                    {"gpus": {"count": 8, "firstAvailable": [{"selector": "1 < 2"}, {"class": "other", "tolerations": [{"operator": "Exists"}]}, {}]}},
                    {"gpus": {"count": 8, "firstAvailable": []}}, {"gpus": {"count": 8, "firstAvailable": [{"count": 4}]}},
                    {"nics": {"count": 8, "firstAvailable": [{"class": "dranet"}]}}, {"gpus": {"count": 1, "firstAvailable": [{"profile": "x"}]}},
                    {"nics": {"count": 8, "class": "c", "firstAvailable": [{"profile": "1g.5gb"}]}},
                    {"gpus": {"count": 1, "resource": "a.b/c", "firstAvailable": [{}]}}, {"gpus": {"count": 1, "resource": "a.b/c", "capacity": {"m": 1}}},
                    {"gpus": {"count": 1, "capacity": {}}}, {"gpus": {"count": 1, "capacity": {f"c{i}": i for i in range(33)}}},
                    *({"gpus": {"count": 1, "capacity": {name: "1Gi"}}} for name in ("1x", "a-b", "A.b/c", "a.b/c/d", "x" * 33, "", "/a", "a/")),
                    *({"nics": {"count": 1, "class": "c", "capacity": {"b": amount}}} for amount in (
                        "1", "40Gi", ".5G", "1.", "+1", "-1", -1, 2.0, 1.5, True, None, "1e3", "1E", "1KiB", "1k", "1K", ".", "Mi", "", "9" * 64, "9" * 65)),
                    {"nics": {"count": 2, "class": "c", "firstAvailable": [{"capacity": {"a.b/c": "1"}}, {"capacity": {"a.b/c": "x"}}]}},
                    {"gpus": {"count": 2, "firstAvailable": [{"capacity": {"memory": "80G"}}, {"class": "d", "capacity": {"memory": "40G"}}]}},
                    {"gpus": {"count": 2, "profile": "1g.10gb"}}, {"gpus": {"count": 2, "profile": "1c.2g.20gb+me", "class": "parts"}},
                    {"gpus": {"count": 2, "profile": "1g.10gb", "resource": "a.b/c"}}, {"gpus": {"count": 2, "profile": "10gb"}},
                    {"gpus": {"count": 2, "profile": '1g.10gb" || "'}}, {"nics": {"count": 2, "class": "c", "profile": "1g.10gb"}},
                    {"gpus": {"count": 1, "resource": "a.b/c", "tolerations": [{"operator": "Exists"}]}},
                    {"gpus": {"count": 1, "tolerations": [{"operator": "Exists", "value": "v"}]}}, {"gpus": {"count": 1, "tolerations": [{}]}},
                    {"nics": {"count": 1}}, {"nics": {"count": 1, "class": "dranet"}},
                    {"cpus": {"count": 8}}, {"cpus": {}}, {"cpus": {"count": "all"}}, {"cpus": {"count": 0}}, {"cpus": {"count": 4097}},
                    {"cpus": {"count": 8, "groups": 0}}, {"cpus": {"count": 32, "groups": 16}}, {"cpus": {"count": 34, "groups": 17}},
                    {"cpus": {"count": 8, "class": "C"}}, {"cpus": {"count": 8, "resource": "a.b/c"}}, {"cpus": {"count": 8, "capacity": {"a": 1}}},
                    {"shared": []}, {"shared": [{"claim": "a"}]}, {"shared": [{"claim": "a"}, {"claim": "a"}]}, {"shared": [{"claim": "A"}]},
                    {"shared": [{}]}, {"shared": [{"claim": "a", "name": "b"}]}, {"shared": ["a"]}, {"shared": [{"claim": f"c{i}"} for i in range(9)]},
                    {"claims": "direct"}, {"claims": "template"}]:
        yield f"devices {devices}", {**SHORT, "devices": devices}
        yield f"queue and devices {devices}", {**SHORT, "queue": "q", "devices": devices}
    for manager in MANAGERS:
        yield f"managed by {manager}", {**SHORT, "managedBy": manager}


# Which role lacks an image or a command, and what it is called, is not the schema's to say.
LACKS = {"spec/roles/0/image/left out", "spec/roles/0/command/left out", "spec/roles/0/name/\"x\"", "spec/roles/0/name/\"1h\"",
         "spec/success/\"x\"", "spec/success/\"X!\"", "spec/success/\"1h\""}


# What only the parser looks at: ranks in all, one name for
# several interfaces, classes whose driver is known. None of them can come out of VALUES, but for CEL
# and the names of profiles.
def test_schema_and_parser_agree(drarun, tmp_path):
    """Each document is taken by both or refused by both."""
    wanted = {}
    for name, document in documents():
        wanted[name] = json.dumps(document)
    for path, document in all_variants():
        wanted["/".join(map(str, path))] = json.dumps(document)
    assert len(wanted) > 1000
    names = list(wanted)[::SLOW_BUILD]  # a slow build takes a part of them
    files = []
    for i, name in enumerate(names):
        files.append(tmp_path / f"{i}.json")
        files[-1].write_text(wanted[name])
    results = []
    for at in range(0, len(files), 400):
        results += json.loads(drarun("validate", "--output", "json", *files[at:at + 400], clean=False).out)
    assert len(results) == len(names)
    differ = []
    for name, result in zip(names, results):
        schema = VALIDATOR.is_valid(json.loads(wanted[name]))
        # CEL, and what goes together
        rejected = all("the API server would reject it" in each["message"] for each in result["findings"])
        # of the merged template: which container is whose, and names
        pod = "/template/spec/containers/" in name and all(each["code"] == "missing" for each in result["findings"])
        # of two numbers in two places
        cpus = all(any(part in each["message"] for part in ("both must be one number", "equal parts", "slots are fewer", "timeouts.total", "timeouts.agent"))
                   for each in result["findings"])
        match = name in {"more/spec/devices/gpus/left out", "more/spec/devices/nics/left out"}
        role = name in LACKS
        profile = "/profile/" in name and all("no profile" in each["message"] for each in result["findings"])
        image = "/image/" in name and all("expected an image: " in each["message"] for each in result["findings"])
        if schema != result["ok"] and not (schema and (rejected or profile or pod or role or cpus or match or image)):
            differ.append(f"{name}: schema {schema}, parser {result['findings'] or 'ok'}")
    assert not differ, "\n".join(differ[:40])
    taken = sum(result["ok"] for result in results)
    assert 100 < taken * SLOW_BUILD < len(wanted) - 500


@pytest.mark.parametrize("selector,said", [
    ("device.attributes['dra.net'].rdma == true", None),
    ("device.attributes['dra.net'].ifName.matches('(')", "spec.devices.nics.selector: the API server would reject it: column"),
    ("device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, device.attributes.all(d, a < b))))",
     "too complex: it may cost 12785859, of the 1000000 that the API server allows"),
    ("device.attributes['dra.net'].name.split('').map(c, c + c) == []", "there is no bound to what it may cost"),
    ("ip.isCanonical(device.attributes['dra.net'].ipv4)", None),  # not ours to judge
])
def test_selectors_as_the_api_server_judges_them(drarun, tmp_path, selector, said):
    file = tmp_path / "job.json"
    file.write_text(json.dumps({"metadata": {"name": "job"}, "spec": {
        **SHORT, "devices": {"nics": {"count": 1, "class": "dranet", "selector": selector}}}}))
    for verb in ("validate", "render"):
        run = drarun(verb, file)
        assert run.rc == (65 if said else 0), run
        assert (said or "") in run.out + run.err


@pytest.mark.parametrize("amounts,said", [
    ("{memory: 40Gib}", ':7:38: spec.devices.gpus.capacity.memory: expected a quantity that isn\'t negative, such as 40Gi or 8, got "40Gib"'),
    ("{memory: -1}", ":7:38: spec.devices.gpus.capacity.memory: expected a quantity that isn't negative"),
    ("{gpu-memory: 1Gi}", ":7:30: spec.devices.gpus.capacity.gpu-memory: expected a capacity's name as the driver publishes it, such as memory"),
    ("{}", ":7:29: spec.devices.gpus.capacity: expected 1 to 32 capacities"),
    ("{memory: 40Gi, a.b/cores: 8}", None)])
def test_amounts_of_capacity(drarun, tmp_path, amounts, said):
    file = tmp_path / "job.yaml"
    file.write_text(f"spec:\n  image: i\n  command: [c]\n  devices:\n    gpus:\n      count: 2\n      capacity:             {amounts}\n")
    run = drarun("validate", file)
    assert run.rc == (65 if said else 0) and (f"{file}{said}" if said else "ok (job") in run.out, run


def test_one_amount_for_a_choice(drarun, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text("image: i\ncommand: [c]\ndevices:\n  gpus:\n    count: 1\n    capacity: {memory: 1Gi}\n    firstAvailable:\n"
                    "    - {capacity: {a.b/cores: 1}}\n    - {capacity: {memory: 2Gi}}\n")
    run = drarun("validate", file)
    assert run.rc == 65 and ":9:19: devices.gpus.firstAvailable[1].capacity.memory: is also in the capacity of all choices: give it once" in run.out, run


@pytest.mark.parametrize("more,said", [
    ("cpus: {count: 8, groups: 3}", ":5:30: spec.devices.cpus.groups: 8 CPUs cannot be split into 3 equal parts"),
    ("cpus: {count: 8, groups: 2}\n    match: [resource.kubernetes.io/numaNode]\n    gpus: {count: 1}",
     ":6:5: spec.devices.match: wants all devices on one NUMA node, and cpus.groups wants CPUs of several"),
    ("cpus: {count: 8}\n    match: [resource.kubernetes.io/numaNode]", ":6:5: spec.devices.match: covers GPUs, NICs and CPUs of one claim"),
    ("cpus: {count: 8}\n    match: [resource.kubernetes.io/numaNode]\n    gpus: {count: 1}", None),
    ("cpus: {count: 8}\n  resources: {requests: {cpu: 4}}", "requests.cpu: spec.devices.cpus claims 8, and both must be one number: drop one"),
    ("cpus: {count: 8}\n  resources: {limits: {cpu: 8500m}}", "limits.cpu: spec.devices.cpus claims 8"),
    ("cpus: {count: 8}\n  resources: {limits: {cpu: 8000m}, requests: {cpu: 8}}", None),
    ("cpus: {count: 8}\n  template: {spec: {containers: [{name: worker}, {name: watch, image: i, resources: {claims: [{name: devices}]}}]}}",
     "watch lists the claim devices with its CPUs, which the driver gives to one container"),
    ("cpus: {count: 8}\n    gpus: {count: 1}\n"
     "  template: {spec: {containers: [{name: worker}, {name: watch, image: i, resources: {claims: [{name: devices, request: gpu}]}}]}}", None)])
def test_cpus_of_a_claim(drarun, tmp_path, more, said):
    file = tmp_path / "job.yaml"
    file.write_text(f"spec:\n  image: i\n  command: [c]\n  devices:\n    {more}\n")
    run = drarun("validate", file)
    assert run.rc == (65 if said else 0) and (said or "8 CPUs each") in run.out, run


@pytest.mark.parametrize("claims,said", [
    ("[{claim: team}, {claim: team}]", ":5:41: spec.devices.shared[1].claim: is given twice"),
    ("[{claim: job-w-1}]", ":5:26: spec.devices.shared[0].claim: job-w-1 is what this job's own claims are called (job-w-I)"),
    ("[{claim: Team}]", ':5:26: spec.devices.shared[0].claim: expected the name of a ResourceClaim, got "Team"'),
    ("[{claim: job-w}, {claim: job-w-a}, {claim: job-x-1}]", None)])
def test_names_of_shared_claims(drarun, tmp_path, claims, said):
    file = tmp_path / "job.yaml"
    file.write_text(f"spec:\n  image: i\n  command: [c]\n  devices:\n    shared:     {claims}\n")
    run = drarun("validate", file)
    assert run.rc == (65 if said else 0) and (f"{file}{said}" if said else "ok (job") in run.out, run


@pytest.mark.parametrize("entry,said", [
    ("{name: x, resourceClaimName: team}", "resourceClaims: team is also in spec.devices.shared: drop one"),
    ("{name: shared-0, resourceClaimName: other}", "shared-0"), ("{name: x, resourceClaimName: other}", None)])
def test_a_shared_claim_beside_the_templates(drarun, tmp_path, entry, said):
    file = tmp_path / "job.yaml"
    file.write_text("spec:\n  image: i\n  command: [c]\n  devices: {shared: [{claim: team}]}\n"
                    f"  template: {{spec: {{resourceClaims: [{entry}]}}}}\n")
    run = drarun("validate", file)
    assert run.rc == (65 if said else 0) and (said or "ok (job") in run.out, run


@pytest.mark.parametrize("name,said", [
    ("gke-a5", 'no profile "gke-a5"; did you mean gke-a4?'),
    ("a3u", 'no profile "a3u"; did you mean gke-a3u?'),
    ("qqqqqq", 'no profile "qqqqqq"; expected auto or one of gke-a4, gke-a3u, '),
    ("gke-a4", None), ("auto", None), ("socket", None),
])
def test_unknown_profile(drarun, tmp_path, name, said):
    """By every verb that reads a job's file, before anything else is done with it."""
    file = tmp_path / "job.yaml"
    file.write_text(f"spec:\n  workers: 1\n  image: i\n  command: [c]\n  nccl:\n    profile: {name}\n")
    for verb in [("validate",), ("render",), ("plan",), *([("submit",), ("run",)] if said else [])]:
        run = drarun(*verb, file)
        assert run.rc == (65 if said else 0), run
        if said:
            assert f"{file}:6:14: spec.nccl.profile: {said}" in run.out + run.err
    file.write_text(f"workers: 1\nimage: i\ncommand: [c]\nnccl: {{profile: {name}}}\n")  # a spec alone
    run = drarun("validate", file)
    assert run.rc == (65 if said else 0) and (f"{file}:4:17: nccl.profile: {said or ''}" in run.out) == bool(said)


def test_profile_of_the_site(drarun, tmp_path):
    site, file = tmp_path / "site.yaml", tmp_path / "job.yaml"
    site.write_text("profiles:\n- {name: ours, variables: []}\n")
    file.write_text("spec:\n  image: i\n  command: [c]\n  nccl: {profile: our}\n")
    for verb in ("validate", "render", "plan"):
        run = drarun(verb, "--profiles", site, file)
        assert run.rc == 65 and 'no profile "our"; did you mean ours?' in run.out + run.err
    file.write_text(file.read_text().replace("our}", "ours}"))
    assert drarun("validate", file).rc == 65
    for verb in ("validate", "render", "plan"):
        drarun(verb, "--profiles", site, file).ok()
    run = drarun("validate", "--profiles", tmp_path / "none.yaml", file)
    assert run.rc == 65 and "none.yaml: cannot be opened" in run.err


def keys_of(node, document, path):
    """(path, whether the document has it) of each key of our own types in the schema; a type's keys are of no path but its own."""
    if not isinstance(node, dict):
        return
    if "$ref" in node:
        path = node["$ref"].rpartition("/")[2]
        if path[0].isupper():  # of Kubernetes
            return
        node = SCHEMA["$defs"][path]
    for key, value in node.get("properties", {}).items():
        has = isinstance(document, dict) and key in document
        yield f"{path}.{key}", has
        if has:
            yield from keys_of(value, document[key], f"{path}.{key}")
    for each in document if isinstance(document, list) else ():
        yield from keys_of(node.get("items"), each, path)


def test_every_key_is_varied():
    seen = {pair for document in (WHOLE, MORE, ROLED) for pair in keys_of({"$ref": "#/$defs/document"}, document, "")}
    assert len(seen) > 200
    # "resource" stands beside no other key: documents() has it. The two of a role are read as the job's are.
    assert {path for path, has in seen if (path, True) not in seen} == {
        "gpus.resource", "nics.resource", "role.devices.match", "role.nccl.inspector"}


def test_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_good_file(drarun, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(WHOLE))
    run = drarun("validate", file).ok()
    assert run.out == f"{file}: ok (job all-reduce, 2 workers, 8 GPUs each, 8 NICs each, 8 CPUs each, a ComputeDomain)\n"
    assert run.err == ""


def test_short_file_is_named_after_its_file(drarun, tmp_path):
    file = tmp_path / "My_Job.yaml"
    file.write_text("image: i\ncommand: [c]\n")
    assert drarun("validate", file).ok().out == f"{file}: ok (job my-job, 1 worker)\n"


@pytest.mark.parametrize("queue,said", [("", ""), ("queue: q\n", ", which its queue does not change")])
def test_a_suspended_job(drarun, queue, said):
    run = drarun("validate", "-", input=f"suspend: true\nimage: i\ncommand: [c]\n{queue}").ok()
    assert run.out == f"-: ok (job job, 1 worker, suspended until spec.suspend is false{said})\n"


@pytest.mark.parametrize("version,imported", [("batch/v1", True), ("batch.volcano.sh/v1alpha1", False)])
def test_kinds_that_import_takes(drarun, version, imported):
    run = drarun("validate", "-", input=f"apiVersion: {version}\nkind: Job\nmetadata: {{name: j}}\nspec: {{image: i, command: [c]}}\n")
    assert run.rc == 65 and ("drarun import makes a DraJob of it" in run.out) == imported, repr(run)


def test_a_job_that_kubectl_has_printed(drarun):
    added = {"uid": "u", "resourceVersion": "1", "generation": 1, "creationTimestamp": "2026-11-20T10:00:00Z", "managedFields": []}
    job = {"kind": "DraJob", "metadata": {"name": "j", **added}, "spec": {"image": "i", "command": ["c"]}, "status": {}}
    run = drarun("validate", "-", input=json.dumps(job))
    assert run.rc == 65 and run.out.count(": the cluster sets this in a DraJob that is there: take it out\n") == len(added) + 1, run.out


def test_all_findings_in_order(drarun, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text("spec:\n  suspend: 1\n  workers: two\n  image: i\n  comand: [c]\n")
    run = drarun("validate", file)
    assert run.rc == 65 and run.err == ""
    assert run.out.splitlines() == [
        f"{file}:2:12: spec.suspend: expected true or false, got 1",
        f"{file}:3:12: spec.workers: expected an integer of at least 1, got \"two\"",
        f"{file}:4:3: spec.image: command is missing beside it: the ranks' program",
        f"{file}:5:3: spec.comand: unknown key; did you mean command?"]


def test_several_files_and_input(drarun, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text("image: i\ncommand: [c]\n")
    run = drarun("validate", file, "-", tmp_path / "none.yaml", input="workers: x\n")
    assert run.rc == 65
    assert f"{file}: ok" in run.out
    assert "<stdin>:1:10: workers: expected an integer" in run.out
    assert "none.yaml: cannot be opened: No such file or directory" in run.out


def test_at_most_twenty_findings(drarun, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text("spec:\n" + "".join(f"  k{i}: 1\n" for i in range(100)))
    lines = drarun("validate", file).out.splitlines()
    assert len(lines) == 21 and lines[-1] == f"{file}: 81 more"


def test_linked_file_and_directory(drarun, tmp_path):
    (tmp_path / "real").write_text("image: i\ncommand: [c]\n")
    (tmp_path / "job.yaml").symlink_to("real")  # as in a ConfigMap's volume
    drarun("validate", tmp_path / "job.yaml").ok()
    run = drarun("validate", tmp_path)
    assert run.rc == 65 and "Is a directory" in run.out


@pytest.mark.parametrize("content,part", [
    (b"x: [1", "YAML: did not find expected"),
    (b"{\"x\": 1,}", "JSON: expected a key"),
    (b"x: 1\nx: 2\n", "is given twice, first in line 1"),
    (b"x: &a [*a]\n", "contains itself"),
    (b"a: &a [" + b"x," * 9 + b"]\n" + b"".join(
        b"%c: &%c [" % (c + 1, c + 1) + b"*%c," % c * 9 + b"]\n" for c in range(97, 105)), "aliases add more"),
    (b"x: !!python/object:os.system 1\n", "tags are not supported"),
    (b"\xff\xfei\0m\0", "not UTF-8"),
    (b"image: \0\n", "NUL"),
    (b"[" * 100000, "inside one another"),
    (b"# " + b"x" * (10 << 20), "larger than the limit"),
    (b"", "it is empty: expected a DraJob"),
    (b"---\n", "it is empty: expected a DraJob"),
], ids=range(12))
def test_malformed(drarun, tmp_path, content, part):
    file = tmp_path / "job.yaml"
    file.write_bytes(content)
    run = drarun("validate", file)
    assert run.rc == 65 and part in run.out, repr(run)
    assert run.out.count("\n") == 1


def test_usage(drarun):
    assert drarun("validate").rc == 64
    run = drarun("validate", "--outptu", "json", "x")
    assert run.rc == 64 and "did you mean --output?" in run.err
    assert "Usage: drarun validate" in drarun("validate", "--help").ok().out
    assert "validate" in drarun("help").ok().out


@pytest.mark.parametrize("spec,place,message", [
    ("queue: a\nworkers: 2\ntemplate:\n  spec:\n    hostNetwork: true\n", "7:18: template.spec.hostNetwork",
     "set placement.spread: node; or drop hostNetwork, or the queue"),
    ("devices: {nics: {count: 1, class: dranet}}\ntemplate:\n  spec:\n    hostNetwork: true\n", "6:18: template.spec.hostNetwork",
     "a claimed NIC is moved into the pod's own network"),
    ("template:\n  spec:\n    restartPolicy: Always\n", "5:20: template.spec.restartPolicy", 'expected Never, got "Always"'),
    ("labels: {app: a, drarun-x: b}\nenv: {DRARUN_KEY: x}\n", "4:6: env", 'drarun adds an entry with name "DRARUN_KEY"'),
    ("devices:\n  gpus: {count: 20}\n  nics: {count: 20, class: dranet}\n", "4:3: devices", "are 40 devices; a worker's claim holds 32"),
    ("template: {spec: {tolerations: oops}}\n", "3:32: template.spec.tolerations", 'expected a list, got "oops"'),
    ("tolerations: oops\n", "3:14: tolerations", 'expected a list, got "oops"'),
])
def test_all_verbs_refuse_the_same(drarun, tmp_path, spec, place, message):
    """What the API's limits, its pods and ours would not bear is found where the file is read, with its place."""
    file = tmp_path / "job.yaml"
    file.write_text("image: i\ncommand: [c]\n" + spec)
    for verb in ("validate", "plan", "render", "submit", "run"):
        run = drarun(verb, file)
        assert run.rc == 65 and f"{file}:{place}: " in run.out + run.err and message in run.out + run.err, run


def test_findings_for_programs(drarun, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text("image: i\nworkers: two\ncomand: [c]\ntemplate: {spec: {volumes: [{emptyDir: {}}]}}\n")
    result, = json.loads(drarun("validate", "-o", "json", file).out)
    found = [(each["line"], each["column"], each["path"], each["code"]) for each in result["findings"]]
    assert found == [(1, 1, "image", "refused"), (2, 10, "workers", "wrong-value"), (3, 1, "comand", "unknown-key"),
                     (4, 29, "template.spec.volumes[0]", "missing")]
    assert {each["file"] for each in result["findings"]} == {str(file)}
    assert result["findings"][2]["message"] == "unknown key; did you mean command?"
    result, = json.loads(drarun("validate", "-o", "json", tmp_path / "none.yaml").out)
    assert [each["code"] for each in result["findings"]] == ["unreadable"]


def test_findings_of_a_file_whose_name_is_no_text(drarun, tmp_path):
    file = f"{tmp_path}/a{os.fsdecode(bytes([0xff]))}.yaml"
    with open(file, "w", encoding="utf-8") as written:
        written.write("image: i\ncomand: [c]\n")
    result, = json.loads(drarun("validate", "-o", "json", file).out)
    assert result["file"] == f"{tmp_path}/a?.yaml"
    assert [(each["code"], each["file"]) for each in result["findings"]] == [
        ("refused", result["file"]), ("unknown-key", result["file"])]


def test_every_key_is_described():
    def below(node, path):
        for key, each in node.get("properties", {}).items():
            where = f"{path}.{key}"
            shape = SCHEMA["$defs"][each["$ref"].rpartition("/")[2]] if "$ref" in each else each
            assert each.get("description") or shape.get("description"), where
            if "$ref" not in each or each["$ref"].rpartition("/")[2][0].islower():
                below(shape, where)

    below(SCHEMA["$defs"]["document"], "")
    for name, each in SCHEMA["$defs"].items():
        below(each, name)


JOBS = [path for path in (SOURCE / "examples").glob("**/*.yaml") if "\nkind: DraJob" in path.read_text()]


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.name)
def test_examples_name_their_schema(path):
    """Editors find the schema by the file's first line."""
    found = re.match("# yaml-language-server: [$]schema=(.*)\n", path.read_text())
    assert found and (path.parent / found.group(1)).resolve() == SOURCE / "docs/schema/drajob-v1alpha1.json"


def test_examples_need_little_of_a_template():
    """The short form is enough for what people write: at most five lines of a template."""
    for path in JOBS:
        lines = path.read_text().splitlines()
        begin = next((at for at, line in enumerate(lines) if line.strip() == "template:"), len(lines))
        inside = itertools.takewhile(lambda line: line.startswith("    "), lines[begin + 1:])
        assert len(list(inside)) <= 5, path


@pytest.mark.parametrize("name,spec,said", pod_rules.RULES, ids=pod_rules.IDS)
def test_pods_as_the_api_server_judges_them(drarun, tmp_path, name, spec, said):
    """test_dry_run.py asks a real one the same."""
    file = tmp_path / "job.json"
    file.write_text(json.dumps({"spec": {"template": {"spec": spec}}}))
    run = drarun("validate", file)
    assert run.rc == (65 if said else 0) and (said or "ok (job") in run.out, run
    assert not said or len(run.out.splitlines()) == 1, run


@pytest.mark.parametrize("text,found", [
    ("image: i\ncommand: [c]\nvolumes: [{shm: 16Gi}, {emptyDir: {}, mountPath: /dev/shm}]\n",
     [":3:24: volumes[1]: the API server would reject it: the volumes shm and volume-1 are both mounted at /dev/shm: drop one"]),
    ("image: i\ncommand: [c]\nresources: {requests: {cpu: 4, memory: 1Gi}, limits: {cpu: 2, memory: 1}}\nenv: [{name: A, valueFrom: {}}]\n",
     [":3:29: resources.requests.cpu: the API server would", ":3:40: resources.requests.memory: the API server would", ":4:7: env[0]: the API server would"]),
    ("image: i\ncommand: [c]\nenv: {A: {}}\nvolumes: [{hostPath: /x, mountPath: /x, subPath: ..}]\n", [":3:10: env.A: the API server would", ":4:11: volumes[0]: the API server would"]),
    ("image: i\ncommand: [c]\nnodeSelector: {a: b c}\ntemplate: {spec: {nodeSelector: {d: e f}, containers: [{name: side, image: i, ports: [{containerPort: 1, name: A}]}]}}\n",
     [":3:19: nodeSelector.a:", ":4:37: template.spec.nodeSelector.d:", ":4:87: template.spec.containers[0].ports[0]:"]),
    ("spec:\n  launcher: {resources: {requests: {cpu: 2}, limits: {cpu: 1}}, tolerations: [{operator: Equal}]}\n  image: i\n  command: [c]\n",
     [":2:42: spec.launcher.resources.requests.cpu: the API server would", ":2:79: spec.launcher.tolerations[0]:"]),
    ("image: i\ncommand: [c]\nnodeSelector: {a: b c}\nroles:\n- {name: x}\n- {name: z, tolerations: [{operator: Equal}]}\n- {name: w, nodeSelector: {f: g h}}\n",
     [":3:19: nodeSelector.a:", ":6:27: roles[1].tolerations[0]:", ":7:31: roles[2].nodeSelector.f:"]),
    ("image: i\ncommand: [c]\ntemplate:\n  spec:\n    containers:\n    - name: side\n      image: i\n      env: [{name: A, valueFrom: {}}]\n"
     "      volumeMounts: [{name: gone, mountPath: /v}]\nvolumes: [{name: v, emptyDir: {}, mountPath: /v}]\nroles:\n"
     "- {name: x, env: {A: b}, volumes: [{name: w, emptyDir: {}, mountPath: /v}]}\n- {name: z}\n",
     [":8:13: template.spec.containers[0].env[0]:", ":9:22: template.spec.containers[0].volumeMounts[0]:"]),
], ids=["shm", "all", "short", "container", "launcher", "roles", "sidecar"])
def test_all_of_what_the_api_server_would_reject(drarun, tmp_path, text, found):
    """Each finding once, where the user wrote it."""
    file = tmp_path / "job.yaml"
    file.write_text(text)
    lines = drarun("validate", file).out.splitlines()
    assert len(lines) == len(found) and all(line.startswith(f"{file}{said}") for line, said in zip(lines, found)), lines
