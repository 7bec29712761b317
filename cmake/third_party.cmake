# Every dependency is found here and nowhere else. All come from Debian 12 packages (scripts/deps.sh).
# Imported targets are SYSTEM, so their headers print no warnings. What to link:
#   absl::status, absl::statusor, absl::span, absl::flat_hash_map ...   fmt::fmt      spdlog::spdlog
#   hone_llvm, hone_lld, hone_nvptxcompiler (codegen only)
#                                             xgboost::xgboost          SQLite::SQLite3
#   protobuf::libprotobuf   gRPC::grpc++      CLI11::CLI11              nlohmann_json::nlohmann_json
#   hone_tomlplusplus
#   PkgConfig::libzip   PkgConfig::libseccomp OpenSSL::Crypto           GTest::gmock_main
#   PkgConfig::microhttpd                     PkgConfig::prometheus (core alone)
#   benchmark::benchmark                      Threads::Threads          ${CMAKE_DL_LIBS}
#   hone_openmp (to limit the threads of XGBoost's loops; ours have no pragmas)

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(absl REQUIRED CONFIG)
find_package(fmt 9 REQUIRED CONFIG)
find_package(spdlog REQUIRED CONFIG)
find_package(CLI11 REQUIRED CONFIG)
# Its headers alone: no program needs its library.
find_package(tomlplusplus REQUIRED CONFIG)
add_library(hone_tomlplusplus INTERFACE)
target_include_directories(hone_tomlplusplus SYSTEM INTERFACE
  $<TARGET_PROPERTY:tomlplusplus::tomlplusplus,INTERFACE_INCLUDE_DIRECTORIES>)
target_compile_definitions(hone_tomlplusplus INTERFACE TOML_HEADER_ONLY=1)
find_package(nlohmann_json REQUIRED CONFIG)
find_package(xgboost REQUIRED CONFIG)
find_package(OpenMP REQUIRED COMPONENTS CXX)
add_library(hone_openmp INTERFACE)
target_link_libraries(hone_openmp INTERFACE ${OpenMP_CXX_LIBRARIES})
find_package(SQLite3 REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(ZLIB REQUIRED)
# Debian's protobuf 3.21 has no config file: module mode.
find_package(Protobuf REQUIRED)
find_package(gRPC REQUIRED CONFIG)
# libzip's own config file insists on its command-line programs; its .pc file does not.
pkg_check_modules(libzip REQUIRED IMPORTED_TARGET libzip)
pkg_check_modules(libseccomp REQUIRED IMPORTED_TARGET libseccomp)
pkg_check_modules(microhttpd REQUIRED IMPORTED_TARGET libmicrohttpd)
# prometheus-cpp's config file insists on civetweb and curl, which its core does not need.
pkg_check_modules(prometheus REQUIRED IMPORTED_TARGET prometheus-cpp-core)
if(HONE_BUILD_TESTS)
  find_package(GTest REQUIRED CONFIG)
endif()
if(HONE_BUILD_BENCH)
  find_package(benchmark REQUIRED CONFIG)
endif()

# LLVM 22 is in Debian 12's security suite; its patch level moves, so only major.minor is asked for.
find_package(LLVM 22.1 REQUIRED CONFIG)
add_library(hone_llvm INTERFACE)
target_include_directories(hone_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
separate_arguments(hone_llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_options(hone_llvm INTERFACE ${hone_llvm_definitions})
# A program with the property HONE_LLVM_INSIDE has those parts of LLVM in it that it needs; others
# share the library of 140 MB.
llvm_map_components_to_libnames(hone_llvm_parts X86 NVPTX DTLTO LTO Option Passes)
# Polly is packaged apart and not used: tests/gpu/absent_parts.cc.in stands for it.
set_property(TARGET LLVMExtensions PROPERTY INTERFACE_LINK_LIBRARIES LLVMSupport)
target_link_libraries(hone_llvm INTERFACE
  "$<IF:$<BOOL:$<TARGET_PROPERTY:HONE_LLVM_INSIDE>>,${hone_llvm_parts},LLVM>")

# LLD as a library (static archives over the shared libLLVM).
find_library(HONE_LLD_ELF lldELF HINTS ${LLVM_LIBRARY_DIRS} REQUIRED)
find_library(HONE_LLD_COMMON lldCommon HINTS ${LLVM_LIBRARY_DIRS} REQUIRED)
pkg_check_modules(libzstd REQUIRED IMPORTED_TARGET libzstd)
add_library(hone_lld INTERFACE)
target_link_libraries(hone_lld INTERFACE ${HONE_LLD_ELF} ${HONE_LLD_COMMON} hone_llvm ZLIB::ZLIB
                                         PkgConfig::libzstd)

# NVIDIA's PTX assembler as a library, optional: from a CUDA Toolkit, or from the folder that
# `scripts/deps.sh nvptx` fills. Without it hone-builder ships PTX text, and tests that assemble look for ptxas.
set(HONE_NVPTX_FOLDER "${PROJECT_SOURCE_DIR}/build/nvptx" CACHE PATH "What scripts/deps.sh nvptx has fetched")
find_path(HONE_NVPTXCOMPILER_INCLUDE nvPTXCompiler.h
          HINTS "${HONE_NVPTX_FOLDER}/nvidia/cu13/include" "${CUDAToolkit_ROOT}/include" /usr/local/cuda/include)
find_library(HONE_NVPTXCOMPILER_LIBRARY nvptxcompiler_static
             HINTS "${HONE_NVPTX_FOLDER}/nvidia/cu13/lib" "${CUDAToolkit_ROOT}/lib64" /usr/local/cuda/lib64)
add_library(hone_nvptxcompiler INTERFACE)
if(HONE_NVPTXCOMPILER_INCLUDE AND HONE_NVPTXCOMPILER_LIBRARY)
  target_include_directories(hone_nvptxcompiler SYSTEM INTERFACE "${HONE_NVPTXCOMPILER_INCLUDE}")
  target_compile_definitions(hone_nvptxcompiler INTERFACE HONE_HAS_NVPTXCOMPILER=1)
  target_link_libraries(hone_nvptxcompiler INTERFACE "${HONE_NVPTXCOMPILER_LIBRARY}" Threads::Threads
                                                     ${CMAKE_DL_LIBS})
endif()
