# SPDX-License-Identifier: Apache-2.0
"""components.py: the four components that share the tree (CONTRIBUTING.md), and the includes that go against their arrows, which it prints."""
import re
import subprocess
import sys
from pathlib import Path

CORE, PLUGIN, DRA, BENCH = "launcher core", "node plugin", "DRA model", "benchmark and acceptance"
COMPONENTS = (  # the first that fits; the core is what the others leave
    (DRA, ("lib/dra/", "lib/cel/")),
    (BENCH, ("benchmarks/", "lib/bench/", "lib/accept/", "launcher/bench/", "launcher/accept/", "launcher/programs/accept_order.h",
             "launcher/verbs/bench", "launcher/verbs/accept", "launcher/api/bench.c")),
    (PLUGIN, ("plugin/", "lib/nvml/")),
    (CORE, ("launcher/", "worker/", "jobs/", "lib/", "include/")),
)
MAY_USE = {  # components, and folders of them
    DRA: ("lib/base/", "lib/doc/"),
    CORE: (DRA,),
    PLUGIN: (DRA, "lib/"),
    BENCH: (CORE, PLUGIN, DRA),
}
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def component_of(name):
    return next((component for component, begins in COMPONENTS if name.startswith(begins)), None)


def is_allowed(component, included):
    other = component_of(included)
    folders = tuple(each for each in MAY_USE[component] if each.endswith("/"))
    return other in (None, component, *MAY_USE[component]) or other == CORE and included.startswith(folders)


def findings(root, names):
    """names: the C files to look at, relative to root; tests may include anything."""
    for name in sorted(names):
        component = component_of(name)
        if component is None or {"test", "fuzz"} & set(Path(name).parts) or not (root / name).exists():
            continue
        included = set(INCLUDE.findall((root / name).read_text()))
        yield from (f"{name} ({component}) includes {each} ({component_of(each)})"
                    for each in sorted(included) if not is_allowed(component, each))


def main():
    root = Path(__file__).resolve().parents[2]
    names = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "*.[ch]"], check=True, capture_output=True, text=True)
    found = list(findings(root, names.stdout.split()))
    print(*found, sep="\n", end="\n" if found else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
