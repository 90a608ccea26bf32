# SPDX-License-Identifier: Apache-2.0
"""select_tests.py BUILD PATH...: the names of the ctest tests, one a line, that a change to the files or folders PATH can break.
What is compiled is judged by the build's own data: ninja's dependencies lead from a file to its objects and libraries, and the symbols
of each program say which objects the linker took for it. A unit or fuzz test is selected when its program holds such an object. A
program of ours selects the whole-program tests of PROGRAMS. FOLDERS says the same for files that are not compiled. BUILD must be built;
a file that is newer than the build is judged by what was built of it last."""
import functools
import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]

# Programs of the build, and the whole-program tests that run them, as patterns of ctest names. Files that share another's process
# (ALSO in tests/CMakeLists.txt) go by its name: test_cluster_bench is in node.test_cluster_failures.
PROGRAMS = {
    "anywhere/bin/drarun-bench": r"mpi\.test_bench(_nccl)?$|cli\.test_install|harness\.test_release|node\.test_cluster_mpi",
    "anywhere/lib/drarun/bench-mpi-mpich.so": r"mpi\.test_bench$",
    "anywhere/lib/drarun/bench-mpi-ompi.so": r"mpi\.test_bench$|node\.test_cluster_mpi",
    "anywhere/lib/drarun/bench-nccl.so": r"mpi\.test_bench_nccl",
    "bin/drarun": r"(cli|worker|mpi|soak)\.",
    "bin/drarun-attach": r"(plugin|vm|node)\.|worker\.test_static$",
    "bin/drarun-bench": r"mpi\.test_bench|cli\.test_(bench_judge|fallbacks|install|libdrarun|skew)|node\.test_cluster_(failures|accept)",
    "bin/drarun-plugin": r"plugin\.|vm\.|cluster\.test_(plugin|deploy)|cli\.test_plugin|node\.test_(plugin|cluster_(plugin|devices|failures|fallbacks|gang|skew|waiting))",
    "bin/drarun-worker": r"(cli|worker|mpi|soak|node)\.",
    "lib/drarun/bench-mpi.so": r"mpi\.test_bench|node\.test_cluster_failures",
    "lib/drarun/bench-nccl.so": r"mpi\.test_bench_nccl|node\.test_cluster_failures",
    "lib/libdrarun.so": r"cli\.test_(libdrarun|library_local|python|install|ray|notebook|skew)|unit\.test_status_document|node\.test_cluster_(jobs|kfp)",
    "libexec/drarun/drarun-cluster": r"(cluster|node)\.|cli\.test_(alloc|follow|kfp|large_job|lead|render)",
    "libexec/drarun/drarun-nvml": r"plugin\.|unit\.plugin_(nvml|xids)_test$|cluster\.test_plugin_slices|cli\.test_(install|plugin)",
    "libexec/drarun/drarun-remote": r"(worker|mpi|node)\.|cli\.test_(alloc|launcher_faults|signals)",
    "tests/failing/bin/drarun": r"worker\.test_memory_faults$",
    "tests/failing/bin/drarun-plugin": r"cluster\.test_memory_faults_plugin$",
    "tests/failing/bin/drarun-worker": r"worker\.test_memory_faults$",
    "tests/failing/libexec/drarun/drarun-remote": r"worker\.test_memory_faults$",
}

