# SPDX-License-Identifier: Apache-2.0
"""docs/gke.md: what it shows after `$` is what our programs print before an API server with the objects of two A4 nodes, and its other
commands of ours have options that exist. What Google's, NVIDIA's and DraNet's pages say is not run."""
import json
import os
import re
import shlex

import pytest
import yaml

from support.build import BUILD, SOURCE
from support.cluster import Cluster
from support.cluster.devices import fake_machine

PAGE = (SOURCE / "docs/gke.md").read_text()
NAMESPACE = "train"
# Commands of others that the page shows without `$`, and nobody runs here.
OTHERS = {"gcloud", "kubectl", "helm", "skopeo", "scripts/image", "export"}
CLASSES = {"gpu.nvidia.com": "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'",
           "mrdma.google.com": "device.driver == 'mrdma.google.com' && device.attributes['dra.net'].rdma == true"}


def blocks():
    """The indented blocks of the page, without their indentation."""
    return [re.sub(r"^ {4}", "", each, flags=re.M) for each in re.findall(r"(?m)(?:^ {4}.*\n)+", PAGE)]


JOB, = (each for each in blocks() if each.startswith("apiVersion:"))


def shown():
    """[(command, the lines that the page shows of its output)]"""
    text = "".join(each for each in blocks() if each.startswith("$ "))
    return [(first, rest) for first, *rest in (each.splitlines() for each in re.split(r"(?m)^\$ ", text)[1:])]


def typed():
    """Commands without `$`, each in one line."""
    text = "".join(each for each in blocks() if not each.startswith(("$ ", "apiVersion:"))).replace("\\\n", " ")
    lines = (shlex.split(line, comments=True) for line in text.splitlines())
    return [words for words in lines if words]


def test_commands_are_found():
    """Of every kind, and of no other."""
    assert len(shown()) == 8 and {command.split()[0] for command, _ in shown()} == {"sed", "kubectl", "drarun"}
    assert {words[0] for words in typed()} == {"drarun", *OTHERS}
    assert all(lines for _, lines in shown())


def test_options_exist(drarun):
    """Of our commands that need a cluster of GKE."""
    ours = [words[1:] for words in typed() if words[0] == "drarun"]
    assert {words[0] for words in ours} == {"run", "status", "logs", "bench", "accept"}
    for words in ours:
        verb = words[:2] if words[:2] == ["bench", "fabric"] else words[:1]
        screen = drarun("help", *verb).ok().out
        options = {word for word in words if word.startswith("-")}
        assert options and all(re.search(rf"(?m)^ +(-\w, )?{option}\b|^ +{option}, ", screen) for option in options), (words, screen)


class Reader:
    """Types the page's commands beside a folder like the source's, in front of the API server."""

    def __init__(self, cluster, folder):
        self.cluster, self.folder = cluster, folder
        for name in ("examples", "docs"):
            (folder / name).symlink_to(SOURCE / name)
        (folder / "all-gather.yaml").write_text(JOB)

    def type(self, command):
        env = {"KUBECONFIG": str(self.cluster.kubeconfig(namespace=NAMESPACE)), "DRARUN_IMAGE": "example/drarun:1",
               "PATH": f"{BUILD}/bin:{self.cluster.programs}:{os.environ['PATH']}"}
        return self.cluster.in_ns(["bash", "-o", "pipefail", "-c", command], env=env, cwd=self.folder)


def of_gke(node, *slices):
    """GKE's own driver publishes the NICs (llm-d's guide for GKE); the rest is as DraNet publishes it."""
    for each in slices:
        if each["spec"]["driver"] == "dra.net":
            each["spec"]["driver"] = "mrdma.google.com"
            each["metadata"]["name"] = f"{node['metadata']['name']}-mrdma.google.com"


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    with Cluster() as cluster:
        for name in ("a4-0", "a4-1"):
            objects = fake_machine("a4-highgpu-8g", name)
            of_gke(*objects)
            cluster.api.make(*objects)
        small = json.loads(json.dumps(fake_machine("a4-highgpu-8g", "e2-0")[0]))
        small["metadata"]["labels"] = {"kubernetes.io/hostname": "e2-0", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
        cluster.api.make(small, *({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name},
                                   "spec": {"selectors": [{"cel": {"expression": expression}}]}} for name, expression in CLASSES.items()))
        yield Reader(cluster, tmp_path_factory.mktemp("gke"))


def follows(lines, text):
    """The lines are the text's, in their order; "..." stands for any number of others."""
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in lines)
    return re.fullmatch(pattern, text)


def test_what_the_page_shows(reader):
    """In the page's order: each command does what it shows."""
    for command, lines in shown():
        done = reader.type(command)
        assert done.returncode == 0, (command, done.stderr)
        assert follows([line.rstrip() for line in lines], re.sub(r"(?m) +$", "", done.stdout)), f"$ {command}\n{done.stdout}"


def test_job_is_paired(reader):
    """Each GPU with the NIC of its PCIe root, on both nodes; the profile is the one that the page names."""
    done = reader.type("drarun plan all-gather.yaml --live -o json")
    answer = json.loads(done.stdout)
    assert done.returncode == 0 and answer["prediction"]["shortage"] is None, done.stderr
    assert {each["node"] for each in answer["prediction"]["workers"]} == {"a4-0", "a4-1"}
    assert answer["plan"]["profile"] == yaml.safe_load(JOB)["spec"]["nccl"]["profile"]
    assert not {each["code"] for each in answer["plan"]["warnings"]} & {"PROFILE_NOT_NAMED", "MISALIGNED_SYS", "NIC_NOT_RDMA"}


def test_nothing_is_made(reader):
    """By a plan and a dry run."""
    assert not reader.cluster.api.get("batch/v1", "Job", namespace=NAMESPACE)
    assert not reader.cluster.api.get("resource.k8s.io/v1", "ResourceClaim", namespace=NAMESPACE)
