# SPDX-License-Identifier: Apache-2.0
# The libraries we build on, as imported targets.
#
#   drarun::event  drarun::event_openssl  drarun::openssl  drarun::protobufc  drarun::jansson  drarun::yaml  drarun::hwloc
#   drarun::nl  drarun::nl_route
#       the static archive, or with DRARUN_STATIC=OFF (sanitizers) the shared library. For programs:
#       Debian's archives are not position independent, so they cannot go into a .so
#   the same with _shared behind: always the shared library; absent in a cross build
#   drarun::munge         libmunge, of libpmix. DRARUN_MUNGE_VERSION is its version
#   drarun::nghttp2       HTTP/2, of the plugin's gRPC and of libcurl
#   drarun::ibverbs       libibverbs; static, with the providers of drarun_verbs_providers, none of which is then
#                         loaded at run time; shared, it loads those that are installed. DRARUN_RDMA_VERSION is
#                         the version of rdma-core, of which it is a part
#   drarun::curl          libcurl with HTTP alone, which scripts/fetch-curl has built; always its archive, which is
#                         position independent. drarun::curl_shared: the same with shared libraries behind it
#   drarun::pmix_server   libpmix with cmake/patches/pmix, which scripts/fetch-pmix has built; always its
#                         archive. DRARUN_PMIX_VERSION is its version
#   drarun::pmix_client   the system's libpmix, for test clients; only where it is installed
#
# A fully static program adds -static itself.
include_guard(GLOBAL)

option(DRARUN_STATIC "Link the libraries of the agent and the hook statically" ON)
set(DRARUN_CURL_DIR "" CACHE PATH "libcurl (include/, lib/libcurl.a); empty: the one that scripts/fetch-curl has built")
set(DRARUN_PMIX_DIR "" CACHE PATH "libpmix 5 (include/, lib/libpmix.a); empty: the one that scripts/fetch-pmix has built")
# Such an agent lets the library accept connections, and the library believes the user that a client names:
# every user of the machine, and every container in the pod's network, can hang, join and abort a job.
# The agent says so when it serves PMIx.
option(DRARUN_PMIX_UNPATCHED "Link a libpmix without cmake/patches/pmix: jobs are exposed to other users of the machine" OFF)

# drarun_find(library|path <var> <file> [arguments of find_*]): fails with the cure
function(drarun_find kind variable name)
  cmake_language(CALL find_${kind} found NAMES ${name} ${ARGN} NO_CACHE)
  if(NOT found)
    message(FATAL_ERROR "${name} not found; run scripts/setup")
  endif()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# drarun_library(NAME file-stem header [links...]): drarun::NAME and drarun::NAME_shared. A link
# drarun::X becomes drarun::X_shared in the latter.
function(drarun_library name stem header)
  drarun_find(path include ${header})
  set(links ${ARGN})
  if(NOT CMAKE_CROSSCOMPILING)
    drarun_find(library shared lib${stem}.so)
    add_library(drarun::${name}_shared UNKNOWN IMPORTED)
    list(TRANSFORM links APPEND _shared REGEX "^drarun::" OUTPUT_VARIABLE shared_links)
    set_target_properties(drarun::${name}_shared PROPERTIES
      IMPORTED_LOCATION ${shared}
      INTERFACE_INCLUDE_DIRECTORIES ${include}
      INTERFACE_LINK_LIBRARIES "${shared_links}")
  endif()
  if(NOT DRARUN_STATIC)
    add_library(drarun::${name} ALIAS drarun::${name}_shared)
    return()
  endif()
  drarun_find(library archive lib${stem}.a)
  add_library(drarun::${name} STATIC IMPORTED)
  set_target_properties(drarun::${name} PROPERTIES
    IMPORTED_LOCATION ${archive}
    INTERFACE_INCLUDE_DIRECTORIES ${include}
    INTERFACE_LINK_LIBRARIES "${links}")
endfunction()

if(CMAKE_CROSSCOMPILING AND NOT DRARUN_STATIC)
  message(FATAL_ERROR "a cross build has static libraries only; leave DRARUN_STATIC on")
endif()

# drarun_version(<var> NAME MODULE): what the .pc file beside the library drarun::NAME says, for libraries whose headers
# do not say their version
function(drarun_version variable name module)
  get_target_property(file drarun::${name} IMPORTED_LOCATION)
  get_filename_component(folder ${file} DIRECTORY)
  set(file ${folder}/pkgconfig/${module}.pc)
  if(NOT EXISTS ${file})
    message(FATAL_ERROR "no ${file}, which says the version of lib${module}; run scripts/setup")
  endif()
  file(STRINGS ${file} line REGEX "^Version: ")
  string(REGEX REPLACE "^Version: +" "" version "${line}")
  if(NOT version MATCHES "^[0-9.]+$")
    message(FATAL_ERROR "${file}: expected a line \"Version: NUMBER\", got \"${line}\"")
  endif()
  set(${variable} ${version} PARENT_SCOPE)
