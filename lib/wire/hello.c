/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/hello.h"

#include <errno.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/unconst.h"

void hello_fill(Drarun__Wire__Hello *hello, Drarun__Wire__Role role, const char *pmix)
{
    hello->major = WIRE_MAJOR;
    hello->minor = WIRE_MINOR;
    hello->build = unconst(DRARUN_VERSION);
    hello->pmix = unconst(pmix);
    hello->role = role;
}

int hello_check(const Drarun__Wire__Hello *hello, const char *own_pmix, struct drarun_error *err)
{
    if (hello->major != WIRE_MAJOR)
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, EPROTONOSUPPORT,
                          "it speaks protocol version %u.%u (drarun %s), this side %u.%u (drarun "
                          "%s): use the same release on both sides",
                          hello->major, hello->minor, hello->build, WIRE_MAJOR, WIRE_MINOR,
                          DRARUN_VERSION);
    if (own_pmix[0] && hello->pmix[0] && strcmp(own_pmix, hello->pmix) != 0)
        return error_kind(
            err, DRARUN_ERR_INFRASTRUCTURE, EPROTONOSUPPORT,
            "it carries libpmix %s, other agents of this job %s, and the two are incompatible: "
            "use the same drarun-worker everywhere",
            hello->pmix, own_pmix);
    return 0;
}

int hello_check_release(const Drarun__Wire__Hello *hello, struct drarun_error *err)
{
    if (strcmp(hello->build, DRARUN_VERSION) == 0)
        return 0;
    return error_kind(
        err, DRARUN_ERR_INFRASTRUCTURE, EPROTONOSUPPORT,
        "it is of drarun %s, this side of drarun %s: use one image, or one release, in "
        "all pods",
        hello->build, DRARUN_VERSION);
}
