/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/program/static_setup.h"

#include <nss.h>
#include <openssl/crypto.h>

void static_setup(void)
{
#ifdef DRARUN_STATIC_PROGRAM
    /* what the C library has in itself, as other static launchers have it; in place of
     * nsswitch.conf */
    __nss_configure_lookup("hosts", "files dns");
    /* its file could name modules to load */
    OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
#endif
}
