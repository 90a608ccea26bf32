# SPDX-License-Identifier: Apache-2.0
"""What NCCL takes from NCCL_TOPO_FILE, written down from its own reader: the tokens, elements and limits of
src/graph/xml.cc (xmlGetToken, xmlGetNode, xmlLoadSub, ncclTopoXmlLoad*) and xml.h, the values that src/graph/topo.cc
reads (ncclTopoAdd{Cpu,Pci,Gpu,Net}), at the tags v2.26.6 and v2.30.7. It is not XML: no text between elements, one
blank between attributes, no entities, no tabs, and what it does not know it passes over in silence."""
import re

VALUE_MAX, ATTRIBUTES_MAX = 254, 16      # MAX_STR_LEN with its end, MAX_ATTR_COUNT
SUBS_MAX, NODES_MAX = 128, 256           # MAX_SUBS of 2.26, NCCL_TOPO_XML_MAX_NODES
CHILDREN = {"system": {"cpu"}, "cpu": {"pci", "nic"}, "pci": {"pci", "gpu", "nic", "pcilink"}, "nic": {"net"},
            "gpu": {"nvlink", "c2c"}, "net": set(), "nvlink": set(), "c2c": set(), "pcilink": set()}
INT = r"-?\d+"
HEX = r"0x[0-9a-f]+"
BUS_ID = r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]"  # found by strcmp against int64ToBusId and sysfs paths
SPEED = r"|(2\.5|5\.0|8\.0|16\.0|32\.0|64\.0) GT/s PCIe"  # kvDictPciGen; others count as 8 GT/s with a warning
VALUES = {
    "system": {"version": "1", "name": r".+"},
    "cpu": {"numaid": INT, "arch": "x86_64|arm64|ppc64", "vendor": "GenuineIntel|AuthenticAMD|CentaurHauls| {2}Shanghai {2}",
            "familyid": INT, "modelid": INT, "affinity": r"[0-9a-f,]+", "host_hash": HEX},
    "pci": {"busid": BUS_ID, "class": r"0x(0[23]|0604|0680)[0-9a-f]*", "vendor": HEX, "device": HEX,
            "subsystem_vendor": HEX, "subsystem_device": HEX, "link_speed": SPEED, "link_width": r"0|1|2|4|8|12|16|32"},
    "gpu": {"dev": r"\d+", "sm": r"\d+", "rank": r"\d+", "gdr": "0|1"},
    "net": {"name": r"[^\"<>&]+", "dev": r"\d+", "speed": r"\d+", "port": r"\d+", "guid": HEX, "maxconn": r"\d+",
            "gdr": "0|1", "latency": r"[\d.]+", "coll": "0|1", "rail": INT, "plane": INT},
    "nvlink": {"target": BUS_ID, "count": r"\d+", "tclass": HEX}, "c2c": {"bw": r"\d+", "count": r"\d+"},
    "pcilink": {"target": BUS_ID}, "nic": {},
}
# Read without a default. Of what lies above GPUs and NICs for verbs NCCL fills in what is missing; it does not for a NIC that it reaches
# over sockets, and ends: "Attribute link_width of node pci not found" (2.28.9, a virtio NIC beside an H100).
REQUIRED = {"system": {"version"}, "cpu": {"numaid"}, "pci": {"busid", "class", "link_speed", "link_width"}, "net": {"name", "dev"}, "gpu": {"dev"}}


class Wrong(AssertionError):
    pass


class Reader:
    def __init__(self, text):
        self.text, self.at, self.nodes = text, 0, 0

    def fail(self, why):
        line = self.text.count("\n", 0, self.at) + 1
        raise Wrong(f"line {line}: {why}")

    def char(self):
        if self.at >= len(self.text):
            self.fail("ends too early")
        self.at += 1
        return self.text[self.at - 1]

    def token(self, attribute):
        """(name, value or None, the character behind)"""
        name = ""
        while True:
            c = self.char()
            if c == "=":
                if not attribute:
                    self.fail(f"a value behind the element {name}")
                return (name, *self.value())
            if c in " >/\n\r":
                return name, None, c
            name += c
            if len(name) > VALUE_MAX:
                self.fail("a name is too long")

    def value(self):
        quote, value = self.char(), ""
        if quote not in "\"'":
            self.fail("a value without quotes")
        while (c := self.char()) != quote:
            value += c
        if len(value) > VALUE_MAX:
            self.fail("a value is too long")
        return value, self.char()

    def node(self):
        """(name, attributes, "open", "close" or "single"); None at the end."""
        while self.at < len(self.text) and self.text[self.at] in " \n\r":
            self.at += 1
        if self.at == len(self.text):
            return None
        if self.char() != "<":
            self.fail("expected <")
        name, _, c = self.token(False)
        if name == "" and c == "/":
            name, _, c = self.token(False)
            if c != ">":
                self.fail("something behind the name of a closing element")
            return name, {}, "close"
        attributes = {}
        while c == " ":
            key, value, c = self.token(True)
            if value is None or key in attributes:
                self.fail(f"attribute {key}: no value, or twice")
            attributes[key] = value
        if len(attributes) > ATTRIBUTES_MAX:
            self.fail(f"more than {ATTRIBUTES_MAX} attributes")
        kind = "open"
        if c == "/":
            kind, (_, _, c) = "single", self.token(False)
        if c != ">":
            self.fail(f"expected > behind {name}")
        return name, attributes, kind

    def check(self, name, attributes):
        known = VALUES[name]
        for key, value in attributes.items():
            if key not in known:
                self.fail(f"{name} has no attribute {key}")
            if not re.fullmatch(known[key], value):
                self.fail(f"{name}: {key}=\"{value}\"")
        missing = REQUIRED.get(name, set()) - set(attributes)
        if missing:
            self.fail(f"{name} lacks {', '.join(sorted(missing))}")

    def subs(self, parent):
        """All of the parent's elements up to its end."""
        found = []
        while (node := self.node()) is not None:
            name, attributes, kind = node
            if kind == "close":
                if parent is None or name != parent:
                    self.fail(f"{name} is closed within {parent}")
                return found
            if name not in ({"system"} if parent is None else CHILDREN[parent]):
                self.fail(f"{name} within {parent}: passed over in silence")
            self.nodes += 1
            self.check(name, attributes)
            found.append((name, attributes, self.subs(name) if kind == "open" else []))
            if len(found) > SUBS_MAX or self.nodes > NODES_MAX:
                self.fail("too many elements")
        if parent is not None:
            self.fail(f"{parent} is not closed")
        return found


def read(text):
    """(name, attributes, children) of the system; Wrong where NCCL would stop, guess or pass something over."""
    roots = Reader(text).subs(None)
    if len(roots) != 1:
        raise Wrong("expected one system")
    ids = {"busid": [], "name": [], "numaid": [], "gpu": [], "net": []}

    def walk(node):
        name, attributes, children = node
        for key in ("busid", "name", "numaid"):
            if key in attributes and name != "system":
                ids[key].append(attributes[key])
        if name in ("gpu", "net"):
            ids[name].append(attributes["dev"])
        if name == "pci" and {"gpu", "nic"} & {child[0] for child in children} and len(children) != 1:
            raise Wrong(f"{attributes['busid']} is a device and something else")
        for child in children:
            walk(child)

    walk(roots[0])
    for what, list_ in ids.items():
        if len(list_) != len(set(list_)):
            raise Wrong(f"{what} comes twice: {sorted(list_)}")
    return roots[0]
