/* SPDX-License-Identifier: Apache-2.0 */
/* cel_eval: the partner of tests/cel-oracle. Each line of stdin is {"expression", "driver",
 * "device"}; each line of stdout is {"kind": "true" | "false" | "compile" | "error" | "cost",
 * "text", "cost", "estimate"}. With --time N it evaluates each question N times and prints the
 * nanoseconds of one evaluation instead. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/cel/cel.h"

static uint64_t estimate; /* of the expression at hand */

static void answer(const char *kind, const char *text, uint64_t cost)
{
    json_t *line = json_pack("{ss, sI}", "kind", kind, "cost", (json_int_t)cost);
    char number[24];

    snprintf(number, sizeof(number), "%llu", (unsigned long long)estimate);
    if (strcmp(kind, "compile") != 0)
        json_object_set_new(line, "estimate", json_string(number));

    if (text)
        json_object_set_new(line, "text", json_string(text));
    json_dumpf(line, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(line);
}

static void measure(const struct cel_program *program, const struct cel_device *device, long times)
{
    struct timespec begin, end;
    bool match = false;
    double nanoseconds;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (long i = 0; i < times; i++)
        cel_eval_device(program, device, &match, NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    nanoseconds = (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
    printf("%.0f\n", nanoseconds / (double)times);
}

static void evaluate(const struct cel_program *program, const json_t *question, long times)
{
    struct drarun_error err = {0};
    CLEANUP(cel_device_freep)
    struct cel_device *device =
        cel_device_new(json_string_value(json_object_get(question, "driver")),
                       json_object_get(question, "device"), &err);
    bool match;
    uint64_t cost = 0;
    int rc;

    if (!device) {
        answer("device", err.text, 0);
        return;
    }
    if (times) {
        measure(program, device, times);
        return;
    }
    rc = cel_eval_cost(program, device, &match, &cost, &err);
    if (rc < 0)
        answer(rc == -E2BIG ? "cost" : "error", err.text, cost);
    else
        answer(match ? "true" : "false", NULL, cost);
}

static void ask(const char *line, long times)
{
    json_t *question = json_loads(line, JSON_ALLOW_NUL, NULL);
    const char *text = json_string_value(json_object_get(question, "expression"));
    struct drarun_error err = {0};

    if (!text || !json_string_value(json_object_get(question, "driver"))) {
        answer("question", "no expression or no driver", 0);
    } else {
        CLEANUP(cel_program_freep) struct cel_program *program = cel_compile(text, &err);
        estimate = program ? cel_program_estimate(program) : 0;
        if (program)
            evaluate(program, question, times);
        else
            answer("compile", err.text, 0);
    }
    json_decref(question);
}

int main(int argc, char *argv[])
{
    long times = argc == 3 && strcmp(argv[1], "--time") == 0 ? atol(argv[2]) : 0;
    char *line = NULL;
    size_t size = 0;

    while (getline(&line, &size, stdin) > 0)
        ask(line, times);
    free(line);
    return 0;
}
