# SPDX-License-Identifier: Apache-2.0
"""Other people's MPI programs and MPICH's own test suite, under each MPI library's own launcher and under drarun."""
