# SPDX-License-Identifier: Apache-2.0
# cmake -D manifest=FILE -P Uninstall.cmake: removes the files that the last installation from this
# build tree put there ($DESTDIR is respected), and those of our own directories that are then empty.
# What was installed stays known until all of it is gone.
if(NOT EXISTS ${manifest})
  message(FATAL_ERROR "no ${manifest}: nothing was installed from this build tree")
endif()
file(STRINGS ${manifest} files)
set(directories)
set(left)

# Whether a file is gone: of what lies in a folder that cannot be entered, nobody can tell.
function(is_gone path ret)
  cmake_path(GET path PARENT_PATH folder)
  while(NOT IS_DIRECTORY "${folder}" AND NOT folder STREQUAL "/")
    cmake_path(GET folder PARENT_PATH folder)
  endwhile()
  execute_process(COMMAND test -x "${folder}" RESULT_VARIABLE closed)
  if(EXISTS "${path}" OR IS_SYMLINK "${path}" OR closed)
    set(${ret} FALSE PARENT_SCOPE)
  else()
    set(${ret} TRUE PARENT_SCOPE)
  endif()
endfunction()

foreach(file IN LISTS files)
  set(path "$ENV{DESTDIR}${file}")
  file(REMOVE "${path}") # which is silent if it cannot
  is_gone("${path}" gone)
  if(NOT gone)
    list(APPEND left "${path}")
  endif()
  cmake_path(GET file PARENT_PATH directory)
  while(directory MATCHES "/drarun(/|$)")
    list(APPEND directories ${directory})
    cmake_path(GET directory PARENT_PATH directory)
  endwhile()
endforeach()

list(REMOVE_DUPLICATES directories)
list(SORT directories ORDER DESCENDING) # below before above
foreach(directory IN LISTS directories)
  file(GLOB inside "$ENV{DESTDIR}${directory}/*")
  if(NOT inside)
    file(REMOVE_RECURSE "$ENV{DESTDIR}${directory}")
  endif()
endforeach()
if(left)
  list(LENGTH left count)
  list(GET left 0 first)
  message(FATAL_ERROR "cannot remove ${count} of the installed files, such as ${first}: run it as the user who installed them")
endif()
file(REMOVE ${manifest})