endfunction()

# drarun_private(<var> STEM MODULE): the archives that libSTEM.a needs beside the C library's, as its .pc file says: none
# of Debian 12's OpenSSL, those of zlib and zstd of Debian 13's
function(drarun_private variable stem module)
  set(archives "")
  if(DRARUN_STATIC)
    drarun_find(library archive lib${stem}.a)
    get_filename_component(folder ${archive} DIRECTORY)
    file(STRINGS ${folder}/pkgconfig/${module}.pc line REGEX "^Libs.private:")
    string(REGEX MATCHALL "-l[^ ]+" words "${line}")
    list(FILTER words EXCLUDE REGEX "^-l(c|dl|m|pthread)$")
    foreach(word IN LISTS words)
      string(REGEX REPLACE "^-l" "" name ${word})
      drarun_find(library needed lib${name}.a)
      list(APPEND archives ${needed})
    endforeach()
  endif()
  set(${variable} "${archives}" PARENT_SCOPE)
endfunction()

find_package(Threads REQUIRED)
drarun_library(jansson jansson jansson.h)
drarun_library(yaml yaml yaml.h)
if(NOT DRARUN_LAUNCHER AND NOT DRARUN_PLUGIN AND NOT DRARUN_BENCH)
  return() # the DRA model needs no more
endif()
drarun_private(crypto_archives crypto libcrypto)
drarun_library(crypto crypto openssl/crypto.h ${crypto_archives} Threads::Threads ${CMAKE_DL_LIBS})
drarun_library(openssl ssl openssl/ssl.h drarun::crypto)
drarun_library(event event_core event2/event.h)
drarun_library(event_http event_extra event2/http.h drarun::event)
drarun_library(event_pthreads event_pthreads event2/thread.h drarun::event Threads::Threads)
drarun_library(event_openssl event_openssl event2/bufferevent_ssl.h drarun::event drarun::openssl)
drarun_library(protobufc protobuf-c protobuf-c/protobuf-c.h)
drarun_library(nghttp2 nghttp2 nghttp2/nghttp2.h)
drarun_library(zlib z zlib.h)
if(DRARUN_LAUNCHER)
  drarun_library(munge munge munge.h)
  drarun_version(DRARUN_MUNGE_VERSION munge munge)
  drarun_library(hwloc hwloc hwloc.h m)
endif()
drarun_library(nl nl-3 libnl3/netlink/netlink.h Threads::Threads m)
drarun_library(nl_route nl-route-3 libnl3/netlink/netlink.h drarun::nl)
drarun_library(ibverbs_core ibverbs infiniband/verbs.h drarun::nl_route drarun::nl Threads::Threads)
drarun_version(DRARUN_RDMA_VERSION ibverbs_core libibverbs)
string(REGEX REPLACE "^1\\.[0-9]+\\." "" DRARUN_RDMA_VERSION ${DRARUN_RDMA_VERSION}) # 1.14.44.0: ABI 1.14 of rdma-core 44.0
add_library(drarun::ibverbs INTERFACE IMPORTED)
if(DRARUN_STATIC)
  # those that clouds and clusters have, and the kernel's software RDMA
  set(drarun_verbs_providers bnxt_re efa erdma hns irdma mana mlx4 mlx5 rxe siw)
  foreach(provider IN LISTS drarun_verbs_providers)
    find_library(found_provider NAMES lib${provider}.a lib${provider}-rdmav34.a NO_CACHE)
    if(NOT found_provider)
      message(FATAL_ERROR "no archive of libibverbs' provider ${provider}; run scripts/setup (package libibverbs-dev)")
    endif()
    list(APPEND found_providers ${found_provider})
    unset(found_provider)
  endforeach()
  list(JOIN drarun_verbs_providers "," found_names)
  set_target_properties(drarun::ibverbs PROPERTIES
    INTERFACE_COMPILE_DEFINITIONS "RDMA_STATIC_PROVIDERS=${found_names}"
    INTERFACE_LINK_LIBRARIES "${found_providers};drarun::ibverbs_core")
else()
  target_link_libraries(drarun::ibverbs INTERFACE drarun::ibverbs_core)
endif()
drarun_find(path found_nl_include libnl3/netlink/netlink.h)
foreach(target IN ITEMS drarun::nl drarun::nl_shared drarun::nl_route drarun::nl_route_shared) # its headers include each other as netlink/...
  if(TARGET ${target})
    get_target_property(found_nl_alias ${target} ALIASED_TARGET)
    if(NOT found_nl_alias)
      set_property(TARGET ${target} PROPERTY INTERFACE_INCLUDE_DIRECTORIES ${found_nl_include}/libnl3)
    endif()
  endif()
endforeach()
if(DRARUN_STATIC AND DRARUN_LAUNCHER)
  add_library(drarun_udev_stub STATIC ${CMAKE_CURRENT_LIST_DIR}/../worker/udev_stub.c)
  set_property(TARGET drarun::hwloc APPEND PROPERTY INTERFACE_LINK_LIBRARIES drarun_udev_stub)
