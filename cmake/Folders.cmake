# SPDX-License-Identifier: Apache-2.0
# The last part of an installation: folders that have nothing but what was installed are opened to all users. Files have modes
# of their own, and CMake makes folders by the umask: with root's 077 others would find drarun, and not what it starts in libexec.
cmake_policy(VERSION 3.25) # of this file alone
set(folders)
foreach(file IN LISTS CMAKE_INSTALL_MANIFEST_FILES)
  set("ours of $ENV{DESTDIR}${file}" TRUE)
  cmake_path(GET file PARENT_PATH folder)
  cmake_path(IS_PREFIX CMAKE_INSTALL_PREFIX "${folder}" is_below)
  while(is_below AND NOT folder IN_LIST folders)
    list(APPEND folders "${folder}")
    cmake_path(GET folder PARENT_PATH folder)
    cmake_path(IS_PREFIX CMAKE_INSTALL_PREFIX "${folder}" is_below)
  endwhile()
endforeach()

list(SORT folders ORDER DESCENDING) # below before above
set(opened)
foreach(folder IN LISTS folders)
  set(path "$ENV{DESTDIR}${folder}")
  file(GLOB inside "${path}/*")
  set("ours of ${path}" TRUE)
  foreach(each IN LISTS inside)
    if(NOT DEFINED "ours of ${each}")
      unset("ours of ${path}")
    endif()
  endforeach()
  if(DEFINED "ours of ${path}")
    list(APPEND opened "${path}")
  endif()
endforeach()
if(opened)
  execute_process(COMMAND chmod go+rx ${opened} COMMAND_ERROR_IS_FATAL ANY)
endif()
