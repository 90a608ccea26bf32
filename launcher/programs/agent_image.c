/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/programs/agent_image.h"

#include <stdlib.h>

const char *agent_image(const char *said)
{
    const char *image = said ? said : getenv("DRARUN_IMAGE");
    return image && image[0] ? image : NULL;
}
