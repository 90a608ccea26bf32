# SPDX-License-Identifier: Apache-2.0
"""drarun render: manifests against goldens, and the YAML against two readers.

tests/data/render/NAME.job.yaml is a job whose first line holds the options; NAME.yaml is what must be
printed. After a wanted change: DRARUN_GOLDEN=write python3 -m pytest test_render.py, and look at the
difference."""
import json
import os
import shlex

import pytest
import yaml

from support.build import SOURCE

DATA = SOURCE / "tests" / "data" / "render"
JOBS = sorted(path.name.removesuffix(".job.yaml") for path in DATA.glob("*.job.yaml"))


def options(name):
    first = (DATA / f"{name}.job.yaml").read_text().splitlines()[0]
    assert first.startswith("# render:")
    return shlex.split(first.removeprefix("# render:"))


def render(drarun, name, *more):
    return drarun("render", *options(name), *more, DATA / f"{name}.job.yaml").ok().out


def documents(text):
    return [each for each in yaml.safe_load_all(text) if each]


def pods_of(manifests):
    """The specs of the worker pods, of an Indexed Job once."""
    for each in manifests:
        if each["kind"] == "Pod":
            yield each["spec"]
        if each["kind"] == "Job" and each["spec"].get("completionMode") == "Indexed":
            yield each["spec"]["template"]["spec"]


def test_there_are_jobs():
    assert len(JOBS) >= 8


@pytest.mark.parametrize("name", JOBS)
def test_golden(drarun, name):
    golden = DATA / f"{name}.yaml"
    out = render(drarun, name)
    if os.environ.get("DRARUN_GOLDEN") == "write":
        golden.write_text(out)
    assert out == golden.read_text()
    assert out == render(drarun, name)


@pytest.mark.parametrize("name", JOBS)
def test_yaml_and_json_say_the_same(drarun, name):
    listed = json.loads(render(drarun, name, "--format", "json"))
    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    assert documents(render(drarun, name)) == listed["items"]


