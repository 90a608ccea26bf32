/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/files/spec_file.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "jobs/manifests/job_check.h"
#include "jobs/spec/spec_short.h"
#include "jobs/spec/spec_words.h"
#include "launcher/files/api_options.h"
#include "launcher/files/profile_file.h"
#include "lib/base/c_numbers.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/doc/load.h"

struct drarun_findings {
    struct drarun_finding *list;
    size_t count, total;
};

/* ---- findings ---- */

void drarun_findings_free(struct drarun_findings *findings)
{
    for (size_t i = 0; findings && i < findings->count; i++) {
        free(unconst(findings->list[i].text));
        free(unconst(findings->list[i].path));
    }
    if (findings)
        free(findings->list);
    free(findings);
}
DEFINE_CLEANUP(struct drarun_findings, drarun_findings_free)
DEFINE_CLEANUP(struct drarun_spec, drarun_spec_free)

size_t drarun_findings_count(const struct drarun_findings *findings)
{
    return findings->count;
}

size_t drarun_findings_total(const struct drarun_findings *findings)
{
    return findings->total;
}

const struct drarun_finding *drarun_findings_at(const struct drarun_findings *findings,
                                                size_t index)
{
    return index < findings->count ? &findings->list[index] : NULL;
}

static bool add(struct drarun_findings *findings, const char *text, const char *code,
                const struct reader_finding *of)
{
    struct drarun_finding *finding = &findings->list[findings->count];
    cleanup_free char *own_text = strdup(text), *own_path = strdup(of->path);
    if (!own_text || !own_path)
        return false;
    *finding = (struct drarun_finding){.text = own_text,
                                       .path = TAKE_PTR(own_path),
                                       .line = of->at.line,
                                       .column = of->at.column,
                                       .code = code,
                                       .message = own_text + of->message};
    own_text = NULL;
    findings->count++;
    return true;
}

/* Of the reader, or what is in err where it has found nothing. NULL: out of memory. */
static struct drarun_findings *findings_new(const struct reader *reader,
                                            const struct drarun_error *err)
{
    size_t count = reader ? reader->texts.count : 0;
    CLEANUP(drarun_findings_freep)
    struct drarun_findings *findings = calloc(1, sizeof *findings);
    if (!findings || !(findings->list = calloc(count + 1, sizeof *findings->list)))
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (!add(findings, reader->texts.items[i], reader_code_name(reader->list[i].code),
                 &reader->list[i]))
            return NULL;
    findings->total = reader ? reader->findings : 0;
    struct reader_finding whole = {.at = {err->line, err->column}, .path = unconst(err->path)};
    if (count == 0 && !add(findings, err->text, "unreadable", &whole))
        return NULL;
    if (count == 0)
        findings->total = 1;
    return TAKE_PTR(findings);
}

/* ---- reading ---- */

struct text {                /* of a document */
    const char *name, *text; /* text NULL: the file of that name */
    size_t length;
    const char *program; /* the command of a spec that has none; NULL: that is a finding */
};

static bool is_class(const json_t *root)
{
    const char *kind = json_string_value(json_object_get(root, "kind"));
    return kind && strcmp(kind, "DeviceClass") == 0;
}

/* ret_at: the DraJob's document; *classes: the others, as copies. */
static int find_job(const struct doc *doc, size_t *ret_at, json_t **classes,
                    struct drarun_error *err)
{
    size_t jobs = 0;
    for (size_t i = 0; i < doc_count(doc); i++) {
        if (!is_class(doc_root(doc, i))) {
            *ret_at = i;
            jobs++;
            continue;
        }
        if (!*classes)
            *classes = json_array();
        if (json_array_append_new(*classes, json_deep_copy(doc_root(doc, i))) < 0)
            return error_set(err, ENOMEM, "out of memory");
    }
    if (jobs == 1)
        return 0;
    if (doc_count(doc) == 0)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "%s: it is empty: expected a DraJob, such as drarun init writes",
                          doc_name(doc));
    return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                      "%s: expected one document, a DraJob (DeviceClasses may stand beside it); "
                      "got %zu",
                      doc_name(doc), jobs);
}

