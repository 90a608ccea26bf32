/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/bench/bench_job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/spec/spec.h"
#include "jobs/spec/spec_short.h"
#include "jobs/spec/spec_words.h"
#include "launcher/bench/measured_roles.h"
#include "launcher/cli/verb.h"
#include "launcher/files/spec_file.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/bench/marked.h"
#include "lib/doc/value.h"

/* ---- the file ---- */

/* Those that speak of workers, which roles have different ones of. */
static const char *first_of_workers(const struct bench_choice *c)
{
    return c->workers                        ? "--workers"
           : c->per_worker                   ? "--ranks-per-worker"
           : c->gpus                         ? "--gpus"
           : c->nics                         ? "--nics"
           : c->gpu_class || c->gpu_resource ? "--gpu-class and --gpu-resource"
           : c->nic_class || c->nic_resource ? "--nic-class and --nic-resource"
           : c->nic_selector                 ? "--nic-selector"
           : c->align                        ? "--align"
           : c->profile                      ? "--profile"
                                             : NULL;
}

static bool has_gpus(const json_t *role)
{
    return json_object_get(json_object_get(role, "devices"), "gpus");
}

/* One program with one backend for all ranks. */
static int check_roles(const struct bench_choice *choice, const json_t *base,
                       struct drarun_error *err)
{
    const json_t *roles = measured_roles_of(base), *role, *first = json_array_get(roles, 0);
    const char *option = roles ? first_of_workers(choice) : NULL;
    struct buf names = BUF_INIT;
    size_t i;
    measured_roles_names(roles, &names);
    const char *told = names.data ? names.data : "several";
    int rc = option
                 ? error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                              "%s: the job has several roles (%s): add --role NAME", option, told)
                 : 0;
    json_array_foreach(roles, i, role)
    {
        const json_t *with = has_gpus(role) ? role : first,
                     *without = has_gpus(role) ? first : role;
        if (rc == 0 && !choice->backend_given && has_gpus(role) != has_gpus(first))
            rc = error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                            "spec.roles: NCCL measures the GPUs of %s, and %s has none: say --role "
                            "NAME (%s), or --backend mpi for the memory of all",
                            value_text_or(with, "name", "?"), value_text_or(without, "name", "?"),
                            told);
    }
    buf_done(&names);
    return rc;
}

static json_t *empty_job(void)
{
    return json_pack("{s:s, s:s, s:{}, s:{}}", "apiVersion", SPEC_API_VERSION, "kind", SPEC_KIND,
                     "metadata", "spec");
}

json_t *bench_job_base(const struct bench_choice *choice, int *ret_status)
{
    struct drarun_spec *spec = NULL;
    struct drarun_error err = {0};
    if (choice->job) {
        *ret_status = spec_file_load_program(choice->job, SPEC_BENCH, &spec);
        if (*ret_status != 0)
            return NULL;
    }
    CLEANUP(json_decrefp)
    json_t *base = spec ? measured_roles_take(&spec->job, choice->role, &err) : empty_job();
    drarun_spec_free(spec);
    int rc = base ? check_roles(choice, base, &err) : -err.code;
    if (!base && !err.code)
        rc = error_set(&err, ENOMEM, "out of memory");
    if (rc == 0)
        return TAKE_PTR(base);
    *ret_status = verb_fail("bench", &err);
    return NULL;
}

static const json_t *spec_of(const json_t *base)
{
    return json_object_get(base, "spec");
}

static const json_t *devices_of(const json_t *base, const char *kind)
{
    return json_object_get(json_object_get(spec_of(base), "devices"), kind);
}

/* Of the file: a class, or a device plugin's resource. */
static bool has_source(const json_t *devices)
{
    return json_object_get(devices, "class") || json_object_get(devices, "resource");
}

bool bench_job_seeks_gpus(const struct bench_choice *choice, const json_t *base)
{
    return choice->gpus && !choice->gpu_class && !choice->gpu_resource &&
           !has_source(devices_of(base, "gpus"));
}

bool bench_job_seeks_nics(const struct bench_choice *choice, const json_t *base)
{
    return choice->nics && !choice->nic_class && !choice->nic_resource &&
           !has_source(devices_of(base, "nics"));
}

bool bench_job_seeks_profile(const struct bench_choice *choice, const json_t *base)
{
    return !choice->profile && !json_object_get(json_object_get(spec_of(base), "nccl"), "profile");
}

static uint32_t count_of(const json_t *devices)
{
    json_int_t count = json_integer_value(json_object_get(devices, "count"));
    return count > 0 && count <= UINT32_MAX ? (uint32_t)count : 0;
}

