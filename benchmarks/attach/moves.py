# SPDX-License-Identifier: Apache-2.0
"""drarun-attach beside the same moves in one `ip -batch`, on veths in namespaces of its own. Needs root."""
import json
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.harness.launchers import BUILD
from benchmarks.harness.report import SPREAD_COLUMNS, counted, number
from benchmarks.harness.turns import in_turns
from support.nodes import Node

NICS = 8
ATTACH = BUILD / "bin/drarun-attach"
PEER, EACH, ALL, AGAIN = ("one `ip -batch` (moves), one more (settings)", "drarun-attach, a process for each",
                          "drarun-attach, one process for all", "repeated attach of one")
RATIO, AGAIN_MS = 1.1, 5


class Bed:
    def __init__(self, folder):
        self.host, self.pod = Node("host", "10.88.0.1"), Node("pod", "10.88.0.2")
        self.orders, self.macs = [], [f"02:00:00:00:01:{i:02x}" for i in range(NICS)]
        for i, mac in enumerate(self.macs):
            self.host.run("ip", "link", "add", f"eth{i}", "address", mac, "type", "veth", "peer", "name", f"wire{i}")
            self.host.run("ip", "link", "set", f"wire{i}", "up")
            self.host.run("ip", "link", "set", f"eth{i}", "up")
            path = folder / f"{i}.json"
            path.write_text(json.dumps({
                "version": 1, "claim": {"namespace": "n", "name": "c", "uid": "u"}, "device": f"nic-{i}", "mac": mac,
                "host": {"name": f"eth{i}", "mtu": 1500, "up": True},
                "config": {"interface": {"name": f"net{i}", "mtu": 1400, "addresses": [f"10.{i}.0.2/24"]},
                           "routes": [{"destination": f"10.{100 + i}.0.0/16", "gateway": f"10.{i}.0.1"}]}}))
            path.chmod(0o600)
            self.orders.append(path)
        self.state = json.dumps({"status": "creating", "pid": self.pod.holder.pid})
        # the entering of the host's namespace is not measured: a shell does it once for all of an action
        self.moves = folder / "moves"
        self.moves.write_text("".join(f"link set eth{i} down\nlink set eth{i} name net{i} mtu 1400 netns {self.pod.holder.pid}\n"
                                      for i in range(NICS)))
        self.settings = folder / "settings"
        self.settings.write_text("".join(f"address add 10.{i}.0.2/24 dev net{i}\nlink set net{i} up\n"
                                         f"route add 10.{100 + i}.0.0/16 via 10.{i}.0.1\n" for i in range(NICS)))

    def timed(self, script):
        """Milliseconds of a shell's commands on the host, taken by that shell."""
        out = self.host.run("bash", "-c", f"a=$EPOCHREALTIME; {script}; b=$EPOCHREALTIME; echo $(( ${{b/./}} - ${{a/./}} ))")
        self.check()
        return int(out.split()[-1]) / 1e3

    def check(self):
        """What was measured has happened."""
        links = {each["ifname"]: each for each in json.loads(self.pod.run("ip", "-j", "address"))}
        routes = {each["dst"] for each in json.loads(self.pod.run("ip", "-j", "route"))}
        for i in range(NICS):
            assert links[f"net{i}"]["mtu"] == 1400 and links[f"net{i}"]["addr_info"][0]["local"] == f"10.{i}.0.2", links
            assert f"10.{100 + i}.0.0/16" in routes, routes

    def batch(self):
        return self.timed(f"ip -batch {self.moves} && nsenter --net=/proc/{self.pod.holder.pid}/ns/net ip -batch {self.settings}")

    def hook(self):
        return self.timed(" && ".join(f"{ATTACH} attach {path} <<<'{self.state}'" for path in self.orders))

    def together(self):
        return self.timed(f"{ATTACH} attach {' '.join(map(str, self.orders))} <<<'{self.state}'")

    def once_more(self):
        return self.timed(f"{ATTACH} attach {self.orders[0]} <<<'{self.state}'")

    def back(self):
        for path in self.orders:
            self.host.run(ATTACH, "restore", path)

    def close(self):
        self.pod.close()
        self.host.close()


def measure(bed, rounds):
    """{row: milliseconds}"""
    times = {row: [] for row in (PEER, EACH, ALL, AGAIN)}
    actions = {PEER: bed.batch, EACH: bed.hook, ALL: bed.together}
    for number, row in in_turns(actions, rounds):
        took = [(row, actions[row]())] + ([(AGAIN, bed.once_more())] if row != PEER else [])
        bed.back()
        time.sleep(0.2)  # what the kernel still takes apart
        for name, value in took if number >= 0 else ():
            times[name].append(value)
    return times


def run(report, scale):
    with tempfile.TemporaryDirectory() as folder:
        bed = Bed(Path(folder))
        try:
            times = measure(bed, scale.rounds)
        finally:
            bed.close()
    report.heading(f"{NICS} veths into a namespace, {counted(scale.rounds, 'round')}, ms")
    report.table(["what", *SPREAD_COLUMNS, "against ip", "goal", "verdict"])
    for row, values in times.items():
        report.row(row, *report.spread(row, values), *judged(report, row, statistics.median(values), statistics.median(times[PEER])))


def judged(report, row, middle, peer):
    """The last three cells."""
    if row == PEER:
        return "-", "-", ""
    if row == AGAIN:
        return "-", f"{AGAIN_MS} ms", report.verdict(f"{row}, ms", middle, AGAIN_MS)
    return number(middle / peer), RATIO, report.verdict(f"{row}, against ip", middle / peer, RATIO)
