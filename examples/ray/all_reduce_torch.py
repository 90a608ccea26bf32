# SPDX-License-Identifier: Apache-2.0
"""all_reduce with torch.distributed over the actors of a Ray cluster: NCCL where the actors have GPUs, gloo where they
have none. Checked: every element on every rank."""
import argparse
import socket
import sys

import drarun.ray
import ray
import torch
import torch.distributed as dist

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

    def address(self):
        """Where rank 0 will listen."""
        host = ray.util.get_node_ip_address()
        with socket.socket() as free:
            free.bind((host, 0))
            return f"tcp://{host}:{free.getsockname()[1]}"

    def all_reduce(self, where, size, rank, elements):
        dist.init_process_group(backend, init_method=where, world_size=size, rank=rank)
        tensor = torch.full((elements,), float(rank + 1), device="cuda" if backend == "nccl" else "cpu")
        dist.all_reduce(tensor)
        dist.destroy_process_group()
        return tensor.min().item(), tensor.max().item()


ray.init(address=options.address, runtime_env=drarun.ray.runtime_env(), logging_level="warning")
workers = [Worker.remote() for _ in range(options.actors)]
group = drarun.ray.check(workers, backend=backend, timeout=options.timeout)  # raises where two do not fit
workers = [workers[number] for number in group.order]
where = ray.get(workers[0].address.remote())
found = set(ray.get([worker.all_reduce.remote(where, len(workers), rank, options.elements)
                     for rank, worker in enumerate(workers)]))

right = float(sum(range(1, options.actors + 1)))
print(f"all_reduce_torch: {group.summary}; {backend}: {options.elements} elements, sum {right:g}, "
      f"{'right' if found == {(right, right)} else f'WRONG: {found}'} on every rank")
sys.exit(0 if found == {(right, right)} else 1)