def test_values_that_yaml_likes_to_change_stay(drarun):
    job = documents((DATA / "template.job.yaml").read_text())[0]
    given = {each["name"]: each["value"] for each in job["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert len(given) == 16
    pod = next(pods_of(documents(render(drarun, "template"))))
    got = {each["name"]: each["value"] for each in pod["containers"][0]["env"] if "value" in each}
    ours = [got.pop(f"DRARUN_{name}") for name in ("WORKER", "ATTEMPT", "JOB_NAME")]
    assert ours == ["0", "1", "template"]
    assert got == given


@pytest.mark.parametrize("profile,devices,writable", [
    ("gke-a4", 8, set()), ("gke-a3u", 8, set()), ("gke-a4x", 4, set()), ("gke-tcpxo", 8, {"/dev/aperture_devices"})])
def test_a_job_cannot_change_the_nodes_programs(drarun, tmp_path, profile, devices, writable):
    """All pods of a node load the driver's and the plugin's libraries out of its folders. Devices are opened for writing."""
    file = tmp_path / "job.yaml"
    job = (DATA / "aligned.job.yaml").read_text().replace("align: preferred", "align: none")
    file.write_text(job.replace("count: 2", f"count: {devices}").replace("{profile: gke-a4}", f"{{profile: {profile}}}"))
    pod = next(pods_of(documents(drarun("render", file).ok().out)))
    of_host = {each["name"] for each in pod["volumes"] if "hostPath" in each}
    mounts = [each for each in pod["containers"][0]["volumeMounts"] if each["name"] in of_host]
    assert mounts and {each["mountPath"] for each in mounts if not each.get("readOnly")} == writable


def test_pods_know_whose_they_are(drarun):
    """Agents refuse who wants another worker; an Indexed Job tells the index itself."""
    def known(name, *more):
        return [{each["name"]: each["value"] for each in pod["containers"][0].get("env", [])
                 if each["name"].startswith("DRARUN_") and "value" in each}
                for pod in pods_of(documents(render(drarun, name, *more)))]
    assert known("plugin-gpus") == [{"DRARUN_JOB_NAME": "plugin-gpus", "DRARUN_ATTEMPT": "1", "DRARUN_WORKER": str(i)}
                                    for i in range(2)]
    assert known("queue") == [{"DRARUN_JOB_NAME": "queue", "DRARUN_ATTEMPT": "1"}]


def test_yaml_of_every_text_reads_back(drarun, tmp_path):
    """Through our own reader: a job made of a rendered part has the same texts again."""
    texts = ["", " ", "#", "- a", "? a", ": a", "&a", "*a", "!a", "|", ">", "%a", "@a", "`a`", "'", "\"", "{", "}",
             "[", "]", ",", "a:", "a: b", "a #b", "a#b", "~", "null", "Null", "y", "N", "yes", "Off", "TRUE", "0",
             "0x1f", "0o17", "0b1", "017", "-1", "+1", "1_000", "1.5", "1e3", ".5", "1.", ".inf", "-.INF", ".nan",
             "190:20:30", "2025-01-01", "2025-01-01T00:00:00Z", "=", "<<", "---", "...", "a\nb", "a\nb\n", "a\n\nb",
             "\na", "a\n", " a\nb", "a \nb ", "a\n b\n", "a\n---\nb", "a\n\n\n", "\n", "a\tb", "\ta", "a\rb", "\x01",
             "\x7f", "\u0085", "\u00a0", "\u2028", "\u2029", "\ufeff", "ä", "日本", "\U0001f680", "\U0010fffd", "\ufffd",
             "x" * 3000, "word " * 400, "a\\nb", "C:\\x", "$(date)", "%s", "/bin/sh", ":7173", "a,b", "a]b", "é" * 200]
    annotations = {f"k{i}": text for i, text in enumerate(texts)}
    job = {"metadata": {"name": "texts", "annotations": annotations}, "spec": {"workers": 1, "image": "i", "command": ["c"]}}
    first = tmp_path / "first.json"
    first.write_text(json.dumps(job))
    rendered = documents(drarun("render", first).ok().out)
    assert rendered[0]["metadata"]["annotations"] == annotations
    # again, from our YAML: the Job's metadata in block style is a valid part of a job
    text = drarun("render", first).ok().out
    launcher = text.split("\n---\n")[1]
    metadata = launcher[launcher.index("metadata:"):launcher.index("\nspec:\n")]
    metadata = "\n".join(line for line in metadata.split("\n") if not line.strip().startswith("drarun.dev/"))
    second = tmp_path / "second.yaml"
    second.write_text(metadata.replace("  labels:\n", "") + "\nspec: {workers: 1, image: i, command: [c]}\n")
    again = documents(drarun("render", second).ok().out)
    assert again[0]["metadata"]["annotations"] == annotations


def test_numbers_stay(drarun, tmp_path):
    numbers = [0, -7, 2**62, 0.1, -2.5, 1e30, 1.5e-9, 123456789.125, 5e-324, 1.7976931348623157e308]
    config = {"n": numbers}
    path = tmp_path / "job.json"
    path.write_text(json.dumps({"spec": {"workers": 1, "image": "i", "command": ["c"], "devices": {
        "nics": {"count": 1, "class": "a", "config": config, "driver": "dra.net"}}}}))
    claim = next(each for each in documents(drarun("render", path).ok().out) if each["kind"] == "ResourceClaim")
    assert claim["spec"]["devices"]["config"][0]["opaque"]["parameters"] == config


@pytest.mark.parametrize("name", JOBS)
def test_every_claim_is_listed_by_a_container(drarun, name):
    pods = list(pods_of(documents(render(drarun, name))))
    assert pods
    for pod in pods:
        containers = pod["containers"] + pod.get("initContainers", [])
        listed = {claim["name"] for each in containers for claim in each.get("resources", {}).get("claims", ())}
        assert {claim["name"] for claim in pod.get("resourceClaims", ())} == listed


@pytest.mark.parametrize("name", JOBS)
def test_pods_find_their_claims(drarun, name):
    manifests = documents(render(drarun, name))
    made = {each["metadata"]["name"] for each in manifests if each["kind"].startswith("ResourceClaim")}
    domains = {each["spec"]["channel"]["resourceClaimTemplate"]["name"] for each in manifests
               if each["kind"] == "ComputeDomain"}
    ours = {claim.get("resourceClaimName") or claim["resourceClaimTemplateName"]
            for pod in pods_of(manifests) for claim in pod.get("resourceClaims", ()) if claim["name"] != "scratch" and not claim["name"].startswith("shared-")}
    assert ours == made | domains


def test_verbs_of_the_role_are_counted(drarun):
    """The least that the launcher needs; a further one needs a reason in docs/design/010-claims.md."""
    roles = [each for each in documents(drarun("install", "-n", "train").ok().out) if each["kind"] == "Role"]
    assert [each["metadata"]["namespace"] for each in roles] == ["train"]
    rules = roles[0]["rules"]
    assert all("*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"] for rule in rules)
    assert not any("secrets" in rule["resources"] for rule in rules)
    assert sum(len(rule["verbs"]) for rule in rules) == 35


def test_verbs_of_the_users_role_are_counted(drarun):
    """What submitting, watching and cancelling takes (tests/test_cluster_jobs.py holds it against a real server)."""
    (role,) = documents(drarun("install", "-n", "train", "--user-role").ok().out)
    assert (role["kind"], role["metadata"]["name"], role["metadata"]["namespace"]) == ("Role", "drarun-user", "train")
    assert all("*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"] for rule in role["rules"])
    assert {verb for rule in role["rules"] for verb in rule["verbs"] if "secrets" in rule["resources"]} == {"create"}
    assert sum(len(rule["verbs"]) for rule in role["rules"]) == 46
    both = drarun("install", "--user-role", "--cluster-role")
    assert both.rc == 64 and "give one of them" in both.err


