/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/foreign/options.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/nearest.h"

/* Reasons that several options share. */
#define NO_DAEMONS                                                                                 \
    "it is about the launcher's own daemons, which drarun does not have: leave it out"
#define NO_QUEUE "drarun has no queue and reserves no nodes; the ranks start at once: leave it out"
#define NO_DEVICES                                                                                 \
    "ranks see the devices that are here, or that a cluster's job claims (drarun help bench, man " \
    "drarun): leave it out"
#define NAMES "what ranks publish is known to all jobs of the user on this machine: leave it out"
#define NO_FILES "drarun copies no files: the program must be on every machine"
#define DEBUGGER "start the debugger as the program: drarun -n 2 xterm -e gdb --args PROGRAM"
#define FAILS "a rank that fails ends the job, unless --on-rank-failure continue is given"
#define GO_ON "--on-rank-failure=continue"
#define REPORT "--report FILE and --output json tell how the job ended, -v each step"
#define MAPPING                                                                                    \
    "ranks fill a worker before the next one; --ranks-per-worker R is how many (ppr:R:node), "     \
    "--bind their CPUs (slot:PE=N: core:N)"
#define BINDING "--bind none, core, core:N, numa or a list as 0-1;2-3"
#define FILES "--output-dir DIR writes DIR/rank.N.out and .err, and > takes all of it"
#define TORCHRUN                                                                                   \
    "drarun torchrun ... starts torchrun itself with its options; drarun -n N python3 train.py "   \
    "starts N ranks with the variables that torchrun sets"
#define HOSTS "the agents are the nodes: --agents HOST:PORT,... in the order of the ranks"

