/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/completion.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "jobs/foreign/options.h"
#include "launcher/run/options.h"
#include "launcher/verbs/verbs.h"
#include "lib/base/cleanup.h"
#include "lib/base/nearest.h"

#define SHELLS "bash zsh fish"
#define COLLECTIVES                                                                                \
    "all_reduce all_gather reduce_scatter broadcast reduce alltoall "                              \
    "alltoallv gather scatter sendrecv hypercube barrier"
#define JOBS "drarun list -o name 2>/dev/null"
#define NAMESPACES "kubectl get namespaces -o name 2>/dev/null | cut -d/ -f2"

/* What may stand where a value or an argument does. */
enum what { NOTHING = 0, A_WORD, A_FILE, A_FOLDER, A_JOB, A_NAMESPACE, A_PROGRAM };

static enum what value_of(const struct option_spec *spec)
{
    if (strcmp(spec->name, "namespace") == 0)
        return A_NAMESPACE;
    if (!spec->choices)
        return NOTHING;
    return strcmp(spec->choices, "FILE") == 0  ? A_FILE
           : strcmp(spec->choices, "DIR") == 0 ? A_FOLDER
                                               : A_WORD;
}

static enum what argument_of(const struct verb *verb)
{
    const char *arguments = verb->arguments ? verb->arguments : "";
    return strstr(arguments, "COLLECTIVE")      ? A_WORD
           : islower((unsigned char)*arguments) ? A_WORD
           : strncmp(arguments, "FILE", 4) == 0 ? A_FILE
           : strstr(arguments, "PROGRAM")       ? A_PROGRAM
           : strstr(arguments, "JOB")           ? A_JOB
           : strstr(arguments, "FILE")          ? A_FILE
                                                : NOTHING;
}

static void each_verb(void (*fn)(const struct verb *verb, struct buf *out), struct buf *out)
{
    for (const struct verb_group *group = verb_groups; group->title; group++)
        for (const struct verb *const *verb = group->verbs; *verb; verb++)
            fn(*verb, out);
}

/* What may follow where argument_of is A_WORD: "mpi|torchrun|...", or what `drarun bench` begins
 * with. */
static char *argument_words(const struct verb *verb)
{
    struct buf words = BUF_INIT;
    if (verb->arguments && islower((unsigned char)*verb->arguments)) {
        for (const char *at = verb->arguments; *at; at++)
            buf_add(&words, *at == '|' ? " " : at, 1);
        return buf_take(&words);
    }
    buf_add_str(&words, COLLECTIVES);
    for (size_t i = 0; verb->parts && verb->parts[i]; i++)
        buf_printf(&words, " %s", verb_part_word(verb->parts[i]));
    return buf_take(&words);
}

/* fn for each option of `run` with a value, ours and those of other launchers: before the program's
 * name it is not the program. */
static void each_valued(void (*fn)(const char *word, int values, struct buf *out), struct buf *out)
{
    char word[64];
    for (size_t i = 0; i < run_option_table.count; i++) {
        const struct option_spec *spec = &run_option_table.list[i];
        if (!spec->group || !spec->value)
            continue;
        snprintf(word, sizeof word, "--%s", spec->name);
        fn(word, 1, out);
        if (spec->letter) {
            snprintf(word, sizeof word, "-%c", spec->letter);
            fn(word, 1, out);
        }
    }
    for (size_t i = 0; i < foreign_option_count; i++) {
        const struct foreign_option *option = &foreign_options[i];
        const char *at = option->words;
        size_t n = 0;
        if (option->values_after == 0 || option->way == FOREIGN_REFUSED ||
            option->way == FOREIGN_CLASH)
            continue;
        for (const char *w; (w = words_next(&at, &n));) {
            snprintf(word, sizeof word, "-%.*s", (int)n, w);
            fn(word, option->values_after, out);
            snprintf(word, sizeof word, "--%.*s", (int)n, w);
            if (n > 1)
                fn(word, option->values_after, out);
        }
    }
}

static void add_name(const struct verb *verb, struct buf *out)
{
    buf_printf(out, " %s", verb->name);
}

/* ---- bash and zsh: functions that answer are the shell's, the cases are the same ---- */

