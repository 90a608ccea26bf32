# SPDX-License-Identifier: Apache-2.0
# The last part of an installation: the folders that it has made are opened to all users. Files have modes of their own, and
# CMake makes folders by the umask: with root's 077 others would find drarun, and not what it starts in libexec. A folder that
# was there before stays as it was (ClosedFolders.cmake).
cmake_policy(VERSION 3.25) # of this file alone
# by their names below the prefix: CMake's lists do not hold a path with brackets
set(folders .)
string(REPLACE ";${CMAKE_INSTALL_PREFIX}/" ";" files ";${CMAKE_INSTALL_MANIFEST_FILES}")
foreach(file IN LISTS files)
  cmake_path(GET file PARENT_PATH folder)
  while(folder AND NOT IS_ABSOLUTE "${folder}" AND NOT folder IN_LIST folders)
    list(APPEND folders "${folder}")
    cmake_path(GET folder PARENT_PATH folder)
  endwhile()
endforeach()

set(root "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/")
execute_process(COMMAND find ${folders} -maxdepth 0 -type d ! -perm -055 WORKING_DIRECTORY "${root}" OUTPUT_VARIABLE closed
                COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" closed "${closed}")
list(REMOVE_ITEM closed "" ${closed_before})
if(closed)
  execute_process(COMMAND chmod go+rx ${closed} WORKING_DIRECTORY "${root}" COMMAND_ERROR_IS_FATAL ANY)
endif()
