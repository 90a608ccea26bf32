/* SPDX-License-Identifier: Apache-2.0 */
/* For LD_PRELOAD: a PMIx client that says it is the user OTHER_USER, which the library writes into
 * its handshake. */
#include <stdlib.h>
#include <unistd.h>

static unsigned said(void)
{
    const char *user = getenv("OTHER_USER");
    return user ? (unsigned)strtoul(user, NULL, 10) : 0;
}

uid_t geteuid(void)
{
    return said();
}

gid_t getegid(void)
{
    return said();
}
