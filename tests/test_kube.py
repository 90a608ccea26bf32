# SPDX-License-Identifier: Apache-2.0
"""lib/kube against a real API server: its verbs, its watches, its credentials."""
import json
import time

import pytest

from support.kube_fixtures import cluster, probe, probe_of, space  # noqa: F401

MAPS = {"apiVersion": "v1", "kind": "ConfigMap"}


def config_map(name, **data):
    return {**MAPS, "metadata": {"name": name}, "data": data}


def test_verbs(probe, space):
    there = {**MAPS, "namespace": space.name}
    made = probe.ask(do="create", **there, body=config_map("a", x="1"))
    assert (made["status"], made["err"], made["tries"]) == (201, None, 1)
    again = probe.ask(do="create", **there, body=config_map("a", x="1"))
    assert (again["status"], again["reason"], again["err"]["code"]) == (409, "AlreadyExists", 17)
    assert again["err"]["text"].startswith(f'create configmaps "a" in namespace {space.name}: 409: ')
    applied = probe.ask(do="apply", **there, body=config_map("a", y="2"), manager="other")
    assert applied["body"]["data"] == {"x": "1", "y": "2"}
    conflict = probe.ask(do="apply", **there, body=config_map("a", y="3"))
    assert (conflict["status"], conflict["reason"], conflict["err"]["code"]) == (409, "Conflict", 16)
    forced = probe.ask(do="apply", **there, body=config_map("a", y="3"), force=True)
    assert forced["body"]["data"]["y"] == "3"
    merged = probe.ask(do="merge_patch", **there, name="a", body={"data": {"x": None, "z": "4"}})
    assert merged["body"]["data"] == {"y": "3", "z": "4"}
    patched = probe.ask(do="json_patch", **there, name="a", body=[{"op": "remove", "path": "/data/z"}])
    assert patched["body"]["data"] == {"y": "3"}
    untrue = probe.ask(do="json_patch", **there, name="a", body=[{"op": "test", "path": "/data/y", "value": "9"}])
    assert (untrue["status"], untrue["err"]["code"]) == (422, 22)
    stale = {**made["body"], "data": {"y": "5"}}
    assert probe.ask(do="replace", **there, body=stale)["reason"] == "Conflict"
    assert probe.ask(do="get", **there, name="a")["body"]["data"] == {"y": "3"}
    wrong = probe.ask(do="delete", **there, name="a", uid="0000")
    assert (wrong["status"], wrong["err"]["code"]) == (409, 16)
    assert probe.ask(do="delete", **there, name="a", uid=made["body"]["metadata"]["uid"])["err"] is None
    gone = probe.ask(do="get", **there, name="a")
    assert (gone["status"], gone["err"]["code"]) == (404, 2)
    assert probe.counts()["connections"] == 1


def test_dry_run_and_unknown_field(probe, space):
    there = {**MAPS, "namespace": space.name}
    assert probe.ask(do="create", **there, body=config_map("a"), dryRun=True)["status"] == 201
    assert probe.ask(do="get", **there, name="a")["status"] == 404
    unknown = probe.ask(do="create", **there, body={**config_map("a"), "nonsense": 1})
    assert unknown["status"] == 400 and 'unknown field "nonsense"' in unknown["err"]["text"]


def test_propagation(probe, space, cluster):
    there = {**MAPS, "namespace": space.name}
    owner = probe.ask(do="create", **there, body=config_map("owner"))["body"]["metadata"]
    child = config_map("child")
    child["metadata"]["ownerReferences"] = [
        {**MAPS, "name": "owner", "uid": owner["uid"], "blockOwnerDeletion": True}]
    probe.ask(do="create", **there, body=child)
    probe.ask(do="delete", **there, name="owner", propagation="Orphan")
    cluster.wait("the owner stays", lambda: not cluster.api.get("v1", "ConfigMap", "owner", space.name), 20)
    assert cluster.api.get("v1", "ConfigMap", "child", space.name)["metadata"].get("ownerReferences") is None


def test_pages_and_collection(probe, space):
    probe.all(dict(do="create", **MAPS, namespace=space.name,
                   body={**MAPS, "metadata": {"name": f"m{i}", "labels": {"odd": str(i % 2)}}}) for i in range(1203))
    before = probe.counts()["reads"]
    listed = probe.ask(do="list", **MAPS, namespace=space.name)
    names = [each["metadata"]["name"] for each in listed["body"]["items"]]
    assert len(names) == len(set(names)) == 1204  # and kube-root-ca.crt
    assert probe.counts()["reads"] - before == 3
    odd = probe.ask(do="list", **MAPS, namespace=space.name, labels="odd=1")
    assert len(odd["body"]["items"]) == 601
    one = probe.ask(do="list", **MAPS, namespace=space.name, fields="metadata.name=m7")
    assert [each["metadata"]["name"] for each in one["body"]["items"]] == ["m7"]
    assert probe.ask(do="delete", **MAPS, namespace=space.name, labels="odd=1")["err"] is None
    assert len(probe.ask(do="list", **MAPS, namespace=space.name)["body"]["items"]) == 603


