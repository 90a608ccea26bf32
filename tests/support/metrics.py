# SPDX-License-Identifier: Apache-2.0
"""Prometheus' side of GET /metrics."""
import json
import re

SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)+)\})? (\S+)')


def scrape(cluster, ip, port=7172, path="/metrics", method="GET"):
    """Status, type of the content and text."""
    code = ("import http.client, json, sys; c = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]), timeout=60); "
            "c.request(*sys.argv[3:]); r = c.getresponse(); "
            "print(json.dumps([r.status, r.getheader('Content-Type'), r.read().decode()]))")
    done = cluster.in_ns(["python3", "-c", code, ip, port, method, path])
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def samples(text):
    """[(metric, labels, value)] of the exposition format; a metric is announced before its samples, all at once."""
    kinds, found, last = {}, [], None
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            last = line.split(" ")[2]
            assert last not in kinds and len(line.split(" ", 3)[3]) > 5, line
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == last and kind in ("gauge", "counter"), line
            kinds[name] = kind
        else:
            name, labels, value = SAMPLE.fullmatch(line).groups()
            assert name == last and name in kinds, line
            labels = dict(re.findall(r'([a-z_]+)="([^"]*)"', labels or ""))
            assert (name, labels) not in [each[:2] for each in found], line
            found.append((name, labels, float(value)))
    return found
