/* SPDX-License-Identifier: Apache-2.0 */
/* drarun-plugin: picks the verb; each has its file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <event2/event.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/first_process.h"
#include "lib/base/log.h"
#include "lib/base/need_memory.h"
#include "lib/doc/json_memory.h"
#include "lib/program/static_setup.h"
#include "plugin/verb.h"

static const struct plugin_verb *const verbs[] = {&verb_discover, &verb_repaired, &verb_run};

static void print_help(void)
{
    puts("Usage: drarun-plugin VERB [OPTION...]\n"
         "\n"
         "The node plugin of drarun: GPUs and NICs for Kubernetes' Dynamic Resource Allocation.\n");
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        printf("  %-10s %s\n", verbs[i]->name, verbs[i]->summary);
    puts("\n      --version  show the version\n      --help     show this help; after a verb, "
         "that of the verb");
}

int main(int argc, char **argv)
{
    first_process_begin();
    static_setup();
    json_memory_end_without();
    event_set_mem_functions(need_memory, need_more_memory, free);
    log_setup("drarun-plugin", LOG_NORMAL);
    const char *word = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (strcmp(word, verbs[i]->name) == 0)
            return verbs[i]->run(argc - 2, argv + 2);
    if (strcmp(word, "--help") == 0) {
        print_help();
        return 0;
    }
    if (strcmp(word, "--version") == 0) {
        puts("drarun-plugin " DRARUN_VERSION);
        return 0;
    }
    log_error("%s%s: expected a verb; see drarun-plugin --help", word[0] ? word : "no argument",
              word[0] ? ": no such verb" : "");
    return error_exit_status(DRARUN_ERR_USAGE);
}
