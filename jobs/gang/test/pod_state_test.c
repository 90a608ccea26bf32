/* SPDX-License-Identifier: Apache-2.0 */
/* Every file of tests/data/pods (the folder is the argument): Pod, ResourceClaim and Events as the
 * API gives them, and what they mean. */
#include <dirent.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/gang/pod_state.h"
#include "lib/base/cleanup.h"
#include "lib/base/timestamp.h"
#include "lib/doc/value.h"

static const char *folder;

static json_t *time_json(int64_t ms)
{
    char text[TIMESTAMP_SIZE];
    if (ms == 0)
        return json_null();
    timestamp_format(ms, text, sizeof text);
    /* the objects have whole seconds */
    memcpy(strchr(text, '.'), "Z", sizeof "Z");
    return json_string(text);
}

static json_t *text_json(const char *text)
{
    return text ? json_string(text) : json_null();
}

static json_t *news_json(const struct news *news, enum news_kind kind)
{
    const struct news_item *item = news_get(news, kind);
    return text_json(item ? item->text : NULL);
}

static json_t *state_json(const struct pod_state *s)
{
    json_t *o = json_pack(
        "{s:s, s:s, s:s, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:i, s:i, s:i}",
        "phase", pod_phase_name(s->phase), "end", pod_end_name(s->end), "claim",
        claim_phase_name(s->claim), "suspended", s->suspended, "unschedulable", s->unschedulable,
        "nodeComes", s->node_comes, "imageComes", s->image_comes, "failing", s->failing, "notReady",
        s->not_ready, "deleting", s->deleting, "disrupted", s->disrupted, "holds",
        pod_state_holds(s), "placed", pod_state_placed(s), "imageVolume", s->image_volume,
        "imageOf", (int)s->image_of, "exitCode", s->exit_code, "devices", (int)s->devices);
    json_object_set_new(o, "since", time_json(s->since_ms));
    json_object_set_new(o, "deletingSince", time_json(s->deleting_since_ms));
    json_object_set_new(o, "ordered", time_json(s->ordered_ms));
    json_object_set_new(o, "started", time_json(s->started_ms));
    json_object_set_new(o, "node", text_json(s->node));
    json_object_set_new(o, "ip", text_json(s->ip));
    json_object_set_new(o, "group", text_json(s->group));
    json_object_set_new(o, "container", text_json(s->container));
    json_object_set_new(o, "image", text_json(s->image));
    json_object_set_new(o, "reason", text_json(s->reason));
    json_object_set_new(o, "message", text_json(s->message));
    json_object_set_new(o, "news",
                        json_pack("{s:o, s:o}", "prepare", news_json(s->news, NEWS_PREPARE_FAILED),
                                  "scheduling", news_json(s->news, NEWS_SCHEDULING_FAILED)));
    return o;
}

/* What expect names, found is. */
static size_t compare(const char *name, const json_t *expect, const json_t *found)
{
    const char *key;
    json_t *value;
    size_t wrong = 0;
    value_foreach(expect, key, value)
    {
        const json_t *is = json_object_get(found, key);
        if (json_is_object(value)) {
            wrong += compare(name, value, is);
        } else if (!json_equal(value, is)) {
            cleanup_free char *want = json_dumps(value, JSON_ENCODE_ANY);
            cleanup_free char *got = is ? json_dumps(is, JSON_ENCODE_ANY) : NULL;
            print_error("%s: %s: expected %s, got %s\n", name, key, want, got ? got : "nothing");
            wrong++;
        }
    }
    return wrong;
}

static json_t *read_state(const json_t *pod, const json_t *file, const struct news *news)
{
    struct pod_state state;
    pod_state_read(pod, json_object_get(file, "claim"),
                   json_is_true(json_object_get(file, "wantsClaim")), news, &state);
    return state_json(&state);
}

/* What a launcher keeps of a pod says the same of it. */
static size_t compare_trimmed(const char *name, const json_t *file, const struct news *news,
                              const json_t *found)
{
    CLEANUP(json_decrefp) json_t *pod = json_deep_copy(json_object_get(file, "pod"));
    pod_state_trim(pod);
    CLEANUP(json_decrefp) json_t *trimmed = read_state(pod, file, news);
    return compare(name, found, trimmed);
}

static size_t check_file(const char *name)
{
    char path[4096];
    json_error_t error;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CLEANUP(json_decrefp) json_t *file = json_load_file(path, 0, &error);
    if (!file)
        fail_msg("%s: %s", path, error.text);
    struct news news = {0};
    size_t i;
    json_t *event;
    json_array_foreach(json_object_get(file, "events"), i, event) news_add(&news, event);
    CLEANUP(json_decrefp) json_t *found = read_state(json_object_get(file, "pod"), file, &news);
    const json_t *expect = json_object_get(file, "expect");
    assert_true(json_object_size(expect) > 0);
    size_t wrong = compare(name, expect, found);
    wrong += compare_trimmed(name, file, &news, found);
    news_done(&news);
    return wrong;
}

static void every_file(void **state)
{
    (void)state;
    size_t files = 0, wrong = 0;
    cleanup_dir DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        const char *end = strrchr(entry->d_name, '.');
        if (!end || strcmp(end, ".json") != 0)
            continue;
        files++;
        wrong += check_file(entry->d_name);
    }
    assert_true(files >= 70);
    assert_int_equal(wrong, 0);
}

/* An Event outlives its object by an hour, and the next job's may be called the same. */
static void news_of_an_earlier_object(void **state)
{
    (void)state;
    struct news news = {0};
    struct pod_state s;
    CLEANUP(json_decrefp)
    json_t *event = json_pack("{s:s, s:{s:s, s:s, s:s}, s:s}", "reason",
                              "FailedResourceClaimCreation", "involvedObject", "kind", "Pod",
                              "name", "a-w-0-x", "uid", "old", "message", "exceeded quota: few");
    CLEANUP(json_decrefp)
    json_t *own = json_pack("{s:{s:s, s:s}}", "metadata", "name", "a-w-0-x", "uid", "old");
    CLEANUP(json_decrefp)
    json_t *next = json_pack("{s:{s:s, s:s}}", "metadata", "name", "a-w-0-y", "uid", "new");
    assert_true(news_add(&news, event));
    pod_state_read(own, NULL, true, &news, &s);
    assert_int_equal(s.claim, CLAIM_REFUSED);
    pod_state_read(next, NULL, true, &news, &s);
    assert_int_equal(s.claim, CLAIM_ABSENT);
    pod_state_read(NULL, NULL, true, &news, &s); /* the next one is not there yet */
    assert_int_equal(s.claim, CLAIM_ABSENT);
    assert_ptr_equal(news_about(&news, "old"), &news);
    assert_null(news_about(&news, "new"));
    assert_null(news_about(&news, NULL));
    news_done(&news);
    assert_ptr_equal(news_about(&news, NULL), &news); /* nobody's */
    assert_null(news_about(NULL, "new"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_file),
                                       cmocka_unit_test(news_of_an_earlier_object)};
    folder = argc > 1 ? argv[1] : "tests/data/pods";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
