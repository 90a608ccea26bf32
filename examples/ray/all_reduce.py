# SPDX-License-Identifier: Apache-2.0
"""all_reduce with ray.util.collective over the actors of a Ray cluster: NCCL where the actors have GPUs, gloo where they
have none. Checked: every element on every rank."""
import argparse
import sys

import drarun.ray
import ray
import ray.util.collective as collective
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--address", default="auto", help="of the cluster (default: the one of this machine)")
parser.add_argument("--actors", type=int, default=2)
parser.add_argument("--gpus", type=float, default=0, help="of each actor")
parser.add_argument("--elements", type=int, default=1 << 20)
parser.add_argument("--timeout", type=float, default=300, help="seconds until all actors must have started")
options = parser.parse_args()
backend = "nccl" if options.gpus else "gloo"


@ray.remote(num_cpus=1, num_gpus=options.gpus, scheduling_strategy="SPREAD")
class Worker:
    def __init__(self):
        drarun.ray.bind()

    def join(self, size, rank):
        self.rank, self.device = rank, "cuda" if backend == "nccl" else "cpu"
        collective.init_collective_group(size, rank, backend, "all_reduce", gloo_timeout=120_000)

    def all_reduce(self, elements):
        tensor = torch.full((elements,), float(self.rank + 1), device=self.device)
        collective.allreduce(tensor, "all_reduce")
        return tensor.min().item(), tensor.max().item()


ray.init(address=options.address, runtime_env=drarun.ray.runtime_env(), logging_level="warning")
workers = [Worker.remote() for _ in range(options.actors)]
group = drarun.ray.check(workers, backend=backend, timeout=options.timeout)  # raises where two do not fit
workers = [workers[number] for number in group.order]
ray.get([worker.join.remote(len(workers), rank) for rank, worker in enumerate(workers)])
found = set(ray.get([worker.all_reduce.remote(options.elements) for worker in workers]))

right = float(sum(range(1, options.actors + 1)))
print(f"all_reduce: {group.summary}; {backend}: {options.elements} elements, sum {right:g}, "
      f"{'right' if found == {(right, right)} else f'WRONG: {found}'} on every rank")
sys.exit(0 if found == {(right, right)} else 1)
