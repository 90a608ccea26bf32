# SPDX-License-Identifier: Apache-2.0
# drarun_embed(TARGET NAME FILE): the bytes of FILE in TARGET as
#   const unsigned char NAME[];  const size_t NAME_size;
include_guard(GLOBAL)

function(drarun_embed target name file)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.c)
  set(input ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${input} -DOUTPUT=${source} -DNAME=${name}
            -P ${PROJECT_SOURCE_DIR}/cmake/EmbedFile.cmake
    DEPENDS ${input} ${PROJECT_SOURCE_DIR}/cmake/EmbedFile.cmake
    COMMENT "Embedding ${file}")
  target_sources(${target} PRIVATE ${source})
endfunction()
