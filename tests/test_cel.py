# SPDX-License-Identifier: Apache-2.0
"""Selectors against Kubernetes' own code: cel_eval (ours) and tests/cel-oracle (Kubernetes') must agree on value, error
and cost refusal; where both give a value, on its cost, and where both compile, on the worst cost that decides admission."""
import functools
import json
import os
import re
import subprocess

import pytest

from support.build import patience
from support.cel_devices import DEVICES
from support.cel_expressions import expressions

SEED = 1
COUNT = int(os.environ.get("DRARUN_CEL_EXPRESSIONS", 2000))
# The order of a Go map's keys is random, and with it the cost of a macro that stops early.
UNORDERED = re.compile(r'device\.(attributes|capacity)(\["[^"]*"\])?\.(all|exists)')


@functools.cache
def fetched(source):
    run = subprocess.run([source / "scripts" / "fetch-cel-oracle"], capture_output=True, text=True, timeout=patience(1200))
    if run.returncode != 0:
        return None, f"scripts/fetch-cel-oracle: {run.stderr.strip()[-300:]}"
    return run.stdout.strip(), ""


@pytest.fixture
def oracle(source):
    program, reason = fetched(source)
    if not program:
        pytest.skip(reason)
    return program


@pytest.fixture
def ours(build):
    return build / "tests" / "programs" / "cel_eval"


def ask(program, questions):
    lines = "".join(json.dumps({"expression": text, "driver": driver, "device": device}) + "\n"
                    for text, (driver, device) in questions)
    run = subprocess.run([program], input=lines, capture_output=True, text=True, timeout=patience(600))
    assert run.returncode == 0, run.stderr[-2000:]
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(answers) == len(questions)
    return answers


def verdict(answer):
    return answer["kind"] if answer["kind"] in ("true", "false", "cost") else "error"


def differ(text, theirs, ours):
    if "compile" not in (theirs["kind"], ours["kind"]) and theirs.get("estimate", 0) != int(ours["estimate"]):
        return True
    if verdict(theirs) != verdict(ours):
        return True
    return (theirs["kind"] in ("true", "false") and not UNORDERED.search(text)
            and theirs.get("cost", 0) != ours["cost"])


def compare(oracle, ours, questions):
    theirs, mine = ask(oracle, questions), ask(ours, questions)
    differences = [f"{text}\n  on {driver} {device['name']}\n  Kubernetes: {a}\n  ours: {b}"
                   for (text, (driver, device)), a, b in zip(questions, theirs, mine) if differ(text, a, b)]
    differences.sort(key=len)
    assert not differences, f"{len(differences)} of {len(questions)}:\n" + "\n".join(differences[:10])
    return theirs


def published(source):
    text = (source / "tests" / "cel-oracle" / "published.txt").read_text()
    return text.partition("\n")[2].strip("\n").split("\n\n")


def test_published(oracle, ours, source):
    theirs = compare(oracle, ours, [(text, device) for text in published(source) for device in DEVICES])
    assert {verdict(answer) for answer in theirs} == {"true", "false", "error"}


def test_generated(oracle, ours):
    texts = expressions(SEED, COUNT)
    theirs = compare(oracle, ours, [(text, DEVICES[i % len(DEVICES)]) for i, text in enumerate(texts)])
    seen = [verdict(answer) for answer in theirs]
    # the comparison says little where all is one error
    assert seen.count("true") > COUNT / 10 and seen.count("false") > COUNT / 10
    assert "cost" in seen or COUNT < 2000
    refused = [answer.get("estimate", 0) > 1000000 for answer in theirs if answer["kind"] != "compile"]
    assert COUNT / 20 < refused.count(True) < COUNT / 5


def test_refusals_name_the_place(ours):
    """What we have not is refused before any device is looked at, by name and column."""
    texts = {"true && ip('1.2.3.4').isCanonical()": "column 9: not supported: ip",
             "[1].transformList(i, v, v) == []": "not supported: transformList",
             "[3, 1].sort() == [1, 3]": "column 1: not supported: sort"}
    answers = ask(ours, [(text, DEVICES[0]) for text in texts])
    for (text, wanted), answer in zip(texts.items(), answers):
        assert answer["kind"] == "compile" and wanted in answer["text"], (text, answer)
