# SPDX-License-Identifier: Apache-2.0
"""The pod that a job spec asks for: its short form and what template adds (docs/design/009-job-spec.md), for specs that
drarun import writes. What template has beside the short form of a key is not merged there, and not here."""
import copy

MEMBERS = {"persistentVolumeClaim": "claimName", "hostPath": "path", "configMap": "name", "secret": "secretName", "emptyDir": "sizeLimit"}
OF_MOUNT = ("mountPath", "readOnly", "subPath")
OF_CONTAINER = ("image", "command", "args", "workingDir", "envFrom", "resources")
OF_POD = ("tolerations", "nodeSelector", "priorityClassName", "serviceAccountName", "schedulerName")
KEYS = (*OF_CONTAINER, *OF_POD, "env", "volumes", "imagePullSecrets", "labels", "annotations")


def variables(env):
    if isinstance(env, list):
        return env
    return [{"name": name, ("valueFrom" if isinstance(value, dict) else "value"): value} for name, value in env.items()]


def volume(each):
    """(of the pod, of the container)"""
    if "shm" in each:
        name = each.get("name", "shm")
        return {"name": name, "emptyDir": {"medium": "Memory", "sizeLimit": each["shm"]}}, {"name": name, "mountPath": "/dev/shm"}
    kind, = set(each) - {"name", *OF_MOUNT}
    source = each[kind] if isinstance(each[kind], dict) else {MEMBERS[kind]: each[kind]}
    return {"name": each["name"], kind: source}, {"name": each["name"], **{key: each[key] for key in OF_MOUNT if key in each}}


def whole_template(spec):
    """The PodTemplateSpec; the ranks' container is called worker and comes first, unless template alone describes it."""
    template = copy.deepcopy(spec.get("template", {}))
    pod = template.setdefault("spec", {})
    if "image" in spec:
        containers = pod.setdefault("containers", [])
        if not containers or containers[0].get("name", "worker") != "worker":
            containers.insert(0, {"name": "worker"})
        first = containers[0]
        first.update({key: spec[key] for key in OF_CONTAINER if key in spec})
        if "env" in spec:
            first["env"] = variables(spec["env"])
        made = [volume(each) for each in spec.get("volumes", [])]
        if made:
            pod["volumes"] = [each for each, _ in made] + pod.get("volumes", [])
            first["volumeMounts"] = [each for _, each in made] + first.get("volumeMounts", [])
    pod.update({key: spec[key] for key in OF_POD if key in spec})
    if "imagePullSecrets" in spec:
        pod["imagePullSecrets"] = [{"name": name} for name in spec["imagePullSecrets"]]
    for key in ("labels", "annotations"):
        if key in spec:
            template.setdefault("metadata", {})[key] = spec[key]
    return template


def in_template(spec):
    """The same spec with all of the pod in template."""
    return {**{key: value for key, value in spec.items() if key not in KEYS}, "template": whole_template(spec)}
