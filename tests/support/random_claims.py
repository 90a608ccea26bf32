# SPDX-License-Identifier: Apache-2.0
"""Random small clusters and a claim each, for the prediction of allocations: the same seed gives the same ones. With
counters, shares of capacity, list attributes, taints, slices for several nodes, pools that are incomplete, outdated or
invalid, and devices that other claims hold. What Kubernetes 1.37 does otherwise than 1.36 (docs/design/014-prediction.md)
is reached by: distinctAttribute over requests for several devices; list attributes; allocationMode All beside shared
devices that are held; slices of counters with nodes of their own, in pools that are broken; shared devices with counters
and without capacity that are held; the node's name as that of the pools of two drivers; the capacity "share", whose
numbers are fractions."""
import random

DRIVERS = {"gpu": "gpu.example.com", "nic": "nic.example.com", "net": "net.example.com"}
CLASSES = [{"kind": "DeviceClass", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": name}, "spec": {
    "selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]}} for name, driver in DRIVERS.items()]
CLASSES.append({"kind": "DeviceClass", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "any"}, "spec": {}})
ROOT = "resource.kubernetes.io/root"
SELECTORS = [
    'device.attributes["resource.kubernetes.io"].root == "r0"', 'device.attributes["gpu.example.com"].numa == 0',
    'device.attributes["gpu.example.com"].?numa.orValue(7) < 2', "device.allowMultipleAllocations == true",
    'has(device.capacity["gpu.example.com"].memory)',
    'device.capacity["gpu.example.com"].memory.compareTo(quantity("20Gi")) >= 0', "true", "false"]


class Cluster:
    def __init__(self, random_source):
        self.random = random_source
        self.theme = self.random.choice(["", "", "", "lists", "namesakes", "all", "broken"])  # what there is more of
        self.lists = self.chance(self.more("lists", 1, 0.2))
        self.calm = self.chance(self.more("broken", 0, 0.5))  # without what makes pools unusable
        self.namesakes = self.chance(self.more("namesakes", 1, 0.1))
        self.nodes = [self.node(i) for i in range(self.random.randint(1, 3))]
        self.slices = []
        for node in list(self.nodes):
            for kind in ("gpu", "nic"):
                if self.chance(0.85):
                    own = "" if self.namesakes else f"-{kind}"
                    self.pool(kind, node["metadata"]["name"] + own, {"nodeName": node["metadata"]["name"]})
        if self.chance(0.3):
            self.pool("net", "fabric", self.spread())
        self.random.shuffle(self.slices)

    def chance(self, probability):
        return self.random.random() < probability

    def more(self, theme, probability, otherwise):
        return probability if self.theme == theme else otherwise

    def rarely(self, probability):
        return not self.calm and self.chance(probability)

    def node(self, i):
        labels = {"zone": self.random.choice("ab"), "rack": str(self.random.randint(1, 9))}
        if self.chance(0.5):
            labels["fast"] = "true"
        return {"kind": "Node", "apiVersion": "v1", "metadata": {"name": f"node-{i}", "labels": labels}}

    # ---- who may use a slice

    def node_selector(self):
        expression = self.random.choice([
            {"key": "zone", "operator": "In", "values": ["a"]}, {"key": "zone", "operator": "NotIn", "values": ["a", "c"]},
            {"key": "fast", "operator": "Exists"}, {"key": "fast", "operator": "DoesNotExist"},
            {"key": "rack", "operator": "Gt", "values": ["4"]}, {"key": "rack", "operator": "Lt", "values": ["4"]}])
        term = {"matchExpressions": [expression]}
        if self.chance(0.2):
            term["matchFields"] = [{"key": "metadata.name", "operator": "In", "values": ["node-0"]}]
        return {"nodeSelectorTerms": [term]}

    def spread(self):
        return self.random.choice([{"allNodes": True}, {"nodeSelector": self.node_selector()},
                                   {"perDeviceNodeSelection": True}])

    # ---- devices

    def attribute(self, values):
        if self.lists and self.chance(self.more("lists", 0.9, 0.6)):
            return {"strings": self.random.sample(values, self.random.randint(1, 2))}
        return {"string": self.random.choice(values)}

    def capacity(self, shared):
        value = self.random.choice(["10Gi", "16Gi", "40Gi"])
        made = {"value": value}
        policy = self.random.random()
        if shared and policy < 0.3:
            made["requestPolicy"] = {"default": "4Gi", "validRange": {"min": "2Gi", "max": "12Gi"}}
            if self.chance(0.5):
                made["requestPolicy"]["validRange"]["step"] = "2Gi"
        elif shared and policy < 0.6:
            made["requestPolicy"] = {"default": "1Gi", "validValues": ["1Gi", "3Gi", "8Gi"]}
        return made

    def share(self):
        policy = {"default": "1", "validRange": {"min": self.random.choice(["500m", "1", "2"]),
                                                 "step": self.random.choice(["250m", "300m", "1", "5e0", "1Ki"])}}
        if self.chance(0.5):
            policy["validRange"]["max"] = self.random.choice(["3", "3500m", "10P"])
        return {"value": self.random.choice(["2500m", "4", "6k"]), "requestPolicy": policy}

    def device(self, kind, name, driver, counters):
        device = {"name": name, "attributes": {"numa": {"int": self.random.randint(0, 2)}}}
        if self.chance(0.9):
            device["attributes"][ROOT] = self.attribute(["r0", "r1", "r2", *self.more("lists", ["r3"], [])])
        if self.rarely(0.1):
            del device["attributes"]["numa"]
        shared = self.chance(0.25)
        if shared:
            device["allowMultipleAllocations"] = True
        if kind == "gpu" or self.chance(0.3):
            device["capacity"] = {"memory": self.capacity(shared)}
            if shared and self.chance(0.5):
                device["capacity"]["share"] = self.share()
        if counters and self.chance(0.8):
            sets = self.random.sample(sorted(counters), self.random.randint(1, min(2, len(counters))))
            device["consumesCounters"] = [{"counterSet": each, "counters": {
                counter: {"value": str(self.random.randint(0, 3))} for counter in counters[each]
                if self.chance(0.8)} or {"slices": {"value": "1"}}} for each in sets]
        if self.chance(0.1):
            device["taints"] = [{"key": "example.com/bad", "value": "x",
                                 "effect": self.random.choice(["NoSchedule", "NoExecute", "None"])}]
        if self.rarely(0.05):
            device["bindingConditions"] = ["example.com/Ready"]
            device["bindingFailureConditions"] = ["example.com/Failed"]
        return device

    def pool(self, kind, name, selection):
        driver = DRIVERS[kind]
        counters = {}
        if self.chance(self.more("namesakes", 0.9, self.more("broken", 0.6, 0.3))):
            counters = {f"set-{i}": ["slices", "memory"][:self.random.randint(1, 2)]
                        for i in range(self.random.randint(1, 2))}
        generation = self.random.randint(1, 3)
        names = self.random.sample("abcdefghij", self.random.randint(1, self.more("lists", 9, 6)))
        split = self.random.randint(0, len(names))
        lists = [part for part in (names[:split], names[split:]) if part]
        devices = [[self.device(kind, f"{kind}-{each}", driver, counters) for each in part] for part in lists]
        if "perDeviceNodeSelection" in selection:
            for device in sum(devices, []):
                device.update(self.random.choice([{"nodeName": "node-0"}, {"allNodes": True},
                                                  {"nodeSelector": self.node_selector()}]))
        if self.rarely(0.05):
            devices[-1].append(dict(devices[0][0]))
        if self.rarely(0.05) and counters:
            devices[0][0]["consumesCounters"] = [{"counterSet": "other", "counters": {"slices": {"value": "1"}}}]
        bodies = [{**selection, "devices": part} for part in devices]
        if counters:
            sets = [{"name": each, "counters": {counter: {"value": str(self.random.randint(1, 6))}
                                                for counter in names}} for each, names in counters.items()]
            nodes = selection if "perDeviceNodeSelection" not in selection else {"allNodes": True}
            if self.chance(0.3):
                nodes = self.random.choice([self.spread(), {"nodeName": "node-0"}])
            bodies.append({**nodes, "sharedCounters": sets})
        announced = len(bodies) + (1 if self.rarely(0.08) else 0)
        for i, body in enumerate(bodies):
            self.slice(driver, name, generation, announced, body, f"{self.random.choice('xyz')}{i}")
        if self.rarely(0.1):
            old = {**selection, "devices": [self.device(kind, f"{kind}-old", driver, {})]}
            if "perDeviceNodeSelection" in old:
                old["devices"][0]["allNodes"] = True
            self.slice(driver, name, generation - 1, 1, old, "old")
        if self.rarely(0.04):
            self.slice(driver, name, generation + 1, 2, {"nodeName": "node-9", "devices": []}, "new")
            self.nodes += [self.node(9)] if self.nodes[-1]["metadata"]["name"] != "node-9" else []

    def slice(self, driver, pool, generation, count, body, name):
        self.slices.append({
            "kind": "ResourceSlice", "apiVersion": "resource.k8s.io/v1",
            "metadata": {"name": f"{name}-{pool}-{driver}-{generation}"},
            "spec": {"driver": driver, "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
                     **body}})

    # ---- claims

    def ask(self, admin):
        made = {"deviceClassName": self.random.choice(["gpu"] * 5 + ["nic"] * 5 + ["any", "any", "net"] + self.more("namesakes", ["any"] * 6, []))}
        if self.chance(self.more("all", 0.5, self.more("broken", 0.4, 0.1))):
            made["allocationMode"] = "All"
        elif self.chance(0.7):
            made.update(allocationMode="ExactCount", count=self.random.choice([1, 1, 1, 2, 2, 3]))
        if self.chance(0.2):
            made["selectors"] = [{"cel": {"expression": self.random.choice(SELECTORS)}}]
        if self.chance(0.15):
            made["tolerations"] = [self.random.choice([
                {"operator": "Exists"}, {"key": "example.com/bad", "operator": "Exists", "effect": "NoSchedule"},
                {"key": "example.com/bad", "operator": "Equal", "value": "x"}])]
        if self.chance(0.2):
            made["capacity"] = {"requests": self.amounts()}
        if admin and self.chance(0.08):
            made["adminAccess"] = True
        return made

    def amounts(self):
        if self.chance(0.3):
            return {"share": self.random.choice(["200m", "700m", "1", "1500m", "1500001u", "2", "2k"])}
        return {self.random.choice(["memory", "memory", "memory", "absent"]):
                self.random.choice(["1Gi", "2Gi", "3Gi", "5Gi", "2500Mi", "12Gi", "13Gi"])}

    def request(self, i):
        if self.chance(0.75):
            return {"name": f"r{i}", "exactly": self.ask(True)}
        return {"name": f"r{i}", "firstAvailable": [{"name": f"s{j}", **self.ask(False)}
                                                    for j in range(self.random.randint(1, 3))]}

    def many_with_one_root(self):
        ask = {"deviceClassName": self.random.choice(["gpu", "nic"]), "count": self.random.randint(3, 4)}
        return {"devices": {"requests": [{"name": "r0", "exactly": ask}], "constraints": [{"matchAttribute": ROOT}]}}

    def claim(self):
        if self.chance(self.more("lists", 0.7, 0)):
            return self.many_with_one_root()
        requests = [self.request(i) for i in range(self.random.choice([1, 1, 2, 2, 3, 4]))]
        names = [each["name"] for each in requests]
        names += [f"{each['name']}/{sub['name']}" for each in requests for sub in each.get("firstAvailable", [])]
        constraints = []
        for _ in range(self.random.choice([0, 0, 0, 1, 1, 2])):
            constraint = {self.random.choice(["matchAttribute", "matchAttribute", "distinctAttribute"]):
                          self.random.choice([ROOT, "gpu.example.com/numa", "nic.example.com/numa"])}
            if self.chance(0.7):
                constraint["requests"] = self.random.sample(names, self.random.randint(1, len(names)))
            constraints.append(constraint)
        return {"devices": {"requests": requests, "constraints": constraints}}

    def held(self, device, spec, number):
        result = {"request": "r", "driver": spec["driver"], "pool": spec["pool"]["name"], "device": device["name"]}
        if device.get("allowMultipleAllocations"):
            result["shareID"] = f"00000000-0000-0000-0000-{number:012}"
            if device.get("capacity"):
                result["consumedCapacity"] = {"memory": self.random.choice(["1Gi", "4Gi", "8Gi"])}
                if "share" in device["capacity"]:
                    result["consumedCapacity"]["share"] = self.random.choice(["500m", "1"])
        elif self.chance(0.15):
            result["adminAccess"] = True
        elif number % 7 == 3 and device.get("capacity"):  # a share of a device that was shared when it was given
            result["shareID"] = f"00000000-0000-0000-0000-{number:012}"
            result["consumedCapacity"] = {"memory": "4Gi"}
        return result

    def allocated(self):
        results = [self.held(device, each["spec"], n) for n, each in enumerate(self.slices)
                   for device in each["spec"].get("devices", [])
                   if self.chance(self.more("all", 0.25, 0.12))]
        return [{"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": f"held-{i}"},
                 "spec": {}, "status": {"allocation": {"devices": {"results": [result]}}}}
                for i, result in enumerate(results)]


def questions(seed, count):
    for number in range(count):
        cluster = Cluster(random.Random(f"{seed}-{number}"))
        yield {"slices": cluster.slices, "classes": CLASSES, "nodes": cluster.nodes, "claim": cluster.claim(),
               "allocated": cluster.allocated(), "workers": cluster.random.randint(1, 4), "lists": cluster.lists}
