# SPDX-License-Identifier: Apache-2.0
# How programs and libraries of ours are hardened, in every preset; tests/test_hardening.py reads it from what was built.
#
# drarun_hardening: linked by drarun_options, and by what is compiled without those (modules of drarun-bench, libdrarun.so).
#   stack protector, stack clash protection: an overflow of the stack ends the process
#   _FORTIFY_SOURCE=3: so does one that glibc's functions can see; needs an optimizing build, and sanitizers see more
#   control-flow protection on x86-64: indirect calls reach beginnings of functions alone, where processor and kernel check it
#   relro, now: the tables of addresses are read-only before main
# Hidden visibility is the usual one: a shared library exports what DRARUN_API marks and its version script lists.
#
# Static programs are not position independent (-static-pie): 9,000 relocations at each start of drarun, 28,000 of the agent, made
# "drarun -n 2 true" 12 % slower, 6 % by CPU time (medians of 60 alternating starts on a busy machine).
add_library(drarun_hardening INTERFACE)
target_compile_options(drarun_hardening INTERFACE -fstack-protector-strong -fstack-clash-protection)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  target_compile_options(drarun_hardening INTERFACE -fcf-protection=full)
endif()
if(NOT DRARUN_SANITIZE)
  target_compile_options(drarun_hardening INTERFACE
    $<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE> $<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-D_FORTIFY_SOURCE=3>)
endif()
target_link_options(drarun_hardening INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
set(CMAKE_C_VISIBILITY_PRESET hidden)
