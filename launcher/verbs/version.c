/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/version.h"

#include <curl/curlver.h>
#include <errno.h>
#include <event2/event.h>
#include <gnu/libc-version.h>
#include <hwloc.h>
#include <jansson.h>
#include <netlink/version.h>
#include <nghttp2/nghttp2ver.h>
#include <openssl/opensslv.h>
#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <zlib.h>

#include "launcher/cli/verb.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
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
     .help = "text (default), or json or yaml with the\ncommit and the libraries of all programs"},
};
static const struct option_table table = {specs, ARRAY_LEN(specs)};

/* Libraries of this program and headers say their versions themselves; CMake has read those of
 * others beside the library that is linked. */
static json_t *whole(const char *commit)
{
    return json_pack(
        "{s:s, s:s*, s:{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}}",
        "version", DRARUN_VERSION, "commit", commit[0] ? commit : NULL, "libraries", "curl",
        LIBCURL_VERSION, "hwloc", HWLOC_VERSION, "jansson", jansson_version_str(), "libc",
        gnu_get_libc_version(), "libevent", event_get_version(), "libnl3", LIBNL_VERSION, "libpmix",
        DRARUN_PMIX_VERSION, "libyaml", yaml_library_version(), "munge", DRARUN_MUNGE_VERSION,
        "nghttp2", NGHTTP2_VERSION, "openssl", OPENSSL_VERSION_STR, "protobuf-c",
        protobuf_c_version(), "rdma-core", DRARUN_RDMA_VERSION, "zlib", ZLIB_VERSION);
}

int version_show(int count, char *const words[], const char *commit)
{
    struct shown shown = {0};
    struct drarun_error err = {0};
    struct buf text = BUF_INIT;
    int used = options_parse(&table, count, words, false, &shown, &err);
    if (used >= 0 && used < count)
        used =
            error_kind(&err, DRARUN_ERR_USAGE, EINVAL, "unexpected argument \"%s\"", words[used]);
    if (used < 0)
        return verb_fail("version", &err);
    enum verb_format format = verb_format_of(shown.output);
    if (format == VERB_TEXT)
        buf_printf(&text, "drarun %s\n", DRARUN_VERSION);
    else
        verb_add_take(format, whole(commit), &text);
    return verb_write("version", &text);
}
