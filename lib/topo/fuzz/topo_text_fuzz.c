/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of sysfs: the first byte picks the parser, the rest is the text. What a parser takes
 * must come back the same when it is formatted and parsed again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/topo/cpus.h"
#include "lib/topo/rdma_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_address(const char *text)
{
    struct pci_addr addr, again;
    char formatted[PCI_ADDR_TEXT];
    if (pci_addr_parse(text, &addr, NULL) < 0)
        return;
    pci_addr_format(addr, formatted);
    if (pci_addr_parse(formatted, &again, NULL) < 0 || pci_addr_compare(addr, again) != 0)
        abort();
}

static void check_path(const char *text)
{
    struct pci_place place;
    if (pci_place_from_path(text, &place, NULL) < 0)
        return;
    if (!pci_root_valid(place.root) || place.bridge_count > PCI_BRIDGES_MAX ||
        pci_path(&place, &place, false, 2) != TOPO_PATH_SELF)
        abort();
    pci_place_done(&place);
}

static void check_cpulist(const char *text)
{
    cleanup_free uint32_t *ids = NULL, *again = NULL;
    size_t count = 0, count_again = 0;
    if (cpulist_parse(text, &ids, &count, NULL) < 0)
        return;
    struct buf list = BUF_INIT;
    buf_add_str(&list, "");
    cpulist_format(ids, count, &list);
    if (cpulist_parse(list.data, &again, &count_again, NULL) < 0 || count != count_again ||
        (count > 0 && memcmp(ids, again, count * sizeof *ids) != 0))
        abort();
    buf_done(&list);
}

static void check_gid(const char *text)
{
    uint8_t bytes[16];
    char formatted[48];
    if (!gid_parse(text, bytes))
        return;
    gid_format(bytes, formatted);
    if (formatted[0] == '\0')
        abort();
}

static void check_words(const char *text)
{
    char state[16] = "";
    if (rdma_rate_parse(text) > 4000999999u || pci_speed_parse(text) > 9999900u)
        abort();
    if (rdma_state_parse(text, state, sizeof state) == TOPO_YES && strcmp(state, "ACTIVE") != 0)
        abort();
    rdma_link_parse(text);
    gid_type_parse(text, TOPO_LINK_ETHERNET);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const checks[])(const char *) = {check_address, check_path, check_cpulist,
                                                   check_gid, check_words};
    if (size == 0)
        return 0;
    cleanup_free char *text = malloc(size);
    if (!text)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    checks[data[0] % ARRAY_LEN(checks)](text);
    return 0;
}