static int open_document(const struct text *text, struct doc **ret_doc, struct drarun_error *err)
{
    return text->text ? doc_parse(text->name, text->text, text->length, DOC_FORMAT_GUESS, NULL,
                                  ret_doc, err)
                      : doc_load(text->name, NULL, ret_doc, err);
}

/* The ranks' container in the template, or the spec itself, whose short form it has. */
static json_t *ranks_container(json_t *spec)
{
    const json_t *pod = json_object_get(json_object_get(spec, "template"), "spec");
    const char *name = spec_short_container(spec);
    json_t *container;
    size_t i;
    json_array_foreach(json_object_get(pod, "containers"), i, container)
    {
        const json_t *own = json_object_get(container, "name");
        if (own ? strcmp(json_string_value(own) ? json_string_value(own) : "", name) == 0 : i == 0)
            return container;
    }
    return spec;
}

static void add_command(json_t *root, const char *program)
{
    json_t *spec = json_object_get(root, "spec") ? json_object_get(root, "spec") : root;
    json_t *container = ranks_container(spec);
    if (json_is_object(container) && !json_object_get(container, "command") &&
        !json_object_get(spec, "command"))
        json_object_set_new(container, "command", json_pack("[s]", program));
}

#define DRAWN 5 /* characters that generateName gets, as of the API server */

/* The file's name, or what metadata.generateName makes where there is no metadata.name. */
static int make_name(const struct doc *doc, size_t at, char *ret_name, size_t size,
                     struct drarun_error *err)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789"; /* which make no words */
    const json_t *metadata = json_object_get(doc_root(doc, at), "metadata");
    const char *begin = json_string_value(json_object_get(metadata, "generateName"));
    unsigned char drawn[DRAWN];
    spec_default_name(doc_name(doc), ret_name, size);
    if (!begin || json_object_get(metadata, "name"))
        return 0;
    if (getrandom(drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn)
        return error_set(err, errno, "getrandom: %s", strerror(errno));
    size_t length = strlen(begin);
    if (length + DRAWN >= size) /* which spec_read refuses by its key */
        return 0;
    memcpy(ret_name, begin, length);
    for (size_t i = 0; i < DRAWN; i++)
        ret_name[length + i] = letters[drawn[i] % (sizeof letters - 1)];
    ret_name[length + DRAWN] = '\0';
    return 0;
}

/* *ret_findings: what is wrong, when that is asked for; NULL without memory. */
static int read_document(const struct text *text, struct drarun_spec *spec,
                         struct drarun_findings **ret_findings, struct drarun_error *err)
{
    CLEANUP(doc_freep) struct doc *doc = NULL;
    struct reader reader;
    char name[SPEC_NAME_MAX + 1];
    size_t at = 0;
    int rc = open_document(text, &doc, err);
    if (rc == 0)
        rc = find_job(doc, &at, &spec->classes, err);
    if (rc == 0)
        rc = make_name(doc, at, name, sizeof name, err);
    if (rc < 0) {
        *ret_findings = findings_new(NULL, err);
        return rc;
    }
    if (text->program)
        add_command(doc_root(doc, at), text->program);
    reader_init(&reader, doc, false);
    rc = job_check(&reader, at, name, &spec->profiles, &spec->job, err);
    if (rc < 0)
        *ret_findings = findings_new(&reader, err);
    reader_done(&reader);
    return rc;
}

