# SPDX-License-Identifier: Apache-2.0
"""Sums over all ranks with mpi4py and checks the result on every rank."""
import sys
from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()

mine = array("d", [(rank + 1) * (i % 97 + 1) for i in range(1000)])
total = array("d", bytes(8 * len(mine)))
world.Allreduce(mine, total, op=MPI.SUM)
right = all(total[i] == size * (size + 1) // 2 * (i % 97 + 1) for i in range(len(total)))

# objects travel too: each rank's name and verdict
reports = world.gather((MPI.Get_processor_name(), right), root=0)
if rank == 0:
    hosts = len({host for host, _ in reports})
    wrong = [i for i, (_, ok) in enumerate(reports) if not ok]
    verdict = f"wrong on ranks {wrong}" if wrong else "right on every rank"
    print(f"mpi4py: {size} ranks, hosts: {hosts}, sum of {len(total)} doubles {verdict}")
sys.exit(0 if right else 1)
