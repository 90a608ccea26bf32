/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/job/spawn_request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/ranks/binding.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"

struct spawn_request *spawn_request_new(uint32_t rank)
{
    struct spawn_request *request = calloc(1, sizeof *request);
    if (request)
        request->rank = rank;
    return request;
}

void spawn_request_free(struct spawn_request *request)
{
    for (size_t i = 0; request && i < request->count; i++) {
        struct spawn_program *program = &request->programs[i];
        strlist_done(&program->argv);
        strlist_done(&program->env);
        strlist_done(&program->hosts);
        strlist_done(&program->preput);
        strlist_done(&program->search);
        free(program->wd);
        free(program->bind);
    }
    if (request)
        free(request->programs);
    free(request);
}

struct spawn_program *spawn_request_add(struct spawn_request *request)
{
    struct spawn_program *more =
        request->count < SPAWN_PROGRAMS_MAX
            ? realloc(request->programs, (request->count + 1) * sizeof *more)
            : NULL;
    if (!more)
        return NULL;
    request->programs = more;
    more[request->count] = (struct spawn_program){.count = 1};
    return &more[request->count++];
}

/* ---- info keys ---- */

static int set_text(char **text, const char *value)
{
    char *copy = strdup(value);
    if (!copy)
        return -ENOMEM;
    free(*text);
    *text = copy;
    return 0;
}

/* "a,b", or one a line. */
static int add_words(struct strlist *list, const char *value, const char *separators)
{
    cleanup_free char *copy = strdup(value);
    char *rest = copy;
    for (char *word; copy && (word = strsep(&rest, separators));)
        if (word[0])
            strlist_add(list, word);
    return copy && !list->failed ? 0 : -ENOMEM;
}

/* mpirun's words are taken, too: "core:overload-allowed". */
static int set_bind(struct spawn_program *program, const char *value)
{
    struct bind_policy policy;
    cleanup_free char *copy = strdup(value);
    if (!copy)
        return -ENOMEM;
    if (bind_parse(copy, &policy, NULL) < 0)
        copy[strcspn(copy, ":")] = '\0';
    return bind_parse(copy, &policy, NULL) < 0 ? -EINVAL : set_text(&program->bind, copy);
}

static int add_env(struct strlist *env, const char *value)
{
    size_t before = env->count;
    int rc = add_words(env, value, "\n");
    for (size_t i = before; rc == 0 && i < env->count; i++)
        if (!strchr(env->items[i], '=') || env->items[i][0] == '=')
            rc = -EINVAL;
    return rc;
}

int spawn_request_info(struct spawn_request *request, struct spawn_program *program,
                       const char *key, const char *value)
{
    if (strcmp(key, "host") == 0 || strcmp(key, "hosts") == 0)
        return add_words(&program->hosts, value, ", ");
    if (strcmp(key, "wdir") == 0 || strcmp(key, "wd") == 0)
        return set_text(&program->wd, value);
    if (strcmp(key, "bind") == 0 || strcmp(key, "bind_to") == 0)
        return set_bind(program, value);
    if (strcmp(key, "env") == 0)
        return add_env(&program->env, value);
    if (strcmp(key, "path") == 0)
        return add_words(&program->search, value, ":");
    if (strcmp(key, "map_by") == 0 && strcasestr(value, ":oversubscribe"))
        request->oversubscribe = true;
    return 0;
}

/* ---- the info key path ---- */

static bool is_program(const char *path)
{
    struct stat st;
    return access(path, X_OK) == 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static int find_program(struct spawn_program *program)
{
    char **name = program->argv.count > 0 ? &program->argv.items[0] : NULL;
    for (size_t i = 0; name && !strchr(*name, '/') && i < program->search.count; i++) {
        CLEANUP(buf_done) struct buf path = BUF_INIT;
        buf_printf(&path, "%s/%s", program->search.items[i], *name);
        if (path.failed)
            return -ENOMEM;
        if (path.data[0] == '/' && is_program(path.data))
            return set_text(name, path.data);
    }
    return 0;
}

int spawn_request_find(struct spawn_request *request)
{
    int rc = 0;
    for (size_t i = 0; i < request->count && rc == 0; i++)
        rc = find_program(&request->programs[i]);
    return rc;
}

/* ---- as a message ---- */

struct app {
    Drarun__Wire__SpawnApp spawn;
    Drarun__Wire__App app;
};

struct message {
    Drarun__Wire__SpawnRequest wire; /* first: what callers hold is this */
    Drarun__Wire__SpawnApp **pointers;
    struct app *apps;
};

void spawn_message_free(Drarun__Wire__SpawnRequest *wire)
{
    struct message *m = (struct message *)wire;
    if (!m)
        return;
    free(m->pointers);
    free(m->apps);
    free(m);
}

static void fill(const struct spawn_program *program, struct app *app)
{
    drarun__wire__spawn_app__init(&app->spawn);
    drarun__wire__app__init(&app->app);
    app->app.argv = program->argv.items;
    app->app.n_argv = program->argv.count;
    app->app.env = program->env.items;
    app->app.n_env = program->env.count;
    if (program->wd)
        app->app.wd = program->wd;
    app->spawn.app = &app->app;
    app->spawn.count = program->count;
    app->spawn.hosts = program->hosts.items;
    app->spawn.n_hosts = program->hosts.count;
    app->spawn.preput = program->preput.items;
    app->spawn.n_preput = program->preput.count;
    if (program->bind)
        app->spawn.bind = program->bind;
}

Drarun__Wire__SpawnRequest *spawn_message_new(const struct spawn_request *request, uint64_t id)
{
    struct message *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    drarun__wire__spawn_request__init(&m->wire);
    m->apps = calloc(request->count + 1, sizeof *m->apps);
    m->pointers = calloc(request->count + 1, sizeof *m->pointers);
    if (!m->apps || !m->pointers) {
        spawn_message_free(&m->wire);
        return NULL;
    }
    for (size_t i = 0; i < request->count; i++) {
        fill(&request->programs[i], &m->apps[i]);
        m->pointers[i] = &m->apps[i].spawn;
    }
    m->wire.id = id;
    m->wire.rank = request->rank;
    m->wire.oversubscribe = request->oversubscribe;
    m->wire.stop_at = request->stop_at;
    m->wire.unawaited = request->unawaited;
    m->wire.apps = m->pointers;
    m->wire.n_apps = request->count;
    return &m->wire;
}
