# SPDX-License-Identifier: Apache-2.0
include_guard(GLOBAL)

# drarun_protobuf(TARGET file.proto...): a static library of what protoc-c makes of the files, which
# are included by their path from the source root: lib/wire/x.proto is "lib/wire/x.pb-c.h".
function(drarun_protobuf target)
  find_program(protoc_c protoc-c NO_CACHE)
  if(NOT protoc_c)
    message(FATAL_ERROR "protoc-c not found; run scripts/setup")
  endif()
  set(out ${PROJECT_BINARY_DIR}/protobuf)
  file(MAKE_DIRECTORY ${out})
  set(generated)
  foreach(proto IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH proto BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    cmake_path(RELATIVE_PATH proto BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE path)
    cmake_path(REMOVE_EXTENSION path LAST_ONLY OUTPUT_VARIABLE stem)
    add_custom_command(
      OUTPUT ${out}/${stem}.pb-c.c ${out}/${stem}.pb-c.h
      COMMAND ${protoc_c} -I . --c_out=${out} ${path}
      DEPENDS ${proto}
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
      COMMENT "protoc-c ${path}"
      VERBATIM)
    list(APPEND generated ${out}/${stem}.pb-c.c ${out}/${stem}.pb-c.h)
  endforeach()
  add_library(${target} STATIC ${generated})
  target_include_directories(${target} SYSTEM PUBLIC ${out})
  target_link_libraries(${target} PUBLIC drarun::protobufc PRIVATE drarun_hardening)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()
