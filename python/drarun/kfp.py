# SPDX-License-Identifier: Apache-2.0
"""Jobs as steps of Kubeflow Pipelines (the SDK kfp, version 2).

    from kfp import dsl
    from drarun.kfp import drarun_check, drarun_job

    @dsl.pipeline
    def accept(minimum: float = 100.0):
        measured = drarun_job(job=TEXT, name=f"accept-{dsl.PIPELINE_JOB_ID_PLACEHOLDER}")
        measured.set_caching_options(False)
        drarun_check(results=measured.outputs["output"], min_busbw=minimum)

The steps run in an image that has this package and kfp: IMAGE, or that of components(base_image=...). Their pods'
service account may make jobs: `drarun install --user-role` prints its Role."""
# No `from __future__ import annotations`: kfp reads the annotations themselves.
import os
from typing import Any, Dict, Optional

try:
    from kfp import dsl
except ImportError as error:
    raise ImportError("drarun.kfp needs Kubeflow's SDK: pip install 'kfp>=2,<3'") from error

from ._library import version

IMAGE = os.environ.get("DRARUN_KFP_IMAGE", f"ghcr.io/drarun/drarun-python:{version}")
"""Of the steps: Python, kfp, this package. Nobody publishes an image of that name yet: build one (examples/kfp/README.md)
and name it, in DRARUN_KFP_IMAGE when this is imported or as components(base_image=...)."""


def drarun_job(
    status: dsl.Output[dsl.Artifact],
    metrics: dsl.Output[dsl.Metrics],
    report: dsl.Output[dsl.HTML],
    summary: dsl.Output[dsl.Markdown],
    output: dsl.Output[dsl.Artifact],
    job: str = "",
    spec: Dict[str, Any] = {},  # noqa: B006  # kfp copies it into the component
    document: dsl.Input[dsl.Artifact] = None,
    name: str = "",
    namespace: str = "",
    image: str = "",
    existing: str = "continue",
    timeout: float = 0.0,
    fail: bool = True,
) -> int:
    """Runs a drarun job to its end. Cancelling the step cancels the job; a repeated step goes on with it.

    Args:
        job: The job spec as a text, YAML or JSON; or one of the next two.
        spec: The same as a dict.
        document: The same as an artifact of another step.
        name: In place of the spec's. What a repeated step finds its job by: give each run of the pipeline its own.
        namespace: Empty: the spec's, else that of the step's pod.
        image: Of agent and launcher; empty: DRARUN_IMAGE of the step's environment, else the package's version's.
        existing: What to do with a job of that name: continue, replace or refuse (drarun.step.run).
        timeout: Seconds after which the job is cancelled and the step fails; 0: none.
        fail: Whether a job that fails makes the step fail. Else its status is an output like the others, and the
            artifacts are kept, which Kubeflow does for steps alone that succeed.

    Returns:
        The job's exit status. Artifacts: status, the status document (JSON); metrics, with busbw (GB/s, on average over
        the sizes) where rank 0 wrote results of nccl-tests or drarun-bench; report, a page; summary, the same in short;
        output, what rank 0 wrote.
    """
    from drarun._kfp_steps import run_job
    return run_job(job=job, spec=spec, document=document, name=name, namespace=namespace, image=image,
                   existing=existing, timeout=timeout, fail=fail, status=status, metrics=metrics, report=report,
                   summary=summary, output=output)


def drarun_check(
    verdict: dsl.Output[dsl.Artifact],
    results: dsl.Input[dsl.Artifact],
    min_busbw: float = 0.0,
    min_best_busbw: float = 0.0,
    min_percent: float = 0.0,
    require_rdma: bool = False,
) -> float:
    """Fails when a benchmark measured less than is demanded, or its data was wrong.

    Args:
        results: The output of drarun_job.
        min_busbw: GB/s on average over the sizes; 0: none is demanded, as in the next two.
        min_best_busbw: GB/s of the best size.
        min_percent: Of the limit, of the best size.
        require_rdma: It must be proven, between hosts.

    Returns:
        The average bus bandwidth, GB/s. Artifacts: verdict, as drarun bench judge --output json has it.
    """
    from drarun._kfp_steps import check_results
    return check_results(results=results, min_busbw=min_busbw, min_best_busbw=min_best_busbw, min_percent=min_percent,
                         require_rdma=require_rdma, verdict=verdict)


_FUNCTIONS = (drarun_job, drarun_check)


def components(*, base_image: str = IMAGE, packages_to_install: Optional[list[str]] = None) -> tuple[Any, Any]:
    """drarun_job and drarun_check for other pods than the usual ones.

    base_image: with Python; this package and kfp, unless they are installed when a step begins.
    packages_to_install: what pip installs then; None: nothing, also no kfp."""
    made = []
    for function in _FUNCTIONS:
        component = dsl.component(base_image=base_image, packages_to_install=packages_to_install or [],
                                  install_kfp_package=bool(packages_to_install))(function)
        container = component.component_spec.implementation.container
        container.command = [_without_shell(each) for each in container.command]
        made.append(component)
    return made[0], made[1]


def _without_shell(text: str) -> str:
    """The shells that start a step give place to it, the one that installs packages too: a signal to a shell would not
    reach the step, and with a shell that it ends the container ends, before the job is cancelled."""
    text = text.replace("_KFP_RUNTIME=true python3 -m", "export _KFP_RUNTIME=true; exec python3 -m")
    return text.replace('&& "$0" "$@"', '&& exec "$0" "$@"')


drarun_job, drarun_check = components()  # what pipelines call
