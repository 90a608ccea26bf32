# SPDX-License-Identifier: Apache-2.0
"""Lines as people type them, right, wrong and half right, each with the message that it must produce (data/typed-lines.txt)."""
import json
import shlex
import shutil

import pytest

from support.build import SOURCE
from support.ports import free_port
from support.registry import Registry

JOB = "metadata: {name: one}\nspec: {workers: 1, image: a, command: ['true']}\n"


def read_table():
    for number, line in enumerate((SOURCE / "tests/data/typed-lines.txt").read_text().splitlines(), 1):
        if line and not line.startswith("#"):
            status, typed, part = line.split(" | ", 2)
            yield pytest.param(int(status), typed, part, id=f"{number}: {typed}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("typed")
    (folder / "job.yaml").write_text(JOB)
    (folder / "bad.yaml").write_text(JOB.replace("workers", "workerz"))
    shutil.copy(SOURCE / "tests/data/seeds/mpijob-1x1.yaml", folder / "mpijob.yaml")
    shutil.copy(SOURCE / "docs/bench/nccl-tests.txt", folder / "nccl.txt")
    shutil.copy(SOURCE / "examples/clusters/a4-two-nodes.json", folder / "slices.json")
    with Registry(port=free_port()) as registry:  # whose port nobody listens at any more
        (folder / "config").write_text(registry.kubeconfig(folder).read_text())
    return folder


@pytest.mark.gate
@pytest.mark.parametrize("status, typed, part", [*read_table()])
def test_typed(drarun, folder, status, typed, part):
    program, *words = shlex.split(typed)
    assert program == "drarun"
    result = drarun(*words, cwd=folder, env={"KUBECONFIG": str(folder / "config")})
    said = result.out + result.err
    assert result.rc == status and part in said, result
    if status in (64, 66, 69) and words:  # one sentence, and no screen of options
        assert len(result.err.splitlines()) == 1, result


def test_as_many_as_promised():
    lines = [each.values[1] for each in read_table()]
    assert len(lines) >= 150 and len({*lines}) >= len(lines) - 2
