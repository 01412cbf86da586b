# Compiler flags of the whole project (function headway_flags) and of the library's rooms
# (headway_room_flags). Thin on purpose: one place to read them all.

set(CMAKE_C_STANDARD 99)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS ON)
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -g")
set(CMAKE_C_FLAGS_RELEASE "-O3 -g")
set(CMAKE_CXX_FLAGS_DEBUG "-Og -g3 -DHEADWAY_DEBUG=1")
set(CMAKE_C_FLAGS_DEBUG "-Og -g3 -DHEADWAY_DEBUG=1")

add_compile_options(-Wall -Wextra -fno-omit-frame-pointer)
# GCC 12 sees overlapping copies in std::string where there are none (its bug 105651).
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)
if(HEADWAY_WERROR)
  add_compile_options(-Werror)
endif()
if(HEADWAY_SANITIZE)
  add_compile_options(-fsanitize=${HEADWAY_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${HEADWAY_SANITIZE})
  if(HEADWAY_SANITIZE MATCHES "undefined")
    # The rooms have no RTTI, which this one check needs: unit tests of them would not link.
    add_compile_options(-fno-sanitize=vptr)
  endif()
endif()

set(headway_lto_flags "")
if(HEADWAY_LTO AND CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT HEADWAY_SANITIZE)
  include(CheckIPOSupported)
  check_ipo_supported(RESULT headway_lto_works OUTPUT headway_lto_story LANGUAGES C CXX)
  if(headway_lto_works)
    # Fat objects: the library takes the intermediate code, unit tests the machine code, so that a
    # test links in a moment.
    set(headway_lto_flags -flto=auto -ffat-lto-objects)
  else()
    message(STATUS "no link-time optimisation: ${headway_lto_story}")
  endif()
endif()

# A program for machines that we do not know, as the wheel brings it: nothing of this machine's C++
# runtime, and other libraries from a folder beside it. (RPATH, not RUNPATH: it counts for the
# libraries of those libraries, too.) It lies in build/portable under the given name.
add_custom_target(headway_portable)
function(headway_portable target name)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME ${name}
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/portable
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/../lib/headway")
  target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -Wl,--disable-new-dtags)
  add_dependencies(headway_portable ${target})
endfunction()

# Flags of code that goes into the library. Unwind tables stay: an exception of the user's callback
# may pass through us.
function(headway_room_flags target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE
    -fno-exceptions -fno-rtti -fno-threadsafe-statics -fasynchronous-unwind-tables
    -fvisibility=hidden -fvisibility-inlines-hidden -ftls-model=initial-exec
    ${headway_lto_flags})
  target_include_directories(${target} PRIVATE
    ${CMAKE_SOURCE_DIR}/src ${HEADWAY_GENERATED_DIR})
  add_dependencies(${target} headway_generate)
endfunction()
