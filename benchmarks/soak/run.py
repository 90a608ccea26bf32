# SPDX-License-Identifier: Apache-2.0
"""Runs plans in parallel lanes. Each lane has a /dev/shm of its own, so that what is in it is ours."""
import multiprocessing
import os
import signal
import time

from benchmarks.harness.launchers import DRARUN, HYDRA, OPENMPI4, OPENMPI5
from support import leftovers

from . import job

LAUNCHERS = {each.name: each for each in (DRARUN, HYDRA, OPENMPI5, OPENMPI4)}
PEER_DEADLINE = 15


def begin_lane():
    signal.signal(signal.SIGINT, lambda *_: None)  # the first process decides; jobs must not inherit it
    leftovers.make_shm_private()


def carry_out(task):
    plan, names = task
    outcomes = []
    for name in names:
        if name != DRARUN.name:
            job.DEADLINE = PEER_DEADLINE
        outcomes.append(job.Job(plan, LAUNCHERS[name]).run())
    return outcomes


def outcomes(plans, names=(DRARUN.name,), lanes=None, minutes=None):
    """The outcomes of all plans, each carried out with each launcher, until the time is over."""
    stop = time.monotonic() + minutes * 60 if minutes else None
    with multiprocessing.get_context("fork").Pool(lanes or os.cpu_count(), begin_lane) as pool:
        for found in pool.imap_unordered(carry_out, ((plan, list(names)) for plan in plans)):
            yield from found
            if stop and time.monotonic() > stop:
                return
