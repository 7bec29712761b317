# Language, build type, tools and warnings: everything that holds for all targets.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()
# -g1 keeps line numbers in stack traces at a fifth of the object size of -g.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(HONE_TEST_OPTIMISATION -O1)
set(HONE_TEST_PATIENCE 1)
set(HONE_SANITIZED OFF)
# What the thread sanitizer is told stands in the programs: tests start some with an environment of
# their own. Its reports go to files, since a test may look at what a program says; they end nothing,
# because gRPC's are sorted out afterwards (scripts/tsan_reports.py); a crash is the tests' own.
set(HONE_SANITIZER_SOURCES "")
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=thread")
  set(HONE_SANITIZER_SOURCES "${CMAKE_BINARY_DIR}/tsan_options.cc")
  file(CONFIGURE OUTPUT "${HONE_SANITIZER_SOURCES}" CONTENT
[[extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() {
  return "ignore_noninstrumented_modules=1:second_deadlock_stack=1:exitcode=0:handle_segv=0:"
         "handle_sigbus=0:handle_abort=0:handle_sigill=0:handle_sigfpe=0:die_after_fork=0:"
         "log_path=@CMAKE_BINARY_DIR@/reports/tsan";
}
]] @ONLY)
elseif(CMAKE_CXX_FLAGS MATCHES "-fsanitize=address")
  # OpenSSL's list of errors of a thread: gRPC's threads may end after OpenSSL has cleaned up.
  set(HONE_SANITIZER_SOURCES "${CMAKE_BINARY_DIR}/asan_options.cc")
  file(CONFIGURE OUTPUT "${HONE_SANITIZER_SOURCES}" CONTENT
[[extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:CRYPTO_zalloc\n"; }
]] @ONLY)
endif()
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=")
  set(HONE_SANITIZED ON)
  # GCC takes three times as long to optimise checked code as to compile it.
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1 -DNDEBUG")
  set(HONE_TEST_OPTIMISATION -O0)
  set(HONE_TEST_PATIENCE 8)  # times as long may a test take
endif()
# No path of the building machine in any binary (__FILE__, debug information).
add_compile_options("-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=")

include(GNUInstallDirs)
# One layout for build tree and install tree: programs find their helpers by relative path.
set(HONE_LIBEXEC_SUBDIR "libexec/hone")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR}")

find_program(HONE_CCACHE ccache)
if(HONE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without the working directory in the hash two build folders share their results.
  # Precompiled headers need the sloppiness.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND};-E;env;CCACHE_NOHASHDIR=1")
  if(HONE_PCH)
    # What was read is asked of the compiler (-MD) and not preprocessed for: 7 % of the time of 14 files.
    list(APPEND CMAKE_CXX_COMPILER_LAUNCHER "CCACHE_SLOPPINESS=pch_defines,time_macros"
         "CCACHE_DEPEND=1")
    add_compile_options(-fpch-preprocess)
  endif()
  list(APPEND CMAKE_CXX_COMPILER_LAUNCHER "${HONE_CCACHE}")
endif()
find_program(HONE_MOLD mold)
if(HONE_MOLD)
  add_link_options("-fuse-ld=mold")
endif()

# Designated initialisers may leave out fields that have a default value.
add_library(hone_warnings INTERFACE)
target_compile_options(hone_warnings INTERFACE -Wall -Wextra -Wconversion -Wshadow
                                               -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports std::string concatenation falsely (GCC bug 105651).
  target_compile_options(hone_warnings INTERFACE -Wno-restrict)
elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(hone_warnings INTERFACE -Wthread-safety)
endif()
if(HONE_WERROR)
  target_compile_options(hone_warnings INTERFACE -Werror)
endif()
