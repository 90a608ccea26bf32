# SPDX-License-Identifier: Apache-2.0
"""Helm itself, and what it makes of deploy/chart."""
import functools
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from .build import SOURCE, patience
from .cluster.daemon import GO

CHART = SOURCE / "deploy/chart"
RELEASE, NAMESPACE = "drarun", "drarun-system"
KUBERNETES = "1.36.0"  # the first one with all that the chart makes
BUILD_S = 900


@functools.cache
def program():
    """Helm's."""
    run = subprocess.run([SOURCE / "scripts/fetch-helm"], capture_output=True, text=True, timeout=patience(BUILD_S))
    if run.returncode != 0:
        pytest.skip(f"scripts/fetch-helm: {run.stderr.strip()[-300:]}")
    return Path(run.stdout.strip())


class Helm:
    """folder: for its files. cluster: whose administrator it is; None: it reaches none."""

    def __init__(self, folder, cluster=None):
        self.folder, self.cluster = folder, cluster

    def run(self, *words):
        """Its CompletedProcess."""
        env = {f"HELM_{name}_HOME": str(self.folder / name) for name in ("CACHE", "CONFIG", "DATA")}
        argv = [program(), *words]
        if self.cluster:
            return self.cluster.in_ns(argv, 300, env=env)
        return subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=patience(), env={**os.environ, **GO, **env, "KUBECONFIG": os.devnull})

    def values(self, values):
        """The words that give these values."""
        file = self.folder / "values.yaml"
        file.write_text(yaml.safe_dump(values))
        return "--values", file

    def text(self, *words, chart=CHART, kubernetes=KUBERNETES, namespace=NAMESPACE, **values):
        """The manifests of a release with these values, or what is wrong with them."""
        run = self.run("template", RELEASE, chart, "--namespace", namespace, "--kube-version", kubernetes, *self.values(values), *words)
        return run.returncode == 0, run.stdout if run.returncode == 0 else run.stderr

    def rendered(self, **how):
        """{(kind, name): object} of text()."""
        right, text = self.text(**how)
        assert right, text
        return named(yaml.safe_load_all(text))

    def refusal(self, **how):
        """Why text() makes nothing."""
        right, text = self.text(**how)
        assert not right, text
        return text


def named(objects):
    """{(kind, name): object}"""
    return {(each["kind"], each["metadata"]["name"]): each for each in objects if each}
