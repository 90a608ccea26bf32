# SPDX-License-Identifier: Apache-2.0
# drarun_python_test(FILE LABEL SECONDS [LABEL...] [ALSO FILE...]): tests/FILE.py under pytest as the ctest test
# LABEL.FILE, and in the same process those behind ALSO, which share its cluster. What the single cases did goes to tests/report/FILE.xml in the build tree, where
# scripts/test reads it. Two run at a time where nothing in them measures time or load: those of the labels `node`, `bed` and
# `cluster`, which mostly wait, `oracle`, those that start no rank, and in builds with sanitizers, whose deadlines are wide, all. Others
# run alone, and so do test_kube, which ends connections at chosen moments, and test_faults, which sets the machine's clock (other
# programs' certificates are not valid then). The longest begin first.
include_guard(GLOBAL)

# Debian's own, which has Debian's pytest; not the first one in PATH
find_program(DRARUN_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(DRARUN_PYTHON NAMES python3)
if(NOT DRARUN_PYTHON)
  message(STATUS "no python3: tests of whole programs are left out (scripts/setup --test)")
endif()

# sanitizer builds are slower; tests/support/build.py knows the same factors
set(drarun_slower 1)
if(DRARUN_SANITIZE MATCHES thread)
  set(drarun_slower 10)
elseif(DRARUN_SANITIZE)
  set(drarun_slower 4)
endif()

function(drarun_python_test file label seconds)
  if(NOT DRARUN_PYTHON)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "" "ALSO")
  list(TRANSFORM arg_ALSO APPEND .py)
  set(name ${label}.${file})
  math(EXPR timeout "${seconds} * ${drarun_slower}")
  add_test(NAME ${name}
    COMMAND ${DRARUN_PYTHON} -B -m pytest -p no:cacheprovider -q -ra --tb=short
            --junitxml=${PROJECT_BINARY_DIR}/tests/report/${file}.xml ${file}.py ${arg_ALSO}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  if(file MATCHES "^test_(kube|faults$)" OR (label MATCHES "^(mpi|vm)$")
      OR NOT (DRARUN_SANITIZE OR label MATCHES "^(bed|cluster|node|oracle)$" OR "offline" IN_LIST arg_UNPARSED_ARGUMENTS))
    set(serial TRUE)
  else() # with another beside it
    set(serial FALSE)
    math(EXPR timeout "${timeout} + 180")
  endif()
  set_tests_properties(${name} PROPERTIES RUN_SERIAL ${serial}
    LABELS "${label};${arg_UNPARSED_ARGUMENTS}" TIMEOUT ${timeout} ENVIRONMENT DRARUN_BUILD=${PROJECT_BINARY_DIR}
    SKIP_REGULAR_EXPRESSION "(^|\n)[0-9]+ skipped in ")
endfunction()
