/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the place of malloc, calloc and realloc in the program that it is linked into: by the
 * linker's --wrap if that is static, by their names if not (FAILING_ALLOC_INTERPOSED).
 *
 *   FAILING_ALLOC=DIR          each allocation's stack is appended to DIR/PROGRAM
 *   FAILING_ALLOC_AT=PROGRAM NTH FILE FRAMES...
 *                              the NTH allocation whose stack begins so gets no memory, in the
 *                              first process that comes there: it makes FILE
 *   FAILING_ALLOC_ON=1         nor do all later ones of that process
 *
 * An address outside the program is 0, several in a row are one: libraries move. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#define DEPTH 24
#define NAME_SIZE 64

#ifdef FAILING_ALLOC_INTERPOSED
#define WRAPPER(name) name
#define REAL(name) __libc_##name
#else
#define WRAPPER(name) __wrap_##name
#define REAL(name) __real_##name
void *WRAPPER(malloc)(size_t size);
void *WRAPPER(calloc)(size_t count, size_t size);
void *WRAPPER(realloc)(void *old, size_t size);
#endif
void *REAL(malloc)(size_t size);
void *REAL(calloc)(size_t count, size_t size);
void *REAL(realloc)(void *old, size_t size);

struct stack {
    uintptr_t from; /* the frames before this one are ours here */
    bool begun;
    uint32_t count;
    uint64_t frames[DEPTH];
};

struct record { /* of the file */
    uint32_t pid;
    uint32_t count;
    uint64_t frames[DEPTH];
};

enum mode {
    MODE_NONE, /* until the program has been loaded */
    MODE_TRACE,
    MODE_FAIL,
};

static enum mode mode;
static bool fail_on;
static uintptr_t base, end; /* of the program */
static char file[256];      /* what is traced to, or made */
static long nth;
static struct stack wanted;
static atomic_long passed;
static atomic_bool failing;
static _Thread_local bool within;

static uint64_t address(uintptr_t frame)
{
    return frame >= base && frame < end ? frame - base : 0;
}

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *arg)
{
    struct stack *stack = arg;
    uintptr_t frame = _Unwind_GetIP(context);
    if (frame == stack->from)
        stack->begun = true;
    uint64_t at = address(frame);
    bool again = stack->count && !at && !stack->frames[stack->count - 1];
    if (stack->begun && !again)
        stack->frames[stack->count++] = at;
    return stack->count < DEPTH ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static void write_record(const struct stack *stack)
{
    struct record record = {.pid = (uint32_t)getpid(), .count = stack->count};
    memcpy(record.frames, stack->frames, sizeof record.frames);
    int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || write(fd, &record, sizeof record) != sizeof record)
        _exit(99);
    close(fd);
}

static bool is_wanted(const struct stack *stack)
{
    return stack->count >= wanted.count &&
           memcmp(stack->frames, wanted.frames, wanted.count * sizeof *wanted.frames) == 0;
}

/* Once among all processes. */
static bool make_mark(void)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool has_turn(uintptr_t caller)
{
    struct stack stack = {.from = caller};
    if (mode == MODE_FAIL && address(caller) != wanted.frames[0])
        return false;
    _Unwind_Backtrace(add_frame, &stack);
    if (mode == MODE_TRACE) {
        write_record(&stack);
        return false;
    }
    return is_wanted(&stack) && atomic_fetch_add(&passed, 1) + 1 == nth && make_mark();
}

static bool must_fail(void *caller)
{
    int error = errno;
    if (mode == MODE_NONE || within)
        return false;
    within = true;
    bool fail = atomic_load(&failing) || has_turn((uintptr_t)caller);
    if (fail && fail_on)
        atomic_store(&failing, true);
    within = false;
    errno = fail ? ENOMEM : error;
    return fail;
}

void *WRAPPER(malloc)(size_t size)
{
    return must_fail(__builtin_return_address(0)) ? NULL : REAL(malloc)(size);
}

void *WRAPPER(calloc)(size_t count, size_t size)
{
    return must_fail(__builtin_return_address(0)) ? NULL : REAL(calloc)(count, size);
}

void *WRAPPER(realloc)(void *old, size_t size)
{
    return must_fail(__builtin_return_address(0)) ? NULL : REAL(realloc)(old, size);
}

/* The program is the first object. */
static int note_program(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size, (void)arg;
    base = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && base + part->p_vaddr + part->p_memsz > end)
            end = base + part->p_vaddr + part->p_memsz;
    }
    return 1;
}

/* By its file: it may have been started under another name. */
static const char *own_name(void)
{
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0)
        _exit(97);
    return strrchr(path, '/') + 1;
}

static void read_wanted(const char *text)
{
    char name[NAME_SIZE], *next = NULL;
    int used = 0;
    if (sscanf(text, "%63s %ld %255s%n", name, &nth, file, &used) != 3)
        _exit(98);
    if (strcmp(name, own_name()) != 0)
        return;
    for (text += used; wanted.count < DEPTH; text = next) {
        uint64_t frame = strtoull(text, &next, 16);
        if (next == text)
            break;
        wanted.frames[wanted.count++] = frame;
    }
    mode = MODE_FAIL;
}

static void __attribute__((constructor)) begin(void)
{
    const char *folder = getenv("FAILING_ALLOC"), *at = getenv("FAILING_ALLOC_AT");
    if (!folder && !at)
        return;
    dl_iterate_phdr(note_program, NULL);
    fail_on = getenv("FAILING_ALLOC_ON");
    if (at) {
        read_wanted(at);
        return;
    }
    snprintf(file, sizeof file, "%s/%s", folder, own_name());
    mode = MODE_TRACE;
}
