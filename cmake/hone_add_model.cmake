# hone_add_model(NAME MODEL file.onnx
#                [TARGET text]            cpu:avx2|avx512|native[+vnni+bf16],threads=N
#                [DB file]                a tuning log, or a pinned snapshot FILE@sha256:DIGEST
#                [REQUIRE rung]           exact|nearest|default: fail rather than answer from below
#                [DEVICE_CLASS text]      whose records to read; default: this host's
#                [DIM name=value ...]     symbolic dimensions
#                [SHAPE input=1x3x2x2 ...]
#                [BIND input=file.npy ...] inputs that are constants
#                [ACCURACY class]         strict|default
#                [TRACES folder]          schedules given by hand, FOLDER/HASH.trace
#                [OUTPUT file.hone]       default: NAME.hone in the current binary folder
#                [LIBRARY])               also gives NAME_library, for target_link_libraries()
#
# Compiles an ONNX model when it, its external data or another file named here has changed, and gives a target NAME (built by default) with
# the property HONE_PACKAGE, the package's path. It reads a log only when DB names one, and never tunes:
# tuning is `hone tune`, its log or snapshot is a file beside the sources. Without DB the default
# schedules are used, whatever the user's own log holds. NAME_library is a shared library with the model and the runtime inside; its header is
# the package's name with .h (hone compile --emit so,header). The command is hone::hone, or the variable HONE_COMMAND where it is set.
if(POLICY CMP0116)
  cmake_policy(SET CMP0116 NEW)  # a function keeps the policies of its definition
endif()
function(hone_add_model name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "LIBRARY"
    "MODEL;TARGET;DB;REQUIRE;DEVICE_CLASS;ACCURACY;TRACES;OUTPUT" "DIM;SHAPE;BIND")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "hone_add_model(${name}): cannot use '${arg_UNPARSED_ARGUMENTS}"
                        "${arg_KEYWORDS_MISSING_VALUES}'; see hone_add_model.cmake")
  endif()
  if(NOT arg_MODEL)
    message(FATAL_ERROR "hone_add_model(${name}): MODEL file.onnx is missing")
  endif()
  set(command "${HONE_COMMAND}")
  if(NOT command)
    if(NOT TARGET hone::hone)
      message(FATAL_ERROR "hone_add_model(${name}): the command `hone` is not installed beside this "
                          "package; install it or set HONE_COMMAND to its path")
    endif()
    set(command hone::hone)
  endif()

  get_filename_component(model "${arg_MODEL}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  if(NOT arg_OUTPUT)
    set(arg_OUTPUT "${name}.hone")
  endif()
  get_filename_component(output "${arg_OUTPUT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")

  set(options -o "${output}")
  set(inputs "${model}")
  if(arg_DB)
    string(REGEX REPLACE "@sha256:[0-9a-f]+$" "" db_file "${arg_DB}")
    string(LENGTH "${db_file}" length)
    string(SUBSTRING "${arg_DB}" ${length} -1 pin)
    get_filename_component(db_file "${db_file}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    # The time of a live log's main file moves when SQLite folds its newest rows in, at the latest when
    # the writer closes it; only the time is looked at here, SQLite alone opens it.
    list(APPEND inputs "${db_file}")
    if(pin)
      list(APPEND options --snapshot "${db_file}${pin}")
    else()
      list(APPEND options --db "${db_file}")
    endif()
  endif()
  foreach(option TARGET REQUIRE DEVICE_CLASS ACCURACY)
    if(arg_${option})
      string(TOLOWER "${option}" flag)
      string(REPLACE "_" "-" flag "${flag}")
      list(APPEND options "--${flag}" "${arg_${option}}")
    endif()
  endforeach()
  foreach(dim IN LISTS arg_DIM)
    list(APPEND options --dim "${dim}")
  endforeach()
  foreach(shape IN LISTS arg_SHAPE)
    list(APPEND options --shape "${shape}")
  endforeach()

  foreach(bind IN LISTS arg_BIND)
    string(REGEX MATCH "^(.*)=([^=]*)$" ignored "${bind}")
    set(input "${CMAKE_MATCH_1}")
    get_filename_component(file "${CMAKE_MATCH_2}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    if(NOT input)
      message(FATAL_ERROR "hone_add_model(${name}): BIND '${bind}' is not INPUT=FILE.npy")
    endif()
    list(APPEND inputs "${file}")
    list(APPEND options --bind "${input}=${file}")
  endforeach()
  if(arg_TRACES)
    get_filename_component(traces "${arg_TRACES}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND options --traces "${traces}")
  endif()
  if(NOT arg_DB AND NOT arg_TRACES)
    list(APPEND options --no-log)
  endif()
  # Which files hold the model's external data, only the command knows.
  list(APPEND options --depfile "${output}.d")

  set(outputs "${output}")
  if(arg_LIBRARY)
    get_filename_component(folder "${output}" DIRECTORY)
    get_filename_component(stem "${output}" NAME_WLE)
    list(APPEND options --emit so,header)
    list(APPEND outputs "${folder}/${stem}.so" "${folder}/${stem}.h" "${folder}/${stem}.o")
  endif()
  add_custom_command(OUTPUT ${outputs}
    COMMAND "${command}" compile "${model}" ${options}
    DEPENDS ${inputs}
    DEPFILE "${output}.d"
    COMMENT "Compiling ${name} with Hone" VERBATIM)
  add_custom_target(${name} ALL DEPENDS "${output}")
  set_property(TARGET ${name} PROPERTY HONE_PACKAGE "${output}")
  if(arg_LIBRARY)
    add_library(${name}_library SHARED IMPORTED GLOBAL)
    set_target_properties(${name}_library PROPERTIES
      IMPORTED_LOCATION "${folder}/${stem}.so" INTERFACE_INCLUDE_DIRECTORIES "${folder}")
    add_dependencies(${name}_library ${name})
  endif()
endfunction()
