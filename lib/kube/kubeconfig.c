/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/kubeconfig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/doc/load.h"
#include "lib/doc/value.h"
#include "lib/kube/base64.h"
#include "lib/kube/config_private.h"

#define NO_MEMORY(err) error_set(err, ENOMEM, "out of memory")

/* A key that is given twice is what kubectl makes of it: the last one. */
static const struct doc_limits as_kubectl = {DOC_SIZE_MAX, DOC_DEPTH_MAX, DOC_ALIASED_MAX, true};

struct part { /* of a file: an entry under contexts, clusters or users */
    struct reader reader;
    struct reader_node root, list, item, body;
    char dir[4096]; /* of the file, for relative paths */
};

static int add_file(struct kubeconfig *files, const char *path, bool must, struct drarun_error *err)
{
    if (files->count == KUBECONFIG_FILES_MAX)
        return error_kind(err, DRARUN_ERR_USAGE, E2BIG, "KUBECONFIG names more than %u files",
                          KUBECONFIG_FILES_MAX);
    if (!must && access(path, F_OK) < 0)
        return 0;
    struct doc *doc = NULL;
    int rc = doc_load(path, &as_kubectl, &doc, err);
    if (rc < 0)
        return rc;
    files->docs[files->count++] = doc;
    return 0;
}

int kubeconfig_add(struct kubeconfig *files, const char *name, const char *text, size_t length,
                   struct drarun_error *err)
{
    struct doc *doc = NULL;
    if (files->count == KUBECONFIG_FILES_MAX)
        return error_set(err, E2BIG, "too many files");
    int rc = doc_parse(name, text, length, DOC_FORMAT_GUESS, &as_kubectl, &doc, err);
    if (rc < 0)
        return rc;
    files->docs[files->count++] = doc;
    return 0;
}

