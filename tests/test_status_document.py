# SPDX-License-Identifier: Apache-2.0
"""The status document as jobs/status/status_doc.c builds it, held against the published schema."""

import copy
import json
import subprocess
from pathlib import Path

import pytest

from support.build import patience

jsonschema = pytest.importorskip("jsonschema", reason="no python3-jsonschema; run scripts/setup --test")
SOURCE = Path(__file__).resolve().parent.parent
SCHEMA = json.loads((SOURCE / "docs/schema/drajob-status-v1alpha1.json").read_text())


def closed(schema):
    """The schema with every object closed, so that a member that it does not describe is found."""
    schema = copy.deepcopy(schema)

    def close(node, name):
        if isinstance(node, dict):
            if "properties" in node and name != "report":
                node.setdefault("additionalProperties", False)
            for key, value in node.items():
                close(value, key)
        elif isinstance(node, list):
            for value in node:
                close(value, name)

    close(schema, "")
    return schema


@pytest.fixture
def documents(build):
    out = subprocess.run([build / "tests/status_doc_test", "--documents"], check=True, timeout=patience(),
                         capture_output=True, text=True).stdout
    found = [json.loads(line) for line in out.splitlines()]
    assert len(found) == 7
    return found


def test_documents_keep_to_the_schema(documents):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    validator = jsonschema.Draft202012Validator(closed(SCHEMA))
    for document in documents:
        found = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]
        assert not found, found[:5]


def test_schema_refuses_what_is_wrong(documents):
    validator = jsonschema.Draft202012Validator(SCHEMA)
    for path, value in ((("phase",), "sleeping"), (("attempt",), "1"), (("workers", "lines"), {}),
                        (("workers", "lines", 0, "phase"), "x"), (("exit",), 256),
                        (("created",), "yesterday"), (("kind",), "DraJob")):
        wrong = copy.deepcopy(documents[0])
        at = wrong
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value
        assert not validator.is_valid(wrong), path


def test_every_member_is_described_and_used(documents):
    used = {key for document in documents for key in document}
    assert used == set(SCHEMA["properties"])
