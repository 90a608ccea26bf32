/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/signal_name.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/base/cleanup.h"

static const struct {
    const char *name; /* without SIG, in the order of SIGNAL_NAMES */
    int signo;
} signals[] = {
    {"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2},
    {"ALRM", SIGALRM}, {"TERM", SIGTERM}, {"URG", SIGURG},   {"XCPU", SIGXCPU},
};

int signal_of_name(const char *name, size_t length)
{
    char number[16];
    if (length > 3 && strncasecmp(name, "SIG", 3) == 0) {
        name += 3;
        length -= 3;
    }
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        snprintf(number, sizeof number, "%d", signals[i].signo);
        if ((strlen(signals[i].name) == length &&
             strncasecmp(signals[i].name, name, length) == 0) ||
            (strlen(number) == length && strncmp(number, name, length) == 0))
            return signals[i].signo;
    }
    return 0;
}

int signal_at(size_t index)
{
    return index < ARRAY_LEN(signals) ? signals[index].signo : 0;
}
