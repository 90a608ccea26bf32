/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/render_as/left_out.h"

#include <stdio.h>
#include <string.h>

#include "jobs/spec/spec.h"
#include "lib/base/cleanup.h"

#define CARRIED                                                                                    \
    {                                                                                              \
        NULL, NULL, NULL                                                                           \
    }
#define WHY(ray, trainer, rayjob)                                                                  \
    {                                                                                              \
        ray, trainer, rayjob                                                                       \
    }

static const char waits[] = "how long a pod waits is the scheduler's and the controller's";
static const char stays[] = "a RayCluster stays until it is deleted";
static const char templates[] = "a controller's pods have claims made from a template";
static const char no_launcher[] = "there is no launcher's pod";
static const char processes[] = "Ray starts as many processes as its actors and tasks ask for";
static const char starts[] = "Ray starts its processes itself";
static const char gangs[] = "gangs are KubeRay's, by its batch scheduler";
static const char spawns[] = "torchrun's processes start no others";
static const char unbound[] = "torchrun binds no processes";
static const char rules[] = "no launcher looks at how an attempt has ended";
static const char report[] = "no launcher collects files beside a report";
static const char watched[] = "no launcher watches the job";
static const char limits[] = "no launcher signals ranks before their time is over";
static const char manager[] = "it names the controller of a DraJob";

