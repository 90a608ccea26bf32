/* SPDX-License-Identifier: Apache-2.0 */
/* A launcher by hand: wire_caller ADDR:PORT KEY-FILE JOB ATTEMPT WORKER GENERATION [PATH...]
 * says hello (with NICs opened where WIRE_CALLER_OPEN_NICS is set, asking for PATHs in the
 * inspection, each as a vendor's script, too), prints a line for each message, and sends what lines
 * on stdin say: "end", "vitals", "launch [COMMAND]" (two ranks of it, else of `env`, with something
 * derived on every level), "collect COMMAND" (the same, with the files that they leave in
 * $COLLECTED), "taken" (one of these). Leaves when the agent closes
 * ("closed WHY"), or at the end of stdin.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <event2/event.h>

#include "lib/base/unconst.h"
#include "lib/wire/channel.h"
#include "lib/wire/dial.h"
#include "lib/wire/hello.h"
#include "lib/wire/key_file.h"
#include "lib/wire/tls.h"

#define TIME_LIMIT_S 60

static void on_message(struct channel *channel, Drarun__Wire__Envelope *message, void *arg)
{
    (void)channel, (void)arg;
    switch (message->body_case) {
    case DRARUN__WIRE__ENVELOPE__BODY_HELLO:
        printf("hello launched=%d job=%s\n", message->hello->launched, message->hello->job);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_INSPECTION:
        printf("inspection %s\n", message->inspection->document);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_FAILURE:
        printf("failure %d %s\n", message->failure->code, message->failure->text);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_NOTE:
        printf("note %s\n", message->note->text);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_EVICTED:
        printf("evicted %s\n", message->evicted->reason);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_OUTPUT:
        for (size_t i = 0, start = 0; i < message->output->data.len; i++)
            if (message->output->data.data[i] == '\n') {
                printf("rank %u %.*s\n", message->output->rank, (int)(i - start),
                       (const char *)message->output->data.data + start);
                start = i + 1;
            }
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_VITALS:
        printf("vitals cpu=%llu output=%llu loop=%llu\n",
               (unsigned long long)message->vitals->cpu_us,
               (unsigned long long)message->vitals->output_bytes,
               (unsigned long long)message->vitals->loop_bytes);
        for (size_t i = 0; i < message->vitals->n_ranks; i++)
            printf("rank %u is %s: %s in %s\n", message->vitals->ranks[i]->rank,
                   message->vitals->ranks[i]->state, message->vitals->ranks[i]->name,
                   message->vitals->ranks[i]->wchan);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_FILE:
        printf("file %s %zu cut=%d\n", message->file->name, message->file->data.len,
               message->file->cut);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_READY:
    case DRARUN__WIRE__ENVELOPE__BODY_RANK_END:
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_DONE:
        printf("done\n");
        break;
    default:
        printf("message %d\n", message->body_case);
    }
    fflush(stdout);
}

static void on_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    (void)channel;
    printf("closed %s\n", err->text);
    fflush(stdout);
    event_base_loopbreak(arg);
}

static const char *job, *attempt;

static void ask_vitals(struct channel *channel)
{
    Drarun__Wire__VitalsRequest request = DRARUN__WIRE__VITALS_REQUEST__INIT;
    request.ranks = true;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(VITALS_REQUEST, vitals_request, &request);
    channel_send(channel, &envelope);
}

static void launch(struct channel *channel, char *command, bool collect)
{
    char *argv[] = {unconst("sh"), unconst("-c"),
                    command ? command : unconst("env; taskset -p $$")};
    char *set[] = {unconst("FROM_SPEC=spec")}, *prepend[] = {unconst("TEST_PATH=/derived")};
    char *defaults[] = {unconst("A=all"), unconst("B=all"), unconst("OWN=derived")};
    char *worker[] = {unconst("A=worker")}, *rank[] = {unconst("A=rank")};
    Drarun__Wire__Launch wire = DRARUN__WIRE__LAUNCH__INIT;
    Drarun__Wire__App app = DRARUN__WIRE__APP__INIT, *apps[] = {&app};
    Drarun__Wire__Block block = DRARUN__WIRE__BLOCK__INIT, *blocks[] = {&block};
    Drarun__Wire__Worker self = DRARUN__WIRE__WORKER__INIT, *workers[] = {&self};
    Drarun__Wire__Environment all = DRARUN__WIRE__ENVIRONMENT__INIT, of_worker = all, of_rank = all;
    Drarun__Wire__RankSetting setting = DRARUN__WIRE__RANK_SETTING__INIT, *settings[] = {&setting};
    Drarun__Wire__WorkerSetting own = DRARUN__WIRE__WORKER_SETTING__INIT;
    app.argv = argv, app.n_argv = 3;
    block.count = 2;
    all.set = set, all.n_set = 1;
    all.defaults = defaults, all.n_defaults = 3;
    all.prepend = prepend, all.n_prepend = 1;
    of_worker.defaults = worker, of_worker.n_defaults = 1;
    of_rank.defaults = rank, of_rank.n_defaults = 1;
    setting.local_rank = 1, setting.env = &of_rank, setting.cpus = unconst("0");
    own.env = &of_worker, own.ranks = settings, own.n_ranks = 1;
    wire.uid = unconst(job), wire.attempt = (uint32_t)strtoul(attempt, NULL, 10), wire.radix = 2;
    wire.apps = apps, wire.n_apps = 1;
    wire.blocks = blocks, wire.n_blocks = 1;
    wire.workers = workers, wire.n_workers = 1;
    wire.inherit_env = true, wire.start = true, wire.stdin_rank = -1;
    wire.mode = DRARUN__WIRE__LAUNCH_MODE__LAUNCH_ENV;
    wire.session_dir = unconst("drarun-by-hand");
    wire.derived = &all, wire.own = &own;
    if (collect)
        wire.collect_env = unconst("COLLECTED");
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(LAUNCH, launch, &wire);
    channel_send(channel, &envelope);
}

static void on_stdin(evutil_socket_t fd, short what, void *arg)
{
    struct channel *channel = arg;
    char text[256];
    ssize_t n = read(fd, text, sizeof text - 1);
    (void)what;
    if (n <= 0)
        _exit(0);
    text[n] = '\0';
    if (strncmp(text, "launch", 6) == 0)
        launch(channel, strchr(text, ' '), false);
    if (strncmp(text, "collect", 7) == 0)
        launch(channel, strchr(text, ' '), true);
    if (strncmp(text, "taken", 5) == 0) {
        Drarun__Wire__FileTaken taken = DRARUN__WIRE__FILE_TAKEN__INIT;
        Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(FILE_TAKEN, file_taken, &taken);
        channel_send(channel, &envelope);
    }
    if (strncmp(text, "vitals", 6) == 0)
        ask_vitals(channel);
    if (strncmp(text, "end", 3) != 0)
        return;
    Drarun__Wire__End end = DRARUN__WIRE__END__INIT;
    end.reason = unconst("told to");
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(END, end, &end);
    channel_send(channel, &envelope);
}

static void say_hello(struct channel *channel, int argc, char **argv)
{
    Drarun__Wire__Hello hello = DRARUN__WIRE__HELLO__INIT;
    hello_fill(&hello, DRARUN__WIRE__ROLE__ROLE_LAUNCHER, "");
    hello.job = argv[3];
    hello.attempt = (uint32_t)strtoul(argv[4], NULL, 10);
    hello.worker = (uint32_t)strtoul(argv[5], NULL, 10);
    hello.generation = strtoull(argv[6], NULL, 10);
    hello.look_for = hello.scripts = argv + 7;
    hello.n_look_for = hello.n_scripts = (size_t)(argc - 7);
    if (getenv("WIRE_CALLER_OPEN_NICS"))
        hello.fabric = DRARUN__WIRE__FABRIC__FABRIC_OPEN;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(HELLO, hello, &hello);
    channel_send(channel, &envelope);
}

int main(int argc, char **argv)
{
    struct drarun_error err = {0};
    struct tls_key key;
    int fd = -1;
    if (argc < 7 || key_file_read(argv[2], &key, &err) < 0 || dial_start(argv[1], &fd, &err) < 0) {
        fprintf(stderr, "wire_caller: %s\n", argc < 7 ? "too few arguments" : err.text);
        return 64;
    }
    job = argv[3], attempt = argv[4];
    alarm(TIME_LIMIT_S);
    struct event_base *base = event_base_new();
    struct tls_context *tls = tls_context_new(&key, TLS_CLIENT, &err);
    struct bufferevent *bev = tls ? tls_open_take(tls, base, fd, &err) : NULL;
    struct channel *channel =
        bev ? channel_from_bufferevent_take(bev, on_message, on_closed, base) : NULL;
    if (!channel)
        return 70;
    channel_set_explain(channel, tls_failure);
    say_hello(channel, argc, argv);
    struct event *input = event_new(base, STDIN_FILENO, EV_READ | EV_PERSIST, on_stdin, channel);
    event_add(input, NULL);
    event_base_dispatch(base);
    event_free(input);
    channel_free(channel);
    tls_context_free(tls);
    event_base_free(base);
    return 0;
}