# Files that are not compiled: the first pattern that matches the path counts. None: nothing tests them.
FOLDERS = (
    (r"(tests/)?CMakeLists\.txt|CMakePresets\.json|cmake/|.*/CMakeLists\.txt", r"."),
    (r"scripts/lib/(test_summary|second_chance|alone|test_pool|machine_factor|choose_tests|measured|select_tests|mutants|executed|coverage_table|version|workflows|wrap_markdown|borders|components|walks)\.py|scripts/(test|mutate|coverage|check-commits|tree)$", r"harness\."),
    (r"tests/(mutants-|builds\.txt|unsteady\.md|skips\.txt|least-cases\.json|costs\.json)", r"harness\."),
    (r"launcher/(api|cluster|verbs)/without_bench\.c$", r"harness\.test_components"),
    (r"scripts/(docs|fetch-mkdocs|site-pictures|lib/(mkdocs\.txt|site_(links|markdown)\.py))$|docs/site/", r"harness\.test_docs"),
    (r"scripts/release$|scripts/lib/(sbom\.py|outdated\.sh)|python/absolute_links\.py|(CHANGELOG|MAINTAINERS|docs/install|python/README)\.md",
     r"harness\.test_release|cli\.test_(pages|python)|worker\.test_static"),
    (r"scripts/tidy$|\.clang-tidy$", r"harness\.test_(tidy|tools)"),
    (r"README\.md|docs/first-job\.md|examples/jobs/hello\.yaml", r"cli\.test_(pages|import)|node\.test_cluster_(examples|tutorial)"),
    (r"docs/gke\.md", r"cli\.test_pages|cluster\.test_gke"),
    (r"docs/messages\.md|scripts/message-page$", r"cli\.test_(man|pages)"),
    (r"scripts/fetch-base$|tests/base-release$", r"harness\.test_tools|cli\.test_skew|cluster\.test_skew|node\.test_cluster_skew"),
    (r"scripts/fetch-|scripts/(setup|image|lib/)", r"(harness|bed|cluster|node|vm|mpi)\."),
    (r"scripts/chart-page$|deploy/chart/README\.md|docs/node-plugin\.md", r"cluster\.test_chart|cli\.test_pages"),
    (r"[^/]*\.md|(docs|deploy|python)/.*\.md|docs/pictures/|docs/bench/nccl-tests|scripts/record", r"cli\.test_pages"),
    (r"examples/.*\.md", r"cli\.test_(pages|examples)"),
    (r"scripts/|\.ci/", None),
    (r"docs/man/", r"cli\.test_(man|install)"),
    (r"docs/schema/", r"cli\.test_(validate|render|skew)|cluster\.test_(crd|skew_objects)|unit\.spec_schema_test"),
    (r"docs/|.*/README\.md|LICENSE|\.", None),
    (r"python/", r"cli\.test_(python|ray|kfp|notebook|skew)|unit\.test_status_document|node\.test_cluster_(jobs|kfp)"),
    (r"deploy/", r"cluster\.test_(chart|deploy|rights|skew_objects)|node\.test_cluster_(plugin|controller|tutorial|skew)"),
    (r"examples/", r"cli\.test_(examples|render|validate|plan|kfp|notebook|ray)|node\.test_cluster_examples"),
    (r"benchmarks/bench/", r"mpi\.test_bench|cli\.test_bench_judge"),
    (r"benchmarks/programs/", r"mpi\.test_programs"),
    (r"benchmarks/(cluster|plugin)/", r"harness\.test_benchmarks|node\.test_cluster_failures"),
    (r"benchmarks/", r"harness\.test_benchmarks"),
    (r"include/drarun/", r"cli\.test_(libdrarun|python|man|skew)"),
    (r"tests/support/sweep\.py", r"harness\."),
    (r"tests/(conftest\.py|sanitizers/|support/)", r"(?!unit|fuzz)|unit\.test_"),
    (r"tests/(cluster|vm)/", r"(bed|cluster|node|vm)\."),
    (r"tests/cel-oracle/", r"oracle\."),
    (r"tests/foreign-api/", r"cli\.test_render_as|cluster\.test_(dry_run|chart)"),
    (r"tests/helm/", r"cluster\.test_chart|harness\.test_release"),
    (r"tests/data/import_templates\.json", r"cli\.test_import"),
    (r"tests/data/typed-lines\.txt", r"cli\.test_typed_lines"),
    (r"tests/programs/slow_reader\.c", r"node\.test_cluster_controller"),
    (r"tests/programs/", r"(cli|worker|mpi)\."),
    (r"launcher/api/", r"cli\.test_(libdrarun|skew)"),
    (r"tests/nccl/", r"cli\.test_topo"),
    (r"tests/fuzz/|.*/fuzz/steps/", r"fuzz\."),
    (r".*/fuzz/[^/]*\.dict", None),
)


class Unknown(Exception):
    pass


