/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verb.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"

void verb_help(const struct verb *verb, struct buf *out)
{
    buf_printf(out, "Usage: drarun %s [options]%s%s\n\n%s\n", verb->name,
               verb->arguments ? " " : "", verb->arguments ? verb->arguments : "", verb->summary);
    options_help(verb->options, out);
}

int verb_parse_file(const struct verb *verb, int argc, char *const argv[], void *options,
                    const bool *help, const char **ret_file, struct drarun_error *err)
{
    const char *file = NULL;
    int at = options_parse(verb->options, argc, argv, false, options, err);
    if (at >= 0 && at < argc) {
        file = argv[at++];
        int more = options_parse(verb->options, argc - at, argv + at, false, options, err);
        at = more < 0 ? more : at + more;
    }
    if (at < 0)
        return at;
    if (!*help && (!file || at < argc))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "expected one file: drarun %s [options] %s", verb->name, verb->arguments);
    *ret_file = file;
    return 0;
}

void verb_add_json_take(json_t *json, struct buf *out)
{
    cleanup_free char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
    json_decref(json);
    if (text)
        buf_printf(out, "%s\n", text);
    out->failed |= !text;
}

int verb_write(const char *name, struct buf *out)
{
    int rc = out->failed     ? -ENOMEM
             : out->len == 0 ? 0
                             : fd_write_all(STDOUT_FILENO, out->data, out->len);
    buf_done(out);
    if (rc == 0)
        return 0;
    log_error("%s: cannot write to stdout: %s", name, strerror(-rc));
    return error_exit_status(DRARUN_ERR_INFRASTRUCTURE);
}