def test_discovery(probe):
    first, second = probe.ask(do="discover"), probe.ask(do="discover")
    assert first["err"] is None
    assert (first["pods"], first["nonsense"], first["one"]) == (True, False, "v1")
    assert second["one"] == "v1" and probe.counts()["reads"] == 2


def test_discovery_is_asked_again(cluster, probe):
    """Of a server that gets something new while a controller runs."""
    assert not probe.ask(do="discover")["later"]
    cluster.api.make({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "laters.kube.test"}, "spec": {
        "group": "kube.test", "scope": "Namespaced", "names": {"plural": "laters", "kind": "Later"}, "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
    cluster.wait("the definition is not served", lambda: probe.ask(do="discover", forget=True)["later"], 30)
    assert probe.ask(do="discover")["later"]


def test_watch(probe, space):
    there = {**MAPS, "namespace": space.name}
    probe.ask(do="create", **there, body=config_map("early"))
    watch = probe.start(do="watch", **there, whole=True)
    events = probe.until(watch, "synced")
    assert sorted(each["name"] for each in events[:-1]) == ["early", "kube-root-ca.crt"]
    assert events[-1]["count"] == 2
    assert all("managedFields" not in each["object"]["metadata"] for each in events[:-1])
    assert all(each["object"]["kind"] == "ConfigMap" for each in events[:-1])
    probe.ask(do="create", **there, body=config_map("late", a="1"))
    assert (lambda e: (e["event"], e["name"], e["object"]["data"]))(probe.next(watch)) == ("added", "late", {"a": "1"})
    probe.ask(do="merge_patch", **there, name="late", body={"data": {"a": "2"}})
    assert (lambda e: (e["event"], e["object"]["data"]))(probe.next(watch)) == ("changed", {"a": "2"})
    probe.ask(do="delete", **there, name="late")
    assert (lambda e: (e["event"], e["name"]))(probe.next(watch)) == ("deleted", "late")
    counts = probe.counts()
    assert (counts["watches"], counts["reads"], counts["connections"]) == (1, 0, 1)


def test_watch_selects(probe, space):
    there = {**MAPS, "namespace": space.name}
    labelled = probe.start(do="watch", **there, labels="mine=yes")
    named = probe.start(do="watch", **there, name="b")
    assert [each["event"] for each in probe.until(labelled, "synced")] == ["synced"]
    assert [each["event"] for each in probe.until(named, "synced")] == ["synced"]
    one = config_map("a")
    one["metadata"]["labels"] = {"mine": "yes"}
    probe.ask(do="create", **there, body=one)
    probe.ask(do="create", **there, body=config_map("b"))
    assert (probe.next(labelled)["name"], probe.next(named)["name"]) == ("a", "b")
    # what no longer matches is gone for this watch
    probe.ask(do="merge_patch", **there, name="a", body={"metadata": {"labels": {"mine": "no"}}})
    assert probe.next(labelled)["event"] == "deleted"


def test_watch_of_metadata(probe, space):
    """What the objects say does not come, neither with those that are there nor with changes."""
    there = {**MAPS, "namespace": space.name}
    probe.ask(do="create", **there, body=config_map("early", a="1"))
    watch = probe.start(do="watch", **there, whole=True, metadataOnly=True)
    events = probe.until(watch, "synced")[:-1]
    probe.ask(do="create", **there, body=config_map("late", a="1"))
    events.append(probe.next(watch))
    probe.ask(do="merge_patch", **there, name="late", body={"data": {"a": "2"}})
    events.append(probe.next(watch))
    assert [(each["event"], each["name"]) for each in events if each["name"] != "kube-root-ca.crt"] == [
        ("added", "early"), ("added", "late"), ("changed", "late")]
    assert all("data" not in each["object"] and each["object"]["metadata"]["uid"] for each in events), events


def test_watch_freed_in_its_callback(probe, space):
    there = {**MAPS, "namespace": space.name}
    for name in "abc":
        probe.ask(do="create", **there, body=config_map(name))
    watch = probe.start(do="watch", **there, freeFirst=True)
    assert probe.next(watch)["event"] == "added"
    probe.quiet(watch, 0.3)
    assert probe.ask(do="get", **there, name="a")["err"] is None


def test_watch_forgets(probe, space):
    there = {**MAPS, "namespace": space.name}
    watch = probe.start(do="watch", **there, forget=True, whole=True)
    probe.until(watch, "synced")
    probe.ask(do="create", **there, body=config_map("a", big="1"))
    assert probe.next(watch)["object"]["data"] == {"big": "1"}
    probe.ask(do="merge_patch", **there, name="a", body={"data": {"big": "2"}})
    assert probe.next(watch)["object"]["data"] == {"big": "2"}
    probe.ask(do="delete", **there, name="a")
    assert probe.next(watch)["event"] == "deleted"


def test_watch_refused_and_allowed(cluster, space, probe_of):
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "few"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]}
    probe = probe_of("--kubeconfig", space.rbac_user(role))
    watch = probe.start(do="watch", **MAPS, namespace=space.name)
    trouble = probe.next(watch)
    assert (trouble["event"], trouble["err"]["code"], trouble["err"]["kind"]) == ("trouble", 13, 3)
    assert trouble["err"]["text"].startswith(f"watch configmaps in namespace {space.name}: 403: ")
    refused = probe.ask(do="create", **MAPS, namespace=space.name, body=config_map("a"))
    assert (refused["status"], refused["err"]["code"]) == (403, 13)
    role["rules"][0]["resources"].append("configmaps")
    path = cluster.api.path("rbac.authorization.k8s.io/v1", "Role", space.name, "few")
    cluster.api.ok("PATCH", path, {"rules": role["rules"]}, content="application/merge-patch+json")
    assert probe.next(watch, 60) == {**trouble, "err": None, "at": pytest.approx(0, abs=1 << 62)}
    assert probe.until(watch, "synced")[-1]["count"] == 1


