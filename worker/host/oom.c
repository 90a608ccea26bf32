/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/oom.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cgroup.h"
#include "lib/base/cleanup.h"

/* memory.events, memory.oom_control and /proc/vmstat all hold a line "oom_kill NUMBER". */
static bool read_kills(int fd, uint64_t *ret_kills)
{
    char text[16384]; /* /proc/vmstat is the largest with less than 5 KiB */
    size_t length = 0;
    ssize_t n;
    while (length < sizeof text - 1 &&
           (n = pread(fd, text + length, sizeof text - 1 - length, (off_t)length)) > 0)
        length += (size_t)n;
    text[length] = '\0';
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "oom_kill ", 9) == 0) {
            *ret_kills = strtoull(line + 9, NULL, 10);
            return true;
        }
    }
    return false;
}

void oom_init(struct oom *oom)
{
    *oom = (struct oom){.fd = cgroup_open("memory", "memory.events", "memory.oom_control")};
    if (oom->fd < 0)
        oom->fd = open("/proc/vmstat", O_RDONLY | O_CLOEXEC);
    if (oom->fd >= 0 && !read_kills(oom->fd, &oom->answered))
        close_fd(&oom->fd);
}

void oom_done(struct oom *oom)
{
    close_fd(&oom->fd);
}

bool oom_take_kill(struct oom *oom)
{
    uint64_t kills;
    if (oom->fd < 0 || !read_kills(oom->fd, &kills) || kills <= oom->answered)
        return false;
    oom->answered++;
    return true;
}

bool oom_exempt(char before[OOM_SCORE_SIZE])
{
    static const char never[] = "-1000";
    cleanup_close int fd = open(OOM_SCORE_FILE, O_RDWR | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, before, OOM_SCORE_SIZE - 1);
    before[length > 0 ? length : 0] = '\0';
    return length > 0 && pwrite(fd, never, sizeof never - 1, 0) > 0;
}
