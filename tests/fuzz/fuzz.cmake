# SPDX-License-Identifier: Apache-2.0
# The fuzz targets (tests/fuzz/target.h): each is tests/fuzz/targets/NAME.cc, with seeds in tests/fuzz/corpus/NAME.
set(berth_fuzz_targets
    allocator_options bindings channel dlpack_tensors environment graph_json graph_text graphs gzip json_of_any_name live_file lives_csv
    named_files npy npz onnx_models plan_json planner runtime_graphs safetensors safetensors_index segment_headers snapshots stubs tensor_files tickets
    traces words)
# What targets have in common, and the readers of the command line, which are in no library.
set(berth_fuzz_support fuzz/protobuf.cc fuzz/target.cc fuzz/zip.cc file/judges.cc)
set(berth_fuzz_cli ${PROJECT_SOURCE_DIR}/src/cli/bindings.cc ${PROJECT_SOURCE_DIR}/src/cli/byte_count.cc ${PROJECT_SOURCE_DIR}/src/cli/input.cc)
find_package(ZLIB REQUIRED)

list(TRANSFORM berth_fuzz_targets PREPEND fuzz/targets/ OUTPUT_VARIABLE berth_fuzz_sources)
list(TRANSFORM berth_fuzz_sources APPEND .cc)

# Every target on its corpus and a few mutations, in any build.
berth_test(test_fuzz fuzz fuzz/fuzz_test.cc ${berth_fuzz_sources} ${berth_fuzz_support} ${berth_fuzz_cli})
if(TARGET test_fuzz)
  # Each target has names of its own in an anonymous namespace, and the same ones.
  set_target_properties(test_fuzz PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(test_fuzz PRIVATE simdjson::simdjson ZLIB::ZLIB)
endif()

# The program fuzzer, with libFuzzer around the target that --target names.
if(BERTH_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "BERTH_FUZZ needs clang's libFuzzer: configure with -DCMAKE_CXX_COMPILER=clang++, as the preset fuzz does")
  endif()
  add_library(berth_fuzz_parts STATIC ${berth_fuzz_support})
  add_library(berth_fuzz_cli STATIC ${berth_fuzz_cli})
  berth_compile(berth_fuzz_parts)
  berth_compile(berth_fuzz_cli)
  target_link_libraries(berth_fuzz_cli PUBLIC berth_inside PRIVATE ZLIB::ZLIB)
  target_compile_options(berth_fuzz_parts PRIVATE -O2 -fno-sanitize=fuzzer-no-link)  # their branches are not what is looked for
  target_link_libraries(berth_fuzz_parts PUBLIC berth_fuzz_cli berth_inside simdjson::simdjson ZLIB::ZLIB nlohmann_json::nlohmann_json)
  target_include_directories(berth_fuzz_parts PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
  add_executable(fuzzer EXCLUDE_FROM_ALL fuzz/libfuzzer.cc ${berth_fuzz_sources})
  berth_compile(fuzzer)
  set_target_properties(fuzzer PROPERTIES UNITY_BUILD OFF)
  target_compile_options(fuzzer PRIVATE -O2)
  target_link_options(fuzzer PRIVATE -fsanitize=fuzzer)
  target_link_libraries(fuzzer PRIVATE berth_fuzz_parts)
endif()
