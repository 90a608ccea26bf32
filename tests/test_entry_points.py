# SPDX-License-Identifier: Apache-2.0
"""One derivation at every entry point: the same pod gives the same variables, whatever asks. On every captured machine,
each of them runs where it would run in a pod, with the machine's sysfs, procfs, devices and vendor's script. Of
`drarun run` it is the part from the agent's inspection on, which `drarun exec` shares (launcher/job/plan.c); with claims it
runs on real nodes in test_cluster_devices.py."""
import json
import os
import shlex
import subprocess
import sys

import pytest
import yaml

from support.build import SOURCE, patience
from support.cluster.machines import make_root
from support.python_package import in_folder

pytestmark = pytest.mark.plain("a Python without sanitizers cannot load a library that has them")

FIXTURES = SOURCE / "tests/data/fixtures"
MACHINES = sorted(path.stem for path in FIXTURES.glob("*.json"))
WITHOUT_RDMA = {"small-l4-2gpu", "a3-megagpu-8g"}  # the latter's NICs are told by a node's label alone
OF_THE_NODE = {"azure-nd96isr-h100-v5": "opt/microsoft/ndv5/topo.xml"}  # mounted from there; tells the machine, as no label does
SCRIPT = "usr/local/gib/scripts/set_nccl_env.sh"
SAYS = "export NCCL_NET=gIB NCCL_IB_TC=77 NCCL_OF_THE_SCRIPT=1"
OURS = ("NCCL_", "UCX_", "OMPI_MCA_", "FI_", "GLOO_", "CUDA_", "HIP_", "LD_LIBRARY_PATH")
OF_RANKS = ("OMPI_MCA_btl_", "OMPI_MCA_hwloc_", "OMPI_MCA_orte_", "OMPI_MCA_reachable", "OMPI_MCA_schizo")  # what a rank of Open MPI gets besides
POD = """set -eu
tree=$1; shift
ip link set lo up
mount --make-rslave /
mount --bind "$tree/sys" /sys
mount --bind "$tree/proc/driver" /proc/driver
mount --bind "$tree/proc/cpuinfo" /proc/cpuinfo
mount --bind "$tree/dev" /dev
mount -t tmpfs none /dev/shm
for each in usr/local opt; do [ ! -e "$tree/$each" ] || mount --bind "$tree/$each" "/$each"; done
exec "$@"
"""
DUMP = "import os, sys; sys.stdout.write(''.join(f'{k}={v}\\0' for k, v in os.environ.items()))"


class Pod:
    """tree: of the machine; programs that stand for Ray's and PyTorch's, and print their environment; the package."""

    def __init__(self, build, folder, name):
        self.drarun, self.folder, self.tree = build / "bin/drarun", folder, folder / "tree"
        make_root(json.loads((FIXTURES / f"{name}.json").read_text()), self.tree)
        (self.tree / "dev/shm").mkdir()
        if (self.tree / SCRIPT).exists():
            (self.tree / SCRIPT).write_text(SAYS + "\n")
        (folder / "bin").mkdir()
        for program in ("ray", "torchrun"):
            (folder / "bin" / program).write_text("#!/bin/sh\nexec env -0\n")
            (folder / "bin" / program).chmod(0o755)
        self.package = in_folder(folder)

    def run(self, *command, **env):
        """Its status, what of its environment is ours, and its stderr."""
        done = subprocess.run(["unshare", "--mount", "--net", "sh", "-c", POD, "pod", self.tree, *command], capture_output=True, text=True,
                              timeout=patience(120), env={"PATH": f"{self.folder}/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR": str(self.folder), **env})
        found = dict(each.split("=", 1) for each in done.stdout.split("\0") if "=" in each)
        return done.returncode, {name: value for name, value in found.items() if name.startswith(OURS)}, done.stderr

    def python(self, code):
        return self.run(sys.executable, "-B", "-c", f"import drarun\n{code}\n{DUMP}", **self.package)

    def rendered(self, system, drarun):
        """The container that `drarun render --as` gives a worker, from its own command on."""
        job = self.folder / f"{system}.yaml"
        job.write_text(yaml.safe_dump({"metadata": {"name": "j"}, "spec": {
            "workers": 2, "launch": "env", "ranksPerWorker": 1, "image": "i", "command": ["torchrun", "train.py"],
            "devices": {"gpus": {"count": 4, "resource": "nvidia.com/gpu"}, "nics": {"count": "all", "class": "dranet"}}}}))
        made = list(yaml.safe_load_all(drarun("render", "--as", system, job).ok().out))
        command = next(each["command"] for each in containers(made) if "/.drarun/bin/drarun" in each.get("command", ()))
        return self.run(*[str(self.drarun) if each == "/.drarun/bin/drarun" else each for each in command],
                        KUBERAY_GEN_RAY_START_CMD="ray start --block")


