# SPDX-License-Identifier: Apache-2.0
# drarun_unit_test(NAME SOURCE LIBRARY...): a cmocka program beside its module, labels "unit", the
# module's folder and those that it is in.
find_package(PkgConfig REQUIRED)
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)

function(drarun_unit_test name source)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE ${ARGN} drarun_options PkgConfig::CMOCKA)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_test(NAME unit.${name} COMMAND ${name})
  file(RELATIVE_PATH module ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set(labels unit)
  while(module)
    list(APPEND labels ${module})
    cmake_path(GET module PARENT_PATH parent)
    set(module "${parent}")
  endwhile()
  set_tests_properties(unit.${name} PROPERTIES LABELS "${labels}" TIMEOUT 120 PROCESSORS 8)
endfunction()

# drarun_unit_tests_wait(NAME...): of these, which wait for deadlines most of their time: many run beside each other
function(drarun_unit_tests_wait)
  foreach(name IN LISTS ARGV)
    set_tests_properties(unit.${name} PROPERTIES PROCESSORS 2 COST 15)
  endforeach()
endfunction()
