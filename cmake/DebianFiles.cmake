# SPDX-License-Identifier: Apache-2.0
# Run by cpack on the staged files: copyright, changelog, compressed man pages, one lintian override.
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

# The notices of the libraries in the programs (scripts/release)
foreach(each IN ITEMS Unspecified/${CPACK_PACKAGE_NAME} bench/${CPACK_PACKAGE_NAME}-bench lib/libdrarun0)
  cmake_path(GET each PARENT_PATH component)
  cmake_path(GET each FILENAME package)
  if(DEFINED ENV{DRARUN_NOTICES})
    file(COPY $ENV{DRARUN_NOTICES} DESTINATION ${staged}/${component}/usr/share/doc/${package})
  endif()
endforeach()

debian_files(${CPACK_PACKAGE_NAME} ${staged}/Unspecified/usr/share)
debian_files(${CPACK_PACKAGE_NAME}-bench ${staged}/bench/usr/share)
debian_files(libdrarun0 ${staged}/lib/usr/share)
debian_files(libdrarun-dev ${staged}/dev/usr/share)

# Static, so that they run in any image and start without loading a library; libcurl is one with HTTP alone (scripts/fetch-curl)
file(WRITE ${staged}/Unspecified/usr/share/lintian/overrides/${CPACK_PACKAGE_NAME}
"${CPACK_PACKAGE_NAME}: statically-linked-binary [usr/bin/drarun]
${CPACK_PACKAGE_NAME}: statically-linked-binary [usr/bin/drarun-worker]
${CPACK_PACKAGE_NAME}: statically-linked-binary [usr/libexec/drarun/drarun-cluster]
${CPACK_PACKAGE_NAME}: statically-linked-binary [usr/libexec/drarun/drarun-remote]
${CPACK_PACKAGE_NAME}: statically-linked-binary [usr/sbin/drarun-attach]
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

file(WRITE ${staged}/lib/usr/share/lintian/overrides/libdrarun0
"libdrarun0: embedded-library curl [usr/lib/libdrarun.so.*]
libdrarun0: initial-upload-closes-no-bugs *
")
file(WRITE ${staged}/dev/usr/share/lintian/overrides/libdrarun-dev
"libdrarun-dev: initial-upload-closes-no-bugs *
")

file(WRITE ${staged}/bench/usr/share/lintian/overrides/${CPACK_PACKAGE_NAME}-bench
"${CPACK_PACKAGE_NAME}-bench: initial-upload-closes-no-bugs *
")
