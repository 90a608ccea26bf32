# SPDX-License-Identifier: Apache-2.0
"""On what it was measured."""
import datetime
import os
import platform
import subprocess

from .launchers import DRARUN, SOURCE, Missing


def cpu_model():
    with open("/proc/cpuinfo") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())


def memory_mib():
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) // 1024 for line in file if line.startswith("MemTotal"))


def said(*command):
    """What it prints, on one line; "" where it cannot be asked."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return " ".join(done.stdout.split()) if done.returncode == 0 else ""


def version():
    """Of the program that is measured, and the commit of the tree."""
    try:
        program = said(DRARUN.program(), "--version")
    except Missing:
        program = ""
    return program, said("git", "-C", SOURCE, "describe", "--always", "--dirty")


def describe():
    program, commit = version()
    return {"date": datetime.date.today().isoformat(), "cpus": os.cpu_count(), "cpu": cpu_model(),
            "memory_mib": memory_mib(), "kernel": platform.release(), "load": round(os.getloadavg()[0], 1),
            "drarun": program, "commit": commit}


def sentence(machine):
    """As reports open."""
    return (f"{machine['date']}, {machine['cpus']} x {machine['cpu']}, {machine['memory_mib'] / 1024:.0f} GiB, "
            f"Linux {machine['kernel']}, load average at the start {machine['load']}"
            + (f", commit {machine['commit']}" if machine["commit"] else "") + ".")