def local_files(program):
    """The names, without .c, of the source files whose objects the linker put into an ELF program; None where it does not say."""
    with open(program, "rb") as file:
        if file.read(5) != b"\x7fELF\x02":
            return None

        def part(offset, size):
            return os.pread(file.fileno(), size, offset)

        sections, = struct.unpack("<Q", part(0x28, 8))
        size, count = struct.unpack("<HH", part(0x3A, 4))
        headers = list(struct.iter_unpack("<IIQQQQIIQQ", part(sections, size * count)))
        for _, kind, _, _, offset, _, link, locals_, _, _ in headers:
            if kind == 2:  # SHT_SYMTAB: its local symbols come first
                strings = part(headers[link][4], headers[link][5])
                symbols = part(offset, 24 * locals_)
                # st_info, the byte after st_name, has the type in its low half: STT_FILE is 4
                names = [int.from_bytes(symbols[i - 4:i], "little") for i in range(4, len(symbols), 24) if symbols[i] == 4]
                return {strings[name:strings.index(b"\0", name)].decode().partition(".")[0] for name in names}
    return None


class Graph:
    """Who is made of whom in a ninja build; files are absolute paths."""

    def __init__(self, build):
        self.build = build
        self.made_of = {}  # output: its explicit and implicit inputs
        self.used_by = {}
        self.linked = set()  # programs and shared libraries
        self._read_rules()
        self._read_deps()

    def absolute(self, name):
        return os.path.normpath(os.path.join(self.build, name))

    def _add(self, output, inputs):
        self.made_of.setdefault(output, []).extend(inputs)
        for each in inputs:
            self.used_by.setdefault(each, set()).add(output)

    def _read_rules(self):
        for line in (self.build / "build.ninja").read_text().splitlines():
            if not line.startswith("build "):
                continue
            words = re.sub(r"\$(.)", r"\1", line.replace("${cmake_ninja_workdir}", ""))[len("build "):]
            outputs, _, inputs = words.partition(": ")
            rule, *inputs = inputs.split(" || ")[0].split()
            if rule == "phony":
                continue
            made = [self.absolute(each) for each in outputs.split() if each != "|"]
            self._add(made[0], [self.absolute(each) for each in inputs if each != "|"])
            for other in made[1:]:
                self._add(other, [made[0]])
            if "EXECUTABLE_LINKER" in rule or "SHARED_LIBRARY_LINKER" in rule or "MODULE_LIBRARY_LINKER" in rule:
                self.linked.update(made)

    def _read_deps(self):
        text = subprocess.run(["ninja", "-C", self.build, "-t", "deps"], stdout=subprocess.PIPE, text=True, check=True).stdout
        output, inputs = None, []
        for line in text.splitlines():
            if line.startswith("    "):
                if not line.startswith("    /usr/"):
                    inputs.append(self.absolute(line.strip()))
            elif line:
                output, inputs = self.absolute(line.partition(": #deps")[0]), []
            elif output:
                self._add(output, inputs)
                output = None

    def objects_from(self, path):
        """The objects that change with a file, also by way of files that are generated from it."""
        found, seen, queue = set(), set(), [path]
        while queue:
            each = queue.pop()
            if each in seen:
                continue
            seen.add(each)
            if each.endswith(".o"):
                found.add(each)
            else:
                queue.extend(user for user in self.used_by.get(each, ()) if user not in self.linked and not user.endswith(".a"))
        return found

    @functools.cached_property
    def holders(self):
        """{object: the programs and shared libraries that the linker put it into}"""
        found = {}
        for program in self.linked:
            files = local_files(program) if os.path.exists(program) else None
            for each in self.made_of[program]:
                if each.endswith(".o"):
                    found.setdefault(each, set()).add(program)
                elif each.endswith(".a"):
                    for member in self.made_of.get(each, ()):
                        if files is None or os.path.basename(member).partition(".")[0] in files:
                            found.setdefault(member, set()).add(program)
        return found

    def products(self, objects):
        """The programs and shared libraries that hold one of the objects, or are linked with a shared library that does."""
        found = set().union(*(self.holders.get(each, ()) for each in objects))
        queue = list(found)
        while queue:
            for user in self.used_by.get(queue.pop(), ()):
                if user not in found and (user in self.linked or ".so" in user):
                    found.add(user)
                    queue.append(user)
        return found


