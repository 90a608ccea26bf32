# SPDX-License-Identifier: Apache-2.0
"""Programs whose allocations fail one by one (programs/failing_alloc.c): what allocates in them, and which of it is ours."""
import bisect
import re
import struct
import subprocess
from collections import Counter, defaultdict

from .build import BUILD

FOLDER = BUILD / "tests" / "failing"
PROGRAMS = {path.stem: path for path in sorted(FOLDER.glob("*.map"))}

RECORD = struct.Struct("=II24Q")
SECTION = re.compile(r"^ \.text\S*\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S+)$", re.M)  # a long name has a line of its own
# C libraries, which have no state of their own that a failure could break
PLAIN = re.compile(r"/lib(c|m|gcc|gcc_eh|resolv|pthread)\.a\(|/crt[1in]\.o|failing_alloc\.c\.o")
# left out: libpmix, the C library's name service, and libcurl (7.88.1) above nghttp2 use memory that they did not get; what hwloc
# and OpenSSL have is their own
THEIRS = re.compile(r"/lib(pmix|hwloc|crypto|ssl)\.a\(|/libc\.a\(nss|/libnghttp2\.a\(\S+ \S+/libcurl\.a\(")
# where callers decide what becomes of a failure
PASSED_OVER = re.compile(r"lib/base/")
# all that jansson and libevent allocate, which ends the program: one place, passed at any time
ENDS = re.compile(r"need_memory\.c\.o")
ENDS_AT = 30


class Program:
    """name: the file's. Which object, and so which library, an address lies in, by the linker's map."""

    def __init__(self, name):
        self.name = name
        found = sorted((int(at, 16), int(size, 16), path) for at, size, path in SECTION.findall(PROGRAMS[name].read_text())
                       if int(size, 16) and int(at, 16))
        self.starts = [at for at, _, _ in found]
        self.objects = found

    def object_of(self, address):
        """The address is one behind a call."""
        i = bisect.bisect_right(self.starts, address - 1) - 1
        if address == 0 or i < 0 or address > self.objects[i][0] + self.objects[i][1]:
            return ""
        return self.objects[i][2]

    def is_ours(self, path):
        return bool(path) and not path.startswith("/") and not PLAIN.search(path)

    def site(self, frames, depth):
        """The frames that tell this allocation from others, up to `depth` of our functions above lib/base. None: a library
        allocates in a thread of its own, or is one of THEIRS."""
        ours, above = 0, ""
        for i, path in enumerate(map(self.object_of, frames)):
            if ENDS.search(path):
                return frames[:i + 1]
            above += f" {path}"
            if ours == 0 and THEIRS.search(above):
                return None
            ours += self.is_ours(path) and not PASSED_OVER.search(path)
            if ours == depth:
                return frames[:i + 1]
        return frames if ours else None

    def sites(self, trace, depth):
        """{site: how often a process passed it at most} of what was traced."""
        passed = defaultdict(Counter)
        for pid, count, *frames in RECORD.iter_unpack(trace.read_bytes()):
            site = self.site(tuple(frames[:count]), depth)
            if site:
                passed[site][pid] += 1
        return {site: max(pids.values()) for site, pids in passed.items()}

    def turns(self, site, times):
        """Which of so many times that a process passes the place are to fail."""
        if not ENDS.search(self.object_of(site[-1])):
            return sorted({1, times})
        return sorted({1 + (times - 1) * i // (ENDS_AT - 1) for i in range(ENDS_AT)})

    def describe(self, site):
        """The lines of source of a site, innermost first."""
        path = next(path for path in (FOLDER / "bin" / self.name, FOLDER / "libexec/drarun" / self.name) if path.exists())
        out = subprocess.run(["addr2line", "-fise", path, *(hex(frame - 1) for frame in site if self.is_ours(self.object_of(frame)))],
                             capture_output=True, text=True, check=True).stdout.split("\n")
        return " < ".join(f"{name} {place}" for name, place in zip(out[::2], out[1::2]))


def environment(folder, program=None, site=(), nth=1, then_on=False):
    """For programs of FOLDER: traces all to `folder`; with a site, that fails and makes `folder`/failed."""
    if not site:
        return {"FAILING_ALLOC": folder}
    made = {"FAILING_ALLOC_AT": f"{program} {nth} {folder / 'failed'} " + " ".join(f"{frame:x}" for frame in site)}
    return made | ({"FAILING_ALLOC_ON": "1"} if then_on else {})
