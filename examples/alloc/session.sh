#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What one would type in the shell of an allocation: drarun alloc job.yaml -- ./session.sh
set -eu
program=${PROGRAM:-/programs/allreduce}

drarun -n 2 sh -c 'echo "worker $GROUP_RANK is $(hostname)"' # one rank a worker
drarun sh -c 'echo "rank $RANK has GPU $CUDA_VISIBLE_DEVICES"' # as many as the spec says

for ranks in 2 4; do
    drarun -n "$ranks" "$program" # the same pods again and again
done

drarun -n 4 sh -c 'exit 3' || echo "the last one ended with $?: the allocation is still there"
