# SPDX-License-Identifier: Apache-2.0
# The first part of an installation: which folders are closed to other users already. Folders.cmake, the last part, leaves them so.
cmake_policy(VERSION 3.25) # of this file alone
set(tops) # below the prefix; destinations are CMakeLists.txt's
foreach(folder IN LISTS destinations)
  cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}/")
  cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}/")
  string(REGEX REPLACE "/.*" "" folder "${folder}")
  if(NOT folder STREQUAL "..")
    list(APPEND tops "${folder}")
  endif()
endforeach()
list(REMOVE_DUPLICATES tops)

set(closed_before)
set(root "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/")
if(IS_DIRECTORY "${root}")
  execute_process(COMMAND find . -maxdepth 0 ! -perm -055 WORKING_DIRECTORY "${root}" OUTPUT_VARIABLE closed_prefix)
  # ERROR_QUIET: not all exist. None of ours has a name that a list of CMake does not hold.
  execute_process(COMMAND find -H ${tops} -type d ! -perm -055 ! -path "*[][;]*" WORKING_DIRECTORY "${root}"
                  OUTPUT_VARIABLE closed_before ERROR_QUIET)
  string(REPLACE "\n" ";" closed_before "${closed_prefix}${closed_before}")
endif()