static int read_spec(const struct text *text, const struct drarun_spec_options *options,
                     struct drarun_spec **ret_spec, struct drarun_findings **ret_findings,
                     struct drarun_error *err)
{
    C_NUMBERS;
    CLEANUP(drarun_findings_freep) struct drarun_findings *findings = NULL;
    CLEANUP(drarun_spec_freep) struct drarun_spec *spec = calloc(1, sizeof *spec);
    struct drarun_spec_options o;
    struct drarun_error own = {0}; /* its words may become a finding */
    int rc =
        spec ? api_options(options, &o, sizeof o, &own) : error_set(&own, ENOMEM, "out of memory");
    if (spec)
        spec->refs = 1;
    if (rc == 0)
        rc = profile_file_load(o.profiles, &spec->profiles, &own);
    if (rc == 0) {
        rc = read_document(text, spec, &findings, &own);
        if (rc < 0 && !findings)
            rc = error_set(&own, ENOMEM, "out of memory");
    }
    if (rc == 0)
        *ret_spec = TAKE_PTR(spec);
    else if (err)
        *err = own;
    if (findings && ret_findings)
        *ret_findings = TAKE_PTR(findings);
    return rc;
}

int drarun_spec_load(const char *path, const struct drarun_spec_options *options,
                     struct drarun_spec **ret_spec, struct drarun_findings **ret_findings,
                     struct drarun_error *err)
{
    const struct text text = {.name = path};
    return read_spec(&text, options, ret_spec, ret_findings, err);
}

int drarun_spec_parse(const char *name, const char *content, size_t length,
                      const struct drarun_spec_options *options, struct drarun_spec **ret_spec,
                      struct drarun_findings **ret_findings, struct drarun_error *err)
{
    const struct text text = {name, content, length};
    return read_spec(&text, options, ret_spec, ret_findings, err);
}

struct drarun_spec *spec_ref(const struct drarun_spec *spec)
{
    struct drarun_spec *same = unconst(spec); /* but for the count it is read-only */
    __atomic_add_fetch(&same->refs, 1, __ATOMIC_RELAXED);
    return same;
}

void drarun_spec_free(struct drarun_spec *spec)
{
    if (!spec || __atomic_sub_fetch(&spec->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    job_spec_done(&spec->job);
    json_decref(spec->classes);
    profiles_done(&spec->profiles);
    free(spec);
}

int spec_need_known_profile(const struct job_spec *spec, const struct profiles *profiles,
                            struct drarun_error *err)
{
    for (uint32_t r = 0; r < spec->role_count; r++) {
        const char *name = spec->roles[r].nccl_profile;
        if (name && profiles_is_of_site(profiles, name))
            return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                              "nccl.profile: in the cluster drarun knows only its built-in "
                              "profiles, not %s of the site's file: name one of those, and put "
                              "what the site's says into nccl.env and template",
                              name);
    }
    return 0;
}

static int parse_changed(const json_t *document, struct job_spec *ret_spec,
                         struct drarun_error *err)
{
    cleanup_free char *text = json_dumps(document, JSON_COMPACT);
    return text ? spec_parse("the command line's", text, strlen(text), ret_spec, err)
                : error_set(err, ENOMEM, "out of memory");
}

static void replace(struct job_spec *spec, const struct job_spec *changed)
{
    job_spec_done(spec);
    *spec = *changed;
}

int spec_again(const struct job_spec *spec, const struct profiles *profiles, const char *name,
               uint32_t workers, struct job_spec *ret_spec, struct drarun_error *err)
{
    if (workers && spec_has_roles(spec))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--workers %u: the job %s has roles, each of which says how many workers "
                          "it has",
                          workers, spec->name);
    CLEANUP(json_decrefp) json_t *document = json_deep_copy(spec->document);
    struct job_spec again;
    int rc = document ? 0 : -1;
    if (name)
        rc |= json_object_set_new(json_object_get(document, "metadata"), "name", json_string(name));
    if (workers)
        rc |= json_object_set_new(json_object_get(document, "spec"), "workers",
                                  json_integer(workers));
    rc = rc == 0 ? parse_changed(document, &again, err) : error_set(err, ENOMEM, "out of memory");
    if (rc == 0 && profiles && (rc = spec_use_profiles(&again, profiles, err)) < 0)
        job_spec_done(&again);
    if (rc == 0)
        *ret_spec = again;
    return rc;
}