def containers(node):
    """All that are in the manifests."""
    if isinstance(node, list):
        return [found for each in node for found in containers(each)]
    if not isinstance(node, dict):
        return []
    return [*node.get("containers", ()), *(found for each in node.values() for found in containers(each))]


ENTRIES = {
    "eval": lambda pod, _: pod.run("sh", "-c", f'lines=$({shlex.quote(str(pod.drarun))} env) && eval "$lines" && exec env -0'),
    "exec": lambda pod, _: pod.run(pod.drarun, "exec", "--peers", "127.0.0.1", "--index", "0", "--per-worker", "1", "--", "env", "-0"),
    "raycluster": lambda pod, drarun: pod.rendered("raycluster", drarun),
    "trainjob": lambda pod, drarun: pod.rendered("trainjob", drarun),
    "drarun.env": lambda pod, _: pod.python("drarun.env().apply()"),
    "drarun.ray.hook": lambda pod, _: pod.python("import drarun.ray; drarun.ray.hook()"),
    "drarun.ray.setup": lambda pod, _: pod.python("import drarun.ray; drarun.ray.setup()"),
}


@pytest.mark.parametrize("name", MACHINES)
def test_same_pod_same_variables(drarun, build, tmp_path, name):
    if os.geteuid() != 0:
        pytest.skip("namespaces need root")
    pytest.importorskip("cffi", reason="no python3-cffi: scripts/setup --test installs it")
    pod = Pod(build, tmp_path, name)
    assert name not in OF_THE_NODE or (pod.tree / OF_THE_NODE[name]).exists()
    status, wanted, said = pod.run(pod.drarun, "env", "--", "env", "-0")
    assert (status == 0) == (name not in WITHOUT_RDMA), said
    if "gke-" in said:
        assert (wanted["NCCL_OF_THE_SCRIPT"], wanted["NCCL_NET"]) == ("1", "gIB")
    if name in OF_THE_NODE:
        assert wanted["NCCL_TOPO_FILE"] == f"/{OF_THE_NODE[name]}", said
    if (pod.tree / "dev/nvidia-caps-imex-channels").exists():
        assert wanted["NCCL_MNNVL_ENABLE"] == "2"
    wrong = {}
    for entry, ask in ENTRIES.items():
        status, found, said = ask(pod, drarun)
        if name in WITHOUT_RDMA:
            if status == 0 or "NO_RDMA_NIC" not in said:
                wrong[entry] = status, said
            continue
        left_out = ("CUDA_VISIBLE_DEVICES",) if entry.startswith("drarun.ray") else ()  # which GPUs an actor has, Ray says
        expected = {key: value for key, value in wanted.items() if key not in left_out}
        found = {key: value for key, value in found.items() if key in wanted or not key.startswith(OF_RANKS)}
        if status != 0 or found != expected:
            wrong[entry] = status, {key: (expected.get(key), found.get(key)) for key in {*expected, *found}
                                    if expected.get(key) != found.get(key)}, said
    assert not wrong
