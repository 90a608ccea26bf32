# SPDX-License-Identifier: Apache-2.0
"""Devices as ResourceSlices have them, on which expressions are tried: (driver, device)."""


def attributes(**values):
    """By the type of the value, as the API has them."""
    kinds = {bool: "bool", int: "int", str: "string"}
    result = {}
    for name, value in values.items():
        if isinstance(value, dict):
            result[name] = value
        elif isinstance(value, list):
            result[name] = {kinds[type(value[0])] + "s": value}
        else:
            result[name] = {kinds[type(value)]: value}
    return result


def capacity(**values):
    return {name: {"value": value} for name, value in values.items()}


GPU = {
    "name": "gpu-3",
    "attributes": {
        **attributes(uuid="GPU-18db0e85-99e9-c746-8531-ffeb86328b39", index=3, numaNode=1, healthy=True,
                     productName="NVIDIA B200", architecture="Blackwell", type="gpu",
                     cudaComputeCapability={"version": "10.0.0"}, driverVersion={"version": "570.86.15"},
                     partitions=["a", "b", "c"], lanes=[1, 2, 4, 8]),
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:8c"},
        "resource.kubernetes.io/pciBusID": {"string": "0000:8f:00.0"},
    },
    "capacity": capacity(memory="183359Mi", cores="148", half="500m", large="12E", fraction="1.5Ki"),
}
NIC = {
    "name": "gpu2rdma0",
    "allowMultipleAllocations": True,
    "attributes": {
        "dra.net/rdma": {"bool": True}, "dra.net/ifName": {"string": "gpu2rdma0"}, "dra.net/mtu": {"int": 8896},
        "dra.net/virtual": {"bool": False}, "dra.net/ipv4": {"string": "192.168.3.2"}, "dra.net/numaNode": {"int": -1},
        "dra.net/kernel": {"version": "6.6.1-rc.2+gke"}, "resource.kubernetes.io/pcieRoot": {"string": "pci0000:93"},
        "index": {"int": 0}, "healthy": {"bool": False},
    },
    "capacity": {"dra.net/bandwidth": {"value": "400G"}, "memory": {"value": "0"}},
}
ODD = {
    "name": "odd",
    "attributes": {
        **attributes(uuid="", index=-9223372036854775808, productName="Größe ✓ 𝄞", architecture="a,b,,c", type=" \tx\n",
                     healthy=True, lanes=[0], partitions=["ß"]),
        "dra.net/ifName": {"int": 7}, "dra.net/rdma": {"string": "true"}, "dra.net/mtu": {"bool": True},
        "dra.net/kernel": {"string": "6.6.1"}, "cudaComputeCapability": {"version": "0.0.0-0"},
    },
    "capacity": {"memory": {"value": "-5"}, "cores": {"value": "1e3"}, "half": {"value": "0.0000000001"},
                 "large": {"value": "99999999999999999999"}, "dra.net/bandwidth": {"value": "1.000m"}},
}
EMPTY = {"name": "none"}

DEVICES = [("gpu.nvidia.com", GPU), ("dra.net", NIC), ("gpu.nvidia.com", ODD), ("gpu.nvidia.com", EMPTY)]
