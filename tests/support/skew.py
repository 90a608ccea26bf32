# SPDX-License-Identifier: Apache-2.0
"""The two sides of tests of version skew: this tree's build, and the release of tests/base-release (scripts/fetch-base)."""
import functools
import subprocess
from pathlib import Path

import pytest

from .build import BUILD, SOURCE, patience

FETCH_S = 1800


class Side:
    """build: bin, libexec and lib of its programs. source: its headers, package, chart and examples."""

    def __init__(self, name, build, source):
        self.name, self.build, self.source = name, build, source

    def __repr__(self):
        return self.name

    def program(self, name="drarun"):
        return self.build / "bin" / name

    @property
    def library(self):
        return self.build / "lib/libdrarun.so.0"


TREE = Side("tree", BUILD, SOURCE)


@functools.cache
def base():
    """A base that cannot be had is a failure, not a skip: the promises would be held by nothing."""
    run = subprocess.run([SOURCE / "scripts/fetch-base"], capture_output=True, text=True, timeout=patience(FETCH_S))
    if run.returncode != 0:
        pytest.fail(f"scripts/fetch-base: {run.stderr.strip()[-2000:]}", pytrace=False)
    folder = Path(run.stdout.strip())
    return Side("base", folder / "build", folder / "source")


SIDES = {"tree": lambda: TREE, "base": base}
PAIRS = [("base", "tree"), ("tree", "base")]


def pairs(first, second):
    """The test runs with its fixture `sides` as (base, tree) and as (tree, base); first and second say what they are of."""
    return pytest.mark.parametrize("sides", PAIRS, indirect=True, ids=[f"{first}-of-{one}-{second}-of-{other}" for one, other in PAIRS])


@pytest.fixture
def sides(request):
    return tuple(SIDES[name]() for name in request.param)


# ---- JSON documents ----

def kind(value):
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__


def reworded(value):
    """A sentence, whose words may be others."""
    return isinstance(value, str) and " " in value


RETIRED = {
    "UCX_TLS": "it took GPU memory from UCX; UCX_NET_DEVICES alone keeps MPI on TCP",
    "UCX_IB_ROCE_LOCAL_SUBNET": "it made all nodes of GKE unreachable",
}
"""Variables that were derived once, and why they are not any more."""


def differences(old, new, values=True, at=""):
    """What a reader of the old document would not find in the new one: members that are gone or have another type; with values, also
    other values and lists of another length. More members are no difference, nor are other words in a sentence."""
    if old is None and not values:
        return  # what was not known
    if kind(old) != kind(new):
        yield f"{at or 'the document'}: expected {kind(old)} {old!r}, found {kind(new)} {new!r}"
    elif isinstance(old, dict):
        for name, value in old.items():
            if name in RETIRED:
                continue
            if name in new:
                yield from differences(value, new[name], values, f"{at}.{name}")
            else:
                yield f"{at}.{name} is gone: {value!r}"
    elif isinstance(old, list):
        if values and len(old) != len(new):
            yield f"{at}: expected {len(old)} items, found {len(new)}: {new!r}"
        for i, (one, other) in enumerate(zip(old, new)):
            yield from differences(one, other, values, f"{at}[{i}]")
    elif values and old != new and not reworded(old):
        yield f"{at}: expected {old!r}, found {new!r}"
