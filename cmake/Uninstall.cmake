# SPDX-License-Identifier: Apache-2.0
# cmake -D manifest=FILE -P Uninstall.cmake: removes the files that the last installation from this
# build tree put there ($DESTDIR is respected), and those of our own directories that are then empty.
if(NOT EXISTS ${manifest})
  message(FATAL_ERROR "no ${manifest}: nothing was installed from this build tree")
endif()
file(STRINGS ${manifest} files)
set(directories)
foreach(file IN LISTS files)
  file(REMOVE "$ENV{DESTDIR}${file}")
  cmake_path(GET file PARENT_PATH directory)
  while(directory MATCHES "/drarun(/|$)")
    list(APPEND directories ${directory})
    cmake_path(GET directory PARENT_PATH directory)
  endwhile()
endforeach()

list(REMOVE_DUPLICATES directories)
list(SORT directories ORDER DESCENDING) # below before above
foreach(directory IN LISTS directories)
  file(GLOB left "$ENV{DESTDIR}${directory}/*")
  if(NOT left)
    file(REMOVE_RECURSE "$ENV{DESTDIR}${directory}")
  endif()
endforeach()
file(REMOVE ${manifest})
