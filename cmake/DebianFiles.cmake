# SPDX-License-Identifier: Apache-2.0
# Run by cpack on the staged files: copyright, changelog, compressed man pages, zsh's completion, one lintian override.
set(staged ${CPACK_TEMPORARY_INSTALL_DIRECTORY})
# string(TIMESTAMP) heeds SOURCE_DATE_EPOCH: the same sources make the same package
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)

# What every package has: package is its name, share its folder.
function(debian_files package share)
  set(doc ${share}/doc/${package})
  file(REMOVE ${doc}/LICENSE) # Debian has it in /usr/share/common-licenses
  file(WRITE ${doc}/copyright
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: drarun

Files: *
Copyright: 2026 the drarun authors
License: Apache-2.0
 On Debian systems, the text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.
")
  file(WRITE ${doc}/changelog.Debian
"${package} (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * Package made by cpack from the source tree.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
  file(GLOB pages ${share}/man/man*/*[0-9])
  execute_process(COMMAND gzip -9n ${doc}/changelog.Debian ${pages} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# The packages that the programs of a cross compiler need, for the variable of that name. dpkg-shlibdeps finds libraries
# where the machine has its own; of the compiler's it names the architecture as well, which the package has anyway.
function(foreign_depends folder variable)
  file(GLOB_RECURSE files ${folder}/bin/* ${folder}/lib/* ${folder}/sbin/* ${folder}/libexec/*)
  set(dynamic "")
  foreach(file IN LISTS files)
    execute_process(COMMAND ${CPACK_READELF_EXECUTABLE} -d ${file} OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
    if(said MATCHES "NEEDED")
      list(APPEND dynamic ${file})
    endif()
  endforeach()
  set(${variable} "" PARENT_SCOPE)
  if(NOT dynamic)
    return()
  endif()
  set(work ${CPACK_TOPLEVEL_DIRECTORY}/shlibdeps)
  file(WRITE ${work}/debian/control "Source: ${CPACK_PACKAGE_NAME}\n\nPackage: ${CPACK_PACKAGE_NAME}\nArchitecture: any\n")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env DEB_HOST_ARCH=${CPACK_DEBIAN_PACKAGE_ARCHITECTURE}
            ${CPACK_DRARUN_SHLIBDEPS} -l${CPACK_DRARUN_LIBRARIES} -O ${dynamic}
    WORKING_DIRECTORY ${work} OUTPUT_VARIABLE said ERROR_VARIABLE warned RESULT_VARIABLE status)
  if(NOT status EQUAL 0 OR NOT said MATCHES "shlibs:Depends=([^\n]+)")
    message(FATAL_ERROR "${CPACK_DRARUN_SHLIBDEPS} (${status}) names no package for ${dynamic}: ${said}${warned}")
  endif()
  string(REPLACE ":${CPACK_DEBIAN_PACKAGE_ARCHITECTURE}" "" depends "${CMAKE_MATCH_1}")
  set(${variable} "${depends}" PARENT_SCOPE)
endfunction()

set(package_Unspecified ${CPACK_PACKAGE_NAME})
set(package_bench ${CPACK_PACKAGE_NAME}-bench)
set(package_anywhere ${CPACK_PACKAGE_NAME}-bench)
set(package_lib libdrarun0)
set(package_dev libdrarun-dev)
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  set(package ${package_${component}})
  # The notices of the libraries in the programs (scripts/release)
  if(DEFINED ENV{DRARUN_NOTICES} AND NOT component STREQUAL dev)
    file(COPY $ENV{DRARUN_NOTICES} DESTINATION ${staged}/${component}/usr/share/doc/${package})
  endif()
  debian_files(${package} ${staged}/${component}/usr/share)
  set(overrides_${component} ${staged}/${component}/usr/share/lintian/overrides/${package})
endforeach()

# Where the zsh of Debian looks below /usr/share; it knows site-functions below /usr/local alone
set(zsh ${staged}/Unspecified/usr/share/zsh)
if(EXISTS ${zsh}/site-functions)
  file(RENAME ${zsh}/site-functions ${zsh}/vendor-completions)
endif()

if(CPACK_DRARUN_SHLIBDEPS)
  foreign_depends(${staged}/Unspecified/usr CPACK_DEBIAN_UNSPECIFIED_PACKAGE_DEPENDS)
  if(DEFINED overrides_anywhere)
    foreign_depends(${staged}/anywhere/usr found)
    string(APPEND CPACK_DEBIAN_ANYWHERE_PACKAGE_DEPENDS ", ${found}")
  endif()
endif()

# Static, so that they run in any image and start without loading a library; libcurl is one with HTTP alone (scripts/fetch-curl)
file(WRITE ${overrides_Unspecified}
"${CPACK_PACKAGE_NAME}: statically-linked-binary [usr/bin/drarun]
${CPACK_PACKAGE_NAME}: statically-linked-binary [usr/bin/drarun-worker]
${CPACK_PACKAGE_NAME}: statically-linked-binary [usr/libexec/drarun/drarun-cluster]
${CPACK_PACKAGE_NAME}: statically-linked-binary [usr/libexec/drarun/drarun-remote]
${CPACK_PACKAGE_NAME}: statically-linked-binary [usr/sbin/drarun-attach]
${CPACK_PACKAGE_NAME}: statically-linked-binary [usr/sbin/drarun-plugin]
${CPACK_PACKAGE_NAME}: embedded-library curl [usr/libexec/drarun/drarun-cluster]
${CPACK_PACKAGE_NAME}: embedded-library curl [usr/sbin/drarun-plugin]
${CPACK_PACKAGE_NAME}: embedded-library libyaml [usr/bin/drarun]
${CPACK_PACKAGE_NAME}: embedded-library libyaml [usr/libexec/drarun/drarun-cluster]
${CPACK_PACKAGE_NAME}: embedded-library libyaml [usr/libexec/drarun/drarun-remote]
${CPACK_PACKAGE_NAME}: embedded-library libyaml [usr/sbin/drarun-attach]
${CPACK_PACKAGE_NAME}: embedded-library libyaml [usr/sbin/drarun-plugin]
${CPACK_PACKAGE_NAME}: embedded-library zlib [usr/bin/drarun-worker]
${CPACK_PACKAGE_NAME}: embedded-library zlib [usr/libexec/drarun/drarun-cluster]
${CPACK_PACKAGE_NAME}: embedded-library zlib [usr/sbin/drarun-plugin]
${CPACK_PACKAGE_NAME}: initial-upload-closes-no-bugs *
")

foreach(component IN ITEMS anywhere bench)
  if(DEFINED overrides_${component})
    file(WRITE ${overrides_${component}}
"${CPACK_PACKAGE_NAME}-bench: initial-upload-closes-no-bugs *
")
  endif()
endforeach()

if(NOT CPACK_DRARUN_LIBRARIES) # else these two are not made
  file(WRITE ${overrides_lib}
"libdrarun0: embedded-library curl [usr/lib/libdrarun.so.*]
libdrarun0: initial-upload-closes-no-bugs *
")
  file(WRITE ${overrides_dev}
"libdrarun-dev: initial-upload-closes-no-bugs *
")
endif()

# file(WRITE) makes files and folders by the umask
execute_process(COMMAND chmod -R u=rwX,go=rX ${staged} COMMAND_ERROR_IS_FATAL ANY)
