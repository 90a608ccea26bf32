# SPDX-License-Identifier: Apache-2.0
"""What a launcher has started."""
from pathlib import Path

EXIT_SIGNAL = 38 - 3  # proc(5), /proc/PID/stat: the field, of those behind the name


def children(pid):
    """Of all of its threads; none when it has ended. Without helpers that share its memory and end without a signal to it, as the one by
    which the leak checker looks at a process that exits: were it killed, that process would never end."""
    try:
        found = [int(word) for task in Path(f"/proc/{pid}/task").iterdir() for word in (task / "children").read_text().split()]
    except OSError:
        return []
    return [each for each in found if tells_its_end(each)]


def tells_its_end(pid):
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:  # it has been waited for
        return False
    return fields[EXIT_SIGNAL] != b"0"
