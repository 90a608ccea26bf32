# SPDX-License-Identifier: Apache-2.0
"""Every allocation of a node plugin that starts and publishes fails in turn: it publishes all the same, or ends with an error in
words. test_memory_faults has the launcher, agents and verbs."""
import os

import pytest

from support import failing_alloc
from support.build import patience
from support.failing_alloc import FOLDER, Program
from test_memory_faults import CRASH, MEMORY
from test_plugin_slices import GPU, NIC, cluster, plugin  # noqa: F401

pytestmark = [pytest.mark.plain("sanitizers have an allocator of their own"),
              pytest.mark.skipif(not FOLDER.exists(), reason="DRARUN_STATIC is off")]

PROGRAM = FOLDER / "bin" / "drarun-plugin"


class Publishing:
    """A plugin that starts anew, again and again, on a node without slices."""

    def __init__(self, plugin):
        self.plugin, self.daemon, self.argv = plugin, plugin.daemon, list(plugin.daemon.argv)
        self.daemon.argv = [PROGRAM if str(word).endswith("bin/drarun-plugin") else word for word in self.argv]

    def remove_slices(self):
        for driver in (GPU, NIC):
            for each in self.plugin.slices(driver):
                self.plugin.cluster.api.delete("resource.k8s.io/v1", "ResourceSlice", each["metadata"]["name"])

    def devices(self):
        return {driver: self.plugin.devices(driver) for driver in (GPU, NIC)}

    def run(self, env, wanted=None):
        """(status, or None while it runs; what is published; its log). wanted: what it is to publish."""
        self.remove_slices()
        self.daemon.log.unlink(missing_ok=True)
        self.daemon.env = {**os.environ, **{key: str(value) for key, value in env.items()}}
        self.daemon.start()

        def settled():
            found = self.devices()
            return not self.daemon.running() or (found == wanted if wanted else all(len(each) == 8 for each in found.values()))
        try:
            self.plugin.cluster.wait(lambda: f"neither published nor ended:\n{self.daemon.tail()}", settled, 60)
            status = self.daemon.process.poll()
            found = self.devices()
            if status is None:
                self.daemon.process.terminate()
                assert self.daemon.process.wait(patience(60)) in (0, 70), self.daemon.tail()
            return status, found, self.daemon.tail()
        finally:
            self.daemon.kill()


def fault_of(status, found, log, wanted):
    if CRASH.search(log) or (status is not None and status < 0):
        return f"crash, {status}"
    if status is None:
        return "" if found == wanted else "wrong devices"
    return "" if status != 0 and MEMORY.search(log) else f"ended with {status}"


def test_publishing(plugin, tmp_path):  # noqa: F811
    run, trace, mark, wrong, failed = Publishing(plugin), tmp_path / "trace", tmp_path / "failed", [], 0
    trace.mkdir()
    status, wanted, log = run.run(failing_alloc.environment(trace))
    assert status is None and all(wanted.values()), log
    program = Program(PROGRAM.name)
    for site in program.sites(trace / PROGRAM.name, 1):
        try:
            status, found, log = run.run(failing_alloc.environment(tmp_path, PROGRAM.name, site), wanted)
            fault = fault_of(status, found, log, wanted)
        except AssertionError as failure:
            fault, log = "no end", str(failure)
        failed += mark.exists()
        if fault:
            wrong.append(f"{fault}: {program.describe(site)}\n{log}")
        mark.unlink(missing_ok=True)
    assert failed and not wrong, f"{len(wrong)} of {failed}\n" + "\n\n".join(wrong)
