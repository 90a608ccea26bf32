/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/import.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drarun/spec.h"
#include "jobs/import/import.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/plain.h"
#include "lib/base/unconst.h"
#include "lib/doc/load.h"
#include "lib/doc/yaml_write.h"

struct options {
    const char *only;
    bool help;
};

static const struct option_spec option_list[] = {
    {.name = "only",
     .value = "NAME",
     .group = "Options",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, only),
     .help = "import this ReplicatedJob of a JobSet alone, as the job\nJOBSET-NAME"},
    VERB_LEVEL_OPTIONS,
    VERB_HELP_OPTION(struct options),
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

static int usage(const char *text)
{
    log_error("import: %s", text);
    return error_exit_status(DRARUN_ERR_USAGE);
}

/* The job; the classes follow it. */
static int write_job(const json_t *job, const json_t *classes, struct buf *out,
                     struct drarun_error *err)
{
    size_t i;
    json_t *class;
    int rc = yaml_write(job, out, err);
    json_array_foreach(classes, i, class)
    {
        buf_add_str(out, "---\n");
        if (rc == 0)
            rc = yaml_write(class, out, err);
    }
    if (rc < 0)
        buf_done(out);
    return rc;
}

static const char *next_line(const char *at)
{
    const char *end = strchr(at, '\n');
    return end ? end + 1 : NULL;
}

/* What stands there; NULL: nothing does. The column is in characters. */
static const char *text_at(const struct buf *text, unsigned line, unsigned column)
{
    const char *at = text->data;
    for (; at && line > 1; line--)
        at = next_line(at);
    for (; at && column > 1 && *at && *at != '\n'; column--) {
        size_t length = utf8_length((const unsigned char *)at, strlen(at));
        at += length > 0 ? length : 1;
    }
    return at && column == 1 && *at && *at != '\n' ? at : NULL;
}

/* A value that a template's tool has not filled in: $GPUS. */
static const char *hint(const struct buf *out, const struct drarun_finding *finding)
{
    const char *value = text_at(out, finding->line, finding->column);
    if (value && (*value == '|' || *value == '>')) { /* its text is in the lines below */
        value = next_line(value);
        value += value ? strspn(value, " \n") : 0;
    } else if (value && (*value == '"' || *value == '\'')) {
        value++;
    }
    return value && *value == '$'
               ? ": fill in the manifest's variables first, by envsubst or what its README says"
               : "";
}

/* The new spec must be one for ourselves, by the check that every other verb makes. What is wrong
 * with it is in the text that is printed all the same, as only the user can mend it. */
static int check_job(const struct buf *out, struct drarun_error *err)
{
    struct drarun_spec *spec = NULL;
    struct drarun_findings *findings = NULL;
    int rc = drarun_spec_parse("<stdout>", out->data, out->len, NULL, &spec, &findings, err);
    size_t count = findings ? drarun_findings_count(findings) : 0;
    size_t total = findings ? drarun_findings_total(findings) : 0;
    for (size_t i = 0; i < count; i++) {
        const struct drarun_finding *finding = drarun_findings_at(findings, i);
        log_error("%s%s", finding->text, hint(out, finding));
    }
    if (findings)
        rc = error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                        "the imported job is printed, but not complete: mend the %zu error%s in it",
                        total, total == 1 ? "" : "s");
    drarun_findings_free(findings);
    drarun_spec_free(spec);
    return rc;
}

/* kubectl takes the last, and so it is what has run. */
static void tell_duplicates(const struct doc *doc)
{
    size_t count = 0;
    const struct doc_duplicate *list = doc_duplicates(doc, &count);
    for (size_t i = 0; i < count; i++)
        log_note("%s:%u:%u: the key \"%s\" is given twice, first in line %u: the last one is used, "
                 "as with kubectl",
                 doc_name(doc), list[i].at.line, list[i].at.column, list[i].key,
                 list[i].first.line);
}

static bool is_directory(const char *path)
{
    struct stat st;
    return strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int is_manifest(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return entry->d_name[0] != '.' && dot &&
           (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0 || strcmp(dot, ".json") == 0);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* As kubectl apply -f DIRECTORY: its manifests, not those of its folders. */
static int add_directory(const char *path, struct strlist *files, struct drarun_error *err)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, is_manifest, by_name);
    if (count < 0)
        return error_kind(err, DRARUN_ERR_SPEC, errno, "%s: cannot be read: %s", path,
                          strerror(errno));
    for (int i = 0; i < count; i++) {
        strlist_addf(files, "%s/%s", path, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return count > 0 ? 0
                     : error_kind(err, DRARUN_ERR_SPEC, ENOENT,
                                  "%s: the directory has no file *.yaml, *.yml or *.json", path);
}

/* arguments: files, directories, "-". */
static int find_files(char *const arguments[], size_t count, struct strlist *files,
                      struct drarun_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        if (strcmp(arguments[i], "-") == 0 && strlist_has(files, "-"))
            return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                              "standard input (-) can be given once only");
        if (is_directory(arguments[i]))
            rc = add_directory(arguments[i], files, err);
        else
            strlist_add(files, arguments[i]);
    }
    return rc == 0 && files->failed ? error_set(err, ENOMEM, "out of memory") : rc;
}

