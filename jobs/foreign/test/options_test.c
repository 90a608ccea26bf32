/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/foreign/options.h"
#include "lib/base/cleanup.h"
#include "lib/base/nearest.h"

/* What the launchers' own help lists, as "NAME VALUES": Open MPI 4.1.4 and 5.0.11, MPICH 5.0.2,
 * Intel MPI 2021.19, Slurm. Each must be known, with as many words behind it. */
static const struct {
    unsigned int from;
    const char *lines;
} known[] = {
    {FOREIGN_OPENMPI4,
     "np 1 n 1 c 1 H 1 host 1 hostfile 1 machinefile 1 N 1 npernode 1 pernode 0 mca 2 gmca 2 x 1 "
     "wd 1 wdir 1 map-by 1 rank-by 1 bind-to 1 report-bindings 0 oversubscribe 0 nooversubscribe 0 "
     "rankfile 1 rf 1 tag-output 0 timestamp-output 0 output-filename 1 stdin 1 timeout 1 "
     "allow-run-as-root 0 prefix 1 app 1 am 1 tune 1 cpu-set 1 display-map 0 xterm 1 quiet 0 "
     "merge-stderr-to-stdout 0 preload-files 1 debug 0 tv 0 path 1 do-not-launch 0 bynode 0 "
     "bind-to-core 0 bind-to-socket 0 bycore 0 byslot 0 cf 1 cartofile 1 continuous 0 cpu-list 1 "
     "cpus-per-proc 1 cpus-per-rank 1 d 0 debug-devel 0 debug-daemons 0 debug-daemons-file 0 "
     "debugger 1 default-hostfile 1 disable-recovery 0 display-allocation 0 "
     "display-devel-allocation 0 display-devel-map 0 display-diffable-map 0 display-topo 0 "
     "do-not-resolve 0 dvm 0 enable-instant-on-support 0 enable-recovery 0 fwd-mpirun-port 0 "
     "get-stack-traces 0 hnp 1 index-argv-by-rank 0 launch-agent 1 leave-session-attached 0 "
     "max-restarts 1 max-vm-size 1 nolocal 0 noprefix 0 novm 0 npersocket 1 ompi-server 1 "
     "output-proctable 0 personality 1 ppr 1 q 0 report-child-jobs-separately 0 report-events 1 "
     "report-pid 1 report-state-on-timeout 0 report-uri 1 s 0 preload-binary 0 "
     "set-cwd-to-session-dir 0 show-progress 0 use-hwthread-cpus 0 use-regexp 0 v 0 verbose 0 V 0 "
     "version 0 h 0 help 0 xml 0 xml-file 1"},
    {FOREIGN_OPENMPI5,
     "np 1 n 1 c 1 H 1 host 1 N 1 hostfile 1 machinefile 1 pmixmca 2 prtemca 2 mca 2 set-env 1 "
     "unset-env 1 append-env 2 prepend-env 2 x 1 output 1 display 1 runtime-options 1 "
     "spawn-timeout 1 personality 1 pset 1 preload-binary 0 show-progress 0 stop-in-init 0 "
     "omca 2 gomca 2 tune 1 stream-buffering 1 ompi-server 1 fwd-mpirun-port 0 amca 1 npersocket 1 "
     "ppr 1 max-vm-size 1 app 1 memory-alloc-kinds 1 gpu-support 1 forward-signals 1 with-ft 1 "
     "dvm 1 hetero-nodes 0 pmix-prefix 1 keepalive 1 allow-run-as-root 0 map-by 1 bind-to 1 "
     "rank-by 1 timeout 1"},
    {FOREIGN_MPICH,
     "genv 2 genvlist 1 genvnone 0 genvall 0 env 2 envlist 1 envnone 0 envall 0 f 1 hosts 1 wdir 1 "
     "configfile 1 n 1 np 1 launcher 1 launcher-exec 1 enable-x 0 disable-x 0 rmk 1 topolib 1 "
     "bind-to 1 map-by 1 membind 1 demux 1 verbose 0 info 0 print-all-exitcodes 0 iface 1 ppn 1 "
     "profile 0 prepend-rank 0 prepend-pattern 1 outfile-pattern 1 errfile-pattern 1 nameserver 1 "
     "disable-auto-cleanup 0 disable-hostname-propagation 0 order-nodes 1 localhost 1 usize 1 "
     "pmi-port 0 skip-launch-node 0 gpus-per-proc 1 bootstrap 1 bootstrap-exec 1 rankmap 1 "
     "memory-alloc-kinds 1 hybrid-hosts 0 print-rank-map 0 binding 1 dac 0 debug 0 v 0 version 0 "
     "outfile 1 errfile 1 ckpoint-interval 1 ckpoint-prefix 1 ckpoint-num 1 ckpointlib 1 "
     "ranks-per-proc 1 bindlib 1 tree-width 1"},
    {FOREIGN_INTEL,
     "perhost 1 machinefile 1 machine 1 hosts-group 1 aps 0 mps 0 gdb 0 gtool 1 gtoolfile 1 tv 0 s "
     "1 "
     "silent-abort 0 nolocal 0 tune 1 print-rank-map 0 prepend-timestamp 0 prot 0 cpu-bind 1 rr 0 "
     "launcher-exec 1 bootstrap-exec-args 1 iface 1 grr 1 rr-list 1 genvuse 1 check_mpi 0 trace 0 "
     "ordered-output 0 ilp64 0 ofi 0 rdma 0 hostlist 1 gwdir 1 branch-count 1 machinelist 1"},
    {FOREIGN_SRUN,
     "n 1 ntasks 1 N 1 nodes 1 c 1 cpus-per-task 1 ntasks-per-node 1 w 1 nodelist 1 x 1 exclude 1 "
     "l 0 label 0 o 1 output 1 e 1 error 1 i 1 input 1 D 1 chdir 1 t 1 time 1 K 0 kill-on-bad-exit "
     "0 "
     "m 1 distribution 1 cpu-bind 1 mem-bind 1 mpi 1 multi-prog 0 export 1 exclusive 0 overlap 0 "
     "O 0 overcommit 0 s 0 oversubscribe 0 p 1 partition 1 A 1 account 1 q 1 qos 1 G 1 gpus 1 "
     "gres 1 J 1 job-name 1 u 0 unbuffered 0 W 1 wait 1 v 0 verbose 0 Q 0 quiet 0 pty 0 hint 1 "
     "mem 1 jobid 1 d 1 dependency 1 signal 1 no-kill 0 k 0 H 0 hold 0 I 0 immediate 0 "
     "accel-bind 1 acctg-freq 1 bb 1 bbf 1 bcast 0 bcast-exclude 1 cluster-constraint 1 comment 1 "
     "compress 0 container 1 contiguous 0 cores-per-socket 1 cpu-freq 1 cpus-per-gpu 1 deadline 1 "
     "delay-boot 1 epilog 1 exact 0 gid 1 gpu-bind 1 gpu-freq 1 gpus-per-node 1 gpus-per-socket 1 "
     "gpus-per-task 1 gres-flags 1 het-group 1 mail-type 1 mail-user 1 mcs-label 1 mem-per-cpu 1 "
     "mem-per-gpu 1 mincpus 1 msg-timeout 1 network 1 nice 0 ntasks-per-core 1 ntasks-per-gpu 1 "
     "ntasks-per-socket 1 open-mode 1 power 1 prefer 1 priority 1 profile 1 prolog 1 propagate 0 "
     "quit-on-interrupt 0 reboot 0 reservation 1 resv-ports 0 send-libs 0 slurmd-debug 1 "
     "sockets-per-node 1 spread-job 0 switches 1 task-epilog 1 task-prolog 1 test-only 0 "
     "thread-spec 1 threads-per-core 1 time-min 1 tmp 1 uid 1 usage 0 use-min-nodes 0 wckey 1 "
     "x11 0 B 1 C 1 constraint 1 E 0 preserve-env 0 F 1 nodefile 1 L 1 licenses 1 M 1 clusters 1 "
     "S 1 core-spec 1 T 1 threads 1 V 0 version 0 X 0 disable-status 0 Z 0 no-allocate 0 b 1 "
     "begin 1 h 0 help 0 r 1 relative 1 extra-node-info 1 container-image 1 container-mounts 1"},
    {FOREIGN_HOROVOD,
     "v 0 version 0 np 1 num-proc 1 cb 0 check-build 0 disable-cache 0 start-timeout 1 "
     "network-interface 1 network-interfaces 1 output-filename 1 verbose 0 config-file 1 p 1 "
     "ssh-port 1 i 1 ssh-identity-file 1 fusion-threshold-mb 1 cycle-time-ms 1 cache-capacity 1 "
     "hierarchical-allreduce 0 no-hierarchical-allreduce 0 hierarchical-allgather 0 "
     "no-hierarchical-allgather 0 autotune 0 no-autotune 0 autotune-log-file 1 "
     "autotune-warmup-samples 1 autotune-steps-per-sample 1 autotune-bayes-opt-max-samples 1 "
     "autotune-gaussian-process-noise 1 min-np 1 min-num-proc 1 max-np 1 max-num-proc 1 "
     "slots-per-host 1 elastic-timeout 1 reset-limit 1 blacklist-cooldown-range 2 "
     "timeline-filename 1 timeline-mark-cycles 0 no-timeline-mark-cycles 0 no-stall-check 0 "
     "stall-check 0 stall-check-warning-time-seconds 1 stall-check-shutdown-time-seconds 1 "
     "mpi-threads-disable 0 no-mpi-threads-disable 0 mpi-args 1 tcp 0 binding-args 1 "
     "num-nccl-streams 1 thread-affinity 1 gloo-timeout-seconds 1 log-level 1 "
     "log-with-timestamp 0 log-without-timestamp 0 prefix-timestamp 0 "
     "prefix-output-with-timestamp 0 log-hide-timestamp 0 no-log-hide-timestamp 0 H 1 hosts 1 "
     "hostfile 1 host-discovery-script 1 gloo 0 mpi 0 jsrun 0 h 0 help 0"},
    {FOREIGN_TORCHRUN,
     "nproc-per-node 1 nproc_per_node 1 nnodes 1 node-rank 1 rdzv-backend 1 rdzv-endpoint 1 "
     "rdzv_endpoint 1 rdzv-id 1 rdzv-conf 1 standalone 0 max-restarts 1 monitor-interval 1 "
     "start-method 1 role 1 module 1 no-python 0 run-path 0 log-dir 1 redirects 1 tee 1 "
     "master-addr 1 master-port 1 master_port 1 local-addr 1"},
};

