# The target functions every folder uses. Sources are explicit lists; dependencies repeat the floor
# table of docs/ARCHITECTURE.md. A leading "hone_" in a library's name is optional.
#
#   hone_library(ir SOURCES a.cc a.h ... [DEPS public...] [PRIVATE_DEPS ...])
#       static library hone_ir with alias hone::ir
#   hone_executable(hone-runner SOURCES main.cc [DEPS ...] [LIBEXEC])
#       program in bin/, or with LIBEXEC in libexec/hone/, in the build tree and the install tree
#   hone_test(ir SOURCES a_test.cc ... [DEPS ...] [PROGRAMS targets it starts] [LABELS ...]
#             [SHARDS n] [TIMEOUT seconds] [SERIAL])
#       GoogleTest program ir_test, built from tests/ir; one CTest entry a shard. Each entry writes
#       its cases to <build>/test-results/<entry>.xml, which scripts/count_tests.py adds up.

function(hone_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS;PRIVATE_DEPS")
  string(REGEX REPLACE "^hone_" "" short "${name}")
  set(target "hone_${short}")
  add_library(${target} STATIC ${arg_SOURCES})
  add_library(hone::${short} ALIAS ${target})
  target_include_directories(${target} PUBLIC
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>" "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>")
  target_link_libraries(${target} PUBLIC ${arg_DEPS}
                                  PRIVATE ${arg_PRIVATE_DEPS} "$<BUILD_INTERFACE:hone_warnings>")
  # Below these is no Abseil; codegen has LLVM's own definitions.
  if(short MATCHES "^(ir|graph|schedule|build|measure|costmodel|db|search|compiler)$")
    hone_precompile(${target} library)
  elseif(short MATCHES "^(server|worker|client)$")
    hone_precompile(${target} threaded)
  endif()
endfunction()

function(hone_executable target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "LIBEXEC" "" "SOURCES;DEPS")
  add_executable(${target} ${arg_SOURCES} ${HONE_SANITIZER_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_DEPS} hone_warnings)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}"
                                               "${PROJECT_SOURCE_DIR}/include")
  set(destination "${CMAKE_INSTALL_BINDIR}")
  if(arg_LIBEXEC)
    set(destination "${HONE_LIBEXEC_SUBDIR}")
    set_target_properties(${target} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/${HONE_LIBEXEC_SUBDIR}")
  endif()
  # Benchmarks are for who works on Hone.
  if(NOT CMAKE_CURRENT_SOURCE_DIR STREQUAL "${PROJECT_SOURCE_DIR}/bench")
    install(TARGETS ${target} RUNTIME DESTINATION "${destination}" COMPONENT ${target})
  endif()
endfunction()

function(hone_test folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SERIAL" "SHARDS;TIMEOUT" "SOURCES;DEPS;PROGRAMS;LABELS")
  set(target "${folder}_test")
  add_executable(${target} ${arg_SOURCES} ${HONE_SANITIZER_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_DEPS} hone_test_paths hone_warnings
                                          GTest::gtest GTest::gmock GTest::gmock_main)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}"
                                               "${PROJECT_SOURCE_DIR}/include")
  # Tests are compiled once and run once: -O1 (-O0 with sanitizers) halves their share of a clean build.
  target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:${HONE_TEST_OPTIMISATION}>)
  # The runtime has no fmt; what links gRPC compiles with -pthread.
  if(arg_DEPS MATCHES "grpc|proto_service")
    hone_precompile(${target} threaded_test)
  elseif(NOT folder STREQUAL "runtime")
    hone_precompile(${target} test)
  endif()
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  foreach(program IN LISTS arg_PROGRAMS)
    add_dependencies(${target} ${program})
  endforeach()

  if(NOT arg_SHARDS)
    set(arg_SHARDS 1)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * ${HONE_TEST_PATIENCE}")
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  math(EXPR last "${arg_SHARDS} - 1")
  foreach(shard RANGE ${last})
    set(entry "${folder}")
    if(arg_SHARDS GREATER 1)
      set(entry "${folder}.${shard}")
    endif()
    add_test(NAME ${entry}
             COMMAND ${target} "--gtest_output=xml:${CMAKE_BINARY_DIR}/test-results/${entry}.xml"
             WORKING_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
    set_property(GLOBAL APPEND_STRING PROPERTY HONE_TEST_PROGRAMS "${entry} tests/${target}\n")
    set_tests_properties(${entry} PROPERTIES
      LABELS "${arg_LABELS}" TIMEOUT "${arg_TIMEOUT}"
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${shard}")
    if(arg_SERIAL)
      set_tests_properties(${entry} PROPERTIES RUN_SERIAL TRUE)
    endif()
  endforeach()
endfunction()

# hone_script_test(tidy SCRIPT check.py [ARGS ...] [LABELS ...]): a Python program as one CTest entry.
# It gets `--results FILE` and writes there what GoogleTest would: its cases and their failures.
function(hone_script_test entry)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SCRIPT;TIMEOUT" "ARGS;LABELS")
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * ${HONE_TEST_PATIENCE}")
  add_test(NAME ${entry}
           COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/${arg_SCRIPT}" ${arg_ARGS}
                   --results "${CMAKE_BINARY_DIR}/test-results/${entry}.xml")
  set_tests_properties(${entry} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT "${arg_TIMEOUT}")
endfunction()
