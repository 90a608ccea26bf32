# SPDX-License-Identifier: Apache-2.0
"""The API server's audit log: who asked for what, counted from the server's side."""
import collections
import datetime
import json

# One line when a request is answered; long ones (watches) have one at their start as well.
POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
          "rules": [{"level": "None", "nonResourceURLs": ["/readyz*", "/livez*", "/healthz*"]}, {"level": "Metadata"}]}

LINE_MAX = 1 << 16
Request = collections.namedtuple(
    "Request", "user agent verb group resource subresource namespace name uri code received answered")


def _time(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _request(line):
    what = line.get("objectRef", {})
    return Request(line["user"].get("username", ""), line.get("userAgent", ""), line["verb"], what.get("apiGroup", ""),
                   what.get("resource", ""), what.get("subresource", ""), what.get("namespace", ""),
                   what.get("name", ""), line["requestURI"], line.get("responseStatus", {}).get("code"),
                   _time(line["requestReceivedTimestamp"]), _time(line["stageTimestamp"]))


class Audit:
    """mark() gives a place in the log; requests(since=mark) the requests after it, each once."""

    def __init__(self, path):
        self.path = path

    def mark(self):
        """The end of the last whole line: the server may be writing another."""
        if not self.path.exists():
            return 0
        with open(self.path, "rb") as file:
            size = file.seek(0, 2)
            begin = file.seek(max(0, size - LINE_MAX))
            return begin + file.read(size - begin).rfind(b"\n") + 1

    def requests(self, since=0, **wanted):
        """wanted: agent= is the beginning of the user agent, the others equal a field."""
        found = {}
        with open(self.path, "rb") as file:
            file.seek(since)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # still being written
                read = json.loads(line)
                found[read["auditID"]] = _request(read)  # the end of a watch replaces its start
        agent = wanted.pop("agent", "")
        return [each for each in found.values() if each.agent.startswith(agent) and
                all(getattr(each, field) == value for field, value in wanted.items())]

    def count(self, by=("user", "verb"), since=0, **wanted):
        """Counter of requests by these fields: {("admin", "get"): 3}."""
        return collections.Counter(tuple(getattr(each, field) for field in by)
                                   for each in self.requests(since, **wanted))
