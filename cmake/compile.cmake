# SPDX-License-Identifier: Apache-2.0
# How everything in this tree is compiled. Targets call berth_compile(target).

# Programs are position-independent, so that the addresses of their code cannot be known either.
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)

function(berth_compile target)
  if(CMAKE_UNITY_BUILD)
    berth_unite(${target})
  endif()
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wundef -fno-omit-frame-pointer -fno-semantic-interposition)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-restrict)  # gcc 12 is wrong about std::string's operator+ at -O3
  endif()
  if(BERTH_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE -Wthread-safety)
  endif()
  berth_harden(${target})
  # Sources are named from the root in messages and call sites, whatever folder the tree is in.
  target_compile_options(${target} PRIVATE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
  if(BERTH_FUZZ)
    # libFuzzer looks which branches an input takes. It is not told what is compared with what, which takes a third of the
    # time: the words of each format are in its target and in its seeds.
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link -fno-sanitize-coverage=trace-cmp)
  endif()
  if(BERTH_SANITIZE STREQUAL "address")
    # object-size finds what address finds too, and takes an eighth of the time to compile.
    target_compile_options(${target} PRIVATE -fsanitize=address,undefined -fno-sanitize=object-size -fno-sanitize-recover=undefined)
    target_link_options(${target} PRIVATE -fsanitize=address,undefined)
  elseif(BERTH_SANITIZE STREQUAL "thread")
    target_compile_options(${target} PRIVATE -fsanitize=thread)
    target_link_options(${target} PRIVATE -fsanitize=thread)
  elseif(NOT BERTH_SANITIZE STREQUAL "")
    message(FATAL_ERROR "BERTH_SANITIZE=${BERTH_SANITIZE}: use address, thread, or nothing")
  endif()
endfunction()

# scripts/check-hardening checks what comes of this. The fortified functions of glibc need an optimised build, and a
# sanitizer has its own.
function(berth_harden target)
  if(NOT BERTH_HARDENING OR NOT BERTH_SANITIZE STREQUAL "")
    return()
  endif()
  set(optimised $<CONFIG:Release,RelWithDebInfo,MinSizeRel>)
  # A distribution may have set the first itself, to another value.
  get_target_property(lightly ${target} BERTH_LIGHTLY)
  set(protector $<IF:$<BOOL:${lightly}>,-fstack-protector,-fstack-protector-strong>)
  target_compile_options(${target} PRIVATE "$<${optimised}:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2;${protector}>")
  target_link_options(${target} PRIVATE "$<${optimised}:-Wl,-z,relro;-Wl,-z,now;-Wl,-z,noexecstack>")
endfunction()

# For what an allocation or a view runs through, and reads nothing from outside: frames with an array of characters are
# checked, and not each that a reference leads to. That would be six instructions in each function on the way, 2 to 3 %
# of an allocation. Before berth_compile(target).
function(berth_harden_lightly target)
  set_target_properties(${target} PROPERTIES BERTH_LIGHTLY ON)
endfunction()

# A unity build compiles the files of a folder as one, which takes a third of the time: most of it goes into
# headers. So files of one folder have no two helpers of one name. For a change to a single file, or a
# compile_commands.json with every file, configure with -DCMAKE_UNITY_BUILD=OFF.
function(berth_unite target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources EXCLUDE REGEX "^\\$<")
  foreach(source ${sources})
    cmake_path(GET source PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER "in_${folder}" group)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${group}")
  endforeach()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)  # gcc takes a source that another includes for a header
    # From this size on gcc lets a file grow by 40 % at most, and inlines less than in its parts, each compiled
    # alone.
    target_compile_options(${target} PRIVATE --param=large-unit-insns=1000000 --param=ipa-cp-large-unit-insns=1000000)
  endif()
endfunction()
