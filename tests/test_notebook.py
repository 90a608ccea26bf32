# SPDX-License-Identifier: Apache-2.0
"""examples/notebook: every cell runs, and shows what it says."""
import base64
import json
import re
import subprocess
from xml.etree import ElementTree

import pytest

from support import kfp
from support.build import patience

pytestmark = pytest.mark.plain("a Python without sanitizers cannot load a library that has them")

EXECUTE = """
import json, sys
import nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
nbformat.validate(notebook)
NotebookClient(notebook, timeout=60, resources={"metadata": {"path": sys.argv[2]}}).execute()
print(json.dumps([cell.get("outputs") for cell in notebook.cells]))
"""


def test_every_cell(source, tmp_path):
    python, env = kfp.environment(tmp_path)
    folder = source / "examples/notebook"
    run = subprocess.run([python, "-c", EXECUTE, folder / "plan.ipynb", folder], capture_output=True, text=True,
                         env=env, timeout=patience(120))
    assert run.returncode == 0, run.stderr[-3000:]
    shown = [output for outputs in json.loads(run.stdout) for output in outputs or []]
    assert all(output["output_type"] != "error" for output in shown)
    page = "".join(next(output["data"]["text/html"] for output in shown if "text/html" in output.get("data", {})))
    pictures = [base64.b64decode(each) for each in re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)]
    assert len(pictures) == 4 and page.count("<tr>") == 1 + 16 and "worker 3 on a4-1" in page
    for picture in pictures:
        classes = [each.get("class") for each in ElementTree.fromstring(picture).iter()]
        assert classes.count("gpu claimed") == classes.count("nic claimed") == 4
        assert classes.count("gpu other") == 4
    assert any("image/svg+xml" in output.get("data", {}) for output in shown)
    said = json.dumps(shown)
    assert "CapacityError" in said and "worker 4 of 5 has no node" in said and "NCCL_NET" in said
    assert sorted(re.findall(r"rank (\d) of 4", said)) == ["0", "1", "2", "3"]