static void knows_the_usual_options(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        const char *at = known[i].lines;
        size_t n = 0, digits = 0;
        for (const char *w; (w = words_next(&at, &n));) {
            char name[64];
            snprintf(name, sizeof name, "%.*s", (int)n, w);
            unsigned int after = (unsigned int)(*words_next(&at, &digits) - '0');
            const struct foreign_option *option = foreign_option_named(known[i].from, name);
            if (!option)
                fail_msg("%s of launchers %u is not known", name, known[i].from);
            if (option->values_after != after)
                fail_msg("%s of launchers %u takes %u words, not %u", name, known[i].from, after,
                         option->values_after);
        }
    }
}

/* The first entry of a word decides: another one may only agree, or say that it is not meant. */
static void no_entry_hides_another(void **state)
{
    (void)state;
    for (size_t i = 0; i < foreign_option_count; i++) {
        const struct foreign_option *option = &foreign_options[i];
        const char *at = option->words;
        size_t n = 0;
        assert_true(option->from != 0 && option->text != NULL);
        for (const char *w; (w = words_next(&at, &n));) {
            char word[64];
            bool two = n > 1 || option->from != FOREIGN_SRUN;
            snprintf(word, sizeof word, "%s%.*s", two ? "--" : "-", (int)n, w);
            const struct foreign_option *first = foreign_option_find(0, word);
            assert_non_null(first);
            bool adds = option->way == FOREIGN_CLASH || first->way == FOREIGN_WHEN;
            if (first != option && !adds && option->way != first->way)
                fail_msg("%s is of two kinds", word);
            if (option->way == FOREIGN_WHEN) /* what holds for other values */
                assert_non_null(foreign_option_find((size_t)(option - foreign_options) + 1, word));
            if (first->way == FOREIGN_SAME && option->way == FOREIGN_SAME)
                assert_string_equal(first->text, option->text);
        }
    }
}

