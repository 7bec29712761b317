# Every dependency is found here and nowhere else. All come from Debian 12 packages (scripts/deps.sh).
# Imported targets are SYSTEM, so their headers print no warnings. What to link:
#   absl::status, absl::statusor, absl::span, absl::flat_hash_map ...   fmt::fmt      spdlog::spdlog
#   hone_llvm, hone_lld (codegen only)        xgboost::xgboost          SQLite::SQLite3
#   protobuf::libprotobuf   gRPC::grpc++      CLI11::CLI11              nlohmann_json::nlohmann_json
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
target_link_libraries(hone_llvm INTERFACE LLVM)

# LLD as a library (static archives over the shared libLLVM).
find_library(HONE_LLD_ELF lldELF HINTS ${LLVM_LIBRARY_DIRS} REQUIRED)
find_library(HONE_LLD_COMMON lldCommon HINTS ${LLVM_LIBRARY_DIRS} REQUIRED)
pkg_check_modules(libzstd REQUIRED IMPORTED_TARGET libzstd)
add_library(hone_lld INTERFACE)
target_link_libraries(hone_lld INTERFACE ${HONE_LLD_ELF} ${HONE_LLD_COMMON} hone_llvm ZLIB::ZLIB
                                         PkgConfig::libzstd)
