# headway_user_program(<target> [NAME <file>] [FOLDER <folder>] SOURCES <file>...)
#
# A program that is built against the library as a user's is: it sees mpi.h and libmpi_abi.so.1 and
# nothing of src/. The papers' programs, the examples and the programs of tests are all made here.
#
#   NAME    the file's name, where it differs from the target's (targets have one name space)
#   FOLDER  where the file lies in the build tree; without it, where programs of this folder lie
#
# The build tree's library is found by RUNPATH, not RPATH, so that LD_LIBRARY_PATH can put another
# library of the standard ABI under the same program. Flags of its own a program gets from
# target_compile_options() behind this call.
function(headway_user_program target)
  cmake_parse_arguments(PARSE_ARGV 1 PROGRAM "" "NAME;FOLDER" "SOURCES")
  if(NOT PROGRAM_SOURCES OR PROGRAM_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "headway_user_program(${target}): SOURCES are missing, or an argument is "
                        "not known: ${PROGRAM_UNPARSED_ARGUMENTS}")
  endif()
  add_executable(${target} ${PROGRAM_SOURCES})
  if(PROGRAM_NAME)
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${PROGRAM_NAME})
  endif()
  if(PROGRAM_FOLDER)
    set_target_properties(${target} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${PROGRAM_FOLDER})
  endif()
  # mpi.h is generated, and mpi_abi brings its folder.
  target_link_libraries(${target} PRIVATE mpi_abi)
  target_link_options(${target} PRIVATE -Wl,--enable-new-dtags)
  add_dependencies(${target} headway_generate)
endfunction()
