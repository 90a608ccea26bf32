# SPDX-License-Identifier: Apache-2.0
"""lib/kube when a real API server, or what lies before it, makes trouble (support/api_proxy.py)."""
import json
import re
import threading
import time

import pytest

from support.api_proxy import Exchange, Wire, kubeconfig
from support.build import SLOW_BUILD, patience
from support.kube_fixtures import (admin_token, behind, cluster, probe_of, proxy,  # noqa: F401
                                   space)

MAPS = {"apiVersion": "v1", "kind": "ConfigMap"}
VERSION = {"do": "request", "method": "GET", "path": "/version"}


def config_map(name, **data):
    return {**MAPS, "metadata": {"name": name}, "data": data}


def status(code, reason, message="the proxy says no"):
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason,
            "code": code}


def is_watch(method, path):
    return "watch=true" in path


def is_call(method, path):
    return "watch=true" not in path


def saying(code, body, headers=()):
    return lambda exchange: exchange.answer(code, body, headers)


def drop_before(exchange):
    exchange.drop()


def half_head(exchange):
    exchange.ask().read()
    exchange.send(b"HTTP/1.1 200 OK\r\nContent-Ty")
    exchange.drop()


def half_body(exchange):
    answer = exchange.ask()
    data = answer.read()
    exchange.send(exchange.head(answer, length=len(data)) + data[:len(data) // 2])
    exchange.drop()


def cut_json(exchange):
    """A whole answer whose JSON is not."""
    answer = exchange.ask()
    data = answer.read()[:-5]
    exchange.send(exchange.head(answer, length=len(data)) + data)


def slow(exchange):
    answer = exchange.ask()
    data = answer.read()
    for byte in exchange.head(answer, length=len(data)) + data:
        exchange.send(bytes([byte]))
        time.sleep(0.001)


@pytest.mark.parametrize("stage", ["accept", "tls"])
def test_connection_dropped(proxy, behind, space, stage):
    """Nothing was sent: a create is tried again without leave."""
    proxy.connection_faults += [stage, stage]
    made = behind.ask(do="create", **MAPS, namespace=space.name, body=config_map("a"))
    assert (made["status"], made["tries"], made["lost"]) == (201, 3, False)


@pytest.mark.parametrize("action", [drop_before, Exchange.lose, half_head, half_body, cut_json])
def test_answer_lost(proxy, behind, space, action):
    there = {**MAPS, "namespace": space.name}
    proxy.fault(action, lambda method, path: method == "GET", 2)
    read = behind.ask(do="get", **there, name="kube-root-ca.crt")
    assert (read["status"], read["tries"], read["err"]) == (200, 3, None)
    # a create is not sent again without leave: it may have been processed
    proxy.fault(action, lambda method, path: method == "POST")
    lost = behind.ask(do="create", **there, body=config_map("a"))
    assert lost["err"] and lost["tries"] == 1 and lost["lost"]
    assert lost["err"]["text"].startswith(f'create configmaps "a" in namespace {space.name}: ')
    proxy.fault(action, lambda method, path: method == "POST")
    again = behind.ask(do="create", **there, body=config_map("b"), repeat=True)
    expected = (201, "") if action is drop_before else (409, "AlreadyExists")
    assert (again["status"], again["reason"]) == expected
    assert (again["tries"], again["lost"]) == (2, True)
    proxy.fault(action, lambda method, path: method in ("PATCH", "DELETE"), 1)
    assert behind.ask(do="apply", **there, body=config_map("c"))["err"] is None


def test_slow_bytes(proxy, behind):
    proxy.fault(slow)
    answer = behind.ask(**VERSION)
    assert answer["err"] is None and answer["tries"] == 1


def test_status_429_and_retry_after(proxy, behind, space):
    proxy.fault(saying(429, status(429, "TooManyRequests"), [("Retry-After", "1")]), times=1)
    begin = time.monotonic()
    made = behind.ask(do="create", **MAPS, namespace=space.name, body=config_map("a"))
    assert (made["status"], made["tries"], made["lost"]) == (201, 2, False)
    assert time.monotonic() - begin >= 1


@pytest.mark.parametrize("code", [500, 502, 503, 504])
def test_status_5xx(proxy, behind, space, code):
    there = {**MAPS, "namespace": space.name}
    proxy.fault(saying(code, status(code, "InternalError")), times=2)
    assert behind.ask(do="get", **there, name="kube-root-ca.crt")["tries"] == 3
    proxy.fault(saying(code, status(code, "InternalError")))
    refused = behind.ask(do="create", **there, body=config_map("a"))
    assert (refused["status"], refused["tries"]) == (code, 1)
    assert refused["err"]["text"].endswith(f": {code}: the proxy says no")


def test_conflict_of_a_create_and_of_a_replace(proxy, behind, space):
    """Quota admission refuses creates that meet on the quota's own object; what is there already, and a replace, are not tried again."""
    there = {**MAPS, "namespace": space.name}
    quota = 'Operation cannot be fulfilled on resourcequotas "few": the object has been modified'
    proxy.fault(saying(409, status(409, "Conflict", quota)), lambda method, path: method == "POST", 3)
    made = behind.ask(do="create", **there, body=config_map("a"))
    assert (made["status"], made["tries"], made["lost"]) == (201, 4, False)
    again = behind.ask(do="create", **there, body=config_map("a"))
    assert (again["status"], again["reason"], again["tries"]) == (409, "AlreadyExists", 1)
    proxy.fault(saying(409, status(409, "Conflict", quota)), lambda method, path: method == "PUT")
    late = behind.ask(do="replace", **there, name="a", body=config_map("a"))
    assert (late["status"], late["tries"], late["err"]["code"]) == (409, 1, 16)


def test_503_with_retry_after_was_not_processed(proxy, behind, space):
    proxy.fault(saying(503, b"apiserver is starting", [("Retry-After", "1")]))
    made = behind.ask(do="create", **MAPS, namespace=space.name, body=config_map("a"))
    assert (made["status"], made["tries"], made["lost"]) == (201, 2, False)


def test_answer_that_is_no_json(proxy, behind):
    proxy.fault(saying(403, b"<html>who are you</html>"))
    refused = behind.ask(**VERSION)
    assert (refused["status"], refused["err"]["code"], refused["body"]) == (403, 13, None)
    assert refused["err"]["text"] == "GET /version: 403: who are you"
    proxy.fault(saying(403, b"no access to logs\n"))
    assert behind.until(behind.start(do="stream", path="/logs/x"), "ended")[-1]["err"]["text"].endswith("403: no access to logs")


def forbidden(verb):
    return saying(403, status(403, "Forbidden", f'configmaps is forbidden: User "u" cannot {verb} resource "configmaps" in API group ""'))


def test_refusal_of_what_was_allowed(proxy, behind, space):
    """By a server that has not read its roles yet. What was never allowed is refused at once, and so is what a quota forbids."""
    there = {**MAPS, "namespace": space.name}
    proxy.fault(forbidden("create"), lambda method, path: method == "POST")
    refused = behind.ask(do="create", **there, body=config_map("a"))
    assert (refused["status"], refused["tries"], refused["err"]["code"]) == (403, 1, 13)
    assert behind.ask(do="create", **there, body=config_map("a"))["status"] == 201
    proxy.fault(forbidden("create"), lambda method, path: method == "POST", 3)
    made = behind.ask(do="create", **there, body=config_map("b"))
    assert (made["status"], made["tries"]) == (201, 4)
    proxy.fault(saying(403, status(403, "Forbidden", "exceeded quota")), lambda method, path: method == "POST")
    refused = behind.ask(do="create", **there, body=config_map("c"))
    assert (refused["status"], refused["tries"]) == (403, 1)


def test_watch_is_refused_by_a_server_that_has_just_started(proxy, behind, space):
    """Its owner hears of it, and not that this is final."""
    watch = behind.start(do="watch", **MAPS, namespace=space.name)
    behind.until(watch, "synced")
    proxy.fault(forbidden("watch"), is_watch, 4)
    proxy.cut()
    trouble = behind.next(watch)
    assert (trouble["event"], trouble["err"]["code"]) == ("trouble", 11), trouble
    assert f"watch configmaps in namespace {space.name}: refused for now, tried again for 30 s: 403: " in trouble["err"]["text"]
    well = behind.next(watch)
    assert (well["event"], well["err"]) == ("trouble", None), well
    behind.ask(do="create", **MAPS, namespace=space.name, body=config_map("a"))
    assert behind.next(watch)["event"] == "added"


def test_deadline_names_itself(proxy, behind):
    proxy.fault(lambda exchange: time.sleep(5))
    late = behind.ask(**VERSION, timeout_ms=500)
    assert late["err"]["code"] == 110 and re.search(r"timed out after \d{3,} milliseconds", late["err"]["text"]), late


def endless(exchange):
    exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        exchange.chunk(b" " * (1 << 20))


def test_list_of_large_objects(proxy, behind, space):
    """500 of them are more than an answer may have; fewer are asked for, from where the list was."""
    there = {**MAPS, "namespace": space.name}
    behind.all(dict(do="create", **there, body=config_map(f"m{i}")) for i in range(600))
    proxy.fault(endless, lambda method, path: "limit=500" in path and "continue=" in path)
    listed = behind.ask(do="list", **there, timeout=60)
    assert listed["err"] is None and len({each["metadata"]["name"] for each in listed["body"]["items"]}) == 601
    assert [re.search(r"limit=(\d+)", each[2])[1] for each in proxy.seen() if "limit=" in each[2]] == ["500", "500", "62", "124"]


def test_too_large_an_answer(proxy, behind):
    proxy.fault(endless)
    large = behind.ask(**VERSION, timeout=60)
    assert large["err"]["code"] == 27 and "larger than 64 MiB" in large["err"]["text"], large
    assert behind.memory_kib() < (200 << 10) * SLOW_BUILD


def test_many_calls_while_connections_break(proxy, behind, space):
    """Every one of 100 creates ends well or says that it is in doubt; those that ended well exist."""
    done = threading.Event()

    def breaker():
        while not done.wait(0.1):
            proxy.cut()
    thread = threading.Thread(target=breaker)
    thread.start()
    try:
        numbers = [behind.start(do="create", **MAPS, namespace=space.name, body=config_map(f"m{i}"), repeat=True)
                   for i in range(100)]
        answers = [behind.next(number, 60) for number in numbers]
    finally:
        done.set()
        thread.join()
    for each in answers:
        assert each["err"] is None or (each["reason"] == "AlreadyExists" and each["lost"]), each
    assert len(behind.ask(do="list", **MAPS, namespace=space.name)["body"]["items"]) == 101


def synced(probe, space, **more):
    watch = probe.start(do="watch", **MAPS, namespace=space.name, **more)
    probe.until(watch, "synced")
    return watch


def names(events):
    return sorted((each["event"], each["name"]) for each in events)


def test_watch_resumes(proxy, behind, space, cluster):
    """Cut and refused for a while: nothing is read again, nothing is lost, nothing comes twice."""
    watch = synced(behind, space)
    proxy.down()
    time.sleep(0.5)
    cluster.api.make({**config_map("a"), "metadata": {"name": "a", "namespace": space.name}})
    trouble = behind.next(watch)
    assert (trouble["event"], trouble["err"]["kind"]) == ("trouble", 4) and proxy.url in trouble["err"]["text"]
    proxy.up()
    events = [behind.next(watch), behind.next(watch)]
    assert [each["event"] for each in events] == ["trouble", "added"] and events[0]["err"] is None
    last = [each[2] for each in proxy.seen() if is_watch(*each[1:3])][-1]
    assert "resourceVersion=" in last and "sendInitialEvents" not in last
    behind.quiet(watch, 0.3)


def test_connection_that_stays_up_in_silence(cluster, space, admin_token, probe_of, tmp_path):  # noqa: F811
    """As through a load balancer when the machine of the API server behind it is gone: the first call that is out of time ends it for
    the next ones, and for the watch, which would have waited for minutes."""
    wire = Wire(cluster.network.api_port)
    path = kubeconfig(tmp_path / "wire", wire.url, {"token": admin_token}, {"certificate-authority": str(cluster.keys.folder / "ca.crt")})
    try:
        probe = probe_of("--kubeconfig", path)
        watch = synced(probe, space)
        assert probe.ask(**VERSION)["err"] is None and probe.counts()["connections"] == 1
        wire.hush()
        late = probe.ask(**VERSION, timeout_ms=16000, timeout=40)
        assert late["err"]["code"] == 110, late
        assert probe.ask(**VERSION, timeout_ms=10000)["err"] is None
        cluster.api.make({**config_map("a"), "metadata": {"name": "a", "namespace": space.name}})
        assert probe.next(watch)["event"] == "added"
        assert probe.counts()["connections"] == 2
    finally:
        wire.close()


def test_one_lost_connection_is_no_news(proxy, behind, space, cluster):
    watch = synced(behind, space)
    proxy.cut()
    cluster.api.make({**config_map("a"), "metadata": {"name": "a", "namespace": space.name}})
    assert behind.next(watch)["event"] == "added"


def test_watch_cut_inside_an_event(proxy, behind, space, cluster):
    """At every place of the stream, a resumed watch brings each change once."""
    there = {**MAPS, "namespace": space.name}
    for cut in (1, 7, 300, 700, 1500, 1600):
        proxy.fault(lambda exchange, cut=cut: exchange.forward(cut_after=cut), is_watch)
    watch = behind.start(do="watch", **there, whole=True)
    behind.until(watch, "synced")
    for i in range(10):
        behind.ask(do="apply", **there, body=config_map("a", n=str(i)))
        event = behind.next(watch)
        while event["event"] == "trouble":
            event = behind.next(watch)
        assert (event["event"], event["object"]["data"]["n"]) == ("changed" if i else "added", str(i))


@pytest.mark.parametrize("how", ["status", "event"])
def test_watch_reads_again_after_410(proxy, behind, space, cluster, how):
    there = {**MAPS, "namespace": space.name}
    for name in ("stays", "goes", "changes", "replaced"):
        behind.ask(do="create", **there, body=config_map(name, a="1"))
    watch = synced(behind, space)
    proxy.down()
    for name in ("goes", "replaced"):
        cluster.api.delete("v1", "ConfigMap", name, space.name)
    cluster.api.make({**config_map("replaced"), "metadata": {"name": "replaced", "namespace": space.name}},
                     {**config_map("comes"), "metadata": {"name": "comes", "namespace": space.name}})
    cluster.api.ok("PATCH", cluster.api.path("v1", "ConfigMap", space.name, "changes"), {"data": {"a": "2"}},
                   content="application/merge-patch+json")
    expired = status(410, "Expired", "too old resource version")
    if how == "status":
        proxy.fault(saying(410, expired), is_watch)
    else:
        def event(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            exchange.chunk(json.dumps({"type": "ERROR", "object": expired}).encode() + b"\n")
            time.sleep(5)
        proxy.fault(event, is_watch)
    proxy.up()
    events = []
    while len(events) < 5:
        each = behind.next(watch)
        if each["event"] != "trouble":
            events.append(each)
    assert names(events) == [("added", "comes"), ("added", "replaced"), ("changed", "changes"), ("deleted", "goes"),
                             ("deleted", "replaced")]
    behind.quiet(watch, 0.3)


def test_list_in_pages_where_lists_are_not_streamed(proxy, behind, space, cluster, probe_of):
    """What a server without WatchList answers; then pages, one of which has expired."""
    there = {**MAPS, "namespace": space.name}
    probe_of("--kubeconfig", cluster.kubeconfig()).all(
        dict(do="create", **there, body=config_map(f"m{i}")) for i in range(1100))
    message = "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
    proxy.fault(saying(422, status(422, "Invalid", message)), lambda method, path: "sendInitialEvents" in path, 100)
    proxy.fault(saying(410, status(410, "Expired")), lambda method, path: "continue=" in path)
    watch = behind.start(do="watch", **there)
    events = behind.until(watch, "synced")
    assert len({each["name"] for each in events[:-1]}) == len(events) - 1 == 1101
    behind.ask(do="create", **there, body=config_map("late", a="1"))
    assert behind.next(watch)["name"] == "late"
    second = behind.start(do="watch", **there, whole=True, metadataOnly=True)  # the server is known now
    assert all("data" not in each["object"] for each in behind.until(second, "synced")[:-1])
    assert len([each for each in proxy.seen() if "sendInitialEvents" in each[2]]) == 1


def is_streamed_list(method, path):
    return "sendInitialEvents" in path


def test_streamed_list_that_never_ends(proxy, behind, space):
    """A server ends the stream of a client that it finds too slow, each time after some of the list: then pages."""
    there = {**MAPS, "namespace": space.name}
    for i in range(20):
        behind.ask(do="create", **there, body=config_map(f"m{i}", text="x" * 500))
    proxy.fault(lambda exchange: exchange.forward(cut_after=6000), is_streamed_list, 1000)
    watch = behind.start(do="watch", **there)
    events = [each for each in behind.until(watch, "synced")[:-1] if each["event"] != "trouble"]
    assert {each["name"] for each in events} >= {f"m{i}" for i in range(20)}
    assert len({each["name"] for each in events}) == len(events)
    behind.ask(do="create", **there, body=config_map("late"))
    assert behind.next(watch)["name"] == "late"


def test_server_that_forgets_at_once(proxy, behind, space):
    """Whatever was just listed is too old to be watched: the pauses between lists grow."""
    message = "sendInitialEvents: Forbidden"
    proxy.fault(saying(422, status(422, "Invalid", message)), is_streamed_list)
    proxy.fault(saying(410, status(410, "Expired")), is_watch, 5)
    synced(behind, space)
    deadline = time.monotonic() + patience(60)
    while len([each for each in proxy.seen("GET") if is_watch(*each[1:3]) and not is_streamed_list(*each[1:3])]) < 6:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    lists = [each[0] for each in proxy.seen("GET") if "/configmaps?" in each[2] and "limit=" in each[2]]
    pauses = [after - before for before, after in zip(lists, lists[1:])]
    assert len(pauses) == 5
    for pause, least in zip(pauses[1:], (0.1, 0.2, 0.4, 0.8)):  # after the first it reads again at once
        assert pause >= least


def test_watch_of_a_server_that_fails(proxy, behind, space):
    proxy.fault(saying(500, status(500, "InternalError")), is_watch, 3)
    watch = behind.start(do="watch", **MAPS, namespace=space.name)
    events = behind.until(watch, "synced")
    assert [bool(each["err"]) for each in events if each["event"] == "trouble"] == [True, False]


def test_watch_survives_the_api_server(cluster, admin_token, tmp_path, probe_of, space):
    """The API server itself is killed, and back after a while, on its data."""
    user = {"token": admin_token}
    path = kubeconfig(tmp_path / "direct", cluster.plane.server, user,
                      {"certificate-authority": str(cluster.keys.folder / "ca.crt")})
    probe = probe_of("--kubeconfig", path)
    watch = synced(probe, space)
    cluster.apiserver.kill()
    assert probe.next(watch)["event"] == "trouble"
    number = probe.start(do="create", **MAPS, namespace=space.name, body=config_map("a"), timeout_ms=120000)
    time.sleep(3)
    cluster.apiserver.start()
    answer = probe.next(number, 120)
    assert (answer["status"], answer["lost"]) == (201, False) and answer["tries"] > 3
    events = probe.until(watch, "added", 60)
    assert [each["event"] for each in events if each["event"] != "trouble"] == ["added"]
    assert events[-1]["name"] == "a"
    cluster.api.close()
    cluster.plane.wait_ready()


def test_frozen_api_server(cluster, tmp_path, probe_of, space):
    """Connections stay open and nothing answers: a call ends by its deadline, and all goes on afterwards."""
    probe = probe_of("--kubeconfig", cluster.kubeconfig())
    watch = synced(probe, space)
    cluster.apiserver.freeze()
    try:
        late = probe.ask(**VERSION, timeout_ms=1000)
        assert late["err"]["code"] == 110
    finally:
        cluster.apiserver.thaw()
    probe.ask(do="create", **MAPS, namespace=space.name, body=config_map("a"))
    assert probe.next(watch)["name"] == "a"


def test_stream(proxy, behind, space):
    """Bytes as they come; the server's end, and a connection that is lost."""
    first = threading.Event()

    def drip(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for i in range(3):
            exchange.chunk(f"line {i}\n".encode())
            first.wait(patience())
        exchange.send(b"0\r\n\r\n")
    proxy.fault(drip)
    stream = behind.start(do="stream", path="/logs/x")
    assert behind.next(stream)["bytes"] == "line 0\n"
    first.set()
    events = behind.until(stream, "ended")
    assert "".join(each["bytes"] for each in events[:-1]) == "line 1\nline 2\n" and events[-1]["err"] is None

    def breaks(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        exchange.chunk(b"half")
        exchange.drop()
    proxy.fault(breaks)
    stream = behind.start(do="stream", path="/logs/x")
    events = behind.until(stream, "ended")
    assert events[0]["bytes"] == "half" and events[-1]["err"]["kind"] == 4
    missing = behind.until(behind.start(do="log", namespace=space.name, name="nobody"), "ended")[-1]
    assert missing["err"]["code"] == 2 and 'get pods/log "nobody"' in missing["err"]["text"]
    proxy.fault(saying(503, b"starting", [("Retry-After", "1")]))
    again = behind.until(behind.start(do="stream", path="/version"), "ended")
    assert '"gitVersion"' in again[0]["bytes"] and again[-1]["err"] is None
    proxy.fault(lambda exchange: time.sleep(5))
    late = behind.until(behind.start(do="stream", path="/version", timeout_ms=500), "ended")[-1]
    assert late["err"]["code"] == 110 and "no answer within 1 s" in late["err"]["text"]


def test_stream_is_held_back(proxy, behind):
    """Paused, the bytes stay where they come from."""
    sent = []

    def flood(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(64):
            exchange.chunk(b"x" * (1 << 20))
            sent.append(1)
        exchange.send(b"0\r\n\r\n")
    proxy.fault(flood)
    stream = behind.start(do="stream", path="/logs/x")
    behind.start(do="pause", which=stream, pause=True)
    before, end = -1, time.monotonic() + patience()
    while len(sent) != before and time.monotonic() < end:  # until buffers are full
        before = len(sent)
        time.sleep(1)
    assert len(sent) == before < 60
    behind.start(do="pause", which=stream, pause=False)
    events = behind.until(stream, "ended")
    assert sum(len(each["bytes"]) for each in events[:-1]) == 64 << 20
