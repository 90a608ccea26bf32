/* SPDX-License-Identifier: Apache-2.0 */
/* Says on stdout what the library left behind after it was used a hundred times, from right and from
 * wrong input: nothing. */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <string>
#include <unistd.h>

#include <drarun/drarun.h>

extern char **environ;

static std::string state()
{
    std::string text;
    DIR *dir = opendir("/proc/self/fd");
    int descriptors = 0;
    while (dir && readdir(dir))
        descriptors++;
    if (dir)
        closedir(dir);
    text += "descriptors " + std::to_string(descriptors) + "\n";
    for (int signo = 1; signo < NSIG; signo++) {
        struct sigaction action;
        if (sigaction(signo, nullptr, &action) == 0 && action.sa_handler != SIG_DFL)
            text += "signal " + std::to_string(signo) + "\n";
    }
    for (char **each = environ; *each; each++)
        text += std::string(*each) + "\n";
    char folder[4096];
    return text + (getcwd(folder, sizeof folder) ? folder : "?");
}

static void check(bool right, const char *what)
{
    if (right)
        return;
    std::fprintf(stderr, "consumer: %s\n", what);
    std::exit(1);
}

static void use(const char *file)
{
    static const char wrong[] = "spec: {workers: two, image: x}";
    struct drarun_error err = {};
    struct drarun_spec *spec = nullptr;
    struct drarun_findings *findings = nullptr;
    check(drarun_spec_parse("wrong.yaml", wrong, std::strlen(wrong), nullptr, &spec, &findings, &err) < 0,
          "a wrong spec is taken");
    check(err.kind == DRARUN_ERR_SPEC && err.line == 1 && !std::strcmp(err.path, "spec.workers"),
          "its error has no place");
    check(findings && drarun_findings_count(findings) == drarun_findings_total(findings),
          "its findings are not all there");
    drarun_findings_free(findings);

    check(drarun_spec_load(file, nullptr, &spec, nullptr, nullptr) == 0, "a right spec is refused");
    struct drarun_render_options options = drarun_render_options_init();
    options.format = "json";
    char *manifests = nullptr;
    check(drarun_render(spec, &options, &manifests, nullptr) == 0 && manifests[0] == '{',
          "it is not rendered");
    drarun_free(manifests);
    struct drarun_plan *plan = nullptr;
    check(drarun_plan_build(spec, nullptr, &plan, nullptr) == 0, "it is not planned");
    drarun_plan_free(plan);
    drarun_spec_free(spec);

    struct drarun_env_options env_options = drarun_env_options_init();
    struct drarun_env *env = nullptr;
    env_options.network = "any";
    check(drarun_env_derive(&env_options, &env, nullptr) == 0, "there is no environment");
    drarun_env_free(env);
}

int main(int argc, char *argv[])
{
    check(argc == 2, "usage: consumer JOB.yaml");
    use(argv[1]); /* what libc sets up once is there now */
    std::string before = state();
    for (int i = 0; i < 100; i++)
        use(argv[1]);
    check(state() == before, "the library left something behind");
    std::printf("libdrarun %s left nothing behind\n", drarun_version());
    return 0;
}
