/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/foreign_options.h"
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
     "merge-stderr-to-stdout 0 preload-files 1 debug 0 tv 0 path 1 do-not-launch 0 bynode 0"},
    {FOREIGN_OPENMPI5,
     "np 1 n 1 c 1 H 1 host 1 N 1 hostfile 1 machinefile 1 pmixmca 2 prtemca 2 mca 2 set-env 1 "
     "unset-env 1 append-env 2 prepend-env 2 x 1 output 1 display 1 runtime-options 1 "
     "spawn-timeout 1 personality 1 pset 1 preload-binary 0 show-progress 0 stop-in-init 0"},
    {FOREIGN_MPICH,
     "genv 2 genvlist 1 genvnone 0 genvall 0 env 2 envlist 1 envnone 0 envall 0 f 1 hosts 1 wdir 1 "
     "configfile 1 n 1 np 1 launcher 1 launcher-exec 1 enable-x 0 disable-x 0 rmk 1 topolib 1 "
     "bind-to 1 map-by 1 membind 1 demux 1 verbose 0 info 0 print-all-exitcodes 0 iface 1 ppn 1 "
     "profile 0 prepend-rank 0 prepend-pattern 1 outfile-pattern 1 errfile-pattern 1 nameserver 1 "
     "disable-auto-cleanup 0 disable-hostname-propagation 0 order-nodes 1 localhost 1 usize 1 "
     "pmi-port 0 skip-launch-node 0 gpus-per-proc 1 bootstrap 1 bootstrap-exec 1"},
    {FOREIGN_INTEL,
     "perhost 1 machinefile 1 machine 1 hosts-group 1 aps 0 mps 0 gdb 0 gtool 1 gtoolfile 1 tv 0 s "
     "1 "
     "silent-abort 0 nolocal 0 tune 1 print-rank-map 0 prepend-timestamp 0 prot 0 cpu-bind 1 rr 0"},
    {FOREIGN_SRUN,
     "n 1 ntasks 1 N 1 nodes 1 c 1 cpus-per-task 1 ntasks-per-node 1 w 1 nodelist 1 x 1 exclude 1 "
     "l 0 label 0 o 1 output 1 e 1 error 1 i 1 input 1 D 1 chdir 1 t 1 time 1 K 0 kill-on-bad-exit "
     "0 "
     "m 1 distribution 1 cpu-bind 1 mem-bind 1 mpi 1 multi-prog 0 export 1 exclusive 0 overlap 0 "
     "O 0 overcommit 0 s 0 oversubscribe 0 p 1 partition 1 A 1 account 1 q 1 qos 1 G 1 gpus 1 "
     "gres 1 J 1 job-name 1 u 0 unbuffered 0 W 1 wait 1 v 0 verbose 0 Q 0 quiet 0 pty 0 hint 1 "
     "mem 1 jobid 1 d 1 dependency 1 signal 1 no-kill 0 k 0 H 0 hold 0 I 0 immediate 0"},
};

/* Those that are ours with the same meaning. */
static bool is_ours(const char *name, size_t length)
{
    return words_index("x l v h V q", name, length) >= 0;
}

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
            if (!option && !is_ours(w, n))
                fail_msg("%s of launchers %u is not known", name, known[i].from);
            if (option && option->values_after != after)
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
            if (first != option && option->way != FOREIGN_CLASH && option->way != first->way)
                fail_msg("%s is of two kinds", word);
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
    static const char *const names[] = {"mpirun", "mpiexec", "srun"};
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
