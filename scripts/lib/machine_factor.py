# SPDX-License-Identifier: Apache-2.0
"""machine_factor.py [--seconds]: how much slower this machine is now than the one on which the tests' deadlines were chosen: a
whole number from 1 to 8. It times a fixed piece of work: processes started, files synced, bytes hashed. scripts/test puts
it into DRARUN_TEST_MACHINE, by which tests/support/build.py multiplies deadlines. --seconds prints what each kind took."""
import hashlib
import os
import subprocess
import sys
import tempfile
import time

# Seconds of each kind on 2 x AMD EPYC, 2026-11-25, nothing beside it.
USUAL = {"processes": 0.28, "files": 0.022, "bytes": 0.17}
LEAST = 1.3  # below it the machine counts as usual


def processes():
    for _ in range(300):
        subprocess.run(["/bin/true"], check=True)


def files():
    with tempfile.TemporaryDirectory() as folder:
        for number in range(50):
            with open(os.path.join(folder, str(number)), "wb") as file:
                file.write(b"x" * 4096)
                os.fsync(file.fileno())


def bytes_():
    block, digest = b"x" * (1 << 20), hashlib.sha256()
    for _ in range(256):
        digest.update(block)


def measured():
    """{kind: seconds}, the better of two turns."""
    found = {}
    for name, work in (("processes", processes), ("files", files), ("bytes", bytes_)) * 2:
        began = time.monotonic()
        work()
        found[name] = min(found.get(name, float("inf")), time.monotonic() - began)
    return found


def factor(seconds):
    """By the mean of the three ratios: a disk alone that is slow makes deadlines longer, too, though not by all of it."""
    ratio = sum(min(seconds[name] / USUAL[name], 24) for name in USUAL) / len(USUAL)
    return 1 if ratio <= LEAST else min(8, round(ratio + 0.5))


if __name__ == "__main__":
    found = measured()
    if sys.argv[1:] == ["--seconds"]:
        print(" ".join(f"{name} {seconds:.3f}" for name, seconds in found.items()))
    else:
        print(factor(found))
