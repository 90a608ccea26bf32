# SPDX-License-Identifier: Apache-2.0
# drarun_code_order: linked by static programs that speak TLS. The code of libraries that runs comes first, and the code that does
# not run after it: the kernel maps up to 64 KiB of a file around each page that runs, and strewn about, half of the code makes all
# of it resident (docs/measured/plugin.md). code-order.ld lists what runs, and scripts/code-order writes it. An object that an
# archive does not have, of another version or architecture, has no effect.
include_guard(GLOBAL)
include(CheckLinkerFlag)

set(drarun_code_order_file ${CMAKE_CURRENT_LIST_DIR}/code-order.ld)
add_library(drarun_code_order INTERFACE)
if(DRARUN_STATIC)
  check_linker_flag(C "LINKER:-T,${drarun_code_order_file}" DRARUN_LINKER_ORDERS) # gold has no INSERT
  if(DRARUN_LINKER_ORDERS)
    target_link_options(drarun_code_order INTERFACE "LINKER:-T,${drarun_code_order_file}")
    set_property(TARGET drarun_code_order PROPERTY INTERFACE_LINK_DEPENDS ${drarun_code_order_file})
  endif()
endif()