@pytest.mark.timed
def test_event_to_callback(probe, space, cluster):
    """The event of a write is here before or soon after the write's own answer."""
    there = {**MAPS, "namespace": space.name}
    watch = probe.start(do="watch", **there)
    probe.until(watch, "synced")
    probe.ask(do="create", **there, body=config_map("a"))
    probe.next(watch)
    late = []
    for i in range(300):
        answer = probe.ask(do="merge_patch", **there, name="a", body={"data": {"n": str(i)}})
        late.append((probe.next(watch)["at"] - answer["at"]) / 1000)
    late.sort()
    print(f"event after the write's answer: median {late[150]:.2f} ms, p99 {late[297]:.2f} ms")
    assert late[297] < 10


def pod(name, namespace):
    """As large as a worker's."""
    env = [{"name": f"VARIABLE_{i}", "value": "x" * 40} for i in range(30)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace},
            "spec": {"containers": [{"name": "worker", "image": "example.com/image:1", "env": env}]}}


@pytest.mark.plain("memory of the plain build is the limit")
def test_memory_of_a_thousand_pods(space, cluster, probe_of):
    probe_of("--kubeconfig", cluster.kubeconfig()).all(
        dict(do="create", apiVersion="v1", kind="Pod", namespace=space.name, body=pod(f"p{i}", space.name))
        for i in range(1000))
    for trim in (False, True):
        probe = probe_of("--kubeconfig", cluster.kubeconfig())
        watch = probe.start(do="watch", apiVersion="v1", kind="Pod", namespace=space.name, trim=trim)
        assert probe.until(watch, "synced", 60)[-1]["count"] == 1000
        used = probe.memory_kib() / 1024
        print(f"1,000 pods, {'without' if trim else 'with'} spec: {used:.1f} MiB")
        assert used < 64


@pytest.mark.plain("measures memory")
def test_paused_stream(cluster, probe, probe_of, space):
    """What the API server has for it stays there: libcurl would take 32 MiB of an HTTP/2 stream. All else goes on, over one connection."""
    there = {**MAPS, "namespace": space.name}
    big = "x" * 900_000
    probe_of("--kubeconfig", cluster.kubeconfig()).all(
        dict(do="create", **there, body=config_map(f"big-{i}", it=big)) for i in range(40))
    watch = probe.start(do="watch", **there, labels="mine=yes")
    probe.until(watch, "synced")
    stream = probe.start(do="stream", path=f"/api/v1/namespaces/{space.name}/configmaps")
    probe.start(do="pause", which=stream, pause=True)
    time.sleep(3)
    for name in "abc":
        labelled = {"metadata": {"name": name, "labels": {"mine": "yes"}}}
        assert probe.ask(do="create", **there, body={**MAPS, **labelled})["status"] == 201
        assert probe.next(watch)["name"] == name
    assert probe.counts()["connections"] == 2
    assert probe.memory_kib() < 20 * 1024
    probe.start(do="pause", which=stream, pause=False)
    events = probe.until(stream, "ended")
    listed = json.loads("".join(each["bytes"] for each in events[:-1]))
    assert events[-1]["err"] is None and sum(each.get("data", {}).get("it") == big for each in listed["items"]) == 40
