# SPDX-License-Identifier: Apache-2.0
"""tests/programs/pmix_client.c with three releases of the client library, as ranks of one, two and three agents: fixtures for tests
that import them."""
import pytest

from .build import BUILD
from .mpi import BY_NAME

PLACES = {"one": ["-n", 4], "two": ["--workers", 2, "-n", 4], "three": ["--workers", 3, "-n", 6]}


class Client:
    """name: a program of the build. library: whose libpmix it runs with, when not its own."""

    def __init__(self, name, version, library=None):
        self.name, self.version, self.library = name, version, library

    def command(self):
        program = BUILD / "tests" / "programs" / self.name
        if not program.exists():
            pytest.skip("no libpmix-dev when this was built; run scripts/setup --test")
        if not self.library:
            return [program]
        path = BY_NAME[self.library].home() / "lib" / "openmpi"
        return ["env", f"LD_LIBRARY_PATH={path}", program]


CLIENTS = [Client("pmix_client", "4."), Client("pmix_client_inside", "5.0.5"),
           Client("pmix_client", "5.0.11", library="openmpi5")]


@pytest.fixture(params=CLIENTS, ids=lambda client: f"client{client.version.rstrip('.')}")
def client(request, drarun):
    """client("modex", where="two"): the Result of that case. options: more of drarun's."""

    def run(*case, where, options=(), **how):
        return drarun(*options, *PLACES[where], *request.param.command(), *case, **{"timeout": 30, **how})

    run.version = request.param.version
    return run


@pytest.fixture(params=PLACES)
def where(request):
    return request.param
