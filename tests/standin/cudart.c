/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for the CUDA runtime: devices of ordinary memory, streams that are threads, so that
 * work is done later than it is asked for. $STANDIN_GPUS: how many devices (4); 0: none.
 * $STANDIN_CUDA_ERROR: what cudaGetDeviceCount answers. $STANDIN_ROOM: bytes that a device has. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/standin/standin.h"

#define EXPORT __attribute__((visibility("default")))

enum {
    SUCCESS = 0,
    INVALID = 1,
    NO_MEMORY = 2,
    NO_DEVICE = 100,
    BAD_DEVICE = 101,
    NOT_READY = 600
};

struct work {
    standin_work_fn call;
    void *context;
    struct work *next;
};

struct stream {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct work *first, **end;
    bool busy, ends;
    int error;
};

static long number(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtol(text, NULL, 10) : otherwise;
}

/* ---- streams ---- */

static void *serve(void *context)
{
    struct stream *s = context;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->first && !s->ends)
            pthread_cond_wait(&s->changed, &s->lock);
        struct work *work = s->first;
        if (!work)
            break;
        s->first = work->next;
        s->end = s->first ? s->end : &s->first;
        s->busy = true;
        pthread_mutex_unlock(&s->lock);
        int error = work->call(work->context);
        free(work);
        pthread_mutex_lock(&s->lock);
        s->busy = false;
        s->error = s->error ? s->error : error;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

EXPORT int cudaStreamCreateWithFlags(struct stream **ret_stream, unsigned flags)
{
    struct stream *s = calloc(1, sizeof *s);
    (void)flags;
    if (!s)
        return NO_MEMORY;
    s->end = &s->first;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    if (pthread_create(&s->thread, NULL, serve, s) != 0) {
        free(s);
        return NO_MEMORY;
    }
    *ret_stream = s;
    return SUCCESS;
}

/* Stream 0 is made when it is first used. */
static struct stream *stream_of(struct stream *s)
{
    static struct stream *zero;
    if (!s && !zero && cudaStreamCreateWithFlags(&zero, 0) != SUCCESS)
        abort();
    return s ? s : zero;
}

EXPORT void standin_enqueue(void *stream, standin_work_fn call, void *context)
{
    struct stream *s = stream_of(stream);
    struct work *work = calloc(1, sizeof *work);
    if (!work)
        abort();
    work->call = call;
    work->context = context;
    pthread_mutex_lock(&s->lock);
    *s->end = work;
    s->end = &work->next;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

EXPORT int cudaStreamQuery(struct stream *s)
{
    s = stream_of(s);
    pthread_mutex_lock(&s->lock);
    int code = s->error ? s->error : s->first || s->busy ? NOT_READY : SUCCESS;
    pthread_mutex_unlock(&s->lock);
    return code;
}

EXPORT int cudaStreamSynchronize(struct stream *s)
{
    s = stream_of(s);
    pthread_mutex_lock(&s->lock);
    while ((s->first || s->busy) && !s->error)
        pthread_cond_wait(&s->changed, &s->lock);
    int code = s->error;
    pthread_mutex_unlock(&s->lock);
    return code;
}

EXPORT int cudaStreamDestroy(struct stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->ends = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    free(s);
    return SUCCESS;
}

/* ---- events ---- */

struct event {
    double at; /* seconds; 0: not passed */
};

static int pass(void *context)
{
    struct event *e = context;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    e->at = (double)t.tv_sec + (double)t.tv_nsec / 1e9;
    return SUCCESS;
}

EXPORT int cudaEventCreate(struct event **ret_event)
{
    *ret_event = calloc(1, sizeof **ret_event);
    return *ret_event ? SUCCESS : NO_MEMORY;
}

EXPORT int cudaEventRecord(struct event *e, struct stream *s)
{
    e->at = 0;
    standin_enqueue(s, pass, e);
    return SUCCESS;
}

EXPORT int cudaEventElapsedTime(float *milliseconds, struct event *from, struct event *to)
{
    *milliseconds = (float)((to->at - from->at) * 1e3);
    return from->at > 0 && to->at > 0 ? SUCCESS : NOT_READY;
}

EXPORT int cudaEventDestroy(struct event *e)
{
    free(e);
    return SUCCESS;
}

/* ---- devices and memory ---- */

static size_t room = SIZE_MAX;

EXPORT int cudaGetDeviceCount(int *count)
{
    *count = (int)number("STANDIN_GPUS", 4);
    int code = (int)number("STANDIN_CUDA_ERROR", SUCCESS);
    return code != SUCCESS ? code : *count ? SUCCESS : NO_DEVICE;
}

EXPORT int cudaSetDevice(int device)
{
    int count;
    cudaGetDeviceCount(&count);
    return device >= 0 && device < count ? SUCCESS : BAD_DEVICE;
}

EXPORT int cudaGetDeviceProperties(void *properties, int device)
{
    (void)device;
    memset(properties, 0, 1032); /* the real one's size */
    snprintf(properties, 256, "drarun stand-in, not a GPU");
    return SUCCESS;
}

EXPORT int cudaDeviceGetPCIBusId(char *text, int length, int device)
{
    return snprintf(text, (size_t)length, "0000:%02x:00.0", 16 + device) < length ? SUCCESS
                                                                                  : INVALID;
}

EXPORT int cudaRuntimeGetVersion(int *version)
{
    *version = 12090;
    return SUCCESS;
}

EXPORT const char *cudaGetErrorString(int error)
{
    return error == SUCCESS      ? "no error"
           : error == NO_MEMORY  ? "out of memory"
           : error == NO_DEVICE  ? "no CUDA-capable device is detected"
           : error == BAD_DEVICE ? "invalid device ordinal"
                                 : "unknown error";
}

EXPORT int cudaMemGetInfo(size_t *unused, size_t *total)
{
    room = room == SIZE_MAX ? (size_t)number("STANDIN_ROOM", 1L << 32) : room;
    *unused = *total = room;
    return SUCCESS;
}

EXPORT int cudaMalloc(void **memory, size_t bytes)
{
    *memory = aligned_alloc(256, (bytes + 255) & ~(size_t)255);
    if (*memory)
        memset(*memory, 0xa5, bytes); /* nobody may count on zeros */
    return *memory ? SUCCESS : NO_MEMORY;
}

EXPORT int cudaFree(void *memory)
{
    free(memory);
    return SUCCESS;
}

struct copy {
    void *to;
    const void *from;
    size_t bytes;
};

static int do_copy(void *context)
{
    struct copy *c = context;
    memmove(c->to, c->from, c->bytes);
    free(c);
    return SUCCESS;
}

EXPORT int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, struct stream *s)
{
    struct copy *c = malloc(sizeof *c);
    (void)kind;
    if (!c)
        return NO_MEMORY;
    *c = (struct copy){to, from, bytes};
    standin_enqueue(s, do_copy, c);
    return SUCCESS;
}
