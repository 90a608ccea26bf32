# SPDX-License-Identifier: Apache-2.0
"""docs/first-job.md, and what README.md says of clusters, on two real nodes: their commands, in their order and as they stand there, do what
the page says."""
import json
import os
import re

import pytest

from support import pages
from support.build import BUILD, SOURCE
from support.cluster import Cluster

PAGE = "docs/first-job.md"
SECTIONS = {"README.md": "On a cluster", PAGE: None}  # None: the whole page
IMPORT = "ctr -n k8s.io images import drarun.tar"
KIND = "kind load image-archive drarun.tar"
DEPLOYED = "deploy/controller.yaml"

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
    "kubectl wait --for=condition=Succeeded drajob/hello -n train --timeout=5m": (0, r"condition met"),
}


def commands(page):
    """Those that are typed here, and the import for which kind has its own command."""
    return [each for each in pages.commands(page, SECTIONS[page]) if each.text == KIND or each.text not in pages.LEFT_OUT[page]]


def typed():
    """Of both pages, without kind's."""
    return [each for page in SECTIONS for each in commands(page) if each.text != KIND]


def job_of_the_page():
    lines, = (each for each in pages.blocks(PAGE) if each[0].startswith("apiVersion:"))
    return "".join(f"{line}\n" for line in lines)


def test_commands_are_found():
    """The reader finds the pages' commands: each that SAYS names is one, and both pages show what the first job prints."""
    found = {page: [each.text for each in commands(page)] for page in SECTIONS}
    assert {*SAYS, IMPORT, KIND} <= {*found[PAGE]} and KIND in found["README.md"] and len(found[PAGE]) >= 20
    assert [each.shown for each in typed() if each.shown] == [["rank 0 of 4 on hello-w-0", "..."]] * 2


class Reader:
    """Who types the commands, in a folder like the source's, with the namespace of the page in the kubeconfig."""

    def __init__(self, cluster, folder):
        self.cluster, self.folder, self.exported = cluster, folder, {}
        for name in ("scripts", "deploy", "examples"):
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
        """The pages' import, on each node; and the image that is to be pulled elsewhere, under the name that the page has."""
        for node in self.cluster.nodes:
            process = node.start_import(self.folder / "drarun.tar")
            assert process.wait() == 0, process.stderr.read()
            process.stderr.close()
            run = node.run(["ctr", "-n", "k8s.io", "images", "tag", "--force", "localhost/busybox:1", "docker.io/library/busybox:1.36"])
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


@pytest.fixture(scope="module")
def cluster():
    """Without our image, which the pages import."""
    with Cluster(nodes=2) as made:
        yield made


@pytest.fixture
def reader(cluster, tmp_path):
    cluster.device_classes()
    made = Reader(cluster, tmp_path)
    yield made
    for command in ("drarun cancel torchrun", f"kubectl delete --ignore-not-found --wait=false -f {DEPLOYED}", "kubectl delete --ignore-not-found crd drajobs.drarun.dev",
                    "kubectl delete --ignore-not-found namespace train"):  # the next test makes it again
        made.type(command)


def shape(line):
    return re.sub(r"\d+", "N", line)


@pytest.mark.parametrize("page", SECTIONS)
def test_the_page(reader, page):
    before = {"drarun exec hello 3 -- env": reader.begin_a_hello_that_stays, "drarun cancel hello": reader.end_it}
    imported = False
    for _, command, shown in commands(page):
        if command in (KIND, IMPORT):
            if not imported:
                reader.into_the_nodes()
            imported = True
            continue
        before.get(command, lambda: None)()
        status, out, err = reader.type(command)
        wanted, says = SAYS.get(command, (0, ""))
        assert status == wanted and re.search(says, out), (command, status, out, err)
        if shown:  # lines of ranks come in any order
            lines = out.splitlines()
            assert {each for each in shown if each != "..."} <= {*lines}, (command, out, err)
            assert {*map(shape, lines)} == {shape(each) for each in shown if each != "..."} and len(lines) == 4, (command, out, err)
