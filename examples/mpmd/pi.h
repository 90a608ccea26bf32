/* SPDX-License-Identifier: Apache-2.0 */
/* What the two programs of this example say to each other over MPI_COMM_WORLD. */
#ifndef EXAMPLES_MPMD_PI_H
#define EXAMPLES_MPMD_PI_H

enum pi_role { PI_COORDINATOR = 0, PI_INTEGRATOR = 1 };

enum pi_tag {
    PI_TAG_SLICE = 1, /* struct pi_slice to an integrator, as MPI_LONG */
    PI_TAG_AREA,      /* one double to the coordinator: the slice's area */
};

/* Steps [first, end) of `steps` equal ones on [0, 1]; none: stop. */
struct pi_slice {
    long first, end, steps;
};

#define PI_SLICE_LONGS 3

#endif
