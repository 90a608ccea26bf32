# SPDX-License-Identifier: Apache-2.0
"""A benchmark with a threshold as a pipeline: pipeline.py FILE.yaml compiles it."""
import sys
from pathlib import Path

import yaml
from drarun.kfp import drarun_check, drarun_job
from kfp import compiler, dsl

JOB = yaml.safe_load(Path(__file__).with_name("job.yaml").read_text())  # kfp cannot write a default of several lines


@dsl.pipeline(name="accept-nodes", description="Fails when all_reduce does not reach a bus bandwidth.")
def accept_nodes(job: dict = JOB, minimum: float = 300.0):
    """job: a drarun job whose ranks are drarun-bench or nccl-tests. minimum: GB/s on average over its sizes."""
    measured = drarun_job(spec=job, name=f"accept-{dsl.PIPELINE_JOB_ID_PLACEHOLDER}")
    measured.set_caching_options(False)  # machines change
    measured.set_retry(num_retries=2)
    drarun_check(results=measured.outputs["output"], min_busbw=minimum)


if __name__ == "__main__":
    compiler.Compiler().compile(accept_nodes, sys.argv[1])
