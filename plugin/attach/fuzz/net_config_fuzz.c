/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a claim's opaque configuration: taken, or refused with a finding. */
#include <stdint.h>
#include <stdlib.h>

#include "plugin/attach/net_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct doc *doc)
{
    struct net_config config = NET_CONFIG_INIT;
    struct reader reader;
    reader_init(&reader, doc, false);
    struct reader_node root = reader_root(&reader, 0);
    int rc = net_config_read(&root, &config);
    if ((rc < 0) != (reader_result(&reader, NULL) < 0))
        abort();
    if (rc == 0) {
        json_t *json = net_config_json(&config);
        if (!json)
            abort();
        json_decref(json);
        net_config_done(&config);
    }
    net_config_read_rdma(&root);
    reader_done(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct doc *doc = NULL;
    if (doc_parse("config", (const char *)data, size, DOC_FORMAT_JSON, NULL, &doc, NULL) < 0)
        return 0;
    if (doc_count(doc) == 1)
        check(doc);
    doc_free(doc);
    return 0;
}