uint32_t bench_job_nics(const struct bench_choice *choice, const json_t *base,
                        const char **ret_role)
{
    const json_t *roles = measured_roles_of(base), *role;
    uint32_t least = 0, most = 0;
    size_t i;
    *ret_role = NULL;
    if (!roles)
        return choice->nics ? choice->nics : count_of(devices_of(base, "nics"));
    json_array_foreach(roles, i, role)
    {
        uint32_t count = count_of(json_object_get(json_object_get(role, "devices"), "nics"));
        if (i == 0 || count < least) {
            least = count;
            *ret_role = value_text(role, "name");
        }
        most = count > most ? count : most;
    }
    if (least == most)
        *ret_role = NULL;
    return least;
}

/* ---- the container ---- */

static const char *image_of(const struct bench_choice *choice)
{
    return choice->image ? choice->image : choice->job ? NULL : getenv("DRARUN_BENCH_IMAGE");
}

int bench_job_check(const struct bench_choice *choice, struct drarun_error *err)
{
    if (!image_of(choice) && !choice->job)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "on a cluster the image of the ranks is needed, any that has an MPI, or "
                          "NCCL and CUDA: --image, or $DRARUN_BENCH_IMAGE");
    if (choice->ranks)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "-n %u: on a cluster --workers and --ranks-per-worker say how many ranks "
                          "there are",
                          choice->ranks);
    if (choice->agents || choice->key_file || choice->bind)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s is not for a job on a cluster",
                          choice->agents     ? "--agents"
                          : choice->key_file ? "--key-file"
                                             : "--bind");
    if ((choice->gpu_class && choice->gpu_resource) || (choice->nic_class && choice->nic_resource))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "devices come by a class or by a resource: give one of them");
    return 0;
}

/* Without those that name files, which are written here. GPUs are measured by what their programs
 * use. */
static json_t *words(const struct bench_choice *choice, bool gpus)
{
    json_t *array = json_array();
    CLEANUP(strlist_done) struct strlist remain = STRLIST_INIT;
    if (keep_pick(&choice->words, &remain, NULL) < 0)
        return array; /* they were read before */
    for (size_t i = 0; i < remain.count; i++)
        json_array_append_new(array, spec_words_literal(i                 ? remain.items[i]
                                                        : choice->program ? choice->program
                                                                          : SPEC_BENCH));
    if (gpus && !choice->backend_given) {
        json_array_append_new(array, json_string("--backend"));
        json_array_append_new(array, json_string("nccl"));
    }
    return array;
}

/* In place of one of that name. */
static void set_variable(json_t *array, const char *name, const char *value)
{
    json_t *entry;
    size_t i;
    json_array_foreach(array, i, entry)
    {
        if (strcmp(value_text_or(entry, "name", ""), name) == 0) {
            json_array_remove(array, i);
            break;
        }
    }
    json_array_append_new(
        array, json_pack("{s:s, s:o}", "name", name, "value", spec_words_literal(value)));
}

/* "A=B", or "A" with our own value. */
static void set_environment(const struct strlist *list, json_t *container)
{
    json_t *array = json_object_get(container, "env");
    if (!json_is_array(array)) {
        array = json_array();
        json_object_set_new(container, "env", array);
    }
    for (size_t i = 0; i < list->count; i++) {
        const char *entry = list->items[i], *equals = strchr(entry, '=');
        size_t length = strcspn(entry, "=");
        CLEANUP(json_decrefp) json_t *name = json_stringn(entry, length); /* never NULL */
        const char *value = equals ? equals + 1 : getenv(json_string_value(name));
        if (value)
            set_variable(array, json_string_value(name), value);
    }
    set_variable(array, MARKED_VARIABLE, "1");
}

/* "KEY[=VALUE][:EFFECT]", as `kubectl taint` has them. */
static json_t *toleration(const char *text)
{
    size_t length = strcspn(text, "=:");
    const char *value = text[length] == '=' ? text + length + 1 : NULL;
    const char *effect = strrchr(text + length, ':');
    size_t value_length = !value ? 0 : effect ? (size_t)(effect - value) : strlen(value);
    return json_pack("{s:s%, s:s, s:o*, s:s*}", "key", text, length, "operator",
                     value ? "Equal" : "Exists", "value",
                     value ? json_stringn(value, value_length) : NULL, "effect",
                     effect ? effect + 1 : NULL);
}

static void add_tolerations(const struct strlist *list, json_t *pod)
{
    json_t *array = json_object_get(pod, "tolerations");
    if (list->count == 0)
        return;
    if (!json_is_array(array)) {
        array = json_array();
        json_object_set_new(pod, "tolerations", array);
    }
    for (size_t i = 0; i < list->count; i++)
        json_array_append_new(array, toleration(list->items[i]));
}

/* Of one role, or of the spec without roles. */
static void set_pod(const struct bench_choice *choice, json_t *spec)
{
    bool gpus = has_gpus(spec);
    if (spec_short_expand(spec) < 0)
        return;
    json_t *pod = json_object_get(json_object_get(spec, "template"), "spec");
    json_t *container = json_array_get(json_object_get(pod, "containers"), 0);
    if (image_of(choice))
        json_object_set_new(container, "image", json_string(image_of(choice)));
    json_object_set_new(container, "command", words(choice, gpus));
    json_object_del(container, "args");
    set_environment(&choice->env, container);
    add_tolerations(&choice->tolerations, pod);
}