class Tests:
    """The tests that ctest knows."""

    def __init__(self, build):
        text = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"],
                              stdout=subprocess.PIPE, text=True, check=True).stdout
        self.commands, self.labels = {}, {}
        for test in json.loads(text)["tests"]:
            self.commands[test["name"]] = test.get("command", [])
            self.labels[test["name"]] = next((each["value"] for each in test["properties"] if each["name"] == "LABELS"), ())

    def matching(self, pattern):
        return {name for name in self.commands if re.match(pattern, name)} if pattern else set()

    def labelled(self, label):
        return {name for name, labels in self.labels.items() if label in labels}

    def of_program(self, program):
        return {name for name, command in self.commands.items() if program in command[:1]}

    def given(self, path):
        """Tests with the file, or a folder that it is in, among the arguments."""
        return {name for name, command in self.commands.items()
                if any(path == word or path.startswith(word + "/") for word in command[1:] if word.startswith("/"))}

    def of_file(self, test_file):
        return {name for name, command in self.commands.items() if test_file in command}


class Python:
    """What the test files under tests/ import and mention."""

    def __init__(self):
        self.tests = SOURCE / "tests"
        self.texts = {file: file.read_text() for file in [*self.tests.glob("*.py"), *(self.tests / "support").rglob("*.py")]}

    @functools.cached_property
    def used_by(self):
        """{file: those that import it, and test files with a fixture that needs it}"""
        fixtures, found = self._fixtures(self.tests / "conftest.py"), {}
        for file, text in self.texts.items():
            if file.name == "conftest.py":
                continue
            modules = set(self._imports(file).values())
            if file.name.startswith("test_"):
                words = set(re.findall(r"\w+", " ".join(re.findall(r"def \w+\(([^)]*)", text))))
                modules = modules.union(*(fixtures.get(word, ()) for word in words))
            for module in modules:
                found.setdefault(module, set()).add(file)
        return found

    def _imports(self, file):
        """{name in the file: the file of ours that it is or comes from}"""
        found = {}
        for dots, module, names in re.findall(r"^ *from (\.*)([\w.]*) import (\([^)]*\)|.*)", self.texts[file], re.M):
            base = file.parents[len(dots) - 1] if dots else self.tests
            base = base.joinpath(*module.split(".")) if module else base
            for name in re.findall(r"\w+", re.sub(r"#.*|\bas \w+", "", names)):
                for path in (base / f"{name}.py", base / name / "__init__.py", base.with_suffix(".py"), base / "__init__.py"):
                    if path in self.texts:
                        found[name] = path
                        break
        return found

    def _fixtures(self, conftest):
        """{fixture: the files of ours that it needs}, by way of other fixtures too"""
        imports = self._imports(conftest)
        bodies = {name: body for name, body in re.findall(r"^def (\w+)(.*\n(?:[ \n].*\n?)*)", self.texts[conftest], re.M)}
        needs = {}

        def of(name):
            if name not in needs:
                needs[name] = set()
                words = set(re.findall(r"\w+", bodies[name]))
                needs[name] = {imports[word] for word in words if word in imports}.union(
                    *(of(word) for word in words if word in bodies and word != name))
            return needs[name]

        return {name: of(name) for name in bodies}

    def using(self, files):
        """The test files among files, and those that import one of them, directly or not."""
        found, queue = set(files), list(files)
        while queue:
            for user in self.used_by.get(queue.pop(), ()):
                if user not in found:
                    found.add(user)
                    queue.append(user)
        return {file for file in found if file.name.startswith("test_")}

    @functools.cached_property
    def mentions(self):
        """{word, or file name with and without its suffix: the files with it}"""
        found = {}
        for file, text in self.texts.items():
            for word in set(re.findall(r"[\w-]+(?:\.[\w-]+)*", text)):
                found.setdefault(word, set()).add(file)
                found.setdefault(word.partition(".")[0], set()).add(file)
        return found

    @functools.cache
    def mentioning(self, word):
        """Test files with the word in them or in what they import."""
        return self.using(self.mentions.get(word, ()))


