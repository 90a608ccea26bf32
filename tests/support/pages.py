# SPDX-License-Identifier: Apache-2.0
"""The pages for users: their blocks, the commands in them, and which of these no test runs as they stand there."""
import re
from collections import namedtuple

from .build import SOURCE, cached

FOLDERS = ("docs", "examples", "deploy", "python")  # whose pages, and those of the root, are read by users
# What these have in blocks was typed once, or is the synopsis of a verb; test_gke.py reads its page itself, those of Google's commands too.
WITHOUT_COMMANDS = ("docs/design/", "docs/measured/", "docs/verbs.md", "docs/gke.md")

# text: without its comment; shown: the lines of its output on the page
Command = namedtuple("Command", "page text shown")

PROGRAMS = ("cd", "cmake", "ctest", "ctr", "drarun", "drarun-plugin", "exit", "export", "for", "gh", "git", "gpg", "helm", "jupyter", "kind", "kubectl", "make", "mpicc",
            "pip", "pps", "pre-commit", "python", "python3", "ray", "skopeo", "srun", "ssh", "sudo", "tar", "umask")
TYPED = re.compile(rf"\(?(\w+=\S+ )*((\./|scripts/|build/)\S+|{'|'.join(map(re.escape, PROGRAMS))})(\s|$)")
YAML = re.compile(r"[\w-]+:( |$)")
# How other blocks begin that are not to be typed into a shell: a drawing, a message, C, Python, the file of an image.
NOT_TYPED = {
    "README.md": ["drarun                    reads the command"],
    "examples/kfp/README.md": ["FROM debian"],
    "examples/nccl-id/README.md": ["ncclUniqueId id;"],
    "docs/stable.md": ["it speaks protocol version"],
    "python/README.md": ["import drarun", "print(drarun.bench_verdicts", "ray.init("],
}

