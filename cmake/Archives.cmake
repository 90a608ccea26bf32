# SPDX-License-Identifier: Apache-2.0
include_guard(GLOBAL)

# drarun_archives(NAME DESCRIPTION TARGETS target... FOLDERS folder...): installs a component that programs of others link:
# the archives, in the order of a link line, the headers of these folders of lib/ as they include each other, and
# drarun-NAME.pc. Part of an installation only where neither the launcher nor the plugin is; else
# cmake --install --component NAME.
function(drarun_archives name description)
  cmake_parse_arguments(PARSE_ARGV 2 of "" "" "TARGETS;FOLDERS")
  set(component COMPONENT ${name})
  if(DRARUN_LAUNCHER OR DRARUN_PLUGIN)
    list(APPEND component EXCLUDE_FROM_ALL)
  endif()
  set(headers ${CMAKE_INSTALL_INCLUDEDIR}/drarun-${name})
  install(TARGETS ${of_TARGETS} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} ${component})
  foreach(folder IN LISTS of_FOLDERS)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/lib/${folder} DESTINATION ${headers}/lib ${component}
            FILES_MATCHING PATTERN *.h PATTERN test EXCLUDE PATTERN fuzz EXCLUDE PATTERN *private.h EXCLUDE)
  endforeach()
  install(FILES ${PROJECT_SOURCE_DIR}/include/drarun/api.h ${PROJECT_SOURCE_DIR}/include/drarun/error.h
          DESTINATION ${headers}/drarun ${component})
  file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  list(TRANSFORM of_TARGETS PREPEND -l)
  list(JOIN of_TARGETS " " links)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/archives.pc.in drarun-${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/drarun-${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig ${component})
endfunction()
