// SPDX-License-Identifier: Apache-2.0
/* Linked into every program of a build with DRARUN_COVERAGE, with --wrap for each function that it
   replaces. libgcov writes the counts in a destructor, which _exit does not run. Before an exec it
   writes them once; a child that shares its parent's memory (vfork) would then keep the parent from
   ever writing again, so the counts begin anew here. */
#include <unistd.h>

void __gcov_dump(void);
void __gcov_reset(void);
_Noreturn void __real__exit(int status);
_Noreturn void __wrap__exit(int status);
int __wrap___gcov_execv(const char *path, char *const argv[]);
int __wrap___gcov_execve(const char *path, char *const argv[], char *const envp[]);
int __wrap___gcov_execvp(const char *path, char *const argv[]);

void __wrap__exit(int status)
{
    __gcov_dump();
    __real__exit(status);
}

static void write_and_begin_anew(void)
{
    __gcov_dump();
    __gcov_reset();
}

int __wrap___gcov_execv(const char *path, char *const argv[])
{
    write_and_begin_anew();
    return execv(path, argv);
}

int __wrap___gcov_execve(const char *path, char *const argv[], char *const envp[])
{
    write_and_begin_anew();
    return execve(path, argv, envp);
}

int __wrap___gcov_execvp(const char *path, char *const argv[])
{
    write_and_begin_anew();
    return execvp(path, argv);
}
