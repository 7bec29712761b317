# Debian packages by CPack, one for each component that is installed (scripts/package.sh):
#   hone             the command          needs hone-builder and hone-runner
#   hone-builder     compiles kernels     the only one that needs LLVM
#   hone-runner      runs them in a sandbox
#   hone-worker      measures for a farm  builds too where hone-builder is installed
#   honed            coordinates a farm
#   libhone-runtime  what a program with a compiled model needs, and the Python module
#   libhone-client   asks a farm from a program
#   libhone-dev      headers, static library, CMake package
#   hone-doc         the guides
# What else each needs, dpkg-shlibdeps reads from the programs.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME hone)
set(CPACK_PACKAGE_CONTACT "Hone <hone@localhost>")
set(CPACK_PACKAGE_HOMEPAGE_URL "")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_COMPONENTS_ALL hone hone-builder hone-runner hone-worker honed libhone-runtime libhone-client
                         libhone-dev hone-doc)
foreach(package ${CPACK_COMPONENTS_ALL})
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${package}"
          RENAME copyright COMPONENT ${package})
endforeach()

# hone_debian_package(COMPONENT SUMMARY [NAME value]...): the rest are CPACK_DEBIAN_<COMPONENT>_ names.
function(hone_debian_package component summary)
  string(TOUPPER "${component}" upper)
  set(prefix "CPACK_DEBIAN_${upper}")
  set(${prefix}_PACKAGE_NAME "${component}" PARENT_SCOPE)
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${summary}" PARENT_SCOPE)
  while(ARGN)
    list(POP_FRONT ARGN name value)
    set(${prefix}_${name} "${value}" PARENT_SCOPE)
  endwhile()
endfunction()

set(same "(= ${PROJECT_VERSION})")
hone_debian_package(hone "makes neural networks fast by search: the command"
  PACKAGE_DEPENDS "hone-builder ${same}, hone-runner ${same}" PACKAGE_RECOMMENDS "hone-doc")
hone_debian_package(hone-builder "makes neural networks fast by search: the compiler of kernels")
hone_debian_package(hone-runner "makes neural networks fast by search: runs kernels in a sandbox")
hone_debian_package(hone-worker "makes neural networks fast by search: a worker of a farm"
  PACKAGE_DEPENDS "hone-runner ${same}, passwd" PACKAGE_RECOMMENDS "hone-builder ${same}"
  PACKAGE_CONTROL_EXTRA "${CMAKE_CURRENT_LIST_DIR}/debian/postinst")
hone_debian_package(honed "makes neural networks fast by search: the coordinator of a farm"
  PACKAGE_DEPENDS passwd PACKAGE_SUGGESTS "hone ${same}"
  PACKAGE_CONTROL_EXTRA "${CMAKE_CURRENT_LIST_DIR}/debian/postinst")
# A list must be the first value: taking values before it would part it.
hone_debian_package(libhone-runtime "runs models that Hone compiled, from C, C++ and Python"
  PACKAGE_CONTROL_EXTRA "${CMAKE_CURRENT_LIST_DIR}/debian/triggers\;${CMAKE_CURRENT_LIST_DIR}/debian/prerm"
  PACKAGE_SECTION libs PACKAGE_SUGGESTS python3-numpy)
hone_debian_package(libhone-client "asks a farm of Hone for schedules, from C++"
  PACKAGE_SECTION libs PACKAGE_CONTROL_EXTRA "${CMAKE_CURRENT_LIST_DIR}/debian/triggers")
hone_debian_package(libhone-dev "headers, static library and CMake package of Hone's runtime"
  PACKAGE_SECTION libdevel
  PACKAGE_DEPENDS "libhone-runtime ${same}, libhone-client ${same}" PACKAGE_SUGGESTS "hone ${same}")
hone_debian_package(hone-doc "guides to Hone" PACKAGE_SECTION doc PACKAGE_ARCHITECTURE all)
include(CPack)
