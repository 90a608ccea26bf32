# SPDX-License-Identifier: Apache-2.0
# drarun_commit(TARGET NAME): the commit that TARGET is built of, as
#   extern const char NAME[];  "" where nobody knows it
# It is asked for when the build runs, and again when HEAD has moved: each commit links TARGET again, and nothing else.
include_guard(GLOBAL)

function(drarun_commit target name)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.c)
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUTPUT=${source} -DNAME=${name}
            -P ${PROJECT_SOURCE_DIR}/cmake/CommitFile.cmake
    DEPENDS ${PROJECT_SOURCE_DIR}/cmake/CommitFile.cmake
    DEPFILE ${source}.d
    COMMENT "Asking which commit this is")
  target_sources(${target} PRIVATE ${source})
endfunction()
