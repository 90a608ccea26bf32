# SPDX-License-Identifier: Apache-2.0
"""docs/first-job.md on two real nodes: its commands, in their order and as they stand there, do what the page says."""
import json
import os
import re

import pytest

from support.build import BUILD, SOURCE

PAGE = "docs/first-job.md"
IMPORT = "ctr -n k8s.io images import drarun.tar"
DEPLOYED = "deploy/controller.yaml"

# What this machine cannot do, or another test does.
LEFT_OUT = {
    "scripts/demo": "installs packages and builds in the source's folder; the build under test is there",
    "kind load image-archive drarun.tar": "needs kind and Docker; containerd's import, the next row, is run on each node",
    "skopeo copy oci-archive:drarun.tar docker://REGISTRY/drarun:1": "needs a registry",
    "helm install drarun deploy/chart -n drarun-system --create-namespace --set-string image.repository=localhost/drarun,image.tag=1":
        "makes again what the two commands before it have made; tests/test_chart.py installs the chart",
}

# What a command prints here that the page does not show, with its status. No driver offers GPUs in this cluster: doctor and plan say so.
SAYS = {
    "drarun doctor": (1, r"(?m)^ok +api "),
    "drarun validate job.yaml": (0, r"^job\.yaml: ok \(job torchrun"),
    "drarun plan job.yaml --live": (75, r"(?m)^  gpu: 0 of 0 devices"),
    "drarun submit job.yaml": (0, r"^torchrun\n$"),
    "drarun status hello": (0, r"^train/hello: succeeded"),
    "drarun logs -f hello --rank 3": (0, r"^rank 3 of 4 on hello-w-1\n$"),
    "drarun exec hello 3 -- env": (0, r"(?m)^DRARUN_HOST=hello-w-1$"),
    "kubectl get drajobs -n train": (0, r"(?m)^hello "),
    "kubectl wait --for=condition=Succeeded drajob/hello --timeout=5m": (0, r"condition met"),
}


def blocks(text):
    """The indented blocks of a page, without their indentation."""
    return [re.sub(r"^ {4}", "", each, flags=re.M) for each in re.findall(r"(?m)(?:^ {4}.*\n)+", text)]


def uncommented(line):
    """[the command, and the one that its comment adds]"""
    command, _, comment = re.sub(r"\s+# ", "\0", line, count=1).partition("\0")
    also = re.search(r"(?:^|; | )and: (\S.*)", f" {comment}")
    return [command.strip(), *([also[1].strip()] if also else [])]


def commands():
    """[(command, the lines that the page shows of its output, or None)], in the page's order."""
    text = (SOURCE / PAGE).read_text()
    rows = re.findall(r"(?m)^\| [^|]* \| `([^`]+)`", text.partition("Where pods find it:")[2].partition("export ")[0])
    found = []
    for block in blocks(text):
        if block.startswith("apiVersion:"):
            continue
        if block.startswith("$ "):
            first, *lines = block.splitlines()
            found.append((first[2:], lines))
            continue
        for line in block.splitlines():
            found += [(command, None) for command in uncommented(line)]
        if "scripts/image" in block:
            found += [(row, None) for row in rows]
    return found


def job_of_the_page():
    block, = (each for each in blocks((SOURCE / PAGE).read_text()) if each.startswith("apiVersion:"))
    return block


def test_commands_are_found():
    """The reader finds the page's commands: each that a list above names is one, and what is left out is not all."""
    found = [command for command, _ in commands()]
    assert {*LEFT_OUT, *SAYS, IMPORT} <= {*found}
    assert len(found) - len(LEFT_OUT) >= 20 and all(command.split()[0] in ("scripts/demo", "scripts/image", "kind", "ctr", "skopeo", "export", "kubectl", "drarun", "helm")
                                                   for command in found)
    assert [lines for _, lines in commands() if lines] == [["rank 0 of 4 on hello-w-0", "..."]]


