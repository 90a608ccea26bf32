/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/topo/pci.h"
#include "plugin/discover/xids.h"
#include "plugin/prepare/preparer.h"
#include "plugin/verb.h"

struct request {
    const char *state_dir;
    bool help;
};

static const struct option_spec option_list[] = {
    {"state-dir", 0, NULL, "DIR", "DIR", "Options",
     "the plugin's state directory (default: " PREPARE_STATE_DIR ")", OPTION_TEXT,
     offsetof(struct request, state_dir)},
    {"help", 'h', NULL, NULL, NULL, "Options", "show this help", OPTION_FLAG,
     offsetof(struct request, help)},
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

static int leave_file(const char *dir, const char *word, struct drarun_error *err)
{
    char address[PCI_ADDR_TEXT], path[512];
    struct pci_addr addr;
    if (pci_addr_parse(word, &addr, NULL) < 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s: expected a GPU's PCI address, as 0000:8f:00.0", word);
    pci_addr_format(addr, address);
    snprintf(path, sizeof path, "%s/%s", dir, address);
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd >= 0 ? 0 : error_set(err, errno, "%s: %s", path, strerror(errno));
}

static int leave_files(const char *state_dir, int count, char *const words[],
                       struct drarun_error *err)
{
    char dir[256];
    if (snprintf(dir, sizeof dir, "%s/" XIDS_REPAIRED, state_dir) >= (int)sizeof dir)
        return error_kind(err, DRARUN_ERR_USAGE, ENAMETOOLONG, "--state-dir: the path is too long");
    int rc = dirs_make(dir, 0700, err);
    for (int i = 0; rc == 0 && i < count; i++)
        rc = leave_file(dir, words[i], err);
    return rc;
}

static int run(int argc, char *const argv[])
{
    struct drarun_error err = {0};
    struct request r = {.state_dir = PREPARE_STATE_DIR};
    bool done = false;
    int rc = plugin_verb_parse(&verb_repaired, argc, argv, &r, &r.help, &done, &err);
    if (rc >= 0 && !done)
        rc = leave_files(r.state_dir, argc - rc, argv + rc, &err);
    if (rc < 0)
        log_error("repaired: %s", err.text);
    return rc < 0 ? error_exit_status(err.kind) : 0;
}

const struct plugin_verb verb_repaired = {
    "repaired",
    "ADDRESS...",
    "Removes the Xid taints from GPUs that work again.",
    "Name the PCI addresses (0000:8f:00.0) of the GPUs that were reset or repaired. The plugin on\n"
    "this node removes their taints within 5 s. A later Xid taints a GPU again.\n",
    &options_table,
    run};
