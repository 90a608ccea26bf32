/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet and the container runtime. Sources: kubelet 1.36 pkg/kubelet/pluginmanager
 * (registry); containerd docs/cri/config.md (enable_cdi and cdi_spec_dirs: on from 2.0, off in 1.7;
 * version = 3 is 2.0's form); CRI-O's crio.conf(5) (CDI is on). */
#include <string.h>

#include "launcher/doctor/node_checks.h"
#include "lib/base/cleanup.h"
#include "lib/topo/root.h"

#define REGISTRY "var/lib/kubelet/plugins_registry"
#define SOCKET_END "-reg.sock"
#define CONFIG_MAX ((size_t)256 << 10)
#define NAMES_MAX 1024u

/* ---- kubelet ---- */

/* "nic.drarun.dev-reg.sock" and "nic.drarun.dev-UID-reg.sock". */
static bool is_registration(const char *name)
{
    size_t length = strlen(name), end = strlen(SOCKET_END);
    return length > end && strcmp(name + length - end, SOCKET_END) == 0;
}

void check_kubelet(int root, const struct topo_host *host, struct findings *findings)
{
    struct strlist names = {0};
    struct buf seen = BUF_INIT;
    (void)host;
    int rc = root_list(root, REGISTRY, NAMES_MAX, &names, NULL);
    for (size_t i = 0; rc >= 0 && i < names.count; i++)
        if (is_registration(names.items[i]))
            buf_printf(&seen, "%s%.*s", seen.len ? ", " : "",
                       (int)(strlen(names.items[i]) - strlen(SOCKET_END)), names.items[i]);
    if (rc < 0)
        findings_add(findings, "kubelet", FINDING_FAILED,
                     "start the kubelet (systemctl enable --now kubelet); with another --root-dir, "
                     "make /var/lib/kubelet a link to it",
                     "there is no /" REGISTRY);
    else if (seen.len == 0)
        findings_add(findings, "kubelet", FINDING_WARNING,
                     "run a driver on this node: kubectl apply -f deploy/plugin.yaml (with Helm: "
                     "plugin.enabled=true)",
                     "no driver has registered in /" REGISTRY);
    else
        findings_add(findings, "kubelet", FINDING_OK, NULL, "drivers have registered: %s",
                     seen.data);
    strlist_done(&names);
    buf_done(&seen);
}

/* ---- CDI ---- */

/* The value of `key = value` on a line of TOML, its blanks cut; NULL: the line is another's. */
static const char *toml_value(const char *line, const char *key)
{
    size_t length = strlen(key);
    line += strspn(line, " \t");
    if (strncmp(line, key, length) != 0)
        return NULL;
    line += length + strspn(line + length, " \t");
    return *line == '=' ? line + 1 + strspn(line + 1, " \t") : NULL;
}

struct runtime {
    const char *config; /* the file that says so; NULL: none was found */
    bool crio, says_cdi, cdi, third, dirs, run_dir;
};

static void read_containerd(struct runtime *r, char *text)
{
    char *rest = NULL;
    bool in_dirs = false; /* the array goes on over lines */
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        const char *value;
        if (in_dirs) {
            r->run_dir |= strstr(line, "/run/cdi") != NULL;
            in_dirs = !strchr(line, ']');
        } else if ((value = toml_value(line, "enable_cdi"))) {
            r->says_cdi = true;
            r->cdi = strncmp(value, "true", 4) == 0;
        } else if ((value = toml_value(line, "version"))) {
            r->third |= *value == '3';
        } else if ((value = toml_value(line, "cdi_spec_dirs"))) {
            r->dirs = true;
            r->run_dir = strstr(value, "/run/cdi") != NULL;
            in_dirs = *value == '[' && !strchr(value, ']');
        }
    }
}

static void read_runtime(int root, struct runtime *r)
{
    static const char *const containerd[] = {
        "etc/containerd/config.toml",
        "var/lib/rancher/k3s/agent/etc/containerd/config.toml",
        "var/lib/rancher/rke2/agent/etc/containerd/config.toml",
        "etc/k0s/containerd.toml",
    };
    struct strlist more = {0};
    struct buf text = BUF_INIT;
    for (size_t i = 0; !r->config && i < ARRAY_LEN(containerd); i++)
        if (node_text(root, containerd[i], CONFIG_MAX, &text)) {
            r->config = containerd[i];
            read_containerd(r, text.data);
        }
    root_list(root, "etc/containerd/conf.d", NAMES_MAX, &more, NULL); /* what nvidia-ctk writes */
    for (size_t i = 0; i < more.count; i++) {
        char path[512];
        snprintf(path, sizeof path, "etc/containerd/conf.d/%s", more.items[i]);
        if (node_text(root, path, CONFIG_MAX, &text))
            read_containerd(r, text.data);
    }
    if (!r->config && (node_text(root, "etc/crio/crio.conf", CONFIG_MAX, &text) ||
                       root_list(root, "etc/crio/crio.conf.d", NAMES_MAX, &more, NULL) >= 0)) {
        r->config = "etc/crio";
        r->crio = true;
    }
    strlist_done(&more);
    buf_done(&text);
}

void check_cdi(int root, const struct topo_host *host, struct findings *findings)
{
    static const char on[] =
        "in [plugins.'io.containerd.cri.v1.runtime'] (containerd 1.7: "
        "[plugins.\"io.containerd.grpc.v1.cri\"]) of containerd's config.toml: "
        "enable_cdi = true; then systemctl restart containerd";
    static const char dirs[] = "in containerd's config.toml: cdi_spec_dirs = [\"/etc/cdi\", "
                               "\"/var/run/cdi\"]; then systemctl restart containerd";
    struct runtime r = {0};
    (void)host;
    read_runtime(root, &r);
    if (r.crio)
        findings_add(findings, "cdi", FINDING_OK, NULL, "CRI-O, which has CDI switched on");
    else if (!r.config && !r.says_cdi)
        findings_add(findings, "cdi", FINDING_UNKNOWN, on,
                     "no configuration of containerd or CRI-O: containerd 2 has CDI on, 1.7 off");
    else if (r.says_cdi && !r.cdi)
        findings_add(findings, "cdi", FINDING_FAILED, on, "/%s has enable_cdi = false",
                     r.config ? r.config : "etc/containerd/conf.d");
    else if (r.dirs && !r.run_dir)
        findings_add(findings, "cdi", FINDING_FAILED, dirs, "cdi_spec_dirs lacks /var/run/cdi");
    else if (!r.says_cdi && !r.third)
        findings_add(findings, "cdi", FINDING_WARNING, on,
                     "/%s does not say enable_cdi: containerd 2 has it on, 1.7 off", r.config);
    else
        findings_add(findings, "cdi", FINDING_OK, NULL, "containerd has CDI switched on");
}