class Selection:
    def __init__(self, build):
        self.graph, self.tests = Graph(build), Tests(build)

    @functools.cached_property
    def python(self):
        return Python()

    def of_test_files(self, files):
        return set().union(*(self.tests.of_file(file.name) for file in files))

    @functools.cache
    def of_program(self, program):
        name = os.path.relpath(program, self.graph.build)
        name = re.sub(r"\.so[.\d]*$", ".so", name)
        if name in PROGRAMS:
            return self.tests.matching(PROGRAMS[name])
        found = self.tests.of_program(program)
        if not found and not name.startswith("bin/bench/"):
            found = self.of_test_files(self.python.mentioning(Path(name).name.partition(".")[0]))
        return found

    def of_compiled(self, path):
        """None where the build does not use the file."""
        if path not in self.graph.used_by:
            return None
        return set().union(*map(self.of_program, self.graph.products(self.graph.objects_from(path))))

    def of_tests_folder(self, path, name):
        """Of what lies in tests/ and is not compiled; None where nothing names it."""
        if re.fullmatch(r"tests/test_\w+\.py", name):
            return self.tests.of_file(path.name)
        if re.fullmatch(r"tests/support/.*\.py", name):
            return self.of_test_files(self.python.using({path}))
        if name.startswith("tests/data/") and len(path.relative_to(SOURCE).parts) > 3:
            folder = path.relative_to(SOURCE).parts[2]
            return self.of_test_files(self.python.mentioning(folder)) | self.of_test_files(self.python.mentioning(path.name))
        if name.startswith("tests/regress/"):
            of_field = [file for file in self.python.texts if file.name.startswith("test_field_")]
            return self.of_test_files(self.python.mentioning(path.relative_to(SOURCE).parts[2]) or of_field)
        if name.startswith(("tests/programs/", "tests/standin/")):
            return self.of_test_files(self.python.mentioning(path.name) | self.python.mentioning(path.stem))
        return None

    def of(self, name):
        path = Path(os.path.abspath(name))
        try:
            relative = str(path.relative_to(SOURCE))
        except ValueError:
            raise Unknown(f"{name}: not a file of {SOURCE}") from None
        if path.is_dir():
            listed = subprocess.run(["git", "-C", SOURCE, "ls-files", "-co", "--exclude-standard", "--", relative],
                                    stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
            if not listed:
                raise Unknown(f"{name}: the folder has no files")
            return set().union(*(self.of(SOURCE / each) for each in listed))
        compiled = self.of_compiled(str(path))
        if compiled is None and not path.exists():
            raise Unknown(f"{name}: no such file, and none of which {self.graph.build} was built")
        if "/test/" in relative and not compiled:  # what a unit test reads
            compiled = self.tests.labelled(relative.partition("/test/")[0])
        found = [each for each in (compiled, self.tests.given(str(path)), self.of_tests_folder(path, relative)) if each]
        if found:
            return set().union(*found)
        for pattern, tests in FOLDERS:
            if re.match(pattern, relative):
                return self.tests.matching(tests)
        if compiled is None:
            raise Unknown(f"{name}: neither compiled in {self.graph.build} nor in FOLDERS of scripts/lib/select_tests.py; "
                          "build again where the file is new, else say there what tests it")
        return set()


def main(arguments):
    if len(arguments) < 2:
        print("usage: select_tests.py BUILD PATH...", file=sys.stderr)
        return 64
    build = Path(arguments[0]).resolve()
    if not (build / ".ninja_deps").exists():
        print(f"select_tests.py: {build}: not a build tree of ninja that was built: cmake --preset dev && cmake --build --preset dev",
              file=sys.stderr)
        return 66
    selection = Selection(build)
    found, status = set(), 0
    for name in arguments[1:]:
        try:
            found |= selection.of(name)
        except Unknown as unknown:
            print(f"select_tests.py: {unknown}", file=sys.stderr)
            status = 66
    if status == 0:
        print("\n".join(sorted(found)), end="\n" if found else "")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
