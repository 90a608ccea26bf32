/* SPDX-License-Identifier: Apache-2.0 */
/* A line of mpirun as it is read: its words, and what becomes of them. Private to
 * jobs/import/mpirun*. */
#ifndef DRARUN_JOBS_IMPORT_MPIRUN_H
#define DRARUN_JOBS_IMPORT_MPIRUN_H

#include "jobs/import/launcher.h"
#include "jobs/import/ranks.h"

#define MPIRUN_INSTEAD                                                                             \
    "give the ranks' program behind the file (drarun import FILE -- PROGRAM), or run the "         \
    "launcher's command as it is with launch: mpirun"

/* A word of the line: its text where that is known. */
struct field {
    char *text; /* NULL: not LITERAL */
    const char *raw;
    char *culprit;
    enum shell_worth worth;
};

struct mpirun {
    struct import *im;
    const struct reader_node *node; /* of the remarks */
    const char *name;               /* as it was typed: "mpirun" */
    unsigned int from, prefer;      /* which launchers it may be, and is */
    bool inherits, inherits_said;   /* Hydra and srun: the launcher's variables */
    struct launcher_env env;
    struct import_ranks ranks;
    bool ranks_said, hosts_said;
    bool has_hostfile;         /* of the operator: /etc/mpi/hostfile */
    const char *foreign_hosts; /* a hostfile that is not at hand; borrowed from the fields */
    const char *unknown_hosts; /* a list that only the launcher's shell knows; likewise */
    const struct reader_node *pod, *own; /* the launcher's, and its container */
    struct strlist shell;                /* "/bin/bash", "-lc"; empty: no shell */
    struct strlist lines;                /* of a script before the program, where one is needed */
    bool is_login; /* the shell reads the user's profile: variables that the launcher hands on */
    bool needs_shell;
    bool exports_all; /* what the script assigns: set -a */
    struct buf directory;
    struct field *fields;
    size_t count;
    json_t *container;
    struct drarun_error *err;
};

/* -EINVAL with file and line of the launcher's command before the text. */
int mpirun_refuse(const struct mpirun *m, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds the line to those before the program. */
void mpirun_add_line_take(struct mpirun *m, struct buf *line);
/* Adds the words that one of a script becomes to the fields. */
int mpirun_expand_word(struct mpirun *m, const char *raw);
/* The value of an option; -EINVAL where it is not known, or is no number of at least 1. */
int mpirun_need_text(const struct mpirun *m, const char *option, const struct field *value,
                     const char **ret_text);
int mpirun_need_number(const struct mpirun *m, const char *option, const struct field *value,
                       uint64_t *ret_number);
const char *mpirun_base_name(const char *path);
/* Which launchers (enum foreign_launcher) the program may be; 0: it is none. */
unsigned int mpirun_known(const char *path);
void mpirun_find_launcher(struct mpirun *m, const char *path);

/* A script's simple commands, or words without a shell, quoted so that none of them is expanded. 1:
 * a program was found; 0: none. */
int mpirun_take_script(struct mpirun *m, const char *text);
int mpirun_take_words(struct mpirun *m, const struct strlist *quoted);
void mpirun_quote_words(struct mpirun *m, const struct strlist *words, struct strlist *quoted);
/* The value of a word that the script computes: $((..)), or $(..) of the hostfile; -1: not to be
 * told. */
long long mpirun_compute(struct mpirun *m, const char *word);
/* Past assignments, and words that start the next one as it is ("timeout 60"). What they change is
 * taken, or told, where m is not NULL. */
size_t mpirun_past_wrappers(struct mpirun *m, const struct strlist *words);
/* The job's total time, or less where it has less; what: "mpirun --timeout 60". */
void mpirun_take_seconds(const struct mpirun *m, const char *what, uint64_t seconds);

/* The words behind the launcher's name, as a script has them. 1: a program was found; 0: none. */
int mpirun_take_line(struct mpirun *m, const struct strlist *words, size_t first);
/* Options from fields[0] on; ret_used: how many fields they are. */
int mpirun_take_options(struct mpirun *m, size_t *ret_used);
void mpirun_change_directory(struct mpirun *m, const char *path);
/* Past the number of ranks of one program of several, from fields[i] on; ret_ranks: 0 where it is
 * not given. Returns the place of its first word, m->count where it is not known or has another
 * option. */
size_t mpirun_past_options(struct mpirun *m, size_t i, uint64_t *ret_ranks);
/* The place of the program's first word among those of a line, from words[i] on; words->count where
 * it is not known. */
size_t mpirun_find_program(struct mpirun *m, const struct strlist *words, size_t i);

/* Hosts as a list; in a file, which is the operator's own (slotsPerWorker says its slots), of a
 * ConfigMap among the manifests, or not at hand. */
int mpirun_take_hosts(struct mpirun *m, const char *option, const struct field *value);
int mpirun_take_hostfile(struct mpirun *m, const char *option, const struct field *value);

/* The words of the program begin at fields[first]. -EINVAL: there are several programs; a word is
 * not known outside of the launcher's pod. The variables that words refer to are handed on. */
int mpirun_check_one_program(struct mpirun *m, size_t first);
int mpirun_check_words(struct mpirun *m, size_t first);
/* Of a shell that the program stays in: what the manifest has for the variables that it reads,
 * before all of its lines. */
void mpirun_give_values(struct mpirun *m, size_t first);
void mpirun_take_program(struct mpirun *m, size_t first);

/* Variables of the launcher that reach the ranks: one; those of a name or "PREFIX*"; what the
 * launcher hands on without being told, and a remark on the others. */
void mpirun_take_variable(const struct mpirun *m, const char *name, const char *value);
void mpirun_take_mca(const struct mpirun *m, const char *key, const char *value);
void mpirun_hand_on(struct mpirun *m, struct launcher_variable *v);
/* Its source is a field of the launcher's pod, but for those that all pods of the job share. */
bool mpirun_is_of_launcher(const struct launcher_variable *v);
void mpirun_hand_on_name(struct mpirun *m, const char *name);
void mpirun_hand_on_rest(struct mpirun *m);

#endif
