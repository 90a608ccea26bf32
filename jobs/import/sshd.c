/* SPDX-License-Identifier: Apache-2.0 */
/* What a container has for the sshd that other launchers need: its ports, probes and hooks. */
#include <string.h>

#include "jobs/import/parts.h"
#include "lib/base/buf.h"
#include "lib/base/nearest.h"
#include "lib/doc/value.h"

static const char *const probes[] = {"livenessProbe", "readinessProbe", "startupProbe"};
static const char *const hooks[] = {"postStart", "preStop"};

static bool is_port(json_int_t port)
{
    return port == 22 || port == 222 || port == 2222;
}

static void take_ports(const struct reader_node *container, json_t *copy)
{
    struct reader_node ports, number;
    if (!reader_get(container, "ports", &ports))
        return;
    for (size_t i = json_array_size(ports.value); i-- > 0;) {
        struct reader_node item = reader_item(&ports, i);
        if (!json_is_object(item.value) || !reader_get(&item, "containerPort", &number) ||
            !is_port(json_integer_value(number.value)))
            continue;
        reader_fail(&item, "sshd's port is left out: nothing logs in to a worker");
        json_array_remove(json_object_get(copy, "ports"), i);
    }
    if (json_array_size(json_object_get(copy, "ports")) == 0)
        json_object_del(copy, "ports");
}

/* A probe may name a port of the container. */
static bool is_ports_name(const struct reader_node *container, const char *name)
{
    const json_t *port = value_find(json_object_get(container->value, "ports"), "name", name);
    return port && is_port(json_integer_value(json_object_get(port, "containerPort")));
}

/* Whether a command starts sshd, or asks for it. */
static bool names_sshd(const json_t *command)
{
    static const char *const words[] = {"sshd", "service ssh", "init.d/ssh", "systemctl start ssh"};
    struct buf text = BUF_INIT;
    bool found = false;
    const json_t *word;
    size_t i;
    json_array_foreach(command, i, word)
    {
        buf_printf(&text, "%s ", json_is_string(word) ? json_string_value(word) : "");
    }
    for (i = 0; text.data && i < ARRAY_LEN(words); i++)
        found |= strstr(text.data, words[i]) != NULL;
    buf_done(&text);
    return found;
}

static bool is_about_sshd(const struct reader_node *container, const json_t *handler)
{
    static const char *const kinds[] = {"tcpSocket", "httpGet"};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        const json_t *port = json_object_get(json_object_get(handler, kinds[i]), "port");
        const char *name = json_string_value(port);
        if (is_port(json_integer_value(port)) || is_ports_name(container, name))
            return true;
    }
    return names_sshd(json_object_get(json_object_get(handler, "exec"), "command"));
}

static void take_handlers(const struct reader_node *container, const struct reader_node *holder,
                          json_t *copy, const char *const keys[], size_t count)
{
    struct reader_node handler;
    for (size_t i = 0; i < count; i++) {
        if (!import_object(holder, keys[i], &handler) || !is_about_sshd(container, handler.value))
            continue;
        reader_fail(&handler, "left out: there is no sshd in a worker");
        json_object_del(copy, keys[i]);
    }
}

void import_sshd(const struct reader_node *container, json_t *copy)
{
    struct reader_node lifecycle;
    json_t *kept = json_object_get(copy, "lifecycle");
    take_ports(container, copy);
    take_handlers(container, container, copy, probes, ARRAY_LEN(probes));
    if (!import_object(container, "lifecycle", &lifecycle))
        return;
    take_handlers(container, &lifecycle, kept, hooks, ARRAY_LEN(hooks));
    if (json_object_size(kept) == 0)
        json_object_del(copy, "lifecycle");
}

/* ---- keys ---- */

/* Volumes that Trainer and the MPI Operator add to the pods. */
static const char key_volumes[] = "mpi-ssh-auth ssh-auth";

static bool is_of_keys(const json_t *pod, const json_t *mount)
{
    const char *name = value_text_or(mount, "name", "");
    return words_has(key_volumes, name) &&
           !value_find(json_object_get(pod, "volumes"), "name", name);
}

/* False: the container has none. */
static bool remove_keys(const json_t *pod, json_t *container)
{
    json_t *mounts = json_object_get(container, "volumeMounts");
    size_t count = json_array_size(mounts);
    for (size_t i = count; i-- > 0;)
        if (is_of_keys(pod, json_array_get(mounts, i)))
            json_array_remove(mounts, i);
    bool found = json_array_size(mounts) < count;
    if (found && json_array_size(mounts) == 0)
        json_object_del(container, "volumeMounts");
    return found;
}

void import_keys(const struct reader_node *pod, json_t *template)
{
    json_t *spec = json_object_get(template, "spec"), *container;
    json_t *initial = json_object_get(spec, "initContainers");
    struct reader_node list;
    size_t i = reader_get(pod, "initContainers", &list) ? json_array_size(initial) : 0;
    while (i-- > 0) {
        struct reader_node item = reader_item(&list, i);
        if (!remove_keys(spec, json_array_get(initial, i)))
            continue;
        reader_fail(&item,
                    "the init container %s is left out: it prepares the keys of sshd, which "
                    "no worker has",
                    value_text_or(item.value, "name", "without a name"));
        json_array_remove(initial, i);
    }
    if (initial && json_array_size(initial) == 0)
        json_object_del(spec, "initContainers");
    if (!reader_get(pod, "containers", &list))
        return;
    json_array_foreach(json_object_get(spec, "containers"), i, container)
    {
        if (remove_keys(spec, container))
            reader_fail(&list,
                        "the mount of sshd's keys in the container %s is left out: no "
                        "worker has sshd",
                        value_text_or(container, "name", "without a name"));
    }
}