def test_verbs_of_the_controllers_role_are_counted(drarun):
    """Those of a controller of all namespaces, but for what belongs to the cluster (tests/test_cluster_controller.py holds it against a real server)."""
    account, role, binding = documents(drarun("install", "-n", "train", "--controller-role").ok().out)
    assert {each["namespace"] for each in (account["metadata"], role["metadata"], binding["metadata"], *binding["subjects"])} == {"train"}
    assert (role["kind"], binding["roleRef"]["kind"], binding["subjects"][0]["name"]) == ("Role", "Role", account["metadata"]["name"])
    assert sum(len(rule["verbs"]) for rule in role["rules"]) == 31
    whole = yaml.safe_load_all((SOURCE / "deploy/controller.yaml").read_text())
    everywhere = {(group, name, verb) for each in whole if each["metadata"]["name"] == "drarun-controller" for rule in each.get("rules", ()) for group in rule["apiGroups"]
                  for name in rule["resources"] for verb in rule["verbs"]}
    here = {(group, name, verb) for rule in role["rules"] for group in rule["apiGroups"] for name in rule["resources"] for verb in rule["verbs"]}
    assert everywhere - here == {("", "nodes", "list"), *(("resource.k8s.io", name, "list") for name in ("deviceclasses", "resourceslices"))}
    assert here <= everywhere


@pytest.mark.parametrize("role", [[], ["--controller-role"]], ids=str)
def test_secrets_of_the_account(drarun, role):
    """With which the pods of the printed account pull from a private registry."""
    plain, made = (documents(drarun("install", "-n", "train", *role, *more).ok().out)
                   for more in ([], ["--image-pull-secret", "a", "--image-pull-secret=b"]))
    assert made[0].pop("imagePullSecrets") == [{"name": "a"}, {"name": "b"}]
    assert made == plain and made[0]["kind"] == "ServiceAccount"


@pytest.mark.parametrize("other", ["--cluster-role", "--user-role", "--crd"])
def test_secrets_of_no_account(drarun, other):
    refused = drarun("install", other, "--image-pull-secret", "a")
    assert refused.rc == 64 and "--image-pull-secret is of an account" in refused.err


def test_cluster_role_reads_devices_and_nothing_else(drarun):
    role, binding = documents(drarun("install", "-n", "train", "--cluster-role").ok().out)
    assert {(verb, name) for rule in role["rules"] for verb in rule["verbs"] for name in rule["resources"]} == {
        ("list", name) for name in ("nodes", "resourceslices", "deviceclasses", "devicetaintrules")}
    assert (role["kind"], binding["roleRef"]["name"]) == ("ClusterRole", role["metadata"]["name"])
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "drarun-launcher", "namespace": "train"}]


def test_owner_here(drarun):
    """Without a launcher Job the ConfigMap owns the rest."""
    path = DATA / "aligned.job.yaml"
    made = documents(drarun("render", "--here", "--owner-uid", "u-1", path).ok().out)
    first, *others = made
    assert (first["kind"], first["metadata"]["name"]) == ("ConfigMap", "aligned-status")
    assert "ownerReferences" not in first["metadata"]
    assert {(owner["kind"], owner["name"], owner["uid"]) for each in others
            for owner in each["metadata"]["ownerReferences"]} == {("ConfigMap", "aligned-status", "u-1")}


