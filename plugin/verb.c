/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/verb.h"

#include <errno.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/file.h"

static int show_help(const struct plugin_verb *verb, struct drarun_error *err)
{
    struct buf text = BUF_INIT;
    buf_printf(&text, "Usage: drarun-plugin %s [options]%s%s\n\n%s\n%s", verb->name,
               verb->arguments ? " " : "", verb->arguments ? verb->arguments : "", verb->summary,
               verb->more ? verb->more : "");
    options_help(verb->options, &text);
    int rc = text.failed ? -ENOMEM : fd_write_all(STDOUT_FILENO, text.data, text.len);
    buf_done(&text);
    return rc < 0 ? error_set(err, -rc, "cannot write to stdout") : 0;
}

int plugin_verb_parse(const struct plugin_verb *verb, int argc, char *const argv[], void *options,
                      const bool *help, bool *ret_done, struct drarun_error *err)
{
    int used = options_parse(verb->options, argc, argv, false, options, err);
    if (used < 0)
        return used;
    if (used < argc && !verb->arguments)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "unexpected argument %s", argv[used]);
    *ret_done = *help;
    if (*help)
        return show_help(verb, err);
    return used < argc || !verb->arguments
               ? used
               : error_kind(err, DRARUN_ERR_USAGE, EINVAL, "expected %s", verb->arguments);
}
