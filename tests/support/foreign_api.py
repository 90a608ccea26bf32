# SPDX-License-Identifier: Apache-2.0
"""tests/foreign-api: the Go types of KubeRay and Kubeflow Trainer, and their CRDs and others beside the program."""
import functools
import json
import subprocess
from pathlib import Path

import yaml

from .build import SOURCE, patience


@functools.cache
def fetched():
    """The program, or None and the reason why it is not there."""
    run = subprocess.run([SOURCE / "scripts" / "fetch-foreign-api"], capture_output=True, text=True, timeout=patience(900))
    if run.returncode != 0:
        return None, f"scripts/fetch-foreign-api: {run.stderr.strip()[-300:]}"
    return Path(run.stdout.strip()), ""


def crds(program, *groups):
    """Those of these API groups."""
    return [yaml.safe_load(path.read_text()) for group in groups for path in sorted(program.parent.glob(f"{group}_*.yaml"))]


def ask(program, manifests):
    """Each manifest as its type writes it again, or {"error": why it does not read it}."""
    run = subprocess.run([program], input="".join(json.dumps(each) + "\n" for each in manifests), capture_output=True,
                         text=True, timeout=patience())
    assert run.returncode == 0, run.stderr[-2000:]
    return [json.loads(line) for line in run.stdout.splitlines()]