const struct foreign_option foreign_options[] = {
    /* how many, where */
    {FOREIGN_MPI | FOREIGN_SRUN, "n", 1, FOREIGN_SAME, "--ranks", NULL},
    {FOREIGN_MPI, "np", 1, FOREIGN_SAME, "--ranks", NULL},
    {FOREIGN_SRUN, "ntasks", 1, FOREIGN_SAME, "--ranks", NULL},
    {FOREIGN_MPIRUN, "c", 1, FOREIGN_REFUSED, "the number of ranks is -n N", NULL},
    {FOREIGN_MPI, "ppn npernode perhost", 1, FOREIGN_SAME, "--ranks-per-worker", NULL},
    {FOREIGN_SRUN, "ntasks-per-node tasks-per-node", 1, FOREIGN_SAME, "--ranks-per-worker", NULL},
    {FOREIGN_MPIRUN, "pernode", 0, FOREIGN_SAME, "--ranks-per-worker=1", NULL},
    {FOREIGN_INTEL, "rr", 0, FOREIGN_SAME, "--ranks-per-worker=1", NULL},
    {FOREIGN_MPIRUN, "N", 1, FOREIGN_PER_HOST, "--ranks-per-worker, where there are several", NULL},
    {FOREIGN_SRUN, "N", 1, FOREIGN_CLASH,
     "-N is mpirun's, ranks of each worker; srun's nodes are --workers K or --agents", NULL},
    {FOREIGN_SRUN, "nodes", 1, FOREIGN_REFUSED,
     "--workers K starts K agents here, --agents HOST:PORT,... uses those of other machines", NULL},
    {FOREIGN_MPI, "H host hosts", 1, FOREIGN_HOSTS, "which of the --agents, or ranks here", NULL},
    {FOREIGN_HYDRA, "hostlist machine machines machinelist", 1, FOREIGN_HOSTS,
     "which of the --agents, or ranks here", NULL},
    {FOREIGN_MPI, "hostfile machinefile", 1, FOREIGN_HOSTFILE, "the same from a file", NULL},
    {FOREIGN_MPIRUN, "default-hostfile", 1, FOREIGN_HOSTFILE, "the same from a file", NULL},
    {FOREIGN_HYDRA, "f", 1, FOREIGN_HOSTFILE, "the same from a file", NULL},
    {FOREIGN_MPIRUN, "add-host add-hostfile", 1, FOREIGN_REFUSED, HOSTS, NULL},
    {FOREIGN_INTEL, "hosts-group", 1, FOREIGN_REFUSED, HOSTS, NULL},
    {FOREIGN_SRUN, "H", 0, FOREIGN_CLASH, "-H takes hosts, as mpirun's; drarun holds no job back",
     NULL},
    {FOREIGN_SRUN, "w nodelist F nodefile exclude r relative", 1, FOREIGN_REFUSED, HOSTS, NULL},
    {FOREIGN_SRUN, "x", 1, FOREIGN_CLASH,
     "-x sets a variable, as mpirun's does; leave srun's excluded nodes out of --agents", NULL},
    {FOREIGN_MPI, "nolocal skip-launch-node", 0, FOREIGN_REFUSED, HOSTS, NULL},
    {FOREIGN_MPI, "map-by", 1, FOREIGN_SO, MAPPING,
     "slot :OVERSUBSCRIBE :oversubscribe slot:OVERSUBSCRIBE slot:oversubscribe :PE=N slot:PE=N"},
    {FOREIGN_MPIRUN, "rank-by", 1, FOREIGN_SO, MAPPING, "slot"},
    {FOREIGN_SRUN, "m distribution", 1, FOREIGN_SO, MAPPING, "block block:block"},
    {FOREIGN_OPENMPI4, "byslot", 0, FOREIGN_SO, MAPPING, NULL},
    {FOREIGN_OPENMPI4, "bynode bycore", 0, FOREIGN_REFUSED, MAPPING, NULL},
    {FOREIGN_MPIRUN, "npersocket ppr max-vm-size", 1, FOREIGN_REFUSED, MAPPING, NULL},
    {FOREIGN_MPI, "rankfile rf", 1, FOREIGN_REFUSED, MAPPING, NULL},
    {FOREIGN_HYDRA, "order-nodes grr rr-list rankmap", 1, FOREIGN_REFUSED, MAPPING, NULL},
    {FOREIGN_SRUN,
     "ntasks-per-core ntasks-per-socket B extra-node-info sockets-per-node "
     "cores-per-socket threads-per-core S core-spec",
     1, FOREIGN_REFUSED, MAPPING, NULL},
    {FOREIGN_MPIRUN | FOREIGN_SRUN, "oversubscribe", 0, FOREIGN_SAME, "--oversubscribe", NULL},
    {FOREIGN_SRUN, "O overcommit", 0, FOREIGN_SAME, "--oversubscribe", NULL},
    {FOREIGN_SRUN, "overlap", 0, FOREIGN_SO, "the jobs of an allocation run one after the other",
     NULL},
    {FOREIGN_OPENMPI4, "nooversubscribe", 0, FOREIGN_REFUSED,
     "always allowed; --ranks-per-worker R is a limit", NULL},

    /* CPUs */
    {FOREIGN_MPI, "bind-to", 1, FOREIGN_SAME, "--bind", NULL},
    {FOREIGN_OPENMPI4, "bind-to-core", 0, FOREIGN_SAME, "--bind=core", NULL},
    {FOREIGN_OPENMPI4, "bind-to-socket", 0, FOREIGN_REFUSED, BINDING, NULL},
    {FOREIGN_MPIRUN, "cpus-per-proc cpus-per-rank", 1, FOREIGN_CORES, "--bind core:X", NULL},
    {FOREIGN_MPIRUN, "cpu-set cpu-list slot-list", 1, FOREIGN_REFUSED, BINDING, NULL},
    {FOREIGN_MPIRUN, "use-hwthread-cpus", 0, FOREIGN_REFUSED, BINDING, NULL},
    {FOREIGN_MPICH, "binding membind topolib", 1, FOREIGN_REFUSED, BINDING, NULL},
    {FOREIGN_INTEL, "cpu-bind binding", 1, FOREIGN_REFUSED, BINDING, NULL},
    {FOREIGN_SRUN, "c cpus-per-task", 1, FOREIGN_REFUSED,
     "--bind core:N gives each rank N cores with all their hardware threads, which srun may count",
     NULL},
    {FOREIGN_SRUN, "cpu-bind cpu_bind mem-bind hint thread-spec accel-bind", 1, FOREIGN_REFUSED,
     BINDING, NULL},
    {FOREIGN_SRUN, "exact exclusive", 0, FOREIGN_REFUSED, BINDING, NULL},
    {FOREIGN_MPIRUN, "report-bindings", 0, FOREIGN_SAME, "--report-bindings", NULL},

    /* variables */
    {FOREIGN_MPIRUN, "x set-env", 1, FOREIGN_SAME, "--env", NULL},
    {FOREIGN_HYDRA, "env", 2, FOREIGN_VARIABLE, "", NULL},
    {FOREIGN_HYDRA, "genv", 2, FOREIGN_ALL_VARIABLE, "", NULL},
    {FOREIGN_MPIRUN, "mca", 2, FOREIGN_VARIABLE, "OMPI_MCA_", NULL},
    {FOREIGN_OPENMPI4, "gmca", 2, FOREIGN_ALL_VARIABLE, "OMPI_MCA_", NULL},
    {FOREIGN_OPENMPI5, "omca gomca", 2, FOREIGN_ALL_VARIABLE, "OMPI_MCA_", NULL},
    {FOREIGN_OPENMPI5, "pmixmca gpmixmca", 2, FOREIGN_ALL_VARIABLE, "PMIX_MCA_", NULL},
    {FOREIGN_OPENMPI5, "prtemca", 2, FOREIGN_ALL_VARIABLE, "PRTE_MCA_", NULL},
    {FOREIGN_MPIRUN, "tune am amca mca-base-env-list", 1, FOREIGN_REFUSED,
     "--mca NAME VALUE for each, or the variables OMPI_MCA_NAME", NULL},
    {FOREIGN_INTEL, "tune", 1, FOREIGN_REFUSED, "-x I_MPI_TUNING_BIN=FILE", NULL},
    {FOREIGN_HYDRA, "genvall envall", 0, FOREIGN_INHERIT, "all", NULL},
    {FOREIGN_HYDRA, "genvnone", 0, FOREIGN_INHERIT, "none", NULL},
    {FOREIGN_HYDRA, "genvlist", 1, FOREIGN_INHERIT, "list", NULL},
    {FOREIGN_HYDRA, "envnone", 0, FOREIGN_REFUSED, "-genvnone, for all programs", NULL},
    {FOREIGN_HYDRA, "envlist", 1, FOREIGN_REFUSED, "-genvlist A,B, for all programs", NULL},
    {FOREIGN_INTEL, "genvexcl envexcl genvuse envuse", 1, FOREIGN_REFUSED, "env -u NAME drarun ...",
     NULL},
    {FOREIGN_OPENMPI5, "unset-env", 1, FOREIGN_REFUSED, "env -u NAME drarun ...", NULL},
    {FOREIGN_OPENMPI5, "append-env prepend-env", 2, FOREIGN_REFUSED, "-x NAME=\"MORE:$NAME\"",
     NULL},
    {FOREIGN_SRUN, "export", 1, FOREIGN_SO,
     "ranks here have our variables, and -x NAME=VALUE sets one; those of --agents have their "
     "agent's, and what -x gives",
     "ALL"},
    {FOREIGN_MPIRUN, "wdir wd", 1, FOREIGN_SAME, "--wd", NULL},
    {FOREIGN_HYDRA, "wdir", 1, FOREIGN_SAME, "--wd", NULL},
    {FOREIGN_INTEL, "gwdir", 1, FOREIGN_SAME, "--wd", NULL},
    {FOREIGN_SRUN, "D chdir", 1, FOREIGN_SAME, "--wd", NULL},
    {FOREIGN_MPIRUN, "set-cwd-to-session-dir", 0, FOREIGN_REFUSED, "--wd DIR", NULL},
    {FOREIGN_MPI, "path gpath", 1, FOREIGN_REFUSED, "-x PATH=DIR:$PATH", NULL},
    {FOREIGN_MPIRUN, "prefix app-pmix-prefix pmix-prefix", 1, FOREIGN_REFUSED,
     "nothing of mpirun is used; -x LD_LIBRARY_PATH=DIR where a rank needs another library", NULL},
    {FOREIGN_MPIRUN, "noprefix no-app-prefix", 0, FOREIGN_SO, "nothing of mpirun is used", NULL},

    /* several programs */
    {FOREIGN_MPIRUN, "app", 1, FOREIGN_REFUSED, "write -n 1 FIRST : -n 3 SECOND", NULL},
    {FOREIGN_HYDRA, "configfile", 1, FOREIGN_REFUSED, "write -n 1 FIRST : -n 3 SECOND", NULL},
    {FOREIGN_SRUN, "multi-prog", 0, FOREIGN_REFUSED, "write -n 1 FIRST : -n 3 SECOND", NULL},
    {FOREIGN_SRUN, "het-group pack-group", 1, FOREIGN_REFUSED, "write -n 1 FIRST : -n 3 SECOND",
     NULL},

    /* output and input */
    {FOREIGN_HYDRA, "l prepend-rank", 0, FOREIGN_SAME, "--label", NULL},
    {FOREIGN_SRUN, "l label", 0, FOREIGN_SAME, "--label", NULL},
    {FOREIGN_OPENMPI4, "tag-output", 0, FOREIGN_SAME, "--label", NULL},
    {FOREIGN_HYDRA, "prepend-pattern", 1, FOREIGN_REFUSED, "--label puts the rank there", NULL},
    {FOREIGN_OPENMPI4, "timestamp-output", 0, FOREIGN_REFUSED, "drarun ... | ts (moreutils)", NULL},
    {FOREIGN_INTEL, "prepend-timestamp", 0, FOREIGN_REFUSED, "drarun ... | ts (moreutils)", NULL},
    {FOREIGN_MPIRUN, "output-filename output-directory xml-file", 1, FOREIGN_REFUSED, FILES, NULL},
    {FOREIGN_HYDRA, "outfile-pattern errfile-pattern outfile errfile", 1, FOREIGN_REFUSED, FILES,
     NULL},
    {FOREIGN_SRUN, "o", 1, FOREIGN_REFUSED, "--output json prints the report; " FILES, NULL},
    {FOREIGN_SRUN, "e error open-mode", 1, FOREIGN_REFUSED, FILES, NULL},
    {FOREIGN_OPENMPI5 | FOREIGN_SRUN, "output", 1, FOREIGN_CLASH,
     "--output is the form of the report; --label tags lines, " FILES, NULL},
    {FOREIGN_OPENMPI4, "merge-stderr-to-stdout", 0, FOREIGN_REFUSED,
     "drarun ... sh -c 'exec \"$0\" \"$@\" 2>&1' PROGRAM", NULL},
    {FOREIGN_OPENMPI4, "xml", 0, FOREIGN_REFUSED, "--frames is for programs that read us", NULL},
    {FOREIGN_OPENMPI4, "xterm", 1, FOREIGN_REFUSED, "drarun -n 2 xterm -e PROGRAM", NULL},
    {FOREIGN_INTEL, "ordered-output", 0, FOREIGN_SO, "lines stay whole", NULL},
    {FOREIGN_OPENMPI5, "stream-buffering", 1, FOREIGN_REFUSED,
     "output is passed on at once; stdbuf -oL PROGRAM changes the program's own buffers", NULL},
    {FOREIGN_SRUN, "u unbuffered", 0, FOREIGN_SO, "output is passed on at once", NULL},
    {FOREIGN_MPIRUN, "stdin", 1, FOREIGN_SAME, "--stdin", NULL},
    {FOREIGN_SRUN, "i input", 1, FOREIGN_REFUSED, "--stdin RANK, all or none, and <FILE", NULL},
    {FOREIGN_INTEL, "s", 1, FOREIGN_REFUSED, "who gets the input is --stdin RANK, all or none",
     NULL},
    {FOREIGN_SRUN, "pty", 0, FOREIGN_REFUSED, "ranks get no terminal; drarun exec -it is for pods",
     NULL},
    {FOREIGN_MPI | FOREIGN_SRUN, "v verbose", 0, FOREIGN_SAME, "--verbose", NULL},
    {FOREIGN_MPIRUN, "quiet q", 0, FOREIGN_SAME, "--quiet", NULL},
    {FOREIGN_SRUN, "Q quiet", 0, FOREIGN_SAME, "--quiet", NULL},
    {FOREIGN_SRUN, "q", 1, FOREIGN_CLASH, "-q is --quiet, as mpirun's; drarun has no queue", NULL},
    {FOREIGN_MPI | FOREIGN_SRUN, "V version", 0, FOREIGN_SAME, "--version", NULL},
    {FOREIGN_MPI | FOREIGN_SRUN, "h help", 0, FOREIGN_SAME, "--help", NULL},
    {FOREIGN_SRUN, "usage", 0, FOREIGN_REFUSED, "use --help", NULL},
    {FOREIGN_HYDRA, "info", 0, FOREIGN_REFUSED, "--version", NULL},
    {FOREIGN_MPIRUN,
     "display-map display-allocation display-topo display-devel-map "
     "display-devel-allocation display-diffable-map output-proctable",
     0, FOREIGN_REFUSED, "--report-bindings says each rank's machine and CPUs", NULL},
    {FOREIGN_OPENMPI5, "display", 1, FOREIGN_REFUSED,
     "--report-bindings says each rank's machine and CPUs", NULL},
    {FOREIGN_HYDRA, "print-rank-map prot", 0, FOREIGN_REFUSED,
     "--report-bindings says each rank's machine and CPUs", NULL},
    {FOREIGN_HYDRA, "print-all-exitcodes silent-abort", 0, FOREIGN_REFUSED, REPORT, NULL},
    {FOREIGN_MPIRUN, "report-events report-pid report-uri", 1, FOREIGN_REFUSED, REPORT, NULL},
    {FOREIGN_MPIRUN, "show-progress report-child-jobs-separately", 0, FOREIGN_REFUSED, REPORT,
     NULL},

    /* time and ends */
    {FOREIGN_MPIRUN, "timeout", 1, FOREIGN_SAME, "--timeout", NULL},
    {FOREIGN_SRUN, "t time", 1, FOREIGN_REFUSED, "--timeout 10m; bare numbers are seconds there",
     NULL},
    {FOREIGN_SRUN, "W wait", 1, FOREIGN_REFUSED,
     "drarun waits for every rank; --timeout TIME ends the job", NULL},
    {FOREIGN_OPENMPI5, "spawn-timeout", 1, FOREIGN_SAME, "--start-timeout", NULL},
    {FOREIGN_SRUN, "K kill-on-bad-exit", 0, FOREIGN_WHEN, GO_ON, "0"},
    {FOREIGN_SRUN, "K kill-on-bad-exit", 0, FOREIGN_SO, FAILS, "1"},
    {FOREIGN_SRUN, "k no-kill", 0, FOREIGN_REFUSED, "an agent that is lost ends the job; " FAILS,
     NULL},
    {FOREIGN_HYDRA, "enable-auto-cleanup", 0, FOREIGN_SO, FAILS, NULL},
    {FOREIGN_HYDRA, "disable-auto-cleanup dac", 0, FOREIGN_SAME, GO_ON, NULL},
    {FOREIGN_MPIRUN, "disable-recovery", 0, FOREIGN_SO, FAILS, NULL},
    {FOREIGN_MPIRUN, "continuous", 0, FOREIGN_SAME, GO_ON, NULL},
    {FOREIGN_MPIRUN, "enable-recovery", 0, FOREIGN_REFUSED, "no rank is started again; " FAILS,
     NULL},
    {FOREIGN_MPIRUN, "runtime-options rto rtos", 1, FOREIGN_WHEN, GO_ON,
     "abort-nonzero-exit=0 abort-nonzero-exit=false abort-nonzero-exit=no error-nonzero-status=0 "
     "error-nonzero-status=false error-nonzero-status=no continuous continuous=1 continuous=true"},
    {FOREIGN_MPIRUN, "runtime-options rto rtos", 1, FOREIGN_REFUSED, FAILS, NULL},
    {FOREIGN_MPIRUN, "max-restarts", 1, FOREIGN_REFUSED, "no rank is started again; " FAILS, NULL},
    {FOREIGN_OPENMPI5, "with-ft", 1, FOREIGN_REFUSED,
     "ranks hear of no failure of others (ULFM); " FAILS, NULL},
    {FOREIGN_MPIRUN, "get-stack-traces report-state-on-timeout", 0, FOREIGN_REFUSED,
     "--hang-after TIME names the rank that the others wait for", NULL},
    {FOREIGN_SRUN, "X disable-status quit-on-interrupt", 0, FOREIGN_SO,
     "the first ^C ends the ranks, the second one at once", NULL},
    {FOREIGN_SRUN, "signal", 1, FOREIGN_SAME, "--signal", NULL},
    {FOREIGN_SRUN, "T threads slurmd-debug msg-timeout", 1, FOREIGN_REFUSED, NO_DAEMONS, NULL},

    /* how ranks meet */
    {FOREIGN_SRUN, "mpi", 1, FOREIGN_SO,
     "ranks get PMIx and PMI-1, with --launch env neither; there is no PMI-2",
     "pmix pmix_v1 pmix_v2 pmix_v3 pmix_v4 pmix_v5"},
    {FOREIGN_MPIRUN, "personality", 1, FOREIGN_SO, "every library is served alike", "ompi"},
    {FOREIGN_MPIRUN, "allow-run-as-root", 0, FOREIGN_SO, "always allowed", NULL},
    {FOREIGN_MPIRUN,
     "debug-daemons debug-daemons-file d debug-devel leave-session-attached novm "
     "do-not-resolve use-regexp fwd-mpirun-port enable-instant-on-support",
     0, FOREIGN_REFUSED, NO_DAEMONS, NULL},
    {FOREIGN_MPIRUN, "launch-agent hnp dvm-uri cf cartofile", 1, FOREIGN_REFUSED, NO_DAEMONS, NULL},
    {FOREIGN_MPIRUN, "ompi-server", 1, FOREIGN_REFUSED, NAMES, NULL},
    {FOREIGN_HYDRA, "nameserver", 1, FOREIGN_REFUSED, NAMES, NULL},
    {FOREIGN_OPENMPI5, "dvm forward-signals keepalive singleton tmpdir test-suicide", 1,
     FOREIGN_REFUSED, NO_DAEMONS, NULL},
    {FOREIGN_OPENMPI5, "hetero-nodes set-sid system-server", 0, FOREIGN_REFUSED, NO_DAEMONS, NULL},
    {FOREIGN_OPENMPI4, "dvm", 0, FOREIGN_REFUSED, NO_DAEMONS, NULL},
    {FOREIGN_HYDRA,
     "launcher launcher-exec bootstrap bootstrap-exec bootstrap-exec-args rmk iface "
     "demux localhost usize branch-count tmpdir bindlib css ckpoint-interval "
     "ckpoint-prefix ckpoint-num ckpointlib tree-width",
     1, FOREIGN_REFUSED, NO_DAEMONS, NULL},
    {FOREIGN_HYDRA,
     "enable-x disable-x disable-hostname-propagation enable-hostname-propagation "
     "pmi-port profile prefork pmi-connect pmi-aggregate pmi-noaggregate hybrid-hosts noconf "
     "cleanup",
     0, FOREIGN_REFUSED, NO_DAEMONS, NULL},
    {FOREIGN_SRUN, "bcast compress send-libs", 0, FOREIGN_REFUSED, NO_FILES, NULL},
    {FOREIGN_SRUN, "bcast-exclude", 1, FOREIGN_REFUSED, NO_FILES, NULL},
    {FOREIGN_SRUN,
     "treewidth network prolog epilog task-prolog task-epilog container container-id gid uid "
     "launcher-opts environment container-image container-mounts container-name container-workdir "
     "container-save container-env",
     1, FOREIGN_REFUSED, NO_DAEMONS, NULL},
    {FOREIGN_SRUN,
     "resv-ports propagate x11 launch-cmd external interactive no-container-mount-home "
     "container-mount-home container-remap-root no-container-remap-root container-writable "
     "container-readonly no-container-entrypoint container-entrypoint",
     0, FOREIGN_REFUSED, NO_DAEMONS, NULL},
    {FOREIGN_MPIRUN, "s preload-binary", 0, FOREIGN_REFUSED, NO_FILES, NULL},
    {FOREIGN_MPIRUN, "preload-files", 1, FOREIGN_REFUSED, NO_FILES, NULL},
    {FOREIGN_MPIRUN, "index-argv-by-rank do-not-launch", 0, FOREIGN_REFUSED,
     "drarun has nothing of that kind: leave it out", NULL},
    {FOREIGN_OPENMPI5, "pset gpu-support", 1, FOREIGN_REFUSED,
     "drarun has nothing of that kind: leave it out", NULL},
    {FOREIGN_OPENMPI5, "stop-on-exec", 0, FOREIGN_SAME, "--stop-at=exec", NULL},
    {FOREIGN_OPENMPI5, "stop-in-init", 0, FOREIGN_SAME, "--stop-at=init", NULL},
    {FOREIGN_OPENMPI5, "stop-in-app", 0, FOREIGN_SAME, "--stop-at=app", NULL},
    {FOREIGN_MPI, "debug tv tva gdb gdba", 0, FOREIGN_REFUSED, DEBUGGER, NULL},
    {FOREIGN_MPI, "debugger gdb-args", 1, FOREIGN_REFUSED, DEBUGGER, NULL},
    {FOREIGN_INTEL, "gtool gtoolfile", 1, FOREIGN_REFUSED,
     "start the tool as the program: drarun -n 4 vtune ... PROGRAM", NULL},
    {FOREIGN_INTEL,
     "aps mps t trace check-mpi check_mpi trace-imbalance trace-pt2pt trace-collectives", 0,
     FOREIGN_REFUSED, "start the tool as the program: drarun -n 4 vtune ... PROGRAM", NULL},

    /* devices, and what a queue gives */
    {FOREIGN_INTEL,
     "rdma RDMA dapl DAPL ib IB tmi TMI mx MX psm PSM psm2 PSM2 ofi OFI mxm MXM ofa OFA shm sock "
     "ssm",
     0, FOREIGN_REFUSED, "-x I_MPI_FABRICS=shm:ofi, and the job's devices decide the rest", NULL},
    {FOREIGN_INTEL, "ilp64", 0, FOREIGN_REFUSED,
     "-x LD_PRELOAD=libmpi_ilp64.so where the program was not linked with it", NULL},
    {FOREIGN_MPICH | FOREIGN_OPENMPI5, "memory-alloc-kinds", 1, FOREIGN_REFUSED,
     "the info key mpi_memory_alloc_kinds of MPI_Session_init asks for them", NULL},
    {FOREIGN_HYDRA, "gpus-per-proc gpu-subdevs-per-proc ranks-per-proc", 1, FOREIGN_REFUSED,
     NO_DEVICES, NULL},
    {FOREIGN_SRUN,
     "G gpus gpus-per-node gpus-per-task gpus-per-socket gres gpu-bind gpu-freq "
     "cpus-per-gpu mem-per-gpu ntasks-per-gpu tres-per-task tres-bind gres-flags",
     1, FOREIGN_REFUSED, NO_DEVICES, NULL},
    {FOREIGN_SRUN,
     "A account p partition qos J job-name time-min b begin M clusters C "
     "constraint d dependency deadline L licenses mem mem-per-cpu mincpus priority "
     "reservation switches tmp wckey comment jobid power bb bbf mail-type mail-user cpu-freq "
     "acctg-freq extra cluster-constraint prefer delay-boot mcs-label profile segment",
     1, FOREIGN_REFUSED, NO_QUEUE, NULL},
    {FOREIGN_SRUN,
     "hold I immediate s contiguous reboot spread-job use-min-nodes test-only Z "
     "no-allocate E preserve-env nice oom-kill-step stepmgr",
     0, FOREIGN_REFUSED, NO_QUEUE, NULL},

    /* horovodrun 0.28, whose options are variables of the ranks where they are not about hosts */
    {FOREIGN_HOROVOD, "np num-proc", 1, FOREIGN_SAME, "--ranks", NULL},
    {FOREIGN_HOROVOD, "H hosts", 1, FOREIGN_HOSTS, "which of the --agents, or ranks here", NULL},
    {FOREIGN_HOROVOD, "hostfile", 1, FOREIGN_HOSTFILE, "the same from a file", NULL},
    {FOREIGN_HOROVOD, "start-timeout", 1, FOREIGN_SAME, "--start-timeout", NULL},
    {FOREIGN_HOROVOD, "verbose", 0, FOREIGN_SAME, "--verbose", NULL},
    {FOREIGN_HOROVOD, "version", 0, FOREIGN_SAME, "--version", NULL},
    {FOREIGN_HOROVOD, "h help", 0, FOREIGN_SAME, "--help", NULL},
    {FOREIGN_HOROVOD, "v", 0, FOREIGN_CLASH, "-v is --verbose; horovodrun's version is --version",
     NULL},
    {FOREIGN_HOROVOD, "mpi", 0, FOREIGN_CLASH,
     "--mpi is srun's, with a value; ranks always get PMIx and PMI-1, which Horovod's MPI uses",
     NULL},
    {FOREIGN_HOROVOD, "gloo jsrun", 0, FOREIGN_REFUSED,
     "ranks meet by MPI: Horovod must have been built with it (horovodrun --check-build)", NULL},
    {FOREIGN_HOROVOD, "cb check-build", 0, FOREIGN_REFUSED, "horovodrun --check-build", NULL},
    {FOREIGN_HOROVOD, "disable-cache", 0, FOREIGN_REFUSED, NO_DAEMONS, NULL},
    {FOREIGN_HOROVOD,
     "p ssh-port i ssh-identity-file network-interface network-interfaces "
     "gloo-timeout-seconds",
     1, FOREIGN_REFUSED, NO_DAEMONS, NULL},
    {FOREIGN_HOROVOD,
     "min-np min-num-proc max-np max-num-proc slots-per-host elastic-timeout reset-limit "
     "host-discovery-script",
     1, FOREIGN_REFUSED, "a job has a fixed number of ranks", NULL},
    {FOREIGN_HOROVOD, "slots", 1, FOREIGN_CLASH,
     "--slots N is how many ranks a worker may have, those that ranks start included; horovodrun's "
     "is for elastic jobs, and a job has a fixed number of ranks",
     NULL},
    {FOREIGN_HOROVOD, "blacklist-cooldown-range", 2, FOREIGN_REFUSED,
     "a job has a fixed number of ranks", NULL},
    {FOREIGN_HOROVOD, "config-file", 1, FOREIGN_REFUSED,
     "the variables HOROVOD_NAME, as -x HOROVOD_CYCLE_TIME=0.1", NULL},
    {FOREIGN_HOROVOD, "mpi-args binding-args", 1, FOREIGN_REFUSED,
     "give mpirun's options themselves", NULL},
    {FOREIGN_HOROVOD, "output-filename", 1, FOREIGN_REFUSED, FILES, NULL},
    {FOREIGN_HOROVOD, "prefix-timestamp prefix-output-with-timestamp", 0, FOREIGN_REFUSED,
     "drarun ... | ts (moreutils)", NULL},
    {FOREIGN_HOROVOD, "fusion-threshold-mb", 1, FOREIGN_REFUSED,
     "-x HOROVOD_FUSION_THRESHOLD=BYTES", NULL},
    {FOREIGN_HOROVOD, "cycle-time-ms", 1, FOREIGN_SETS, "HOROVOD_CYCLE_TIME", NULL},
    {FOREIGN_HOROVOD, "cache-capacity", 1, FOREIGN_SETS, "HOROVOD_CACHE_CAPACITY", NULL},
    {FOREIGN_HOROVOD, "hierarchical-allreduce", 0, FOREIGN_SETS, "HOROVOD_HIERARCHICAL_ALLREDUCE=1",
     NULL},
    {FOREIGN_HOROVOD, "no-hierarchical-allreduce", 0, FOREIGN_SETS,
     "HOROVOD_HIERARCHICAL_ALLREDUCE=0", NULL},
    {FOREIGN_HOROVOD, "hierarchical-allgather", 0, FOREIGN_SETS, "HOROVOD_HIERARCHICAL_ALLGATHER=1",
     NULL},
    {FOREIGN_HOROVOD, "no-hierarchical-allgather", 0, FOREIGN_SETS,
     "HOROVOD_HIERARCHICAL_ALLGATHER=0", NULL},
    {FOREIGN_HOROVOD, "autotune", 0, FOREIGN_SETS, "HOROVOD_AUTOTUNE=1", NULL},
    {FOREIGN_HOROVOD, "no-autotune", 0, FOREIGN_SETS, "HOROVOD_AUTOTUNE=0", NULL},
    {FOREIGN_HOROVOD, "autotune-log-file", 1, FOREIGN_SETS, "HOROVOD_AUTOTUNE_LOG", NULL},
    {FOREIGN_HOROVOD, "autotune-warmup-samples", 1, FOREIGN_SETS, "HOROVOD_AUTOTUNE_WARMUP_SAMPLES",
     NULL},
    {FOREIGN_HOROVOD, "autotune-steps-per-sample", 1, FOREIGN_SETS,
     "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", NULL},
    {FOREIGN_HOROVOD, "autotune-bayes-opt-max-samples", 1, FOREIGN_SETS,
     "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", NULL},
    {FOREIGN_HOROVOD, "autotune-gaussian-process-noise", 1, FOREIGN_SETS,
     "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", NULL},
    {FOREIGN_HOROVOD, "timeline-filename", 1, FOREIGN_SETS, "HOROVOD_TIMELINE", NULL},
    {FOREIGN_HOROVOD, "timeline-mark-cycles", 0, FOREIGN_SETS, "HOROVOD_TIMELINE_MARK_CYCLES=1",
     NULL},
    {FOREIGN_HOROVOD, "no-timeline-mark-cycles", 0, FOREIGN_SETS, "HOROVOD_TIMELINE_MARK_CYCLES=0",
     NULL},
    {FOREIGN_HOROVOD, "no-stall-check", 0, FOREIGN_SETS, "HOROVOD_STALL_CHECK_DISABLE=1", NULL},
    {FOREIGN_HOROVOD, "stall-check", 0, FOREIGN_SETS, "HOROVOD_STALL_CHECK_DISABLE=0", NULL},
    {FOREIGN_HOROVOD, "stall-check-warning-time-seconds", 1, FOREIGN_SETS,
     "HOROVOD_STALL_CHECK_TIME_SECONDS", NULL},
    {FOREIGN_HOROVOD, "stall-check-shutdown-time-seconds", 1, FOREIGN_SETS,
     "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", NULL},
    {FOREIGN_HOROVOD, "mpi-threads-disable", 0, FOREIGN_SETS, "HOROVOD_MPI_THREADS_DISABLE=1",
     NULL},
    {FOREIGN_HOROVOD, "no-mpi-threads-disable", 0, FOREIGN_SETS, "HOROVOD_MPI_THREADS_DISABLE=0",
     NULL},
    {FOREIGN_HOROVOD, "num-nccl-streams", 1, FOREIGN_SETS, "HOROVOD_NUM_NCCL_STREAMS", NULL},
    {FOREIGN_HOROVOD, "thread-affinity", 1, FOREIGN_SETS, "HOROVOD_THREAD_AFFINITY", NULL},
    {FOREIGN_HOROVOD, "tcp", 0, FOREIGN_SETS, "NCCL_IB_DISABLE=1", NULL},
    {FOREIGN_HOROVOD, "log-level", 1, FOREIGN_SETS, "HOROVOD_LOG_LEVEL", NULL},
    {FOREIGN_HOROVOD, "log-with-timestamp no-log-hide-timestamp", 0, FOREIGN_SETS,
     "HOROVOD_LOG_HIDE_TIME=0", NULL},
    {FOREIGN_HOROVOD, "log-without-timestamp log-hide-timestamp", 0, FOREIGN_SETS,
     "HOROVOD_LOG_HIDE_TIME=1", NULL},

    /* torchrun, whose words have "-" or "_"; its letters mean other things to the launchers above
     */
    {FOREIGN_TORCHRUN, "nproc-per-node nproc_per_node nnodes node-rank node_rank", 1,
     FOREIGN_REFUSED, TORCHRUN, NULL},
    {FOREIGN_TORCHRUN,
     "rdzv-backend rdzv_backend rdzv-endpoint rdzv_endpoint rdzv-id rdzv_id rdzv-conf rdzv_conf", 1,
     FOREIGN_REFUSED, TORCHRUN, NULL},
    {FOREIGN_TORCHRUN, "master-addr master_addr master-port master_port local-addr local_addr", 1,
     FOREIGN_REFUSED, TORCHRUN, NULL},
    {FOREIGN_TORCHRUN,
     "max-restarts max_restarts monitor-interval monitor_interval start-method start_method role "
     "log-dir log_dir redirects tee module",
     1, FOREIGN_REFUSED, TORCHRUN, NULL},
    {FOREIGN_TORCHRUN, "standalone no-python no_python run-path run_path", 0, FOREIGN_REFUSED,
     TORCHRUN, NULL},
};

