# SPDX-License-Identifier: Apache-2.0
"""PETSc solves the one-dimensional Poisson equation with conjugate gradients, through petsc4py."""
import petsc4py

petsc4py.init([])
from petsc4py import PETSc  # noqa: E402

N, LIMIT = 200, 1e-6

matrix = PETSc.Mat().createAIJ([N, N], nnz=3)
for row in range(*matrix.getOwnershipRange()):
    for column, value in ((row - 1, -1.0), (row, 2.0), (row + 1, -1.0)):
        if 0 <= column < N:
            matrix[row, column] = value
matrix.assemble()
found, right = matrix.createVecs()
found.set(1.0)
matrix.mult(found, right)
found.set(0.0)
solver = PETSc.KSP().create()
solver.setOperators(matrix)
solver.setType("cg")
solver.getPC().setType("bjacobi")
solver.setTolerances(rtol=1e-10)
solver.solve(right, found)
found.shift(-1.0)
PETSc.Sys.Print(f"{PETSc.COMM_WORLD.size} ranks, error below {LIMIT:g}: {found.norm() < LIMIT}")
