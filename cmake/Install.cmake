# SPDX-License-Identifier: Apache-2.0
# What the programs' own folders do not install, and the target "uninstall".
include_guard(GLOBAL)

# The repository's own README is for a copy of the repository
configure_file(cmake/README.in README.md @ONLY)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_BINARY_DIR}/README.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})

if(DRARUN_LAUNCHER)
  # As source: they are compiled with the user's MPI
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
          PATTERN CMakeLists.txt EXCLUDE PATTERN __pycache__ EXCLUDE
          PATTERN *.sh PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

  # Loaded by the shell at the first TAB after "drarun"; the program itself knows its options
  file(WRITE ${PROJECT_BINARY_DIR}/completions/drarun
       "# bash completion for drarun(1)\neval \"$(drarun completion bash)\"\n")
  install(FILES ${PROJECT_BINARY_DIR}/completions/drarun
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  file(WRITE ${PROJECT_BINARY_DIR}/completions/_drarun
       "#compdef drarun\neval \"$(drarun completion zsh)\"\n")
  install(FILES ${PROJECT_BINARY_DIR}/completions/_drarun
          DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  file(WRITE ${PROJECT_BINARY_DIR}/completions/drarun.fish "drarun completion fish | source\n")
  install(FILES ${PROJECT_BINARY_DIR}/completions/drarun.fish
          DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

  # What the Python package holds (python/setup.py)
  set(wheel COMPONENT wheel EXCLUDE_FROM_ALL)
  install(TARGETS drarun drarun-worker RUNTIME DESTINATION bin ${wheel})
  install(TARGETS drarun-remote drarun-cluster RUNTIME DESTINATION libexec/drarun ${wheel})
  if(TARGET drarun_alone)
    install(TARGETS drarun_alone LIBRARY DESTINATION lib ${wheel} NAMELINK_SKIP)
  else()
    install(TARGETS drarun_shared LIBRARY DESTINATION lib ${wheel} NAMELINK_SKIP)
  endif()
endif()

install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/Folders.cmake ALL_COMPONENTS)

add_custom_target(uninstall
  COMMAND ${CMAKE_COMMAND} -D manifest=${PROJECT_BINARY_DIR}/install_manifest.txt
          -P ${CMAKE_CURRENT_LIST_DIR}/Uninstall.cmake
  VERBATIM)