static const char bash_begin[] =
    "# bash completion for drarun; load with: source <(drarun completion bash)\n"
    "# Not compgen -W: it expands what others have put into their names.\n"
    "_drarun_words() {\n"
    "  local IFS=$' \\t\\n' word words\n"
    "  read -r -d '' -a words <<<\"$1\"\n"
    "  for word in \"${words[@]}\"; do [[ $word == \"$cur\"* ]] && COMPREPLY+=(\"$word\"); done\n"
    "  ((${#COMPREPLY[@]}))\n"
    "}\n"
    "# Names may hold spaces; what was typed of them may be quoted.\n"
    "_drarun_names() {\n"
    "  local name typed=${cur#[\\\"\\']}\n"
    "  while IFS= read -r name; do COMPREPLY+=(\"$name\"); done < <(compgen \"$@\" -- "
    "\"${typed//\\\\/}\")\n"
    "}\n"
    "_drarun_files() { _drarun_names -f; }\n"
    "_drarun_folders() { _drarun_names -d; }\n"
    "_drarun_programs() { _drarun_names -c -X '_*'; _drarun_names -f; }\n"
    "_drarun()\n{\n"
    "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
    "  local verb=run found= skip=0 word\n"
    "  # bash splits --option=value into three words\n"
    "  if [ \"$cur\" = '=' ]; then cur=; elif [ \"$prev\" = '=' ]; then "
    "prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
    "  COMPREPLY=()\n"
    "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n";
static const char bash_end[] = "}\ncomplete -o filenames -F _drarun drarun\n";

static const char zsh_begin[] =
    "#compdef drarun\n"
    "# zsh completion for drarun: drarun completion zsh >\"${fpath[1]}/_drarun\"\n"
    "_drarun_words() { compadd -- ${=1} }\n"
    "_drarun_files() { _files }\n"
    "_drarun_folders() { _files -/ }\n"
    "_drarun_programs() { _command_names -e; _files }\n"
    "_drarun()\n{\n"
    "  local cur=${words[CURRENT]} prev=${words[CURRENT-1]}\n"
    "  local verb=run found= skip=0 word\n"
    "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n";
static const char zsh_end[] = "}\nif [ \"$funcstack[1]\" = _drarun ]; then _drarun \"$@\"; else "
                              "compdef _drarun drarun; fi\n";

static void add_answer(enum what what, const char *words, struct buf *out)
{
    switch (what) {
    case NOTHING:
        buf_add_str(out, ":");
        return;
    case A_WORD:
        buf_printf(out, "_drarun_words \"%s\"", words);
        return;
    case A_FILE:
        buf_add_str(out, "_drarun_files");
        return;
    case A_FOLDER:
        buf_add_str(out, "_drarun_folders");
        return;
    case A_JOB:
        buf_add_str(out, "_drarun_words \"$(" JOBS ")\"");
        return;
    case A_NAMESPACE:
        buf_add_str(out, "_drarun_words \"$(" NAMESPACES ")\"");
        return;
    case A_PROGRAM:
        buf_add_str(out, "_drarun_programs");
        return;
    }
}

static void add_value_cases(const struct verb *verb, struct buf *out)
{
    for (size_t i = 0; i < verb->options->count; i++) {
        const struct option_spec *spec = &verb->options->list[i];
        const char *at = spec->aliases;
        size_t n = 0;
        if (!spec->group || !spec->value)
            continue;
        buf_printf(out, "    %s:--%s", verb->name, spec->name);
        if (spec->letter)
            buf_printf(out, "|%s:-%c", verb->name, spec->letter);
        for (const char *w; (w = words_next(&at, &n));)
            buf_printf(out, "|%s:%.*s", verb->name, (int)n, w);
        buf_add_str(out, ") ");
        add_answer(value_of(spec), spec->choices, out);
        buf_add_str(out, "; return ;;\n");
    }
}

static void add_option_case(const struct verb *verb, struct buf *out)
{
    buf_printf(out, "      %s) _drarun_words \"", verb->name);
    for (size_t i = 0; i < verb->options->count; i++)
        if (verb->options->list[i].group)
            buf_printf(out, "--%s ", verb->options->list[i].name);
    buf_add_str(out, "\" ;;\n");
}

