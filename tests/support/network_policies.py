# SPDX-License-Identifier: Apache-2.0
"""Who reaches whom by the NetworkPolicies of an API server, as networking.k8s.io/v1 defines it: the kubelets of the tests
enforce none. https://kubernetes.io/docs/concepts/services-networking/network-policies/"""
import ipaddress


def selects(selector, labels):
    """A LabelSelector; an empty one selects all. A key that is not there is not in a list (NotIn)."""
    def holds(term):
        key, values = term["key"], term.get("values", ())
        return {"In": key in labels and labels[key] in values, "NotIn": labels.get(key) not in values,
                "Exists": key in labels, "DoesNotExist": key not in labels}[term["operator"]]
    return (all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
            and all(map(holds, selector.get("matchExpressions", ()))))


class Policies:
    """Of one moment: namespaces, policies and pods as the API server has them."""

    def __init__(self, api):
        self.spaces = {each["metadata"]["name"]: each["metadata"].get("labels", {}) for each in api.get("v1", "Namespace")}
        self.policies = [each for name in self.spaces for each in api.get("networking.k8s.io/v1", "NetworkPolicy", namespace=name)]

    def reaches(self, source, target, port, protocol="TCP"):
        """Whether a connection is let through. source, target: pods, or addresses of what is outside the cluster."""
        return (self._passes("Egress", source, target, target, port, protocol)
                and self._passes("Ingress", target, source, target, port, protocol))

    def _passes(self, direction, held, peer, target, port, protocol):
        """held: the pod whose policies are asked. Without one it is open; with several, what one lets through passes."""
        if isinstance(held, str) or held["spec"].get("hostNetwork"):
            return True
        mine = [each for each in self.policies if self._is_for(each, direction, held)]
        return not mine or any(self._lets(rule, direction, each["metadata"]["namespace"], peer, target, port, protocol)
                               for each in mine for rule in each["spec"].get(direction.lower(), ()))

    def _is_for(self, policy, direction, pod):
        spec = policy["spec"]
        types = spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])]
        return (direction in types and policy["metadata"]["namespace"] == pod["metadata"]["namespace"]
                and selects(spec["podSelector"], pod["metadata"].get("labels", {})))

    def _lets(self, rule, direction, namespace, peer, target, port, protocol):
        peers, ports = rule.get("from" if direction == "Ingress" else "to"), rule.get("ports")
        return ((not peers or any(self._is_peer(each, namespace, peer) for each in peers))
                and (not ports or any(_is_port(each, target, port, protocol) for each in ports)))

    def _is_peer(self, term, namespace, peer):
        if "ipBlock" in term:
            address = ipaddress.ip_address(peer if isinstance(peer, str) else peer["status"]["podIP"])
            return (address in ipaddress.ip_network(term["ipBlock"]["cidr"])
                    and not any(address in ipaddress.ip_network(each) for each in term["ipBlock"].get("except", ())))
        if isinstance(peer, str):
            return False
        there = peer["metadata"]["namespace"]
        near = selects(term["namespaceSelector"], self.spaces[there]) if "namespaceSelector" in term else there == namespace
        return near and selects(term.get("podSelector", {}), peer["metadata"].get("labels", {}))


def _is_port(term, target, port, protocol):
    if term.get("protocol", "TCP") != protocol:
        return False
    if "port" not in term:
        return True
    if isinstance(term["port"], str):  # the name of a port of the target's containers
        return not isinstance(target, str) and any(
            each.get("name") == term["port"] and each["containerPort"] == port and each.get("protocol", "TCP") == protocol
            for container in target["spec"]["containers"] for each in container.get("ports", ()))
    return term["port"] <= port <= term.get("endPort", term["port"])
