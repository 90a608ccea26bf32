/* SPDX-License-Identifier: Apache-2.0 */
/* What verbs print, against goldens. Where a golden was changed on purpose: DRARUN_GOLDEN=write in
 * the environment writes them; look at the difference. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "launcher/verbs/bench_compare.h"
#include "launcher/verbs/bench_judge.h"
#include "launcher/verbs/bench_report.h"
#include "launcher/verbs/import.h"
#include "launcher/verbs/install.h"
#include "launcher/verbs/plan.h"
#include "launcher/verbs/render.h"
#include "launcher/verbs/topo.h"
#include "launcher/verbs/validate.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"

#define SLICES "--slices examples/clusters/a4-two-nodes.json "
#define PLAN SLICES "examples/jobs/half-nodes-aligned.yaml"
#define TOPO SLICES "--node a4-0 --format "
/* Others are written by tests/test_render.py and its kin. */
#define OURS "launcher/verbs/test/golden/"
#define WORDS 32

/* words: separated by one blank. */
struct golden_case {
    const struct verb *verb;
    const char *words, *golden;
    int status;
};

static const struct golden_case cases[] = {
    {&verb_plan, PLAN, OURS "plan.txt", 0},
    {&verb_plan, PLAN " --explain", OURS "plan-explain.txt", 0},
    {&verb_plan, PLAN " -o svg --worker 2", OURS "plan.svg", 0},
    {&verb_plan, PLAN " --workers 9", OURS "plan-no-room.txt", 75},
    {&verb_plan, "examples/jobs/two-by-two.yaml", OURS "plan-no-slices.txt", 0},
    {&verb_plan, SLICES "examples/jobs/ray-all-nic.yaml", OURS "plan-ray.txt", 0},
    {&verb_plan, SLICES "examples/jobs/renamed-interface.yaml", OURS "plan-renamed.txt", 0},
    {&verb_plan, SLICES "examples/jobs/compute-domain.yaml", OURS "plan-domain.txt", 75},
    {&verb_topo, TOPO "text", OURS "topo.txt", 0},
    {&verb_topo, TOPO "svg", OURS "topo.svg", 0},
    {&verb_topo, TOPO "nccl-xml", OURS "topo-xml.txt", 64},
    {&verb_validate, "examples/jobs/two-by-two.yaml", OURS "validate.txt", 0},
    {&verb_validate, "examples/jobs/README.md", OURS "validate-refused.txt", 65},
    {&verb_import, "tests/data/seeds/gpu-nic-2x2.yaml", OURS "import-job.yaml", 65},
    {&verb_import, "tests/data/seeds/mpijob-1x1.yaml", OURS "import-mpijob.yaml", 0},
    {&verb_import, "tests/data/seeds/ray-all-nic.yaml", OURS "import-refused.txt", 65},
    {&verb_install, "-n train", OURS "install.yaml", 0},
    {&verb_bench_compare, "docs/bench/nccl-tests.txt docs/bench/nccl-tests.txt", OURS "compare.txt",
     0},
    {&verb_bench_judge, "docs/bench/nccl-tests.txt", OURS "judge.txt", 0},
    {&verb_bench_report, "--format csv docs/bench/nccl-tests.txt", OURS "report.csv", 0},
    {&verb_bench_report, "--format svg docs/bench/nccl-tests.txt", OURS "report.svg", 0},
};

static const char *const rendered[] = {
    "render/agent-claim",    "render/aligned",     "render/gang",        "render/nvlink",
    "render/plain",          "render/plugin-gpus", "render/queue",       "render/template",
    "render/unaligned",      "render/whole",       "render_as/ray-head", "render_as/ray-plain",
    "render_as/train-alone", "render_as/train",
};

static int go_to_source(void **state)
{
    (void)state;
    log_setup("drarun", LOG_NORMAL);
    unsetenv("DRARUN_IMAGE");
    return chdir(SOURCE);
}

/* The bytes of a file, with a NUL behind them. */
static char *content(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    assert_true(size >= 0);
    char *text = calloc(1, (size_t)size + 1);
    assert_non_null(text);
    assert_int_equal(pread(fd, text, (size_t)size, 0), size);
    return text;
}