const size_t foreign_option_count = ARRAY_LEN(foreign_options);

static bool has(const struct foreign_option *option, const char *name, size_t length)
{
    return words_index(option->words, name, length) >= 0;
}

const struct foreign_option *foreign_option_find(size_t at, const char *word)
{
    size_t dashes = strspn(word, "-");
    const char *name = word + dashes;
    size_t length = strcspn(name, "=");
    for (size_t i = at; i < foreign_option_count; i++) {
        const struct foreign_option *option = &foreign_options[i];
        bool two = dashes == 2 && (length > 1 || option->from != FOREIGN_SRUN);
        bool one = dashes == 1 && (length == 1 || option->from != FOREIGN_SRUN);
        if ((one || two) && has(option, name, length))
            return option;
    }
    return NULL;
}

size_t foreign_option_values(const struct foreign_option *option, const char *first)
{
    bool names = option->way == FOREIGN_VARIABLE || option->way == FOREIGN_ALL_VARIABLE;
    bool whole = names && (option->from & FOREIGN_HYDRA) && first && strchr(first, '=');
    return whole ? 1 : option->values_after;
}

const struct foreign_option *foreign_option_named(unsigned int from, const char *name)
{
    for (size_t i = 0; i < foreign_option_count; i++)
        if ((foreign_options[i].from & from) && has(&foreign_options[i], name, strlen(name)))
            return &foreign_options[i];
    return NULL;
}