def test_a_key_is_never_printed(drarun):
    for name in JOBS:
        secrets = [each for each in documents(render(drarun, name)) if each["kind"] == "Secret"]
        assert [each["stringData"]["key"].startswith("PLACEHOLDER") for each in secrets] == [True]


def test_image_by_environment_and_option(drarun):
    path = DATA / "plain.job.yaml"
    own = drarun("render", path, env={"DRARUN_IMAGE": "registry.example/a:1"}).ok().out
    assert "image: registry.example/a:1" in own and "ghcr.io" not in own
    option = drarun("render", "--image", "b:2", path, env={"DRARUN_IMAGE": "registry.example/a:1"}).ok().out
    assert "image: b:2" in option and "registry.example" not in option


@pytest.mark.parametrize("args,status,message", [
    ([], 64, "expected one file"),
    (["--api", "v2", "aligned"], 64, "v1beta1"),
    (["--format", "xml", "aligned"], 64, "--format"),
    (["--step", "4", "aligned"], 64, "step 4: the job's ladder has 3"),
    (["--step", "2", "plain"], 64, "step 2: the job's ladder has 1"),
    (["--claims", "direct", "queue"], 64, "spec.queue needs template"),
    (["missing"], 65, "No such file"),
])
def test_refused_command_lines(drarun, args, status, message):
    files = [DATA / f"{word}.job.yaml" if word in (*JOBS, "missing") else word for word in args]
    result = drarun("render", *files)
    assert (result.rc, result.out) == (status, "")
    assert message in result.err


@pytest.mark.parametrize("devices,profile,message", [
    ("{gpus: {count: 17, class: a}, nics: {count: 16, class: b}}", "auto", "a worker's claim holds 32"),
    ("{gpus: {count: 4, class: a}, nics: {count: 1, class: b}}", "gke-a4x", "ask for 4"),
])
def test_refused_jobs(drarun, tmp_path, devices, profile, message):
    path = tmp_path / "job.yaml"
    path.write_text(f"spec: {{workers: 1, image: i, command: [c], devices: {devices}, nccl: {{profile: {profile}}}}}\n")
    result = drarun("render", path)
    assert (result.rc, result.out) == (65, "")
    assert message in result.err and "job.yaml" in result.err


def test_help(drarun):
    out = drarun("render", "--help").ok().out
    assert out.startswith("Usage: drarun render [options] FILE\n") and "--image-volume" in out


def test_a_sites_machine(drarun, tmp_path):
    """Claims and pods follow the site's own machine type, from the same file as its variables."""
    site = tmp_path / "site.yaml"
    site.write_text("""
profiles:
- name: ours
  variables: []
  machine: {gpus: 4, nics: 4, wholeNode: true, noRoot: its switches are virtual,
            mounts: [{name: fabric, host: /opt/fabric, pod: /usr/local/fabric}]}
""")
    job = tmp_path / "job.yaml"
    job.write_text("""
apiVersion: drarun.dev/v1alpha1
kind: DraJob
metadata: {name: j}
spec:
  workers: 1
  image: i
  command: [run]
  devices: {gpus: {class: gpu.nvidia.com, count: 4}, nics: {class: dranet, count: 4}, align: preferred}
  nccl: {profile: ours}
""")
    unnamed = tmp_path / "unnamed.yaml"
    unnamed.write_text(job.read_text().replace("nccl: {profile: ours}", "nccl: {}"))
    plain = documents(drarun("render", unnamed).ok().out)
    printed = drarun("render", "--profiles", site, job).ok()
    assert "nccl.profile: in the cluster drarun knows only its built-in profiles, not ours of the site's file" in printed.err
    assert not drarun("render", unnamed, "--profiles", site).ok().err
    ours = documents(printed.out)
    claims = [[each for each in made if each["kind"] == "ResourceClaim"][0]["spec"]["devices"] for made in (plain, ours)]
    assert [{each["matchAttribute"].split("/")[1] for each in claim["constraints"]} for claim in claims] == [
        {"pcieRoot"}, {"numaNode"}]
    assert [v["hostPath"]["path"] for v in next(pods_of(ours))["volumes"] if "hostPath" in v] == ["/opt/fabric"]
    job.write_text(job.read_text().replace("dranet, count: 4", "dranet, count: 2"))
    refused = drarun("render", "--profiles", site, job)
    assert refused.rc == 65 and "ours hands out its 4 NICs" in refused.err