/* Not a manifest, but what starts jobs elsewhere: a shell's or Slurm's script. */
static bool is_script(const char *path)
{
    char begin[2] = {0};
    cleanup_close int fd = strcmp(path, "-") == 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && read(fd, begin, sizeof begin) == (ssize_t)sizeof begin &&
           memcmp(begin, "#!", sizeof begin) == 0;
}

static int load_files(const struct strlist *files, struct reader *readers, size_t *ret_count,
                      struct drarun_error *err)
{
    struct doc_limits limits = doc_limits_default;
    limits.last_wins = true;
    for (size_t i = 0; i < files->count; i++) {
        struct doc *doc = NULL;
        int rc = doc_load(files->items[i], &limits, &doc, err);
        if (rc < 0 && err->code == ENOENT && i > 0)
            return error_prefix(err, "the ranks' program goes after --");
        bool has_kind = rc == 0 && doc_count(doc) > 0 && json_object_get(doc_root(doc, 0), "kind");
        if (!has_kind && is_script(files->items[i])) {
            doc_free(doc);
            return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                              "%s: this is a script, and import reads Kubernetes manifests (YAML "
                              "or JSON). Of a Slurm batch script, --nodes is spec.workers, "
                              "--ntasks-per-node spec.ranksPerWorker, --gpus-per-node "
                              "spec.devices.gpus.count, and srun's program spec.command: drarun "
                              "init mpi writes a job to begin with",
                              files->items[i]);
        }
        if (rc < 0)
            return rc;
        tell_duplicates(doc);
        reader_init(&readers[i], doc, true);
        readers[i].max = READER_MAX;
        *ret_count = i + 1;
    }
    return 0;
}

static void tell_findings(const struct reader *reader)
{
    for (size_t i = 0; i < reader->texts.count; i++)
        log_note("%s", reader->texts.items[i]);
    if (reader->findings > reader->texts.count)
        log_note("%s: %zu more", doc_name(reader->doc), reader->findings - reader->texts.count);
}

static int import_files(const struct strlist *files, const struct import_options *how,
                        struct buf *out, struct drarun_error *err)
{
    cleanup_free struct reader *readers = calloc(files->count + 1, sizeof *readers);
    json_t *job = NULL, *classes = NULL;
    size_t count = 0;
    int rc =
        readers ? load_files(files, readers, &count, err) : error_set(err, ENOMEM, "out of memory");
    if (rc == 0)
        rc = import_job(readers, count, how, &job, &classes, err);
    if (rc == 0)
        rc = write_job(job, classes, out, err);
    for (size_t i = 0; i < count; i++) {
        tell_findings(&readers[i]);
        doc_free(unconst(readers[i].doc));
        reader_done(&readers[i]);
    }
    if (rc == 0)
        rc = check_job(out, err);
    json_decref(job);
    json_decref(classes);
    return rc;
}

static int import_words(const struct strlist *words, const struct import_options *how,
                        struct buf *out, struct drarun_error *err)
{
    struct strlist files = STRLIST_INIT;
    int rc = find_files(words->items, words->count, &files, err);
    if (rc == 0)
        rc = import_files(&files, how, out, err);
    strlist_done(&files);
    return rc;
}

/* Of the words up to "--"; behind it stands the program. */
static int count_own(int argc, char *const argv[])
{
    int count = 0;
    while (count < argc && strcmp(argv[count], "--") != 0)
        count++;
    return count;
}

static int run(int argc, char *const argv[])
{
    struct options options = {0};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    CLEANUP(strlist_done) struct strlist words = STRLIST_INIT;
    int own = count_own(argc, argv);
    if (verb_parse_files(&verb_import, own, argv, &options, &words, &err) < 0)
        return usage(err.text);
    const struct import_options how = {
        .program = own + 1 < argc ? argv + own + 1 : NULL,
        .only = options.only,
    };
    if (options.help)
        verb_help(&verb_import, &out);
    else if (words.count == 0)
        return usage("expected a file: drarun import FILE... [-- PROGRAM [ARGUMENTS]]");
    else
        import_words(&words, &how, &out, &err);
    if (err.code)
        log_error("%s", err.text);
    int written = verb_write("import", &out);
    return err.code ? error_exit_status(err.kind) : written;
}

const struct verb verb_import = {
    "import",
    "FILE... [-- PROGRAM [ARGUMENTS]]",
    "Makes a job spec of an MPIJob, PyTorchJob, TrainJob with its runtime, JobSet, "
    "LeaderWorkerSet, StatefulSet, Job or Pods with their "
    "claims, and reports what was left out. FILE: a file, a directory "
    "of *.yaml, *.yml and *.json, or - for standard input.",
    &options_table,
    run,
    "a spec from an MPIJob etc."};