CLONES = dict.fromkeys(("git clone https://github.com/drarun/drarun", "cd drarun"), "the source under test is there")
INSTALLS = "installs packages, and builds beside the source; the build under test is there"
MINUTES = "takes minutes; "
ROLE = "test_doctor.py::test_role_of_an_older_version, in a namespace of its own"
# Every command of a page that no test runs as it stands there: why, or which test does the same in another way.
LEFT_OUT = {
    "README.md": {
        **CLONES,
        "scripts/demo": INSTALLS,
        "scripts/test": "runs this test",
        "kind load image-archive drarun.tar": "needs kind and Docker; an import into containerd is run in its place, on each node",
    },
    "CHANGELOG.md": {
        "drarun -n 4 sh -c 'echo rank $RANK of $WORLD_SIZE'": "test_release.py::test_tarball_by_the_page has it, of docs/install.md",
        "drarun init mpi > job.yaml": "test_init.py::test_kinds",
        "drarun run job.yaml --namespace train": "needs a cluster; test_cluster_tutorial.py::test_the_page, with another job",
    },
    "CONTRIBUTING.md": {
        "scripts/test": "runs this test",
        "scripts/test --for PATH...": "runs tests; test_tools.py::test_selected has its choice",
        "scripts/test --only NAME...": "runs tests",
        "scripts/test --all": "runs this test",
        "ctest --test-dir build -L unit": "runs tests",
        "scripts/coverage -L unit": MINUTES + "test_tools.py::test_coverage_adds_up has its sums",
        "scripts/mutate 20 jobs --unit": MINUTES + "test_tools.py::test_mutants_change_code_and_nothing_else has its defects",
        "scripts/fuzz regex 10m": MINUTES + "the samples that it has found are unit tests",
        "scripts/docs": "test_docs.py::test_site, into a folder of its own",
        "scripts/site-pictures FOLDER": "test_docs.py::test_pages_in_a_browser, of a site of its own",
        "scripts/release VERSION": "test_release.py::test_two_runs_give_the_same_bytes, of programs that are built",
        "scripts/code-order": MINUTES + "test_static.py and test_plugin_slices.py have what its list does",
        "scripts/format": "changes the source; scripts/lint checks the same in each run of the tests",
        "scripts/tidy [FILE...]": MINUTES + "test_tidy.py::test_a_finding_fails_each_time, on files of its own",
        "scripts/check-commits": "needs a branch; test_tools.py::test_range_is_that_of_the_branch, in a repository of its own",
        "pre-commit install": "changes the clone; test_tools.py::test_hooks_call_scripts_of_the_tree",
    },
    "deploy/chart/README.md": {"drarun install -n NAMESPACE | kubectl apply --server-side -f -": ROLE},
    "docs/benchmarks.md": {
        "drarun bench all_reduce --workers 2 --gpus 8 --nics 8 --image nvcr.io/nvidia/pytorch:25.10-py3":
            "needs GPUs and RDMA NICs; test_cluster_mpi.py::test_bench_over_claimed_nics, with what the nodes of tests have",
    },
    "docs/clusters.md": {
        **dict.fromkeys(("scripts/fetch-pmix arm64", "scripts/fetch-curl arm64", "cmake --preset arm64", "cmake --build build-arm64"),
                        MINUTES + "test_static.py::test_arm64 builds four programs so"),
        **dict.fromkeys(("kubectl create secret docker-registry registry -n train --docker-server=REGISTRY --docker-username=USER --docker-password=PASSWORD",
                         "drarun install -n train --image-pull-secret registry | kubectl apply --server-side -f -",
                         "export DRARUN_IMAGE=REGISTRY/drarun:1"),
                        "needs a registry; test_render.py::test_secrets_of_the_account has what is printed"),
        "scripts/image localhost/drarun:1 drarun.tar --also build-arm64": "test_static.py::test_one_image_for_both_architectures, into a folder of its own",
    },
    "docs/debuggers.md": {
        "drarun -n 4 gdb -batch -return-child-result -ex run -ex 'thread apply all bt' --args ./a.out": "test_debuggers.py::test_gdb_around_each_rank, of programs of the tests",
        **dict.fromkeys(("drarun exec JOB 3 -- sh -c 'grep -lsz \"^PMIX_RANK=3$\" /proc/[0-9]*/environ'", "drarun exec -it JOB 3 -- gdb -p PID"),
                        "need gdb in a pod; test_debuggers.py::test_processes_of_a_rank, on this machine"),
        "drarun --workers 2 -n 4 ./a.out &": "begins the job of test_pmix_tools.py::test_pps",
        "pps": "would find other jobs of this user; test_pmix_tools.py::test_pps names one",
        "PMIX_SYSTEM_TMPDIR=/tmp/drarun-JOB.0.0 pps": "test_pmix_tools.py::test_pps, with the name of its job",
    },
    "docs/developing.md": {
        "scripts/demo": INSTALLS,
        "scripts/setup --test": "installs packages",
        "cmake --build build": "has made the build under test",
        "build/tests/spec_test": "is a test itself",
        "cd tests": "goes with the next one",
        "/usr/bin/python3 -B -m pytest -q test_plan.py -k capacity": "is a test itself",
        "scripts/test --for jobs/spec/spec.c": "runs tests; test_tools.py::test_selected has its choice",
        "scripts/tidy jobs/spec/spec.c": MINUTES + "test_tidy.py::test_a_finding_fails_each_time, on files of its own",
        "scripts/lint": "is a part of each run of the tests",
        "scripts/check-commits": "needs a branch; test_tools.py::test_range_is_that_of_the_branch, in a repository of its own",
    },
    "docs/first-job.md": {
        "scripts/demo": INSTALLS,
        "kind load image-archive drarun.tar": "needs kind and Docker; the next one is run, on each node",
        "skopeo copy oci-archive:drarun.tar docker://REGISTRY/drarun:1": "needs a registry",
        "helm install drarun deploy/chart -n drarun-system --create-namespace --set-string image.repository=localhost/drarun,image.tag=1":
            "makes again what the commands before it have made; test_chart.py::test_life_of_a_release installs the chart",
    },
    "deploy/README.md": dict.fromkeys((
        "drarun install --crd | kubectl apply --server-side -f -", "drarun install -n NAMESPACE --controller-role | kubectl apply --server-side -f -",
        "sed 's/namespace: drarun-controller/namespace: NAMESPACE/; s/--all-namespaces/--namespace=NAMESPACE/' deploy/controller.yaml "
        "| kubectl apply -l app.kubernetes.io/name=drarun-controller -f -"), "test_deploy.py::test_controller_of_one_namespace, in a namespace of its own"),
    "docs/install.md": {
        "gpg --keyserver hkps://keys.openpgp.org --recv-keys FINGERPRINT": "loads the maintainers' key; test_release.py::test_signature has one of its own",
        **dict.fromkeys(("sudo apt install ./drarun_$VERSION-1_amd64.deb", "sudo apt install ./drarun-bench_$VERSION-1_amd64.deb",
                         "sudo apt install ./libdrarun0_$VERSION-1_amd64.deb ./libdrarun-dev_$VERSION-1_amd64.deb",
                         "sudo apt purge drarun drarun-bench libdrarun0 libdrarun-dev"), "test_release.py::test_packages_in_another_root, with dpkg"),
        **dict.fromkeys(("pip install drarun", "drarun -n 4 python app.py", "pip uninstall drarun"),
                        "downloads a release; test_release.py::test_wheel_in_another_root, from a file"),
        "drarun install -n NAMESPACE | kubectl apply --server-side -f -": ROLE,
        **dict.fromkeys(("drarun install -n NAMESPACE | kubectl delete -f -", "drarun install -n NAMESPACE --cluster-role | kubectl delete -f -"),
                        "test_doctor.py::test_what_install_printed_is_removed"),
        "drarun list --all-namespaces": "test_look.py::test_list_in_each_format",
        "drarun cancel --all -n NAMESPACE": "test_look.py::test_cancel_of_several",
        "kubectl delete crd drajobs.drarun.dev": "test_chart.py::test_commands_of_the_pages, after each round",
        "drarun doctor -n NAMESPACE": "test_doctor.py::test_cluster_with_devices",
        **dict.fromkeys(("skopeo copy --all oci-archive:drarun-$VERSION-image.tar docker://REGISTRY/drarun:$VERSION", "export DRARUN_IMAGE=REGISTRY/drarun:$VERSION"),
                        "needs a registry; test_release.py::test_image has what is in the archive"),
        **dict.fromkeys(("helm install drarun oci://ghcr.io/drarun/charts/drarun --version $VERSION -n drarun-system --create-namespace",
                         "helm upgrade drarun oci://ghcr.io/drarun/charts/drarun --version $VERSION -n drarun-system --reset-then-reuse-values",
                         "helm uninstall drarun -n drarun-system"), "downloads a release; test_chart.py::test_commands_of_the_pages, with the chart of the source"),
        **dict.fromkeys(("cmake --install build --prefix ~/.local", "cd build", "cpack", "cmake --build build --target uninstall"), "test_install.py, of the build under test"),
        "DRARUN_BUILD=$PWD/build pip install ./python": "writes beside the source; test_python.py::test_wheel_has_the_library_and_its_types, from a copy",
        "scripts/image localhost/drarun:1 drarun.tar": "test_install.py::test_image",
    },
    "docs/job-after-job.md": {
        "drarun alloc job.yaml": "has a shell in a terminal; test_cluster_alloc.py::test_jobs_on_kept_pods has a script in its place",
        "drarun -n 16 /programs/allreduce": "needs an allocation of 16 GPUs; test_cluster_alloc.py::test_the_example",
        "exit": "ends the shell of the allocation",
    },
    "docs/machines.md": {
        **dict.fromkeys((
            "(umask 077; openssl rand -hex 32 > drarun.key)", "scp -p drarun.key node0:", "scp -p drarun.key node1:",
            *(f"ssh node{i} 'nohup drarun-worker --listen :7173 --key-file drarun.key --once > agent.log 2>&1 &'" for i in range(2)),
            "drarun --agents node0:7173,node1:7173 --key-file drarun.key -n 4 -l sh -c 'echo rank $RANK on $(hostname)'"),
            "needs two machines; test_agents.py::test_page_of_several_machines, with an ssh of its own"),
        **dict.fromkeys((
            "srun --nodes=$SLURM_JOB_NUM_NODES --ntasks=$SLURM_JOB_NUM_NODES --ntasks-per-node=1 --cpu-bind=none --overlap drarun-worker --listen :7173 --key-file drarun.key &",
            "agents=$(scontrol show hostnames | sed 's/$/:7173/' | paste -sd,)",
            "drarun --agents $agents --key-file drarun.key --wd $PWD -n 16 ./a.out", "kill %1"), "needs an allocation of Slurm; the page says that it was not run"),
        **dict.fromkeys((
            "agents=$(sort -u $PBS_NODEFILE | sed 's/$/:7173/' | paste -sd,)",
            'for host in $(sort -u $PBS_NODEFILE); do ssh $host "cd $PWD; nohup drarun-worker --listen :7173 --key-file drarun.key --once > agent.$host.log 2>&1 &"; done',
            "drarun --agents $agents --key-file drarun.key -n 16 ./a.out"), "needs an allocation of PBS; the page says that it was not run"),
    },
    "docs/node-plugin.md": {
        "drarun-plugin discover": "test_plugin_discover.py::test_live, with devices",
        "drarun doctor --node": "test_doctor.py::test_text_of_this_machine",
        "sed 's#ghcr.io/drarun/drarun[0-9.:]*#REGISTRY/drarun:TAG#' deploy/plugin.yaml | kubectl apply -f -": "test_cluster_plugin.py::test_manifest, with the image of the build",
        "kubectl apply -f deploy/admission.yaml": "test_deploy.py::test_claims_that_no_container_lists",
        "drarun doctor": "test_doctor.py::test_cluster_with_devices",
        "kubectl get resourceslices": "reads what test_cluster_plugin.py::test_manifest relies on",
        "helm upgrade drarun deploy/chart -n drarun-system --reset-then-reuse-values --set plugin.nvidia.runtimeClassName=nvidia":
            "needs that RuntimeClass; test_chart.py::test_runtime_class has what it makes",
        "kubectl rollout restart -n drarun-system ds/drarun-plugin": "test_cluster_plugin.py::test_rolling_update, without a DaemonSet",
    },
    "docs/one-machine.md": {**CLONES, "scripts/demo": INSTALLS},
    "docs/stable.md": {"drarun install -n NAMESPACE | kubectl apply --server-side -f -": ROLE},
    "docs/releasing.md": {
        f"export VERSION={cached('CMAKE_PROJECT_VERSION')}": "for the commands below it",
        "scripts/release $VERSION --build build --out /tmp/rehearsal": "test_release.py::test_two_runs_give_the_same_bytes, into a folder of its own",
        "scripts/lib/version.py --write": "changes the source; test_tools.py::test_new_version_goes_everywhere, on a copy",
        "scripts/verb-pages": "changes the source; test_man.py compares the pages with the programs",
        "DRARUN_GOLDEN=write build/tests/verbs_test": "changes the source",
        "scripts/release $VERSION --sign KEYID": "test_release.py::test_signature, with a key of its own",
        **dict.fromkeys(("gh auth login", "skopeo login ghcr.io", "helm registry login ghcr.io"), "asks for a password"),
        **dict.fromkeys(('git tag -s v$VERSION -m "drarun $VERSION"', "git push origin v$VERSION", "gh run list --workflow release --branch v$VERSION",
                         "gh run download RUN --name release --dir /tmp/of-the-workflow", "diff build-dist-$VERSION/SHA256SUMS /tmp/of-the-workflow/SHA256SUMS",
                         "skopeo copy --all --preserve-digests oci-archive:build-dist-$VERSION/drarun-$VERSION-image.tar docker://ghcr.io/drarun/drarun:$VERSION",
                         "helm push build-dist-$VERSION/drarun-$VERSION.tgz oci://ghcr.io/drarun/charts", "twine upload build-dist-$VERSION/*.whl",
                         "gh release create v$VERSION --verify-tag --notes-file build-dist-$VERSION/drarun-$VERSION-notes.md build-dist-$VERSION/*"), "publishes a release"),
    },
    "docs/tasks.md": {
        "drarun status JOB": "test_cluster_waiting.py::test_selector_that_rules_out_all",
        "drarun describe JOB": "test_look.py::test_events_of_a_job_and_its_parts",
        "drarun plan job.yaml --live": "test_plan_live.py::test_no_room_is_said",
        "drarun doctor": "test_doctor.py::test_cluster_with_devices",
        "drarun status -v JOB": "test_cluster_alloc.py::test_check_of_nics",
        "drarun bench all_reduce --pairs --workers 2 --gpus 8 --nics 8 --image IMAGE": "needs GPUs and RDMA NICs; test_bench.py has the pairs of ranks here",
        "drarun bench fabric --reach --job job.yaml": "needs RDMA NICs; test_nics_guest.py, on agents",
        "drarun accept --nodes LABEL=VALUE job.yaml": "test_cluster_accept.py::test_which_nodes",
        "drarun plan job.yaml --live --explain": "test_plan.py::test_explain, of files",
        "drarun exec JOB 3 -- env": "test_cluster_exec.py::test_exec",
        "drarun logs JOB | drarun bench judge -": "needs NCCL; test_bench_judge.py::test_log_of_tcp and its neighbours, of logs that others published",
    },
    "examples/alloc/README.md": {
        "drarun alloc examples/alloc/job.yaml": "has a shell in a terminal; the next one has a script in its place",
        "drarun alloc examples/alloc/job.yaml -- examples/alloc/session.sh": "needs GPUs and RDMA NICs; test_cluster_alloc.py::test_the_example, with others",
    },
    "examples/embed-c/README.md": {
        "make": "needs an installed libdrarun; test_libdrarun.py::test_example_of_an_embedder installs it",
        "./embed": "says what this machine has; test_libdrarun.py::test_example_of_an_embedder gives it a machine",
        "./embed ../jobs/half-nodes-aligned.yaml ../clusters/a4-two-nodes.json": "test_libdrarun.py::test_example_of_an_embedder",
        "./run job.yaml": "needs a cluster; test_cluster_jobs.py::test_example_of_an_embedder",
        "./ranks 4 hostname": "test_libdrarun.py::test_example_with_ranks_on_this_machine",
    },
    "examples/kfp/README.md": {
        "python3 pipeline.py accept-nodes.yaml": "needs kfp; test_kfp.py::test_compiled_components",
        "python3 - <<EOF": "needs kfp and GPUs; test_cluster_kfp.py::test_the_example_with_its_threshold, with a job for its nodes",
    },
    "examples/mpi4py/README.md": {"sudo apt install python3-mpi4py": "installs packages"},
    "examples/mpmd/README.md": {
        "drarun run examples/mpmd/job.yaml": "needs an image with both programs; test_cluster_roles.py::test_success_of_a_role_is_the_jobs, with other programs",
    },
    "examples/notebook/README.md": {"jupyter lab plan.ipynb": "opens a browser; test_notebook.py::test_every_cell"},
    "examples/ray/README.md": {
        "drarun render --as raycluster examples/ray/cluster.yaml | kubectl apply -f -": "needs KubeRay; test_dry_run.py::test_server_takes_what_is_for_others, by its definition alone",
        "ray start --head": "needs Ray, which test_ray.py starts with two nodes",
        "python examples/ray/all_reduce.py": "needs Ray; test_ray.py::test_all_reduce",
        "python examples/ray/all_reduce.py --address auto --actors 16 --gpus 1": "needs 16 GPUs",
    },
    "examples/ray-train/README.md": {
        "ray start --head": "needs Ray, which test_ray.py starts with two nodes",
        "python examples/ray-train/train.py --workers 2": "needs Ray; test_ray.py::test_training",
    },
    "examples/statefulset/README.md": {
        "kubectl create secret generic train-key --from-literal=key=$(openssl rand -hex 32)": "test_cluster_mpi.py::test_a_statefulset_as_a_job makes the object",
        "kubectl apply -f examples/statefulset/statefulset.yaml": "test_cluster_mpi.py::test_a_statefulset_as_a_job, with the name of its image",
        "kubectl logs -f train-0": "test_cluster_mpi.py::test_a_statefulset_as_a_job",
    },
    "python/README.md": {
        **dict.fromkeys(("pip install drarun", "drarun -n 4 python app.py"), "downloads a release; test_release.py::test_wheel_in_another_root, from a file"),
        "drarun init torchrun > job.yaml": "test_init.py::test_kinds",
        "drarun run job.yaml --namespace train": "needs a cluster; test_cluster_tutorial.py::test_the_page, with another job",
        "DRARUN_BUILD=$PWD/build pip install ./python": "writes beside the source; test_python.py::test_wheel_has_the_library_and_its_types, from a copy",
    },
}


