# SPDX-License-Identifier: Apache-2.0
# drarun_python_test(FILE LABEL SECONDS [LABEL...] [ALONE] [ALSO FILE...] [AS NAME] [CASES OPTION...]): tests/FILE.py under
# pytest as the ctest test LABEL.NAME; NAME is FILE unless given. The files behind ALSO run in the same process and share
# its cluster or guest. CASES: pytest's options that choose some. SECONDS is the timeout on an idle machine in the default
# build. The results of the single cases go to tests/report/NAME.xml in the build tree, wall and CPU time to
# tests/report/NAME.cost.json; scripts/test reads both.
#
# scripts/test runs several programs at a time: tests/costs.json says how much CPU each of them takes, as a share of one
# core, and the property PROCESSORS reserves it, in eighths of a core. The longest start first. A program that is not in
# that file yet is taken to use one core. ALONE is for programs that measure time or change the machine.
include_guard(GLOBAL)

# Debian's own, which has Debian's pytest; not the first one in PATH
find_program(DRARUN_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(DRARUN_PYTHON NAMES python3)
if(NOT DRARUN_PYTHON)
  message(STATUS "no python3: tests of whole programs are left out (scripts/setup --test)")
endif()

# sanitizer builds are slower; tests/support/build.py knows the same factors
set(drarun_slower 1)
set(drarun_cost_mark "") # of this build's programs in tests/costs.json, as scripts/lib/test_pool.py calls them
if(DRARUN_SANITIZE MATCHES thread)
  set(drarun_slower 10)
  set(drarun_cost_mark @tsan)
elseif(DRARUN_SANITIZE)
  set(drarun_slower 4)
  set(drarun_cost_mark @asan)
endif()

set(drarun_slots_per_core 8)
set(drarun_costs_file ${PROJECT_SOURCE_DIR}/tests/costs.json)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${drarun_costs_file})
file(READ ${drarun_costs_file} drarun_costs)

# drarun_test_cost(NAME): sets PROCESSORS and COST of a test as it was measured.
function(drarun_test_cost name)
  set(key ${name}${drarun_cost_mark})
  string(JSON wall ERROR_VARIABLE error GET "${drarun_costs}" ${key} wall_s)
  if(error)
    set(wall 30)
    set(share 100)
  else()
    string(JSON share GET "${drarun_costs}" ${key} cpu_percent)
  endif()
  math(EXPR slots "(${share} * ${drarun_slots_per_core} + 99) / 100")
  if(slots LESS 1)
    set(slots 1)
  endif()
  if(name MATCHES "^vm\\.")
    math(EXPR wall "${wall} + 1000") # first: while smaller programs wait, ctest never has this many slots free
  endif()
  set_tests_properties(${name} PROPERTIES PROCESSORS ${slots} COST ${wall})
endfunction()

function(drarun_python_test file label seconds)
  if(NOT DRARUN_PYTHON)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 3 arg "ALONE" "AS" "ALSO;CASES")
  list(TRANSFORM arg_ALSO APPEND .py)
  if(NOT arg_AS)
    set(arg_AS ${file})
  endif()
  set(name ${label}.${arg_AS})
  set(report ${PROJECT_BINARY_DIR}/tests/report/${arg_AS})
  set(load 1)
  if(NOT arg_ALONE)
    set(load 3) # by how much programs beside it may slow it down
  endif()
  math(EXPR timeout "${seconds} * ${drarun_slower} * ${load}")
  add_test(NAME ${name}
    COMMAND ${DRARUN_PYTHON} -B ${PROJECT_SOURCE_DIR}/scripts/lib/measured.py ${report}.cost.json
            ${DRARUN_PYTHON} -B -m pytest -p no:cacheprovider -q -ra --tb=short --durations=8
            --junitxml=${report}.xml ${file}.py ${arg_ALSO} ${arg_CASES}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES RUN_SERIAL ${arg_ALONE}
    LABELS "${label};${arg_UNPARSED_ARGUMENTS}" TIMEOUT ${timeout}
    ENVIRONMENT "DRARUN_BUILD=${PROJECT_BINARY_DIR};DRARUN_TEST_LOAD=${load}"
    SKIP_REGULAR_EXPRESSION "(^|\n)[0-9]+ skipped in ")
  drarun_test_cost(${name})
endfunction()
