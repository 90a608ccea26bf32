# SPDX-License-Identifier: Apache-2.0
# Warnings and sanitizers, carried by one INTERFACE target.

# Only with the compiler that we build with: a newer one may warn of more, and users should not meet that as an error.
if(CMAKE_COMPILE_WARNING_AS_ERROR AND NOT (CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_COMPILER_VERSION VERSION_LESS 13))
  set(CMAKE_COMPILE_WARNING_AS_ERROR OFF)
endif()

function(drarun_warnings target)
  target_compile_options(${target} INTERFACE
    -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla
    -Wwrite-strings -Wcast-qual -Wundef -Wformat=2 -Wold-style-definition -Wredundant-decls
    -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers -fno-common)
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU") # clang does not know these
    target_compile_options(${target} INTERFACE
      -Wlogical-op -Wduplicated-cond -Wduplicated-branches -Wimplicit-fallthrough=5)
  endif()
  if(DRARUN_SANITIZE)
    target_compile_options(${target} INTERFACE -fsanitize=${DRARUN_SANITIZE}
                           -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
    target_link_options(${target} INTERFACE -fsanitize=${DRARUN_SANITIZE})
  endif()
endfunction()