def pages():
    found = [*SOURCE.glob("*.md"), *(path for folder in FOLDERS for path in (SOURCE / folder).rglob("*.md"))]
    return sorted(str(path.relative_to(SOURCE)) for path in found)


def blocks(page, title=None):
    """[lines] of each indented block, without what all its lines are indented by. title: of that section alone."""
    text = (SOURCE / page).read_text()
    if title:
        text, = re.findall(rf"^#+ {re.escape(title)}(\n.*?)(?=^#|\Z)", text, re.M | re.S)
    text = re.sub(r"^```\w+\n.*?^```\n", "", text, flags=re.M | re.S)  # these have a language, and none is the shell's
    assert "```" not in text, f"{page}: a block between fences without a language"
    found = [each.splitlines() for each in re.findall(r"(?<=\n\n)(?: {4}.*\n)+", f"\n{text}")]
    return [[line[min(len(each) - len(each.lstrip()) for each in lines):] for line in lines] for lines in found]


def uncommented(line):
    """[the command, its parts if it has several, and the one that its comment adds]"""
    command, _, comment = re.sub(r"\s+# ", "\0", line, count=1).partition("\0")
    also = re.search(r"(?:^|; | )and: (\S.*)", f" {comment}")
    return [*(each.strip() for each in command.split(" && ")), *([also[1].strip()] if also else [])]


def of_block(page, lines):
    """The commands of a block that is typed; None of another one, which NOT_TYPED knows or which is YAML."""
    if lines[0].startswith("$ "):
        found = []
        for line in lines:
            if line.startswith("$ "):
                found += [(text, []) for text in uncommented(line[2:])]
            else:
                found[-1][1].append(line)
        return [Command(page, text, shown) for text, shown in found]
    if any(lines[0].lstrip().startswith(each) for each in NOT_TYPED.get(page, ())) or YAML.match(lines[0]):
        return None
    assert TYPED.match(lines[0]), f"{page}: {lines[0]!r} begins a block: is it typed? Then PROGRAMS of {__name__} names its program, else NOT_TYPED the block"
    found = []
    for line in re.sub(r"(<<(\w+))\n.*?\n\2(?=\n|\Z)", r"\1", re.sub(r" *\\\n *", " ", "\n".join(lines)), flags=re.S).splitlines():
        found += uncommented(line)
    return [Command(page, text, []) for text in found]


def commands(page, title=None):
    return [command for lines in blocks(page, title) for command in of_block(page, lines) or ()]


def all_commands():
    return [command for page in pages() if not page.startswith(WITHOUT_COMMANDS) for command in commands(page)]
