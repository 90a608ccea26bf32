/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/port.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/topo/port_name.h"
#include "lib/topo/root.h"

int port_of(const char *netdev)
{
    char path[64], text[64];
    snprintf(path, sizeof path, "/sys/class/net/%s", netdev);
    cleanup_close int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 ||
        (attr_read(dir, "phys_port_name", text, sizeof text) > 0 && port_name_is_representor(text)))
        return -1;
    if (attr_read(dir, "dev_port", text, sizeof text) <= 0 || strlen(text) > 4 ||
        strspn(text, "0123456789") != strlen(text))
        return -1;
    return (int)strtol(text, NULL, 10);
}