const struct left_out left_out_fields[] = {
    {"apiVersion", CARRIED},
    {"kind", CARRIED},
    {"metadata.name", CARRIED},
    {"metadata.generateName", CARRIED},
    {"metadata.namespace", CARRIED},
    {"metadata.labels", CARRIED},
    {"metadata.annotations", CARRIED},
    {"spec.workers", CARRIED},
    {"spec.roles", CARRIED}, /* one; several are refused */
    {"spec.success", WHY(watched, watched, watched), "all"},
    {"spec.world", CARRIED},
    {"spec.ranksPerWorker", WHY(processes, NULL, processes)},
    {"spec.slots", WHY(processes, spawns, processes)},
    {"spec.oversubscribe", WHY(processes, spawns, processes), "false"},
    {"spec.bind", WHY(processes, unbound, processes), "none"},
    {"spec.reportBindings", WHY(processes, unbound, processes), "false"},
    {"spec.devices.gpus.count", CARRIED},
    {"spec.devices.gpus.class", CARRIED},
    {"spec.devices.gpus.profile", CARRIED},
    {"spec.devices.gpus.resource", CARRIED},
    {"spec.devices.gpus.selector", CARRIED},
    {"spec.devices.gpus.capacity", CARRIED},
    {"spec.devices.gpus.firstAvailable", CARRIED},
    {"spec.devices.gpus.match", CARRIED},
    {"spec.devices.gpus.tolerations", CARRIED},
    {"spec.devices.gpus.config", CARRIED},
    {"spec.devices.gpus.driver", CARRIED},
    {"spec.devices.nics.count", CARRIED},
    {"spec.devices.nics.class", CARRIED},
    {"spec.devices.nics.resource", CARRIED},
    {"spec.devices.nics.selector", CARRIED},
    {"spec.devices.nics.capacity", CARRIED},
    {"spec.devices.nics.firstAvailable", CARRIED},
    {"spec.devices.nics.match", CARRIED},
    {"spec.devices.nics.tolerations", CARRIED},
    {"spec.devices.nics.config", CARRIED},
    {"spec.devices.nics.driver", CARRIED},
    {"spec.devices.cpus.count", CARRIED},
    {"spec.devices.cpus.groups", CARRIED},
    {"spec.devices.cpus.class", CARRIED},
    {"spec.devices.cpus.selector", CARRIED},
    {"spec.devices.match", CARRIED},
    {"spec.devices.shared", CARRIED},
    {"spec.devices.align", CARRIED},
    {"spec.devices.claims", WHY(templates, templates, templates), "template"},
    {"spec.placement.spread", CARRIED},
    {"spec.computeDomain", CARRIED},
    {"spec.network", CARRIED},
    {"spec.onTcpFallback", WHY(watched, watched, watched), "report"},
    {"spec.onPreflightWarning", WHY(watched, watched, watched), "report"},
    {"spec.preflight.fabric", WHY(watched, watched, watched), "off"},
    {"spec.launch", WHY(starts, NULL, starts), "env"},
    {"spec.mpi.transport", CARRIED},
    {"spec.nccl.profile", CARRIED},
    {"spec.nccl.hcaList", CARRIED},
    {"spec.nccl.version", CARRIED},
    {"spec.nccl.env", CARRIED},
    {"spec.nccl.inspector", WHY(report, report, report), "false"},
    {"spec.image", CARRIED},
    {"spec.command", CARRIED},
    {"spec.args", CARRIED},
    {"spec.workingDir", CARRIED},
    {"spec.env", CARRIED},
    {"spec.envFrom", CARRIED},
    {"spec.resources", CARRIED},
    {"spec.volumes", CARRIED},
    {"spec.tolerations", CARRIED},
    {"spec.nodeSelector", CARRIED},
    {"spec.priorityClassName", CARRIED},
    {"spec.serviceAccountName", CARRIED},
    {"spec.imagePullSecrets", CARRIED},
    {"spec.schedulerName", CARRIED},
    {"spec.labels", CARRIED},
    {"spec.annotations", CARRIED},
    {"spec.template", CARRIED},
    {"spec.launcher.resources", WHY(no_launcher, no_launcher, no_launcher)},
    {"spec.launcher.tolerations", WHY(no_launcher, no_launcher, no_launcher)},
    {"spec.launcher.nodeSelector", WHY(no_launcher, no_launcher, no_launcher)},
    {"spec.launcher.priorityClassName", WHY(no_launcher, no_launcher, no_launcher)},
    {"spec.launcher.annotations", WHY(no_launcher, no_launcher, no_launcher)},
    {"spec.timeouts.queue", WHY(waits, waits, waits)},
    {"spec.timeouts.nodes", WHY(waits, waits, waits)},
    {"spec.timeouts.allocation", WHY(waits, waits, waits)},
    {"spec.timeouts.imagePull", WHY(waits, waits, waits)},
    {"spec.timeouts.start", WHY(waits, waits, waits)},
    {"spec.timeouts.total", WHY(stays, NULL, NULL), "0"},
    {"spec.timeouts.agent", WHY(watched, watched, watched)},
    {"spec.timeouts.signal", WHY(limits, limits, limits)},
    {"spec.timeouts.signalBefore", WHY(limits, limits, limits)},
    {"spec.hangAfter", WHY(watched, watched, watched), "0"},
    {"spec.onHang", WHY(watched, watched, watched), "report"},
    {"spec.restarts", WHY("KubeRay replaces each pod that fails, however often", NULL, NULL)},
    {"spec.failurePolicy.rules", WHY(rules, rules, rules)},
    {"spec.failurePolicy.restarts",
     WHY("KubeRay replaces each pod that fails, however often", NULL, NULL)},
    {"spec.failurePolicy.infrastructureRestarts", WHY(rules, rules, rules)},
    {"spec.failurePolicy.onRankFailure", WHY(rules, rules, rules), "end"},
    {"spec.ttlSecondsAfterFinished", WHY(stays, NULL, NULL)},
    {"spec.suspend", CARRIED},
    {"spec.managedBy", WHY(manager, manager, manager), SPEC_CONTROLLER},
    {"spec.queue", CARRIED},
    {"spec.gangScheduling",
     WHY(gangs, "gangs are the runtime's podGroupPolicy, for a scheduler that has them", gangs),
     "never"},
};
const size_t left_out_count = ARRAY_LEN(left_out_fields);

static const json_t *find(const json_t *document, const char *path)
{
    char key[64];
    while (document && *path) {
        size_t len = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)len, path);
        document = json_object_get(document, key);
        path += len + (path[len] == '.');
    }
    return document;
}

static bool is_same(const json_t *value, const char *same)
{
    char number[32] = "";
    const char *text = json_string_value(value);
    if (json_is_integer(value))
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    if (json_is_false(value)) /* also the word off: lib/doc/fields.h */
        return same && (strcmp(same, "off") == 0 || strcmp(same, "false") == 0);
    return same && strcmp(text ? text : number, same) == 0;
}

void left_out_tell(const json_t *document, enum left_out_by system, struct strlist *told)
{
    for (size_t i = 0; i < left_out_count; i++) {
        const struct left_out *field = &left_out_fields[i];
        const json_t *value = field->why[system] ? find(document, field->path) : NULL;
        if (value && !is_same(value, field->same))
            strlist_addf(told, "LEFT_OUT: %s: %s", field->path, field->why[system]);
    }
}