static void add_argument_case(const struct verb *verb, struct buf *out)
{
    cleanup_free char *words = argument_words(verb);
    buf_printf(out, "    %s) ", verb->name);
    add_answer(argument_of(verb), words ? words : COLLECTIVES, out);
    buf_add_str(out, " ;;\n");
}

static void add_names(struct buf *out)
{
    buf_add_str(out, VERB_OTHERS);
    each_verb(add_name, out);
}

static void add_valued_case(const char *word, int values, struct buf *out)
{
    buf_printf(out, "      run:%s) skip=%d ;;\n", word, values);
}

/* Sets verb, to "program" behind the name of a program, whose arguments are not ours. In bash, "="
 * and ":" within a value are words of their own. */
static void add_loop(struct buf *out)
{
    buf_add_str(out,
                "    if [ $skip -gt 0 ]; then\n"
                "      [ \"$word\" = '=' ] || skip=$((skip - 1))\n"
                "      continue\n"
                "    fi\n"
                "    if [ -z \"$found\" ]; then\n"
                "      case $word in\n"
                "        --namespace|--context|--kubeconfig) skip=1; continue ;;\n"
                "        -v|-vv|--verbose|-q|--quiet|--namespace=*|--context=*|--kubeconfig=*) "
                "continue ;;\n"
                "      esac\n"
                "      found=1\n"
                "      case \" ");
    add_names(out);
    buf_add_str(out, " \" in *\" $word \"*) verb=$word; continue ;; esac\n"
                     "    fi\n"
                     "    case $verb:$word in\n"
                     "      program::) verb=run ;;\n"
                     "      run:=|run::) skip=1 ;;\n");
    each_valued(add_valued_case, out);
    buf_add_str(out, "      run:-*|join:-*|run:*.yaml|run:*.yml|run:*.json) ;;\n"
                     "      run:*|join:*) verb=program ;;\n"
                     "    esac\n"
                     "  done\n");
}

static void add_cases(struct buf *out)
{
    add_loop(out);
    buf_add_str(out, "  case $verb:$prev in\n");
    each_verb(add_value_cases, out);
    buf_add_str(out, "  esac\n"
                     "  case $cur in -*)\n"
                     "    case $verb in\n");
    each_verb(add_option_case, out);
    buf_add_str(out, "    esac\n"
                     "    return ;;\n"
                     "  esac\n"
                     "  if [ -z \"$found\" ]; then\n"
                     "    _drarun_words \"");
    add_names(out);
    buf_add_str(out, "\" || _drarun_programs\n"
                     "    _drarun_files\n"
                     "    return\n"
                     "  fi\n"
                     "  case $verb in\n"
                     "    help) _drarun_words \"");
    add_names(out);
    buf_add_str(out, " mpirun mpiexec srun horovodrun torchrun\" ;;\n"
                     "    completion) _drarun_words \"" SHELLS "\" ;;\n");
    each_verb(add_argument_case, out);
    buf_add_str(out, "    program) _drarun_files ;;\n"
                     "  esac\n");
}

/* ---- fish ---- */

static const char fish_begin[] =
    "# fish completion for drarun: drarun completion fish | source\n"
    "# The verb of the line; \"\" where it is still to come, \"program\" behind a program's name.\n"
    "function __drarun_verb\n"
    "  set -l skip 0\n"
    "  set -l verb\n"
    "  for word in (commandline -opc)[2..-1]\n"
    "    if test $skip -gt 0; set skip (math $skip - 1); continue; end\n"
    "    if test -z \"$verb\"\n"
    "      switch $word\n"
    "        case --namespace --context --kubeconfig; set skip 1; continue\n"
    "        case -v -vv --verbose -q --quiet '--namespace=*' '--context=*' '--kubeconfig=*'; "
    "continue\n"
    "      end\n"
    "      if contains -- $word $__drarun_verbs; set verb $word; continue; end\n"
    "      set verb run\n"
    "    end\n"
    "    switch $verb:$word\n"
    "      case 'program::'; set verb run\n"
    "      case $__drarun_valued; set skip 1\n"
    "      case $__drarun_pairs; set skip 2\n"
    "      case 'run:-*' 'join:-*' 'run:*.yaml' 'run:*.yml' 'run:*.json'\n"
    "      case 'run:*' 'join:*'; set verb program\n"
    "    end\n"
    "  end\n"
    "  echo $verb\n"
    "end\n"
    "function __drarun_is\n"
    "  set -l verb (__drarun_verb)\n"
    "  contains -- \"$verb\" $argv\n"
    "end\n"
    "complete -c drarun -f\n";

