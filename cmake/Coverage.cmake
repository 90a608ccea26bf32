# SPDX-License-Identifier: Apache-2.0
# drarun_coverage(TARGET): what links TARGET counts the lines and branches that it executes (gcov), and
# writes the counts when it ends by exit, _exit or exec. What a signal kills leaves no counts.
function(drarun_coverage target)
  target_compile_options(${target} INTERFACE --coverage -fprofile-update=atomic) # threads count, too
  target_link_options(${target} INTERFACE --coverage
    -Wl,--wrap=_exit,--wrap=__gcov_execv,--wrap=__gcov_execve,--wrap=__gcov_execvp)
  add_library(drarun_coverage_end STATIC ${PROJECT_SOURCE_DIR}/cmake/coverage_end.c)
  set_target_properties(drarun_coverage_end PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${target} INTERFACE drarun_coverage_end)
endfunction()
