/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ranks/exec_head.h"

#include <elf.h>
#include <endian.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

#if __BYTE_ORDER == __LITTLE_ENDIAN
#define NATIVE_ORDER ELFDATA2LSB
#else
#define NATIVE_ORDER ELFDATA2MSB
#endif

#ifndef EM_LOONGARCH
#define EM_LOONGARCH 258
#endif

/* More program headers than any linker writes: bounds the work on a broken file. */
#define HEADERS_MAX 128

static const struct {
    uint16_t machine;
    bool native;
    const char *name;
} machines[] = {
#if defined __x86_64__
    {EM_X86_64, true, "x86_64"},   {EM_386, true, "i386"},
#else
    {EM_X86_64, false, "x86_64"},   {EM_386, false, "i386"},
#endif
#if defined __aarch64__
    {EM_AARCH64, true, "aarch64"}, {EM_ARM, true, "arm"},
#else
    {EM_AARCH64, false, "aarch64"}, {EM_ARM, false, "arm"},
#endif
    {EM_PPC64, false, "ppc64"},    {EM_RISCV, false, "riscv64"},
    {EM_S390, false, "s390x"},     {EM_LOONGARCH, false, "loongarch64"},
};

const char *exec_head_machine_name(uint16_t machine)
{
    for (size_t i = 0; i < ARRAY_LEN(machines); i++)
        if (machines[i].machine == machine)
            return machines[i].name;
    return "unknown";
}

static bool is_native(uint16_t machine)
{
    for (size_t i = 0; i < ARRAY_LEN(machines); i++)
        if (machines[i].machine == machine)
            return machines[i].native;
    return false;
}

/* "#! interpreter [argument]", as the kernel splits it. */
static void read_script(struct exec_head *head, char *text)
{
    char *line = text + 2 + strspn(text + 2, " \t");
    line[strcspn(line, " \t\n")] = '\0';
    strcpy(head->interpreter, line); // NOLINT: both arrays have one size
}

/* Offset and length of the loader's name, from a PT_INTERP of either class. */
static bool read_interp_header(int fd, uint64_t at, bool wide, uint64_t *ret_offset,
                               uint64_t *ret_length)
{
    if (wide) {
        Elf64_Phdr header;
        if (pread(fd, &header, sizeof header, (off_t)at) != (ssize_t)sizeof header)
            return false;
        *ret_offset = header.p_offset;
        *ret_length = header.p_filesz;
        return header.p_type == PT_INTERP;
    }
    Elf32_Phdr header;
    if (pread(fd, &header, sizeof header, (off_t)at) != (ssize_t)sizeof header)
        return false;
    *ret_offset = header.p_offset;
    *ret_length = header.p_filesz;
    return header.p_type == PT_INTERP;
}

static void read_loader(int fd, struct exec_head *head, const void *start)
{
    Elf64_Ehdr wide;
    Elf32_Ehdr narrow;
    memcpy(&wide, start, sizeof wide);
    memcpy(&narrow, start, sizeof narrow);
    bool is_wide = wide.e_ident[EI_CLASS] == ELFCLASS64;
    uint64_t table = is_wide ? wide.e_phoff : narrow.e_phoff;
    unsigned count = is_wide ? wide.e_phnum : narrow.e_phnum;
    unsigned size = is_wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
    for (unsigned i = 0; i < count && i < HEADERS_MAX; i++) {
        uint64_t offset, length;
        if (!read_interp_header(fd, table + (uint64_t)i * size, is_wide, &offset, &length))
            continue;
        if (length >= sizeof head->interpreter)
            return;
        ssize_t n = pread(fd, head->interpreter, length, (off_t)offset);
        head->interpreter[n > 0 ? n : 0] = '\0';
        return;
    }
}

static void read_elf(int fd, struct exec_head *head, const void *start)
{
    Elf64_Ehdr elf; /* e_type and e_machine lie alike in both classes */
    memcpy(&elf, start, sizeof elf);
    bool native_order = elf.e_ident[EI_DATA] == NATIVE_ORDER;
    uint16_t type = native_order ? elf.e_type : __builtin_bswap16(elf.e_type);
    head->machine = native_order ? elf.e_machine : __builtin_bswap16(elf.e_machine);
    head->native = native_order && is_native(head->machine);
    head->linked = type == ET_EXEC || type == ET_DYN;
    if (native_order)
        read_loader(fd, head, start);
}

void exec_head_read(int dir, const char *path, struct exec_head *head)
{
    _Alignas(Elf64_Ehdr) char start[sizeof head->interpreter];
    struct stat st;
    *head = (struct exec_head){0};
    /* O_NONBLOCK: a named pipe must not hold us */
    cleanup_close int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    ssize_t n = pread(fd, start, sizeof start - 1, 0);
    if (n < 0)
        return;
    memset(start + n, 0, sizeof start - (size_t)n);
    if (n == 0) {
        head->type = EXEC_EMPTY;
    } else if (memcmp(start, "#!", 2) == 0) {
        head->type = EXEC_SCRIPT;
        read_script(head, start);
    } else if (memcmp(start, ELFMAG, SELFMAG) == 0) {
        head->type = EXEC_ELF;
        read_elf(fd, head, start);
    } else if (memcmp(start, "\xef\xbb\xbf#!", 5) == 0) {
        head->type = EXEC_MARKED;
    } else {
        head->type = EXEC_OTHER;
    }
}
