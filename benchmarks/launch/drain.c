/* SPDX-License-Identifier: Apache-2.0 */
/* drain COMMAND...: runs the command with its stdout in a pipe, reads the lines of talk from there
 * and prints "drained BYTES TALKERS LINES TORN LOST": TORN are lines that are not as they were
 * written; where none is, LOST are those whose number was skipped. Ends with the command's status.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TALKERS_MAX 1024

static struct {
    unsigned long long name, next;
} talkers[TALKERS_MAX];
static size_t talker_count;
static unsigned long long bytes, lines, torn, lost;

static bool see(unsigned long long name, unsigned long long number)
{
    size_t i = 0;
    while (i < talker_count && talkers[i].name != name)
        i++;
    if (i == TALKERS_MAX)
        return false;
    if (i == talker_count)
        talkers[talker_count++].name = name;
    if (number < talkers[i].next)
        return false;
    lost += number - talkers[i].next;
    talkers[i].next = number + 1;
    return true;
}

/* size: without the newline. */
static bool is_whole(const char *line, size_t size)
{
    char *end;
    if (size < 21 || line[16] != ' ')
        return false;
    unsigned long long name = strtoull(line, &end, 16);
    if (end != line + 16)
        return false;
    unsigned long long number = strtoull(line + 17, &end, 10);
    if (*end != ' ')
        return false;
    unsigned long length = strtoul(end + 1, &end, 10);
    if (*end != ' ' || (size_t)(line + size - (end + 1)) != length)
        return false;
    for (unsigned long i = 0; i < length; i++)
        if (end[1 + i] != 'x')
            return false;
    return see(name, number);
}

static void drain(int fd)
{
    static char buffer[1 << 17];
    size_t kept = 0;
    for (;;) {
        ssize_t n = read(fd, buffer + kept, sizeof buffer - kept);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        bytes += (size_t)n;
        char *line = buffer, *end = buffer + kept + n, *newline;
        while ((newline = memchr(line, '\n', (size_t)(end - line)))) {
            *newline = '\0';
            lines++;
            torn += !is_whole(line, (size_t)(newline - line));
            line = newline + 1;
        }
        kept = (size_t)(end - line);
        if (kept == sizeof buffer) {
            torn++;
            kept = 0;
        }
        memmove(buffer, line, kept);
    }
    torn += kept > 0;
}

int main(int argc, char **argv)
{
    int ends[2], status;
    if (argc < 2 || pipe(ends) < 0)
        return 64;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        execvp(argv[1], argv + 1);
        perror(argv[1]);
        _exit(127);
    }
    close(ends[1]);
    drain(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return 1;
    printf("drained %llu %zu %llu %llu %llu\n", bytes, talker_count, lines, torn, torn ? 0 : lost);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