/* Lines of ours stand before the output, behind "# ", as in tests/data/render_as. */
static char *joined(int out, int errors)
{
    cleanup_free char *told = content(errors), *printed = content(out);
    struct buf text = BUF_INIT;
    for (char *rest = told, *line; (line = strsep(&rest, "\n")) && *line;)
        buf_printf(&text, "# %s\n", line);
    buf_add_str(&text, printed);
    buf_add(&text, "", 1);
    assert_false(text.failed);
    return text.data;
}

/* Runs a verb with stdout and stderr in files; *ret_text is malloc'ed. */
static int run_verb(const struct verb *verb, const char *words, char **ret_text)
{
    char program[] = "drarun", name[32];
    snprintf(name, sizeof name, "%s", verb->name);
    char *argv[WORDS] = {program, name};
    int argc = 2;
    cleanup_free char *copy = strdup(words);
    char *rest = copy;
    for (char *word; (word = strsep(&rest, " "));) {
        assert_true(argc < WORDS - 1);
        if (*word)
            argv[argc++] = word;
    }
    int out = memfd_create("out", MFD_CLOEXEC), errors = memfd_create("errors", MFD_CLOEXEC);
    int stdout_before = dup(STDOUT_FILENO), stderr_before = dup(STDERR_FILENO);
    fflush(NULL);
    assert_true(dup2(out, STDOUT_FILENO) >= 0 && dup2(errors, STDERR_FILENO) >= 0);
    int status = verb->run(argc - 2, argv + 2);
    fflush(NULL);
    dup2(stdout_before, STDOUT_FILENO);
    dup2(stderr_before, STDERR_FILENO);
    close(stdout_before);
    close(stderr_before);
    *ret_text = joined(out, errors);
    close(out);
    close(errors);
    return status;
}

static void assert_golden(const char *path, const char *text)
{
    const char *mode = getenv("DRARUN_GOLDEN");
    if (mode && strcmp(mode, "write") == 0 && strncmp(path, OURS, strlen(OURS)) == 0) {
        cleanup_file FILE *file = fopen(path, "we");
        assert_non_null(file);
        assert_int_equal(fputs(text, file) >= 0, 1);
        return;
    }
    struct buf golden = BUF_INIT;
    assert_int_equal(file_read(AT_FDCWD, path, 1 << 20, &golden, NULL), 0);
    buf_add(&golden, "", 1);
    if (strcmp(text, golden.data) != 0)
        print_error("%s differs; printed was:\n%s", path, text);
    assert_string_equal(text, golden.data);
    buf_done(&golden);
}

static void test_golden(void **state)
{
    const struct golden_case *c = *state;
    cleanup_free char *text = NULL;
    assert_int_equal(run_verb(c->verb, c->words, &text), c->status);
    assert_golden(c->golden, text);
}

/* The first line of a job's file holds the options, as for tests/test_render.py. */
static void test_rendered(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rendered); i++) {
        char job[128], golden[128], first[256], words[512];
        snprintf(job, sizeof job, "tests/data/%s.job.yaml", rendered[i]);
        snprintf(golden, sizeof golden, "tests/data/%s.yaml", rendered[i]);
        cleanup_file FILE *file = fopen(job, "re");
        assert_non_null(file);
        assert_non_null(fgets(first, sizeof first, file));
        first[strcspn(first, "\n")] = '\0';
        assert_memory_equal(first, "# render:", strlen("# render:"));
        snprintf(words, sizeof words, "%s %s", first + strlen("# render:"), job);
        cleanup_free char *text = NULL;
        assert_int_equal(run_verb(&verb_render, words, &text), 0);
        assert_golden(golden, text);
    }
}

int main(void)
{
    struct CMUnitTest tests[ARRAY_LEN(cases) + 1] = {cmocka_unit_test(test_rendered)};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        tests[i + 1] = (struct CMUnitTest){
            .name = cases[i].golden, .test_func = test_golden, .initial_state = unconst(&cases[i])};
    return _cmocka_run_group_tests("verbs", tests, ARRAY_LEN(tests), go_to_source, NULL);
}
