# SPDX-License-Identifier: Apache-2.0
# Run by drarun_commit at build time: SOURCE, OUTPUT, NAME. Beside OUTPUT it writes OUTPUT.d, which names the file that
# changes whenever HEAD moves, else this one: it must name one.
set(commit "$Format:%H$") # the commit, in an archive of git's (.gitattributes)
set(changes ${CMAKE_CURRENT_LIST_FILE})
if(NOT commit MATCHES "^[0-9a-f]+$")
  set(commit "")
  if(EXISTS ${SOURCE}/.git) # and not a repository in which somebody has unpacked an archive without a commit
    execute_process(
      COMMAND git --git-dir=${SOURCE}/.git rev-parse HEAD --path-format=absolute --git-path logs/HEAD
      OUTPUT_VARIABLE said ERROR_QUIET RESULT_VARIABLE status)
    if(status EQUAL 0 AND said MATCHES "^([0-9a-f]+)\n(.+)\n$")
      set(commit ${CMAKE_MATCH_1})
      set(changes ${CMAKE_MATCH_2})
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT # written if it is another
  "extern const char ${NAME}[];\nconst char ${NAME}[] = \"${commit}\";\n")
string(REPLACE " " "\\ " made "${OUTPUT}")
string(REPLACE " " "\\ " changes "${changes}")
file(WRITE ${OUTPUT}.d "${made}: ${changes}\n")
