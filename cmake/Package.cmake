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

# drarun-bench is linked with an MPI, which whoever only launches jobs does not want
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL Unspecified bench)
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_NAME drarun)
set(CPACK_DEBIAN_UNSPECIFIED_DESCRIPTION
"drarun starts the ranks of MPI and NCCL programs and gives them what their
libraries ask of a launcher: PMIx, and PMI-1 for MPICH and Intel MPI. The
agent drarun-worker is one static file that runs in any Linux image.")
set(CPACK_DEBIAN_BENCH_PACKAGE_NAME drarun-bench)
set(CPACK_DEBIAN_BENCH_PACKAGE_DEPENDS "drarun (= ${PROJECT_VERSION}-1)")
set(CPACK_DEBIAN_BENCH_DESCRIPTION
"drarun-bench measures collectives of MPI and NCCL as nccl-tests does; it is
what 'drarun bench' starts. Its module for MPI is of the MPI in its
dependencies.")

# What Debian's policy wants beside: done on the package's tree, not in a user's installation
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/DebianFiles.cmake)
include(CPack)