static void add_quoted(const char *text, struct buf *out)
{
    buf_add_str(out, "'");
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            buf_add_str(out, "\\");
        buf_add(out, *text == '\n' ? " " : text, 1);
    }
    buf_add_str(out, "'");
}

static void add_fish_answer(enum what what, const char *words, struct buf *out)
{
    switch (what) {
    case NOTHING:
        return;
    case A_WORD:
        buf_add_str(out, " -a ");
        add_quoted(words, out);
        return;
    case A_FILE:
    case A_PROGRAM:
        buf_add_str(out, " -F");
        return;
    case A_FOLDER:
        buf_add_str(out, " -a '(__fish_complete_directories)'");
        return;
    case A_JOB:
        buf_add_str(out, " -a '(" JOBS ")'");
        return;
    case A_NAMESPACE:
        buf_add_str(out, " -a '(" NAMESPACES ")'");
        return;
    }
}

static void add_fish_option(const char *verb, const struct option_spec *spec, struct buf *out)
{
    bool run = strcmp(verb, "run") == 0; /* the word may be left out */
    buf_printf(out, "complete -c drarun -n '__drarun_is %s%s' -l %s", verb, run ? " \"\"" : "",
               spec->name);
    if (spec->letter)
        buf_printf(out, " -s %c", spec->letter);
    if (spec->value) {
        enum what what = value_of(spec);
        buf_add_str(out, what == A_FILE ? " -r" : " -x");
        add_fish_answer(what, spec->choices, out);
    }
    buf_add_str(out, " -d ");
    add_quoted(spec->help, out);
    buf_add_str(out, "\n");
}

static void add_fish_verb(const struct verb *verb, struct buf *out)
{
    buf_printf(out, "complete -c drarun -n '__drarun_is \"\"' -a %s -d ", verb->name);
    add_quoted(verb->brief ? verb->brief : "", out);
    buf_add_str(out, "\n");
    enum what what = argument_of(verb);
    if (what != NOTHING) {
        cleanup_free char *words = argument_words(verb);
        buf_printf(out, "complete -c drarun -n '__drarun_is %s'", verb->name);
        add_fish_answer(what, words ? words : COLLECTIVES, out);
        buf_add_str(out, "\n");
    }
    for (size_t i = 0; i < verb->options->count; i++)
        if (verb->options->list[i].group)
            add_fish_option(verb->name, &verb->options->list[i], out);
}

static void add_fish_valued(const char *word, int values, struct buf *out)
{
    if (values == 1)
        buf_printf(out, " run:%s", word);
}

static void add_fish_pair(const char *word, int values, struct buf *out)
{
    if (values == 2)
        buf_printf(out, " run:%s", word);
}

static void add_fish(struct buf *out)
{
    buf_add_str(out, "set -g __drarun_verbs ");
    add_names(out);
    buf_add_str(out, "\nset -g __drarun_valued");
    each_valued(add_fish_valued, out);
    buf_add_str(out, "\nset -g __drarun_pairs");
    each_valued(add_fish_pair, out);
    buf_add_str(out, "\n");
    buf_add_str(out, fish_begin);
    each_verb(add_fish_verb, out);
    buf_add_str(out, "complete -c drarun -n '__drarun_is \"\"' -F -a '" VERB_OTHERS "'\n"
                     "complete -c drarun -n '__drarun_is program' -F\n"
                     "complete -c drarun -n '__drarun_is completion' -a '" SHELLS "'\n"
                     "complete -c drarun -n '__drarun_is help' -a \"$__drarun_verbs\"\n");
}

int completion_script(const char *shell, struct buf *out)
{
    bool zsh = strcmp(shell, "zsh") == 0;
    if (!words_has(SHELLS, shell))
        return -EINVAL;
    if (strcmp(shell, "fish") == 0) {
        add_fish(out);
        return 0;
    }
    buf_add_str(out, zsh ? zsh_begin : bash_begin);
    add_cases(out);
    buf_add_str(out, zsh ? zsh_end : bash_end);
    return 0;
}
