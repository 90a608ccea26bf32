# SPDX-License-Identifier: Apache-2.0
"""What the keys of the short form are in the pods of a real cluster."""
from support.cluster_jobs import Running

SHOW = r"""
echo "env $PLAIN $NUMBER $SECRET $SETTING $POD"; echo "args $*"; echo "in $(pwd)"
echo "files $(cat /settings/file) $(cat /keys/token) $(ls -d /scratch) $(cat /host/marker)"
echo "shm $(df -k /dev/shm | tail -1 | awk '{print $2}')"
"""
BESIDE = ["sh", "-c", "trap exit TERM; sleep 1000 & wait"]


def test_all_of_it(jobs):
    """Variables, files and places of a rank, and the fields of its pod; over it a template with another container."""
    space = jobs.namespace.name
    api = jobs.cluster.api
    api.make({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": space}, "stringData": {"token": "hidden"}},
             {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": space},
              "data": {"SETTING": "set", "file": "content"}},
             {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "ranks", "namespace": space}})
    (jobs.folder / "marker").write_text("marked\n")
    job = Running(
        jobs, image="localhost/busybox:1", command=["sh", "-c", SHOW + "sleep 3\n", "sh"], args=["one", "two words"],
        workingDir="/scratch",
        variables={"PLAIN": "text", "NUMBER": 4, "SECRET": {"secretKeyRef": {"name": "keys", "key": "token"}},
                   "POD": {"fieldRef": {"fieldPath": "metadata.labels['team']"}}},
        envFrom=[{"configMapRef": {"name": "settings"}}], resources={"requests": {"cpu": "100m"}, "limits": {"memory": "64Mi"}},
        volumes=[{"configMap": "settings", "mountPath": "/settings"}, {"secret": "keys", "mountPath": "/keys", "readOnly": True},
                 {"name": "scratch", "emptyDir": "8Mi", "mountPath": "/scratch"},
                 {"hostPath": str(jobs.folder), "mountPath": "/host"}, {"shm": "4Mi"}],
        tolerations=[{"key": "dedicated", "operator": "Exists"}], nodeSelector={"kubernetes.io/os": "linux"},
        serviceAccountName="ranks", imagePullSecrets=["keys"], labels={"team": "a"}, annotations={"example.com/note": "any text"},
        template={"spec": {"containers": [{"name": "beside", "image": "localhost/busybox:1", "command": BESIDE,
                                           "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]}],
                           "hostAliases": [{"ip": "10.1.2.3", "hostnames": ["elsewhere"]}]}})
    job.wait_lines(1, "shm ")
    pod = api.get("v1", "Pod", "job-w-0", space)
    result = job.ended().ok()
    lines = [line.split("] ", 1)[-1].strip() for line in result.out.splitlines()]
    assert "env text 4 hidden set a" in lines and "args one two words" in lines and "in /scratch" in lines, result
    assert "files content hidden /scratch marked" in lines and "shm 4096" in lines, result
    spec, metadata = pod["spec"], pod["metadata"]
    assert spec["serviceAccountName"] == "ranks" and spec["imagePullSecrets"] == [{"name": "keys"}]
    assert {"key": "dedicated", "operator": "Exists"} in spec["tolerations"] and spec["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert [each["name"] for each in spec["containers"]] == ["worker", "beside"]
    assert spec["hostAliases"] == [{"ip": "10.1.2.3", "hostnames": ["elsewhere"]}]
    assert metadata["labels"]["team"] == "a" and metadata["annotations"]["example.com/note"] == "any text"
    assert spec["containers"][0]["resources"] == {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}}
    for kind, name in (("Secret", "keys"), ("ConfigMap", "settings"), ("ServiceAccount", "ranks")):
        api.delete("v1", kind, name, space)


def test_references_in_words_and_values(jobs):
    """As the kubelet replaces them in a container's own command, with each rank's variables besides; behind -- words stay as they are."""
    space = jobs.namespace.name
    jobs.cluster.api.make({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "words", "namespace": space}, "data": {"MAPPED": "m"}})
    variables = [{"name": "FOO", "value": "foo"}, {"name": "BAR", "value": "$(FOO)-$(MAPPED)"},
                 {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    command = ["echo", "v=$(FOO)", "$(BAR)", "$(MAPPED)", "$(POD)", "$(RANK)/$(WORLD_SIZE)", "$$(FOO)", "$(NONE)"]
    for options, last in ([], "{}$"), (["--replace", "--", "$(RANK)$$"], "$(RANK)$$"):
        result = jobs.run(*options, image="localhost/busybox:1", workers=2, ranksPerWorker=2, variables=variables,
                          envFrom=[{"configMapRef": {"name": "words"}}], command=command, args=["$(RANK)$$"]).ok()
        lines = sorted(line.split("] ", 1)[-1] for line in result.out.splitlines())
        assert lines == [f"v=foo foo-m m job-w-{r // 2} {r}/4 $(FOO) $(NONE) {last.format(r)}" for r in range(4)], result
    jobs.cluster.api.delete("v1", "ConfigMap", "words", space)
