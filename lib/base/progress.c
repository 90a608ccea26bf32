/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/progress.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

struct progress_page *progress_open(const char *path)
{
    cleanup_close int fd = path ? open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
    bool shared = fd >= 0 && ftruncate(fd, sizeof(struct progress_page)) == 0;
    void *page = mmap(NULL, sizeof(struct progress_page), PROT_READ | PROT_WRITE,
                      shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, shared ? fd : -1, 0);
    return page == MAP_FAILED ? NULL : page;
}

void progress_step(struct progress_page *page, bool alone, const char *what)
{
    if (what)
        snprintf(page->what, sizeof page->what, "%s", what);
    __atomic_store_n(&page->alone, alone, __ATOMIC_RELAXED);
    __atomic_store_n(&page->step, page->step + 1, __ATOMIC_RELEASE);
}

bool progress_read(const char *path, struct progress_page *ret_page)
{
    struct progress_page page;
    cleanup_close int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || pread(fd, &page, sizeof page, 0) != sizeof page)
        return false;
    page.what[sizeof page.what - 1] = '\0';
    *ret_page = page;
    return true;
}
