# SPDX-License-Identifier: Apache-2.0
"""What an API server refuses of a pod's spec, and neighbours of it that it takes: (name, part of the spec, words of drarun validate or None). A real API
server is asked by test_dry_run.py, so that validate refuses nothing that would run."""
import copy

WORKER = {"name": "worker", "image": "i", "command": ["c"]}


def worker(**fields):
    return {"containers": [{**WORKER, **fields}]}


def initial(**fields):
    return {**worker(), "initContainers": [{"name": "first", "image": "i", **fields}]}


def resources(requests=None, limits=None, **more):
    return worker(resources={key: value for key, value in {"requests": requests, "limits": limits, **more}.items() if value is not None})


def volumes(mounts, *names, **fields):
    return {**worker(volumeMounts=mounts, **fields), "volumes": [{"name": name, "emptyDir": {}} for name in names]}


def toleration(**fields):
    return {**worker(), "tolerations": [fields]}


def spread(**fields):
    return {**worker(), "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **fields}]}


GPU = "nvidia.com/gpu"
RULES = [
    ("mount of no volume", volumes([{"name": "b", "mountPath": "/b"}], "a"), 'containers[0].volumeMounts[0]: the API server would reject it: no volume is called "b"'),
    ("mount of a volume", volumes([{"name": "a", "mountPath": "/b"}], "a"), None),
    ("initial mount of no volume", initial(volumeMounts=[{"name": "b", "mountPath": "/b"}]), 'initContainers[0].volumeMounts[0]: the API server would reject it: no volume'),
    ("two mounts at a path", volumes([{"name": "a", "mountPath": "/b"}, {"name": "b", "mountPath": "/b"}], "a", "b"), "the volumes a and b are both mounted at /b"),
    ("two mounts of a volume", volumes([{"name": "a", "mountPath": "/b"}, {"name": "a", "mountPath": "/b/"}], "a"), None),
    ("sub path that leaves", volumes([{"name": "a", "mountPath": "/b", "subPath": "x/../y"}], "a"), "subPath must be relative"),
    ("absolute sub path", volumes([{"name": "a", "mountPath": "/b", "subPath": "/x"}], "a"), "subPath must be relative"),
    ("sub path with dots", volumes([{"name": "a", "mountPath": "/b", "subPath": "..x/y../z"}], "a"), None),
    ("two sub paths", volumes([{"name": "a", "mountPath": "/b", "subPath": "x", "subPathExpr": "y"}], "a"), "exclude each other"),
    ("propagation", volumes([{"name": "a", "mountPath": "/b", "mountPropagation": "Both"}], "a"), "mountPropagation: expected one of"),
    ("two volumes of a name", volumes([], "a", "a"), "another entry has this name"),
    ("name of a volume", volumes([], "a_b"), "a name has at most 63"),
    ("two sources", {**worker(), "volumes": [{"name": "a", "emptyDir": {}, "hostPath": {"path": "/x"}}]}, "a volume has one source, and this one has 2"),
    ("no source", {**worker(), "volumes": [{"name": "a"}]}, None),
    ("host path's type", {**worker(), "volumes": [{"name": "a", "hostPath": {"path": "/x", "type": "Dir"}}]}, "hostPath.type: expected one of"),
    ("host path without type", {**worker(), "volumes": [{"name": "a", "hostPath": {"path": "/x", "type": ""}}]}, None),
    ("decimal mode", {**worker(), "volumes": [{"name": "a", "secret": {"secretName": "s", "defaultMode": 1777}}]}, "defaultMode: expected an integer of at most 511"),
    ("mode", {**worker(), "volumes": [{"name": "a", "secret": {"secretName": "s", "defaultMode": 0o777}}]}, None),
    ("request above limit", resources({"cpu": 4}, {"cpu": 2}), "resources.requests.cpu: the API server would reject it: the request is above the limit"),
    ("request above limit, in other units", resources({"memory": "1025Mi"}, {"memory": "1Gi"}), "the request is above the limit"),
    ("request at limit, in other units", resources({"memory": "1024Mi", "cpu": 1.5}, {"memory": "1Gi", "cpu": "1500m"}), None),
    ("request alone", resources({"cpu": 4}), None),
    ("negative", resources({"cpu": -1}), "an amount is not negative"),
    ("extended request alone", resources({GPU: 1}), "nvidia.com/gpu needs a limit equal to the request"),
    ("extended request below limit", resources({GPU: 1}, {GPU: 2}), "request and limit of nvidia.com/gpu must be equal"),
    ("extended limit alone", resources(None, {GPU: 2}), None),
    ("extended request and limit", resources({GPU: "2"}, {GPU: 2}), None),
    ("part of a device", resources(None, {GPU: "500m"}), "comes in whole numbers"),
    ("a device in thousandths", resources(None, {GPU: "1000m"}), None),
    ("huge pages", resources({"hugepages-2Mi": "4Mi", "cpu": 1}, {"hugepages-2Mi": "2Mi"}), "request and limit of hugepages-2Mi must be equal"),
    ("unknown resource", resources({"gpu": 1}), "requests.gpu: the API server would reject it: no resource of a container"),
    ("native resource with a prefix", resources({"kubernetes.io/x": "1500m"}), None),
    ("the pod's request above its limit", {**worker(), "resources": {"requests": {"cpu": 4}, "limits": {"cpu": 2}}},
     "spec.resources.requests.cpu: the API server would reject it: the request is above the limit"),
    ("a device of the pod itself", {**worker(), "resources": {"limits": {GPU: 1}}}, "no resource of a pod itself"),
    ("storage of the pod itself", {**worker(), "resources": {"requests": {"ephemeral-storage": "1Gi"}}}, "no resource of a pod itself"),
    ("a claim of the pod itself", {**worker(), "resources": {"claims": [{"name": "a"}]}, "resourceClaims": [{"name": "a", "resourceClaimName": "c"}]}, "claims are of containers"),
    ("amounts of the pod itself", {**resources({"cpu": 1}), "resources": {"requests": {"cpu": 2, "memory": "1Gi"}, "limits": {"cpu": 2}}}, None),
    ("claim of no pod", resources(claims=[{"name": "a"}]), 'the pod has no claim "a"'),
    ("claim twice", {**resources(claims=[{"name": "a"}, {"name": "a", "request": "r"}]), "resourceClaims": [{"name": "a", "resourceClaimName": "c"}]}, "the same devices"),
    ("requests of a claim", {**resources(claims=[{"name": "a", "request": "q"}, {"name": "a", "request": "r"}]), "resourceClaims": [{"name": "a", "resourceClaimName": "c"}]}, None),
    ("claim of nothing", {**worker(), "resourceClaims": [{"name": "a"}]}, "expected one of resourceClaimName, resourceClaimTemplateName; got 0"),
    ("claim of both", {**worker(), "resourceClaims": [{"name": "a", "resourceClaimName": "x", "resourceClaimTemplateName": "z"}]}, "; got 2"),
    ("value and source", worker(env=[{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]), "value and valueFrom exclude each other"),
    ("empty value and source", worker(env=[{"name": "A", "value": "", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]), None),
    ("no source of a variable", worker(env=[{"name": "A", "valueFrom": {}}]), "valueFrom has one source, and this one has 0"),
    ("name of a variable", worker(env=[{"name": "A=B", "value": "1"}]), "a variable's name is of printable ASCII"),
    ("relaxed name of a variable", worker(env=[{"name": "a b-1.", "value": "1"}, {"name": "1"}]), None),
    ("variables from nothing", worker(envFrom=[{"prefix": "A"}]), "envFrom[0]: the API server would reject it: expected one of configMapRef, secretRef; got 0"),
    ("port", worker(ports=[{"containerPort": 99999}]), "containerPort: expected an integer of at most 65535"),
    ("name of a port", worker(ports=[{"containerPort": 80, "name": "this-is-too-long"}]), "a port's name has at most 15"),
    ("number as a port's name", worker(ports=[{"containerPort": 80, "name": "80"}]), "with a letter among them"),
    ("port of a name", worker(ports=[{"containerPort": 80, "name": "8-a"}, {"containerPort": 81, "hostPort": 82}]), None),
    ("two ports of a name", worker(ports=[{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}]), "another port is called a"),
    ("protocol", worker(ports=[{"containerPort": 80, "protocol": "tcp"}]), "protocol: expected one of SCTP, TCP, UDP"),
    ("another port of the host", {**worker(ports=[{"containerPort": 80, "hostPort": 81}]), "hostNetwork": True}, "hostPort and containerPort are one"),
    ("port of the host", {**worker(ports=[{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}]), "hostNetwork": True}, None),
    ("empty probe", worker(readinessProbe={"initialDelaySeconds": 2}), "expected one of exec, httpGet, tcpSocket, grpc; got 0"),
    ("probe", worker(readinessProbe={"tcpSocket": {"port": "http"}, "successThreshold": 2}), None),
    ("probe's port", worker(livenessProbe={"tcpSocket": {"port": 0}}), "tcpSocket.port: expected an integer of at least 1"),
    ("successes of life", worker(livenessProbe={"tcpSocket": {"port": 1}, "successThreshold": 2}), "successThreshold is 1"),
    ("probe without command", worker(startupProbe={"exec": {}}), "exec.command is missing"),
    ("empty hook", worker(lifecycle={"preStop": {}}), "lifecycle.preStop: the API server would reject it: expected one of exec, httpGet, tcpSocket, sleep; got 0"),
    ("initial probe", initial(livenessProbe={"tcpSocket": {"port": 1}}), "livenessProbe needs restartPolicy: Always"),
    ("sidecar's probe", initial(restartPolicy="Always", livenessProbe={"tcpSocket": {"port": 1}}), None),
    ("initial name", {**worker(), "initContainers": [{"name": "A_b", "image": "i"}]}, "initContainers[0].name: the API server would reject it: a name has at most 63"),
    ("ephemeral container", {**worker(), "ephemeralContainers": [{"name": "debug", "image": "i"}]},
     "ephemeralContainers[0]: the API server would reject it: ephemeral containers are added to a pod that runs"),
    ("no ephemeral container", {**worker(), "ephemeralContainers": []}, None),
    ("initial container of the same name", {**worker(), "initContainers": [{"name": "worker", "image": "i"}]}, "a container of the pod has this name, too"),
    ("two containers of a name", {"containers": [WORKER, {"name": "a", "image": "i"}, {"name": "a", "image": "i"}]}, "another entry has this name"),
    ("pull policy", worker(imagePullPolicy="Sometimes"), "imagePullPolicy: expected one of Always, IfNotPresent, Never"),
    ("no pull policy", worker(imagePullPolicy=""), None),
    ("termination's message", worker(terminationMessagePolicy="Log"), "terminationMessagePolicy: expected one of"),
    ("privileged without escalation", worker(securityContext={"privileged": True, "allowPrivilegeEscalation": False}), "privileged excludes"),
    ("privileged", worker(securityContext={"privileged": True, "allowPrivilegeEscalation": True}), None),
    ("user", worker(securityContext={"runAsUser": -1}), "runAsUser: expected an integer of at least 0"),
    ("large user", {**worker(), "securityContext": {"runAsUser": 2**31}}, "runAsUser: expected an integer of at most 2147483647"),
    ("groups", {**worker(), "securityContext": {"supplementalGroups": [1, -1]}}, "supplementalGroups[1]: expected an integer of at least 0"),
    ("seccomp", {**worker(), "securityContext": {"seccompProfile": {"type": "Default"}}}, "seccompProfile.type: expected one of"),
    ("key of a label", {**worker(), "nodeSelector": {"bad key": "x"}}, 'nodeSelector["bad key"]: the API server would reject it: no key of a label'),
    ("value of a label", {**worker(), "nodeSelector": {"a": "bad value!"}}, "nodeSelector.a: the API server would reject it: a label's value"),
    ("labels", {**worker(), "nodeSelector": {"a.b/C_d": "", "e": "F.g"}}, None),
    ("toleration's value", toleration(key="a", operator="Exists", value="b"), "operator: Exists takes no value"),
    ("toleration's seconds", toleration(key="a", value="b", tolerationSeconds=3), "tolerationSeconds needs effect: NoExecute"),
    ("toleration without key", toleration(operator="Equal"), "key is missing"),
    ("toleration of all", toleration(operator="Exists"), None),
    ("toleration without operator", toleration(key="a", operator="", effect="", value=""), None),
    ("toleration with seconds", toleration(key="a", effect="NoExecute", tolerationSeconds=-3), None),
    ("toleration's key", toleration(key="a b", operator="Exists"), "is no key of a taint"),
    ("toleration's label", toleration(key="a", value="b c"), "is no value of a taint"),
    ("toleration's effect", toleration(key="a", effect="No"), "effect: expected one of"),
    ("toleration's operator", toleration(key="a", operator="In"), "operator: expected one of"),
    ("skew", spread(maxSkew=0), "maxSkew: expected an integer of at least 1"),
    ("spread's nodes", spread(nodeAffinityPolicy="foo"), "nodeAffinityPolicy: expected one of"),
    ("spread's taints", spread(nodeTaintsPolicy="foo"), "nodeTaintsPolicy: expected one of"),
    ("spread over all nodes", spread(nodeAffinityPolicy="Ignore", nodeTaintsPolicy="Honor"), None),
    ("spread", spread(whenUnsatisfiable="Fail"), "whenUnsatisfiable: expected one of"),
    ("weight", {**worker(), "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 0, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}]}}}, "weight: expected an integer of at least 1"),
    ("affinity's operator", {**worker(), "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Equals", "values": ["b"]}]}]}}}}, "operator: expected one of"),
    ("access mode", {**worker(), "volumes": [{"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": {
        "accessModes": ["RWX"], "resources": {"requests": {"storage": "1Gi"}}}}}}]}, "accessModes[0]: expected one of"),
    ("DNS policy", {**worker(), "dnsPolicy": "Nowhere"}, "dnsPolicy: expected one of"),
    ("deadline", {**worker(), "activeDeadlineSeconds": 0}, "activeDeadlineSeconds: expected an integer of at least 1"),
    ("service account", {**worker(), "serviceAccountName": "Bad_Name"}, "serviceAccountName: the API server would reject it: a name has"),
    ("host name", {**worker(), "hostname": "a.b"}, "hostname: the API server would reject it: a name has"),
]
IDS = [rule[0] for rule in RULES]


def pod(namespace, spec):
    """As drarun would make it: a worker ends once."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "rule", "namespace": namespace}, "spec": {"restartPolicy": "Never", **copy.deepcopy(spec)}}