static int add_list(struct kubeconfig *files, const char *list, struct drarun_error *err)
{
    cleanup_free char *copy = strdup(list);
    char *rest = copy;
    if (!copy)
        return NO_MEMORY(err);
    for (char *path; (path = strsep(&rest, ":"));) {
        int rc = *path ? add_file(files, path, false, err) : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

int kubeconfig_open(struct kubeconfig *files, const char *path, struct drarun_error *err)
{
    const char *list = getenv("KUBECONFIG"), *home = getenv("HOME");
    cleanup_free char *usual = NULL;
    if (asprintf(&usual, "%s/.kube/config", home ? home : "") < 0) {
        usual = NULL;
        return NO_MEMORY(err);
    }
    const char *shown = path ? path : list && *list ? list : usual;
    if (!(files->searched = strdup(shown)))
        return NO_MEMORY(err);
    if (path)
        return add_file(files, path, true, err);
    return list && *list ? add_list(files, list, err) : add_file(files, usual, false, err);
}

void kubeconfig_done(struct kubeconfig *files)
{
    for (size_t i = 0; i < files->count; i++)
        doc_free(files->docs[i]);
    free(files->searched);
    *files = (struct kubeconfig){0};
}

static void dir_of(const char *path, char *dir, size_t size)
{
    const char *slash = strrchr(path, '/');
    snprintf(dir, size, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    if (slash == path)
        snprintf(dir, size, "/");
}

/* The entry `name` in the list `list` of the first file that has it; -ENOENT without text when
 * none has. part is to be released by reader_done in any case. */
static int find(const struct kubeconfig *files, const char *list, const char *name,
                const char *body, struct part *part, struct drarun_error *err)
{
    for (size_t i = 0; i < files->count; i++) {
        reader_done(&part->reader);
        reader_init(&part->reader, files->docs[i], true);
        dir_of(doc_name(files->docs[i]), part->dir, sizeof part->dir);
        if (doc_count(files->docs[i]) == 0)
            continue;
        part->root = reader_root(&part->reader, 0);
        if (reader_object(&part->root) == 0 && reader_get(&part->root, list, &part->list) &&
            reader_list(&part->list, 0) == 0) {
            for (size_t n = 0; n < json_array_size(part->list.value); n++) {
                struct reader_node at;
                const char *is = NULL;
                part->item = reader_item(&part->list, n);
                if (reader_object(&part->item) < 0 || !reader_get(&part->item, "name", &at) ||
                    reader_text(&at, &is) < 0 || strcmp(is, name) != 0)
                    continue;
                if (!reader_get(&part->item, body, &part->body))
                    reader_fail_key(&part->item, "name", "expected \"%s\" beside it", body);
                else
                    reader_object(&part->body);
                return reader_result(&part->reader, err);
            }
        }
        int rc = reader_result(&part->reader, err);
        if (rc < 0)
            return rc;
    }
    return -ENOENT;
}

/* The first file with a current-context that is not empty has the say. */
static const char *current_context(const struct kubeconfig *files)
{
    for (size_t i = 0; i < files->count; i++) {
        const json_t *root = doc_count(files->docs[i]) ? doc_root(files->docs[i], 0) : NULL;
        const char *text = json_string_value(json_object_get(root, "current-context"));
        if (text && *text)
            return text;
    }
    return NULL;
}

/* A new text, or NULL when the field is absent or empty; findings go to the reader. */
static char *field_text(const struct reader_node *object, const char *key)
{
    struct reader_node at;
    const char *text = NULL;
    if (!reader_get(object, key, &at) ||
        (json_is_string(at.value) && json_string_length(at.value) == 0) ||
        reader_text(&at, &text) < 0)
        return NULL;
    char *copy = strdup(text);
    if (!copy)
        reader_fail_memory(&at);
    return copy;
}

/* The same for what no message may show. */
static char *field_secret(const struct reader_node *object, const char *key)
{
    struct reader_node at;
    if (!reader_get(object, key, &at) || json_is_string(at.value))
        return field_text(object, key);
    reader_fail(&at, "expected a text (put it in quotes)");
    return NULL;
}

static bool field_bool(const struct reader_node *object, const char *key)
{
    struct reader_node at;
    bool value = false;
    if (reader_get(object, key, &at))
        reader_bool(&at, &value);
    return value;
}

static char *resolve(const struct part *part, const char *path)
{
    char *whole = NULL;
    if (path[0] == '/')
        return strdup(path);
    return asprintf(&whole, "%s/%s", part->dir, path) < 0 ? NULL : whole;
}

/* KEY-data in base64, else KEY, a file: as client-go has it, data wins. */
static void field_file(const struct part *part, const char *key, struct kept_file *file)
{
    char data_key[64];
    struct reader_node at;
    struct drarun_error why = {0};
    snprintf(data_key, sizeof data_key, "%s-data", key);
    cleanup_free char *data = field_secret(&part->body, data_key);
    if (data && reader_get(&part->body, data_key, &at)) {
        int rc = base64_decode(data, &file->content);
        if (rc == -EINVAL)
            reader_fail(&at, "expected base64");
        else if (rc < 0)
            reader_fail_memory(&at);
        return;
    }
    cleanup_free char *path = field_text(&part->body, key);
    if (!path || !reader_get(&part->body, key, &at))
        return;
    if (!(file->path = resolve(part, path)))
        reader_fail_memory(&at);
    else if (kept_file_refresh(file, &why) < 0)
        reader_fail(&at, "%s", why.text);
}

/* What a plugin is given as spec.cluster.config. */
static void read_extension(const struct part *part, struct kube_config *config)
{
    struct reader_node list, item, name, extension;
    if (!reader_get(&part->body, "extensions", &list) || reader_list(&list, 0) < 0)
        return;
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        item = reader_item(&list, i);
        if (json_is_object(item.value) && reader_get(&item, "name", &name) &&
            reader_get(&item, "extension", &extension) && json_is_string(name.value) &&
            strcmp(json_string_value(name.value), "client.authentication.k8s.io/exec") == 0) {
            json_decref(config->cluster_extension);
            config->cluster_extension = json_incref(extension.value);
        }
    }
}

static void check_server(const struct part *part, struct kube_config *config)
{
    struct reader_node at;
    if (!config->server) {
        if (part->reader.findings == 0)
            reader_fail_key(&part->item, "name", "its cluster has no \"server\"");
        return;
    }
    reader_get(&part->body, "server", &at);
    if (strncmp(config->server, "https://", 8) != 0 && strncmp(config->server, "http://", 7) != 0)
        reader_fail(&at, "expected a URL, https://HOST:PORT");
    for (size_t n = strlen(config->server); n && config->server[n - 1] == '/';)
        config->server[--n] = '\0';
}

static void read_cluster(const struct part *part, struct kube_config *config)
{
    config->server = field_text(&part->body, "server");
    config->tls_server_name = field_text(&part->body, "tls-server-name");
    config->proxy_url = field_text(&part->body, "proxy-url");
    config->insecure = field_bool(&part->body, "insecure-skip-tls-verify");
    field_file(part, "certificate-authority", &config->ca);
    check_server(part, config);
    read_extension(part, config);
    if (config->insecure && kept_file_is_set(&config->ca))
        reader_fail_key(&part->body, "insecure-skip-tls-verify",
                        "expected it without a certificate authority");
}

static void read_token(const struct part *part, struct kube_config *config)
{
    cleanup_free char *path = field_text(&part->body, "tokenFile");
    struct reader_node at;
    struct drarun_error why = {0};
    if (path && reader_get(&part->body, "tokenFile", &at)) {
        if (!(config->token.path = resolve(part, path)))
            reader_fail_memory(&at);
        else if (kept_file_refresh(&config->token, &why) < 0)
            reader_fail(&at, "%s", why.text);
        return;
    }
    cleanup_free char *token = field_secret(&part->body, "token");
    if (token)
        buf_add_str(&config->token.content, token);
}

static void refuse_old(const struct part *part)
{
    struct reader_node at;
    if (reader_get(&part->body, "username", &at))
        reader_fail(&at, "Kubernetes has no basic authentication since 1.19; use a token, a client "
                         "certificate or an exec plugin");
}

/* Of an entry of users; NULL: none. */
static const char *provided_token(const json_t *user)
{
    const json_t *provider = json_object_get(user, "auth-provider");
    const char *token = value_text(json_object_get(provider, "config"), "id-token");
    return token && *token ? token : NULL;
}

int kubeconfig_provided_token(const struct buf *text, const char *name, const char *user,
                              struct buf *ret_token)
{
    CLEANUP(doc_freep) struct doc *doc = NULL;
    int rc = doc_parse(name, text->data, text->len, DOC_FORMAT_GUESS, &as_kubectl, &doc, NULL);
    if (rc < 0)
        return rc;
    const json_t *users = doc_count(doc) ? json_object_get(doc_root(doc, 0), "users") : NULL;
    const char *token = provided_token(json_object_get(value_find(users, "name", user), "user"));
    if (!token)
        return -ENOENT;
    buf_add_str(ret_token, token);
    return ret_token->failed ? -ENOMEM : 0;
}

/* To open a pipe again could wait for a writer that never comes. */
static bool can_be_kept(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (size_t)st.st_size <= KEPT_FILE_MAX;
}

/* Of these OIDC is left. We take the token that it has given; kubectl, which knows the provider,
 * renews it. */
static void read_provider(const struct part *part, struct kube_config *config)
{
    struct reader_node provider, at;
    if (!reader_get(&part->body, "auth-provider", &provider) || reader_object(&provider) < 0)
        return;
    if (strcmp(value_text_or(provider.value, "name", ""), "oidc") != 0) {
        reader_fail(&provider,
                    "auth-provider was removed from Kubernetes in 1.26, but for oidc; use an exec "
                    "plugin");
        return;
    }
    const char *token = provided_token(part->body.value);
    if (!token) {
        reader_fail(&provider, "its config has no id-token: log in, as for kubectl, or use an exec "
                               "plugin");
        return;
    }
    buf_add_str(&config->token.content, token);
    reader_get(&part->item, "name", &at);
    bool again = can_be_kept(doc_name(part->reader.doc));
    config->provided.path = again ? strdup(doc_name(part->reader.doc)) : NULL;
    config->provided_user = strdup(json_string_value(at.value));
    if ((again && !config->provided.path) || !config->provided_user || config->token.content.failed)
        reader_fail_memory(&provider);
}

static void read_env(const struct reader_node *list, struct strlist *env)
{
    if (reader_list(list, 0) < 0)
        return;
    for (size_t i = 0; i < json_array_size(list->value); i++) {
        struct reader_node item = reader_item(list, i), at;
        const char *name = NULL;
        cleanup_free char *value = NULL;
        if (reader_object(&item) < 0)
            continue;
        if (!reader_get(&item, "name", &at))
            reader_fail(&item, "expected a name");
        else if (reader_text(&at, &name) == 0 && strchr(name, '='))
            reader_fail(&at, "expected a name without \"=\"");
        else if (name) {
            value = field_text(&item, "value");
            strlist_addf(env, "%s=%s", name, value ? value : "");
        }
    }
}

static void check_version(const struct reader_node *exec, struct exec_spec *spec)
{
    static const char group[] = "client.authentication.k8s.io/";
    struct reader_node at, mode;
    if (!spec->api_version) {
        reader_fail_key(exec, "command", "expected apiVersion beside it: %sv1", group);
        return;
    }
    reader_get(exec, "apiVersion", &at);
    const char *version = spec->api_version + sizeof group - 1;
    if (strncmp(spec->api_version, group, sizeof group - 1) != 0 ||
        (strcmp(version, "v1") != 0 && strcmp(version, "v1beta1") != 0))
        reader_fail(&at,
                    "expected %sv1 or v1beta1; write this user again with a current version of "
                    "the program that made it",
                    group);
    else if (!reader_get(exec, "interactiveMode", &mode) && strcmp(version, "v1") == 0)
        reader_fail(&at, "v1 expects interactiveMode: Never, IfAvailable or Always");
    if (!spec->interactive)
        spec->interactive = EXEC_IF_AVAILABLE;
}

/* With a slash it is a path, beside the file when it is relative. */
static void resolve_command(const struct part *part, const struct reader_node *exec,
                            struct exec_spec *spec)
{
    if (!spec->command) {
        reader_fail_key(exec, "apiVersion", "expected a command beside it");
        return;
    }
    if (!strchr(spec->command, '/'))
        return;
    char *whole = resolve(part, spec->command);
    free(spec->command);
    spec->command = whole;
    if (!whole)
        reader_fail_memory(exec);
}

static void read_exec(const struct part *part, const struct reader_node *exec,
                      struct kube_config *config)
{
    struct reader_node at;
    int mode = -1;
    if (reader_object(exec) < 0)
        return;
    struct exec_spec *spec = calloc(1, sizeof *spec);
    if (!spec) {
        reader_fail_memory(exec);
        return;
    }
    config->exec = spec;
    spec->api_version = field_text(exec, "apiVersion");
    spec->command = field_text(exec, "command");
    spec->install_hint = field_text(exec, "installHint");
    spec->provide_cluster = field_bool(exec, "provideClusterInfo");
    if (reader_get(exec, "interactiveMode", &at) &&
        reader_choice(&at, "Never IfAvailable Always", &mode) == 0)
        spec->interactive = (enum exec_interactive)(mode + 1);
    if (reader_get(exec, "args", &at))
        reader_texts(&at, &spec->args);
    if (reader_get(exec, "env", &at))
        read_env(&at, &spec->env);
    check_version(exec, spec);
    resolve_command(part, exec, spec);
    if (spec->args.failed || spec->env.failed)
        reader_fail_memory(exec);
}

/* The key in a header's name, as client-go escapes what no name may have. */
static void add_extra(const char *key, const struct strlist *values, struct strlist *extra)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "!#$&'*+-.^_`|~";
    struct buf name = BUF_INIT;
    buf_add_str(&name, "Impersonate-Extra-");
    for (; *key; key++) {
        if (strchr(plain, *key))
            buf_add(&name, key, 1);
        else
            buf_printf(&name, "%%%02X", (unsigned char)*key);
    }
    for (size_t i = 0; i < values->count && !name.failed; i++) {
        strlist_add(extra, name.data);
        strlist_add(extra, values->items[i]);
    }
    extra->failed |= name.failed || values->failed;
    buf_done(&name);
}

static void read_extra(const struct reader_node *map, struct strlist *extra)
{
    const char *key;
    json_t *list;
    if (reader_object(map) < 0)
        return;
    json_object_foreach(map->value, key, list)
    {
        struct strlist values = STRLIST_INIT;
        struct reader_node at;
        if (reader_get(map, key, &at) && reader_texts(&at, &values) == 0)
            add_extra(key, &values, extra);
        strlist_done(&values);
    }
    if (extra->failed)
        reader_fail_memory(map);
}

static void read_user(const struct part *part, struct kube_config *config)
{
    struct reader_node at;
    refuse_old(part);
    field_file(part, "client-certificate", &config->certificate);
    field_file(part, "client-key", &config->key);
    if (kept_file_is_set(&config->certificate) != kept_file_is_set(&config->key))
        reader_fail_key(&part->item, "name", "expected client-certificate and client-key together");
    read_token(part, config);
    /* a token has the say, as in client-go */
    if (!kept_file_is_set(&config->token) && reader_get(&part->body, "exec", &at))
        read_exec(part, &at, config);
    else if (!kept_file_is_set(&config->token))
        read_provider(part, config);
    config->as = field_text(&part->body, "as");
    config->as_uid = field_text(&part->body, "as-uid");
    if (reader_get(&part->body, "as-groups", &at))
        reader_texts(&at, &config->as_groups);
    if (reader_get(&part->body, "as-user-extra", &at))
        read_extra(&at, &config->as_extra);
    if (!config->as && (config->as_uid || config->as_groups.count || config->as_extra.count))
        reader_fail_key(&part->item, "name",
                        "as-uid, as-groups and as-user-extra need \"as\" beside them");
}

typedef void (*part_fn)(const struct part *part, struct kube_config *config);

static int read_part(const struct kubeconfig *files, const char *list, const char *name,
                     const char *body, part_fn fn, struct kube_config *config,
                     struct drarun_error *err)
{
    struct part part = {0};
    int rc = find(files, list, name, body, &part, err);
    if (rc == -ENOENT)
        rc = error_kind(err, DRARUN_ERR_SPEC, ENOENT, "%s has no %s \"%s\"", files->searched, body,
                        name);
    if (rc == 0) {
        fn(&part, config);
        rc = reader_result(&part.reader, err);
    }
    reader_done(&part.reader);
    return rc;
}

struct context {
    char *cluster, *user, *namespace_;
};

static void context_done(struct context *c)
{
    free(c->cluster);
    free(c->user);
    free(c->namespace_);
}

static int find_context(const struct kubeconfig *files, const char *name, struct context *context,
                        struct drarun_error *err)
{
    struct part part = {0};
    int rc = find(files, "contexts", name, "context", &part, err);
    if (rc == -ENOENT)
        rc = error_kind(err, DRARUN_ERR_USAGE, ENOENT, "%s has no context \"%s\"", files->searched,
                        name);
    if (rc == 0) {
        context->cluster = field_text(&part.body, "cluster");
        context->user = field_text(&part.body, "user");
        context->namespace_ = field_text(&part.body, "namespace");
        if (!context->cluster)
            reader_fail_key(&part.item, "name", "this context names no cluster");
        rc = reader_result(&part.reader, err);
    }
    reader_done(&part.reader);
    return rc;
}

static int fill(const struct kubeconfig *files, const struct kube_config_choice *choice,
                const char *name, struct kube_config *config, struct drarun_error *err)
{
    CLEANUP(context_done) struct context context = {0};
    int rc = find_context(files, name, &context, err);
    if (rc == 0)
        rc = read_part(files, "clusters", context.cluster, "cluster", read_cluster, config, err);
    if (rc == 0 && context.user)
        rc = read_part(files, "users", context.user, "user", read_user, config, err);
    if (rc < 0)
        return error_prefix(err, "context \"%s\"", name);
    const char *namespace_ = choice->namespace_ ? choice->namespace_ : context.namespace_;
    config->exec_ms = choice->exec_ms;
    config->namespace_ = strdup(namespace_ ? namespace_ : "default");
    if (asprintf(&config->name, "context \"%s\" of %s", name, files->searched) < 0)
        config->name = NULL;
    return config->name && config->namespace_ ? 0 : NO_MEMORY(err);
}

int kubeconfig_choose(const struct kubeconfig *files, const struct kube_config_choice *choice,
                      struct kube_config **ret_config, struct drarun_error *err)
{
    const char *name = choice->context ? choice->context : current_context(files);
    CLEANUP(kube_config_freep) struct kube_config *config = calloc(1, sizeof *config);
    if (!config)
        return NO_MEMORY(err);
    if (files->count == 0)
        return error_kind(err, DRARUN_ERR_USAGE, ENOENT,
                          "no kubeconfig: looked at %s; set KUBECONFIG or name a file",
                          files->searched);
    if (!name)
        return error_kind(err, DRARUN_ERR_USAGE, ENOENT,
                          "%s has no current-context; name a context", files->searched);
    int rc = fill(files, choice, name, config, err);
    if (rc < 0)
        return rc;
    *ret_config = TAKE_PTR(config);
    return 0;
}
