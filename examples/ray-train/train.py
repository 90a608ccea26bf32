# SPDX-License-Identifier: Apache-2.0
"""A training loop as Ray Train runs it, with plain actors: a placement group holds one bundle a worker, workers join
torch.distributed, gradients are averaged with all_reduce, and worker 0 reports each tenth step. It fits a line on CPUs.
Checked: all have the same weights, and they are the right ones."""
import argparse
import socket
import sys

import drarun.ray
import ray
import torch
import torch.distributed as dist
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

TRUE_SLOPE, TRUE_OFFSET = 3.0, -1.0

parser = argparse.ArgumentParser()
parser.add_argument("--address", default="auto", help="of the cluster (default: the one of this machine)")
parser.add_argument("--workers", type=int, default=2)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--timeout", type=float, default=300, help="seconds until the cluster must have room")
options = parser.parse_args()


@ray.remote(num_cpus=1)
class Worker:
    def __init__(self, rank, size):
        self.rank, self.size = rank, size

    def address(self):
        """Where rank 0 will listen."""
        host = ray.util.get_node_ip_address()
        with socket.socket() as free:
            free.bind((host, 0))
            return f"tcp://{host}:{free.getsockname()[1]}"

    def start(self, where):
        drarun.ray.bind()
        torch.set_num_threads(1)
        dist.init_process_group("gloo", init_method=where, world_size=self.size, rank=self.rank)
        random = torch.Generator().manual_seed(1000 + self.rank)  # each has data of its own
        self.x = torch.rand(256, generator=random, dtype=torch.float64)
        self.y = TRUE_SLOPE * self.x + TRUE_OFFSET
        self.weights = torch.zeros(2, dtype=torch.float64, requires_grad=True)

    def steps(self, count, rate=0.5):
        """Returns the last loss."""
        for _ in range(count):
            loss = torch.mean((self.weights[0] * self.x + self.weights[1] - self.y) ** 2)
            (gradient,) = torch.autograd.grad(loss, self.weights)
            dist.all_reduce(gradient)
            with torch.no_grad():
                self.weights -= rate * gradient / self.size
        return loss.item()

    def result(self):
        dist.destroy_process_group()
        return tuple(self.weights.tolist())


ray.init(address=options.address, runtime_env=drarun.ray.runtime_env(), logging_level="warning")
room = placement_group([{"CPU": 1}] * options.workers, strategy="SPREAD")
group = drarun.ray.check(room, backend="gloo", timeout=options.timeout)
workers = [Worker.options(scheduling_strategy=PlacementGroupSchedulingStrategy(room, placement_group_bundle_index=bundle))
           .remote(rank, options.workers) for rank, bundle in enumerate(group.order)]
where = ray.get(workers[0].address.remote())
ray.get([worker.start.remote(where) for worker in workers])
for step in range(0, options.steps, options.steps // 10):
    losses = ray.get([worker.steps.remote(options.steps // 10) for worker in workers])
    print(f"step {step + options.steps // 10}: loss {losses[0]:.6f}", flush=True)
results = ray.get([worker.result.remote() for worker in workers])

slope, offset = results[0]
right = len(set(results)) == 1 and abs(slope - TRUE_SLOPE) < 1e-3 and abs(offset - TRUE_OFFSET) < 1e-3
print(f"ray-train: {options.workers} workers on {len({report.node for report in group.reports})} nodes, "
      f"y = {slope:.3f} x {offset:+.3f}, {'the same and right' if right else f'WRONG or different: {results}'} on every one")
sys.exit(0 if right else 1)
