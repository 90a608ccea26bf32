/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/verb_repaired.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/topo/pci.h"
#include "plugin/discover/inventory.h"
#include "plugin/discover/xids.h"
#include "plugin/prepare/preparer.h"

static const char help_text[] =
    "Usage: drarun-plugin repaired [OPTION...] ADDRESS...\n"
    "\n"
    "Takes the taints of Xids off the GPUs at these PCI addresses (0000:8f:00.0), after a reset or a\n"
    "repair, from the plugin that runs on this node; it does so within 5 s. What a new Xid taints\n"
    "afterwards stays tainted.\n"
    "\n"
    "  --state-dir DIR   the plugin's (default: " PREPARE_STATE_DIR ")\n"
    "      --help        this text\n";

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

int verb_repaired(int argc, char **argv)
{
    static const struct option options[] = {
        {"state-dir", required_argument, NULL, 's'}, {"help", no_argument, NULL, 'h'}, {0}};
    const char *state_dir = PREPARE_STATE_DIR;
    struct drarun_error err = {0};
    char dir[256];
    int option, rc = 0;
    optind = 1;
    while (rc == 0 && (option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (option == 'h')
            return fputs(help_text, stdout) < 0;
        if (option == 's')
            state_dir = optarg;
        else
            rc = error_kind(&err, DRARUN_ERR_USAGE, EINVAL, "see drarun-plugin repaired --help");
    }
    if (rc == 0 && optind == argc)
        rc = error_kind(&err, DRARUN_ERR_USAGE, EINVAL, "expected a GPU's PCI address");
    if (rc == 0 && snprintf(dir, sizeof dir, "%s/" XIDS_REPAIRED, state_dir) >= (int)sizeof dir)
        rc = error_kind(&err, DRARUN_ERR_USAGE, ENAMETOOLONG, "--state-dir: the path is too long");
    if (rc == 0)
        rc = dirs_make(dir, 0700, &err);
    for (int i = optind; rc == 0 && i < argc; i++)
        rc = leave_file(dir, argv[i], &err);
    if (rc < 0)
        log_error("repaired: %s", err.text);
    return rc < 0 ? error_exit_status(err.kind) : 0;
}
