# SPDX-License-Identifier: Apache-2.0
"""workflows.py [FOLDER]: what is wrong with the files below .github. They must be YAML, and steps of workflows only call scripts of the tree: each line
of `run` begins with one that can be executed, and others that it names exist. So whatever continuous integration does, people can do. Actions of others are
named by their commits: a tag can be moved to another one. Prints the findings."""
import os
import re
import sys
from pathlib import Path

import yaml

SOURCE = Path(__file__).resolve().parents[2]
SCRIPT = re.compile(r"(?<![\w/.])(?:scripts|\.ci)(?:/[\w-][\w.-]*)+")
ACTION = re.compile(r"[\w.-]+(?:/[\w.-]+)+@[0-9a-f]{40}")


def scalars(node, name):
    """The scalar nodes of all keys of that name in a composed document."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == name and isinstance(value, yaml.ScalarNode):
                yield value
            else:
                yield from scalars(value, name)
    elif isinstance(node, yaml.SequenceNode):
        for each in node.value:
            yield from scalars(each, name)


def wrong_line(line, root):
    """Why a line of `run` is wrong, or None."""
    first = line.split()[0]
    if not SCRIPT.fullmatch(first):
        return f"expected a script of this tree, got {first}: put what it does into one"
    for name in SCRIPT.findall(line):
        if not (root / name).is_file():
            return f"{name}: no such script"
        if not os.access(root / name, os.X_OK):
            return f"{name}: cannot be executed"
    return None


def findings(root=SOURCE):
    """[text]"""
    found = []
    for path in sorted(each for each in (root / ".github").rglob("*") if each.suffix in (".yml", ".yaml")):
        name = path.relative_to(root)
        try:
            node = yaml.compose(path.read_text())
        except yaml.YAMLError as error:
            found.append(f"{name}: not YAML: {' '.join(str(error).split())}")
            continue
        if path.parent.name != "workflows":
            continue
        for action in scalars(node, "uses"):
            if not ACTION.fullmatch(action.value):
                found.append(f"{name}:{action.start_mark.line + 1}: expected the 40 digits of an action's commit behind @, got {action.value}")
        for script in scalars(node, "run"):
            begin = script.start_mark.line + (2 if script.style in ("|", ">") else 1)
            for k, line in enumerate(script.value.splitlines()):
                why = wrong_line(line, root) if line.strip() else None
                if why:
                    found.append(f"{name}:{begin + k}: {why}")
    return found


def main():
    for each in findings(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE):
        print(each)
    return 0


if __name__ == "__main__":
    sys.exit(main())
