// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM: each PE puts a number into the next one's memory. It ends by shmem_global_exit, since
// Debian 12's shmem_finalize crashes under any launcher.
#include <shmem.h>
#include <stdio.h>
static long last;
int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_long_p(&last, me + 1, (me + 1) % n);
    shmem_barrier_all();
    printf("hello from %d of %d, got %ld\n", me, n, last);
    fflush(stdout);
    shmem_barrier_all();
    shmem_global_exit(0);
    return 0;
}
