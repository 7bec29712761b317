# cmake -DAR=ar -DCXX=g++ -DRUNTIME=libhone_runtime.a -DOUTPUT=all.a "-DOBJECTS=a.o;b.o"
#       -P embedded_archive.cmake
# The runtime, the given objects, and of the compiler's own static library what tells the CPU's
# features (__builtin_cpu_supports): it is in no shared library.
execute_process(COMMAND "${CXX}" -print-libgcc-file-name OUTPUT_VARIABLE libgcc
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
get_filename_component(folder "${OUTPUT}" DIRECTORY)
set(scratch "${OUTPUT}.parts")
file(MAKE_DIRECTORY "${folder}" "${scratch}")
execute_process(COMMAND "${AR}" x "${libgcc}" cpuinfo.o WORKING_DIRECTORY "${scratch}"
                COMMAND_ERROR_IS_FATAL ANY)
file(COPY_FILE "${RUNTIME}" "${OUTPUT}")
execute_process(COMMAND "${AR}" rcsD "${OUTPUT}" ${OBJECTS} "${scratch}/cpuinfo.o"
                COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE_RECURSE "${scratch}")
