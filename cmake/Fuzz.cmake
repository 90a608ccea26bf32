# SPDX-License-Identifier: Apache-2.0
# drarun_fuzz(NAME SOURCE LIBRARY...): SOURCE defines LLVMFuzzerTestOneInput; its samples are
# fuzz/corpus/NAME beside it. With DRARUN_FUZZ it becomes the libFuzzer program NAME_fuzz, otherwise
# a test, label "fuzz", that replays the samples.
if(DRARUN_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "DRARUN_FUZZ needs clang: use the preset fuzz")
  endif()
  # every library must be instrumented for its branches to guide the fuzzer
  target_compile_options(drarun_options INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(drarun_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

function(drarun_fuzz name source)
  if(NOT DRARUN_FUZZ AND NOT DRARUN_TESTS)
    return()
  endif()
  set(program ${name}_fuzz)
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name})
  add_executable(${program} ${source})
  target_link_libraries(${program} PRIVATE ${ARGN} drarun_options)
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  if(DRARUN_FUZZ)
    target_link_options(${program} PRIVATE -fsanitize=fuzzer)
    return()
  endif()
  target_sources(${program} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.c)
  add_test(NAME fuzz.${name} COMMAND ${program} ${corpus})
  set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 600 PROCESSORS 8 COST 30)
endfunction()
