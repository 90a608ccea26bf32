# SPDX-License-Identifier: Apache-2.0
"""grid.py N: a square grid of N x N vertices as a graph file of Scotch's."""
import sys

side = int(sys.argv[1])
rows = [[y * side + x for y, x in ((v // side, v % side + 1), (v // side, v % side - 1), (v // side + 1, v % side), (v // side - 1, v % side))
         if 0 <= x < side and 0 <= y < side] for v in range(side * side)]
print(0)
print(len(rows), sum(map(len, rows)))
print("0 000")
for near in rows:
    print(len(near), *near)
