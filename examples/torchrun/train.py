# SPDX-License-Identifier: Apache-2.0
"""Fits a line on all ranks with torch.distributed (gloo): each rank has data of its own, gradients
are averaged with all_reduce. Checked: every rank has the same weights, and they are the right ones."""
import os
import sys

import torch
import torch.distributed as dist

STEPS, RATE = 200, 0.5
TRUE_SLOPE, TRUE_OFFSET = 3.0, -1.0

dist.init_process_group("gloo", init_method="env://")
rank, size = dist.get_rank(), dist.get_world_size()
torch.set_num_threads(1)

random = torch.Generator().manual_seed(1000 + rank)
x = torch.rand(256, generator=random, dtype=torch.float64)
y = TRUE_SLOPE * x + TRUE_OFFSET
weights = torch.zeros(2, dtype=torch.float64, requires_grad=True)

for _ in range(STEPS):
    loss = torch.mean((weights[0] * x + weights[1] - y) ** 2)
    (gradient,) = torch.autograd.grad(loss, weights)
    dist.all_reduce(gradient)
    with torch.no_grad():
        weights -= RATE * gradient / size

everyones = [torch.zeros_like(weights) for _ in range(size)]
dist.all_gather(everyones, weights.detach())
same = all(torch.equal(other, everyones[0]) for other in everyones)
slope, offset = weights.tolist()
right = same and abs(slope - TRUE_SLOPE) < 1e-3 and abs(offset - TRUE_OFFSET) < 1e-3

if rank == 0:
    workers = -(-size // int(os.environ["LOCAL_WORLD_SIZE"]))
    print(f"torchrun: {size} ranks, workers: {workers}, y = {slope:.3f} x {offset:+.3f}, "
          f"{'the same and right' if right else 'WRONG or different'} on every rank", flush=True)
dist.destroy_process_group()
sys.exit(0 if right else 1)