/* ---- the devices ---- */

static json_t *member(json_t *object, const char *key)
{
    if (!json_object_get(object, key))
        json_object_set_new(object, key, json_object());
    return json_object_get(object, key);
}

struct wanted { /* NULL and 0: as the file has it */
    uint32_t count;
    const char *class, *resource, *selector;
};

static void set_text(json_t *object, const char *key, const char *text)
{
    if (text && text[0])
        json_object_set_new(object, key, json_string(text));
}

/* The source that is named now takes the place of the file's. */
static void set_devices(json_t *spec, const char *kind, const struct wanted *wanted)
{
    if (!wanted->count && !wanted->class && !wanted->resource && !wanted->selector)
        return;
    json_t *devices = member(member(spec, "devices"), kind);
    if (wanted->count)
        json_object_set_new(devices, "count", json_integer(wanted->count));
    if (wanted->class || wanted->resource) {
        json_object_del(devices, "class");
        json_object_del(devices, "resource");
    }
    set_text(devices, "class", wanted->class);
    set_text(devices, "resource", wanted->resource);
    set_text(devices, "selector", wanted->selector);
}

static const char *either(const char *named, const char *found)
{
    return named ? named : found[0] ? found : NULL;
}

static void set_all_devices(const struct bench_choice *choice, const struct served *served,
                            json_t *spec)
{
    const struct wanted gpus = {
        .count = choice->gpus,
        .class = either(choice->gpu_class, served->gpus.class),
        .resource = either(choice->gpu_resource, served->gpus.resource),
        .selector = either(NULL, served->gpus.selector),
    };
    const struct wanted nics = {
        .count = choice->nics,
        .class = either(choice->nic_class, served->nics.class),
        .resource = either(choice->nic_resource, served->nics.resource),
        .selector = either(choice->nic_selector, served->nics.selector),
    };
    set_devices(spec, "gpus", &gpus);
    set_devices(spec, "nics", &nics);
    if (choice->align)
        json_object_set_new(member(spec, "devices"), "align", json_string(choice->align));
}

/* ---- all ---- */

static void set_workers(const struct bench_choice *choice, const struct served *served,
                        json_t *spec)
{
    uint32_t ranks = choice->per_worker ? choice->per_worker : choice->gpus;
    const char *profile = either(choice->profile, served->profile);
    if (choice->workers || !json_object_get(spec, "workers"))
        json_object_set_new(spec, "workers", json_integer(choice->workers ? choice->workers : 1));
    if (ranks || !choice->job)
        json_object_set_new(spec, "ranksPerWorker", json_integer(ranks ? ranks : 1));
    if (profile)
        json_object_set_new(member(spec, "nccl"), "profile", json_string(profile));
}

static void set_rest(const struct bench_choice *choice, json_t *spec)
{
    if (choice->network || !json_object_get(spec, "network"))
        json_object_set_new(spec, "network",
                            json_string(choice->network ? choice->network : "any"));
    if (choice->spread)
        json_object_set_new(member(spec, "placement"), "spread", json_string(choice->spread));
    json_object_del(spec, "launch"); /* the ranks are ours: not mpirun's, nor torchrun's */
    json_object_del(spec, "slots");  /* and start no others */
    json_object_del(spec, "oversubscribe");
    json_object_del(spec, "success"); /* whichever rank fails says so with its status */
    if (strcmp(choice->hang_after, "0") != 0) {
        json_object_set_new(spec, "hangAfter", json_string(choice->hang_after));
        json_object_set_new(spec, "onHang", json_string("fail"));
    }
}

/* Two that start in the same second are two. */
static void set_name(const struct bench_choice *choice, json_t *metadata)
{
    const char *begins = choice->name_begins ? choice->name_begins : "bench-";
    json_object_del(metadata, choice->name ? "generateName" : "name");
    json_object_set_new(metadata, choice->name ? "name" : "generateName",
                        json_string(choice->name ? choice->name : begins));
}

json_t *bench_job_spec(const struct bench_choice *choice, const json_t *base,
                       const struct served *served, struct drarun_error *err)
{
    json_t *job = json_deep_copy(base), *spec = json_object_get(job, "spec");
    json_t *roles = measured_roles_of(job), *role;
    size_t i;
    if (spec && !roles) {
        set_all_devices(choice, served, spec);
        set_workers(choice, served, spec);
        set_pod(choice, spec);
    }
    json_array_foreach(roles, i, role) set_pod(choice, role);
    if (spec) {
        set_rest(choice, spec);
        set_name(choice, json_object_get(job, "metadata"));
    }
    if (!spec)
        error_set(err, ENOMEM, "out of memory");
    return job;
}