endif()

# drarun_fetched(<var> name file...): the folder DRARUN_<NAME>_DIR, else what scripts/fetch-<name> has built for the
# machine that we build for; it must have these files
function(drarun_fetched variable name)
  string(TOUPPER ${name} upper)
  set(folder ${DRARUN_${upper}_DIR})
  if(NOT folder)
    drarun_cached(folder ${name})
  endif()
  foreach(file IN LISTS ARGN)
    if(NOT EXISTS ${folder}/${file})
      message(FATAL_ERROR "no ${folder}/${file}")
    endif()
  endforeach()
  set(${variable} ${folder} PARENT_SCOPE)
endfunction()

function(drarun_cached variable name)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(arch arm64)
  else()
    set(arch amd64)
  endif()
  execute_process(
    COMMAND ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../scripts/fetch-${name} --cached ${arch}
    OUTPUT_VARIABLE out ERROR_VARIABLE err RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    string(TOUPPER ${name} upper)
    message(FATAL_ERROR "lib${name} is missing; run scripts/fetch-${name} ${arch}, which builds it, or set DRARUN_${upper}_DIR:\n${err}")
  endif()
  string(REGEX REPLACE "\n.*" "" folder "${out}")
  set(${variable} ${folder} PARENT_SCOPE)
endfunction()

function(drarun_curl)
  drarun_fetched(curl curl include/curl/curl.h lib/libcurl.a)
  set(kinds "")
  if(NOT CMAKE_CROSSCOMPILING)
    set(kinds _shared)
  endif()
  foreach(kind IN ITEMS "" ${kinds})
    add_library(drarun::curl${kind} STATIC IMPORTED GLOBAL)
    set_target_properties(drarun::curl${kind} PROPERTIES
      IMPORTED_LOCATION ${curl}/lib/libcurl.a
      INTERFACE_INCLUDE_DIRECTORIES ${curl}/include
      INTERFACE_LINK_LIBRARIES "drarun::nghttp2${kind};drarun::openssl${kind};drarun::zlib${kind};Threads::Threads")
  endforeach()
endfunction()

function(drarun_pmix_server)
  drarun_fetched(pmix pmix include/pmix_server.h lib/libpmix.a)
  file(STRINGS ${pmix}/include/pmix_server.h patched REGEX PMIx_server_add_connection)
  if(DRARUN_PMIX_UNPATCHED AND patched)
    message(FATAL_ERROR "${pmix} has the patches of cmake/patches/pmix; set DRARUN_PMIX_UNPATCHED=OFF")
  elseif(DRARUN_PMIX_UNPATCHED)
    message(WARNING "libpmix in ${pmix} is without cmake/patches/pmix: every user of a machine can hang, join and abort the jobs that this agent runs there")
  elseif(NOT patched)
    message(FATAL_ERROR "libpmix in ${pmix} is without cmake/patches/pmix (PMIx_server_add_connection is not in pmix_server.h): with it, "
      "every user of a machine can hang, join and abort a job. Apply the patches, leave DRARUN_PMIX_DIR empty, or accept that: -DDRARUN_PMIX_UNPATCHED=ON")
  endif()
  set(version "")
  foreach(part IN ITEMS MAJOR MINOR RELEASE)
    file(STRINGS ${pmix}/include/pmix_version.h line REGEX "define PMIX_VERSION_${part} ")
    string(REGEX MATCH "[0-9]+" number "${line}")
    list(APPEND version "${number}")
  endforeach()
  list(JOIN version . version)
  set(DRARUN_PMIX_VERSION ${version} PARENT_SCOPE)
  add_library(drarun::pmix_server STATIC IMPORTED GLOBAL)
  set_target_properties(drarun::pmix_server PROPERTIES
    IMPORTED_LOCATION ${pmix}/lib/libpmix.a
    INTERFACE_INCLUDE_DIRECTORIES ${pmix}/include
    INTERFACE_LINK_LIBRARIES "drarun::hwloc;drarun::event_pthreads;drarun::munge;drarun::zlib;m;Threads::Threads;${CMAKE_DL_LIBS}")
endfunction()
if(DRARUN_LAUNCHER)
  drarun_pmix_server()
endif()
if(DRARUN_LAUNCHER OR DRARUN_PLUGIN)
  drarun_curl()
endif()

function(drarun_pmix_client)
  find_package(PkgConfig QUIET)
  if(CMAKE_CROSSCOMPILING OR NOT PkgConfig_FOUND)
    return()
  endif()
  pkg_check_modules(drarun_pmix_client QUIET IMPORTED_TARGET GLOBAL pmix)
  if(TARGET PkgConfig::drarun_pmix_client)
    add_library(drarun::pmix_client ALIAS PkgConfig::drarun_pmix_client)
  endif()
endfunction()
if(DRARUN_LAUNCHER OR DRARUN_BENCH)
  drarun_pmix_client()
endif()
