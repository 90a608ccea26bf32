/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that says that it runs and then waits to be ended. */
#include <unistd.h>

int main(void)
{
    if (write(STDOUT_FILENO, "ready\n", 6) != 6)
        return 1;
    for (;;)
        pause();
}
