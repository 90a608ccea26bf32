/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/version.h"

#include <errno.h>
#include <event2/event.h>
#include <gnu/libc-version.h>
#include <jansson.h>
#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

#include "launcher/cli/verb.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/doc/yaml_write.h"

struct shown {
    const char *output;
};

static const struct option_spec specs[] = {
    {.name = "output",
     .letter = 'o',
     .value = "FORMAT",
     .choices = "text json yaml",
     .group = "What is shown",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct shown, output),
     .help = "text (default), or json or yaml with the libraries"},
};
static const struct option_table table = {specs, ARRAY_LEN(specs)};

static json_t *whole(void)
{
    return json_pack("{s:s, s:{s:s, s:s, s:s, s:s, s:s}}", "version", DRARUN_VERSION, "libraries",
                     "jansson", jansson_version_str(), "libc", gnu_get_libc_version(), "libevent",
                     event_get_version(), "libyaml", yaml_library_version(), "protobuf-c",
                     protobuf_c_version());
}

int version_show(int count, char *const words[])
{
    struct shown shown = {0};
    struct drarun_error err = {0};
    struct buf text = BUF_INIT;
    int used = options_parse(&table, count, words, false, &shown, &err);
    if (used >= 0 && used < count)
        used =
            error_kind(&err, DRARUN_ERR_USAGE, EINVAL, "unexpected argument \"%s\"", words[used]);
    if (used < 0) {
        log_error("version: %s", err.text);
        return error_exit_status(err.kind);
    }
    enum verb_format format = verb_format_of(shown.output);
    if (format == VERB_TEXT)
        buf_printf(&text, "drarun %s\n", DRARUN_VERSION);
    else
        verb_add_take(format, whole(), &text);
    return verb_write("version", &text);
}
