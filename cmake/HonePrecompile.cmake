# Precompiled headers: Abseil's status types, fmt and the standard library are most of what a file of
# Hone parses. Presets that build everything turn them on (HONE_PCH); other builds go without, so
# that a file which forgets an include is found.
#
#   hone_precompile(target set)    set: library, threaded (libraries that use pthreads), test or
#                                  threaded_test (tests that link gRPC)
#
# One set is compiled once and shared, so its targets must have equal compiler flags.

set(HONE_PCH_LIBRARY
  <algorithm> <array> <cmath> <cstdint> <filesystem> <functional> <limits> <map> <memory> <numeric>
  <optional> <set> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector>
  <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h> <absl/status/status.h>
  <absl/status/statusor.h> <absl/types/span.h> <fmt/format.h> <fmt/ranges.h>)
set(HONE_PCH_THREADED ${HONE_PCH_LIBRARY}
  <atomic> <chrono> <condition_variable> <mutex> <nlohmann/json.hpp> <thread>)
set(HONE_PCH_TEST ${HONE_PCH_LIBRARY} <fstream> <sstream> <gmock/gmock.h> <gtest/gtest.h>)
set(HONE_PCH_THREADED_TEST ${HONE_PCH_TEST}
  <atomic> <chrono> <condition_variable> <mutex> <nlohmann/json.hpp> <thread>)

# The target that owns a set's header: an empty file.
function(hone_make_precompiled set)
  string(TOUPPER "${set}" upper)
  set(source "${CMAKE_BINARY_DIR}/precompiled/${set}.cc")
  if(NOT EXISTS "${source}")
    file(WRITE "${source}" "")
  endif()
  add_library(hone_precompiled_${set} OBJECT "${source}")
  target_link_libraries(hone_precompiled_${set} PRIVATE absl::status absl::statusor absl::span
    absl::flat_hash_map absl::flat_hash_set fmt::fmt nlohmann_json::nlohmann_json hone_warnings ${ARGN})
  target_precompile_headers(hone_precompiled_${set} PRIVATE ${HONE_PCH_${upper}})
endfunction()

if(HONE_PCH)
  hone_make_precompiled(library)
  hone_make_precompiled(threaded)
  # Third-party targets that gRPC brings compile with -pthread; so does this.
  target_compile_options(hone_precompiled_threaded PRIVATE -pthread)
  if(HONE_BUILD_TESTS)
    foreach(set test threaded_test)
      hone_make_precompiled(${set} GTest::gtest GTest::gmock)
      set_target_properties(hone_precompiled_${set} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(hone_precompiled_${set} PRIVATE -fPIE $<$<NOT:$<CONFIG:Debug>>:${HONE_TEST_OPTIMISATION}>)
    endforeach()
    target_compile_options(hone_precompiled_threaded_test PRIVATE -pthread)
  endif()
endif()

function(hone_precompile target set)
  if(HONE_PCH)
    target_precompile_headers(${target} REUSE_FROM hone_precompiled_${set})
  endif()
endfunction()
