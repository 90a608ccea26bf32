# SPDX-License-Identifier: Apache-2.0
# The programs for arm64, from Debian's cross compiler; tests run under user-mode emulation.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static)

# The sysroot's name holds a digest of its contents, so fetch-pmix is asked for it. CMake reads this
# file again for each try_compile; the answer takes 10 ms.
execute_process(
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/../scripts/fetch-pmix --cached arm64
  OUTPUT_VARIABLE drarun_fetched ERROR_VARIABLE drarun_error RESULT_VARIABLE drarun_status)
if(NOT drarun_status EQUAL 0)
  message(FATAL_ERROR "the arm64 libraries are missing; run scripts/fetch-pmix arm64:\n${drarun_error}")
endif()
if(drarun_fetched MATCHES "^[^\n]*\n([^\n]+)\n")
  set(DRARUN_SYSROOT ${CMAKE_MATCH_1} CACHE INTERNAL "Where the libraries of arm64 are (scripts/lib/oci_image.py)")
  set(CMAKE_FIND_ROOT_PATH ${DRARUN_SYSROOT})
  # The sysroot's C library, not the compiler's. With --sysroot alone gcc would find its own first: -B precedes that, and
  # where it compiles, -isystem does, which gcc ignores for folders of a --sysroot. Not in CMAKE_EXE_LINKER_FLAGS_INIT,
  # which a build tree reads once.
  set(CMAKE_C_STANDARD_INCLUDE_DIRECTORIES
    ${DRARUN_SYSROOT}/usr/include/${CMAKE_LIBRARY_ARCHITECTURE} ${DRARUN_SYSROOT}/usr/include)
  add_link_options(--sysroot=${DRARUN_SYSROOT} -B${DRARUN_SYSROOT}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE})
  set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
  set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
  set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
  set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
endif()
