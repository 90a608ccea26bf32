/* SPDX-License-Identifier: Apache-2.0 */
/* One text as all that is read of the host's use of a NIC: routes, mounts (whose sources users
 * choose), sockets. Reasons become parts of events: they are texts. */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/topo/test/tree.h"
#include "plugin/discover/live_use.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct tree tree = {.root = -1};

static void drop(void)
{
    tree_drop(&tree);
}

static void check(const struct host_use *use)
{
    if (use->names.count != use->reasons.count || use->names.count > 1)
        abort();
    for (size_t i = 0; i < use->names.count; i++) {
        if (strcmp(use->names.items[i], "rail1") != 0)
            abort();
        for (const char *p = use->reasons.items[i]; *p; p++)
            if (*p < ' ' || *p > '~')
                abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const files[] = {"proc/net/route", "proc/net/ipv6_route", "proc/1/mounts",
                                        "proc/net/tcp"};
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct ifaddrs own = {.ifa_name = (char[]){"rail1"}, .ifa_addr = (struct sockaddr *)&four};
    struct strlist interfaces = STRLIST_INIT;
    struct host_use use;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (tree.root < 0) {
        tree = tree_new();
        atexit(drop);
    }
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        tree_file(&tree, files[i], text);
    inet_pton(AF_INET, "10.5.0.2", &four.sin_addr);
    strlist_add(&interfaces, "rail1");
    if (live_use_read(tree.root, &own, &interfaces, &use, NULL) == 0) {
        check(&use);
        host_use_done(&use);
    }
    strlist_done(&interfaces);
    free(text);
    return 0;
}
