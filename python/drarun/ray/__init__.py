# SPDX-License-Identifier: Apache-2.0
"""Ray on claimed devices: each worker process gets the environment of what its pod or machine really holds.

    ray.init(runtime_env=drarun.ray.runtime_env())

    @ray.remote(num_gpus=1)
    class Trainer:
        def __init__(self):
            self.near = drarun.ray.bind()            # CPUs beside the actor's GPUs; their NICs in .nics

    group = drarun.ray.check(actors)                 # before a collective group: raises where two would not fit
    actors = [actors[i] for i in group.order]        # neighbours in a ring lie on one node

Importing this loads no Ray; what needs it raises UsageError where it is missing or older than 2.9."""
from ._bind import Binding, bind
from ._check import check
from ._devices import Gpu
from ._group import Group, Report
from ._hook import hook, runtime_env, setup

__all__ = ["Binding", "Gpu", "Group", "Report", "bind", "check", "hook", "runtime_env", "setup"]
