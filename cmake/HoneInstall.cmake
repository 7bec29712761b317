# What `cmake --install` puts down for programs that run compiled models: the library (component
# "libhone-runtime"), and in "libhone-dev" its C API, the static library and the CMake package, with which find_package(hone) gives hone::runtime,
# hone::runtime_static, hone::hone (the command, where it was installed too) and hone_add_model().
include(CMakePackageConfigHelpers)

set(hone_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/hone")

install(TARGETS hone_runtime_shared EXPORT hone-targets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT libhone-runtime
                NAMELINK_COMPONENT libhone-dev)
install(FILES "${PROJECT_SOURCE_DIR}/include/hone/hone.h"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/hone" COMPONENT libhone-dev)

# The static library in one file: a program that links it needs no search path at run time.
set(hone_static_archive "${CMAKE_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR}/libhone_runtime.a")
add_custom_command(OUTPUT "${hone_static_archive}"
  COMMAND "${CMAKE_COMMAND}" -E rm -f "${hone_static_archive}"
  COMMAND "${CMAKE_COMMAND}" "-DAR=${CMAKE_AR}" "-DOUTPUT=${hone_static_archive}"
          "-DARCHIVES=$<TARGET_FILE:hone_runtime>;$<TARGET_FILE:hone_ir_plain>;$<TARGET_FILE:hone_base_core>"
          -P "${PROJECT_SOURCE_DIR}/cmake/merge_archives.cmake"
  DEPENDS hone_runtime hone_ir_plain hone_base_core "${PROJECT_SOURCE_DIR}/cmake/merge_archives.cmake"
  COMMENT "Merging libhone_runtime.a" VERBATIM)
add_custom_target(hone_runtime_archive ALL DEPENDS "${hone_static_archive}")
install(FILES "${hone_static_archive}" DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT libhone-dev)

# The same for a library that is linked without a compiler: `hone compile --emit so`.
set(hone_embedded_archive "${CMAKE_BINARY_DIR}/${HONE_LIBEXEC_SUBDIR}/libhone_embedded.a")
add_custom_command(OUTPUT "${hone_embedded_archive}"
  COMMAND "${CMAKE_COMMAND}" "-DAR=${CMAKE_AR}" "-DCXX=${CMAKE_CXX_COMPILER}"
          "-DRUNTIME=${hone_static_archive}" "-DOUTPUT=${hone_embedded_archive}"
          "-DOBJECTS=$<TARGET_OBJECTS:hone_library_support>"
          -P "${PROJECT_SOURCE_DIR}/cmake/embedded_archive.cmake"
  DEPENDS "${hone_static_archive}" hone_library_support "$<TARGET_OBJECTS:hone_library_support>"
          "${PROJECT_SOURCE_DIR}/cmake/embedded_archive.cmake"
  COMMENT "Making libhone_embedded.a" VERBATIM)
add_custom_target(hone_embedded_library ALL DEPENDS "${hone_embedded_archive}")
install(FILES "${hone_embedded_archive}" DESTINATION "${HONE_LIBEXEC_SUBDIR}" COMPONENT hone-builder)

install(EXPORT hone-targets NAMESPACE hone:: DESTINATION "${hone_cmake_dir}" COMPONENT libhone-dev)
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/hone-config.cmake.in" "${CMAKE_BINARY_DIR}/hone-config.cmake"
  INSTALL_DESTINATION "${hone_cmake_dir}" PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR
                                                    CMAKE_INSTALL_BINDIR)
# Before 1.0 a minor version may change anything.
write_basic_package_version_file("${CMAKE_BINARY_DIR}/hone-config-version.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/hone-config.cmake"
              "${CMAKE_BINARY_DIR}/hone-config-version.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/hone_add_model.cmake"
        DESTINATION "${hone_cmake_dir}" COMPONENT libhone-dev)
