/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "jobs/foreign/options.h"
#include "lib/base/cleanup.h"
#include "lib/base/nearest.h"

static const struct launcher {
    const char *name;
    unsigned int all;
    struct {
        const char *name;
        unsigned int one;
    } part[2];
} launchers[] = {
    {"mpirun",
     FOREIGN_MPIRUN,
     {{"Open MPI 4", FOREIGN_OPENMPI4}, {"Open MPI 5", FOREIGN_OPENMPI5}}},
    {"mpiexec", FOREIGN_HYDRA, {{"MPICH", FOREIGN_MPICH}, {"Intel MPI", FOREIGN_INTEL}}},
    {"srun", FOREIGN_SRUN, {{"", 0}, {"", 0}}},
    {"horovodrun", FOREIGN_HOROVOD, {{"", 0}, {"", 0}}},
    {"torchrun", FOREIGN_TORCHRUN, {{"", 0}, {"", 0}}},
};

unsigned int foreign_launcher(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(launchers); i++)
        if (strcmp(launchers[i].name, name) == 0)
            return launchers[i].all;
    return 0;
}

const char *foreign_launcher_name(unsigned int from)
{
    for (size_t i = 0; i < ARRAY_LEN(launchers); i++)
        if (from & launchers[i].all)
            return launchers[i].name;
    return "";
}

static void add_names(const struct foreign_option *option, unsigned int from, struct buf *out)
{
    static const char *const values[] = {"", " X", " NAME VALUE"};
    const char *at = option->words, *comma = "";
    size_t n = 0;
    for (const char *w; (w = words_next(&at, &n)); comma = ", ")
        buf_printf(out, "%s`%s%.*s%s`", comma, n == 1 || (from & FOREIGN_HYDRA) ? "-" : "--",
                   (int)n, w, values[option->values_after]);
    for (size_t i = 0; i < ARRAY_LEN(launchers); i++)
        for (size_t k = 0; from == launchers[i].all && k < 2; k++)
            if ((option->from & from) == launchers[i].part[k].one)
                buf_printf(out, " (%s)", launchers[i].part[k].name);
}

void foreign_add_cell(const char *text, struct buf *out)
{
    for (; *text; text++)
        buf_printf(out, "%s%c", *text == '|' ? "\\" : "", *text);
}

static void add_here(const struct foreign_option *option, struct buf *out)
{
    size_t length = strcspn(option->text, "=");
    switch (option->way) {
    case FOREIGN_SAME:
        buf_printf(out, "`%.*s%s%s`", (int)length, option->text, option->text[length] ? " " : "",
                   option->text[length] ? option->text + length + 1 : "");
        return;
    case FOREIGN_WHEN:
        buf_printf(out, "`%.*s %s` with the values %s", (int)length, option->text,
                   option->text + length + 1, option->values);
        return;
    case FOREIGN_VARIABLE:
        buf_printf(out, "sets the variable `%sNAME` for the program's ranks", option->text);
        return;
    case FOREIGN_ALL_VARIABLE:
        buf_printf(out, "sets the variable `%sNAME` for all ranks", option->text);
        return;
    case FOREIGN_SETS:
        buf_printf(out, "sets the variable `%s`%s for the program's ranks", option->text,
                   option->values_after ? " to X" : "");
        return;
    case FOREIGN_INHERIT:
        buf_printf(out, "the same: %s of our variables", option->text);
        return;
    case FOREIGN_CORES:
        buf_printf(out, "`%s`", option->text);
        return;
    case FOREIGN_HOSTS:
    case FOREIGN_HOSTFILE:
    case FOREIGN_PER_HOST:
        foreign_add_cell(option->text, out);
        return;
    case FOREIGN_SO:
        buf_add_str(out, "taken");
        if (option->values)
            buf_printf(out, " with the values %s, else refused", option->values);
        break;
    case FOREIGN_CLASH:
        buf_add_str(out, "another option");
        break;
    case FOREIGN_REFUSED:
        buf_add_str(out, "refused");
        break;
    }
    buf_add_str(out, ": ");
    foreign_add_cell(option->text, out);
}

void foreign_options_table(unsigned int from, struct buf *out)
{
    buf_printf(out, "| %s | drarun |\n|---|---|\n", foreign_launcher_name(from));
    for (size_t i = 0; i < foreign_option_count; i++) {
        const struct foreign_option *option = &foreign_options[i];
        if (!(option->from & from))
            continue;
        buf_add_str(out, "| ");
        add_names(option, from, out);
        buf_add_str(out, " | ");
        add_here(option, out);
        buf_add_str(out, " |\n");
    }
}