static void finds_words_as_they_are_typed(void **state)
{
    (void)state;
    assert_string_equal(foreign_option_find(0, "-np")->text, "--ranks");
    assert_string_equal(foreign_option_find(0, "--np=4")->text, "--ranks");
    assert_non_null(foreign_option_find(0, "--n"));
    assert_non_null(foreign_option_find(0, "--ntasks"));
    assert_null(foreign_option_find(0, "-ntasks")); /* srun's have two */
    assert_null(foreign_option_find(0, "--D"));
    assert_non_null(foreign_option_find(0, "-D"));
    assert_null(foreign_option_find(0, "--mc"));
    assert_null(foreign_option_find(0, "-"));
    assert_null(foreign_option_find(0, "--"));
}

static void shows_one_line_for_each(void **state)
{
    static const char *const names[] = {"mpirun", "mpiexec", "srun", "horovodrun", "torchrun"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct buf text = BUF_INIT;
        size_t lines = 0, entries = 2;
        unsigned int from = foreign_launcher(names[i]);
        foreign_options_table(from, &text);
        for (const char *p = text.data; *p; p++)
            lines += *p == '\n';
        for (size_t k = 0; k < foreign_option_count; k++)
            entries += (foreign_options[k].from & from) != 0;
        assert_int_equal(lines, entries);
        buf_done(&text);
    }
    assert_int_equal(foreign_launcher("prun"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_the_usual_options),
        cmocka_unit_test(no_entry_hides_another),
        cmocka_unit_test(finds_words_as_they_are_typed),
        cmocka_unit_test(shows_one_line_for_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
