# SPDX-License-Identifier: Apache-2.0
# cpack in the build tree makes drarun_VERSION_ARCH.deb.
include_guard(GLOBAL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME drarun)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_PACKAGE_CONTACT "The drarun authors <drarun@drarun.dev>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "launcher for MPI and NCCL jobs")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_SET_DESTDIR OFF)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS bash-completion)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
# a program may be dynamic or static; the former's libraries become dependencies
find_program(DRARUN_SHLIBDEPS dpkg-shlibdeps)
if(DRARUN_SHLIBDEPS AND NOT CMAKE_CROSSCOMPILING)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()

# The drarun-bench that needs glibc 2.28 alone, and finds an MPI when it starts; where it is not built, the one that is linked with an MPI
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(bench bench)
if(TARGET bench_anywhere)
  set(bench anywhere)
endif()
set(CPACK_COMPONENTS_ALL Unspecified ${bench} lib dev)
if(CMAKE_CROSSCOMPILING)
  # What the others are linked with, shared libraries and maybe an MPI, is the machine's own. cpack takes the architecture
  # from the machine, and looks for libraries there: DebianFiles.cmake asks dpkg-shlibdeps about the compiler's.
  set(CPACK_COMPONENTS_ALL Unspecified)
  if(TARGET bench_anywhere)
    list(APPEND CPACK_COMPONENTS_ALL anywhere)
  endif()
  set(debian_aarch64 arm64)
  set(debian_x86_64 amd64)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE ${debian_${CMAKE_SYSTEM_PROCESSOR}})
  if(NOT CPACK_DEBIAN_PACKAGE_ARCHITECTURE)
    message(FATAL_ERROR "no name of Debian's for the processor ${CMAKE_SYSTEM_PROCESSOR}: add it to cmake/Package.cmake")
  endif()
  set(CPACK_DRARUN_SHLIBDEPS ${DRARUN_SHLIBDEPS})
  set(CPACK_DRARUN_LIBRARIES /usr/${CMAKE_LIBRARY_ARCHITECTURE}/lib) # of packages that dpkg knows, unlike those of the sysroot
endif()
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_NAME drarun)
set(CPACK_DEBIAN_UNSPECIFIED_DESCRIPTION
"drarun starts the ranks of MPI and NCCL programs and gives them what their
libraries ask of a launcher: PMIx, and PMI-1 for MPICH and Intel MPI. The
agent drarun-worker is one static file that runs in any Linux image.")
foreach(component IN ITEMS ANYWHERE BENCH)
  set(CPACK_DEBIAN_${component}_PACKAGE_NAME drarun-bench)
  set(CPACK_DEBIAN_${component}_PACKAGE_DEPENDS "drarun (= ${PROJECT_VERSION}-1)")
  set(CPACK_DEBIAN_${component}_PACKAGE_SUGGESTS "openmpi-bin | mpich")
endforeach()
set(CPACK_DEBIAN_ANYWHERE_DESCRIPTION
"drarun-bench measures collectives of MPI and NCCL as nccl-tests does; it is
what 'drarun bench' starts. It loads the MPI or the NCCL that it finds.")
set(CPACK_DEBIAN_BENCH_DESCRIPTION
"drarun-bench measures collectives of MPI and NCCL as nccl-tests does; it is
what 'drarun bench' starts. Its module for MPI is of the MPI in its
dependencies.")
# libdrarun, as Debian splits libraries: the name has the ABI's number
set(CPACK_DEBIAN_LIB_PACKAGE_NAME libdrarun0)
set(CPACK_DEBIAN_LIB_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIB_PACKAGE_SUGGESTS ${CPACK_PACKAGE_NAME}) # drarun_local_run starts it
file(WRITE ${PROJECT_BINARY_DIR}/debian/shlibs "libdrarun 0 libdrarun0 (>= ${PROJECT_VERSION})\n")
file(WRITE ${PROJECT_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIB_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/shlibs ${PROJECT_BINARY_DIR}/debian/triggers)
set(CPACK_DEBIAN_LIB_DESCRIPTION
"libdrarun is drarun's C API: it checks job specs, plans, renders and runs
them, and derives the NCCL environment for what a pod or machine holds.")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libdrarun-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libdrarun0 (= ${PROJECT_VERSION}-1)")
set(CPACK_DEBIAN_DEV_DESCRIPTION
"Headers, pkg-config and CMake files of libdrarun, drarun's C API.")

# What Debian's policy wants beside: done on the package's tree, not in a user's installation
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/DebianFiles.cmake)
include(CPack)