class Reader:
    """Who types the commands, in a folder like the source's, with the namespace of the page in the kubeconfig."""

    def __init__(self, cluster, folder):
        self.cluster, self.folder, self.exported = cluster, folder, {}
        for name in ("scripts", "deploy"):
            (folder / name).symlink_to(SOURCE / name)
        (folder / "hello.yaml").write_text(job_of_the_page())

    def type(self, command, timeout=400):
        """(status, output, what it said beside)"""
        if command.startswith("export "):
            name, _, value = command.removeprefix("export ").partition("=")
            self.exported[name] = value
            return 0, "", ""
        env = {**self.exported, "DRARUN_BUILD": str(BUILD), "KUBECONFIG": str(self.cluster.kubeconfig(namespace="train")),
               "PATH": f"{BUILD}/bin:{self.cluster.programs}:{os.environ['PATH']}"}
        run = self.cluster.in_ns(["bash", "-o", "pipefail", "-c", command], timeout, env=env, cwd=self.folder)
        return run.returncode, run.stdout, run.stderr

    def into_the_nodes(self):
        """The page's import, on each node; and the two images that are to be pulled elsewhere, under the names that the page has."""
        deployed, = re.findall(r"(?m)^ +image: (\S+)$", (SOURCE / DEPLOYED).read_text())
        for node in self.cluster.nodes:
            process = node.start_import(self.folder / "drarun.tar")
            assert process.wait() == 0, process.stderr.read()
            process.stderr.close()
            for name, ours in (("docker.io/library/busybox:1.36", "localhost/busybox:1"), (deployed, "localhost/drarun:1")):
                run = node.run(["ctr", "-n", "k8s.io", "images", "tag", "--force", ours, name])
                assert run.returncode == 0, run.stderr

    def hello_is(self, phase):
        self.cluster.wait(lambda: self.type("drarun status hello")[1],
                          lambda: json.loads(self.type("drarun status hello -o json")[1] or "{}").get("phase") == phase, 120)

    def begin_a_hello_that_stays(self):
        """exec needs a job that runs, and the page's own has ended."""
        (self.folder / "stays.yaml").write_text(job_of_the_page().replace("on $DRARUN_HOST'", "on $DRARUN_HOST; sleep 1000'"))
        for command in ("drarun cancel hello", "drarun submit stays.yaml"):
            status, out, err = self.type(command)
            assert status == 0, (command, out, err)
        self.hello_is("running")

    def end_it(self):
        """So that the page finds what it left, a job that has ended."""
        assert self.type("drarun cancel hello")[0] == 0
        self.hello_is("ended")


@pytest.fixture
def reader(cluster, tmp_path):
    cluster.device_classes()
    made = Reader(cluster, tmp_path)
    yield made
    for command in ("drarun cancel torchrun", f"kubectl delete --ignore-not-found --wait=false -f {DEPLOYED}", "kubectl delete --ignore-not-found crd drajobs.drarun.dev",
                    "kubectl delete --ignore-not-found --wait=false namespace train"):
        made.type(command)


def shape(line):
    return re.sub(r"\d+", "N", line)


def test_the_page(reader):
    before = {"drarun exec hello 3 -- env": reader.begin_a_hello_that_stays, "drarun cancel hello": reader.end_it}
    instead = {IMPORT: reader.into_the_nodes}
    for command, shown in commands():
        if command in LEFT_OUT:
            continue
        if command in instead:
            instead[command]()
            continue
        before.get(command, lambda: None)()
        status, out, err = reader.type(command)
        wanted, says = SAYS.get(command, (0, ""))
        assert status == wanted and re.search(says, out), (command, status, out, err)
        if shown:  # lines of ranks come in any order
            lines = out.splitlines()
            assert {each for each in shown if each != "..."} <= {*lines}, (command, out, err)
            assert {*map(shape, lines)} == {shape(each) for each in shown if each != "..."} and len(lines) == 4, (command, out, err)