int spec_change(struct job_spec *spec, const char *name, uint32_t workers, struct drarun_error *err)
{
    struct job_spec changed;
    int rc = spec_again(spec, NULL, name, workers, &changed, err);
    if (rc == 0)
        replace(spec, &changed);
    return rc;
}

int spec_report_bindings(struct job_spec *spec, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *document = json_deep_copy(spec->document);
    struct job_spec changed;
    if (json_object_set_new(json_object_get(document, "spec"), "reportBindings", json_true()) < 0)
        return error_set(err, ENOMEM, "out of memory");
    int rc = parse_changed(document, &changed, err);
    if (rc == 0)
        replace(spec, &changed);
    return rc;
}

/* Where the document says what the ranks run: the template's container of their name, or the short
 * form, which the template lies over. */
static json_t *holder_of_args(const struct job_spec *spec, const json_t *document)
{
    json_t *short_form = json_object_get(document, "spec"), *each;
    const json_t *pod = json_object_get(json_object_get(short_form, "template"), "spec");
    const json_t *name = json_object_get(spec_role_container(&spec->roles[0]), "name");
    size_t i;
    json_array_foreach(json_object_get(pod, "containers"), i, each)
    {
        if (json_equal(json_object_get(each, "name"), name) &&
            (json_object_get(each, "args") || json_object_get(each, "command")))
            return each;
    }
    return short_form;
}

int spec_give_args(struct job_spec *spec, const struct strlist *args, struct drarun_error *err)
{
    if (spec_has_roles(spec))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "-- %s: the job %s has roles, each of which has arguments of its own",
                          args->items[0], spec->name);
    CLEANUP(json_decrefp) json_t *document = json_deep_copy(spec->document);
    json_t *list = json_array();
    int rc = document && list ? 0 : error_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; rc == 0 && i < args->count; i++) {
        json_t *word = spec_words_literal(args->items[i]);
        if (!word || json_array_append_new(list, word) < 0)
            rc = error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                            "argument %zu behind --: \"%s\" is no UTF-8", i + 1, args->items[i]);
    }
    if (rc < 0 || json_object_set(holder_of_args(spec, document), "args", list) < 0) {
        json_decref(list);
        return rc < 0 ? rc : error_set(err, ENOMEM, "out of memory");
    }
    json_decref(list);
    struct job_spec changed;
    rc = parse_changed(document, &changed, err);
    if (rc == 0)
        replace(spec, &changed);
    return rc;
}

static int load(const struct text *text, const char *profiles, struct drarun_spec **ret_spec)
{
    CLEANUP(drarun_findings_freep) struct drarun_findings *findings = NULL;
    const struct drarun_spec_options options = {.size = sizeof options, .profiles = profiles};
    struct drarun_error err = {0};
    if (read_spec(text, &options, ret_spec, &findings, &err) == 0)
        return 0;
    for (size_t i = 0; findings && i < findings->count; i++)
        log_error("%s", findings->list[i].text);
    if (!findings)
        log_error("%s", err.text);
    else if (findings->total > findings->count)
        log_error("%s: %zu more", text->name, findings->total - findings->count);
    return error_exit_status(err.kind);
}

int spec_file_load(const char *path, const char *profiles, struct drarun_spec **ret_spec)
{
    const struct text text = {.name = path};
    return load(&text, profiles, ret_spec);
}

int spec_text_load(const char *name, const char *content, size_t length,
                   struct drarun_spec **ret_spec)
{
    const struct text text = {name, content, length, NULL};
    return load(&text, NULL, ret_spec);
}

int spec_file_load_program(const char *path, const char *program, struct drarun_spec **ret_spec)
{
    const struct text text = {.name = path, .program = program};
    return load(&text, NULL, ret_spec);
}
