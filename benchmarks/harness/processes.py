# SPDX-License-Identifier: Apache-2.0
"""What a launcher has started."""
from pathlib import Path


def children(pid):
    """Of all of its threads; none when it has ended."""
    try:
        return [int(word) for task in Path(f"/proc/{pid}/task").iterdir() for word in (task / "children").read_text().split()]
    except OSError:
        return []
